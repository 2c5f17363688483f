//! `cargo xtask tools`: ptxas and the disassemblers, without a CUDA installation.

use crate::{Result, root, run as run_program};
use hopper_builder::tools;
use std::process::Command;

/// 13.0 to 13.2: what the newest drivers of the 580 series still load.
const PACKAGES: [&str; 3] =
    ["nvidia-cuda-nvcc>=13.0,<13.3", "nvidia-cuda-nvdisasm>=13.0,<13.3", "nvidia-cuda-cuobjdump>=13.0,<13.3"];

pub(crate) fn run() -> Result {
    let environment = root().join(".venv");
    if !environment.join("bin/pip").is_file() {
        run_program(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    }
    let mut pip = Command::new(environment.join("bin/pip"));
    run_program(pip.args(["install", "--quiet", "--disable-pip-version-check"]).args(PACKAGES))?;
    for tool in ["ptxas", "nvdisasm", "cuobjdump"] {
        println!("{}", tools::find(tool, root())?.display());
    }
    Ok(())
}
