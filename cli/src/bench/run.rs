//! The verbs of `hopper-sparse bench`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use hopper_sparse::Dtype;

use super::arena::Arena;
use super::args::{BenchArgs, HowArgs, Verb};
use super::attention_operands::AttentionOperands;
use super::contest::{self, Entrant};
use super::error::BenchError;
use super::implementation::{Implementation, Place};
use super::launch::Launch;
use super::linear_operands::LinearOperands;
use super::linear_weights::LastWeights;
use super::operands::Operands;
use super::plot;
use super::product_operands::{LastMatrix, ProductOperands};
use super::record::{self, Row, Status};
use super::registry::{self, Registered};
use super::report;
use super::session::{Progress, Session, Settings};
use super::suite::{Suite, suite_names};
use super::workload::{Problem, Workload};
use crate::error::CliError;

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
        Verb::Run(args) => run_suite(Suite::load(&args.suite)?, &args.how),
        Verb::Spmm(args) => run_suite(Suite::load(args.suite.name())?, &args.how),
        Verb::Linear(args) => run_suite(Suite::load("linear")?.with_linear(&args.choice())?, &args.how),
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

/// What would be measured: a line for each workload.
fn listing(plan: &[Planned]) -> String {
    let mut text = String::new();
    for (workload, implementations) in plan {
        let class = workload.class.as_deref().unwrap_or("");
        let _ = writeln!(text, "{:36} {class:16} {}", workload.name, workload.problem);
        let names: Vec<_> = implementations.iter().map(|implementation| implementation.name()).collect();
        let _ =
            writeln!(text, "    {}; speed-up over {}", names.join(", "), workload.peer.as_deref().unwrap_or("nobody"));
    }
    text
}

