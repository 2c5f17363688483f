//! Bad input: one sentence, an exit code that means something, no panic, nothing half written.

mod common;

use std::fs;
use std::path::Path;

use common::{SMALL, names, run_in};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a scratch folder")
}

fn spmm_of(folder: &Path, contents: &[u8]) -> common::Outcome {
    fs::write(folder.join("a.mtx"), contents).expect("written");
    run_in(folder, &["spmm", "a.mtx", "--cols", "4"])
}

#[test]
fn missing_file() {
    let folder = folder();
    run_in(folder.path(), &["spmm", "none.mtx", "--cols", "4"]).refused(1).saying("none.mtx");
    run_in(folder.path(), &["convert", "none.mtx", "out.safetensors"]).refused(1).saying("none.mtx");
    run_in(folder.path(), &["spmm", "none.safetensors", "--cols", "4"]).refused(1).saying("none.safetensors");
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn a_directory() {
    let folder = folder();
    for name in ["d.mtx", "d.safetensors", "d"] {
        fs::create_dir(folder.path().join(name)).expect("created");
        run_in(folder.path(), &["spmm", name, "--cols", "4"]).refused(1).saying("directory");
    }
}

#[test]
fn a_pdf_named_mtx() {
    let folder = folder();
    let pdf = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<< /Type /Catalog >>\nendobj\n";
    spmm_of(folder.path(), pdf).refused(1).saying("a.mtx").saying("PDF");
}

#[test]
fn a_name_that_says_nothing() {
    let folder = folder();
    fs::write(folder.path().join("a.txt"), SMALL).expect("written");
    run_in(folder.path(), &["spmm", "a.txt", "--cols", "4"]).refused(2).saying(".mtx");
    run_in(folder.path(), &["convert", "a.txt", "b.mtx"]).refused(2).saying(".mtx");
    assert_eq!(names(folder.path()), ["a.txt"]);
}

#[test]
fn an_empty_file() {
    let folder = folder();
    spmm_of(folder.path(), b"").refused(1).saying("a.mtx").saying("empty");
    fs::write(folder.path().join("a.safetensors"), "").expect("written");
    run_in(folder.path(), &["spmm", "a.safetensors", "--cols", "4"]).refused(1).saying("a.safetensors");
    fs::write(folder.path().join("a.mtx.gz"), "").expect("written");
    run_in(folder.path(), &["spmm", "a.mtx.gz", "--cols", "4"]).refused(1).saying("a.mtx.gz");
}

#[test]
fn a_truncated_file() {
    let folder = folder();
    let whole = SMALL.trim_end();
    let short = &whole[..whole.rfind('\n').expect("lines")];
    spmm_of(folder.path(), short.as_bytes()).refused(1).saying("a.mtx").saying("8").saying("7");

    run_in(folder.path(), &["spmm", "a.mtx", "--cols", "4"]).refused(1);
    fs::write(folder.path().join("whole.mtx"), SMALL).expect("written");
    run_in(folder.path(), &["convert", "whole.mtx", "whole.safetensors"]).succeeded();
    let packed = fs::read(folder.path().join("whole.safetensors")).expect("read");
    for length in [1, 7, 8, 20, packed.len() / 2, packed.len() - 1] {
        fs::write(folder.path().join("cut.safetensors"), &packed[..length]).expect("written");
        run_in(folder.path(), &["spmm", "cut.safetensors", "--cols", "4"]).refused(1).saying("cut.safetensors");
    }

    run_in(folder.path(), &["convert", "whole.mtx", "whole.mtx.gz"]).succeeded();
    let zipped = fs::read(folder.path().join("whole.mtx.gz")).expect("read");
    fs::write(folder.path().join("cut.mtx.gz"), &zipped[..zipped.len() / 2]).expect("written");
    run_in(folder.path(), &["spmm", "cut.mtx.gz", "--cols", "4"]).refused(1).saying("cut.mtx.gz");
}

#[test]
fn a_failed_conversion_leaves_nothing() {
    let folder = folder();
    fs::write(folder.path().join("a.mtx"), &SMALL[..SMALL.len() - 8]).expect("written");
    run_in(folder.path(), &["convert", "a.mtx", "a.safetensors"]).refused(1);
    assert_eq!(names(folder.path()), ["a.mtx"]);
}

#[test]
fn indices_from_zero() {
    let folder = folder();
    let text = "%%MatrixMarket matrix coordinate real general\n2 2 2\n0 0 1\n1 1 2\n";
    spmm_of(folder.path(), text.as_bytes()).refused(1).saying("a.mtx").saying("3").saying("1");
}

#[test]
fn no_columns() {
    let folder = folder();
    fs::write(folder.path().join("a.mtx"), SMALL).expect("written");
    run_in(folder.path(), &["spmm", "a.mtx", "--cols", "0"]).refused(2).saying("0 columns");
    run_in(folder.path(), &["spmm", "a.mtx", "--cols", "-1"]).refused(2);
    run_in(folder.path(), &["spmm", "a.mtx", "--cols", "many"]).refused(2);
    run_in(folder.path(), &["spmm", "a.mtx"]).refused(2).saying("--cols");
}

#[test]
fn blocks_that_are_not_offered() {
    let folder = folder();
    fs::write(folder.path().join("a.mtx"), SMALL).expect("written");
    for format in ["bcsr:48x48", "bcsr:32x32", "bcsr:64x256", "bcsr:0x0"] {
        run_in(folder.path(), &["spmm", "a.mtx", "--cols", "4", "--format", format])
            .refused(2)
            .saying("64 or 128 rows and 16, 32, 64 or 128 columns");
        run_in(folder.path(), &["convert", "a.mtx", "a.safetensors", "--format", format]).refused(2);
    }
    assert_eq!(names(folder.path()), ["a.mtx"]);
}

#[test]
fn f64_asked_of_the_gpu() {
    let folder = folder();
    fs::write(folder.path().join("a.mtx"), SMALL).expect("written");
    for format in ["csr", "bcsr:64x64", "auto"] {
        run_in(
            folder.path(),
            &["spmm", "a.mtx", "--cols", "4", "--dtype", "f64", "--format", format, "--backend", "gpu"],
        )
        .refused(2)
        .saying("f64");
    }
}

#[test]
fn blocks_of_f32_asked_of_the_gpu() {
    let folder = folder();
    fs::write(folder.path().join("a.mtx"), SMALL).expect("written");
    for format in ["bcsr", "bcsr:64x64"] {
        run_in(
            folder.path(),
            &["spmm", "a.mtx", "--cols", "4", "--dtype", "f32", "--format", format, "--backend", "gpu"],
        )
        .refused(2)
        .saying("no GPU kernel multiplies bcsr in f32");
    }
}

#[test]
fn a_gpu_where_there_is_none() {
    let folder = folder();
    fs::write(folder.path().join("a.mtx"), SMALL).expect("written");
    run_in(folder.path(), &["spmm", "a.mtx", "--cols", "4", "--backend", "gpu"]).refused(1).saying("no ");
}

#[test]
fn an_output_that_exists() {
    let folder = folder();
    fs::write(folder.path().join("a.mtx"), SMALL).expect("written");
    fs::write(folder.path().join("kept.safetensors"), "mine").expect("written");
    run_in(folder.path(), &["convert", "a.mtx", "kept.safetensors"]).refused(1).saying("exists").saying("--force");
    run_in(folder.path(), &["spmm", "a.mtx", "--cols", "4", "--out", "kept.safetensors"]).refused(1).saying("exists");
    run_in(folder.path(), &["convert", "a.mtx", "a.mtx"]).refused(1).saying("exists");
    assert_eq!(fs::read(folder.path().join("kept.safetensors")).expect("read"), b"mine");
    assert_eq!(names(folder.path()), ["a.mtx", "kept.safetensors"]);
}

#[test]
fn an_output_that_cannot_be() {
    let folder = folder();
    fs::write(folder.path().join("a.mtx"), SMALL).expect("written");
    run_in(folder.path(), &["convert", "a.mtx", "nowhere/a.safetensors"]).refused(1).saying("nowhere");
    run_in(folder.path(), &["convert", "a.mtx", "a.bin"]).refused(2).saying(".safetensors");
    run_in(folder.path(), &["spmm", "a.mtx", "--cols", "4", "--out", "c.mtx"]).refused(2).saying(".safetensors");
    assert_eq!(names(folder.path()), ["a.mtx"]);
}

#[test]
fn a_matrix_or_a_generator_but_not_both() {
    let folder = folder();
    fs::write(folder.path().join("a.mtx"), SMALL).expect("written");
    run_in(folder.path(), &["spmm", "--cols", "4"]).refused(2).saying("--gen");
    run_in(folder.path(), &["spmm", "a.mtx", "--gen", "fem:400", "--cols", "4"]).refused(2);
    run_in(folder.path(), &["spmm", "--gen", "ring:4", "--cols", "4"]).refused(2).saying("uniform");
    run_in(folder.path(), &["spmm", "--gen", "blocks:64x64,64x64,2", "--cols", "4"]).refused(2).saying("density");
}

#[test]
fn more_memory_than_there_is() {
    let folder = folder();
    run_in(folder.path(), &["spmm", "--gen", "banded:4000000000,0", "--cols", "4000000000"])
        .refused(1)
        .saying("memory");
}

#[test]
fn a_bench_of_nothing() {
    let folder = folder();
    let bench = |arguments: &[&str]| run_in(folder.path(), &[&["bench", "spmm"], arguments].concat());
    bench(&["--cols", "0"]).refused(2).saying("at least 1");
    bench(&["--cols", "32,many"]).refused(2).saying("whole number");
    bench(&["--suite", "unreal"]).refused(2).saying("real, lookalike");
    bench(&["--suite", "real"]).refused(2).saying("--matrices DIR");
    bench(&["--suite", "real", "--matrices", "."]).refused(2).saying("holds no .mtx");
    bench(&["--suite", "lookalike", "--matrices", "none"]).refused(1).saying("none");
    run_in(folder.path(), &["spmm", "--gen", "lookalike:cont", "--cols", "4"]).refused(2).saying("cant, consph");
}

#[test]
fn a_look_alike_is_called_one() {
    let folder = folder();
    let listed = run_in(folder.path(), &["bench", "spmm", "--cols", "8", "--only", "cant", "--list"]).succeeded();
    assert!(listed.stdout.starts_with("cant (look-alike) n8 "), "{}", listed.stdout);
    let shown = run_in(folder.path(), &["spmm", "--gen", "lookalike:ASIC_320ks", "--cols", "1", "--repeat", "1"]);
    let shown = shown.succeeded().stdout;
    assert!(shown.contains("ASIC_320ks (look-alike)"), "{shown}");
}
