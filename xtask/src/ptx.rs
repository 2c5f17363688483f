//! `cargo xtask ptx`: kernels-gpu/ptx from its sources.

use crate::{ABLATION, Result, all_kept, check, root, target_dir};
use hopper_builder::kept::{Kept, PtxFile};
use hopper_builder::{Builder, Toolchain};
use std::fs;
use std::path::Path;
use std::time::Instant;

/// Compiles everything and replaces the kept PTX by the result.
pub(crate) fn renew() -> Result {
    all_kept().iter().try_for_each(renew_folder)
}

fn renew_folder(kept: &Kept) -> Result {
    let files = build(kept)?;
    fs::create_dir_all(kept.folder())?;
    let mut num_changed = 0;
    for file in &files {
        let path = kept.folder().join(file.file_name());
        if fs::read_to_string(&path).is_ok_and(|text| text == file.text) {
            continue;
        }
        // A build script may read the folder at any time: it finds the old file or the new one, and the headers
        // tell it whether all are of one build.
        let unfinished = kept.folder().join(format!(".{}", file.file_name()));
        fs::write(&unfinished, &file.text)?;
        fs::rename(&unfinished, &path)?;
        num_changed += 1;
    }
    let mut num_deleted = 0;
    for old in kept.read()?.iter().filter(|old| !files.iter().any(|file| file.kernel == old.kernel)) {
        fs::remove_file(kept.folder().join(old.file_name()))?;
        num_deleted += 1;
    }
    println!("{}: {} kernels, {num_changed} written, {num_deleted} deleted", kept.folder().display(), files.len());
    Ok(())
}

/// Compiles everything and compares the result with the kept PTX.
///
/// Where another rustc made the kept PTX, only its sources' hash and its kernels' names must agree.
pub(crate) fn check() -> Result {
    all_kept().iter().try_for_each(check_folder)
}

fn check_folder(kept: &Kept) -> Result {
    let old = kept.read_fresh()?;
    let new = build(kept)?;
    let names = |files: &[PtxFile]| files.iter().map(|file| file.kernel.clone()).collect::<Vec<_>>();
    if names(&old) != names(&new) {
        return Err(
            format!("kept are {:?}, compiled were {:?}: run `cargo xtask ptx`", names(&old), names(&new)).into()
        );
    }
    let differs = |(old, new): &(&PtxFile, &PtxFile)| old.compiler() == new.compiler() && old.text != new.text;
    let different: Vec<&str> = old.iter().zip(&new).filter(differs).map(|(old, _)| old.kernel.as_str()).collect();
    if !different.is_empty() {
        return Err(format!("the kept PTX of {} is not what its sources give", different.join(", ")).into());
    }
    println!("{}: {} kernels, fresh", kept.folder().display(), new.len());
    Ok(())
}

/// Compiles some kernels beside the kept ones, and reports on them.
pub(crate) fn only(substring: &str) -> Result {
    let start = Instant::now();
    let builder = Builder::new(root().join("kernels-gpu")).target_dir(target_dir().join("kernels"));
    let kernels = builder.feature(ABLATION).only(substring).build(&Toolchain::find()?)?;
    let folder = target_dir().join("kernels/only");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    for kernel in &kernels {
        fs::write(folder.join(format!("{}.ptx", kernel.name)), &kernel.ptx)?;
    }
    println!("{}: {} kernels, {:.1} s", folder.display(), kernels.len(), start.elapsed().as_secs_f64());
    check::report(&folder)
}

fn build(kept: &Kept) -> Result<Vec<PtxFile>> {
    let toolchain = Toolchain::find()?;
    let (major, minor, patch) = toolchain.version();
    eprintln!("compiling with {} (rustc {major}.{minor}.{patch})", toolchain.rustc().display());
    let target_dir: &Path = &target_dir().join("kernels");
    Ok(kept.build(&toolchain, target_dir)?)
}
