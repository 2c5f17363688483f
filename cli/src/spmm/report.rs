//! What `spmm` prints: a short table for people, one JSON object for machines.

use hopper_sparse::Dtype;
use hopper_sparse::formats::Layout;
use serde_json::{Value, json};

use super::check::Check;
use super::limit::{Limit, Machine};
use super::plan::{Plan, Stored, WindowFit};
use crate::args::SpmmArgs;
use crate::error::Result;
use crate::input::Input;
use crate::samples::Samples;
use crate::table::{Table, bytes, count, percent, rate, seconds, significant};
use crate::{print, print_json};

/// Everything that a run found out.
pub struct Report<'a> {
    /// What was asked for.
    pub args: &'a SpmmArgs,
    /// The matrix and where it came from.
    pub input: &'a Input,
    /// What was chosen.
    pub plan: &'a Plan,
    /// The kernel and how it is launched, where a GPU computes.
    pub kernel: Option<String>,
    /// The types of A and B, and of C.
    pub types: (Dtype, Dtype),
    /// Seconds that the preparation took.
    pub preparation: f64,
    /// The times; none where the result is wrong.
    pub samples: Option<Samples>,
    /// What the machine can do; none where there are no times.
    pub machine: Option<Machine>,
    /// The comparison, where it was asked for.
    pub check: Option<Check>,
}

/// Bytes of the three matrices.
struct Sizes {
    a: u64,
    b: u64,
    c: u64,
}

/// What the median time says.
struct Performance {
    seconds: f64,
    of_nonzeros: f64,
    of_stored: f64,
    limit: Limit,
}

