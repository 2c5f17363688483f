//! Where the programs of the CUDA toolkit are.

use crate::Error;
use std::env;
use std::path::{Path, PathBuf};

/// Finds a program of the CUDA toolkit: `ptxas`, `nvdisasm`, `cuobjdump`, `compute-sanitizer`.
///
/// The variables `HOPPER_PTXAS` and `PTXAS` (or the like for the others) decide where they are set; then come PATH and
/// the virtual environment `.venv` of `root`, which `cargo xtask tools` fills.
///
/// # Errors
/// [`Error::NoTool`].
pub fn find(tool: &'static str, root: &Path) -> Result<PathBuf, Error> {
    let variable = tool.to_uppercase().replace('-', "_");
    let mut named = [format!("HOPPER_{variable}"), variable].into_iter().filter_map(env::var_os);
    if let Some(named) = named.find(|value| !value.is_empty()) {
        return Some(PathBuf::from(named)).filter(|path| path.is_file()).ok_or(Error::NoTool { tool });
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&path).map(|folder| folder.join(tool));
    let candidates = on_path.chain(in_environment(tool, &root.join(".venv")));
    candidates.into_iter().find(|path| path.is_file()).ok_or(Error::NoTool { tool })
}

/// `lib/python3.*/site-packages/nvidia/*/bin/<tool>`, sorted.
fn in_environment(tool: &str, environment: &Path) -> Vec<PathBuf> {
    let folders = |folder: &Path| -> Vec<PathBuf> {
        folder.read_dir().map(|entries| entries.flatten().map(|entry| entry.path()).collect()).unwrap_or_default()
    };
    let packages = folders(&environment.join("lib")).into_iter().map(|python| python.join("site-packages/nvidia"));
    let mut found: Vec<PathBuf> =
        packages.flat_map(|nvidia| folders(&nvidia)).map(|package| package.join("bin").join(tool)).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_virtual_environment_is_searched() {
        let root = tempfile::tempdir().unwrap();
        let bin = root.path().join(".venv/lib/python3.11/site-packages/nvidia/cu13/bin");
        fs::create_dir_all(&bin).unwrap();
        let tool = "a-tool-that-is-not-on-path";
        assert!(matches!(find(tool, root.path()), Err(Error::NoTool { .. })));
        fs::write(bin.join(tool), "").unwrap();
        assert_eq!(find(tool, root.path()).unwrap(), bin.join(tool));
    }
}
