//! The command line.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand, ValueEnum};
use hopper_sparse::Dtype;
use hopper_sparse::formats::{BlockShape, FormatError, Layout};
use hopper_sparse::generate::GeneratorSpec;

use crate::attention::AttentionArgs;
use crate::bench::BenchArgs;
use crate::convert::ConvertArgs;
use crate::prune::PruneArgs;
use crate::recommend::RecommendArgs;
use hopper_sparse::io::Existing;
use hopper_sparse::io::matrix_market::{ComplexPolicy, ExplicitZeros, ReadOptions};

/// Sparse matrix products and attention on NVIDIA Hopper, with kernels written in Rust.
#[derive(Debug, Parser)]
#[command(name = "hopper-sparse", version, about, after_help = EXAMPLES, propagate_version = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  hopper-sparse spmm --gen fem:20000 --cols 128 --check  a generated matrix, checked against float64
  hopper-sparse spmm bcsstk33.mtx --cols 128             a matrix of yours
  hopper-sparse attention --keys 8192 --causal --check   attention of generated Q, K and V
  hopper-sparse convert bcsstk33.mtx.gz bcsstk33.safetensors --format bcsr:64x64 --dtype bf16
  hopper-sparse prune MODEL_DIR --out PRUNED --method wanda --sparsity 0.5
  hopper-sparse convert PRUNED --out packed.safetensors  every layer in the format that suits it
  hopper-sparse recommend bcsstk33.mtx --cols 128        the format that is soonest, and why
  hopper-sparse info                                     the device and the kernels
  hopper-sparse bench run smoke                          the implementations beside each other

Exit codes: 0 done, 1 failed (a file, the device, a check), 2 the request cannot be served.
`hopper-sparse help VERB` has more examples.";

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Multiply a sparse matrix by a dense one: C = alpha A B + beta C
    Spmm(SpmmArgs),
    /// Compute attention: O = softmax(Q K^T) V
    Attention(AttentionArgs),
    /// Convert between Matrix Market and packed safetensors, or pack a model's checkpoint
    Convert(ConvertArgs),
    /// Prune the linear layers of a model's checkpoint
    Prune(PruneArgs),
    /// Show the device, its driver and the kernels; of a matrix, how windows of rows fit it
    Info(InfoArgs),
    /// Predict or measure which format multiplies a sparse matrix soonest
    Recommend(RecommendArgs),
    /// Check implementations and measure them beside their peers
    Bench(BenchArgs),
}

/// Where the sparse matrix comes from: a file or a generator.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub struct SourceArgs {
    /// The sparse matrix A: Matrix Market (.mtx, .mtx.gz) or packed (.safetensors)
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Generate A instead: see "Generated matrices" below
    #[arg(long, value_name = "KIND:SIZES")]
    pub r#gen: Option<GeneratorSpec>,
}

/// What a Matrix Market reader may leave out.
#[derive(Args, Debug)]
pub struct ReadArgs {
    /// Leave out entries that a Matrix Market file stores as zero
    #[arg(long)]
    pub drop_zeros: bool,
    /// Take the real parts of a complex Matrix Market file, which is refused otherwise
    #[arg(long)]
    pub real_part: bool,
}

impl ReadArgs {
    /// The same, as the reader wants it.
    pub fn read_options(&self) -> ReadOptions {
        ReadOptions {
            zeros: if self.drop_zeros { ExplicitZeros::Drop } else { ExplicitZeros::Keep },
            complex: if self.real_part { ComplexPolicy::RealPart } else { ComplexPolicy::Refuse },
        }
    }
}