fn run_suite(suite: Suite, args: &HowArgs) -> Result<Outcome, BenchError> {
    let name = suite.name;
    let mut plan = plan(suite, args)?;
    if args.list {
        return Ok(Outcome { text: listing(&plan), has_failures: false });
    }
    let settings = Settings {
        suite: name.to_owned(),
        rounds: args.rounds as usize,
        max_seconds: args.max_seconds.max(0.0),
        cache: args.cache,
        load: args.load,
        launch: args.launch,
    };
    let progress = Progress;
    let mut session = Session::open(args.commit.as_deref(), args.device);
    let machine = session.machine();
    progress.line(&format!("{}, commit {}, {}", machine.card, machine.commit, machine.date));
    // Peers take part in no replay: nobody asks their processes.
    if settings.launch == Launch::Stream {
        start_peers(&mut plan, &session, &progress);
    }
    session.measure_limits(&device_dtypes(&plan), &progress)?;

    let mut rows: Vec<Row> = Vec::new();
    let mut has_lost_one = false;
    let mut last = Last::default();
    for ((workload, implementations), number) in plan.iter().zip(1..) {
        progress.line(&format!("[{number}/{}] {}", plan.len(), workload.name));
        match measure(&session, workload, implementations, &settings, &mut last, &progress) {
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
    let is_empty = rows.iter().all(|row| !row.status.is_timed());
    Ok(Outcome { text: report::table(&rows), has_failures: has_failed || is_empty || has_lost_one })
}

/// Measures `implementations` on a workload; a row for each.
fn measure(
    session: &Session,
    workload: &Workload,
    implementations: &[Registered],
    settings: &Settings,
    last: &mut Last,
    progress: &Progress,
) -> Result<Vec<Row>, BenchError> {
    let row = |name: &str| session.row(workload, name, settings);
    match &workload.problem {
        Problem::Product(product) => {
            let ours: Vec<_> = implementations.iter().filter_map(|one| one.product()).collect();
            let operands = ProductOperands::of(product, &mut last.matrix)?;
            let arena = Arena::new(session, &operands, &ours, settings)?;
            Ok(contest::hold(entrants(&arena, &ours, row), settings, progress))
        }
        Problem::Attention(attention) => {
            let ours: Vec<_> = implementations.iter().filter_map(|one| one.attention()).collect();
            let peers = implementations.iter().filter_map(|one| one.attention_peer());
            let peers = peers.map(|peer| peer.entrant(session, attention, settings.launch, row(peer.name)));
            let operands = AttentionOperands::of(attention);
            let arena = Arena::new(session, &operands, &ours, settings)?;
            let all = entrants(&arena, &ours, row).into_iter().chain(peers).collect();
            Ok(contest::hold(all, settings, progress))
        }
        Problem::Linear(linear) => {
            let all: Vec<_> = implementations.iter().filter_map(|one| one.linear()).collect();
            let operands = LinearOperands::of(linear, &mut last.weights)?;
            let arena = Arena::new(session, &operands, &all, settings)?;
            Ok(contest::hold(entrants(&arena, &all, row), settings, progress))
        }
    }
}

/// What the last workload was made of, for the next one.
#[derive(Default)]
struct Last {
    matrix: LastMatrix,
    /// NOTE: they may hold memory of the session's device, and so must not outlive it.
    weights: LastWeights,
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
fn plan(suite: Suite, args: &HowArgs) -> Result<Vec<Planned>, BenchError> {
    let asked = chosen_implementations(args)?;
    let implementations = |workload: &Workload| -> Vec<Registered> {
        let all = match &asked {
            Some(asked) => asked.clone(),
            None => workload.implementations.iter().filter_map(|name| registry::find(name)).collect(),
        };
        all.into_iter().filter(|one| one.operation() == workload.problem.operation()).collect()
    };
    let workloads = chosen_workloads(suite, args)?;
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

fn chosen_workloads(suite: Suite, args: &HowArgs) -> Result<Vec<Workload>, BenchError> {
    let mut workloads = suite.with_cols(&args.cols)?.workloads(args.matrices.as_deref())?;
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
fn chosen_implementations(args: &HowArgs) -> Result<Option<Vec<Registered>>, BenchError> {
    if args.implementations.is_empty() { Ok(None) } else { registry::select(&args.implementations).map(Some) }
}

fn write_records(args: &HowArgs, rows: &[Row]) -> Result<(), BenchError> {
    let write = |path: &Path, text: String| {
        fs::write(path, text).map_err(|source| BenchError::File { path: path.to_owned(), source })
    };
    if let Some(path) = &args.csv {
        write(path, record::to_csv(rows))?;
    }
    if let Some(path) = &args.svg {
        write(path, plot::bars(rows))?;
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
        let (csv, json, svg) = (folder.path().join("a.csv"), folder.path().join("a.json"), folder.path().join("a.svg"));
        let paths = [&csv, &json, &svg].map(|path| path.to_str().expect("UTF-8"));
        let outcome = bench(&[
            "run", "smoke", "--rounds", "5", "--csv", paths[0], "--json", paths[1], "--svg", paths[2], "--commit",
            "abc",
        ])
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
        let plot = fs::read_to_string(&svg).expect("a plot");
        assert!(workloads.iter().all(|workload| plot.contains(&workload.name)), "{plot}");
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
    fn launches_are_put_on_a_stream_unless_a_graph_is_asked_for() {
        let asked = |args: &[&str]| {
            let command = Command::try_parse_from([&["bench", "run", "smoke"], args].concat()).ok()?;
            let Verb::Run(run) = command.bench.verb else { return None };
            Some(run.how.launch)
        };
        assert_eq!(asked(&[]), Some(Launch::Stream));
        assert_eq!(asked(&["--launch", "stream"]), Some(Launch::Stream));
        assert_eq!(asked(&["--launch", "graph"]), Some(Launch::Graph));
        assert_eq!(asked(&["--launch", "often"]), None);
    }

    #[test]
    fn a_replay_leaves_out_peers_elsewhere_and_is_nothing_to_the_processor() {
        let folder = tempfile::tempdir().expect("a folder");
        let csv = folder.path().join("a.csv");
        let path = csv.to_str().expect("UTF-8");
        let outcome = bench(&[
            "run",
            "smoke",
            "--only",
            "attention-packed",
            "--implementations",
            "naive/attention,peer/attention",
            "--rounds",
            "1",
            "--launch",
            "graph",
            "--csv",
            path,
        ])
        .expect("it runs");
        assert!(!outcome.has_failures, "{}", outcome.text);
        let rows = record::read_csv(&csv).expect("a record");
        let (peers, others): (Vec<_>, Vec<_>) =
            rows.iter().partition(|row| row.implementation.starts_with("peer/attention"));
        assert!(!peers.is_empty() && !others.is_empty(), "{}", outcome.text);
        for row in peers {
            assert_eq!((row.status, row.launch.as_str()), (Status::Refused, "graph"), "{row:?}");
            assert!(row.note.contains("process of its own"), "{}", row.note);
        }
        for row in others {
            assert_eq!((row.status, row.launch.as_str()), (Status::Right, ""), "{row:?}");
        }
    }

    #[test]
    fn what_does_not_exist_is_a_usage_error() {
        for args in [
            &["run", "nothing"][..],
            &["run", "smoke", "--only", "nothing"],
            &["run", "smoke", "--implementations", "nothing"],
            &["run", "suitesparse"],
            &["run", "smoke", "--cols", "8"],
            &["spmm", "--suite", "real"],
            &["spmm", "--only", "nothing"],
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
    fn files_are_multiplied_once_for_each_number_of_columns_and_end_with_means() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = "%%MatrixMarket matrix coordinate real symmetric\n4 4 4\n1 1 2\n2 2 1\n4 1 0.5\n4 4 3\n";
        for name in ["bcsstk09.mtx", "luxembourg.mtx"] {
            std::fs::write(folder.path().join(name), text).expect("a file");
        }
        let (csv, matrices) = (folder.path().join("a.csv"), folder.path().to_str().expect("UTF-8"));
        let asked = ["--matrices", matrices, "--cols", "3,1", "--implementations", "ours/spmm/csr-cpu,naive/spmm/cpu"];
        let mut args = vec!["spmm", "--suite", "real", "--dtype", "f32", "--rounds", "5"];
        args.extend(asked);
        args.extend(["--csv", csv.to_str().expect("UTF-8")]);
        let outcome = bench(&args).expect("it runs");
        assert!(!outcome.has_failures, "{}", outcome.text);
        let rows = record::read_csv(&csv).expect("a record");
        assert_eq!(rows.len(), 2 * 2 * 2);
        assert!(rows.iter().all(|row| row.status == Status::Right && row.suite == "real"), "{}", outcome.text);
        let first = &rows[0];
        assert_eq!(
            (first.workload.as_str(), first.class.as_str(), first.n),
            ("bcsstk09 n1", "finite-elements", Some(1))
        );
        // The peer is a vendor's: without a GPU there is no speed-up, and so no mean.
        assert_eq!(first.peer, "vendor/spmm/cusparse-*");
        assert!(!outcome.text.contains("geometric means"), "{}", outcome.text);
    }

    #[test]
    fn linear_layers_are_checked_and_timed_for_each_number_of_tokens() {
        let folder = tempfile::tempdir().expect("a folder");
        let csv = folder.path().join("a.csv");
        let path = csv.to_str().expect("UTF-8");
        let outcome = bench(&["run", "smoke", "--only", "linear", "--rounds", "5", "--csv", path]).expect("it runs");
        assert!(!outcome.has_failures, "{}", outcome.text);
        let rows = record::read_csv(&csv).expect("a record");
        assert_eq!(rows.iter().map(|row| row.n).collect::<Vec<_>>(), [Some(1), Some(5)]);
        for row in &rows {
            assert_eq!(
                (row.operation.as_str(), row.status, row.mask.as_str()),
                ("linear", Status::Right, "wanda"),
                "{row:?}"
            );
            assert_eq!((row.m, row.k, row.stored, row.sparsity), (Some(50), Some(70), Some(50 * 35), Some(0.5)));
            assert_eq!((row.weight_bytes, row.bytes_per_element), (Some(50 * 70 * 4), Some(4.0)));
            assert!(row.min_us <= row.median_us && row.median_us <= row.max_us, "{row:?}");
        }
        assert!(outcome.text.contains("W of 50 x 70, 50 % zeros (wanda)"), "{}", outcome.text);
    }

    #[test]
    fn linear_layers_are_chosen_by_model_tokens_sparsity_and_mask() {
        let outcome = bench(&[
            "linear",
            "--models",
            "qwen",
            "--tokens",
            "1,64",
            "--mask",
            "dead-columns",
            "--sparsity",
            "0.7",
            "--list",
        ]);
        let text = outcome.expect("it lists").text;
        assert!(text.contains("qwen2.5-7b gate-up dead-columns 70% n64"), "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with("qwen")).count(), 4 * 2, "{text}");
        for args in [&["linear", "--models", "gpt"][..], &["linear", "--only", "nothing"], &["linear", "--cols", "8"]] {
            assert!(bench(args).expect_err("nothing of that name").is_usage(), "{args:?}");
        }
        let parse = |args: &[&str]| Command::try_parse_from(["bench", "linear"].iter().chain(args)).is_ok();
        assert!(parse(&["--mask", "2:4"]));
        assert!(!parse(&["--sparsity", "1.5"]) && !parse(&["--mask", "3:4"]) && !parse(&["--tokens", "0"]));
    }

    #[test]
    fn a_listing_measures_nothing_and_needs_no_gpu() {
        let outcome =
            bench(&["spmm", "--cols", "32,512", "--list", "--implementations", "ours/spmm"]).expect("it lists");
        assert!(outcome.text.contains("nlpkkt80 (look-alike) n512"), "{}", outcome.text);
        assert!(outcome.text.contains("1062400 x 32 x 1062400"), "{}", outcome.text);
        assert!(outcome.text.contains("ours/spmm/csr"), "{}", outcome.text);
        assert!(!outcome.has_failures);
    }

    #[test]
    fn the_list_names_every_suite_and_implementation() {
        let text = bench(&["list"]).expect("it lists").text;
        assert!(suite_names().all(|name| text.contains(name)));
        assert!(registry::IMPLEMENTATIONS.iter().all(|implementation| text.contains(implementation.name())));
    }
}
