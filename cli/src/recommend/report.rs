//! What `recommend` prints: a table for people, one JSON object for machines.

use hopper_sparse::ops::auto::{Candidate, PassedOver, Question, Recommendation, Refused};
use serde_json::{Value, json};

use super::{Measured, RecommendArgs};
use crate::input::Input;
use crate::table::{Table, bytes, count, percent, seconds, significant};

/// Everything that was found out.
pub struct Report<'a> {
    /// What was asked for.
    pub args: &'a RecommendArgs,
    /// The matrix and where it came from.
    pub input: &'a Input,
    /// The question about it.
    pub question: &'a Question,
    /// The answer.
    pub found: &'a Recommendation,
    /// Why the device is assumed, where it is.
    pub assumed: Option<&'a str>,
    /// What the candidates took, in their order, where that was asked for.
    pub measured: Option<Vec<Measured>>,
}

impl Report<'_> {
    /// For people.
    pub fn table(&self) -> Table {
        let (matrix, question) = (&self.input.matrix, self.question);
        let sizes = [matrix.num_rows(), matrix.num_cols(), matrix.num_entries()].map(|size| count(size as u64));
        let mut table = Table::default();
        table.row("matrix", format!("{} ({})", self.input.name, self.input.kind));
        table.more(format!("{} x {}, {} nonzeros", sizes[0], sizes[1], sizes[2]));
        let columns = if question.num_cols == 1 { "column" } else { "columns" };
        table.row(
            "product",
            format!(
                "{} {columns}, A and B in {}, C in {}; launched {} times",
                count(question.num_cols as u64),
                question.dtype,
                question.output,
                count(question.times)
            ),
        );
        table.row("device", self.found.device.to_string());
        if let Some(reason) = self.assumed {
            table.more(format!("assumed: {reason}"));
        }
        if let Some(best) = self.found.best() {
            table.row("best", format!("{}, {} a product", best.format, seconds(best.seconds())));
        }
        self.describe_candidates(&mut table);
        self.describe_measured(&mut table);
        for PassedOver { format, least_seconds } in &self.found.passed_over {
            let least = seconds(*least_seconds);
            table.row(
                "",
                format!("{format:12} passed over: at least {least} by the lengths of rows and the preparation"),
            );
        }
        for Refused { format, refusal } in &self.found.refused {
            table.row("", format!("{format:12} refused: {refusal}"));
        }
        table
    }

    fn describe_candidates(&self, table: &mut Table) {
        table.row("formats", "a launch; prepared in; size of A; share filled; rows of B fetched; GFLOP; bound by");
        for candidate in &self.found.candidates {
            table.more(format!(
                "{:12} {:>8}; {:>8}; {:>10}; {:>6}; {:>10}; {:>5}; {}{}",
                candidate.format,
                seconds(candidate.launch_seconds()),
                seconds(candidate.preparation_seconds),
                bytes(candidate.bytes),
                percent(candidate.fill),
                count(candidate.fetched_rows),
                significant(candidate.operations * 1e-9),
                candidate.bound().name(),
                if candidate.is_measured() { "" } else { " *" },
            ));
        }
        if self.found.candidates.iter().any(|candidate| !candidate.is_measured()) {
            table.more("* predicted, not measured: no record of the kernels as they are supports the number");
        }
    }

    fn describe_measured(&self, table: &mut Table) {
        let Some(measured) = &self.measured else { return };
        table.row("measured", "a launch, median; prepared in, with the first launch");
        for Measured { format, times } in measured {
            match times {
                Ok(times) => {
                    table.more(format!("{format:12} {:>8}; {:>8}", seconds(times.launch), seconds(times.preparation)))
                }
                Err(error) => table.more(format!("{format:12} {error}")),
            };
        }
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let (matrix, question) = (&self.input.matrix, self.question);
        let layout =
            |layout| if layout == hopper_sparse::formats::Layout::RowMajor { "row-major" } else { "column-major" };
        json!({
            "matrix": {
                "name": self.input.name,
                "rows": matrix.num_rows(),
                "cols": matrix.num_cols(),
                "nonzeros": matrix.num_entries(),
            },
            "product": {
                "cols": question.num_cols,
                "dtype": question.dtype.name(),
                "c_dtype": question.output.name(),
                "b_layout": layout(question.b_layout),
                "c_layout": layout(question.c_layout),
                "times": question.times,
                "seed": self.args.seed,
            },
            "device": {
                "name": self.found.device.name,
                "multiprocessors": self.found.device.num_multiprocessors,
                "l2_bytes": self.found.device.l2_bytes,
                "assumed": self.assumed,
            },
            "best": self.found.best().map(|best| best.format.to_string()),
            "candidates": self.found.candidates.iter().map(candidate).collect::<Vec<_>>(),
            "passed_over": self.found.passed_over.iter().map(|one| json!({
                "format": one.format.to_string(),
                "least_seconds": one.least_seconds,
            })).collect::<Vec<_>>(),
            "refused": self.found.refused.iter().map(|one| json!({
                "format": one.format.to_string(),
                "reason": one.refusal.to_string(),
            })).collect::<Vec<_>>(),
            "measured": self.measured.as_ref().map(|all| all.iter().map(measurement).collect::<Vec<_>>()),
        })
    }
}

fn candidate(candidate: &Candidate) -> Value {
    let parts = candidate.cost.overlapping.iter().map(
        |(bound, part)| json!({ "bound": bound.name(), "seconds": part.seconds, "origin": part.origin.to_string() }),
    );
    json!({
        "format": candidate.format.to_string(),
        "seconds": candidate.seconds(),
        "launch_seconds": candidate.launch_seconds(),
        "preparation_seconds": candidate.preparation_seconds,
        "bytes": candidate.bytes,
        "stored_elements": candidate.stored_elements,
        "fill": candidate.fill,
        "fetched_rows": candidate.fetched_rows,
        "operations": candidate.operations,
        "bound": candidate.bound().name(),
        "parts": parts.collect::<Vec<_>>(),
        "note": candidate.note,
        "is_measured": candidate.is_measured(),
    })
}

fn measurement(measured: &Measured) -> Value {
    let (times, error) = (measured.times.as_ref().ok(), measured.times.as_ref().err());
    json!({
        "format": measured.format,
        "launch_seconds": times.map(|times| times.launch),
        "preparation_seconds": times.map(|times| times.preparation),
        "error": error,
    })
}
