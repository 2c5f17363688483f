//! Workloads: what is multiplied, and which implementations are compared on it.
//!
//! A suite is a TOML file of `bench/workloads/`, kept inside the program so that one file can be carried to a machine
//! with a GPU. Its `[defaults]` fill in what a `[[workload]]` leaves out; `[matrices]` asks for one workload for each
//! Matrix Market file of a folder.

use core::fmt;
use core::str::FromStr;
use std::path::{Path, PathBuf};

use hopper_sparse::Dtype;
use hopper_sparse::formats::{BlockShape, Layout};
use serde::Deserialize;

use super::error::BenchError;

/// What an implementation computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// C = A B with A sparse.
    Spmm,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Spmm => "spmm",
        })
    }
}

/// Where A comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// Dense blocks of this shape, a part `density` of all, at random places.
    Blocks {
        /// The shape of a block.
        block: BlockShape,
        /// Stored blocks over all blocks, 0 to 1.
        density: f64,
    },
    /// Single entries, a part `density` of all, at random places.
    Uniform {
        /// Entries over all elements, 0 to 1.
        density: f64,
    },
    /// A Matrix Market file; `m` and `k` are its own.
    File(PathBuf),
}

/// One problem and who solves it.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Unique in its suite.
    pub name: String,
    /// What is computed.
    pub operation: Operation,
    /// Rows of A and C; 0 until a file has been read.
    pub m: usize,
    /// Columns of B and C.
    pub n: usize,
    /// Columns of A, rows of B; 0 until a file has been read.
    pub k: usize,
    /// Where A comes from.
    pub source: Source,
    /// The type of A and B.
    pub dtype: Dtype,
    /// The type of C.
    pub c_dtype: Dtype,
    /// How B lies in memory.
    pub b_layout: Layout,
    /// How C lies in memory.
    pub c_layout: Layout,
    /// Draws A's places and values, and B.
    pub seed: u64,
    /// The implementations to compare, in the order of the report.
    pub implementations: Vec<String>,
    /// The implementation whose time the others' speed-up is relative to.
    pub peer: Option<String>,
}

impl Workload {
    /// The shape of A's blocks, where it is made of blocks.
    pub fn block(&self) -> Option<BlockShape> {
        match self.source {
            Source::Blocks { block, .. } => Some(block),
            Source::Uniform { .. } | Source::File(_) => None,
        }
    }

    /// Bytes of B and C together.
    pub fn dense_bytes(&self) -> u64 {
        let b = self.k as u64 * self.n as u64 * self.dtype.size_bytes() as u64;
        let c = self.m as u64 * self.n as u64 * self.c_dtype.size_bytes() as u64;
        b + c
    }
}

/// A name for a layout, as in the workload files and the records.
pub fn layout_name(layout: Layout) -> &'static str {
    match layout {
        Layout::RowMajor => "row-major",
        Layout::ColumnMajor => "column-major",
    }
}

/// A suite as its file says it, not yet expanded.
#[derive(Clone, Debug)]
pub struct Suite {
    /// The file's name without `.toml`.
    pub name: &'static str,
    /// One line for `bench list`.
    pub about: String,
    file: SuiteFile,
}

/// Each suite's name and text.
const SUITES: &[(&str, &str)] = &[
    ("spmm-blocks", include_str!("../../../bench/workloads/spmm-blocks.toml")),
    ("smoke", include_str!("../../../bench/workloads/smoke.toml")),
    ("suitesparse", include_str!("../../../bench/workloads/suitesparse.toml")),
];

/// The names of all suites.
pub fn suite_names() -> impl Iterator<Item = &'static str> {
    SUITES.iter().map(|(name, _)| *name)
}

impl Suite {
    /// The suite called `name`.
    ///
    /// # Errors
    /// [`BenchError::UnknownSuite`], or [`BenchError::SuiteFile`] where its text does not parse.
    pub fn load(name: &str) -> Result<Self, BenchError> {
        let Some(&(name, text)) = SUITES.iter().find(|(known, _)| *known == name) else {
            return Err(BenchError::UnknownSuite { name: name.to_owned() });
        };
        Self::parse(name, text)
    }

    fn parse(name: &'static str, text: &str) -> Result<Self, BenchError> {
        let file: SuiteFile =
            toml::from_str(text).map_err(|error| BenchError::SuiteFile { suite: name, source: Box::new(error) })?;
        Ok(Self { name, about: file.about.clone(), file })
    }

