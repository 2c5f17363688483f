//! The command line of `hopper-sparse recommend`.

use std::num::NonZeroUsize;

use clap::Args;
use hopper_sparse::Dtype;
use hopper_sparse::ops::auto::{DeviceDescription, Question};

use crate::args::{DtypeArg, LayoutArg, ReadArgs, SourceArgs, parse_cols};

/// `hopper-sparse recommend`
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct RecommendArgs {
    #[command(flatten)]
    pub source: SourceArgs,
    #[command(flatten)]
    pub read: ReadArgs,
    /// Columns of B and C
    #[arg(long, short = 'n', value_name = "N", value_parser = parse_cols)]
    pub cols: usize,
    /// Element type of A and B
    #[arg(long, value_enum, default_value_t = DtypeArg::Bf16)]
    pub dtype: DtypeArg,
    /// Element type of C; the type of A and B if not given
    #[arg(long, value_enum)]
    pub c_dtype: Option<DtypeArg>,
    /// Layout of B
    #[arg(long, value_enum, default_value_t = LayoutArg::Row)]
    pub b_layout: LayoutArg,
    /// Layout of C
    #[arg(long, value_enum, default_value_t = LayoutArg::Row)]
    pub c_layout: LayoutArg,
    /// How often the product is launched: so many launches share the preparation
    #[arg(long, value_name = "COUNT", default_value_t = Question::DEFAULT_TIMES, value_parser = clap::value_parser!(u64).range(1..))]
    pub times: u64,
    /// Measure the candidates on a GPU, beside the predictions
    #[arg(long)]
    pub measure: bool,
    /// Timed launches of each candidate [default: 20, fewer where they are slow]
    #[arg(long, value_name = "R", requires = "measure")]
    #[cfg_attr(not(feature = "gpu"), allow(dead_code, reason = "only a GPU measures"))]
    pub repeat: Option<NonZeroUsize>,
    /// Which GPU, counted from 0 [default: the first Hopper one]
    #[arg(long, value_name = "I")]
    pub device: Option<u32>,
    /// Seed of a generated matrix, and of B where it is measured
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  hopper-sparse recommend bcsstk33.mtx --cols 128
  hopper-sparse recommend --gen rmat:16,16 --cols 128 --dtype f32
  hopper-sparse recommend --gen lookalike:cant --cols 256 --times 1
  hopper-sparse recommend bcsstk33.mtx --cols 128 --measure --json

Formats stand in the order of the time of a product, its share of the preparation included. Where there is no GPU, an
H200 is assumed. Times are predicted from the lengths of rows and from how blocks and windows fit; the numbers behind
the predictions are in docs/performance/chooser.md, and those that no record supports are marked.";

impl RecommendArgs {
    /// The question about the matrix.
    pub fn question(&self, device: DeviceDescription) -> Question {
        let dtype = Dtype::from(self.dtype);
        Question {
            num_cols: self.cols,
            dtype,
            output: self.c_dtype.map_or(dtype, Dtype::from),
            b_layout: self.b_layout.into(),
            c_layout: self.c_layout.into(),
            times: self.times,
            device,
        }
    }
}
