//! Sparse times dense by cuSPARSE's generic interface.

use core::ptr;
use std::sync::OnceLock;

use cudarc::cusparse::sys;
use hopper_sparse::Dtype;
use hopper_sparse::formats::{BlockShape, Layout};

use crate::bench::device::{DeviceBytes, Gpu};
use crate::bench::error::BenchError;
use crate::bench::implementation::Refusal;
use crate::bench::product_operands::{Compressed, leading_dimension};
use crate::bench::workload::Product;

pub use sys::cusparseSpMMAlg_t as Algorithm;

const LIBRARY: &str = "cuSPARSE (libcusparse.so)";

/// Refuses where the library is not on this machine.
///
/// # Errors
/// [`Refusal::LibraryMissing`].
pub fn present() -> Result<(), Refusal> {
    static PRESENT: OnceLock<bool> = OnceLock::new();
    // SAFETY: opening the vendor's library runs its initialisers, which have no precondition.
    let present = *PRESENT.get_or_init(|| unsafe { sys::is_culib_present() });
    if present { Ok(()) } else { Err(Refusal::LibraryMissing { library: LIBRARY }) }
}

/// Refuses where the library on this machine does not know blocks.
///
/// # Errors
/// [`Refusal::LibraryMissing`] or [`Refusal::FunctionMissing`].
pub fn knows_blocks() -> Result<(), Refusal> {
    present()?;
    // SAFETY: the symbol is only looked for, not called.
    let found = unsafe { sys::culib().get::<unsafe extern "C" fn()>(b"cusparseCreateBsr\0") };
    found.map(|_| ()).map_err(|_| Refusal::FunctionMissing { library: LIBRARY, function: "cusparseCreateBsr" })
}

fn check(call: &'static str, status: sys::cusparseStatus_t) -> Result<(), BenchError> {
    match status {
        sys::cusparseStatus_t::CUSPARSE_STATUS_SUCCESS => Ok(()),
        // An unsupported combination of types, layouts and algorithm is reported as either.
        sys::cusparseStatus_t::CUSPARSE_STATUS_NOT_SUPPORTED | sys::cusparseStatus_t::CUSPARSE_STATUS_INVALID_VALUE => {
            Err(Refusal::VendorUnsupported { call }.into())
        }
        status => Err(BenchError::Vendor { call, status: status as u32 }),
    }
}

/// The library, initialised for the current device.
pub struct Handle(sys::cusparseHandle_t);

impl Handle {
    /// Initialises the library for the current context.
    ///
    /// # Errors
    /// [`Refusal::LibraryMissing`], or what the library failed at.
    pub fn new() -> Result<Self, BenchError> {
        present()?;
        let mut handle = ptr::null_mut();
        // SAFETY: `handle` is a place for one handle.
        check("cusparseCreate", unsafe { sys::cusparseCreate(&mut handle) })?;
        Ok(Self(handle))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle was created by `new` and is destroyed nowhere else. A failure leaks it.
        let _ = unsafe { sys::cusparseDestroy(self.0) };
    }
}

/// A on the device, and the library's description of it.
pub struct SparseMatrix {
    descriptor: sys::cusparseSpMatDescr_t,
    /// What the descriptor points to.
    _memory: [DeviceBytes; 3],
}

impl SparseMatrix {
    /// Uploads compressed rows of entries.
    ///
    /// # Errors
    /// [`Refusal::TooLarge`] where 32-bit indices do not suffice; else what failed.
    pub fn csr(gpu: &Gpu, product: &Product, entries: &Compressed) -> Result<Self, BenchError> {
        let memory = upload(gpu, entries)?;
        let mut descriptor = ptr::null_mut();
        // SAFETY: the arrays are on the device, of the lengths that the sizes imply and of the types stated; they live
        // as long as the descriptor, in `_memory`.
        let status = unsafe {
            sys::cusparseCreateCsr(
                &mut descriptor,
                product.m as i64,
                product.k as i64,
                entries.col_indices.len() as i64,
                memory[0].pointer(),
                memory[1].pointer(),
                memory[2].pointer(),
                sys::cusparseIndexType_t::CUSPARSE_INDEX_32I,
                sys::cusparseIndexType_t::CUSPARSE_INDEX_32I,
                sys::cusparseIndexBase_t::CUSPARSE_INDEX_BASE_ZERO,
                data_type(product.dtype),
            )
        };
        check("cusparseCreateCsr", status)?;
        Ok(Self { descriptor, _memory: memory })
    }

