//! `hopper-sparse convert MODEL_DIR`: every layer of a checkpoint in the format that suits it, in one file.

use std::time::Instant;

use hopper_sparse::Dtype;
use hopper_sparse::io::Existing;
use hopper_sparse::io::checkpoint::Checkpoint;
use hopper_sparse::io::checkpoint::packed::{Conversion, ConversionOptions, FormatRule, LayerEntry};
use serde_json::{Value, json};

use super::ConvertArgs;
use crate::columns::Columns;
use crate::error::{CliError, Result};
use crate::files::{self, FileKind};
use crate::table::{Table, bytes, count, percent, seconds, significant};
use crate::{memory, output, print, print_json, progress};

/// Runs the verb.
///
/// # Errors
/// Usage where the options say nothing that can be done, a failure where a file cannot be read or written.
pub fn run(args: &ConvertArgs) -> Result<()> {
    let options = options(args)?;
    let path = args.output.path();
    output::check(path, args.existing())?;
    let start = Instant::now();
    let checkpoint = Checkpoint::open(&args.input).map_err(CliError::failure)?;
    check_memory(&checkpoint)?;
    let mut conversion = Conversion::begin(&checkpoint, path, options).map_err(CliError::failure)?;
    let bar = progress::bar("packing", checkpoint.layers().len() as u64);
    for layer in checkpoint.layers() {
        conversion.pack(layer).map_err(CliError::failure)?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    let spinner = progress::spinner(format!("writing {}", path.display()));
    output::write_whole(path, args.existing(), |path| conversion.assemble(path, Existing::Refuse))?;
    spinner.finish_and_clear();
    let report = Report {
        args,
        checkpoint: &checkpoint,
        layers: conversion.entries().cloned().collect(),
        num_kept: conversion.num_kept(),
        seconds: start.elapsed().as_secs_f64(),
    };
    conversion.remove_folder().map_err(CliError::failure)?;
    if args.json {
        return print_json(&report.json());
    }
    print(|out| {
        report.columns().write(out)?;
        writeln!(out)?;
        report.table().write(out)
    })
}

fn options(args: &ConvertArgs) -> Result<ConversionOptions> {
    if FileKind::of(args.output.path())? != FileKind::Packed {
        return Err(CliError::usage("a checkpoint is packed into a .safetensors file"));
    }
    let rule = match args.format {
        None => FormatRule::Smallest,
        Some(format) => format.of_weight().ok_or_else(|| {
            CliError::usage("blocks are no format of a checkpoint's layers").hint("leave --format out for the smallest")
        })?,
    };
    let dtype = args.dtype.map(Dtype::from);
    if dtype == Some(Dtype::F64) {
        return Err(CliError::usage("layers are packed in bf16, f16 or f32, not in f64"));
    }
    Ok(ConversionOptions { rule, dtype })
}

/// A layer's elements, the same in another type and one packed form are in memory at a time.
fn check_memory(checkpoint: &Checkpoint) -> Result<()> {
    const FORMS: u128 = 3;
    let elements = checkpoint.layers().iter().map(|layer| layer.num_rows as u128 * layer.num_cols as u128);
    memory::check("the largest layer", FORMS * elements.max().unwrap_or(0) * size_of::<f32>() as u128)
}

struct Report<'a> {
    args: &'a ConvertArgs,
    checkpoint: &'a Checkpoint,
    layers: Vec<LayerEntry>,
    num_kept: usize,
    seconds: f64,
}

impl Report<'_> {
    fn sum(&self, of: impl Fn(&LayerEntry) -> u64) -> u64 {
        self.layers.iter().map(of).sum()
    }

    fn columns(&self) -> Columns<11> {
        let mut columns = Columns::new([
            "layer",
            "rows x cols",
            "type",
            "zeros",
            "row min",
            "mean",
            "max",
            "format",
            "bytes",
            "B/element",
            "speed-up <=",
        ]);
        for layer in &self.layers {
            columns.line([
                layer.name.trim_end_matches(".weight").to_owned(),
                format!("{} x {}", layer.num_rows, layer.num_cols),
                layer.dtype.to_string(),
                percent(layer.sparsity()),
                layer.balance.row_min.to_string(),
                significant(layer.row_mean()),
                layer.balance.row_max.to_string(),
                layer.format.to_string(),
                bytes(layer.num_bytes),
                format!("{:.3}", layer.bytes_per_element()),
                format!("{:.2}", layer.speed_up_bound()),
            ]);
        }
        columns
    }

    fn table(&self) -> Table {
        let (stored, dense) = (self.sum(|layer| layer.num_bytes), self.sum(LayerEntry::dense_bytes));
        let (nonzeros, elements) = (self.sum(|layer| layer.balance.num_nonzeros), self.sum(LayerEntry::num_elements));
        let mut table = Table::default();
        table.row(
            "input",
            format!(
                "{}, {} files; {} other tensors are kept as they are",
                self.checkpoint.folder().display(),
                count(self.checkpoint.num_shards() as u64),
                count(self.checkpoint.others().count() as u64)
            ),
        );
        table.row(
            "layers",
            format!(
                "{}, {} zeros; {} of {} dense: at most {:.2} times as fast where the weights' bytes decide",
                count(self.layers.len() as u64),
                percent(1.0 - nonzeros as f64 / elements.max(1) as f64),
                bytes(stored),
                bytes(dense),
                dense as f64 / stored.max(1) as f64
            ),
        );
        if self.num_kept > 0 {
            table.more(format!("{} were packed before", count(self.num_kept as u64)));
        }
        let path = self.args.output.path();
        table
            .row("output", format!("{}, {}; took {}", path.display(), bytes(files::size(path)), seconds(self.seconds)));
        table
    }

    fn json(&self) -> Value {
        let layers: Vec<_> = self
            .layers
            .iter()
            .map(|layer| {
                json!({
                    "name": layer.name,
                    "rows": layer.num_rows,
                    "cols": layer.num_cols,
                    "dtype": layer.dtype.name(),
                    "sparsity": layer.sparsity(),
                    "row_min": layer.balance.row_min,
                    "row_mean": layer.row_mean(),
                    "row_max": layer.balance.row_max,
                    "format": layer.format.name(),
                    "bytes": layer.num_bytes,
                    "bytes_per_element": layer.bytes_per_element(),
                    "speed_up_bound": layer.speed_up_bound(),
                })
            })
            .collect();
        let path = self.args.output.path();
        json!({
            "input": {
                "name": self.checkpoint.folder().display().to_string(),
                "files": self.checkpoint.num_shards(),
                "other_tensors": self.checkpoint.others().count(),
            },
            "layers": layers,
            "packed_before": self.num_kept,
            "bytes": self.sum(|layer| layer.num_bytes),
            "dense_bytes": self.sum(LayerEntry::dense_bytes),
            "output": {
                "name": path.display().to_string(),
                "bytes": files::size(path),
                "seconds": self.seconds,
            },
        })
    }
}
