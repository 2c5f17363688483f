//! The kernels on the CPU, instruction by instruction, in a simulator that finds what only a GPU would show.
//!
//! [`BcsrPlan::simulate`](crate::ops::bcsr::BcsrPlan::simulate),
//! [`CsrPlan::simulate`](crate::ops::csr::CsrPlan::simulate) and
//! [`AttentionPlan::simulate`](crate::ops::attention::AttentionPlan::simulate) run a plan's kernel, with the arguments and
//! tensor maps that a device would be given. A simulated thread takes about a microsecond for an instruction: this is for small matrices.
//!
//! ```
//! use hopper_sparse::formats::{Dense, DenseView, DenseViewMut, Layout, CsrView};
//! use hopper_sparse::ops::csr::CsrSpmm;
//! use hopper_sparse::sim::{Mode, Schedule, Simulated};
//! use hopper_sparse::Dtype;
//!
//! let a = CsrView { num_rows: 2, num_cols: 3, row_offsets: &[0, 1, 2], col_indices: &[0, 2], values: &[2.0_f32, 3.0] };
//! let b = DenseView::try_new(&[1.0_f32, 2.0, 3.0], 3, 1, 1, Layout::RowMajor)?;
//! let mut data = [0.0_f32; 2];
//! let mut c = DenseViewMut::try_new(&mut data, 2, 1, 1, Layout::RowMajor)?;
//!
//! let device = Simulated::new(Schedule::new(Mode::Random, 1));
//! let plan = CsrSpmm::new(&a, 1, Dtype::F32, Layout::RowMajor, Layout::RowMajor).plan(&a)?;
//! plan.simulate(&device, &a, 1.0, b, 0.0, &mut c)?.assert_clean();
//! assert_eq!(data, [2.0, 9.0]);
//! # Ok::<(), hopper_sparse::Error>(())
//! ```

use core::fmt;
use core::ops::Range;
use std::sync::{Mutex, PoisonError};

use bytemuck::Pod;
use hopper_sim::{Memory, TensorElement as SimElement, TensorMap, TensorSwizzle};

use crate::element::Element;
use crate::formats::{DenseView, DenseViewMut, Shape};
use crate::ops::Placed;
use crate::tensor_map::{DevicePtr, TensorElement, TensorMapSpec, TensorMapSwizzle};

pub use crate::tensor_map::{TensorMapError, TensorMapPart};
pub use hopper_sim::{Finding, FindingKind, Mode, Report, Schedule};

/// A device that is simulated: in which order things happen, and what was found so far.
#[derive(Debug)]
pub struct Simulated {
    schedule: Schedule,
    report: Mutex<Report>,
}

impl Simulated {
    /// A device on which things happen as `schedule` says.
    pub fn new(schedule: Schedule) -> Self {
        Self { schedule, report: Mutex::new(Report::default()) }
    }

    /// The schedule of each launch.
    pub fn schedule(&self) -> Schedule {
        self.schedule
    }

    /// What all launches so far came to together.
    pub fn report(&self) -> Report {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds what a launch came to.
    pub(crate) fn add(&self, report: &Report) {
        let mut all = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        all.findings.extend_from_slice(&report.findings);
        all.bank_conflicts += report.bank_conflicts;
        all.num_instructions += report.num_instructions;
    }
}

/// Why the simulator cannot run a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SimError {
    /// A tensor map that the hardware could not read by either.
    TensorMap(TensorMapError),
    /// A tensor map that the simulator does not know how to read by, in a sentence.
    Unsupported(String),
}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TensorMap(error) => error.fmt(f),
            Self::Unsupported(reason) => write!(f, "not simulated: {reason}"),
        }
    }
}

impl std::error::Error for SimError {}

/// The memory of a launch, by the addresses that a device would have.
#[derive(Default)]
pub(crate) struct SimulatedMemory(Memory);

impl SimulatedMemory {
    pub(crate) fn get(&self) -> &Memory {
        &self.0
    }

    /// An array.
    pub(crate) fn upload<T: Pod>(&mut self, name: &str, elements: &[T]) -> DevicePtr {
        DevicePtr(self.0.upload(name, elements).expose_provenance() as u64)
    }

