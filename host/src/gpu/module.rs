//! Compiled kernels: PTX loaded by the driver, checked against its specification.

use core::ffi::{c_int, c_uint, c_void};
use core::fmt;
use core::ptr;
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::{Arc, Mutex, PoisonError};

use cuda_loader::SUCCESS;
use cuda_loader::driver;
use cuda_loader::types::{CUcontext, CUfunction, CUfunction_attribute, CUjit_option, CUmodule};
use cust::context::ContextHandle as _;
use hopper_std::KernelSpec;
use hopper_std::spec::MAX_SHARED_BYTES;

use super::device::Device;
use super::error::{GpuError, SpecProperty, check};

// `KERNELS: &[(&str, &str)]`, the name and the PTX of every kernel that is part of this library.
include!(concat!(env!("OUT_DIR"), "/kernels.rs"));

/// `CUDA_ERROR_INVALID_VALUE`.
const INVALID_VALUE: u32 = 1;

/// `CUDA_ERROR_NOT_FOUND`.
const NOT_FOUND: u32 = 500;

/// A kernel on a device, ready to launch. Cheap to clone.
#[derive(Clone)]
pub struct Kernel {
    /// NOTE: dropped before the device, whose context it needs.
    loaded: Arc<Loaded>,
    device: Device,
}

impl Device {
    /// The kernel of this library that `spec` describes. The driver compiles it on first use (about 0.1 s); later calls
    /// return the same one. Threads that ask for the same kernel wait for one another, for different ones they do not.
    ///
    /// # Errors
    /// [`GpuError::NoSuchKernel`] where the library was built without it, else as [`Kernel::from_ptx`].
    pub fn kernel(&self, spec: &KernelSpec) -> Result<Kernel, GpuError> {
        let cell = self.kernels().cell(spec.name);
        // A panic while the cell is locked leaves it as it was.
        let mut cell = cell.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = match &*cell {
            Some(loaded) => Arc::clone(loaded),
            None => {
                let ptx = embedded_ptx(spec.name).ok_or(GpuError::NoSuchKernel { kernel: spec.name })?;
                let loaded = Arc::new(Loaded::new(self, spec, ptx)?);
                *cell = Some(Arc::clone(&loaded));
                loaded
            }
        };
        if loaded.spec != *spec {
            return Err(GpuError::SpecMismatch {
                kernel: spec.name,
                property: SpecProperty::Specification,
                stated: spec.threads,
                compiled: loaded.spec.threads,
            });
        }
        Ok(Kernel { loaded, device: self.clone() })
    }
}

impl Kernel {
    /// Compiles and loads `ptx`, and takes from it the entry that `spec` names: for kernels of the caller's own.
    ///
    /// # Errors
    /// [`GpuError::Ptx`] where the driver does not accept the text, with its compiler's words;
    /// [`GpuError::NoSuchEntry`]; [`GpuError::SpecMismatch`] where the compiled kernel cannot run with as many threads,
    /// bytes of shared memory or blocks at once as the specification states; [`GpuError::Driver`].
    pub fn from_ptx(device: &Device, spec: &KernelSpec, ptx: &str) -> Result<Self, GpuError> {
        Ok(Self { loaded: Arc::new(Loaded::new(device, spec, ptx)?), device: device.clone() })
    }

    /// The kernel's specification.
    pub fn spec(&self) -> &KernelSpec {
        &self.loaded.spec
    }

    /// The device that the kernel is loaded on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Registers of a thread at launch.
    pub fn registers(&self) -> u32 {
        self.loaded.registers
    }

    /// Shared memory of a block that the kernel declares itself, in bytes; it comes on top of the specification's.
    pub fn static_shared_bytes(&self) -> u32 {
        self.loaded.static_shared_bytes
    }

    /// Local memory of a thread, in bytes: 0 unless the compiler spilled registers or an array was indexed at run time.
    pub fn local_bytes(&self) -> u32 {
        self.loaded.local_bytes
    }

    /// Blocks that fit a multiprocessor at once. A cluster may need more than that says.
    pub fn max_active_blocks(&self) -> u32 {
        self.loaded.max_active_blocks
    }

