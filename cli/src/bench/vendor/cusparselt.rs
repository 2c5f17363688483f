//! Products with a 2:4 matrix by cuSPARSELt. The library is opened when it is first asked for; its declarations are written here
//! after its documentation (docs.nvidia.com/cuda/cusparselt), as of version 0.7.

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};

use std::sync::OnceLock;

use cudarc::cusparse::sys::{cudaDataType, cusparseOperation_t, cusparseOrder_t};
use hopper_sparse::Dtype;
use libloading::Library;

use crate::bench::device::{DeviceBytes, Gpu};
use crate::bench::error::BenchError;
use crate::bench::implementation::Refusal;

const NAME: &str = "cuSPARSELt (libcusparseLt.so.0)";
const FILE: &str = "libcusparseLt.so.0";

/// A handle, descriptor or plan, which the library keeps in memory of the caller: 512 bytes in version 0.7, up to 11,024 in earlier
/// ones. The library writes to it whenever it likes.
#[repr(C, align(64))]
struct Opaque(UnsafeCell<[u8; 16 << 10]>);

impl Opaque {
    /// In a place that it keeps.
    fn boxed() -> Box<Self> {
        Box::new(Self(UnsafeCell::new([0; 16 << 10])))
    }

    /// To read and to write.
    fn pointer(&self) -> *mut Self {
        self.0.get().cast()
    }
}

/// `cusparseStatus_t`.
type Status = c_int;
const SUCCESS: Status = 0;
const INVALID_VALUE: Status = 3;
const ARCH_MISMATCH: Status = 4;
const NOT_SUPPORTED: Status = 10;

/// `CUSPARSELT_SPARSITY_50_PERCENT`: two of four, of 16-bit elements.
const HALF: c_int = 0;
/// `CUSPARSE_COMPUTE_32F`, as versions number it that have `cusparseLtMatmulAlgSelectionDestroy`.
const COMPUTE_F32: c_int = 2;
/// `CUSPARSELT_MATMUL_ALG_DEFAULT`.
const ALGORITHM_DEFAULT: c_int = 0;
/// `CUSPARSELT_MATMUL_ALG_CONFIG_ID`.
const CONFIG_ID: c_int = 0;
/// Of addresses and leading dimensions, in bytes.
const ALIGNMENT: u32 = 16;
/// Room for the algorithms that the search tries.
const WORKSPACE_BYTES: usize = 64 << 20;

type Destroy = unsafe extern "C" fn(*const Opaque) -> Status;
/// Handle, plan, alpha, A, B, beta, C, D, workspace, streams and their number. The search writes the plan.
type Multiply = unsafe extern "C" fn(
    *const Opaque,
    *mut Opaque,
    *const c_void,
    *const c_void,
    *const c_void,
    *const c_void,
    *const c_void,
    *mut c_void,
    *mut c_void,
    *mut *mut c_void,
    i32,
) -> Status;

/// Declares the functions that are called, and finds them.
macro_rules! functions {
    ($($field:ident: $type:ty = $symbol:literal;)*) => {
        /// The library's functions.
        struct Functions {
            $($field: $type,)*
        }

        impl Functions {
            fn find(library: &Library) -> Result<Self, Refusal> {
                Ok(Self {
                    $(
                        // SAFETY: the type is that of the function of this name in the library's documentation.
                        $field: *unsafe { library.get::<$type>($symbol) }
                            .map_err(|_| Refusal::FunctionMissing { library: NAME, function: $symbol })?,
                    )*
                })
            }
        }
    };
}

