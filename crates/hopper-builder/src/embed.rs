//! For build scripts: PTX into the program.

use crate::kept::{Kept, PtxFile};
use crate::{Builder, Error, Toolchain, ptxas, tools};
use std::env;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Where the kernels of a build come from: the variable `HOPPER_KERNELS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    /// Unset: the kept PTX while it is fresh, the sources otherwise.
    Automatic,
    /// `source`: always the sources.
    Source,
    /// `kept`: never the sources.
    Kept,
}

impl Choice {
    fn parse(value: Option<&str>) -> Result<Self, Error> {
        match value {
            None | Some("") => Ok(Self::Automatic),
            Some("source") => Ok(Self::Source),
            Some("kept") => Ok(Self::Kept),
            Some(_) => Err(Error::BadChoice),
        }
    }
}

/// Writes `$OUT_DIR/kernels.rs` for a crate that keeps its PTX, and returns its path; as [`embed_all`].
///
/// # Errors
/// As [`embed_all`].
pub fn embed(kept: &Kept) -> Result<PathBuf, Error> {
    embed_all(core::slice::from_ref(kept))
}

/// Writes `$OUT_DIR/kernels.rs` for a crate that keeps its PTX in several folders, and returns its path.
///
/// The file holds `pub(crate) static KERNELS: &[(&str, &str)]`: name and PTX of each kernel, sorted by name. The kept
/// PTX is embedded while it comes from the present sources; otherwise they are compiled. `HOPPER_KERNELS=source`
/// always compiles them and `HOPPER_KERNELS=kept` never does. Prints the lines that make cargo run the build script
/// again when any of this changes.
///
/// # Errors
/// Where the kept PTX is stale and nothing can or may replace it, and where the build fails.
pub fn embed_all(kept: &[Kept]) -> Result<PathBuf, Error> {
    println!("cargo::rerun-if-env-changed=HOPPER_KERNELS");
    let (choice, out_dir) = (Choice::parse(env::var("HOPPER_KERNELS").ok().as_deref())?, out_dir()?);
    let mut files = Vec::new();
    for one in kept {
        for package in one.packages() {
            rerun_if_changed(package);
        }
        println!("cargo::rerun-if-changed={}", one.folder().display());
        files.extend(find(one, choice, &out_dir)?);
    }
    files.sort();
    write_index(&out_dir, files.iter().map(|(kernel, path)| (kernel.as_str(), path.clone())))
}

/// Kernels and where their PTX lies: as it is kept, or compiled anew.
fn find(kept: &Kept, choice: Choice, out_dir: &Path) -> Result<Vec<(String, PathBuf)>, Error> {
    let stale = match (choice, kept.read_fresh()) {
        (Choice::Source, _) => None,
        (_, Ok(files)) => {
            let path = |file: &PtxFile| kept.folder().join(file.file_name());
            return Ok(files.iter().map(|file| (file.kernel.clone(), path(file))).collect());
        }
        (Choice::Automatic, Err(stale @ Error::Stale { .. })) => Some(stale),
        (_, Err(error)) => return Err(error),
    };
    let toolchain = Toolchain::find().map_err(|error| match (&stale, error) {
        (Some(_), Error::NoToolchain) => Error::StaleNoToolchain { kept: kept.folder().to_owned() },
        (_, error) => error,
    })?;
    if let Some(stale) = stale {
        println!("cargo::warning={stale} Compiling the kernels with {} for now.", toolchain.rustc().display());
    }
    let files = kept.build(&toolchain, &target_dir(out_dir))?;
    write_files(out_dir, &files)
}

/// Compiles the kernel crate in the folder `crate_dir`, beside the present package's manifest, and writes
/// `$OUT_DIR/kernels.rs` as [`embed`] does. All of a third party's build script:
///
/// ```no_run
/// hopper_builder::compile("kernels").unwrap_or_else(|error| panic!("{error}"));
/// ```
///
/// Where ptxas is found ([`tools::find`]; `.venv` beside the manifest counts), every kernel is assembled, and one that
/// spills, uses local memory or has a broken matrix pipeline is an error.
///
/// # Errors
/// Where there is no toolchain, the build fails, or a kernel is refused.
pub fn compile(crate_dir: impl AsRef<Path>) -> Result<PathBuf, Error> {
    let crate_dir = manifest_dir()?.join(crate_dir);
    rerun_if_changed(&crate_dir);
    let out_dir = out_dir()?;
    let builder = Builder::new(crate_dir).target_dir(target_dir(&out_dir));
    let kernels = builder.build(&Toolchain::find()?)?;
    for file in builder.source_files()? {
        println!("cargo::rerun-if-changed={}", file.display());
    }
    let files: Vec<PtxFile> =
        kernels.into_iter().map(|kernel| PtxFile { kernel: kernel.name, text: kernel.ptx }).collect();
    let written = write_files(&out_dir, &files)?;
    let index = write_index(&out_dir, written.iter().map(|(kernel, path)| (kernel.as_str(), path.clone())))?;
    assemble_all(&out_dir, &files)?;
    Ok(index)
}