    /// The suite's workloads. `matrices` is the folder whose files a suite with `[matrices]` multiplies.
    ///
    /// # Errors
    /// [`BenchError::NoMatrices`] where such a suite has no folder or the folder no `.mtx` file;
    /// [`BenchError::Incomplete`] where a workload lacks a field that no default gives.
    pub fn workloads(&self, matrices: Option<&Path>) -> Result<Vec<Workload>, BenchError> {
        let mut all = Vec::new();
        for entry in &self.file.workload {
            let name = entry.name.clone().ok_or(BenchError::Incomplete { suite: self.name, field: "name" })?;
            all.push(self.complete(name, entry, None)?);
        }
        if let Some(entry) = &self.file.matrices {
            for path in matrix_files(matrices)? {
                let name = path.file_stem().unwrap_or_default().to_string_lossy();
                let name = name.strip_suffix(".mtx").unwrap_or(&name).to_owned();
                all.push(self.complete(name, entry, Some(path))?);
            }
        }
        Ok(all)
    }

    fn complete(&self, name: String, entry: &Entry, path: Option<PathBuf>) -> Result<Workload, BenchError> {
        let defaults = &self.file.defaults;
        let missing = |field| BenchError::Incomplete { suite: self.name, field };
        let density = entry.density.or(defaults.density);
        let block = entry.block.or(defaults.block);
        let source = match (path, block) {
            (Some(path), _) => Source::File(path),
            (None, Some(Block(block))) => Source::Blocks { block, density: density.ok_or(missing("density"))? },
            (None, None) => Source::Uniform { density: density.ok_or(missing("density"))? },
        };
        let size = |value: Option<usize>, field| match (&source, value) {
            (_, Some(value)) => Ok(value),
            (Source::File(_), None) => Ok(0),
            (_, None) => Err(missing(field)),
        };
        let dtype = entry.dtype.or(defaults.dtype).ok_or(missing("dtype"))?.0;
        Ok(Workload {
            m: size(entry.m.or(defaults.m), "m")?,
            n: entry.n.or(defaults.n).ok_or(missing("n"))?,
            k: size(entry.k.or(defaults.k), "k")?,
            operation: entry.operation.or(defaults.operation).ok_or(missing("operation"))?,
            dtype,
            c_dtype: entry.c_dtype.or(defaults.c_dtype).map_or(dtype, |c_dtype| c_dtype.0),
            b_layout: entry.b_layout.or(defaults.b_layout).unwrap_or_default().into(),
            c_layout: entry.c_layout.or(defaults.c_layout).unwrap_or_default().into(),
            seed: entry.seed.or(defaults.seed).ok_or(missing("seed"))?,
            implementations: entry
                .implementations
                .clone()
                .or_else(|| defaults.implementations.clone())
                .ok_or(missing("implementations"))?,
            peer: entry.peer.clone().or_else(|| defaults.peer.clone()),
            name,
            source,
        })
    }
}