functions! {
    init: unsafe extern "C" fn(*mut Opaque) -> Status = "cusparseLtInit";
    destroy: Destroy = "cusparseLtDestroy";
    dense: unsafe extern "C" fn(*const Opaque, *mut Opaque, i64, i64, i64, u32, cudaDataType, cusparseOrder_t) -> Status
        = "cusparseLtDenseDescriptorInit";
    structured: unsafe extern "C" fn(
        *const Opaque, *mut Opaque, i64, i64, i64, u32, cudaDataType, cusparseOrder_t, c_int,
    ) -> Status = "cusparseLtStructuredDescriptorInit";
    destroy_matrix: Destroy = "cusparseLtMatDescriptorDestroy";
    product: unsafe extern "C" fn(
        *const Opaque, *mut Opaque, cusparseOperation_t, cusparseOperation_t,
        *const Opaque, *const Opaque, *const Opaque, *const Opaque, c_int,
    ) -> Status = "cusparseLtMatmulDescriptorInit";
    select: unsafe extern "C" fn(*const Opaque, *mut Opaque, *const Opaque, c_int) -> Status
        = "cusparseLtMatmulAlgSelectionInit";
    destroy_selection: Destroy = "cusparseLtMatmulAlgSelectionDestroy";
    selected: unsafe extern "C" fn(*const Opaque, *const Opaque, c_int, *mut c_void, usize) -> Status
        = "cusparseLtMatmulAlgGetAttribute";
    plan: unsafe extern "C" fn(*const Opaque, *mut Opaque, *const Opaque, *const Opaque) -> Status
        = "cusparseLtMatmulPlanInit";
    destroy_plan: Destroy = "cusparseLtMatmulPlanDestroy";
    workspace: unsafe extern "C" fn(*const Opaque, *const Opaque, *mut usize) -> Status = "cusparseLtMatmulGetWorkspace";
    compressed: unsafe extern "C" fn(*const Opaque, *const Opaque, *mut usize, *mut usize) -> Status
        = "cusparseLtSpMMACompressedSize";
    compress: unsafe extern "C" fn(
        *const Opaque, *const Opaque, *const c_void, *mut c_void, *mut c_void, *mut c_void,
    ) -> Status = "cusparseLtSpMMACompress";
    search: Multiply = "cusparseLtMatmulSearch";
    multiply: Multiply = "cusparseLtMatmul";
}

/// The library's functions, looked up once. It is never closed, so they stay valid.
fn functions() -> Result<&'static Functions, Refusal> {
    static FUNCTIONS: OnceLock<Result<(Library, Functions), Refusal>> = OnceLock::new();
    let opened = FUNCTIONS.get_or_init(|| {
        // SAFETY: opening the vendor's library runs its initialisers, which have no precondition.
        let library = unsafe { Library::new(FILE) }.map_err(|_| Refusal::LibraryMissing { library: NAME })?;
        let functions = Functions::find(&library)?;
        Ok((library, functions))
    });
    opened.as_ref().map(|(_, functions)| functions).map_err(Clone::clone)
}

/// Refuses where the library is not on this machine, or too old.
///
/// # Errors
/// [`Refusal::LibraryMissing`] or [`Refusal::FunctionMissing`].
pub fn present() -> Result<(), Refusal> {
    functions().map(|_| ())
}

fn check(call: &'static str, status: Status) -> Result<(), BenchError> {
    match status {
        SUCCESS => Ok(()),
        // An unsupported combination of types, layouts and sizes is reported as either.
        NOT_SUPPORTED | INVALID_VALUE | ARCH_MISMATCH => Err(Refusal::VendorUnsupported { call }.into()),
        status => Err(BenchError::Vendor { call, status: status.unsigned_abs() }),
    }
}

/// Something of the library's in memory that does not move, destroyed by a function of its own.
struct Owned {
    raw: Box<Opaque>,
    destroy: Destroy,
}

impl Owned {
    /// `init` initialises it.
    fn new(call: &'static str, destroy: Destroy, init: impl FnOnce(*mut Opaque) -> Status) -> Result<Self, BenchError> {
        let raw = Opaque::boxed();
        check(call, init(raw.pointer()))?;
        Ok(Self { raw, destroy })
    }

    fn get(&self) -> *mut Opaque {
        self.raw.pointer()
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: it was initialised by the matching function, and is destroyed nowhere else. A failure leaks it, which nothing can
        // be done about.
        let _ = unsafe { (self.destroy)(self.get()) };
    }
}

/// The library, initialised for the current device.
pub struct Handle {
    functions: &'static Functions,
    raw: Owned,
}

impl Handle {
    /// Initialises the library for the current context.
    ///
    /// # Errors
    /// [`Refusal::LibraryMissing`], [`Refusal::FunctionMissing`], or what the library failed at.
    pub fn new() -> Result<Self, BenchError> {
        let functions = functions()?;
        // SAFETY: the pointer is to room for a handle.
        let raw = Owned::new("cusparseLtInit", functions.destroy, |raw| unsafe { (functions.init)(raw) })?;
        Ok(Self { functions, raw })
    }

