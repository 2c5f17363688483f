//! The table of driver functions: one line, one function.
//!
//! The first list holds what cust 0.3 refers to anywhere in its source, generic code included, and a few functions
//! that cust_raw declares and cust leaves unused. Each line makes two functions: `functions::cuName`, which returns
//! the driver's code as it is, and an exported `cuName`, which the linker finds for cust. A constant per line has the
//! compiler compare its type with cust_raw's declaration, so a wrong line does not build.
//!
//! The second list holds what cust_raw does not declare. Names end in `_v2` where the library exports that name.

use core::ffi::{CStr, c_char, c_int, c_uchar, c_uint, c_ulonglong, c_ushort, c_void};

use cust_raw::*;

use crate::library::Symbol;
use crate::types::*;
use crate::{NOT_INITIALIZED, SUCCESS};

/// Defines `functions::$name`, which forwards to the driver.
macro_rules! forward {
    ($name:ident($($arg:ident: $type:ty),*)) => {
        #[doc = concat!("`", stringify!($name), "` of the CUDA Driver API; returns the driver's code.")]
        ///
        /// # Safety
        /// As the CUDA Driver API reference demands: pointers are valid for what the function reads or writes, handles
        /// are alive, and device memory that is still in use is neither freed nor overwritten.
        #[allow(non_snake_case, clippy::too_many_arguments)]
        pub unsafe fn $name($($arg: $type),*) -> u32 {
            static SYMBOL: Symbol = Symbol::new(stringify!($name));
            let address = SYMBOL.address();
            if address.is_null() {
                return NOT_INITIALIZED;
            }
            // SAFETY: the address is that of the driver's function of this name, whose C declaration has these
            // argument types; `CUresult` is an `enum` of 32 bits, read here as `u32` since a newer driver may return
            // values that no list knows.
            let function: unsafe extern "C" fn($($type),*) -> u32 = unsafe { core::mem::transmute(address) };
            // SAFETY: the caller keeps the function's contract.
            unsafe { function($($arg),*) }
        }
    };
}

/// Defines `functions::$name`, and the exported `$name` that cust is linked with.
macro_rules! cust_functions {
    ($($name:ident($($arg:ident: $type:ty),* $(,)?);)*) => {
        pub mod functions {
            //! The driver's functions, by name.
            use super::*;
            $(forward!($name($($arg: $type),*));)*
        }

        mod exported {
            use super::*;
            $(
                /// # Safety
                /// As for the function of the same name in `functions`.
                // SAFETY: the symbol has the name and the type that cust_raw declares; the program is not linked with
                // another definition, since `libcuda.a` is empty.
                #[unsafe(no_mangle)]
                #[allow(non_snake_case, clippy::too_many_arguments)]
                unsafe extern "C" fn $name($($arg: $type),*) -> CUresult {
                    // SAFETY: the caller keeps the function's contract.
                    to_cust(unsafe { functions::$name($($arg),*) })
                }
                const _: unsafe extern "C" fn($($type),*) -> CUresult = cust_raw::$name;
            )*
        }
    };
}

/// Defines `functions::$name` alone.
macro_rules! newer_functions {
    ($($name:ident($($arg:ident: $type:ty),* $(,)?);)*) => {
        pub mod newer {
            //! Functions that cust_raw does not declare, or not with codes as numbers.
            use super::*;
            $(forward!($name($($arg: $type),*));)*
        }
    };
}

