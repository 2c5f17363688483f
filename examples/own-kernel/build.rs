//! Compiles `kernels/` to PTX: `$OUT_DIR/kernels.rs`, included by src/main.rs.

use std::process::ExitCode;

fn main() -> ExitCode {
    match hopper_builder::compile("kernels") {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            println!("cargo::error={}", error.to_string().replace('\n', " "));
            ExitCode::FAILURE
        }
    }
}
