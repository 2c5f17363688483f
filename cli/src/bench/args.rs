//! The command line of `hopper-sparse bench`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use hopper_sparse::Dtype;

use super::launch::Launch;
use super::linear::WeightMask;
use super::linear_suite::LinearChoice;
use super::load::Load;
use super::suite::parse_dtype;
use super::workspace::Cache;
use crate::args::parse_cols;

/// `hopper-sparse bench`
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct BenchArgs {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  hopper-sparse bench list
  hopper-sparse bench run smoke
  hopper-sparse bench run spmm-blocks --csv record.csv
  hopper-sparse bench run spmm-blocks --only 8192-10 --implementations ours,vendor/gemm --rounds 50
  hopper-sparse bench run suitesparse --matrices DIR
  hopper-sparse bench spmm --suite lookalike --cols 32,128 --list
  hopper-sparse bench spmm --suite real --matrices DIR --cols 128 --csv record.csv
  hopper-sparse bench linear --models opt-30b,llama-3-8b --tokens 16 --sparsity 0.5 --csv record.csv
  hopper-sparse bench linear --mask 2:4 --only fc1
  hopper-sparse bench run attention --only causal --dtype f16
  hopper-sparse bench run spmm-blocks --launch graph --csv replayed.csv
  hopper-sparse bench compare before.csv after.csv

A look-alike is generated: it has the size of the matrix that it is named after, and rows of its kind, and is not that matrix.
With --matrices DIR a file of that name takes its place.

cuBLASLt, cuSPARSE and cuSPARSELt are looked for at run time: LD_LIBRARY_PATH must name their folders. Peers in a process of their
own want python3 with torch on PATH.
Exit codes: 0 done, 1 a wrong result or a failure, 2 the request cannot be served.";

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Show suites, workloads and implementations
    List,
    /// Check every implementation of a suite, then time those that are right
    Run(RunArgs),
    /// The same for sparse matrices times dense ones: means by what the matrices come from end the report
    Spmm(SpmmArgs),
    /// The same for linear layers of pruned language models: means by tokens and sparsity end the report
    Linear(LinearArgs),
    /// Show two records side by side
    Compare {
        /// The earlier record
        before: PathBuf,
        /// The later record
        after: PathBuf,
    },
}

/// `hopper-sparse bench run`
#[derive(Args, Debug)]
pub struct RunArgs {
    /// The suite: see `bench list`
    pub suite: String,
    #[command(flatten)]
    pub how: HowArgs,
}

/// `hopper-sparse bench spmm`
#[derive(Args, Debug)]
pub struct SpmmArgs {
    /// Which matrices
    #[arg(long, value_enum, default_value_t = MatrixSuite::Lookalike)]
    pub suite: MatrixSuite,
    #[command(flatten)]
    pub how: HowArgs,
}

/// `hopper-sparse bench linear`
#[derive(Args, Debug)]
pub struct LinearArgs {
    /// Only models whose names begin so, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub models: Vec<String>,
    /// Tokens (rows of X and Y), separated by commas, in place of the suite's
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = parse_cols)]
    pub tokens: Vec<usize>,
    /// The part of the weights that is zero, 0 to 1, separated by commas, in place of the suite's
    #[arg(long, value_name = "S", value_delimiter = ',', value_parser = parse_sparsity)]
    pub sparsity: Vec<f64>,
    /// How the zeros lie
    #[arg(long, value_enum)]
    pub mask: Option<WeightMask>,
    #[command(flatten)]
    pub how: HowArgs,
}

impl LinearArgs {
    /// What takes the place of the suite's.
    pub fn choice(&self) -> LinearChoice {
        let Self { models, tokens, sparsity, mask, .. } = self;
        LinearChoice { models: models.clone(), tokens: tokens.clone(), sparsity: sparsity.clone(), mask: *mask }
    }
}

fn parse_sparsity(text: &str) -> Result<f64, &'static str> {
    text.parse().ok().filter(|part| (0.0..=1.0).contains(part)).ok_or("expected a number from 0 to 1")
}

/// The suites of `bench spmm`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MatrixSuite {
    /// Every .mtx file of the folder that --matrices names
    Real,
    /// Look-alikes, or the files that they imitate where --matrices has them
    Lookalike,
}

impl MatrixSuite {
    /// The suite's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::Lookalike => "lookalike",
        }
    }
}

/// What is measured of a suite, and how.
#[derive(Args, Debug)]
pub struct HowArgs {
    /// Only workloads with this in their name; `=NAME` for one of exactly that name
    #[arg(long, value_name = "NAME")]
    pub only: Option<String>,
    /// Only implementations whose names start so, separated by commas, also ones that the suite does not name
    #[arg(long, value_name = "PREFIXES", value_delimiter = ',')]
    pub implementations: Vec<String>,
    /// The element type of all operands, in place of the suite's: bf16, f16 or f32
    #[arg(long, value_parser = parse_dtype)]
    pub dtype: Option<Dtype>,
    /// The folder whose .mtx files a suite of matrices multiplies
    #[arg(long, value_name = "DIR")]
    pub matrices: Option<PathBuf>,
    /// Columns of B and C, separated by commas, in place of those of a suite of matrices
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = parse_cols)]
    pub cols: Vec<usize>,
    /// Show what would be measured, and measure nothing
    #[arg(long)]
    pub list: bool,
    /// Samples of each implementation
    #[arg(long, value_name = "R", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// Stop sampling a workload after this many seconds, with 5 rounds at least
    #[arg(long, value_name = "S", default_value_t = 30.0)]
    pub max_seconds: f64,
    /// Whether launches find their operands in the L2 cache
    #[arg(long, value_enum, default_value_t = Cache::Cold)]
    pub cache: Cache,
    /// What the card does between samples
    #[arg(long, value_enum, default_value_t = Load::Lasting)]
    pub load: Load,
    /// How the launches of a sample reach the GPU
    #[arg(long, value_enum, default_value_t = Launch::Stream)]
    pub launch: Launch,
    /// Which GPU, counted from 0
    #[arg(long, value_name = "I", default_value_t = 0)]
    pub device: u32,
    /// The commit for the record; else HOPPER_COMMIT, else what git says
    #[arg(long)]
    pub commit: Option<String>,
    /// Write the record as CSV, anew after each workload
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Draw the rates as SVG, anew after each workload
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write the record as JSON, anew after each workload
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}