cust_functions! {
    cuArray3DCreate_v2(array: *mut CUarray, descriptor: *const CUDA_ARRAY3D_DESCRIPTOR);
    cuArray3DGetDescriptor_v2(descriptor: *mut CUDA_ARRAY3D_DESCRIPTOR, array: CUarray);
    cuArrayDestroy(array: CUarray);
    cuCtxCreate_v2(context: *mut CUcontext, flags: c_uint, device: CUdevice);
    cuCtxDestroy_v2(context: CUcontext);
    cuCtxGetApiVersion(context: CUcontext, version: *mut c_uint);
    cuCtxGetCacheConfig(config: *mut CUfunc_cache);
    cuCtxGetCurrent(context: *mut CUcontext);
    cuCtxGetDevice(device: *mut CUdevice);
    cuCtxGetFlags(flags: *mut c_uint);
    cuCtxGetLimit(value: *mut usize, limit: CUlimit);
    cuCtxGetSharedMemConfig(config: *mut CUsharedconfig);
    cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int);
    cuCtxPopCurrent_v2(context: *mut CUcontext);
    cuCtxPushCurrent_v2(context: CUcontext);
    cuCtxSetCacheConfig(config: CUfunc_cache);
    cuCtxSetCurrent(context: CUcontext);
    cuCtxSetLimit(limit: CUlimit, value: usize);
    cuCtxSetSharedMemConfig(config: CUsharedconfig);
    cuCtxSynchronize();
    cuDestroyExternalMemory(memory: CUexternalMemory);
    cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
    cuDeviceGetAttribute(value: *mut c_int, attribute: CUdevice_attribute, device: CUdevice);
    cuDeviceGetCount(count: *mut c_int);
    cuDeviceGetName(name: *mut c_char, len: c_int, device: CUdevice);
    cuDeviceGraphMemTrim(device: CUdevice);
    cuDevicePrimaryCtxRelease_v2(device: CUdevice);
    cuDevicePrimaryCtxReset_v2(device: CUdevice);
    cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice);
    cuDevicePrimaryCtxSetFlags_v2(device: CUdevice, flags: c_uint);
    cuDeviceTotalMem_v2(bytes: *mut usize, device: CUdevice);
    cuDriverGetVersion(version: *mut c_int);
    cuEventCreate(event: *mut CUevent, flags: c_uint);
    cuEventDestroy_v2(event: CUevent);
    cuEventElapsedTime(milliseconds: *mut f32, start: CUevent, end: CUevent);
    cuEventQuery(event: CUevent);
    cuEventRecord(event: CUevent, stream: CUstream);
    cuEventSynchronize(event: CUevent);
    cuExternalMemoryGetMappedBuffer(
        pointer: *mut CUdeviceptr, memory: CUexternalMemory, descriptor: *const CUDA_EXTERNAL_MEMORY_BUFFER_DESC,
    );
    cuFuncGetAttribute(value: *mut c_int, attribute: CUfunction_attribute, function: CUfunction);
    cuFuncSetAttribute(function: CUfunction, attribute: CUfunction_attribute, value: c_int);
    cuFuncSetCacheConfig(function: CUfunction, config: CUfunc_cache);
    cuFuncSetSharedMemConfig(function: CUfunction, config: CUsharedconfig);
    cuGraphAddKernelNode(
        node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, num_dependencies: usize,
        params: *const CUDA_KERNEL_NODE_PARAMS,
    );
    cuGraphCreate(graph: *mut CUgraph, flags: c_uint);
    cuGraphDebugDotPrint(graph: CUgraph, path: *const c_char, flags: c_uint);
    cuGraphDestroy(graph: CUgraph);
    cuGraphExecDestroy(executable: CUgraphExec);
    cuGraphGetEdges(graph: CUgraph, from: *mut CUgraphNode, to: *mut CUgraphNode, num_edges: *mut usize);
    cuGraphGetNodes(graph: CUgraph, nodes: *mut CUgraphNode, num_nodes: *mut usize);
    cuGraphInstantiateWithFlags(executable: *mut CUgraphExec, graph: CUgraph, flags: c_ulonglong);
    cuGraphKernelNodeGetParams(node: CUgraphNode, params: *mut CUDA_KERNEL_NODE_PARAMS);
    cuGraphLaunch(executable: CUgraphExec, stream: CUstream);
    cuGraphNodeGetType(node: CUgraphNode, kind: *mut CUgraphNodeType);
    cuImportExternalMemory(memory: *mut CUexternalMemory, descriptor: *const CUDA_EXTERNAL_MEMORY_HANDLE_DESC);
    cuInit(flags: c_uint);
    cuLaunchHostFunc(stream: CUstream, callback: CUhostFn, data: *mut c_void);
    cuLaunchKernel(
        function: CUfunction, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint,
        block_z: c_uint, shared: c_uint, stream: CUstream, params: *mut *mut c_void, extra: *mut *mut c_void,
    );
    cuLinkAddData_v2(
        state: CUlinkState, kind: CUjitInputType, data: *mut c_void, size: usize, name: *const c_char,
        num_options: c_uint, options: *mut CUjit_option, values: *mut *mut c_void,
    );
    cuLinkComplete(state: CUlinkState, cubin: *mut *mut c_void, size: *mut usize);
    cuLinkCreate_v2(num_options: c_uint, options: *mut CUjit_option, values: *mut *mut c_void, state: *mut CUlinkState);
    cuLinkDestroy(state: CUlinkState);
    cuMemAdvise(pointer: CUdeviceptr, count: usize, advice: CUmem_advise, device: CUdevice);
    cuMemAllocAsync(pointer: *mut CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemAllocHost_v2(pointer: *mut *mut c_void, bytes: usize);
    cuMemAllocManaged(pointer: *mut CUdeviceptr, bytes: usize, flags: c_uint);
    cuMemAlloc_v2(pointer: *mut CUdeviceptr, bytes: usize);
    cuMemFreeAsync(pointer: CUdeviceptr, stream: CUstream);
    cuMemFreeHost(pointer: *mut c_void);
    cuMemFree_v2(pointer: CUdeviceptr);
    cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    cuMemHostAlloc(pointer: *mut *mut c_void, bytes: usize, flags: c_uint);
    cuMemPrefetchAsync(pointer: CUdeviceptr, count: usize, to: CUdevice, stream: CUstream);
    cuMemcpy2DAsync_v2(copy: *const CUDA_MEMCPY2D, stream: CUstream);
    cuMemcpy2D_v2(copy: *const CUDA_MEMCPY2D);
    cuMemcpyAtoH_v2(to: *mut c_void, array: CUarray, offset: usize, bytes: usize);
    cuMemcpyDtoDAsync_v2(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemcpyDtoD_v2(to: CUdeviceptr, from: CUdeviceptr, bytes: usize);
    cuMemcpyDtoHAsync_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemcpyDtoH_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize);
    cuMemcpyHtoA_v2(array: CUarray, offset: usize, from: *const c_void, bytes: usize);
    cuMemcpyHtoDAsync_v2(to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream);
    cuMemcpyHtoD_v2(to: CUdeviceptr, from: *const c_void, bytes: usize);
    cuMemsetD16Async(to: CUdeviceptr, value: c_ushort, count: usize, stream: CUstream);
    cuMemsetD16_v2(to: CUdeviceptr, value: c_ushort, count: usize);
    cuMemsetD32Async(to: CUdeviceptr, value: c_uint, count: usize, stream: CUstream);
    cuMemsetD32_v2(to: CUdeviceptr, value: c_uint, count: usize);
    cuMemsetD8Async(to: CUdeviceptr, value: c_uchar, count: usize, stream: CUstream);
    cuMemsetD8_v2(to: CUdeviceptr, value: c_uchar, count: usize);
    cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char);
    cuModuleGetGlobal_v2(pointer: *mut CUdeviceptr, bytes: *mut usize, module: CUmodule, name: *const c_char);
    cuModuleLoad(module: *mut CUmodule, path: *const c_char);
    cuModuleLoadData(module: *mut CUmodule, image: *const c_void);
    cuModuleLoadDataEx(
        module: *mut CUmodule, image: *const c_void, num_options: c_uint, options: *mut CUjit_option,
        values: *mut *mut c_void,
    );
    cuModuleUnload(module: CUmodule);
    cuOccupancyAvailableDynamicSMemPerBlock(shared: *mut usize, function: CUfunction, blocks: c_int, block: c_int);
    cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks: *mut c_int, function: CUfunction, block: c_int, shared: usize);
    cuOccupancyMaxPotentialBlockSize(
        grid: *mut c_int, block: *mut c_int, function: CUfunction, shared_of: CUoccupancyB2DSize, shared: usize,
        limit: c_int,
    );
    cuPointerGetAttribute(data: *mut c_void, attribute: CUpointer_attribute, pointer: CUdeviceptr);
    cuStreamBeginCapture_v2(stream: CUstream, mode: CUstreamCaptureMode);
    cuStreamCreate(stream: *mut CUstream, flags: c_uint);
    cuStreamCreateWithPriority(stream: *mut CUstream, flags: c_uint, priority: c_int);
    cuStreamDestroy_v2(stream: CUstream);
    cuStreamEndCapture(stream: CUstream, graph: *mut CUgraph);
    cuStreamGetFlags(stream: CUstream, flags: *mut c_uint);
    cuStreamGetPriority(stream: CUstream, priority: *mut c_int);
    cuStreamQuery(stream: CUstream);
    cuStreamSynchronize(stream: CUstream);
    cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint);
    cuSurfObjectCreate(object: *mut CUsurfObject, resource: *const CUDA_RESOURCE_DESC);
    cuSurfObjectDestroy(object: CUsurfObject);
    cuSurfObjectGetResourceDesc(resource: *mut CUDA_RESOURCE_DESC, object: CUsurfObject);
    cuTexObjectCreate(
        object: *mut CUtexObject, resource: *const CUDA_RESOURCE_DESC, texture: *const CUDA_TEXTURE_DESC,
        view: *const CUDA_RESOURCE_VIEW_DESC,
    );
    cuTexObjectDestroy(object: CUtexObject);
    cuTexObjectGetResourceDesc(resource: *mut CUDA_RESOURCE_DESC, object: CUtexObject);
    cuTexObjectGetResourceViewDesc(view: *mut CUDA_RESOURCE_VIEW_DESC, object: CUtexObject);
}