/// `hopper-sparse spmm`
#[derive(Args, Debug)]
#[command(after_help = SPMM_EXAMPLES)]
pub struct SpmmArgs {
    #[command(flatten)]
    pub source: SourceArgs,
    #[command(flatten)]
    pub read: ReadArgs,
    /// Columns of B and C
    #[arg(long, short = 'n', value_name = "N", value_parser = parse_cols)]
    pub cols: usize,
    /// Storage of A: auto, csr, bcsr (the best block size) or bcsr:RxC
    #[arg(long, default_value = "auto")]
    pub format: FormatChoice,
    /// Element type of A and B
    #[arg(long, value_enum, default_value_t = DtypeArg::Bf16)]
    pub dtype: DtypeArg,
    /// Element type of C; the type of A and B if not given
    #[arg(long, value_enum)]
    pub c_dtype: Option<DtypeArg>,
    /// Where to compute; auto takes the GPU where there is one that can do it
    #[arg(long, value_enum, default_value_t = BackendChoice::Auto)]
    pub backend: BackendChoice,
    /// Which GPU, counted from 0 [default: the first Hopper one]
    #[arg(long, value_name = "I")]
    pub device: Option<u32>,
    /// Layout of B
    #[arg(long, value_enum, default_value_t = LayoutArg::Row)]
    pub b_layout: LayoutArg,
    /// Layout of C
    #[arg(long, value_enum, default_value_t = LayoutArg::Row)]
    pub c_layout: LayoutArg,
    /// Factor of A B
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true, value_parser = parse_finite)]
    pub alpha: f64,
    /// Factor of what C held; C starts with random values unless this is 0
    #[arg(long, default_value_t = 0.0, allow_negative_numbers = true, value_parser = parse_finite)]
    pub beta: f64,
    #[arg(
        long,
        value_name = "R",
        help = "Timed launches, whose median is shown [default: 20, fewer where they are slow]"
    )]
    pub repeat: Option<NonZeroUsize>,
    /// Seed of the generated matrix, of B and of C
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Compare with the float64 reference; exit with code 1 where the error is out of tolerance
    #[arg(long)]
    pub check: bool,
    /// Save C as safetensors
    #[arg(long, value_name = "C.safetensors")]
    pub out: Option<PathBuf>,
    /// Replace the output where it exists
    #[arg(long, requires = "out")]
    pub force: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

const SPMM_EXAMPLES: &str = "\
Generated matrices (with ,seed=NUMBER behind one, --seed is for B and C alone):
  fem:ROWS                  finite elements on a cubic grid, 3 unknowns a node, 81 entries an inner row
  rmat:SCALE,EDGES          a power-law graph of 2^SCALE vertices, EDGES draws for each
  banded:ROWS,HALF          every entry at most HALF off the diagonal
  blocks:MxK,RxC,DENSITY    dense RxC blocks at random places, a part DENSITY (0 to 1) of all
  uniform:MxK,DENSITY       single entries at random places
  lookalike:NAME            of the size and kind of a SuiteSparse matrix, which it is not; lookalike:? names them

Examples:
  hopper-sparse spmm --gen fem:20000 --cols 128 --check
  hopper-sparse spmm --gen lookalike:cant --cols 128
  hopper-sparse spmm --gen blocks:8192x8192,128x64,0.1 --cols 8192 --format bcsr:128x64 --backend gpu
  hopper-sparse spmm bcsstk33.mtx --cols 128 --format csr --dtype f32 --backend gpu --check
  hopper-sparse spmm weights.safetensors --cols 512 --b-layout col --c-layout col --json

How --format auto chooses: on the CPU it counts the stored elements of each block size; the blocks
must be at least three quarters full for BCSR to be chosen. On a GPU it takes the format that is predicted to be the
soonest, windows of rows among them, and says why; `hopper-sparse recommend` shows all of them.";