    /// Uploads compressed rows of row-major blocks.
    ///
    /// # Errors
    /// [`Refusal::TooLarge`] or [`Refusal::VendorUnsupported`]; else what failed.
    pub fn bsr(gpu: &Gpu, product: &Product, block: BlockShape, blocks: &Compressed) -> Result<Self, BenchError> {
        let memory = upload(gpu, blocks)?;
        let mut descriptor = ptr::null_mut();
        // SAFETY: as for `csr`; the values hold `rows * cols` elements for each block.
        let status = unsafe {
            sys::cusparseCreateBsr(
                &mut descriptor,
                (product.m / block.rows) as i64,
                (product.k / block.cols) as i64,
                blocks.col_indices.len() as i64,
                block.rows as i64,
                block.cols as i64,
                memory[0].pointer(),
                memory[1].pointer(),
                memory[2].pointer(),
                sys::cusparseIndexType_t::CUSPARSE_INDEX_32I,
                sys::cusparseIndexType_t::CUSPARSE_INDEX_32I,
                sys::cusparseIndexBase_t::CUSPARSE_INDEX_BASE_ZERO,
                data_type(product.dtype),
                sys::cusparseOrder_t::CUSPARSE_ORDER_ROW,
            )
        };
        check("cusparseCreateBsr", status)?;
        Ok(Self { descriptor, _memory: memory })
    }
}

impl Drop for SparseMatrix {
    fn drop(&mut self) {
        // SAFETY: the descriptor was created with the matrix and is destroyed nowhere else. A failure leaks it.
        let _ = unsafe { sys::cusparseDestroySpMat(self.descriptor.cast_const().cast()) };
    }
}

/// Row offsets and column indices as 32-bit numbers, and the values, on the device.
fn upload(gpu: &Gpu, compressed: &Compressed) -> Result<[DeviceBytes; 3], BenchError> {
    let limit = i32::MAX as u64;
    let num_entries = compressed.col_indices.len() as u64;
    if num_entries > limit {
        return Err(Refusal::TooLarge { what: "the number of entries", found: num_entries, limit }.into());
    }
    let row_offsets: Vec<u32> = compressed.row_offsets.iter().map(|&offset| offset as u32).collect();
    Ok([
        gpu.upload(bytemuck::cast_slice(&row_offsets))?,
        gpu.upload(bytemuck::cast_slice(&compressed.col_indices))?,
        gpu.upload(compressed.values.as_bytes())?,
    ])
}

/// The library's description of a dense matrix, whose memory is named at each launch.
struct DenseMatrix(sys::cusparseDnMatDescr_t);