newer_functions! {
    cuFuncGetParamInfo(function: CUfunction, index: usize, offset: *mut usize, bytes: *mut usize);
    cuGetErrorName(code: c_uint, text: *mut *const c_char);
    cuGetErrorString(code: c_uint, text: *mut *const c_char);
    cuLaunchKernelEx(config: *const CUlaunchConfig, f: CUfunction, params: *mut *mut c_void, extra: *mut *mut c_void);
    cuMemAllocFromPoolAsync(pointer: *mut CUdeviceptr, bytes: usize, pool: CUmemoryPool, stream: CUstream);
    cuMemPoolCreate(pool: *mut CUmemoryPool, properties: *const CUmemPoolProps);
    cuMemPoolDestroy(pool: CUmemoryPool);
    cuMemPoolSetAttribute(pool: CUmemoryPool, attribute: CUmemPool_attribute, value: *mut c_void);
    cuMemPoolTrimTo(pool: CUmemoryPool, bytes_to_keep: usize);
    cuTensorMapEncodeTiled(
        map: *mut CUtensorMap, element: CUtensorMapDataType, rank: c_uint, address: *mut c_void,
        dims: *const u64, strides: *const u64, box_dims: *const c_uint, element_strides: *const c_uint,
        interleave: CUtensorMapInterleave, swizzle: CUtensorMapSwizzle, l2_promotion: CUtensorMapL2promotion,
        oob_fill: CUtensorMapFloatOOBfill,
    );
}

