//! The `hopper-sparse` command.

mod args;
mod attention;
mod bench;
mod choose;
mod columns;
mod convert;
mod error;
mod files;
#[cfg(feature = "gpu")]
mod gpu;
mod info;
mod input;
mod matrix_info;
mod memory;
mod output;
mod progress;
mod prune;
mod random;
mod recommend;
mod samples;
mod spmm;
mod statistics;
mod table;

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use error::{CliError, Result};

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Where stderr is gone there is nobody to tell; the exit code remains.
            let _ = writeln!(std::io::stderr(), "{error}");
            error.exit_code()
        }
    }
}

fn run(command: Command) -> Result<()> {
    output::remove_scratch_on_interrupt()?;
    match command {
        Command::Spmm(args) => spmm::run(&args),
        Command::Attention(args) => attention::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Prune(args) => prune::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Recommend(args) => recommend::run(&args),
        Command::Bench(args) => {
            let outcome = bench::run(&args)?;
            print(|out| out.write_all(outcome.text.as_bytes()))?;
            outcome.into_result()
        }
    }
}

/// Writes to stdout. A reader that has left (`hopper-sparse info | head -1`) is no error.
fn print(write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(CliError::failure(format_args!("the result cannot be printed: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes one JSON object to stdout.
fn print_json(value: &serde_json::Value) -> Result<()> {
    print(|out| writeln!(out, "{value:#}"))
}
