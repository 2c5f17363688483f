//! Dense products by cuBLASLt.

use core::ptr;
use std::sync::OnceLock;

use cudarc::cublaslt::sys;
use hopper_sparse::Dtype;
use hopper_sparse::formats::Layout;

use crate::bench::device::{DeviceBytes, Gpu};
use crate::bench::error::BenchError;
use crate::bench::implementation::Refusal;

/// Algorithms that each question to the heuristics may name.
const NUM_ALGORITHMS: usize = 64;
/// Workspace sizes that the heuristics are asked with, largest last: that many bytes are allocated.
const WORKSPACES: [usize; 2] = [64 << 20, 256 << 20];

/// Refuses where the library is not on this machine.
///
/// # Errors
/// [`Refusal::LibraryMissing`].
pub fn present() -> Result<(), Refusal> {
    static PRESENT: OnceLock<bool> = OnceLock::new();
    // SAFETY: opening the vendor's library runs its initialisers, which have no precondition.
    let present = *PRESENT.get_or_init(|| unsafe { sys::is_culib_present() });
    if present { Ok(()) } else { Err(Refusal::LibraryMissing { library: "cuBLASLt (libcublasLt.so)" }) }
}

fn check(call: &'static str, status: sys::cublasStatus_t) -> Result<(), BenchError> {
    match status {
        sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS => Ok(()),
        sys::cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED => Err(Refusal::VendorUnsupported { call }.into()),
        status => Err(BenchError::Vendor { call, status: status as u32 }),
    }
}

/// An owner of something of the library's that is freed by a function of its own.
macro_rules! owned {
    ($(#[$doc:meta])* $name:ident, $raw:ty, $destroy:ident) => {
        $(#[$doc])*
        pub struct $name($raw);

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: the value was created by the matching function, which this type's constructor checks, and is
                // destroyed nowhere else. A failure leaks it, which nothing can be done about.
                let _ = unsafe { sys::$destroy(self.0) };
            }
        }
    };
}

owned!(
    /// The library, initialised for the current device.
    Handle,
    sys::cublasLtHandle_t,
    cublasLtDestroy
);
owned!(
    /// The operation: types and transpositions.
    MatmulDesc,
    sys::cublasLtMatmulDesc_t,
    cublasLtMatmulDescDestroy
);
owned!(
    /// A matrix: type, shape and leading dimension.
    MatrixLayout,
    sys::cublasLtMatrixLayout_t,
    cublasLtMatrixLayoutDestroy
);
owned!(
    /// What the heuristics may choose from.
    Preference,
    sys::cublasLtMatmulPreference_t,
    cublasLtMatmulPreferenceDestroy
);

impl Handle {
    /// Initialises the library for the current context.
    ///
    /// # Errors
    /// [`Refusal::LibraryMissing`], or what the library failed at.
    pub fn new() -> Result<Self, BenchError> {
        present()?;
        let mut handle = ptr::null_mut();
        // SAFETY: `handle` is a place for one handle.
        check("cublasLtCreate", unsafe { sys::cublasLtCreate(&mut handle) })?;
        Ok(Self(handle))
    }
}

/// What is done with a factor as it lies in memory: the library's `cublasOperation_t`, which the bindings leave out.
#[derive(Clone, Copy)]
#[repr(i32)]
enum FactorOperation {
    Plain = 0,
    Transposed = 1,
}