/// The Matrix Market files of a folder, by name.
fn matrix_files(folder: Option<&Path>) -> Result<Vec<PathBuf>, BenchError> {
    let folder = folder.ok_or(BenchError::NoMatrices { folder: None })?;
    let unreadable = |source| BenchError::File { path: folder.to_owned(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.to_string_lossy();
        if name.ends_with(".mtx") || name.ends_with(".mtx.gz") {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(BenchError::NoMatrices { folder: Some(folder.to_owned()) });
    }
    files.sort();
    Ok(files)
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SuiteFile {
    about: String,
    #[serde(default)]
    defaults: Entry,
    #[serde(default)]
    workload: Vec<Entry>,
    matrices: Option<Entry>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: Option<String>,
    operation: Option<Operation>,
    m: Option<usize>,
    n: Option<usize>,
    k: Option<usize>,
    density: Option<f64>,
    block: Option<Block>,
    dtype: Option<DtypeName>,
    c_dtype: Option<DtypeName>,
    b_layout: Option<LayoutName>,
    c_layout: Option<LayoutName>,
    seed: Option<u64>,
    implementations: Option<Vec<String>>,
    peer: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum LayoutName {
    #[default]
    RowMajor,
    ColumnMajor,
}

impl From<LayoutName> for Layout {
    fn from(name: LayoutName) -> Self {
        match name {
            LayoutName::RowMajor => Self::RowMajor,
            LayoutName::ColumnMajor => Self::ColumnMajor,
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
struct DtypeName(Dtype);

impl TryFrom<String> for DtypeName {
    type Error = ParseNameError;

    fn try_from(name: String) -> Result<Self, ParseNameError> {
        parse_dtype(&name).map(Self)
    }
}

/// The element type of that name, of those that workloads have.
///
/// # Errors
/// The names that there are.
pub fn parse_dtype(name: &str) -> Result<Dtype, ParseNameError> {
    let all = [Dtype::Bf16, Dtype::F16, Dtype::F32];
    all.into_iter().find(|dtype| dtype.name() == name).ok_or(ParseNameError { expected: "bf16, f16 or f32" })
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
struct Block(BlockShape);

impl TryFrom<String> for Block {
    type Error = ParseNameError;

    fn try_from(name: String) -> Result<Self, ParseNameError> {
        let error = ParseNameError { expected: "rows x columns of a block, such as 128x64" };
        let (rows, cols) = name.split_once('x').ok_or(error)?;
        let positive = |text: &str| usize::from_str(text).ok().filter(|&size| size > 0);
        match (positive(rows), positive(cols)) {
            (Some(rows), Some(cols)) => Ok(Self(BlockShape { rows, cols })),
            _ => Err(error),
        }
    }
}

/// A word in a workload file that names nothing.
#[derive(Clone, Copy, Debug)]
pub struct ParseNameError {
    expected: &'static str,
}

impl std::error::Error for ParseNameError {}

impl fmt::Display for ParseNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}", self.expected)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const MINIMAL: &str = r#"
        about = "one"
        [defaults]
        operation = "spmm"
        dtype = "f16"
        seed = 3
        implementations = ["naive/spmm/cpu"]
        [[workload]]
        name = "a"
        m = 3
        n = 4
        k = 5
        density = 0.5
    "#;

    #[test]
    fn defaults_fill_what_a_workload_leaves_out() {
        let suite = Suite::parse("minimal", MINIMAL).expect("valid");
        let workloads = suite.workloads(None).expect("complete");
        let workload = &workloads[0];
        assert_eq!((workload.m, workload.n, workload.k), (3, 4, 5));
        assert_eq!(workload.dtype, Dtype::F16);
        assert_eq!(workload.c_dtype, Dtype::F16);
        assert_eq!(workload.source, Source::Uniform { density: 0.5 });
        assert_eq!(workload.b_layout, Layout::RowMajor);
        assert_eq!(workload.peer, None);
    }

    #[test]
    fn a_block_makes_it_block_sparse_and_a_workload_overrides_the_defaults() {
        let text = format!("{MINIMAL}\nblock = \"64x16\"\ndtype = \"bf16\"\nc_dtype = \"f32\"\n");
        let workloads = Suite::parse("blocks", &text).expect("valid").workloads(None).expect("complete");
        assert_eq!(workloads[0].block(), Some(BlockShape { rows: 64, cols: 16 }));
        assert_eq!((workloads[0].dtype, workloads[0].c_dtype), (Dtype::Bf16, Dtype::F32));
    }

    #[test]
    fn misspelt_fields_and_names_are_refused() {
        for bad in ["denisty = 0.1", "block = \"64\"", "block = \"0x64\"", "dtype = \"f8\"", "b_layout = \"diagonal\""]
        {
            let text = format!("{MINIMAL}\n{bad}\n");
            assert!(Suite::parse("bad", &text).is_err(), "`{bad}` was accepted");
        }
    }

    #[test]
    fn a_missing_size_is_named() {
        let text = MINIMAL.replace("k = 5", "");
        let error = Suite::parse("short", &text).expect("valid TOML").workloads(None).expect_err("k is missing");
        assert!(error.to_string().contains("`k`"), "{error}");
    }

    #[test]
    fn every_suite_parses_and_names_known_implementations_and_no_workload_twice() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("x.mtx"), "").expect("a file");
        for name in suite_names() {
            let suite = Suite::load(name).expect(name);
            let workloads = suite.workloads(Some(folder.path())).expect(name);
            let mut seen = HashSet::new();
            for workload in &workloads {
                assert!(seen.insert(workload.name.clone()), "{name}: {} is there twice", workload.name);
                // Without the feature `gpu` half of them are left out of the program.
                #[cfg(feature = "gpu")]
                for implementation in &workload.implementations {
                    let found = crate::bench::registry::find(implementation);
                    assert!(found.is_some(), "{name}: nobody is called {implementation}");
                }
                let peer = workload.peer.as_ref().expect("every workload has a peer");
                assert!(workload.implementations.contains(peer), "{name}: {} lacks its peer", workload.name);
            }
        }
    }

    #[test]
    fn a_suite_of_files_wants_a_folder_with_files() {
        let suite = Suite::load("suitesparse").expect("it parses");
        assert!(matches!(suite.workloads(None), Err(BenchError::NoMatrices { folder: None })));
        let folder = tempfile::tempdir().expect("a folder");
        assert!(matches!(suite.workloads(Some(folder.path())), Err(BenchError::NoMatrices { folder: Some(_) })));
        std::fs::write(folder.path().join("b.mtx.gz"), "").expect("a file");
        std::fs::write(folder.path().join("a.mtx"), "").expect("a file");
        std::fs::write(folder.path().join("notes.txt"), "").expect("a file");
        let workloads = suite.workloads(Some(folder.path())).expect("two files");
        let names: Vec<_> = workloads.iter().map(|workload| workload.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
    }
}
