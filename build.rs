//! Embeds the kernels' PTX: `$OUT_DIR/kernels.rs`, included by host/src/gpu.

use hopper_builder::kept::Kept;
use std::env;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Not `env!`: a target directory that several checkouts share keeps the compiled script of one of them.
    let Some(root) = env::var_os("CARGO_MANIFEST_DIR") else {
        println!("cargo::error=CARGO_MANIFEST_DIR is not set: run by cargo only");
        return ExitCode::FAILURE;
    };
    let mut kept = vec![Kept::of_workspace(Path::new(&root))];
    if env::var_os("CARGO_FEATURE_ABLATION").is_some() {
        kept.push(kept[0].of_feature("ablation"));
    }
    match hopper_builder::embed_all(&kept) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            println!("cargo::error={}", error.to_string().replace('\n', " "));
            ExitCode::FAILURE
        }
    }
}
