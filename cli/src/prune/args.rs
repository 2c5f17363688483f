//! The options of `hopper-sparse prune`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hopper_sparse::io::Existing;
use hopper_sparse::prune::Pattern;

use crate::error::{CliError, Result};

/// `hopper-sparse prune`
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct PruneArgs {
    /// The directory of the model: config.json and safetensors files
    #[arg(value_name = "MODEL_DIR")]
    pub input: PathBuf,
    /// The directory to write
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// What a weight counts for
    #[arg(long, value_enum)]
    pub method: Method,
    /// The share of weights to remove, 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    pub sparsity: Option<f64>,
    /// Norms of the layers' inputs: a safetensors file of F32 vectors, named as the weights or their modules
    #[arg(long, value_name = "FILE")]
    pub norms: Option<PathBuf>,
    /// Which weights may go
    #[arg(long, value_enum, default_value_t = PatternChoice::Unstructured)]
    pub pattern: PatternChoice,
    /// Where the share is counted [default: row for wanda, matrix for magnitude]
    #[arg(long, value_enum)]
    pub scope: Option<Scope>,
    /// Write all files anew, and replace those that exist
    #[arg(long)]
    pub force: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  hopper-sparse prune Llama-2-7b-hf --out pruned --method magnitude --sparsity 0.5
  hopper-sparse prune Llama-2-7b-hf --out pruned --method wanda --sparsity 0.6 --norms norms.safetensors
  hopper-sparse prune Llama-2-7b-hf --out pruned --method wanda --pattern 2:4 --norms norms.safetensors

The weights of linear layers in decoder blocks get exact zeros; all other tensors and small files are copied. A file
appears whole or not at all. After an interruption the same command goes on: finished files are known again, unless
--force is given. Without --norms every input of wanda counts the same.";

/// What a weight counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Method {
    /// Its size
    Magnitude,
    /// Its size times the norm of its input
    Wanda,
}

/// Which weights may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PatternChoice {
    /// Any
    Unstructured,
    /// Two of each four neighbours
    #[value(name = "2:4")]
    TwoOfFour,
}

/// Where the share of removed weights is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scope {
    /// In each row
    Row,
    /// In each matrix: its rows may be unlike
    Matrix,
}

impl PruneArgs {
    /// What to do about files that exist.
    pub fn existing(&self) -> Existing {
        if self.force { Existing::Replace } else { Existing::Refuse }
    }

    /// What the options come to.
    ///
    /// # Errors
    /// Usage where they contradict each other.
    pub fn pattern(&self) -> Result<Pattern> {
        if self.method == Method::Magnitude && self.norms.is_some() {
            return Err(CliError::usage("magnitude has no use for norms of inputs").hint("--method wanda has"));
        }
        match (self.pattern, self.sparsity, self.scope) {
            (PatternChoice::TwoOfFour, None, None) => Ok(Pattern::TwoOfFour),
            (PatternChoice::TwoOfFour, _, _) => {
                Err(CliError::usage("2:4 removes two of four, so --sparsity and --scope have nothing to say"))
            }
            (PatternChoice::Unstructured, None, _) => Err(CliError::usage("--sparsity is missing")),
            (PatternChoice::Unstructured, Some(sparsity), scope) => Ok(match (scope, self.method) {
                (Some(Scope::Row), _) | (None, Method::Wanda) => Pattern::Rows { sparsity },
                (Some(Scope::Matrix), _) | (None, Method::Magnitude) => Pattern::Matrix { sparsity },
            }),
        }
    }
}

fn parse_share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("expected a number from 0 to 1".to_owned()),
    }
}
