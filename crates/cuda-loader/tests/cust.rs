//! A program that uses cust is linked with no CUDA installed, and starts with no driver.

use cust::CudaFlags;
use cust::error::CudaError;

#[test]
fn cust_starts_and_agrees_with_the_loader() {
    match cuda_loader::driver_present() {
        Ok(version) => {
            assert_eq!(cust::init(CudaFlags::empty()), Ok(()));
            let api = cust::CudaApiVersion::get().expect("the driver has a version");
            assert_eq!((api.major() as u32, api.minor() as u32), (version.major, version.minor));
        }
        Err(reason @ cuda_loader::LoadError::NotFound { library, .. }) => {
            assert_eq!(library, "libcuda.so.1");
            assert!(reason.to_string().contains("`libcuda.so.1` cannot be opened"), "{reason}");
            assert_eq!(cust::init(CudaFlags::empty()), Err(CudaError::NotInitialized));
            assert_eq!(cust::device::Device::num_devices(), Err(CudaError::NotInitialized));
        }
        Err(reason) => assert!(cust::init(CudaFlags::empty()).is_err(), "{reason}"),
    }
}

#[test]
fn an_error_of_cust_can_be_printed_without_a_driver() {
    // cust asks the driver for the text, and its `Display` fails where the driver does.
    assert!(!CudaError::InvalidValue.to_string().is_empty());
}

#[test]
fn functions_newer_than_cust_answer_without_a_driver() {
    if cuda_loader::driver_present().is_ok() {
        return;
    }
    let (mut offset, mut bytes) = (0, 0);
    // SAFETY: without a driver the function returns before it looks at its arguments.
    let code = unsafe { cuda_loader::driver::cuFuncGetParamInfo(core::ptr::null_mut(), 0, &mut offset, &mut bytes) };
    assert_eq!(code, cuda_loader::NOT_INITIALIZED);
    assert_eq!(cuda_loader::error_name(code), "CUDA_ERROR_NOT_INITIALIZED");
}

#[test]
fn functions_that_cust_leaves_unused_answer_without_a_driver() {
    if cuda_loader::driver_present().is_ok() {
        return;
    }
    let mut graph = core::ptr::null_mut();
    // SAFETY: without a driver the function returns before it looks at its arguments.
    let code = unsafe { cuda_loader::driver::cuStreamEndCapture(core::ptr::null_mut(), &mut graph) };
    assert_eq!((code, graph.is_null()), (cuda_loader::NOT_INITIALIZED, true));
}
