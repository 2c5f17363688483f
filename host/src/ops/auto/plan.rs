//! A matrix in the best format, planned: one interface to the families' plans.

use core::fmt;

use super::{Format, Question, Recommendation, recommend};
use crate::element::Element;
use crate::error::Error;
use crate::formats::{AnyBcsr, Csr, DenseView, DenseViewMut, Wcsr};
use crate::ops::bcsr::{BcsrPlan, BcsrSpmm};
use crate::ops::csr::{CsrPlan, CsrSpmm};
use crate::ops::wcsr::{WcsrPlan, WcsrSpmm};
use crate::ops::{Operand, PlanError};

/// A plan, and A in its format.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Chosen<T> {
    /// A is multiplied as it is.
    Csr(CsrPlan),
    /// A in blocks.
    Bcsr(AnyBcsr<T>, BcsrPlan),
    /// A in windows.
    Wcsr(Wcsr<T>, WcsrPlan),
}

/// A matrix in the format that a [`Recommendation`] puts first, planned. On a device it is prepared (`prepare`, feature `gpu`) and
/// then launched many times; where there is none, [`multiply_on_cpu`](Self::multiply_on_cpu) computes.
#[derive(Clone, Debug)]
pub struct AutoPlan<'a, T> {
    a: &'a Csr<T>,
    question: Question,
    recommendation: Option<Recommendation>,
    chosen: Chosen<T>,
}

impl<'a, T: Element> AutoPlan<'a, T> {
    /// Recommends, builds the best format that can be built, and plans it.
    ///
    /// # Errors
    /// [`PlanError::Refused`] with the first refusal where no kernel serves the question; [`PlanError::NotPlanned`] where the question
    /// is about another type than `T`; [`FormatError::OutOfMemory`](crate::formats::FormatError::OutOfMemory).
    pub fn new(a: &'a Csr<T>, question: &Question) -> Result<Self, Error> {
        if question.dtype != T::DTYPE {
            return Err(PlanError::NotPlanned { operand: Operand::A }.into());
        }
        let recommendation = recommend(a.pattern(), question);
        let refused = recommendation.refused.first().map(|refused| PlanError::Refused(refused.refusal));
        let mut last = refused.unwrap_or(PlanError::NotPlanned { operand: Operand::A });
        for candidate in &recommendation.candidates {
            // What a problem's check cannot see, such as lists longer than a device addresses, the plan refuses.
            match choose(a, question, candidate.format) {
                Ok(chosen) => {
                    let (question, recommendation) = (question.clone(), Some(recommendation));
                    return Ok(Self { a, question, recommendation, chosen });
                }
                Err(Error::Plan(error @ PlanError::Refused(_))) => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last.into())
    }

    /// The same in a format of the caller's choice, without a recommendation.
    ///
    /// # Errors
    /// As the family's `plan`; a [`FormatError`](crate::formats::FormatError) where the format cannot be built.
    pub fn with_format(a: &'a Csr<T>, question: &Question, format: Format) -> Result<Self, Error> {
        Ok(Self { a, question: question.clone(), recommendation: None, chosen: choose(a, question, format)? })
    }

    /// The question.
    pub fn question(&self) -> &Question {
        &self.question
    }

    /// Why; none where the caller chose.
    pub fn recommendation(&self) -> Option<&Recommendation> {
        self.recommendation.as_ref()
    }

    /// The plan, and A in its format.
    pub fn chosen(&self) -> &Chosen<T> {
        &self.chosen
    }

    /// The format.
    pub fn format(&self) -> Format {
        match &self.chosen {
            Chosen::Csr(_) => Format::Csr,
            Chosen::Bcsr(a, _) => Format::Bcsr(a.block()),
            Chosen::Wcsr(a, _) => Format::Wcsr(a.window()),
        }
    }

    /// C = alpha A B + beta C on this machine's processors, as [`cpu::spmm_csr`](crate::cpu::spmm_csr): they take A as it was given.
    ///
    /// # Errors
    /// [`PlanError::ShapeMismatch`].
    pub fn multiply_on_cpu<U: Element>(
        &self,
        alpha: f64,
        b: DenseView<'_, T>,
        beta: f64,
        c: &mut DenseViewMut<'_, U>,
    ) -> Result<(), Error> {
        crate::cpu::spmm_csr(alpha, self.a.view(), b, beta, c)
    }

    /// C = alpha A B + beta C by the plan's kernels in the simulator.
    ///
    /// # Errors
    /// As the family's `simulate`.
    #[cfg(feature = "sim")]
    pub fn simulate<U: Element>(
        &self,
        device: &crate::sim::Simulated,
        alpha: f32,
        b: DenseView<'_, T>,
        beta: f32,
        c: &mut DenseViewMut<'_, U>,
    ) -> Result<crate::sim::Report, Error> {
        match &self.chosen {
            Chosen::Csr(plan) => plan.simulate(device, &self.a.view(), alpha, b, beta, c),
            Chosen::Bcsr(a, plan) => plan.simulate(device, &a.view(), alpha, b, beta, c),
            Chosen::Wcsr(a, plan) => plan.simulate(device, &a.view(), alpha, b, beta, c),
        }
    }
}

fn choose<T: Element>(a: &Csr<T>, question: &Question, format: Format) -> Result<Chosen<T>, Error> {
    let Question { num_cols, output, b_layout, c_layout, ref device, .. } = *question;
    let multiprocessors = device.num_multiprocessors;
    Ok(match format {
        Format::Csr => {
            let a = a.view();
            Chosen::Csr(CsrSpmm::new(&a, num_cols, output, b_layout, c_layout).plan(&a)?)
        }
        Format::Bcsr(block) => {
            let a = AnyBcsr::from_csr(a.view(), block)?;
            let plan =
                BcsrSpmm::new(&a.view(), num_cols, output, b_layout, c_layout).plan(&a.view(), multiprocessors)?;
            Chosen::Bcsr(a, plan)
        }
        Format::Wcsr(window) => {
            let a = a.to_wcsr(window)?;
            let plan =
                WcsrSpmm::new(&a.view(), num_cols, output, b_layout, c_layout).plan(&a.view(), multiprocessors)?;
            Chosen::Wcsr(a, plan)
        }
    })
}

/// The family's plan.
impl<T> fmt::Display for AutoPlan<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.chosen {
            Chosen::Csr(plan) => plan.fmt(f),
            Chosen::Bcsr(_, plan) => plan.fmt(f),
            Chosen::Wcsr(_, plan) => plan.fmt(f),
        }
    }
}

