//! A kernel outside this workspace, as a third party has it: `examples/own-kernel` is built, kernel included, and run.
#![cfg(feature = "gpu")]

use std::env;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::Command;

use hopper_builder::{Toolchain, tools};
use hopper_sparse::gpu::Device;

/// Builds the example in its own folder, as its owner would, runs it (`run`) or its tests (`test`), and returns what is
/// printed.
fn run_example(root: &Path, verb: &str) -> String {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(root.join("examples/own-kernel"))
        .args([verb, "--quiet"])
        .env("CARGO_TARGET_DIR", root.join("target/own-kernel"))
        .env("CARGO_PROFILE_DEV_DEBUG", "false");
    // What the outer cargo, or a check that runs it, says of this workspace's build.
    let misleading = |name: &str| ["CARGO_PKG_", "CARGO_BUILD_", "CARGO_ENCODED_"].iter().any(|p| name.starts_with(p));
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_str().is_some_and(misleading)) {
        cargo.env_remove(name);
    }
    // The build assembles the kernel, and refuses spills, where it finds ptxas.
    if let Ok(ptxas) = tools::find("ptxas", root) {
        cargo.env("PTXAS", ptxas);
    }
    let output = cargo.output().expect("cargo can be started");
    let (printed, complaints) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "the example ended with {}:\n{printed}{complaints}", output.status);
    printed.into_owned()
}

/// Needs a device toolchain to compile the kernel; where there is none, says so.
#[test]
fn a_kernel_outside_the_workspace_is_built_and_right() {
    if let Err(reason) = Toolchain::find() {
        // Not by `eprintln!`, which the harness swallows for a test that passes.
        let _ = io::stderr().write_all(format!("skipped: own_kernel: {reason}\n").as_bytes());
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let printed = run_example(root, "run");
    // The example compares its result with a plain product and ends badly where they differ.
    match Device::hopper() {
        Ok(device) => assert!(printed.starts_with(&format!("{}: C = A B of ", device.name())), "{printed}"),
        Err(reason) => assert_eq!(printed, format!("not run: {reason}\n")),
    }
    // Its own test runs the kernel in the simulator, which needs no device.
    let tested = run_example(root, "test");
    assert!(tested.contains("1 passed"), "{tested}");
}

/// The README quotes the kernel: each line of its block stands in the source, in this order, up to comments and elisions.
#[test]
fn the_readme_quotes_the_kernel() {
    let readme = include_str!("../README.md");
    let source = include_str!("../examples/own-kernel/kernels/src/lib.rs");
    let (_, section) = readme.split_once("## A kernel of your own").expect("the section");
    let (_, block) = section.split_once("```rust\n").expect("a block of Rust");
    let (block, _) = block.split_once("```").expect("the block's end");
    let code = |line: &'static str| line.split("//").next().unwrap_or_default().trim_end();
    let mut lines = source.lines().map(code);
    let quoted: Vec<&str> = block.lines().map(code).filter(|line| !line.is_empty()).collect();
    assert!(quoted.len() >= 20, "{} lines are quoted", quoted.len());
    for line in quoted {
        assert!(lines.any(|found| found == line), "not in the kernel, or not in this order: {line}");
    }
}
