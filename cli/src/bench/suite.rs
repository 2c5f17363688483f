//! Suites: TOML files of workloads.
//!
//! A suite is a file of `bench/workloads/`, kept inside the program so that one file can be carried to a machine
//! with a GPU. Its `[defaults]` fill in what a `[[workload]]` leaves out; `[matrices]` asks for one workload for each
//! Matrix Market file of a folder, `[lookalikes]` for one for each look-alike, both once for each of `cols` where it is
//! given, `[grid]` for one for each head size, mask and length, and `[linear]` for one for each layer of some models, sparsity and number
//! of tokens. `[classes]` says what files come from.

use core::fmt;
use core::str::FromStr;
use std::collections::BTreeMap;
use std::path::Path;

use hopper_sparse::Dtype;
use hopper_sparse::formats::{BlockShape, Layout};
use hopper_sparse::ops::attention::blocks::BlockSize;
use hopper_sparse::ops::attention::{Attention, Sequences};
use serde::Deserialize;

use super::attention::{AttentionWorkload, Listed, Mask};
use super::error::BenchError;
use super::linear_suite::{LinearChoice, LinearGrid};
use super::matrix_sets::{self, Member};
use super::workload::{Problem, Product, Source, Workload};

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
    ("attention", include_str!("../../../bench/workloads/attention.toml")),
    ("smoke", include_str!("../../../bench/workloads/smoke.toml")),
    ("real", include_str!("../../../bench/workloads/real.toml")),
    ("lookalike", include_str!("../../../bench/workloads/lookalike.toml")),
    ("linear", include_str!("../../../bench/workloads/linear.toml")),
    ("suitesparse", include_str!("../../../bench/workloads/suitesparse.toml")),
    #[cfg(all(feature = "gpu", feature = "ablation"))]
    ("ablation", include_str!("../../../bench/workloads/ablation.toml")),
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

    /// The same with other numbers of columns; none leaves it as it is.
    ///
    /// # Errors
    /// [`BenchError::FixedColumns`] where it is no suite of matrices.
    pub fn with_cols(mut self, cols: &[usize]) -> Result<Self, BenchError> {
        if !cols.is_empty() {
            let mut sets: Vec<_> = [&mut self.file.matrices, &mut self.file.lookalikes].into_iter().flatten().collect();
            if sets.is_empty() {
                return Err(BenchError::FixedColumns { suite: self.name });
            }
            sets.iter_mut().for_each(|entry| entry.cols = Some(cols.to_vec()));
        }
        Ok(self)
    }

    /// The same with other linear layers, tokens, sparsities or masks.
    ///
    /// # Errors
    /// [`BenchError::UnknownWorkload`] where no layer is of a model asked for.
    pub fn with_linear(mut self, choice: &LinearChoice) -> Result<Self, BenchError> {
        let grid = self.file.linear.as_mut().ok_or(BenchError::Incomplete { suite: self.name, field: "linear" })?;
        grid.choose(choice).map_err(|name| BenchError::UnknownWorkload { name })?;
        Ok(self)
    }

    /// The suite's workloads. `matrices` is the folder whose files a suite with `[matrices]` multiplies, and where one with
    /// `[lookalikes]` looks for the files that they imitate.
    ///
    /// # Errors
    /// [`BenchError::NoMatrices`] where the former has no folder or the folder no `.mtx` file; [`BenchError::File`] where
    /// it cannot be read; [`BenchError::Incomplete`] where a workload lacks a field that no default gives.
    pub fn workloads(&self, matrices: Option<&Path>) -> Result<Vec<Workload>, BenchError> {
        let mut all = Vec::new();
        for entry in &self.file.workload {
            let name = entry.name.clone().ok_or(self.missing("name"))?;
            all.push(self.complete(name, entry, None)?);
        }
        for (name, entry) in self.file.grid.iter().flat_map(Grid::entries) {
            all.push(self.complete(name, &entry, None)?);
        }
        if let Some(entry) = &self.file.matrices {
            for member in matrix_sets::files(matrices)? {
                self.push_member(member, entry, &mut all)?;
            }
        }
        if let Some(entry) = &self.file.lookalikes {
            for member in matrix_sets::lookalikes(matrices)? {
                self.push_member(member, entry, &mut all)?;
            }
        }
        if let Some(grid) = &self.file.linear {
            self.push_linear(grid, &mut all)?;
        }
        Ok(all)
    }

    /// The linear layers of a grid.
    fn push_linear(&self, grid: &LinearGrid, all: &mut Vec<Workload>) -> Result<(), BenchError> {
        let defaults = &self.file.defaults;
        let dtype = defaults.dtype.ok_or(self.missing("dtype"))?.0;
        let seed = defaults.seed.ok_or(self.missing("seed"))?;
        let implementations = grid.implementations.as_ref().or(defaults.implementations.as_ref());
        let implementations = implementations.ok_or(self.missing("implementations"))?;
        let implementations = [implementations, grid.for_the_mask()].concat();
        let peer = grid.peer.as_ref().or(defaults.peer.as_ref());
        all.extend(grid.workloads(dtype, seed).into_iter().map(|named| Workload {
            name: named.name,
            class: Some(named.model),
            problem: Problem::Linear(named.workload),
            implementations: implementations.clone(),
            peer: peer.cloned(),
        }));
        Ok(())
    }

    /// A matrix of a set, once for each number of columns; where several are asked for, the names have them.
    fn push_member(&self, member: Member, entry: &Entry, all: &mut Vec<Workload>) -> Result<(), BenchError> {
        let listed = |(class, names): (&String, &Vec<String>)| names.contains(&member.label).then(|| class.clone());
        let class = self.file.classes.iter().find_map(listed).or(member.class);
        let Some(mut cols) = entry.cols.clone().or(self.file.defaults.cols.clone()) else {
            all.push(Workload { class, ..self.complete(member.label, entry, Some(member.source))? });
            return Ok(());
        };
        cols.sort_unstable();
        cols.dedup();
        for n in cols {
            let name = format!("{} n{n}", member.label);
            let entry = Entry { n: Some(n), ..entry.clone() };
            let workload = self.complete(name, &entry, Some(member.source.clone()))?;
            all.push(Workload { class: class.clone(), ..workload });
        }
        Ok(())
    }

    fn complete(&self, name: String, entry: &Entry, source: Option<Source>) -> Result<Workload, BenchError> {
        let defaults = &self.file.defaults;
        let entry = entry.clone().or(defaults);
        let operation = entry.operation.ok_or(self.missing("operation"))?;
        let problem = match operation {
            OperationName::Spmm => Problem::Product(self.product(&entry, source)?),
            OperationName::Attention => Problem::Attention(self.attention(&entry)?),
        };
        let implementations = entry.implementations.ok_or(self.missing("implementations"))?;
        Ok(Workload { name, class: None, problem, implementations, peer: entry.peer })
    }

    fn missing(&self, field: &'static str) -> BenchError {
        BenchError::Incomplete { suite: self.name, field }
    }

    fn product(&self, entry: &Entry, source: Option<Source>) -> Result<Product, BenchError> {
        let density = || entry.density.ok_or(self.missing("density"));
        let source = match (source, entry.block) {
            (Some(source), _) => source,
            (None, Some(Block(block))) => Source::Blocks { block, density: density()? },
            (None, None) => Source::Uniform { density: density()? },
        };
        let size = |value: Option<usize>, field| match (&source, value) {
            (Source::Lookalike(matrix), _) => Ok(matrix.num_rows()),
            (_, Some(value)) => Ok(value),
            (Source::File(_), None) => Ok(0),
            (_, None) => Err(self.missing(field)),
        };
        let dtype = entry.dtype.ok_or(self.missing("dtype"))?.0;
        Ok(Product {
            m: size(entry.m, "m")?,
            n: entry.n.ok_or(self.missing("n"))?,
            k: size(entry.k, "k")?,
            dtype,
            c_dtype: entry.c_dtype.map_or(dtype, |c_dtype| c_dtype.0),
            b_layout: entry.b_layout.unwrap_or_default().into(),
            c_layout: entry.c_layout.unwrap_or_default().into(),
            seed: entry.seed.ok_or(self.missing("seed"))?,
            source,
        })
    }

    fn attention(&self, entry: &Entry) -> Result<AttentionWorkload, BenchError> {
        let (queries, keys) = match &entry.lengths {
            Some(lengths) => (Sequences::of_lengths(lengths), Sequences::of_lengths(lengths)),
            None => {
                let batch = entry.batch.ok_or(self.missing("batch"))?;
                let keys = entry.keys.ok_or(self.missing("keys"))?;
                let of_length = |len| Sequences::Equal { batch, len };
                (of_length(entry.queries.unwrap_or(keys)), of_length(keys))
            }
        };
        let heads = entry.heads.ok_or(self.missing("heads"))?;
        let head_dim = entry.head_dim.ok_or(self.missing("head_dim"))?;
        let dtype = entry.dtype.ok_or(self.missing("dtype"))?.0;
        let problem = Attention::new(queries, heads, head_dim, dtype)
            .with_keys(keys)
            .with_key_heads(entry.kv_heads.unwrap_or(heads))
            .with_window(entry.mask.unwrap_or_default().into());
        let listed = match (entry.key_blocks, entry.block) {
            (None, _) => None,
            (Some(count), Some(Block(BlockShape { rows: 64, cols: 64 }))) => Some((BlockSize::B64, count)),
            (Some(count), Some(Block(BlockShape { rows: 128, cols: 128 }))) => Some((BlockSize::B128, count)),
            (Some(_), _) => return Err(self.missing("block")),
        };
        let listed = listed.map(|(block, count)| Listed { block, count });
        Ok(AttentionWorkload { problem, listed, seed: entry.seed.ok_or(self.missing("seed"))? })
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SuiteFile {
    about: String,
    #[serde(default)]
    defaults: Entry,
    #[serde(default)]
    workload: Vec<Entry>,
    grid: Option<Grid>,
    matrices: Option<Entry>,
    lookalikes: Option<Entry>,
    linear: Option<LinearGrid>,
    /// By class, the names of files that come from there.
    #[serde(default)]
    classes: BTreeMap<String, Vec<String>>,
}

/// Workloads of attention for each head size, mask and length, all of the same number of tokens and of columns.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Grid {
    /// Sequences times the length of each.
    tokens: usize,
    /// Heads times the size of each.
    columns: usize,
    head_dim: Vec<usize>,
    mask: Vec<Mask>,
    length: Vec<usize>,
}

