//! Attention in the simulator.

use hopper_sparse::ops::attention::{Attention, AttentionPlan};
use hopper_sparse::sim::{Mode, Schedule, Simulated};
use hopper_sparse::{Element, Error};
use serde_json::{Value, json};

use super::{Inputs, Machine, Output};
use crate::error::{CliError, Result};

/// Blocks of a launch: enough that tiles are shared out among them.
const MULTIPROCESSORS: u32 = 4;

struct SimulatedAttention<T> {
    plan: AttentionPlan,
    inputs: Inputs<T>,
}

/// Plans.
///
/// # Errors
/// Usage where no kernel serves the problem.
pub fn prepare<T: Element>(problem: &Attention, inputs: &Inputs<T>) -> Result<Box<dyn Machine<T>>> {
    let plan = problem.plan(MULTIPROCESSORS).map_err(Error::from)?;
    Ok(Box::new(SimulatedAttention { plan, inputs: inputs.clone() }))
}

impl<T: Element> Machine<T> for SimulatedAttention<T> {
    fn description(&self) -> String {
        format!("simulator, {MULTIPROCESSORS} multiprocessors")
    }

    fn json(&self) -> Value {
        json!({ "name": "simulator", "multiprocessors": MULTIPROCESSORS })
    }

    fn plan(&self) -> Option<&AttentionPlan> {
        Some(&self.plan)
    }

    fn compute(&mut self) -> Result<Output<T>> {
        let mut output = Output::poisoned(self.plan.problem());
        let Inputs { q, k, v } = &self.inputs;
        let device = Simulated::new(Schedule::new(Mode::Random, 1));
        let (mut o, mut lse) = (output.o.view_mut(), output.lse.view_mut());
        let report = self.plan.simulate(&device, q.view(), k.view(), v.view(), &mut o, Some(&mut lse))?;
        match report.findings.first() {
            Some(finding) => Err(CliError::failure(format_args!("the simulator found a fault: {finding}"))),
            None => Ok(output),
        }
    }

    fn time(&mut self) -> Result<Option<f64>> {
        Ok(None)
    }
}
