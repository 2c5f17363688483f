//! The verbs of `hopper-sparse bench`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use hopper_sparse::Dtype;

use super::arena::Arena;
use super::attention_operands::AttentionOperands;
use super::contest::{self, Entrant};
use super::error::BenchError;
use super::implementation::{Implementation, Place};
use super::operands::Operands;
use super::product_operands::ProductOperands;
use super::record::{self, Row, Status};
use super::registry::{self, Registered};
use super::report;
use super::session::{Progress, Session, Settings};
use super::suite::{Suite, parse_dtype, suite_names};
use super::workload::{Problem, Workload};
use super::workspace::Cache;
use crate::error::CliError;

/// `hopper-sparse bench`
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct BenchArgs {
    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  hopper-sparse bench list
  hopper-sparse bench run smoke
  hopper-sparse bench run spmm-blocks --csv record.csv
  hopper-sparse bench run spmm-blocks --only 8192-10 --implementations ours,vendor/gemm --rounds 50
  hopper-sparse bench run suitesparse --matrices DIR
  hopper-sparse bench run attention --only causal --dtype f16
  hopper-sparse bench compare before.csv after.csv

cuBLASLt and cuSPARSE are looked for at run time: LD_LIBRARY_PATH must name their folders. Peers in a process of their
own want python3 with torch on PATH.
Exit codes: 0 done, 1 a wrong result or a failure, 2 the request cannot be served.";

#[derive(Debug, Subcommand)]
enum Verb {
    /// Show suites, workloads and implementations
    List,
    /// Check every implementation of a suite, then time those that are right
    Run(RunArgs),
    /// Show two records side by side
    Compare {
        /// The earlier record
        before: PathBuf,
        /// The later record
        after: PathBuf,
    },
}

/// `hopper-sparse bench run`
#[derive(Args, Debug)]
struct RunArgs {
    /// The suite: see `bench list`
    suite: String,
    /// Only workloads with this in their name; `=NAME` for one of exactly that name
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Only implementations whose names start so, separated by commas, also ones that the suite does not name
    #[arg(long, value_name = "PREFIXES", value_delimiter = ',')]
    implementations: Vec<String>,
    /// The element type of all operands, in place of the suite's: bf16, f16 or f32
    #[arg(long, value_parser = parse_dtype)]
    dtype: Option<Dtype>,
    /// The folder whose .mtx files a suite of matrices multiplies
    #[arg(long, value_name = "DIR")]
    matrices: Option<PathBuf>,
    /// Samples of each implementation
    #[arg(long, value_name = "R", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Stop sampling a workload after this many seconds, with 5 rounds at least
    #[arg(long, value_name = "S", default_value_t = 30.0)]
    max_seconds: f64,
    /// Whether launches find their operands in the L2 cache
    #[arg(long, value_enum, default_value_t = Cache::Cold)]
    cache: Cache,
    /// Which GPU, counted from 0
    #[arg(long, value_name = "I", default_value_t = 0)]
    device: u32,
    /// The commit for the record; else HOPPER_COMMIT, else what git says
    #[arg(long)]
    commit: Option<String>,
    /// Write the record as CSV, anew after each workload
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write the record as JSON, anew after each workload
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What a finished command has to say.
#[derive(Debug)]
pub struct Outcome {
    /// For standard output.
    pub text: String,
    /// Whether an implementation gave a wrong result or failed, or nothing was measured at all: exit code 1.
    pub has_failures: bool,
}

impl Outcome {
    /// A failure where [`Outcome::has_failures`]; what befell whom was said when it happened.
    ///
    /// # Errors
    /// That failure.
    pub fn into_result(self) -> crate::error::Result<()> {
        if self.has_failures {
            Err(CliError::failure("not everything was measured: the lines above and the table say what and why"))
        } else {
            Ok(())
        }
    }
}

/// Carries out a verb.
///
/// # Errors
/// What made it impossible; [`BenchError::is_usage`] tells a wrong request from a failure.
pub fn run(args: &BenchArgs) -> Result<Outcome, BenchError> {
    match &args.verb {
        Verb::List => Ok(Outcome { text: list()?, has_failures: false }),
        Verb::Run(args) => run_suite(args),
        Verb::Compare { before, after } => {
            let text = report::comparison(&record::read_csv(before)?, &record::read_csv(after)?);
            Ok(Outcome { text, has_failures: false })
        }
    }
}

fn list() -> Result<String, BenchError> {
    let mut text = String::from("Suites\n");
    for name in suite_names() {
        let suite = Suite::load(name)?;
        let _ = writeln!(text, "  {name}: {}", suite.about);
        match suite.workloads(None) {
            Ok(workloads) => {
                for workload in workloads {
                    let _ = writeln!(text, "    {:28} {}", workload.name, workload.problem);
                }
            }
            Err(BenchError::NoMatrices { .. }) => text.push_str("    one workload for each file\n"),
            Err(error) => return Err(error),
        }
    }
    text.push_str("\nImplementations\n");
    for implementation in registry::IMPLEMENTATIONS {
        let (name, operation) = (implementation.name(), implementation.operation());
        let _ = writeln!(text, "  {name:32} {operation} on the {}", implementation.place());
    }
    Ok(text)
}

fn run_suite(args: &RunArgs) -> Result<Outcome, BenchError> {
    let mut plan = plan(args)?;
    let settings = Settings {
        suite: args.suite.clone(),
        rounds: args.rounds as usize,
        max_seconds: args.max_seconds.max(0.0),
        cache: args.cache,
    };
    let progress = Progress;
    let mut session = Session::open(args.commit.as_deref(), args.device);
    let machine = session.machine();
    progress.line(&format!("{}, commit {}, {}", machine.card, machine.commit, machine.date));
    start_peers(&mut plan, &session, &progress);
    session.measure_limits(&device_dtypes(&plan), &progress)?;

    let mut rows: Vec<Row> = Vec::new();
    let mut has_lost_one = false;
    for ((workload, implementations), number) in plan.iter().zip(1..) {
        progress.line(&format!("[{number}/{}] {}", plan.len(), workload.name));
        match measure(&session, workload, implementations, &settings, &progress) {
            Ok(measured) => rows.extend(measured),
            // One file that cannot be read, or one problem too large, does not keep the others from being measured.
            Err(error) => {
                progress.complain(&error.to_string());
                has_lost_one = true;
            }
        }
        // A run that is cut off leaves what it has measured.
        write_records(args, &rows)?;
    }
    let has_failed = rows.iter().any(|row| matches!(row.status, Status::Wrong | Status::Failed));
    // Where everybody refused, nothing was measured, and whoever asked must notice.
    let is_empty = rows.iter().all(|row| row.status != Status::Right);
    Ok(Outcome { text: report::table(&rows), has_failures: has_failed || is_empty || has_lost_one })
}

/// Measures `implementations` on a workload; a row for each.
fn measure(
    session: &Session,
    workload: &Workload,
    implementations: &[Registered],
    settings: &Settings,
    progress: &Progress,
) -> Result<Vec<Row>, BenchError> {
    let row = |name: &str| session.row(workload, name, settings);
    match &workload.problem {
        Problem::Product(product) => {
            let ours: Vec<_> = implementations.iter().filter_map(|one| one.product()).collect();
            let operands = ProductOperands::of(product)?;
            let arena = Arena::new(session, &operands, &ours, settings)?;
            Ok(contest::hold(entrants(&arena, &ours, row), settings, progress))
        }
        Problem::Attention(attention) => {
            let ours: Vec<_> = implementations.iter().filter_map(|one| one.attention()).collect();
            let peers = implementations.iter().filter_map(|one| one.attention_peer());
            let peers = peers.map(|peer| peer.entrant(session, attention, row(peer.name)));
            let operands = AttentionOperands::of(attention);
            let arena = Arena::new(session, &operands, &ours, settings)?;
            let all = entrants(&arena, &ours, row).into_iter().chain(peers).collect();
            Ok(contest::hold(all, settings, progress))
        }
    }
}

fn entrants<'a, O: Operands>(
    arena: &'a Arena<'a, O>,
    implementations: &[&'static dyn Implementation<O>],
    row: impl Fn(&str) -> Row,
) -> Vec<Entrant<'a>> {
    let entrant =
        |implementation: &&'static dyn Implementation<O>| arena.entrant(*implementation, row(implementation.name()));
    implementations.iter().map(entrant).collect()
}

/// Starts the processes of the peers that the plan names. Those that do not start are said once, and left out.
fn start_peers(plan: &mut [Planned], session: &Session, progress: &Progress) {
    let mut scripts: Vec<_> = plan
        .iter()
        .flat_map(|(_, all)| all.iter().filter_map(|one| one.attention_peer()))
        .map(|peer| peer.script)
        .collect();
    scripts.sort_by_key(|script| script.name);
    scripts.dedup_by_key(|script| script.name);
    for script in scripts {
        match session.with_peer(script, |process| Ok(process.greeting().to_owned())) {
            Ok(greeting) => progress.line(&format!("{}: {greeting}", script.name)),
            Err(error) => {
                progress.line(&format!("{}: {error}; going on without this peer", script.name));
                for (_, all) in &mut *plan {
                    all.retain(|one| one.attention_peer().is_none_or(|peer| peer.script.name != script.name));
                }
            }
        }
    }
}

/// A workload and who is measured on it.
type Planned = (Workload, Vec<Registered>);

/// What the command line asks for.
fn plan(args: &RunArgs) -> Result<Vec<Planned>, BenchError> {
    let asked = chosen_implementations(args)?;
    let implementations = |workload: &Workload| -> Vec<Registered> {
        let all = match &asked {
            Some(asked) => asked.clone(),
            None => workload.implementations.iter().filter_map(|name| registry::find(name)).collect(),
        };
        all.into_iter().filter(|one| one.operation() == workload.problem.operation()).collect()
    };
    let workloads = chosen_workloads(args)?;
    Ok(workloads.into_iter().map(|workload| (workload.clone(), implementations(&workload))).collect())
}

/// The element types that are computed with on the device, each once.
fn device_dtypes(plan: &[Planned]) -> Vec<Dtype> {
    let mut dtypes = Vec::new();
    for (workload, implementations) in plan {
        let on_device = implementations.iter().any(|implementation| implementation.place() == Place::Gpu);
        let dtype = workload.problem.dtype();
        if on_device && !dtypes.contains(&dtype) {
            dtypes.push(dtype);
        }
    }
    dtypes
}

fn chosen_workloads(args: &RunArgs) -> Result<Vec<Workload>, BenchError> {
    let mut workloads = Suite::load(&args.suite)?.workloads(args.matrices.as_deref())?;
    if let Some(only) = &args.only {
        workloads.retain(|workload| match only.strip_prefix('=') {
            Some(name) => workload.name == name,
            None => workload.name.contains(only.as_str()),
        });
        if workloads.is_empty() {
            return Err(BenchError::UnknownWorkload { name: only.clone() });
        }
    }
    if let Some(dtype) = args.dtype {
        for workload in &mut workloads {
            workload.problem.set_dtype(dtype);
        }
    }
    Ok(workloads)
}

/// The implementations that the command line names; `None` where the workloads' own are meant.
fn chosen_implementations(args: &RunArgs) -> Result<Option<Vec<Registered>>, BenchError> {
    if args.implementations.is_empty() { Ok(None) } else { registry::select(&args.implementations).map(Some) }
}

fn write_records(args: &RunArgs, rows: &[Row]) -> Result<(), BenchError> {
    let write = |path: &Path, text: String| {
        fs::write(path, text).map_err(|source| BenchError::File { path: path.to_owned(), source })
    };
    if let Some(path) = &args.csv {
        write(path, record::to_csv(rows))?;
    }
    if let Some(path) = &args.json {
        write(path, record::to_json(rows))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        bench: BenchArgs,
    }

    fn bench(args: &[&str]) -> Result<Outcome, BenchError> {
        let command = Command::try_parse_from(["bench"].iter().chain(args)).expect("valid arguments");
        run(&command.bench)
    }

    #[test]
    fn the_smoke_suite_is_right_and_leaves_a_record() {
        let folder = tempfile::tempdir().expect("a folder");
        let (csv, json) = (folder.path().join("a.csv"), folder.path().join("a.json"));
        let paths = [csv.to_str().expect("UTF-8"), json.to_str().expect("UTF-8")];
        let outcome =
            bench(&["run", "smoke", "--rounds", "5", "--csv", paths[0], "--json", paths[1], "--commit", "abc"])
                .expect("it runs");
        assert!(!outcome.has_failures, "{}", outcome.text);
        let rows = record::read_csv(&csv).expect("a record");
        let workloads = Suite::load("smoke").and_then(|suite| suite.workloads(None)).expect("smoke");
        let num_rows: usize = workloads.iter().map(|workload| workload.implementations.len()).sum();
        assert_eq!(rows.len(), num_rows);
        for row in &rows {
            assert_eq!(row.status, Status::Right, "{row:?}");
            assert_eq!((row.rounds, row.commit.as_str()), (5, "abc"));
            assert!(row.median_us.is_some_and(|median| median > 0.0), "{row:?}");
            assert!(row.speedup.is_some() && row.error <= row.error_limit, "{row:?}");
        }
        assert!(json.exists());
        let compared = bench(&["compare", paths[0], paths[0]]).expect("it compares");
        assert!(compared.text.contains(&format!("geometric mean of {}: 1.000", rows.len())), "{}", compared.text);
    }

    #[test]
    fn attention_is_checked_and_timed_like_a_product() {
        let folder = tempfile::tempdir().expect("a folder");
        let csv = folder.path().join("a.csv");
        let path = csv.to_str().expect("UTF-8");
        let outcome = bench(&["run", "smoke", "--only", "attention", "--rounds", "5", "--csv", path]).expect("it runs");
        assert!(!outcome.has_failures, "{}", outcome.text);
        let rows = record::read_csv(&csv).expect("a record");
        for row in &rows {
            assert_eq!((row.operation.as_str(), row.status, row.m), ("attention", Status::Right, None), "{row:?}");
            assert!(row.flops > 0 && row.tflops.is_some() && row.head_dim.is_some(), "{row:?}");
        }
        let packed = rows.iter().find(|row| row.workload == "attention-packed").expect("it is measured");
        assert_eq!((packed.batch, packed.keys, packed.tokens), (Some(4), Some(33), Some(64)));
        assert_eq!((packed.heads, packed.kv_heads, packed.mask.as_str()), (Some(4), Some(2), "causal"));
    }

    #[test]
    fn what_does_not_exist_is_a_usage_error() {
        for args in [
            &["run", "nothing"][..],
            &["run", "smoke", "--only", "nothing"],
            &["run", "smoke", "--implementations", "nothing"],
            &["run", "suitesparse"],
        ] {
            let error = bench(args).expect_err("nothing of that name");
            assert!(error.is_usage(), "{args:?}: {error}");
        }
        let error = bench(&["compare", "/nonexistent/a.csv", "/nonexistent/b.csv"]).expect_err("no such file");
        assert!(!error.is_usage(), "{error}");
    }

    #[test]
    fn one_workload_and_one_implementation_can_be_chosen() {
        let outcome = bench(&["run", "smoke", "--only", "=uniform", "--implementations", "naive", "--rounds", "1"])
            .expect("it runs");
        assert!(outcome.text.contains("naive/spmm/cpu") && !outcome.text.contains("ours/"), "{}", outcome.text);
        assert!(!outcome.text.contains("one-column"), "{}", outcome.text);
    }

    #[test]
    fn the_list_names_every_suite_and_implementation() {
        let text = bench(&["list"]).expect("it lists").text;
        assert!(suite_names().all(|name| text.contains(name)));
        assert!(registry::IMPLEMENTATIONS.iter().all(|implementation| text.contains(implementation.name())));
    }
}