#[cfg(feature = "gpu")]
pub use on_device::AutoPrepared;

#[cfg(feature = "gpu")]
mod on_device {
    use core::fmt;

    use super::{AutoPlan, Chosen};
    use crate::element::Element;
    use crate::error::Error;
    use crate::gpu::{Device, DeviceDenseView, DeviceDenseViewMut, Stream};
    use crate::ops::bcsr::BcsrPrepared;
    use crate::ops::csr::CsrPrepared;
    use crate::ops::wcsr::WcsrPrepared;

    /// A matrix on a device, in the format that was chosen, launched many times.
    #[derive(Debug)]
    #[non_exhaustive]
    pub enum AutoPrepared<T: Element> {
        /// In CSR.
        Csr(CsrPrepared<T>),
        /// In blocks.
        Bcsr(BcsrPrepared<T>),
        /// In windows.
        Wcsr(WcsrPrepared<T>),
    }

    impl<T: Element> AutoPlan<'_, T> {
        /// Puts A and the plan's lists into device memory.
        ///
        /// # Errors
        /// As the family's `prepare`.
        pub fn prepare(&self, device: &Device) -> Result<AutoPrepared<T>, Error> {
            Ok(match &self.chosen {
                Chosen::Csr(plan) => AutoPrepared::Csr(plan.prepare(device, &self.a.view())?),
                Chosen::Bcsr(a, plan) => AutoPrepared::Bcsr(plan.prepare(device, &a.view())?),
                Chosen::Wcsr(a, plan) => AutoPrepared::Wcsr(plan.prepare(device, &a.view())?),
            })
        }
    }

    /// The family's plan.
    impl<T: Element> fmt::Display for AutoPrepared<T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match self {
                Self::Csr(prepared) => prepared.plan().fmt(f),
                Self::Bcsr(prepared) => prepared.plan().fmt(f),
                Self::Wcsr(prepared) => prepared.plan().fmt(f),
            }
        }
    }

    impl<T: Element> AutoPrepared<T> {
        /// Device memory held, in bytes.
        pub fn num_bytes(&self) -> usize {
            match self {
                Self::Csr(prepared) => prepared.num_bytes(),
                Self::Bcsr(prepared) => prepared.num_bytes(),
                Self::Wcsr(prepared) => prepared.num_bytes(),
            }
        }

        /// Launches C = alpha A B + beta C on `stream` and returns without waiting, as the family's `launch`.
        /// It may be captured in a graph: see [graphs](crate::gpu#graphs).
        ///
        /// # Errors
        /// As the family's `launch`.
        ///
        /// # Safety
        /// B and C stay allocated, B is not written and C is not used, until the launch is done; both are in the memory of
        /// the device that this was prepared on, and `stream` is one of its streams.
        pub unsafe fn launch<U: Element>(
            &self,
            stream: &Stream,
            alpha: f32,
            b: DeviceDenseView<'_, T>,
            beta: f32,
            c: &mut DeviceDenseViewMut<'_, U>,
        ) -> Result<(), Error> {
            // SAFETY: the caller's promise, which is each family's.
            unsafe {
                match self {
                    Self::Csr(prepared) => prepared.launch(stream, alpha, b, beta, c),
                    Self::Bcsr(prepared) => prepared.launch(stream, alpha, b, beta, c),
                    Self::Wcsr(prepared) => prepared.launch(stream, alpha, b, beta, c),
                }
            }
        }
    }
}