impl Report<'_> {
    /// Prints the table, or the JSON object where that was asked for.
    ///
    /// # Errors
    /// A failure where stdout cannot be written.
    pub fn print(&self) -> Result<()> {
        if self.args.json { print_json(&self.json()) } else { print(|out| self.table().write(out)) }
    }

    fn sizes(&self) -> Sizes {
        let (matrix, cols) = (&self.input.matrix, self.args.cols as u64);
        let (input, output) = (self.types.0.size_bytes() as u64, self.types.1.size_bytes() as u64);
        let a = match self.plan.storage {
            Stored::Csr => matrix.num_entries() as u64 * (4 + input) + (matrix.num_rows() as u64 + 1) * 8,
            Stored::Bcsr(shape, statistics) => {
                statistics.num_blocks * (4 + shape.num_elements() as u64 * input)
                    + (matrix.num_rows().div_ceil(shape.rows) as u64 + 1) * 8
            }
            Stored::Wcsr(_, fit) => fit.bytes,
        };
        Sizes { a, b: matrix.num_cols() as u64 * cols * input, c: matrix.num_rows() as u64 * cols * output }
    }

    /// Elements of A that are multiplied, zeros in blocks included.
    fn stored_elements(&self) -> u64 {
        match self.plan.storage {
            Stored::Csr => self.input.matrix.num_entries() as u64,
            Stored::Bcsr(shape, statistics) => statistics.num_blocks * shape.num_elements() as u64,
            Stored::Wcsr(_, fit) => fit.stored_elements,
        }
    }

    fn performance(&self) -> Option<Performance> {
        let (samples, machine) = (self.samples.as_ref()?, self.machine.as_ref()?);
        let seconds = samples.median();
        let operations = |elements: u64| 2.0 * elements as f64 * self.args.cols as f64;
        let (nonzeros, stored) =
            (operations(self.input.matrix.num_entries() as u64), operations(self.stored_elements()));
        let Sizes { a, b, c } = self.sizes();
        let c_moves = if self.args.beta == 0.0 { 1 } else { 2 };
        let limit = Limit::of(machine, a + b + c_moves * c, stored);
        Some(Performance { seconds, of_nonzeros: nonzeros / seconds, of_stored: stored / seconds, limit })
    }

    fn table(&self) -> Table {
        let mut table = Table::default();
        self.describe_problem(&mut table);
        self.describe_plan(&mut table);
        self.describe_times(&mut table);
        self.describe_check(&mut table);
        table
    }

    fn describe_problem(&self, table: &mut Table) {
        let matrix = &self.input.matrix;
        let (rows, cols, entries) = (matrix.num_rows() as u64, matrix.num_cols() as u64, matrix.num_entries() as u64);
        let a_row = if rows == 0 { 0.0 } else { entries as f64 / rows as f64 };
        table.row("matrix", format!("{} ({})", self.input.name, self.input.kind));
        table.more(format!(
            "{} x {}, {} nonzeros, {} a row; {} in {}",
            count(rows),
            count(cols),
            count(entries),
            significant(a_row),
            if self.args.source.file.is_some() { "read" } else { "generated" },
            seconds(self.input.seconds)
        ));
        let (input, output) = self.types;
        table.row(
            "product",
            format!(
                "C = {}A B{}, {}; {}; {}",
                match self.args.alpha {
                    1.0 => String::new(),
                    alpha => format!("{alpha} "),
                },
                match self.args.beta {
                    0.0 => String::new(),
                    beta => format!(" + {beta} C"),
                },
                match self.args.cols {
                    1 => "1 column".to_owned(),
                    cols => format!("{} columns", count(cols as u64)),
                },
                if input == output { format!("all in {input}") } else { format!("A and B in {input}, C in {output}") },
                layout_names(self.args.b_layout.into(), self.args.c_layout.into()),
            ),
        );
    }

    fn describe_plan(&self, table: &mut Table) {
        table.row("backend", self.plan.computer.description());
        if let Some(reason) = &self.plan.computer.reason {
            table.more(reason.clone());
        }
        match self.plan.storage {
            Stored::Csr => table.row("format", "csr"),
            Stored::Wcsr(window, WindowFit { stored_elements, fill, .. }) => table.row(
                "format",
                format!("wcsr:{window}, {} stored elements; {} full", count(stored_elements), percent(fill)),
            ),
            Stored::Bcsr(shape, statistics) => table.row(
                "format",
                format!(
                    "bcsr:{shape}, {} blocks, {} of all; {} full",
                    count(statistics.num_blocks),
                    percent(statistics.block_density),
                    percent(statistics.fill)
                ),
            ),
        };
        if let Some(reason) = &self.plan.storage_reason {
            table.more(reason.clone());
        }
        if let Some(kernel) = &self.kernel {
            table.row("kernel", kernel.clone());
        }
        let Sizes { a, b, c } = self.sizes();
        table.row("memory", format!("A {}, B {}, C {}", bytes(a), bytes(b), bytes(c)));
    }

    fn describe_times(&self, table: &mut Table) {
        table.row("prepared", format!("in {}", seconds(self.preparation)));
        let (Some(samples), Some(performance)) = (&self.samples, self.performance()) else {
            table.row("time", "none: a wrong result has no time");
            return;
        };
        table.row(
            "time",
            format!(
                "{}, median of {} ({} to {})",
                seconds(performance.seconds),
                samples.count(),
                seconds(samples.fastest()),
                seconds(samples.slowest())
            ),
        );
        let nonzeros = format!("{} of nonzeros", rate(performance.of_nonzeros, "FLOP"));
        table.row(
            "rate",
            match self.plan.storage {
                Stored::Csr => nonzeros,
                _ => format!("{nonzeros}, {} of stored elements", rate(performance.of_stored, "FLOP")),
            },
        );
        let fraction = percent(performance.limit.seconds() / performance.seconds);
        table.row("limit", format!("{fraction} of the {}", performance.limit));
    }

    fn describe_check(&self, table: &mut Table) {
        let Some(check) = &self.check else { return };
        let num_rows = self.input.matrix.num_rows();
        table.row("check", check.verdict.to_string());
        let rows = if check.num_rows < num_rows {
            format!("{} of {} rows", count(check.num_rows as u64), count(num_rows as u64))
        } else {
            "every row".to_owned()
        };
        table.more(format!("against float64, {rows}; largest error {}", significant(check.error.max_abs)));
    }

    fn json(&self) -> Value {
        let matrix = &self.input.matrix;
        let Sizes { a, b, c } = self.sizes();
        let (name, statistics, fill) = match self.plan.storage {
            Stored::Csr => ("csr".to_owned(), None, None),
            Stored::Bcsr(shape, statistics) => (format!("bcsr:{shape}"), Some(statistics), Some(statistics.fill)),
            Stored::Wcsr(window, fit) => (format!("wcsr:{window}"), None, Some(fit.fill)),
        };
        json!({
            "matrix": {
                "name": self.input.name,
                "kind": self.input.kind,
                "rows": matrix.num_rows(),
                "cols": matrix.num_cols(),
                "nonzeros": matrix.num_entries(),
                "seconds": self.input.seconds,
            },
            "product": {
                "cols": self.args.cols,
                "dtype": self.types.0.name(),
                "c_dtype": self.types.1.name(),
                "b_layout": layout_name(self.args.b_layout.into()),
                "c_layout": layout_name(self.args.c_layout.into()),
                "alpha": self.args.alpha,
                "beta": self.args.beta,
                "seed": self.args.seed,
            },
            "backend": self.plan.computer.json(),
            "format": {
                "name": name,
                "reason": self.plan.storage_reason,
                "blocks": statistics.map(|statistics| statistics.num_blocks),
                "block_density": statistics.map(|statistics| statistics.block_density),
                "fill": fill,
                "stored_elements": self.stored_elements(),
            },
            "kernel": self.kernel,
            "bytes": { "a": a, "b": b, "c": c },
            "preparation_seconds": self.preparation,
            "time": self.json_time(),
            "check": self.json_check(),
        })
    }

    fn json_time(&self) -> Value {
        let (Some(samples), Some(performance)) = (&self.samples, self.performance()) else { return Value::Null };
        json!({
            "repeat": samples.count(),
            "median_seconds": performance.seconds,
            "min_seconds": samples.fastest(),
            "max_seconds": samples.slowest(),
            "nonzero_flops": performance.of_nonzeros,
            "stored_flops": performance.of_stored,
            "limit": {
                "name": performance.limit.name(),
                "per_second": performance.limit.rate().per_second,
                "origin": performance.limit.rate().origin.to_string(),
                "seconds": performance.limit.seconds(),
                "fraction": performance.limit.seconds() / performance.seconds,
            },
        })
    }

    fn json_check(&self) -> Value {
        let Some(check) = &self.check else { return Value::Null };
        json!({
            "accepted": check.accepted,
            "sentence": check.verdict.to_string(),
            "rows": check.num_rows,
            "relative_frobenius": check.error.relative_frobenius,
            "relative_frobenius_allowed": check.tolerance.relative_frobenius,
            "max_abs": check.error.max_abs,
            "max_abs_allowed": check.tolerance.max_abs,
            "wrong_specials": check.error.num_wrong_specials,
        })
    }
}

fn layout_names(b: Layout, c: Layout) -> String {
    let (b_name, c_name) = (layout_name(b), layout_name(c));
    if b == c { format!("B and C {b_name}") } else { format!("B {b_name}, C {c_name}") }
}

fn layout_name(layout: Layout) -> &'static str {
    match layout {
        Layout::RowMajor => "row-major",
        Layout::ColumnMajor => "column-major",
    }
}
