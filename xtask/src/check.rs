//! `cargo xtask check`: what ptxas says of every kernel.

use crate::{Result, all_kept, overlap, root, sass, target_dir};
use hopper_builder::{ptxas, tools};
use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Assembles the kept PTX.
pub(crate) fn run() -> Result {
    all_kept().iter().try_for_each(|kept| report(kept.folder()))
}

/// Assembles every PTX file of a folder, prints a table, and fails where one may not be shipped.
pub(crate) fn report(folder: &Path) -> Result {
    let ptxas = tools::find("ptxas", root())?;
    let files = ptx_files(folder)?;
    let results = assemble_all(&ptxas, &files)?;
    println!("{:<48} {:>9} {:>7} {:>7} {:>7}", "kernel", "registers", "shared", "spills", "stack");
    let mut complaints = Vec::new();
    for result in results {
        let verdict = result.and_then(|report| {
            let spills = report.spill_store_bytes + report.spill_load_bytes;
            let (registers, shared, stack) = (report.registers, report.shared_bytes, report.stack_bytes);
            println!("{:<48} {registers:>9} {shared:>7} {spills:>7} {stack:>7}", report.kernel);
            report.verdict()
        });
        complaints.extend(verdict.err());
    }
    println!("{} kernels, {} refused", files.len(), complaints.len());
    let mut sentences: Vec<String> = complaints.iter().map(ToString::to_string).collect();
    if sentences.is_empty() {
        sentences = overlaps(&files)?;
    }
    if sentences.is_empty() { Ok(()) } else { Err(sentences.join("\n       ").into()) }
}

/// What the machine code of those assembled last does not overlap, though it should.
fn overlaps(files: &[PathBuf]) -> Result<Vec<String>> {
    let kernels: Vec<String> =
        files.iter().map(|ptx| sass::name(ptx)).filter(|kernel| overlap::is_checked(kernel)).collect();
    let Ok(nvdisasm) = tools::find("nvdisasm", root()) else {
        println!("overlap is not checked: nvdisasm was not found, which `cargo xtask tools` installs");
        return Ok(Vec::new());
    };
    let mut sentences = Vec::new();
    for kernel in &kernels {
        let cubin = target_dir().join("cubin").join(kernel).with_extension("cubin");
        let output = Command::new(&nvdisasm).arg("--print-code").arg(&cubin).output()?;
        sentences.extend(overlap::complaint(kernel, &String::from_utf8_lossy(&output.stdout)));
    }
    println!("{} kernels whose softmax runs beside products, {} not", kernels.len() - sentences.len(), sentences.len());
    Ok(sentences)
}

/// The PTX files of a folder, sorted.
pub(crate) fn ptx_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = folder.read_dir().map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "ptx"));
    files.sort();
    match files.is_empty() {
        true => Err(format!("{} holds no PTX", folder.display()).into()),
        false => Ok(files),
    }
}

type Assembled = std::result::Result<ptxas::Report, hopper_builder::Error>;

/// Runs ptxas on all cores; results in the order of `files`.
fn assemble_all(ptxas: &Path, files: &[PathBuf]) -> Result<Vec<Assembled>> {
    let folder = target_dir().join("cubin");
    fs::create_dir_all(&folder)?;
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(ptx) = files.get(index) else { return done };
            let cubin = folder.join(ptx.file_stem().unwrap_or_default()).with_extension("cubin");
            done.push((index, ptxas::assemble(ptxas, ptx, &cubin)));
        }
    };
    let num_threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let mut results: Vec<(usize, Assembled)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..num_threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("the workers do not panic")).collect()
    });
    results.sort_by_key(|(index, _)| *index);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}