impl MatmulDesc {
    fn new(operations: [FactorOperation; 2]) -> Result<Self, BenchError> {
        let (compute, scale) = (sys::cublasComputeType_t::CUBLAS_COMPUTE_32F, sys::cudaDataType_t::CUDA_R_32F);
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` is a place for one descriptor.
        check("cublasLtMatmulDescCreate", unsafe { sys::cublasLtMatmulDescCreate(&mut raw, compute, scale) })?;
        let desc = Self(raw);
        use sys::cublasLtMatmulDescAttributes_t as Attribute;
        let attributes = [Attribute::CUBLASLT_MATMUL_DESC_TRANSA, Attribute::CUBLASLT_MATMUL_DESC_TRANSB];
        for (attribute, operation) in attributes.into_iter().zip(operations) {
            // SAFETY: the attribute is read from a live value of the type and size that it has.
            let status = unsafe {
                sys::cublasLtMatmulDescSetAttribute(
                    desc.0,
                    attribute,
                    (&raw const operation).cast(),
                    size_of_val(&operation),
                )
            };
            check("cublasLtMatmulDescSetAttribute", status)?;
        }
        Ok(desc)
    }
}

impl MatrixLayout {
    /// A column-major matrix without gaps.
    fn new(dtype: Dtype, rows: usize, cols: usize) -> Result<Self, BenchError> {
        let mut raw = ptr::null_mut();
        let (num_rows, num_cols, leading) = (rows as u64, cols as u64, rows as i64);
        // SAFETY: `raw` is a place for one layout.
        let status =
            unsafe { sys::cublasLtMatrixLayoutCreate(&mut raw, data_type(dtype), num_rows, num_cols, leading) };
        check("cublasLtMatrixLayoutCreate", status)?;
        Ok(Self(raw))
    }
}

impl Preference {
    fn new(workspace_bytes: usize) -> Result<Self, BenchError> {
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` is a place for one preference.
        check("cublasLtMatmulPreferenceCreate", unsafe { sys::cublasLtMatmulPreferenceCreate(&mut raw) })?;
        let preference = Self(raw);
        let attribute = sys::cublasLtMatmulPreferenceAttributes_t::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
        let bytes = workspace_bytes as u64;
        // SAFETY: the attribute is a 64-bit number, read from a live one.
        let status =
            unsafe { sys::cublasLtMatmulPreferenceSetAttribute(preference.0, attribute, (&raw const bytes).cast(), 8) };
        check("cublasLtMatmulPreferenceSetAttribute", status)?;
        Ok(preference)
    }
}

/// The shape of a dense product C = A B, A row-major without gaps, and how B and C lie.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Rows of A and C.
    pub m: usize,
    /// Columns of B and C.
    pub n: usize,
    /// Columns of A.
    pub k: usize,
    /// The type of A and B.
    pub dtype: Dtype,
    /// The type of C.
    pub c_dtype: Dtype,
    /// B's layout.
    pub b_layout: Layout,
    /// C's layout.
    pub c_layout: Layout,
}

/// A dense product, its algorithm chosen by measurement.
pub struct DenseProduct<'a> {
    gpu: &'a Gpu,
    handle: &'a Handle,
    desc: MatmulDesc,
    left: MatrixLayout,
    right: MatrixLayout,
    result: MatrixLayout,
    /// Whether A is the right factor: the library's column-major C is then our C transposed, C^T = B^T A^T.
    a_is_right: bool,
    workspace: DeviceBytes,
    algorithms: Vec<sys::cublasLtMatmulHeuristicResult_t>,
    chosen: usize,
}

impl<'a> DenseProduct<'a> {
    /// Asks the heuristics for algorithms, tries each on these matrices, and keeps the fastest. `turns` has one or more of A, B and C,
    /// which launches take in turn: with as many as there will be, an algorithm is chosen for operands that come from memory. C is
    /// overwritten.
    ///
    /// # Errors
    /// [`Refusal::VendorUnsupported`] where there is no algorithm; else what the library failed at.
    pub fn new(gpu: &'a Gpu, shape: Shape, turns: &[[&DeviceBytes; 3]]) -> Result<Self, BenchError> {
        use FactorOperation::{Plain, Transposed};
        let Shape { m, n, k, dtype, c_dtype, b_layout, c_layout } = shape;
        // In column-major eyes, A row-major is A^T of k x m, and B row-major is B^T of n x k.
        let a_seen = MatrixLayout::new(dtype, k, m)?;
        let b_seen = match b_layout {
            Layout::RowMajor => MatrixLayout::new(dtype, n, k)?,
            Layout::ColumnMajor => MatrixLayout::new(dtype, k, n)?,
        };
        let b_is_transposed = b_layout == Layout::RowMajor;
        let (left, right, operations, result) = match c_layout {
            Layout::RowMajor => {
                let b_operation = if b_is_transposed { Plain } else { Transposed };
                (b_seen, a_seen, [b_operation, Plain], MatrixLayout::new(c_dtype, n, m)?)
            }
            Layout::ColumnMajor => {
                let b_operation = if b_is_transposed { Transposed } else { Plain };
                (a_seen, b_seen, [Transposed, b_operation], MatrixLayout::new(c_dtype, m, n)?)
            }
        };
        let mut product = Self {
            gpu,
            handle: gpu.cublaslt()?,
            desc: MatmulDesc::new(operations)?,
            left,
            right,
            result,
            a_is_right: c_layout == Layout::RowMajor,
            workspace: gpu.allocate(WORKSPACES[WORKSPACES.len() - 1])?,
            algorithms: Vec::new(),
            chosen: 0,
        };
        for bytes in WORKSPACES {
            product.ask(bytes)?;
        }
        product.choose(turns)?;
        Ok(product)
    }

