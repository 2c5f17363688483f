//! Embeds the kernels' PTX: `$OUT_DIR/kernels.rs`, included by host/src/gpu.

use hopper_builder::kept::Kept;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let kept = Kept::of_workspace(root);
    match hopper_builder::embed(&kept) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            println!("cargo::error={}", error.to_string().replace('\n', " "));
            ExitCode::FAILURE
        }
    }
}
