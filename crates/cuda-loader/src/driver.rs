//! Functions of the driver, by their exported names, returning the driver's own code.
//!
//! They forward to the library as it is found at run time, and return [`NOT_INITIALIZED`](crate::NOT_INITIALIZED)
//! where there is none or where it is too old to have the function. Their meaning, arguments and preconditions are
//! those of the CUDA Driver API reference. cust sees the same functions through its own declarations, with codes that
//! its bindings do not know turned into `CUDA_ERROR_UNKNOWN`.

use core::ffi::{CStr, c_char, c_uint};
use core::ptr;

use crate::SUCCESS;
use crate::table;

pub use table::functions::*;
pub use table::newer::*;

/// The driver's name for a code, as in `CUDA_ERROR_INVALID_VALUE`.
///
/// Where there is no driver to ask, the code is told apart only from [`NOT_INITIALIZED`](crate::NOT_INITIALIZED).
pub fn error_name(code: u32) -> &'static str {
    // SAFETY: `cuGetErrorName` has no precondition; it is given a place for one pointer.
    ask(code, |code, text| unsafe { cuGetErrorName(code, text) }).unwrap_or(match code {
        SUCCESS => "CUDA_SUCCESS",
        crate::NOT_INITIALIZED => "CUDA_ERROR_NOT_INITIALIZED",
        _ => "a code that the driver does not name",
    })
}

/// The driver's description of a code, as in `invalid argument`.
pub fn error_text(code: u32) -> &'static str {
    // SAFETY: `cuGetErrorString` has no precondition; it is given a place for one pointer.
    ask(code, |code, text| unsafe { cuGetErrorString(code, text) }).unwrap_or(match code {
        SUCCESS => "no error",
        crate::NOT_INITIALIZED => "initialization error",
        _ => "a code that the driver does not describe",
    })
}

/// The text that `function` finds for a code.
fn ask(code: u32, function: impl FnOnce(c_uint, *mut *const c_char) -> u32) -> Option<&'static str> {
    let mut text: *const c_char = ptr::null();
    if function(code, &mut text) != SUCCESS || text.is_null() {
        return None;
    }
    // SAFETY: on success the driver has written the address of a terminated string of its own, which is constant and
    // lives as long as the library, and that is never closed.
    unsafe { CStr::from_ptr(text) }.to_str().ok()
}
