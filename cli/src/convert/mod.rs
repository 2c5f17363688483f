//! `hopper-sparse convert`: Matrix Market to packed safetensors, and back; a model's checkpoint to one packed file.

mod args;
mod checkpoint;

use std::time::Instant;

use hopper_sparse::formats::{AnyBcsr, BlockShape, Csr, CsrPattern, FillStatistics};
use hopper_sparse::io::matrix_market::{self, WriteOptions};
use hopper_sparse::io::{Existing, packed};
use hopper_sparse::{Dtype, Element, bf16, f16};
use serde_json::{Value, json};

pub use args::{ConvertArgs, ConvertFormat};

use crate::args::FormatChoice;
use crate::choose::{self, Choice, Storage};
use crate::error::{CliError, Result};
use crate::files::{self, FileKind};
use crate::input::{self, Input};
use crate::table::{Table, bytes, count, percent, seconds, significant};
use crate::{memory, output, print, print_json, progress};

/// Runs the verb.
///
/// # Errors
/// Usage where the names or the options say nothing that can be done, a failure where a file cannot be read or written.
pub fn run(args: &ConvertArgs) -> Result<()> {
    if args.input.is_dir() {
        return checkpoint::run(args);
    }
    FileKind::of(&args.input)?;
    let kind = FileKind::of(args.output.path())?;
    let format = match args.format.map(ConvertFormat::of_matrix) {
        Some(None) => return Err(CliError::usage("that is a format of a model's layers, not of a matrix")),
        Some(format) => format,
        None => None,
    };
    if matches!((kind, format), (FileKind::MatrixMarket, Some(FormatChoice::Bcsr(_)))) {
        return Err(CliError::usage("a Matrix Market file holds entries, not blocks")
            .hint("write a .safetensors file, or leave --format out"));
    }
    output::check(args.output.path(), args.existing())?;
    let input = input::read(&args.input, &args.read)?;
    let dtype = match (args.dtype, input.dtype, kind) {
        (Some(dtype), _, _) => dtype.into(),
        (None, Some(dtype), _) => dtype,
        (None, None, FileKind::Packed) => Dtype::F32,
        (None, None, FileKind::MatrixMarket) => Dtype::F64,
    };
    match dtype {
        Dtype::Bf16 => convert_to::<bf16>(args, (kind, format), &input),
        Dtype::F16 => convert_to::<f16>(args, (kind, format), &input),
        Dtype::F32 => convert_to::<f32>(args, (kind, format), &input),
        Dtype::F64 => convert_to::<f64>(args, (kind, format), &input),
    }
}

fn convert_to<T: Element>(
    args: &ConvertArgs,
    (kind, format): (FileKind, Option<FormatChoice>),
    input: &Input,
) -> Result<()> {
    let matrix: Csr<T> = input.matrix.cast();
    let num_rounded = count_rounded(&input.matrix, &matrix);
    let Choice { storage, reason } = match kind {
        FileKind::MatrixMarket => Choice { storage: Storage::Csr, reason: None },
        FileKind::Packed => choose_storage(format, input, &matrix),
    };
    let spinner = progress::spinner(format!("writing {}", args.output.path().display()));
    let start = Instant::now();
    write(args, kind, storage, &matrix)?;
    let seconds = start.elapsed().as_secs_f64();
    spinner.finish_and_clear();
    let report = Report {
        args,
        input,
        kind,
        storage,
        reason,
        dtype: T::DTYPE,
        num_rounded,
        rows: Rows::of(matrix.pattern()),
        seconds,
    };
    if args.json { print_json(&report.json()) } else { print(|out| report.table().write(out)) }
}

fn choose_storage<T: Element>(format: Option<FormatChoice>, input: &Input, matrix: &Csr<T>) -> Choice {
    let fit = |shape| (shape, FillStatistics::of(matrix.view(), shape));
    let blocks = |(shape, statistics), reason| Choice { storage: Storage::Bcsr(shape, statistics), reason };
    match (format, input.block) {
        (Some(FormatChoice::Bcsr(Some(shape))), _) => blocks(fit(shape), None),
        (None, Some(shape)) => blocks(fit(shape), Some("as in the input".to_owned())),
        (None | Some(FormatChoice::Csr), _) => Choice { storage: Storage::Csr, reason: None },
        (Some(FormatChoice::Auto), _) => choose::for_cpu(&BlockShape::ALL.map(fit)),
        (Some(FormatChoice::Bcsr(None)), _) => choose::fullest(&BlockShape::ALL.map(fit)),
    }
}

/// Blocks are built, where blocks are wanted, before the output is begun.
fn write<T: Element>(args: &ConvertArgs, kind: FileKind, storage: Storage, matrix: &Csr<T>) -> Result<()> {
    let (path, existing) = (args.output.path(), args.existing());
    match (kind, storage) {
        (FileKind::MatrixMarket, _) => output::write_whole(path, existing, |path| {
            matrix_market::write(path, matrix.view(), &WriteOptions::default())
        }),
        (FileKind::Packed, Storage::Csr) => {
            output::write_whole(path, existing, |path| packed::save_csr(path, matrix.view(), Existing::Refuse))
        }
        (FileKind::Packed, Storage::Bcsr(shape, statistics)) => {
            memory::check(&format!("the matrix in blocks of {shape}"), storage_bytes::<T>(shape, &statistics))?;
            let blocks = AnyBcsr::from_csr(matrix.view(), shape).map_err(CliError::failure)?;
            output::write_whole(path, existing, |path| packed::save_bcsr(path, blocks.view(), Existing::Refuse))
        }
    }
}

