//! What a packed file says of one of its layers.

use serde_json::{Value, json};

use super::super::error::WeightError;
use super::{RowBalance, WeightFormat};
use crate::element::Dtype;

/// A packed layer, described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerEntry {
    /// The weight's name.
    pub name: String,
    /// How it is stored.
    pub format: WeightFormat,
    /// Number of rows, M.
    pub num_rows: usize,
    /// Number of columns, K.
    pub num_cols: usize,
    /// The type of its elements.
    pub dtype: Dtype,
    /// How its nonzeros are spread.
    pub balance: RowBalance,
    /// Bytes of its parts.
    pub num_bytes: u64,
}

impl LayerEntry {
    /// Bytes of the dense matrix.
    pub fn dense_bytes(&self) -> u64 {
        self.num_elements() * self.dtype.size_bytes() as u64
    }

    /// Rows times columns.
    pub fn num_elements(&self) -> u64 {
        self.num_rows as u64 * self.num_cols as u64
    }

    /// The share of zeros; 0 where there are no elements.
    pub fn sparsity(&self) -> f64 {
        1.0 - ratio(self.balance.num_nonzeros as f64, self.num_elements() as f64, 1.0)
    }

    /// Nonzeros of a row on average.
    pub fn row_mean(&self) -> f64 {
        ratio(self.balance.num_nonzeros as f64, self.num_rows as f64, 0.0)
    }

    /// Bytes stored for each element of the dense matrix.
    pub fn bytes_per_element(&self) -> f64 {
        ratio(self.num_bytes as f64, self.num_elements() as f64, 0.0)
    }

    /// Dense bytes over stored bytes: what a product that only waits for its weights can win at most.
    pub fn speed_up_bound(&self) -> f64 {
        ratio(self.dense_bytes() as f64, self.num_bytes as f64, 1.0)
    }

    /// As the metadata have it; `num_bytes` follows from the parts.
    pub(super) fn to_json(&self) -> Value {
        json!({
            "format": self.format.name(),
            "shape": [self.num_rows, self.num_cols],
            "dtype": self.dtype.name(),
            "nonzeros": self.balance.num_nonzeros,
            "row_min": self.balance.row_min,
            "row_max": self.balance.row_max,
        })
    }

    pub(super) fn from_json(name: &str, entry: &Value, num_bytes: u64) -> Result<Self, WeightError> {
        let refuse = |key| WeightError::Entry { key };
        let number = |key| entry[key].as_u64().ok_or(refuse(key));
        let format = entry["format"].as_str().and_then(|name| name.parse().ok()).ok_or(refuse("format"))?;
        let size = |index: usize| entry["shape"][index].as_u64().and_then(|size| usize::try_from(size).ok());
        let (num_rows, num_cols) = size(0).zip(size(1)).ok_or(refuse("shape"))?;
        // The product of both is asked for without a further check.
        num_rows.checked_mul(num_cols).ok_or(refuse("shape"))?;
        let dtype = entry["dtype"].as_str();
        let dtype = [Dtype::F32, Dtype::F16, Dtype::Bf16].into_iter().find(|known| Some(known.name()) == dtype);
        let balance =
            RowBalance { num_nonzeros: number("nonzeros")?, row_min: number("row_min")?, row_max: number("row_max")? };
        let name = name.to_owned();
        Ok(Self { name, format, num_rows, num_cols, dtype: dtype.ok_or(refuse("dtype"))?, balance, num_bytes })
    }
}

/// A quotient, or `otherwise` where there is nothing to divide by.
fn ratio(numerator: f64, denominator: f64, otherwise: f64) -> f64 {
    if denominator == 0.0 { otherwise } else { numerator / denominator }
}
