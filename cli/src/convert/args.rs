//! The options of `hopper-sparse convert`.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use hopper_sparse::io::Existing;
use hopper_sparse::io::checkpoint::packed::{FormatRule, WeightFormat};

use crate::args::{DtypeArg, FormatChoice, ReadArgs};

/// `hopper-sparse convert`
#[derive(Args, Debug)]
#[command(after_help = CONVERT_EXAMPLES, override_usage = "hopper-sparse convert [OPTIONS] <IN> <OUT|--out <OUT>>")]
pub struct ConvertArgs {
    /// The matrix to read (.mtx, .mtx.gz or .safetensors), or a model's directory
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub read: ReadArgs,
    /// Storage in a safetensors output: csr, bcsr (the fullest block size) or bcsr:RxC; of a model's layers dense, csr or bitmap
    #[arg(long)]
    pub format: Option<ConvertFormat>,
    /// Element type of a safetensors output
    #[arg(long, value_enum)]
    pub dtype: Option<DtypeArg>,
    /// Replace the output where it exists
    #[arg(long)]
    pub force: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// The file to write, with or without a word before it.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub struct OutputArgs {
    /// The file to write: .safetensors, .mtx or .mtx.gz
    #[arg(value_name = "OUT")]
    output: Option<PathBuf>,
    /// The same
    #[arg(long, value_name = "OUT")]
    out: Option<PathBuf>,
}

impl OutputArgs {
    /// The path; one of both options is there.
    pub fn path(&self) -> &Path {
        self.output.as_deref().or(self.out.as_deref()).unwrap_or(Path::new(""))
    }
}

const CONVERT_EXAMPLES: &str = "\
Examples:
  hopper-sparse convert bcsstk33.mtx bcsstk33.safetensors                        CSR, f32
  hopper-sparse convert a.mtx.gz a.safetensors --format bcsr:128x64 --dtype bf16
  hopper-sparse convert a.safetensors a.mtx --force
  hopper-sparse convert MODEL_DIR --out packed.safetensors                       a checkpoint of safetensors files
  hopper-sparse convert MODEL_DIR --out packed.safetensors --dtype bf16

The output appears whole or not at all, and an existing file is kept unless --force is given.

Of a model's directory (model.safetensors, or several files with an index; compressed-tensors' bitmasks too) the weights
of linear layers in decoder blocks are packed, each in the format that takes the fewest bytes, and all other tensors are
kept as they are. Finished layers are kept beside the output until it is whole: after an interruption the same command
goes on with the next one.";

impl ConvertArgs {
    /// What to do about an output that exists.
    pub fn existing(&self) -> Existing {
        if self.force { Existing::Replace } else { Existing::Refuse }
    }
}

/// How a converted matrix, or a model's layers, are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConvertFormat {
    /// A format of matrices; some are formats of layers too.
    Matrix(FormatChoice),
    /// A format of layers alone.
    Weight(WeightFormat),
}

impl ConvertFormat {
    /// Of a matrix, where it is a format of matrices.
    pub fn of_matrix(self) -> Option<FormatChoice> {
        match self {
            Self::Matrix(choice) => Some(choice),
            Self::Weight(_) => None,
        }
    }

    /// Of layers, where it is a format of layers.
    pub fn of_weight(self) -> Option<FormatRule> {
        match self {
            Self::Matrix(FormatChoice::Auto) => Some(FormatRule::Smallest),
            Self::Matrix(FormatChoice::Csr) => Some(FormatRule::Only(WeightFormat::Csr)),
            Self::Matrix(FormatChoice::Bcsr(_)) => None,
            Self::Weight(format) => Some(FormatRule::Only(format)),
        }
    }
}

impl FromStr for ConvertFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text.parse::<FormatChoice>(), text.parse::<WeightFormat>()) {
            (Ok(choice), _) => Ok(Self::Matrix(choice)),
            (Err(_), Ok(format)) => Ok(Self::Weight(format)),
            (Err(of_matrix), Err(of_weight)) => Err(format!("{of_matrix}; of a model's layers: {of_weight}")),
        }
    }
}
