//! PTX kept in a repository, like a lock file: one `.ptx` a kernel, headed by the hash of its sources.

use crate::compile::REVISION;
use crate::ptx::Kernel;
use crate::{Builder, Error, Toolchain, sources};
use std::fs;
use std::path::{Path, PathBuf};

/// A kernel crate whose PTX is kept.
#[derive(Clone, Debug)]
pub struct Kept {
    crate_dir: PathBuf,
    folder: PathBuf,
    packages: Vec<PathBuf>,
    /// The feature whose kernels these are.
    feature: Option<String>,
}

/// One file of PTX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PtxFile {
    /// The kernel's name; the file is `<kernel>.ptx`.
    pub kernel: String,
    /// The header's comment lines and the module.
    pub text: String,
}

impl PtxFile {
    /// The file's name.
    pub fn file_name(&self) -> String {
        format!("{}.ptx", self.kernel)
    }

    /// The version of the rustc that made it, where the header states one.
    pub fn compiler(&self) -> Option<&str> {
        field(&self.text, "rustc ")
    }
}

impl Kept {
    /// The PTX of the crate in `crate_dir`, kept in its folder `ptx`. Its sources are the crate's own and those of
    /// `dependencies`: the folders of the packages on whose sources the PTX depends.
    pub fn new<P: Into<PathBuf>>(crate_dir: impl Into<PathBuf>, dependencies: impl IntoIterator<Item = P>) -> Self {
        let crate_dir = crate_dir.into();
        let packages = std::iter::once(crate_dir.clone()).chain(dependencies.into_iter().map(Into::into)).collect();
        Self { folder: crate_dir.join("ptx"), crate_dir, packages, feature: None }
    }

    /// The kernels that a feature of the crate adds, which are those whose names contain the feature's: kept in a folder of that name
    /// beside the others, whose build does not turn the feature on.
    pub fn of_feature(&self, feature: impl Into<String>) -> Self {
        let feature = feature.into();
        Self { folder: self.folder.join(&feature), feature: Some(feature), ..self.clone() }
    }

    /// The PTX of hopper-sparse's own kernels, in the repository at `root`.
    pub fn of_workspace(root: &Path) -> Self {
        Self::new(root.join("kernels-gpu"), ["hopper-std", "hopper-macros"].map(|name| root.join("crates").join(name)))
    }

    /// The kernel crate.
    pub fn crate_dir(&self) -> &Path {
        &self.crate_dir
    }

    /// The folder of kept PTX.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folders of the packages whose sources count.
    pub fn packages(&self) -> &[PathBuf] {
        &self.packages
    }

    /// The present sources' hash; see [`sources::hash`].
    ///
    /// # Errors
    /// Where a source cannot be read.
    pub fn sources_hash(&self) -> Result<String, Error> {
        sources::hash(&self.packages)
    }

    /// Every file that is kept, sorted by kernel; none where there is no folder.
    ///
    /// # Errors
    /// Where the folder or a file cannot be read.
    pub fn read(&self) -> Result<Vec<PtxFile>, Error> {
        if !self.folder.exists() {
            return Ok(Vec::new());
        }
        let mut files = Vec::new();
        for entry in self.folder.read_dir().map_err(Error::io(&self.folder))? {
            let path = entry.map_err(Error::io(&self.folder))?.path();
            if path.extension().is_none_or(|extension| extension != "ptx") {
                continue;
            }
            let kernel = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            // A checkout may end lines with \r\n.
            let text = fs::read_to_string(&path).map_err(Error::io(&path))?.replace("\r\n", "\n");
            files.push(PtxFile { kernel, text });
        }
        files.sort_by(|a, b| a.kernel.cmp(&b.kernel));
        Ok(files)
    }

    /// The kept files, where they are complete and come from the present sources.
    ///
    /// # Errors
    /// [`Error::Stale`], or where something cannot be read.
    pub fn read_fresh(&self) -> Result<Vec<PtxFile>, Error> {
        let (files, sources) = (self.read()?, self.sources_hash()?);
        let count = format!("one of {}", files.len());
        let fresh = |file: &PtxFile| {
            field(&file.text, "kernel ") == Some(&format!("{}, {count}", file.kernel))
                && field(&file.text, "sources sha256:") == Some(&sources)
        };
        match !files.is_empty() && files.iter().all(fresh) {
            true => Ok(files),
            false => Err(Error::Stale { kept: self.folder.clone(), sources }),
        }
    }