/// What cust calls of the functions that take a code.
mod exported_by_hand {
    use super::*;

    /// # Safety
    /// `text` is valid for writing one pointer.
    // NOTE: cust formats its errors through this function and panics where it fails, so it never does.
    // SAFETY: as for the other exported functions.
    #[unsafe(no_mangle)]
    #[allow(non_snake_case)]
    unsafe extern "C" fn cuGetErrorString(code: CUresult, text: *mut *const c_char) -> CUresult {
        const NO_DRIVER: &CStr = c"there is no CUDA driver";
        // SAFETY: the caller keeps the function's contract.
        let result = unsafe { newer::cuGetErrorString(code as c_uint, text) };
        if result != SUCCESS {
            // SAFETY: the caller gave a place for one pointer.
            unsafe { text.write(NO_DRIVER.as_ptr()) };
        }
        CUresult::CUDA_SUCCESS
    }

    /// # Safety
    /// `text` is valid for writing one pointer.
    // SAFETY: as for the other exported functions.
    #[unsafe(no_mangle)]
    #[allow(non_snake_case)]
    unsafe extern "C" fn cuGetErrorName(code: CUresult, text: *mut *const c_char) -> CUresult {
        // SAFETY: the caller keeps the function's contract.
        to_cust(unsafe { newer::cuGetErrorName(code as c_uint, text) })
    }
}

const _: [unsafe extern "C" fn(CUresult, *mut *const c_char) -> CUresult; 2] =
    [cust_raw::cuGetErrorString, cust_raw::cuGetErrorName];

