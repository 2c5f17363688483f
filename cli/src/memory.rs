//! Main memory: how much there is, and whether a request fits.

use std::fs;

use crate::error::{CliError, Result};
use crate::table::bytes;

/// Refuses work that needs more memory than the machine has available, before any of it is allocated.
///
/// # Errors
/// A failure that names both numbers. Where the system does not tell what is available, nothing is refused.
pub fn check(what: &str, needed_bytes: u128) -> Result<()> {
    match available_bytes() {
        Some(available) if needed_bytes > u128::from(available) => Err(CliError::failure(format_args!(
            "{what} needs about {} of memory, but {} is available",
            bytes(u64::try_from(needed_bytes).unwrap_or(u64::MAX)),
            bytes(available)
        ))),
        _ => Ok(()),
    }
}

/// Memory that can be had without swapping, as Linux estimates it.
fn available_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_fit_is_refused_with_both_numbers() {
        check("nothing", 0).unwrap();
        let error = check("everything", u128::MAX).unwrap_err().to_string();
        assert!(error.contains("everything needs about 16384.0 PiB"), "{error}");
        assert!(error.contains("available"), "{error}");
    }
}
