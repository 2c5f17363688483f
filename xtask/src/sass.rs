//! `cargo xtask sass`: a kernel's machine code.

use crate::{Result, all_kept, check, root, run as run_program, target_dir};
use hopper_builder::{ptxas, tools};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

pub(crate) fn run(kernel: &str) -> Result {
    let mut files = Vec::new();
    for kept in all_kept() {
        files.extend(check::ptx_files(kept.folder())?);
    }
    let ptx = choose(&files, kernel)?;
    let folder = target_dir().join("cubin");
    fs::create_dir_all(&folder)?;
    let cubin = folder.join(name(ptx)).with_extension("cubin");
    ptxas::assemble(&tools::find("ptxas", root())?, ptx, &cubin)?;
    run_program(Command::new(tools::find("nvdisasm", root())?).arg("--print-code").arg(&cubin))
}

/// The file of the kernel of this name, or of the one kernel whose name contains it.
fn choose<'a>(files: &'a [PathBuf], kernel: &str) -> Result<&'a PathBuf> {
    if let Some(exact) = files.iter().find(|path| name(path) == kernel) {
        return Ok(exact);
    }
    let similar: Vec<&PathBuf> = files.iter().filter(|path| name(path).contains(kernel)).collect();
    match similar.as_slice() {
        [path] => Ok(path),
        [] => Err(format!("no kernel's name contains `{kernel}`").into()),
        several => {
            let names: Vec<String> = several.iter().map(|path| name(path)).collect();
            Err(format!("`{kernel}` may be any of {}", names.join(", ")).into())
        }
    }
}

pub(crate) fn name(ptx: &std::path::Path) -> String {
    ptx.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_name_will_do_where_only_one_kernel_has_it() {
        let files = ["a_n64.ptx", "a_n64_t.ptx", "b_n32.ptx"].map(PathBuf::from);
        let chosen = |kernel| choose(&files, kernel).map(|path| name(path)).map_err(|error| error.to_string());
        assert_eq!(chosen("a_n64"), Ok("a_n64".to_owned()));
        assert_eq!(chosen("n32"), Ok("b_n32".to_owned()));
        assert_eq!(chosen("a_"), Err("`a_` may be any of a_n64, a_n64_t".to_owned()));
        assert_eq!(chosen("c"), Err("no kernel's name contains `c`".to_owned()));
    }
}