    /// The sizes of the kernel's parameters in bytes, where the driver tells them (CUDA 12.4 and newer).
    pub fn param_bytes(&self) -> Option<&[usize]> {
        self.loaded.param_bytes.as_deref()
    }

    /// The driver's handle, valid while the kernel lives.
    pub fn as_raw(&self) -> CUfunction {
        self.loaded.function
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel")
            .field("spec", &self.loaded.spec)
            .field("device", &self.device)
            .field("registers", &self.loaded.registers)
            .field("local_bytes", &self.loaded.local_bytes)
            .finish_non_exhaustive()
    }
}

/// One kernel's place in a cache: empty until it is loaded.
type Cell = Arc<Mutex<Option<Arc<Loaded>>>>;

/// The kernels of this library that a device has loaded.
#[derive(Default)]
pub(super) struct KernelCache {
    cells: Mutex<HashMap<&'static str, Cell>>,
}

impl KernelCache {
    fn cell(&self, name: &'static str) -> Cell {
        // A panic while the map is locked leaves it whole: the only write is one insertion.
        let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(cells.entry(name).or_default())
    }
}

fn embedded_ptx(name: &str) -> Option<&'static str> {
    KERNELS.iter().find(|(kernel, _)| *kernel == name).map(|(_, ptx)| *ptx)
}

/// A module with its one function, and what the driver says of it.
struct Loaded {
    function: CUfunction,
    spec: KernelSpec,
    registers: u32,
    static_shared_bytes: u32,
    local_bytes: u32,
    max_active_blocks: u32,
    param_bytes: Option<Vec<usize>>,
    /// Keeps `function` valid.
    _module: Module,
}

// SAFETY: the driver's functions may be called from any thread in whose context the module is, and everything here
// makes that context current first. `function` is a handle: nothing is read through it on the host.
unsafe impl Send for Loaded {}
// SAFETY: nothing is changed through `&Loaded`, and the driver synchronizes its own state.
unsafe impl Sync for Loaded {}