impl Grid {
    fn entries(&self) -> Vec<(String, Entry)> {
        let mut entries = Vec::new();
        for &head_dim in &self.head_dim {
            for &mask in &self.mask {
                for &length in &self.length {
                    let name = format!("d{head_dim}-{}-{}", mask.name(), in_k(length));
                    let entry = Entry {
                        batch: Some(self.tokens / length),
                        keys: Some(length),
                        heads: Some(self.columns / head_dim),
                        head_dim: Some(head_dim),
                        mask: Some(mask),
                        ..Entry::default()
                    };
                    entries.push((name, entry));
                }
            }
        }
        entries
    }
}

/// `4k` for 4096.
fn in_k(length: usize) -> String {
    if length.is_multiple_of(1024) { format!("{}k", length / 1024) } else { length.to_string() }
}

macro_rules! entry {
    ($($field:ident: $type:ty,)*) => {
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Entry {
            $($field: Option<$type>,)*
        }

        impl Entry {
            /// What is not there is that of `defaults`.
            fn or(self, defaults: &Self) -> Self {
                Self { $($field: self.$field.or_else(|| defaults.$field.clone()),)* }
            }
        }
    };
}

entry! {
    name: String,
    operation: OperationName,
    m: usize,
    n: usize,
    cols: Vec<usize>,
    k: usize,
    density: f64,
    block: Block,
    c_dtype: DtypeName,
    b_layout: LayoutName,
    c_layout: LayoutName,
    batch: usize,
    queries: usize,
    keys: usize,
    lengths: Vec<usize>,
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
    key_blocks: usize,
    mask: Mask,
    dtype: DtypeName,
    seed: u64,
    implementations: Vec<String>,
    peer: String,
}

