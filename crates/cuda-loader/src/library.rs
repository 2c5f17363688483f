//! The driver's library: opened once, asked for its functions by name.

use core::error::Error as _;
use core::ffi::{c_int, c_void};
use core::fmt;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::sync::OnceLock;

use libloading::Library;

use crate::{SUCCESS, driver, error_name};

/// The file name under which the dynamic linker finds the driver.
pub const LIBRARY_NAME: &str = "libcuda.so.1";

/// The newest CUDA version that the driver serves, as in 13.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DriverVersion {
    /// The part before the dot.
    pub major: u32,
    /// The part after the dot.
    pub minor: u32,
}

impl DriverVersion {
    /// From the driver's own number: 1000 x major + 10 x minor.
    const fn from_number(number: c_int) -> Self {
        let number = number.unsigned_abs();
        Self { major: number / 1000, minor: number % 1000 / 10 }
    }
}

impl fmt::Display for DriverVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Why the driver cannot be used.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum LoadError {
    /// The library could not be opened: most often, because no driver is installed.
    NotFound {
        /// The file name asked for.
        library: &'static str,
        /// What the dynamic linker said.
        cause: &'static libloading::Error,
    },
    /// The library was opened but does not have a function that every driver has.
    NotADriver {
        /// The file name asked for.
        library: &'static str,
        /// The function that it lacks.
        function: &'static str,
    },
    /// The driver was opened and refused to start.
    Refused {
        /// The driver's code for the reason; 100 says that it found no device.
        code: u32,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NotFound { library, cause } => {
                // What the dynamic linker said is one level down.
                let words: &dyn fmt::Display = match cause.source() {
                    Some(source) => &source.to_string(),
                    None => cause,
                };
                write!(f, "the CUDA driver `{library}` cannot be opened ({words})")
            }
            Self::NotADriver { library, function } => {
                write!(f, "`{library}` is not a CUDA driver, because it has no function `{function}`")
            }
            Self::Refused { code } => {
                write!(f, "the CUDA driver `{LIBRARY_NAME}` does not start: {} ({code})", error_name(code))
            }
        }
    }
}

impl std::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match *self {
            Self::NotFound { cause, .. } => Some(cause),
            Self::NotADriver { .. } | Self::Refused { .. } => None,
        }
    }
}

/// Opens and starts the driver, once for the process, and returns its version.
///
/// # Errors
/// A [`LoadError`] that says why there is no usable driver. The library is looked for once: a driver that is installed
/// while the program runs is not seen.
pub fn driver_present() -> Result<DriverVersion, LoadError> {
    static STARTED: OnceLock<Result<DriverVersion, LoadError>> = OnceLock::new();
    *STARTED.get_or_init(start)
}

fn start() -> Result<DriverVersion, LoadError> {
    library().as_ref().map_err(|cause| LoadError::NotFound { library: LIBRARY_NAME, cause })?;
    for function in ["cuInit", "cuDriverGetVersion"] {
        if address_of(function).is_null() {
            return Err(LoadError::NotADriver { library: LIBRARY_NAME, function });
        }
    }
    let mut number: c_int = 0;
    // SAFETY: cuInit takes flags, of which 0 is the only value defined; cuDriverGetVersion writes one integer.
    let codes = unsafe { [driver::cuInit(0), driver::cuDriverGetVersion(&mut number)] };
    match codes.into_iter().find(|&code| code != SUCCESS) {
        Some(code) => Err(LoadError::Refused { code }),
        None => Ok(DriverVersion::from_number(number)),
    }
}

/// The library, opened on first use and never closed: functions found in it stay valid.
fn library() -> &'static Result<Library, libloading::Error> {
    static LIBRARY: OnceLock<Result<Library, libloading::Error>> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        // SAFETY: opening a library runs its initialisers. The driver's have no precondition, and another library of
        // this name on the search path is as trusted as any other that the program is linked with.
        unsafe { Library::new(LIBRARY_NAME) }
    })
}

/// The address of a function of the driver, null where there is none.
fn address_of(name: &str) -> *mut c_void {
    let Ok(library) = library() else { return ptr::null_mut() };
    // SAFETY: the symbol is only read as an address; whoever calls it states its type.
    match unsafe { library.get::<*mut c_void>(name) } {
        // SAFETY: `library` is never closed, so the address outlives the borrow of the symbol.
        Ok(symbol) => unsafe { symbol.into_raw() }.as_raw_ptr(),
        Err(_) => ptr::null_mut(),
    }
}

/// A function of the driver, looked up once.
pub(crate) struct Symbol {
    name: &'static str,
    /// [`UNRESOLVED`], null (the driver lacks it), or the address.
    address: AtomicPtr<c_void>,
}

/// Stands for a function that has not been looked up. No function of a library has this address.
const UNRESOLVED: *mut c_void = ptr::without_provenance_mut(usize::MAX);

impl Symbol {
    pub(crate) const fn new(name: &'static str) -> Self {
        Self { name, address: AtomicPtr::new(UNRESOLVED) }
    }

    /// The function's address, null where the driver lacks it.
    pub(crate) fn address(&self) -> *mut c_void {
        // Relaxed suffices: two threads that race find the same address, and the library was opened through a
        // `OnceLock` by whichever of them stored it. The code behind it is mapped before `dlsym` returns.
        let address = self.address.load(Ordering::Relaxed);
        if address != UNRESOLVED {
            return address;
        }
        let address = address_of(self.name);
        self.address.store(address, Ordering::Relaxed);
        address
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_split_at_the_thousands() {
        assert_eq!(DriverVersion::from_number(13_000).to_string(), "13.0");
        assert_eq!(DriverVersion::from_number(12_080).to_string(), "12.8");
        assert!(DriverVersion::from_number(12_080) < DriverVersion::from_number(13_000));
    }

    #[test]
    fn a_refusal_names_the_code() {
        let sentence = LoadError::Refused { code: 3 }.to_string();
        assert_eq!(sentence, "the CUDA driver `libcuda.so.1` does not start: CUDA_ERROR_NOT_INITIALIZED (3)");
    }

    #[test]
    fn a_symbol_that_no_driver_has_is_null() {
        let symbol = Symbol::new("cuThisFunctionDoesNotExist");
        assert!(symbol.address().is_null());
        assert!(symbol.address().is_null(), "the second look-up answers from memory");
    }
}