    fn dense(&self, shape: MatrixShape) -> Result<Owned, BenchError> {
        let MatrixShape { rows, cols, leading, data, order } = shape;
        // SAFETY: the handle is initialised; the pointer is to room for a descriptor.
        Owned::new("cusparseLtDenseDescriptorInit", self.functions.destroy_matrix, |raw| unsafe {
            (self.functions.dense)(self.raw.get(), raw, rows, cols, leading, ALIGNMENT, data, order)
        })
    }

    fn two_of_four(&self, shape: MatrixShape) -> Result<Owned, BenchError> {
        let MatrixShape { rows, cols, leading, data, order } = shape;
        // SAFETY: as for a dense matrix.
        Owned::new("cusparseLtStructuredDescriptorInit", self.functions.destroy_matrix, |raw| unsafe {
            (self.functions.structured)(self.raw.get(), raw, rows, cols, leading, ALIGNMENT, data, order, HALF)
        })
    }
}

/// How a matrix lies in memory.
#[derive(Clone, Copy)]
struct MatrixShape {
    rows: i64,
    cols: i64,
    leading: i64,
    data: cudaDataType,
    order: cusparseOrder_t,
}

/// Y = X W^T, W of two elements of every four: Y^T (M x N) = W X^T in the library's eyes.
pub struct StructuredProduct<'a> {
    gpu: &'a Gpu,
    handle: &'a Handle,
    /// NOTE: dropped before what it was made of.
    plan: Owned,
    selection: Owned,
    _product: Box<Opaque>,
    _matrices: [Owned; 3],
    workspace: DeviceBytes,
}

impl<'a> StructuredProduct<'a> {
    /// A product of `m` outputs, `n` tokens and `k` inputs, by the default algorithm until there is a [search](Self::search).
    ///
    /// # Errors
    /// [`Refusal::VendorUnsupported`] where the library does not take these sizes; else what it failed at.
    pub fn new(gpu: &'a Gpu, [m, n, k]: [usize; 3], dtype: Dtype) -> Result<Self, BenchError> {
        let handle = gpu.cusparselt()?;
        let functions = handle.functions;
        let (m, n, k, data) = (m as i64, n as i64, k as i64, data_type(dtype)?);
        let by_rows =
            |rows, cols| MatrixShape { rows, cols, leading: cols, data, order: cusparseOrder_t::CUSPARSE_ORDER_ROW };
        let w = handle.two_of_four(by_rows(m, k))?;
        let x = handle.dense(by_rows(n, k))?;
        let y =
            handle.dense(MatrixShape { leading: m, order: cusparseOrder_t::CUSPARSE_ORDER_COL, ..by_rows(m, n) })?;
        use cusparseOperation_t::{
            CUSPARSE_OPERATION_NON_TRANSPOSE as PLAIN, CUSPARSE_OPERATION_TRANSPOSE as TRANSPOSED,
        };
        let product = Opaque::boxed();
        // SAFETY: handle and matrices are initialised; the pointer is to room for a descriptor, which there is no function to
        // destroy.
        let status = unsafe {
            let [handle, w, x, y] = [handle.raw.get(), w.get(), x.get(), y.get()];
            (functions.product)(handle, product.pointer(), PLAIN, TRANSPOSED, w, x, y, y, COMPUTE_F32)
        };
        check("cusparseLtMatmulDescriptorInit", status)?;
        let (raw, described) = (handle.raw.get(), product.pointer());
        // SAFETY: handle and product are initialised; the pointer is to room for a selection.
        let selection = Owned::new("cusparseLtMatmulAlgSelectionInit", functions.destroy_selection, |to| unsafe {
            (functions.select)(raw, to, described, ALGORITHM_DEFAULT)
        })?;
        // SAFETY: the same, and the selection is of this product.
        let plan = Owned::new("cusparseLtMatmulPlanInit", functions.destroy_plan, |to| unsafe {
            (functions.plan)(raw, to, described, selection.get())
        })?;
        let workspace = gpu.allocate(WORKSPACE_BYTES)?;
        let mut ready = Self { gpu, handle, plan, selection, _product: product, _matrices: [w, x, y], workspace };
        ready.make_room()?;
        Ok(ready)
    }

