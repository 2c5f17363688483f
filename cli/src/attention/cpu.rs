//! Attention on this machine's processors.

use std::time::Instant;

use hopper_sparse::ops::attention::{Attention, AttentionPlan};
use hopper_sparse::{Element, cpu};
use serde_json::{Value, json};

use super::{Inputs, Machine, Output};
use crate::error::Result;

struct CpuAttention<T> {
    problem: Attention,
    inputs: Inputs<T>,
    output: Output<T>,
}

/// Copies the inputs.
///
/// # Errors
/// None: the signature is that of every machine.
pub fn prepare<T: Element>(problem: &Attention, inputs: &Inputs<T>) -> Result<Box<dyn Machine<T>>> {
    let output = Output::poisoned(problem);
    Ok(Box::new(CpuAttention { problem: problem.clone(), inputs: inputs.clone(), output }))
}

impl<T: Element> Machine<T> for CpuAttention<T> {
    fn description(&self) -> String {
        format!("CPU, {} threads", rayon::current_num_threads())
    }

    fn json(&self) -> Value {
        json!({ "name": "cpu", "threads": rayon::current_num_threads() })
    }

    fn plan(&self) -> Option<&AttentionPlan> {
        None
    }

    fn compute(&mut self) -> Result<Output<T>> {
        let mut output = Output::poisoned(&self.problem);
        let Inputs { q, k, v } = &self.inputs;
        let (mut o, mut lse) = (output.o.view_mut(), output.lse.view_mut());
        cpu::attention(&self.problem, q.view(), k.view(), v.view(), &mut o, Some(&mut lse))?;
        Ok(output)
    }

    fn time(&mut self) -> Result<Option<f64>> {
        let Inputs { q, k, v } = &self.inputs;
        let start = Instant::now();
        cpu::attention(&self.problem, q.view(), k.view(), v.view(), &mut self.output.o.view_mut(), None)?;
        Ok(Some(start.elapsed().as_secs_f64()))
    }
}