impl Loaded {
    fn new(device: &Device, spec: &KernelSpec, ptx: &str) -> Result<Self, GpuError> {
        device.make_current()?;
        let module = Module::new(device, spec.name, ptx)?;
        let function = module.function(spec.name)?;
        let mut loaded = Self {
            function,
            spec: *spec,
            registers: attribute(function, CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            static_shared_bytes: attribute(function, CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            local_bytes: attribute(function, CUfunction_attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            max_active_blocks: 0,
            param_bytes: param_bytes(function),
            _module: module,
        };
        loaded.check_block(attribute(function, CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?)?;
        loaded.allow_shared_memory()?;
        loaded.max_active_blocks = occupancy(function, spec)?;
        if loaded.max_active_blocks < spec.min_blocks {
            return Err(loaded.mismatch(
                SpecProperty::BlocksPerMultiprocessor,
                spec.min_blocks,
                loaded.max_active_blocks,
            ));
        }
        Ok(loaded)
    }

    /// Threads and shared memory of a block, against what the kernel was compiled for and what the hardware has.
    fn check_block(&self, max_threads: u32) -> Result<(), GpuError> {
        if self.spec.threads > max_threads {
            return Err(self.mismatch(SpecProperty::Threads, self.spec.threads, max_threads));
        }
        let shared_bytes = self.static_shared_bytes.saturating_add(self.spec.shared_bytes);
        if shared_bytes > MAX_SHARED_BYTES {
            return Err(self.mismatch(SpecProperty::SharedBytes, shared_bytes, MAX_SHARED_BYTES));
        }
        Ok(())
    }

    /// NOTE: the driver refuses more than 48 KiB of dynamic shared memory unless it is asked for beforehand.
    fn allow_shared_memory(&self) -> Result<(), GpuError> {
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // At most 227 KiB, as `check_block` has seen.
        let bytes = self.spec.shared_bytes as c_int;
        // SAFETY: the function is alive, its context is current, and the attribute takes a number of bytes.
        check("cuFuncSetAttribute", unsafe { driver::cuFuncSetAttribute(self.function, attribute, bytes) })
    }

    fn mismatch(&self, property: SpecProperty, stated: u32, compiled: u32) -> GpuError {
        GpuError::SpecMismatch { kernel: self.spec.name, property, stated, compiled }
    }
}

/// A module, unloaded when dropped.
struct Module {
    raw: CUmodule,
    /// NOTE: not retained here. Whatever holds a module holds the device too, or is part of it.
    context: CUcontext,
}

impl Module {
    /// Has the driver compile `ptx` in the current context, which is the device's.
    fn new(device: &Device, kernel: &'static str, ptx: &str) -> Result<Self, GpuError> {
        const LOG_BYTES: usize = 8192;
        // A zero byte inside would end the text early; the driver then says what it misses.
        let mut text = Vec::with_capacity(ptx.len() + 1);
        text.extend_from_slice(ptx.as_bytes());
        text.push(0);
        let mut log = vec![0_u8; LOG_BYTES];
        let mut options = [CUjit_option::CU_JIT_ERROR_LOG_BUFFER, CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        // NOTE: the size is passed as a number in the place of a pointer.
        let mut values = [log.as_mut_ptr().cast::<c_void>(), ptr::without_provenance_mut(LOG_BYTES)];
        let mut raw: CUmodule = ptr::null_mut();
        // SAFETY: the text ends with a zero byte; there are as many values as options; the log has the size stated and
        // outlives the call, after which the driver no longer uses it.
        let code = unsafe {
            driver::cuModuleLoadDataEx(
                &mut raw,
                text.as_ptr().cast(),
                options.len() as c_uint,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        if code != SUCCESS {
            let end = log.iter().position(|&byte| byte == 0).unwrap_or(LOG_BYTES);
            let log = String::from_utf8_lossy(&log[..end]).into_owned();
            return Err(GpuError::Ptx { kernel, code, log });
        }
        Ok(Self { raw, context: device.context().get_inner() })
    }

    fn function(&self, name: &'static str) -> Result<CUfunction, GpuError> {
        let no_such_entry = GpuError::NoSuchEntry { kernel: name };
        let Ok(terminated) = CString::new(name) else { return Err(no_such_entry) };
        let mut function: CUfunction = ptr::null_mut();
        // SAFETY: the module is loaded, the name ends with a zero byte, and there is a place for one handle.
        match unsafe { driver::cuModuleGetFunction(&mut function, self.raw, terminated.as_ptr()) } {
            NOT_FOUND => Err(no_such_entry),
            code => check("cuModuleGetFunction", code).map(|()| function),
        }
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: the context is retained by the device that outlives this module, and the module is loaded in it.
        // A launch that still runs is no hazard: the driver unloads after it. Failure leaves nothing to be done.
        unsafe {
            if driver::cuCtxSetCurrent(self.context) == SUCCESS {
                driver::cuModuleUnload(self.raw);
            }
        }
    }
}

fn attribute(function: CUfunction, attribute: CUfunction_attribute) -> Result<u32, GpuError> {
    let mut value: c_int = 0;
    // SAFETY: the function is alive, its context is current, and there is a place for one integer.
    check("cuFuncGetAttribute", unsafe { driver::cuFuncGetAttribute(&mut value, attribute, function) })?;
    Ok(value.unsigned_abs())
}

fn occupancy(function: CUfunction, spec: &KernelSpec) -> Result<u32, GpuError> {
    let mut blocks: c_int = 0;
    // SAFETY: the function is alive, its context is current, and there is a place for one integer.
    let code = unsafe {
        driver::cuOccupancyMaxActiveBlocksPerMultiprocessor(
            &mut blocks,
            function,
            spec.threads as c_int,
            spec.shared_bytes as usize,
        )
    };
    check("cuOccupancyMaxActiveBlocksPerMultiprocessor", code)?;
    Ok(blocks.unsigned_abs())
}

/// The size of each parameter, asked one by one until the driver knows no further one; `None` where it is too old.
fn param_bytes(function: CUfunction) -> Option<Vec<usize>> {
    let mut sizes = Vec::new();
    loop {
        let (mut offset, mut bytes) = (0_usize, 0_usize);
        // SAFETY: the function is alive, its context is current, and there are places for two sizes.
        match unsafe { driver::cuFuncGetParamInfo(function, sizes.len(), &mut offset, &mut bytes) } {
            SUCCESS => sizes.push(bytes),
            INVALID_VALUE => return Some(sizes),
            _ => return None,
        }
    }
}