/// Puts every kernel that [`write_files`] wrote through the assembler, where there is one.
fn assemble_all(out_dir: &Path, files: &[PtxFile]) -> Result<(), Error> {
    for variable in ["HOPPER_PTXAS", "PTXAS"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    let ptxas = match tools::find("ptxas", &manifest_dir()?) {
        Ok(ptxas) => ptxas,
        Err(Error::NoTool { .. }) => return Ok(()),
        Err(error) => return Err(error),
    };
    for file in files {
        let ptx = ptx_folder(out_dir).join(file.file_name());
        ptxas::assemble(&ptxas, &ptx, &ptx.with_extension("cubin"))?.verdict()?;
    }
    Ok(())
}

fn rerun_if_changed(package: &Path) {
    println!("cargo::rerun-if-changed={}", package.join("Cargo.toml").display());
    println!("cargo::rerun-if-changed={}", package.join("src").display());
    println!("cargo::rerun-if-env-changed=HOPPER_DEVICE_RUSTC");
}

fn manifest_dir() -> Result<PathBuf, Error> {
    const VARIABLE: &str = "CARGO_MANIFEST_DIR";
    env::var_os(VARIABLE).map(PathBuf::from).ok_or(Error::NotABuildScript { variable: VARIABLE })
}

fn out_dir() -> Result<PathBuf, Error> {
    const VARIABLE: &str = "OUT_DIR";
    env::var_os(VARIABLE).map(PathBuf::from).ok_or(Error::NotABuildScript { variable: VARIABLE })
}

/// `<target>/kernels`, shared by all profiles, so that `core` is compiled once: OUT_DIR is
/// `<target>/<profile>/build/<package>/out`.
fn target_dir(out_dir: &Path) -> PathBuf {
    let build = out_dir.ancestors().find(|folder| folder.file_name().is_some_and(|name| name == "build"));
    let target = build.and_then(Path::parent).and_then(Path::parent).unwrap_or(out_dir);
    target.join("kernels")
}

/// Where compiled PTX is left for the program to include.
fn ptx_folder(out_dir: &Path) -> PathBuf {
    out_dir.join("ptx")
}

/// Kernels and where their PTX lies now.
fn write_files(out_dir: &Path, files: &[PtxFile]) -> Result<Vec<(String, PathBuf)>, Error> {
    let folder = ptx_folder(out_dir);
    fs::create_dir_all(&folder).map_err(Error::io(&folder))?;
    let mut written = Vec::new();
    for file in files {
        let path = folder.join(file.file_name());
        fs::write(&path, &file.text).map_err(Error::io(&path))?;
        written.push((file.kernel.clone(), path));
    }
    Ok(written)
}

fn write_index<'a>(out_dir: &Path, files: impl Iterator<Item = (&'a str, PathBuf)>) -> Result<PathBuf, Error> {
    let path = out_dir.join("kernels.rs");
    fs::write(&path, index(files)).map_err(Error::io(&path))?;
    Ok(path)
}

fn index<'a>(files: impl Iterator<Item = (&'a str, PathBuf)>) -> String {
    let mut text = "/// The PTX of each kernel, by name, sorted.\n".to_owned();
    text.push_str("pub(crate) static KERNELS: &[(&str, &str)] = &[\n");
    for (kernel, path) in files {
        let _ = writeln!(text, "    ({kernel:?}, include_str!({:?})),", path.display().to_string());
    }
    text + "];\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_is_source_kept_or_nothing() {
        assert_eq!(Choice::parse(None).unwrap(), Choice::Automatic);
        assert_eq!(Choice::parse(Some("")).unwrap(), Choice::Automatic);
        assert_eq!(Choice::parse(Some("source")).unwrap(), Choice::Source);
        assert_eq!(Choice::parse(Some("kept")).unwrap(), Choice::Kept);
        assert!(matches!(Choice::parse(Some("yes")), Err(Error::BadChoice)));
    }

    #[test]
    fn profiles_share_one_folder_of_build_files() {
        let target = |out_dir| target_dir(Path::new(out_dir));
        assert_eq!(target("/p/target/debug/build/x-12/out"), Path::new("/p/target/kernels"));
        assert_eq!(target("/p/target/release/build/x-34/out"), Path::new("/p/target/kernels"));
        assert_eq!(target("/elsewhere/out"), Path::new("/elsewhere/out/kernels"));
    }

    #[test]
    fn the_index_includes_each_file() {
        let files = [("a", PathBuf::from("/x y/a.ptx")), ("b", PathBuf::from("/x y/b.ptx"))];
        let lines = index(files.into_iter());
        assert!(lines.ends_with(
            "pub(crate) static KERNELS: &[(&str, &str)] = &[\n    (\"a\", include_str!(\"/x y/a.ptx\")),\n    \
             (\"b\", include_str!(\"/x y/b.ptx\")),\n];\n"
        ));
    }
}
