//! `hopper-sparse prune`: the same checkpoint with exact zeros.

mod args;
mod small_files;

use std::fs;
use std::path::Path;
use std::time::Instant;

use hopper_sparse::io::Existing;
use hopper_sparse::io::checkpoint::packed::RowBalance;
use hopper_sparse::io::checkpoint::{Checkpoint, Layer, Norms, Pruning};
use serde_json::{Value, json};

pub use args::PruneArgs;

use crate::columns::Columns;
use crate::error::{CliError, Result};
use crate::table::{Table, count, percent, seconds, significant};
use crate::{output, print, print_json, progress};

/// Runs the verb.
///
/// # Errors
/// Usage where the options contradict each other, a failure where a file cannot be read or written.
pub fn run(args: &PruneArgs) -> Result<()> {
    let pattern = args.pattern()?;
    let start = Instant::now();
    let checkpoint = Checkpoint::open(&args.input).map_err(CliError::failure)?;
    let norms = args.norms.as_ref().map(Norms::open).transpose().map_err(CliError::failure)?;
    if let Some(norms) = &norms {
        // What is missing from the last file is said before the first one is written.
        checkpoint.layers().iter().try_for_each(|layer| norms.of(layer).map(drop)).map_err(CliError::failure)?;
    }
    prepare_folder(&args.input, &args.out)?;
    let mut report = Report { args, checkpoint: &checkpoint, layers: Vec::new(), num_kept: 0, seconds: 0.0 };
    let bar = progress::bar("pruning", checkpoint.layers().len() as u64);
    for shard in 0..checkpoint.num_shards() {
        let (path, pruning) = (args.out.join(checkpoint.shard_name(shard)), Pruning { pattern, norms: norms.as_ref() });
        let finished = match args.existing() {
            Existing::Replace => None,
            Existing::Refuse => checkpoint.find_pruned_shard(shard, &path, pruning).map_err(CliError::failure)?,
        };
        if let Some(layers) = finished {
            report.num_kept += 1;
            bar.inc(layers.len() as u64);
            report.layers.extend(layers.into_iter().map(|(layer, balance)| (layer.clone(), balance)));
            continue;
        }
        output::write_whole(&path, args.existing(), |path| {
            checkpoint.write_pruned_shard(shard, path, pruning, Existing::Refuse, |layer, balance| {
                report.layers.push((layer.clone(), balance));
                bar.inc(1);
            })
        })?;
    }
    bar.finish_and_clear();
    small_files::copy(&args.input, &args.out, args.existing())?;
    report.layers.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
    report.seconds = start.elapsed().as_secs_f64();
    if args.json {
        return print_json(&report.json());
    }
    print(|out| {
        report.columns().write(out)?;
        writeln!(out)?;
        report.table().write(out)
    })
}

/// Makes the directory to write where it does not exist; it must not be the one to read.
fn prepare_folder(input: &Path, out: &Path) -> Result<()> {
    if out.exists() && out.canonicalize().ok() == input.canonicalize().ok() {
        return Err(CliError::usage(format_args!("{} is the checkpoint to read: name another --out", out.display())));
    }
    match fs::create_dir(out) {
        Err(_) if out.is_dir() => Ok(()),
        made => made.map_err(|error| CliError::failure(format_args!("{}: cannot write: {error}", out.display()))),
    }
}

struct Report<'a> {
    args: &'a PruneArgs,
    checkpoint: &'a Checkpoint,
    layers: Vec<(Layer, RowBalance)>,
    num_kept: usize,
    seconds: f64,
}

/// The share of zeros in `elements`.
fn sparsity(num_nonzeros: u64, elements: u64) -> f64 {
    1.0 - num_nonzeros as f64 / elements.max(1) as f64
}

fn num_elements(layer: &Layer) -> u64 {
    layer.num_rows as u64 * layer.num_cols as u64
}

fn row_mean(layer: &Layer, balance: &RowBalance) -> f64 {
    balance.num_nonzeros as f64 / layer.num_rows.max(1) as f64
}

impl Report<'_> {
    fn columns(&self) -> Columns<6> {
        let mut columns = Columns::new(["layer", "rows x cols", "zeros", "row min", "mean", "max"]);
        for (layer, balance) in &self.layers {
            columns.line([
                layer.name.trim_end_matches(".weight").to_owned(),
                format!("{} x {}", layer.num_rows, layer.num_cols),
                percent(sparsity(balance.num_nonzeros, num_elements(layer))),
                balance.row_min.to_string(),
                significant(row_mean(layer, balance)),
                balance.row_max.to_string(),
            ]);
        }
        columns
    }

    /// The share of zeros in all layers.
    fn sparsity(&self) -> f64 {
        let num_nonzeros = self.layers.iter().map(|(_, balance)| balance.num_nonzeros).sum();
        sparsity(num_nonzeros, self.layers.iter().map(|(layer, _)| num_elements(layer)).sum())
    }

    fn table(&self) -> Table {
        let mut table = Table::default();
        table.row("layers", format!("{}, {} zeros", count(self.layers.len() as u64), percent(self.sparsity())));
        let num_files = count(self.checkpoint.num_shards() as u64);
        table.row("output", format!("{}, {num_files} files; took {}", self.args.out.display(), seconds(self.seconds)));
        if self.num_kept > 0 {
            table.more(format!("{} were finished before", count(self.num_kept as u64)));
        }
        table
    }

    fn json(&self) -> Value {
        let layers: Vec<_> = self
            .layers
            .iter()
            .map(|(layer, balance)| {
                json!({
                    "name": layer.name,
                    "rows": layer.num_rows,
                    "cols": layer.num_cols,
                    "dtype": layer.dtype.name(),
                    "sparsity": sparsity(balance.num_nonzeros, num_elements(layer)),
                    "row_min": balance.row_min,
                    "row_mean": row_mean(layer, balance),
                    "row_max": balance.row_max,
                })
            })
            .collect();
        json!({
            "input": self.checkpoint.folder().display().to_string(),
            "layers": layers,
            "sparsity": self.sparsity(),
            "files": self.checkpoint.num_shards(),
            "finished_before": self.num_kept,
            "output": self.args.out.display().to_string(),
            "seconds": self.seconds,
        })
    }
}