/// The code as cust_raw's enum: a value that it does not list, from a newer driver, becomes `CUDA_ERROR_UNKNOWN`.
fn to_cust(code: u32) -> CUresult {
    macro_rules! known {
        ($($name:ident)*) => {
            match code {
                $(code if code == CUresult::$name as u32 => CUresult::$name,)*
                _ => CUresult::CUDA_ERROR_UNKNOWN,
            }
        };
    }
    known!(
        CUDA_SUCCESS
        CUDA_ERROR_INVALID_VALUE
        CUDA_ERROR_OUT_OF_MEMORY
        CUDA_ERROR_NOT_INITIALIZED
        CUDA_ERROR_DEINITIALIZED
        CUDA_ERROR_PROFILER_DISABLED
        CUDA_ERROR_PROFILER_NOT_INITIALIZED
        CUDA_ERROR_PROFILER_ALREADY_STARTED
        CUDA_ERROR_PROFILER_ALREADY_STOPPED
        CUDA_ERROR_STUB_LIBRARY
        CUDA_ERROR_NO_DEVICE
        CUDA_ERROR_INVALID_DEVICE
        CUDA_ERROR_DEVICE_NOT_LICENSED
        CUDA_ERROR_INVALID_IMAGE
        CUDA_ERROR_INVALID_CONTEXT
        CUDA_ERROR_CONTEXT_ALREADY_CURRENT
        CUDA_ERROR_MAP_FAILED
        CUDA_ERROR_UNMAP_FAILED
        CUDA_ERROR_ARRAY_IS_MAPPED
        CUDA_ERROR_ALREADY_MAPPED
        CUDA_ERROR_NO_BINARY_FOR_GPU
        CUDA_ERROR_ALREADY_ACQUIRED
        CUDA_ERROR_NOT_MAPPED
        CUDA_ERROR_NOT_MAPPED_AS_ARRAY
        CUDA_ERROR_NOT_MAPPED_AS_POINTER
        CUDA_ERROR_ECC_UNCORRECTABLE
        CUDA_ERROR_UNSUPPORTED_LIMIT
        CUDA_ERROR_CONTEXT_ALREADY_IN_USE
        CUDA_ERROR_PEER_ACCESS_UNSUPPORTED
        CUDA_ERROR_INVALID_PTX
        CUDA_ERROR_INVALID_GRAPHICS_CONTEXT
        CUDA_ERROR_NVLINK_UNCORRECTABLE
        CUDA_ERROR_JIT_COMPILER_NOT_FOUND
        CUDA_ERROR_UNSUPPORTED_PTX_VERSION
        CUDA_ERROR_JIT_COMPILATION_DISABLED
        CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY
        CUDA_ERROR_INVALID_SOURCE
        CUDA_ERROR_FILE_NOT_FOUND
        CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND
        CUDA_ERROR_SHARED_OBJECT_INIT_FAILED
        CUDA_ERROR_OPERATING_SYSTEM
        CUDA_ERROR_INVALID_HANDLE
        CUDA_ERROR_ILLEGAL_STATE
        CUDA_ERROR_NOT_FOUND
        CUDA_ERROR_NOT_READY
        CUDA_ERROR_ILLEGAL_ADDRESS
        CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
        CUDA_ERROR_LAUNCH_TIMEOUT
        CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING
        CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
        CUDA_ERROR_PEER_ACCESS_NOT_ENABLED
        CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE
        CUDA_ERROR_CONTEXT_IS_DESTROYED
        CUDA_ERROR_ASSERT
        CUDA_ERROR_TOO_MANY_PEERS
        CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
        CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED
        CUDA_ERROR_HARDWARE_STACK_ERROR
        CUDA_ERROR_ILLEGAL_INSTRUCTION
        CUDA_ERROR_MISALIGNED_ADDRESS
        CUDA_ERROR_INVALID_ADDRESS_SPACE
        CUDA_ERROR_INVALID_PC
        CUDA_ERROR_LAUNCH_FAILED
        CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
        CUDA_ERROR_NOT_PERMITTED
        CUDA_ERROR_NOT_SUPPORTED
        CUDA_ERROR_SYSTEM_NOT_READY
        CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
        CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE
        CUDA_ERROR_MPS_CONNECTION_FAILED
        CUDA_ERROR_MPS_RPC_FAILURE
        CUDA_ERROR_MPS_SERVER_NOT_READY
        CUDA_ERROR_MPS_MAX_CLIENTS_REACHED
        CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
        CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
        CUDA_ERROR_STREAM_CAPTURE_MERGE
        CUDA_ERROR_STREAM_CAPTURE_UNMATCHED
        CUDA_ERROR_STREAM_CAPTURE_UNJOINED
        CUDA_ERROR_STREAM_CAPTURE_ISOLATION
        CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
        CUDA_ERROR_CAPTURED_EVENT
        CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD
        CUDA_ERROR_TIMEOUT
        CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE
        CUDA_ERROR_EXTERNAL_DEVICE
        CUDA_ERROR_UNKNOWN
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_that_cust_does_not_know_become_unknown() {
        assert_eq!(to_cust(0), CUresult::CUDA_SUCCESS);
        assert_eq!(to_cust(700), CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
        // CUDA_ERROR_INVALID_CLUSTER_SIZE came with CUDA 11.8.
        assert_eq!(to_cust(912), CUresult::CUDA_ERROR_UNKNOWN);
        assert_eq!(to_cust(u32::MAX), CUresult::CUDA_ERROR_UNKNOWN);
    }
}
