//! `cargo xtask sanitize`: the GPU tests under compute-sanitizer.

use crate::{Result, root, run as run_program, test_programs};
use hopper_builder::tools;
use std::process::Command;

/// Tests whose name contains this use shapes small enough for the sanitizer, which is some hundred times slower.
pub(crate) const FILTER: &str = "small";

pub(crate) fn run() -> Result {
    let sanitizer = tools::find("compute-sanitizer", root()).map_err(|_| {
        "compute-sanitizer was not found: it comes with a CUDA installation; put it on PATH, on a machine with an \
         sm_90 device"
    })?;
    for test in test_programs::build(&["--release"])? {
        for tool in ["memcheck", "racecheck", "synccheck"] {
            println!("{tool}: {}", test.name);
            let mut command = Command::new(&sanitizer);
            // A refused driver call is no finding: the library asks for a kernel's parameters until there is none.
            command.args(["--tool", tool, "--report-api-errors", "no", "--error-exitcode", "99"]);
            command.arg(&test.executable);
            command.args([FILTER, "--test-threads", "1"]).env("HOPPER_REQUIRE_GPU", "1").current_dir(root());
            run_program(&mut command)?;
        }
    }
    Ok(())
}