fn storage_bytes<T: Element>(shape: BlockShape, statistics: &FillStatistics) -> u128 {
    u128::from(statistics.num_blocks) * (shape.num_elements() * T::DTYPE.size_bytes()) as u128
}

/// How many values the output's type could not hold as they were.
fn count_rounded<T: Element>(before: &Csr<f64>, after: &Csr<T>) -> usize {
    let is_kept = |before: f64, after: T| before == after.to_f64() || (before.is_nan() && after.to_f64().is_nan());
    before.values().iter().zip(after.values()).filter(|&(&before, &after)| !is_kept(before, after)).count()
}

/// Entries of the rows.
struct Rows {
    fewest: u64,
    most: u64,
    num_empty: usize,
}

impl Rows {
    fn of(pattern: &CsrPattern) -> Self {
        let lengths = || pattern.row_offsets().windows(2).map(|offsets| offsets[1] - offsets[0]);
        Self {
            fewest: lengths().min().unwrap_or(0),
            most: lengths().max().unwrap_or(0),
            num_empty: lengths().filter(|&length| length == 0).count(),
        }
    }
}

struct Report<'a> {
    args: &'a ConvertArgs,
    input: &'a Input,
    kind: FileKind,
    storage: Storage,
    reason: Option<String>,
    dtype: Dtype,
    num_rounded: usize,
    rows: Rows,
    seconds: f64,
}

impl Report<'_> {
    fn format_name(&self) -> String {
        match (self.kind, self.storage) {
            (FileKind::MatrixMarket, _) => "Matrix Market".to_owned(),
            (FileKind::Packed, Storage::Csr) => "csr".to_owned(),
            (FileKind::Packed, Storage::Bcsr(shape, _)) => format!("bcsr:{shape}"),
        }
    }

    fn statistics(&self) -> Option<FillStatistics> {
        match self.storage {
            Storage::Csr => None,
            Storage::Bcsr(_, statistics) => Some(statistics),
        }
    }

    fn table(&self) -> Table {
        let matrix = &self.input.matrix;
        let (num_rows, entries) = (matrix.num_rows(), matrix.num_entries());
        let mean = if num_rows == 0 { 0.0 } else { entries as f64 / num_rows as f64 };
        let mut table = Table::default();
        table.row(
            "input",
            format!(
                "{} ({}), {}; read in {}",
                self.input.name,
                self.input.kind,
                bytes(files::size(&self.args.input)),
                seconds(self.input.seconds)
            ),
        );
        table.row(
            "matrix",
            format!(
                "{} x {}, {} nonzeros",
                count(num_rows as u64),
                count(matrix.num_cols() as u64),
                count(entries as u64)
            ),
        );
        table.more(format!(
            "{} to {} a row, {} on average; {} empty rows",
            count(self.rows.fewest),
            count(self.rows.most),
            significant(mean),
            count(self.rows.num_empty as u64)
        ));
        table.row("format", format!("{}, {}", self.format_name(), self.dtype));
        if let Some(statistics) = self.statistics() {
            table.more(format!(
                "{} blocks, {} of all; {} full",
                count(statistics.num_blocks),
                percent(statistics.block_density),
                percent(statistics.fill)
            ));
        }
        if let Some(reason) = &self.reason {
            table.more(reason.clone());
        }
        if self.num_rounded > 0 {
            table.more(format!("{} values were rounded to {}", count(self.num_rounded as u64), self.dtype));
        }
        table.row(
            "output",
            format!(
                "{}, {}; written in {}",
                self.args.output.path().display(),
                bytes(files::size(self.args.output.path())),
                seconds(self.seconds)
            ),
        );
        table
    }

    fn json(&self) -> Value {
        let matrix = &self.input.matrix;
        let statistics = self.statistics();
        json!({
            "input": {
                "name": self.input.name,
                "kind": self.input.kind,
                "bytes": files::size(&self.args.input),
                "seconds": self.input.seconds,
            },
            "matrix": {
                "rows": matrix.num_rows(),
                "cols": matrix.num_cols(),
                "nonzeros": matrix.num_entries(),
                "row_min": self.rows.fewest,
                "row_max": self.rows.most,
                "empty_rows": self.rows.num_empty,
            },
            "format": {
                "name": self.format_name(),
                "dtype": self.dtype.name(),
                "blocks": statistics.map(|statistics| statistics.num_blocks),
                "block_density": statistics.map(|statistics| statistics.block_density),
                "fill": statistics.map(|statistics| statistics.fill),
                "reason": self.reason,
                "rounded_values": self.num_rounded,
            },
            "output": {
                "name": self.args.output.path().display().to_string(),
                "bytes": files::size(self.args.output.path()),
                "seconds": self.seconds,
            },
        })
    }
}