    /// Makes the workspace as large as the plan's algorithm wants it.
    fn make_room(&mut self) -> Result<(), BenchError> {
        let mut bytes = 0;
        // SAFETY: handle and plan are initialised; the pointer is to a place for a size.
        let status = unsafe { (self.handle.functions.workspace)(self.handle.raw.get(), self.plan.get(), &mut bytes) };
        check("cusparseLtMatmulGetWorkspace", status)?;
        if bytes > self.workspace.len() {
            self.gpu.synchronize()?;
            self.workspace = self.gpu.allocate(bytes)?;
        }
        Ok(())
    }

    /// W as the library stores it: values and the places of two in four.
    ///
    /// # Errors
    /// What the library failed at.
    pub fn compress(&self, w: &DeviceBytes) -> Result<DeviceBytes, BenchError> {
        let functions = self.handle.functions;
        let (handle, plan) = (self.handle.raw.get(), self.plan.get());
        let (mut bytes, mut scratch_bytes) = (0, 0);
        // SAFETY: handle and plan are initialised; the pointers are to places for sizes.
        let status = unsafe { (functions.compressed)(handle, plan, &mut bytes, &mut scratch_bytes) };
        check("cusparseLtSpMMACompressedSize", status)?;
        let compressed = self.gpu.allocate(bytes)?;
        // The library takes no empty memory, and there is none.
        let scratch = self.gpu.allocate(scratch_bytes.max(1))?;
        // SAFETY: W has the size of the plan's, the other two the sizes that the library asked for; all live until the stream has
        // been waited for.
        let status = unsafe {
            let [from, to, scratch] = [w.pointer(), compressed.pointer(), scratch.pointer()];
            (functions.compress)(handle, plan, from, to, scratch, self.gpu.stream_pointer())
        };
        check("cusparseLtSpMMACompress", status)?;
        self.gpu.synchronize()?;
        Ok(compressed)
    }

    /// Has the library try its algorithms on these matrices; the fastest is the plan's from then on. Y is overwritten.
    ///
    /// # Errors
    /// What the library failed at.
    pub fn search(&mut self, w: &DeviceBytes, x: &DeviceBytes, y: &DeviceBytes) -> Result<(), BenchError> {
        self.call("cusparseLtMatmulSearch", self.handle.functions.search, [w, x, y])?;
        self.make_room()
    }

    /// Enqueues Y = X W^T, with W as [`compress`](Self::compress) makes it.
    ///
    /// # Errors
    /// What the library failed at.
    pub fn launch(&self, w: &DeviceBytes, x: &DeviceBytes, y: &DeviceBytes) -> Result<(), BenchError> {
        self.call("cusparseLtMatmul", self.handle.functions.multiply, [w, x, y])
    }

    fn call(&self, name: &'static str, function: Multiply, [w, x, y]: [&DeviceBytes; 3]) -> Result<(), BenchError> {
        let (alpha, beta) = (1.0_f32, 0.0_f32);
        let mut stream = self.gpu.stream_pointer();
        // SAFETY: handle and plan are initialised, and the matrices are of the plan's sizes; the workspace has the bytes that the plan
        // asked for, or more. The factors are read before the call returns. The stream belongs to the current context, as do all
        // pointers.
        let status = unsafe {
            function(
                self.handle.raw.get(),
                self.plan.get(),
                (&raw const alpha).cast(),
                w.pointer(),
                x.pointer(),
                (&raw const beta).cast(),
                y.pointer(),
                y.pointer(),
                self.workspace.pointer(),
                &mut stream,
                1,
            )
        };
        check(name, status)
    }

    /// What was chosen.
    pub fn choice(&self) -> String {
        let mut id: c_int = -1;
        // SAFETY: handle and selection are initialised; the attribute is one C integer.
        let status = unsafe {
            let to = (&raw mut id).cast();
            (self.handle.functions.selected)(
                self.handle.raw.get(),
                self.selection.get(),
                CONFIG_ID,
                to,
                size_of::<c_int>(),
            )
        };
        if status == SUCCESS { format!("algorithm {id}, found by the library's search") } else { String::new() }
    }
}

fn data_type(dtype: Dtype) -> Result<cudaDataType, Refusal> {
    match dtype {
        Dtype::Bf16 => Ok(cudaDataType::CUDA_R_16BF),
        Dtype::F16 => Ok(cudaDataType::CUDA_R_16F),
        Dtype::F32 | Dtype::F64 => Err(Refusal::VendorUnsupported { call: "cusparseLtStructuredDescriptorInit" }),
    }
}