/// What a `[[workload]]` computes; linear layers have a section of their own.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum OperationName {
    Spmm,
    Attention,
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

    use hopper_sparse::generate::Lookalike;

    use super::*;
    use crate::bench::linear::WeightMask;
    use crate::bench::workload::is_named;

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

    fn product(workload: &Workload) -> &Product {
        match &workload.problem {
            Problem::Product(product) => product,
            _ => panic!("{} is no product", workload.name),
        }
    }

    #[test]
    fn the_attention_suite_is_a_grid_of_equal_cost_and_a_few_more() {
        let workloads = Suite::load("attention").and_then(|suite| suite.workloads(None)).expect("it parses");
        assert_eq!(workloads.len(), 3 * 2 * 5 + 5);
        let find = |name: &str| {
            let workload = workloads.iter().find(|workload| workload.name == name).expect(name);
            let Problem::Attention(attention) = &workload.problem else { panic!("{name} is no attention") };
            attention
        };
        for (head_dim, length) in [(64, 1024), (128, 8192), (256, 16384)] {
            let full = find(&format!("d{head_dim}-full-{}k", length / 1024));
            assert_eq!(full.flops(), 4 * length * 16384 * 2048);
            assert_eq!(full.problem.check(), Ok(()));
            let causal = find(&format!("d{head_dim}-causal-{}k", length / 1024));
            assert_eq!(causal.flops(), 2 * (length + 1) * 16384 * 2048);
        }
        let grouped = find("gqa-d128-causal-8k");
        assert_eq!((grouped.problem.num_query_heads, grouped.problem.num_key_heads), (32, 8));
        let decode = find("decode-d128-8k");
        assert_eq!((decode.problem.queries.longest(), decode.problem.keys.longest()), (1, 8192));
        for (name, block, count) in
            [("blocks64-topk64-109k", BlockSize::B64, 64), ("blocks128-topk32-109k", BlockSize::B128, 32)]
        {
            assert_eq!(find(name).listed, Some(Listed { block, count }));
            assert_eq!((find(name).problem.keys.longest(), find(name).problem.num_query_heads), (109_632, 7));
        }
        let packed = find("packed-d128-causal");
        assert_eq!(packed.problem.queries.extents(), (1, 16384));
        assert!(
            workloads
                .iter()
                .all(|workload| matches!(&workload.problem, Problem::Attention(one) if one.problem.check().is_ok()))
        );
    }

    #[test]
    fn defaults_fill_what_a_workload_leaves_out() {
        let suite = Suite::parse("minimal", MINIMAL).expect("valid");
        let workloads = suite.workloads(None).expect("complete");
        let product = product(&workloads[0]);
        assert_eq!((product.m, product.n, product.k), (3, 4, 5));
        assert_eq!(product.dtype, Dtype::F16);
        assert_eq!(product.c_dtype, Dtype::F16);
        assert_eq!(product.source, Source::Uniform { density: 0.5 });
        assert_eq!(product.b_layout, Layout::RowMajor);
        assert_eq!(workloads[0].peer, None);
    }

    #[test]
    fn a_block_makes_it_block_sparse_and_a_workload_overrides_the_defaults() {
        let text = format!("{MINIMAL}\nblock = \"64x16\"\ndtype = \"bf16\"\nc_dtype = \"f32\"\n");
        let workloads = Suite::parse("blocks", &text).expect("valid").workloads(None).expect("complete");
        let product = product(&workloads[0]);
        assert_eq!(product.block(), Some(BlockShape { rows: 64, cols: 16 }));
        assert_eq!((product.dtype, product.c_dtype), (Dtype::Bf16, Dtype::F32));
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
                let mut peers = workload.implementations.iter().filter(|implementation| is_named(peer, implementation));
                assert!(peers.next().is_some(), "{name}: {} lacks its peer", workload.name);
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

    #[test]
    fn look_alikes_say_that_they_are_and_come_once_for_each_number_of_columns() {
        let suite = Suite::load("lookalike").expect("it parses").with_cols(&[96, 8, 96]).expect("a suite of matrices");
        let workloads = suite.workloads(None).expect("no folder is needed");
        assert_eq!(workloads.len(), 2 * Lookalike::all().len());
        for (workload, n) in workloads.iter().zip([8, 96].into_iter().cycle()) {
            assert!(workload.name.ends_with(&format!(" (look-alike) n{n}")), "{}", workload.name);
            assert!(workload.class.is_some());
            let product = product(workload);
            assert_eq!((product.n, product.m), (n, product.k));
            assert!(product.m > 0);
        }
        let cant = workloads.iter().find(|workload| workload.name == "cant (look-alike) n8").expect("it is there");
        assert_eq!(cant.problem.to_string(), "62451 x 8 x 62451");
        assert!(matches!(
            Suite::load("smoke").and_then(|suite| suite.with_cols(&[8])),
            Err(BenchError::FixedColumns { suite: "smoke" })
        ));
    }

    #[test]
    fn the_linear_suite_has_four_layers_of_five_models_and_takes_other_tokens() {
        let suite = Suite::load("linear").expect("it parses");
        assert_eq!(suite.workloads(None).expect("complete").len(), 5 * 4 * 3 * 4);
        let choice = LinearChoice { models: vec!["opt-30b".to_owned()], tokens: vec![1], ..LinearChoice::default() };
        let workloads = suite.clone().with_linear(&choice).and_then(|suite| suite.workloads(None)).expect("complete");
        assert_eq!(workloads.len(), 4 * 3);
        assert_eq!(
            (workloads[0].name.as_str(), workloads[0].class.as_deref()),
            ("opt-30b qkv wanda 50% n1", Some("opt-30b"))
        );
        assert_eq!(workloads[0].problem.to_string(), "1 tokens, 7168 -> 21504, 50 % zeros (wanda), bf16");
        assert!(!workloads[0].implementations.contains(&"vendor/linear/cusparselt".to_owned()));
        let choice = LinearChoice { mask: Some(WeightMask::TwoOfFour), ..LinearChoice::default() };
        let workloads = suite.clone().with_linear(&choice).and_then(|suite| suite.workloads(None)).expect("complete");
        assert!(workloads[0].implementations.contains(&"vendor/linear/cusparselt".to_owned()));
        let unknown = LinearChoice { models: vec!["gpt".to_owned()], ..LinearChoice::default() };
        assert!(matches!(suite.with_linear(&unknown), Err(BenchError::UnknownWorkload { name }) if name == "gpt"));
    }

    #[test]
    fn a_file_is_of_the_class_that_the_suite_says() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["bcsstk33.mtx", "nobody.mtx", "roadNet-CA.mtx"] {
            std::fs::write(folder.path().join(name), "").expect("a file");
        }
        let suite = Suite::load("real").and_then(|suite| suite.with_cols(&[128])).expect("a suite of matrices");
        let workloads = suite.workloads(Some(folder.path())).expect("three files");
        let classes: Vec<_> = workloads.iter().map(|workload| workload.class.as_deref()).collect();
        assert_eq!(classes, [Some("finite-elements"), None, Some("road")]);
        assert_eq!(workloads[0].name, "bcsstk33 n128");
    }
}