    /// A matrix with its gaps between lines, and nothing beyond its last element.
    pub(crate) fn upload_matrix<T: Element>(&mut self, name: &str, shape: Shape, data: &[T]) -> Placed {
        let data = shape.reach().and_then(|reach| data.get(..reach)).unwrap_or(data);
        let address = self.0.upload_pieces(name, data, pieces(shape, data.len()));
        Placed { address: DevicePtr(address.expose_provenance() as u64), shape, dtype: T::DTYPE }
    }

    /// B, and C as it is before the launch.
    pub(crate) fn upload_factors<T: Element, U: Element>(
        &mut self,
        b: DenseView<'_, T>,
        c: &mut DenseViewMut<'_, U>,
    ) -> (Placed, Placed) {
        let shape = c.shape;
        (self.upload_matrix("B", b.shape, b.data()), self.upload_matrix("C", shape, c.data_mut()))
    }

    /// Copies a matrix back, gaps included.
    pub(crate) fn download<U: Element>(&self, matrix: Placed, c: &mut DenseViewMut<'_, U>) {
        let len = matrix.shape.reach().unwrap_or(0);
        for piece in pieces(matrix.shape, len) {
            let address = matrix.address.byte_add((piece.start * size_of::<U>()) as u64);
            self.download_slice(address, &mut c.data_mut()[piece]);
        }
    }

    /// Copies elements back.
    pub(crate) fn download_slice<T: Pod>(&self, address: DevicePtr, elements: &mut [T]) {
        let found = self.0.download(address.as_mut_ptr::<T>().cast_const(), elements.len());
        elements.copy_from_slice(&found);
    }

    /// A tensor map, of the description that a device's would be made of.
    pub(crate) fn tensor_map<const RANK: usize>(&mut self, spec: &TensorMapSpec<RANK>) -> Result<DevicePtr, SimError> {
        spec.check().map_err(SimError::TensorMap)?;
        let map = self.0.tensor_map(simulated(spec).map_err(SimError::Unsupported)?);
        Ok(DevicePtr(map.map_err(SimError::Unsupported)?.expose_provenance() as u64))
    }
}

/// Of a gap between lines, so many elements are copied: of gaps that are larger than all memory, what an error of a line's end
/// would touch.
const MOST_OF_A_GAP: usize = 4096;

/// Where the lines of a matrix lie among `len` elements, with the gaps behind them.
fn pieces(shape: Shape, len: usize) -> impl Iterator<Item = Range<usize>> {
    let line = shape.leading_dimension.min(shape.line_len().saturating_add(MOST_OF_A_GAP));
    let starts = (0..len).step_by(shape.leading_dimension.max(1));
    starts.map(move |start| start..len.min(start + line))
}

/// The description in the simulator's words.
fn simulated<const RANK: usize>(spec: &TensorMapSpec<RANK>) -> Result<TensorMap, String> {
    let element = match spec.element {
        TensorElement::U8 => SimElement::U8,
        TensorElement::U16 => SimElement::U16,
        TensorElement::U32 => SimElement::U32,
        TensorElement::Bf16 => SimElement::Bf16,
        TensorElement::F16 => SimElement::F16,
        TensorElement::F32 => SimElement::F32,
        TensorElement::F64 => SimElement::F64,
        TensorElement::U64 | TensorElement::Tf32 => return Err(format!("tensors of the type {:?}", spec.element)),
    };
    if spec.element_strides.iter().any(|&stride| stride != 1) {
        return Err(format!("a tensor map with the element strides {:?}", spec.element_strides));
    }
    let swizzle = match spec.swizzle {
        TensorMapSwizzle::None => TensorSwizzle::None,
        TensorMapSwizzle::Bytes32 => TensorSwizzle::B32,
        TensorMapSwizzle::Bytes64 => TensorSwizzle::B64,
        TensorMapSwizzle::Bytes128 => TensorSwizzle::B128,
    };
    let (base, strides) = (spec.address.as_mut_ptr(), &spec.strides_bytes[1..]);
    TensorMap::new(element, base, &spec.dims, strides, &spec.box_dims, swizzle)
}
