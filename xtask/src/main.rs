//! Development tasks: `cargo xtask <task>`.

mod check;
mod gpu_bundle;
mod overlap;
mod ptx;
mod records;
mod sanitize;
mod sass;
mod test_programs;
mod tools;

use hopper_builder::kept::Kept;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const HELP: &str = "\
Development tasks of hopper-sparse.

Usage: cargo xtask <TASK>

  ptx                    compile kernels-gpu and renew kernels-gpu/ptx
  ptx --check            compile kernels-gpu and fail where the kept PTX differs
  ptx --only SUBSTRING   compile the kernels whose name contains SUBSTRING, assemble them, and report;
                         they go to target/kernels/only, the kept PTX stays as it is
  check                  assemble all kept PTX; fail on spills, local memory and C75xx messages
  sass KERNEL            disassemble a kernel (its name, or a part that only it has)
  tools                  install ptxas, nvdisasm and cuobjdump into .venv
  gpu-bundle             put the command, the GPU tests and a script that runs them into target/gpu,
                         for a machine without Rust
  sanitize               run the GPU tests on small shapes under compute-sanitizer
  records                check and list the CSV files below bench/records

Environment: HOPPER_DEVICE_RUSTC (the compiler of device code), HOPPER_PTXAS or PTXAS (the assembler).
";

/// What a task returns.
type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments.as_slice() {
        [] | ["help" | "--help" | "-h"] | [_, "--help" | "-h"] => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        ["ptx"] => ptx::renew(),
        ["ptx", "--check"] => ptx::check(),
        ["ptx", "--only", substring] => ptx::only(substring),
        ["check"] => check::run(),
        ["sass", kernel] => sass::run(kernel),
        ["tools"] => tools::run(),
        ["gpu-bundle"] => gpu_bundle::run(),
        ["sanitize"] => sanitize::run(),
        ["records"] => records::run(),
        _ => {
            eprint!("There is no task `{}`.\n\n{HELP}", arguments.join(" "));
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The repository.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the repository's root")
}

/// The feature of kernels-gpu whose kernels are kept apart.
const ABLATION: &str = "ablation";

/// The kernels of the repository, folder by folder.
fn all_kept() -> [Kept; 2] {
    let kept = Kept::of_workspace(root());
    [kept.clone(), kept.of_feature(ABLATION)]
}

/// The folder of build files.
fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The cargo that runs this program, in the repository.
fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}

/// Runs a program that must succeed.
fn run(command: &mut Command) -> Result {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status().map_err(|error| format!("{program} could not be started: {error}"))?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("{program} failed ({status})").into()),
    }
}