    /// Compiles the present sources.
    ///
    /// # Errors
    /// As [`Builder::build`]; [`Error::ChangedMeanwhile`] where the sources changed while they were compiled.
    pub fn build(&self, toolchain: &Toolchain, target_dir: &Path) -> Result<Vec<PtxFile>, Error> {
        let sources = self.sources_hash()?;
        let builder = Builder::new(&self.crate_dir).target_dir(target_dir);
        let kernels = match &self.feature {
            Some(feature) => builder.feature(feature).only(feature).build(toolchain)?,
            None => builder.build(toolchain)?,
        };
        match self.sources_hash()? == sources {
            true => Ok(with_headers(&kernels, toolchain, &sources)),
            false => Err(Error::ChangedMeanwhile),
        }
    }
}

/// The files of all the kernels of a module.
fn with_headers(kernels: &[Kernel], toolchain: &Toolchain, sources: &str) -> Vec<PtxFile> {
    let (major, minor, patch) = toolchain.version();
    let file = |kernel: &Kernel| PtxFile {
        kernel: kernel.name.clone(),
        text: format!(
            "// hopper-builder {REVISION}\n// kernel {}, one of {}\n// rustc {major}.{minor}.{patch}\n\
             // sources sha256:{sources}\n{}",
            kernel.name,
            kernels.len(),
            kernel.ptx
        ),
    };
    kernels.iter().map(file).collect()
}

/// What follows `// <name>` in the comment lines at the head of a file.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut head = text.lines().map_while(|line| line.strip_prefix("// "));
    head.find_map(|line| line.strip_prefix(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ptx::LaunchBounds;

    fn kept(root: &Path) -> Kept {
        fs::create_dir_all(root.join("src")).unwrap();
        fs::create_dir_all(root.join("ptx")).unwrap();
        fs::write(root.join("Cargo.toml"), "[package]\n").unwrap();
        fs::write(root.join("src/lib.rs"), "//! Kernels.\n").unwrap();
        Kept::new(root, [] as [PathBuf; 0])
    }

    fn write(kept: &Kept, toolchain_patch: u32) {
        let bounds = LaunchBounds { threads: 32, min_blocks: 1, cluster: 1, shared_bytes: 0 };
        let kernel = |name: &str| Kernel { name: name.to_owned(), bounds, ptx: ".version 8.0\n".to_owned() };
        let toolchain = Toolchain::for_test((1, 96, toolchain_patch));
        for file in with_headers(&[kernel("a"), kernel("b")], &toolchain, &kept.sources_hash().unwrap()) {
            fs::write(kept.folder().join(file.file_name()), file.text).unwrap();
        }
    }

    #[test]
    fn files_are_fresh_until_a_source_changes() {
        let root = tempfile::tempdir().unwrap();
        let kept = kept(root.path());
        assert!(matches!(kept.read_fresh(), Err(Error::Stale { .. })), "nothing is kept yet");
        write(&kept, 0);
        let files = kept.read_fresh().unwrap();
        assert_eq!(files.iter().map(PtxFile::file_name).collect::<Vec<_>>(), ["a.ptx", "b.ptx"]);
        assert_eq!(files[0].compiler(), Some("1.96.0"));
        fs::write(root.path().join("src/lib.rs"), "//! Other kernels.\n").unwrap();
        assert!(matches!(kept.read_fresh(), Err(Error::Stale { .. })));
    }

    #[test]
    fn a_feature_has_a_folder_of_its_own() {
        let root = tempfile::tempdir().unwrap();
        let kept = kept(root.path());
        let more = kept.of_feature("more");
        fs::create_dir_all(more.folder()).unwrap();
        write(&more, 0);
        assert_eq!(more.read_fresh().unwrap().len(), 2);
        assert!(kept.read().unwrap().is_empty(), "the folder of all has its own files alone");
    }

    #[test]
    fn another_compiler_does_not_make_them_stale() {
        let root = tempfile::tempdir().unwrap();
        let kept = kept(root.path());
        write(&kept, 7);
        assert_eq!(kept.read_fresh().unwrap().len(), 2);
    }

    #[test]
    fn a_missing_or_foreign_file_makes_them_stale() {
        let root = tempfile::tempdir().unwrap();
        let kept = kept(root.path());
        write(&kept, 0);
        fs::rename(kept.folder().join("a.ptx"), kept.folder().join("c.ptx")).unwrap();
        assert!(matches!(kept.read_fresh(), Err(Error::Stale { .. })));
        fs::remove_file(kept.folder().join("c.ptx")).unwrap();
        assert!(matches!(kept.read_fresh(), Err(Error::Stale { .. })));
    }
}
