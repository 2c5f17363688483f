//! What `attention` prints: a short table for people, one JSON object for machines.

use hopper_sparse::ops::attention::{Attention, AttentionPlan};
use serde_json::{Value, json};

use super::AttentionArgs;
use super::check::Check;
use crate::error::Result;
use crate::samples::Samples;
use crate::table::{Table, bytes, count, rate, seconds, significant};
use crate::{print, print_json};

/// What computed, and why.
pub struct Backend {
    /// For people.
    pub text: String,
    /// For machines: an object.
    pub json: Value,
    /// Why, where it was not asked for.
    pub reason: Option<String>,
}

/// Everything that a run found out.
pub struct Report<'a> {
    /// What was asked for.
    pub args: &'a AttentionArgs,
    /// What was computed.
    pub problem: &'a Attention,
    /// What was chosen, where kernels computed.
    pub plan: Option<&'a AttentionPlan>,
    /// What computed.
    pub backend: Backend,
    /// Seconds that the preparation took.
    pub preparation: f64,
    /// The times; none where the result is wrong, or time says nothing.
    pub samples: Option<Samples>,
    /// The comparison, where it was asked for.
    pub check: Option<Check>,
}

impl Report<'_> {
    /// Prints the table, or the JSON object where that was asked for.
    ///
    /// # Errors
    /// A failure where stdout cannot be written.
    pub fn print(&self) -> Result<()> {
        if self.args.json { print_json(&self.json()) } else { print(|out| self.table().write(out)) }
    }

    /// Operations of Q K^T and P V for the pairs of a row and a key that it sees.
    fn operations(&self) -> f64 {
        4.0 * self.problem.num_pairs() as f64 * self.problem.head_dim as f64
    }

    /// Bytes of Q and O, and of K and V, each.
    fn tensor_bytes(&self) -> [u64; 2] {
        [self.problem.query_shape(), self.problem.key_shape()].map(|shape| {
            (shape.batch * shape.tokens * shape.heads * shape.head_dim * self.problem.dtype.size_bytes()) as u64
        })
    }

    fn table(&self) -> Table {
        let mut table = Table::default();
        table.row("problem", self.problem.to_string());
        table.more(format!("scale {}, {} a launch", significant(self.problem.scale.into()), self.operations_text()));
        table.row("backend", self.backend.text.clone());
        if let Some(reason) = &self.backend.reason {
            table.more(reason.clone());
        }
        if let Some(plan) = self.plan {
            table.row("plan", plan.to_string());
        }
        let [q, k] = self.tensor_bytes().map(bytes);
        table.row("memory", format!("Q and O {q} each, K and V {k} each"));
        table.row("prepared", format!("in {}", seconds(self.preparation)));
        match (&self.samples, &self.check) {
            (Some(samples), _) => {
                let (fastest, slowest) = (seconds(samples.fastest()), seconds(samples.slowest()));
                let median = seconds(samples.median());
                table.row("time", format!("{median}, median of {} ({fastest} to {slowest})", samples.count()));
                table.row("rate", rate(self.operations() / samples.median(), "FLOP"));
            }
            (None, Some(check)) if !check.is_accepted() => {
                table.row("time", "none: a wrong result has no time");
            }
            (None, _) => {
                table.row("time", "none: that of a simulator says nothing");
            }
        }
        if let Some(check) = &self.check {
            let [compared, all] = check.num_rows.map(|rows| rows as u64);
            let rows = if compared < all {
                format!("{} of {} rows", count(compared), count(all))
            } else {
                "every row".to_owned()
            };
            table.row("check", check.to_string());
            table.more(format!("against float64, {rows}; largest error {}", significant(check.error.max_abs)));
        }
        table
    }

    fn operations_text(&self) -> String {
        format!("{} GFLOP", significant(self.operations() * 1e-9))
    }

    fn json(&self) -> Value {
        let problem = self.problem;
        let [q, k] = self.tensor_bytes();
        let mut backend = self.backend.json.clone();
        backend["reason"] = json!(self.backend.reason);
        json!({
            "problem": {
                "text": problem.to_string(),
                "sequences": problem.queries.num_sequences(),
                "queries": problem.queries.longest(),
                "keys": problem.keys.longest(),
                "heads": problem.num_query_heads,
                "kv_heads": problem.num_key_heads,
                "head_dim": problem.head_dim,
                "dtype": problem.dtype.name(),
                "window": problem.window.to_string(),
                "scale": problem.scale,
                "softcap": problem.softcap,
                "seed": self.args.seed,
                "flops": self.operations(),
            },
            "backend": backend,
            "plan": self.plan.map(ToString::to_string),
            "bytes": { "q": q, "k": k, "v": k, "o": q },
            "preparation_seconds": self.preparation,
            "time": self.samples.as_ref().map(|samples| json!({
                "repeat": samples.count(),
                "median_seconds": samples.median(),
                "min_seconds": samples.fastest(),
                "max_seconds": samples.slowest(),
                "flops": self.operations() / samples.median(),
            })),
            "check": self.check.as_ref().map(|check| json!({
                "accepted": check.is_accepted(),
                "sentence": check.to_string(),
                "rows": check.num_rows[0],
                "relative_frobenius": check.error.relative_frobenius,
                "relative_frobenius_allowed": check.tolerance.values.relative_frobenius,
                "max_abs": check.error.max_abs,
                "lse": check.lse.to_string(),
            })),
        })
    }
}
