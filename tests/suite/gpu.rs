//! The one place that decides what a GPU test does where there is no GPU.

use std::env;
use std::io::{self, Write as _};

use hopper_sparse::gpu::Device;

/// The variable that makes a missing device a failure: `HOPPER_REQUIRE_GPU=1`.
const REQUIRE: &str = "HOPPER_REQUIRE_GPU";

/// The device to test on. Where there is none, says on standard error that `test` was skipped, and why.
///
/// # Panics
/// Where there is none although `HOPPER_REQUIRE_GPU` is set to anything but `0` or nothing.
pub fn device_or_skip(test: &str) -> Option<Device> {
    let reason = match Device::hopper() {
        Ok(device) => return Some(device),
        Err(reason) => reason,
    };
    let required = env::var_os(REQUIRE).is_some_and(|value| !value.is_empty() && value != "0");
    assert!(!required, "{REQUIRE} is set, but `{test}` cannot run: {reason}");
    // Not by `eprintln!`, which the test harness swallows for a test that passes; and in one piece, since tests run at
    // the same time.
    let _ = io::stderr().write_all(format!("skipped: {test}: {reason}\n").as_bytes());
    None
}
