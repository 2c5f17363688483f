//! `cargo xtask gpu-bundle`: programs for a machine that has a GPU and no Rust.

use crate::{ABLATION, Result, cargo, root, run as run_program, target_dir, test_programs};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const RUN: &str = include_str!("run.sh");

/// The most that a bundle may weigh, in bytes.
const MAX_BYTES: u64 = 60_000_000;

pub(crate) fn run() -> Result {
    let folder = target_dir().join("gpu");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    for part in ["tests", "peers"] {
        fs::create_dir_all(folder.join(part))?;
    }
    run_program(cargo().args(["build", "--release", "--package", "hopper-sparse-cli", "--features", ABLATION]))?;
    let mut total = pack(&target_dir().join("release/hopper-sparse"), &folder.join("hopper-sparse"))?;
    for test in test_programs::build(&["--release"])? {
        total += pack(&test.executable, &folder.join("tests").join(&test.name))?;
    }
    let peers = root().join("bench/peers");
    if peers.is_dir() {
        for entry in peers.read_dir()? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "py") {
                total += copy(&path, &folder.join("peers").join(path.file_name().unwrap_or_default()))?;
            }
        }
    }
    let script = folder.join("run.sh");
    fs::write(&script, RUN)?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    println!("{}: {:.1} MB", folder.display(), total as f64 / 1e6);
    match total <= MAX_BYTES {
        true => Ok(()),
        false => Err(format!("the bundle has {total} bytes; at most {MAX_BYTES} can be sent").into()),
    }
}

/// Compresses a program to `to` with `.gz` behind its name, and returns the size of that, in bytes. Each program has all kernels
/// in it, which are text.
fn pack(from: &Path, to: &Path) -> Result<u64> {
    let mut name = to.as_os_str().to_owned();
    name.push(".gz");
    let packed = fs::File::create(&name).map_err(|error| format!("{}: {error}", to.display()))?;
    run_program(Command::new("gzip").arg("--stdout").arg(from).stdout(packed))?;
    let size = fs::metadata(&name)?.len();
    println!("{:>8.1} MB  {}", size as f64 / 1e6, Path::new(&name).display());
    Ok(size)
}

/// Copies a file and returns its size, in bytes.
fn copy(from: &Path, to: &Path) -> Result<u64> {
    let size = fs::copy(from, to).map_err(|error| format!("{}: {error}", from.display()))?;
    println!("{:>8.1} MB  {}", size as f64 / 1e6, to.display());
    Ok(size)
}