    /// Adds the algorithms that the heuristics name for a workspace of that size.
    fn ask(&mut self, workspace_bytes: usize) -> Result<(), BenchError> {
        let preference = Preference::new(workspace_bytes)?;
        // SAFETY: the struct is plain numbers and an enum whose value 0 exists, so zeros are a valid value.
        let mut found: [sys::cublasLtMatmulHeuristicResult_t; NUM_ALGORITHMS] = unsafe { core::mem::zeroed() };
        let mut num_found = 0;
        // SAFETY: all descriptors are live, and `found` has as many places as are asked for.
        let status = unsafe {
            sys::cublasLtMatmulAlgoGetHeuristic(
                self.handle.0,
                self.desc.0,
                self.left.0,
                self.right.0,
                self.result.0,
                self.result.0,
                preference.0,
                NUM_ALGORITHMS as i32,
                found.as_mut_ptr(),
                &mut num_found,
            )
        };
        check("cublasLtMatmulAlgoGetHeuristic", status)?;
        for result in &found[..num_found as usize] {
            let usable = result.state == sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS;
            let is_new = self.algorithms.iter().all(|known| known.algo.data != result.algo.data);
            if usable && is_new {
                self.algorithms.push(*result);
            }
        }
        Ok(())
    }

    /// Times each algorithm a few times and keeps the one with the fastest trial.
    fn choose(&mut self, turns: &[[&DeviceBytes; 3]]) -> Result<(), BenchError> {
        const NUM_TRIALS: usize = 6;
        // Short launches are timed together, or the two events would be much of what is compared.
        const MOST_LAUNCHES: usize = 4;
        let mut best = None;
        let mut turn = turns.iter().cycle();
        for index in 0..self.algorithms.len() {
            self.chosen = index;
            let mut least = f64::INFINITY;
            for _ in 0..NUM_TRIALS {
                let mut trial = turn.by_ref().take(turns.len().min(MOST_LAUNCHES));
                match self.gpu.time_us(|| trial.try_for_each(|[a, b, c]| self.launch(a, b, c))) {
                    Ok(time) => least = least.min(time),
                    // The heuristics may name one that then refuses; the others are still good.
                    Err(BenchError::Refused(_)) => break,
                    Err(error) => return Err(error),
                }
            }
            if least < best.map_or(f64::INFINITY, |(_, time)| time) {
                best = Some((index, least));
            }
        }
        let (index, _) = best.ok_or(Refusal::VendorUnsupported { call: "cublasLtMatmulAlgoGetHeuristic" })?;
        self.chosen = index;
        Ok(())
    }

    /// Enqueues C = A B.
    ///
    /// # Errors
    /// What the library failed at.
    pub fn launch(&self, a: &DeviceBytes, b: &DeviceBytes, c: &DeviceBytes) -> Result<(), BenchError> {
        let (left, right) = if self.a_is_right { (b, a) } else { (a, b) };
        let (alpha, beta) = (1.0_f32, 0.0_f32);
        let algorithm = &self.algorithms[self.chosen];
        // SAFETY: the descriptors are live and were made for matrices of these sizes, the algorithm for these
        // descriptors; the workspace has the bytes stated. The factors are read before the call returns. The stream
        // belongs to the current context, as do all pointers.
        let status = unsafe {
            sys::cublasLtMatmul(
                self.handle.0,
                self.desc.0,
                (&raw const alpha).cast(),
                left.pointer(),
                self.left.0,
                right.pointer(),
                self.right.0,
                (&raw const beta).cast(),
                c.pointer(),
                self.result.0,
                c.pointer(),
                self.result.0,
                &algorithm.algo,
                self.workspace.pointer(),
                self.workspace.len(),
                self.gpu.stream_pointer().cast(),
            )
        };
        check("cublasLtMatmul", status)
    }

    /// What was chosen.
    pub fn choice(&self) -> String {
        let algorithm = &self.algorithms[self.chosen];
        format!(
            "algorithm {} of {} from the heuristics, workspace {} KiB",
            self.chosen + 1,
            self.algorithms.len(),
            algorithm.workspaceSize >> 10
        )
    }
}

fn data_type(dtype: Dtype) -> sys::cudaDataType {
    match dtype {
        Dtype::Bf16 => sys::cudaDataType_t::CUDA_R_16BF,
        Dtype::F16 => sys::cudaDataType_t::CUDA_R_16F,
        Dtype::F32 => sys::cudaDataType_t::CUDA_R_32F,
        Dtype::F64 => sys::cudaDataType_t::CUDA_R_64F,
    }
}