/// `hopper-sparse info`
#[derive(Args, Debug)]
#[command(after_help = INFO_EXAMPLES)]
pub struct InfoArgs {
    /// Describe this matrix instead: .mtx, .mtx.gz or .safetensors
    #[arg(value_name = "FILE", conflicts_with_all = ["device", "load"])]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub read: ReadArgs,
    /// Which GPU, counted from 0 [default: the first Hopper one]
    #[arg(long, value_name = "I")]
    pub device: Option<u32>,
    /// Let the driver compile every kernel, and show what it says of each (about 0.1 s a kernel)
    #[arg(long)]
    pub load: bool,
    /// Look for an order of the matrix' rows that fills windows better, too; it takes several times as long as the rest
    #[arg(long, requires = "file")]
    pub reorder: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

const INFO_EXAMPLES: &str = "\
Examples:
  hopper-sparse info
  hopper-sparse info --load
  hopper-sparse info --device 1 --json
  hopper-sparse info bcsstk33.mtx
  hopper-sparse info bcsstk33.mtx --reorder

Without a GPU the kernels are listed from their specifications, with the reason why there is no device.
Registers are those of a thread at launch: the specification's, or with --load the driver's.

Of a matrix a line for each shape of windows is shown: rows, and columns of a group. A window stores the union of its
rows' columns; it is full where every row has an entry in every stored column.";

impl SpmmArgs {
    /// What to do about an output that exists.
    pub fn existing(&self) -> Existing {
        if self.force { Existing::Replace } else { Existing::Refuse }
    }
}

/// How A is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatChoice {
    /// Chosen by fill, or by prediction.
    Auto,
    /// Compressed sparse rows.
    Csr,
    /// Blocks, of this shape or of the best offered.
    Bcsr(Option<BlockShape>),
}

impl FromStr for FormatChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => return Ok(Self::Auto),
            "csr" => return Ok(Self::Csr),
            "bcsr" => return Ok(Self::Bcsr(None)),
            _ => {}
        }
        let Some(shape) = text.strip_prefix("bcsr:") else {
            return Err("expected auto, csr, bcsr or bcsr:RxC".to_owned());
        };
        let offered = "blocks have 64 or 128 rows and 16, 32, 64 or 128 columns, as in bcsr:128x64";
        match shape.parse() {
            Ok(shape) => Ok(Self::Bcsr(Some(shape))),
            Err(FormatError::BlockShapeNotOffered { rows, cols }) => {
                Err(format!("blocks of {rows}x{cols} are not offered: {offered}"))
            }
            Err(_) => Err(offered.to_owned()),
        }
    }
}

/// An element type, as an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DtypeArg {
    /// bfloat16
    Bf16,
    /// IEEE half precision
    F16,
    /// IEEE single precision
    F32,
    /// IEEE double precision; on the CPU only
    F64,
}

impl From<DtypeArg> for Dtype {
    fn from(dtype: DtypeArg) -> Self {
        match dtype {
            DtypeArg::Bf16 => Self::Bf16,
            DtypeArg::F16 => Self::F16,
            DtypeArg::F32 => Self::F32,
            DtypeArg::F64 => Self::F64,
        }
    }
}

/// Where to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BackendChoice {
    /// The GPU where there is one that can do it, else the CPU
    Auto,
    /// The GPU, or fail
    Gpu,
    /// The CPU
    Cpu,
}

/// A layout, as an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LayoutArg {
    /// Rows are contiguous
    Row,
    /// Columns are contiguous
    Col,
}

impl From<LayoutArg> for Layout {
    fn from(layout: LayoutArg) -> Self {
        match layout {
            LayoutArg::Row => Self::RowMajor,
            LayoutArg::Col => Self::ColumnMajor,
        }
    }
}

/// A number of columns: at least one.
///
/// # Errors
/// What is expected.
pub fn parse_cols(text: &str) -> Result<usize, String> {
    match text.parse::<u32>() {
        Ok(0) => Err("a product with 0 columns has nothing to compute; N is at least 1".to_owned()),
        Ok(cols) => Ok(cols as usize),
        Err(_) => Err(format!("expected a whole number from 1 to {}", u32::MAX)),
    }
}

fn parse_finite(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        _ => Err("expected a finite number".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_offered_shape_parses() {
        for shape in BlockShape::ALL {
            assert_eq!(format!("bcsr:{shape}").parse(), Ok(FormatChoice::Bcsr(Some(shape))));
        }
        for refused in ["bcsr:48x48", "bcsr:64", "bcsr:64x64x64", "ell", "bcsr:0x0"] {
            refused.parse::<FormatChoice>().unwrap_err();
        }
    }
}
