//! The product on this machine's processors.

use std::time::Instant;

use hopper_sparse::Element;
use hopper_sparse::cpu;
use hopper_sparse::formats::{AnyBcsr, Csr, Dense};

use super::plan::Stored;
use super::{Prepared, Problem};
use crate::error::{CliError, Result};

/// A in the chosen storage.
enum Sparse<T> {
    Csr(Csr<T>),
    Bcsr(AnyBcsr<T>),
}

struct CpuProduct<T, C> {
    alpha: f64,
    a: Sparse<T>,
    b: Dense<T>,
    beta: f64,
    c: Dense<C>,
}

/// Copies the operands, A into blocks where blocks were chosen.
///
/// # Errors
/// A failure where the blocks cannot be held.
pub fn prepare<T: Element, C: Element>(storage: Stored, problem: &Problem<'_, T, C>) -> Result<Box<dyn Prepared<C>>> {
    let a = match storage {
        // Windows are a GPU's.
        Stored::Csr | Stored::Wcsr(..) => Sparse::Csr(problem.a.clone()),
        Stored::Bcsr(shape, _) => Sparse::Bcsr(AnyBcsr::from_csr(problem.a.view(), shape).map_err(CliError::failure)?),
    };
    let (b, c) = (problem.b.clone(), problem.c.clone());
    Ok(Box::new(CpuProduct { alpha: problem.alpha, a, b, beta: problem.beta, c }))
}

impl<T: Element, C: Element> Prepared<C> for CpuProduct<T, C> {
    fn launch(&mut self) -> Result<f64> {
        let start = Instant::now();
        let (b, c) = (self.b.view(), &mut self.c.view_mut());
        match &self.a {
            Sparse::Csr(a) => cpu::spmm_csr(self.alpha, a.view(), b, self.beta, c),
            Sparse::Bcsr(a) => cpu::spmm_bcsr(self.alpha, a.view(), b, self.beta, c),
        }
        .map_err(CliError::failure)?;
        Ok(start.elapsed().as_secs_f64())
    }

    fn output(&mut self) -> Result<Dense<C>> {
        Ok(self.c.clone())
    }
}
