//! A linear layer as a workload: Y = X W^T with many zeros in W, and what it costs.

use core::fmt;

use hopper_sparse::Dtype;
use serde::Deserialize;

use super::record::Row;

/// How the zeros of W lie: what pruning methods leave behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum WeightMask {
    /// The same number of zeros in every row: the weights of least magnitude times the importance of their column, as Wanda
    /// (Sun et al., 2024) chooses them.
    Wanda,
    /// Each weight with the same chance, whatever the others are: as many zeros in the whole matrix, not in a row.
    Matrix,
    /// Two weights of every four neighbours in a row, at random places; whatever the sparsity asked for, it is 0.5.
    #[serde(rename = "2:4")]
    #[value(name = "2:4")]
    TwoOfFour,
    /// Some columns without any weight, as SparseGPT (Frantar and Alistarh, 2023) leaves them where an input is always zero; the others
    /// by chance.
    DeadColumns,
}

impl WeightMask {
    /// The name on the command line and in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wanda => "wanda",
            Self::Matrix => "matrix",
            Self::TwoOfFour => "2:4",
            Self::DeadColumns => "dead-columns",
        }
    }
}

impl fmt::Display for WeightMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What W is drawn from: equal ones give equal weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WeightsLaw {
    /// M: outputs, rows of W.
    pub m: usize,
    /// K: inputs, columns of W.
    pub k: usize,
    /// The part of W that is zero, 0 to 1.
    pub sparsity: f64,
    /// Where the zeros lie.
    pub mask: WeightMask,
    /// The type of X, W and Y.
    pub dtype: Dtype,
    /// Draws places and values.
    pub seed: u64,
}

/// Y (N x M) = X (N x K) W^T, all row-major.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearWorkload {
    /// W, M x K.
    pub weights: WeightsLaw,
    /// N: tokens, rows of X and Y.
    pub tokens: usize,
}

impl LinearWorkload {
    /// Operations of the product with a dense W, a multiply-add being two.
    pub fn dense_flops(&self) -> u64 {
        2 * self.weights.m as u64 * self.weights.k as u64 * self.tokens as u64
    }

    /// Bytes of X and Y together.
    pub fn activation_bytes(&self) -> u64 {
        (self.tokens * (self.weights.m + self.weights.k) * self.weights.dtype.size_bytes()) as u64
    }

    /// Bytes of a dense W.
    pub fn dense_bytes(&self) -> u64 {
        (self.weights.m * self.weights.k * self.weights.dtype.size_bytes()) as u64
    }

    /// Fills in the columns of a record that name the problem.
    pub fn describe(&self, row: &mut Row) {
        let WeightsLaw { m, k, sparsity, mask, dtype, seed } = self.weights;
        (row.m, row.n, row.k) = (Some(m as u64), Some(self.tokens as u64), Some(k as u64));
        row.sparsity = Some(sparsity);
        mask.name().clone_into(&mut row.mask);
        (row.dtype, row.c_dtype) = (dtype.to_string(), dtype.to_string());
        row.seed = seed;
    }
}

impl fmt::Display for LinearWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WeightsLaw { m, k, sparsity, mask, dtype, .. } = self.weights;
        let percent = 100.0 * sparsity;
        write!(f, "{} tokens, {k} -> {m}, {percent:.0} % zeros ({mask}), {dtype}", self.tokens)
    }
}