impl DenseMatrix {
    fn new(memory: &DeviceBytes, rows: usize, cols: usize, dtype: Dtype, layout: Layout) -> Result<Self, BenchError> {
        let order = match layout {
            Layout::RowMajor => sys::cusparseOrder_t::CUSPARSE_ORDER_ROW,
            Layout::ColumnMajor => sys::cusparseOrder_t::CUSPARSE_ORDER_COL,
        };
        let leading = leading_dimension(layout, rows, cols) as i64;
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` is a place for one descriptor; the memory holds a matrix of that shape, type and order.
        let status = unsafe {
            sys::cusparseCreateDnMat(
                &mut raw,
                rows as i64,
                cols as i64,
                leading,
                memory.pointer(),
                data_type(dtype),
                order,
            )
        };
        check("cusparseCreateDnMat", status)?;
        Ok(Self(raw))
    }

    fn point_to(&self, memory: &DeviceBytes) -> Result<(), BenchError> {
        // SAFETY: the descriptor is live; the memory has the size of the one that it was made with.
        check("cusparseDnMatSetValues", unsafe { sys::cusparseDnMatSetValues(self.0, memory.pointer()) })
    }
}

impl Drop for DenseMatrix {
    fn drop(&mut self) {
        // SAFETY: the descriptor was created by `new` and is destroyed nowhere else. A failure leaks it.
        let _ = unsafe { sys::cusparseDestroyDnMat(self.0.cast_const().cast()) };
    }
}

/// A sparse product, ready to be launched.
pub struct SparseProduct<'a> {
    handle: &'a Handle,
    a: SparseMatrix,
    b: DenseMatrix,
    c: DenseMatrix,
    algorithm: Algorithm,
    buffer: DeviceBytes,
}

impl<'a> SparseProduct<'a> {
    /// Allocates what the algorithm needs beside the matrices, and lets it look at A beforehand where it can.
    ///
    /// # Errors
    /// [`Refusal::VendorUnsupported`] where it does not take types or layouts; else what the library failed at.
    pub fn new(
        gpu: &'a Gpu,
        product: &Product,
        a: SparseMatrix,
        b: &DeviceBytes,
        c: &DeviceBytes,
        algorithm: Algorithm,
    ) -> Result<Self, BenchError> {
        let handle = gpu.cusparse()?;
        // SAFETY: handle and stream belong to the current context.
        check("cusparseSetStream", unsafe { sys::cusparseSetStream(handle.0, gpu.stream_pointer().cast()) })?;
        let mut product = Self {
            handle,
            a,
            b: DenseMatrix::new(b, product.k, product.n, product.dtype, product.b_layout)?,
            c: DenseMatrix::new(c, product.m, product.n, product.c_dtype, product.c_layout)?,
            algorithm,
            buffer: gpu.allocate(0)?,
        };
        product.buffer = gpu.allocate(product.buffer_bytes()?)?;
        // The other algorithms have nothing to look at.
        if matches!(algorithm, Algorithm::CUSPARSE_SPMM_CSR_ALG1 | Algorithm::CUSPARSE_SPMM_CSR_ALG3) {
            product.preprocess()?;
        }
        gpu.synchronize()?;
        Ok(product)
    }

    fn buffer_bytes(&self) -> Result<usize, BenchError> {
        let (alpha, beta) = (1.0_f32, 0.0_f32);
        let mut bytes = 0;
        // SAFETY: all descriptors are live; `bytes` is a place for one size.
        let status = unsafe {
            sys::cusparseSpMM_bufferSize(
                self.handle.0,
                sys::cusparseOperation_t::CUSPARSE_OPERATION_NON_TRANSPOSE,
                sys::cusparseOperation_t::CUSPARSE_OPERATION_NON_TRANSPOSE,
                (&raw const alpha).cast(),
                self.a.descriptor.cast_const().cast(),
                self.b.0.cast_const().cast(),
                (&raw const beta).cast(),
                self.c.0,
                sys::cudaDataType_t::CUDA_R_32F,
                self.algorithm,
                &mut bytes,
            )
        };
        check("cusparseSpMM_bufferSize", status)?;
        Ok(bytes)
    }

    fn preprocess(&self) -> Result<(), BenchError> {
        let (alpha, beta) = (1.0_f32, 0.0_f32);
        // SAFETY: all descriptors are live; the buffer has the size that the library asked for.
        let status = unsafe {
            sys::cusparseSpMM_preprocess(
                self.handle.0,
                sys::cusparseOperation_t::CUSPARSE_OPERATION_NON_TRANSPOSE,
                sys::cusparseOperation_t::CUSPARSE_OPERATION_NON_TRANSPOSE,
                (&raw const alpha).cast(),
                self.a.descriptor.cast_const().cast(),
                self.b.0.cast_const().cast(),
                (&raw const beta).cast(),
                self.c.0,
                sys::cudaDataType_t::CUDA_R_32F,
                self.algorithm,
                self.buffer.pointer(),
            )
        };
        check("cusparseSpMM_preprocess", status)
    }

    /// Enqueues C = A B.
    ///
    /// # Errors
    /// What the library failed at.
    pub fn launch(&self, b: &DeviceBytes, c: &DeviceBytes) -> Result<(), BenchError> {
        self.b.point_to(b)?;
        self.c.point_to(c)?;
        let (alpha, beta) = (1.0_f32, 0.0_f32);
        // SAFETY: all descriptors are live, and B and C of the shapes that they describe; the buffer has the size that
        // the library asked for. The factors are read before the call returns.
        let status = unsafe {
            sys::cusparseSpMM(
                self.handle.0,
                sys::cusparseOperation_t::CUSPARSE_OPERATION_NON_TRANSPOSE,
                sys::cusparseOperation_t::CUSPARSE_OPERATION_NON_TRANSPOSE,
                (&raw const alpha).cast(),
                self.a.descriptor.cast_const().cast(),
                self.b.0.cast_const().cast(),
                (&raw const beta).cast(),
                self.c.0,
                sys::cudaDataType_t::CUDA_R_32F,
                self.algorithm,
                self.buffer.pointer(),
            )
        };
        check("cusparseSpMM", status)
    }

    /// What was chosen.
    pub fn choice(&self) -> String {
        format!("buffer of {} KiB", self.buffer.len() >> 10)
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
