//! `convert`: there and back without a change, and nothing left behind.

mod common;

use std::fs;
use std::io::Write;
use std::path::Path;

use common::{SMALL, names, run_in};

fn scratch() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a scratch folder");
    fs::write(folder.path().join("a.mtx"), SMALL).expect("written");
    folder
}

/// The entries of a Matrix Market file, as numbers, sorted.
fn entries(path: &Path) -> Vec<(u64, u64, f64)> {
    let text = fs::read_to_string(path).expect("text");
    let mut lines = text.lines().filter(|line| !line.starts_with('%'));
    lines.next().expect("a size line");
    let mut entries: Vec<_> = lines
        .map(|line| {
            let fields: Vec<_> = line.split_whitespace().collect();
            (
                fields[0].parse().expect("a row"),
                fields[1].parse().expect("a column"),
                fields[2].parse().expect("a value"),
            )
        })
        .collect();
    entries.sort_by(|one, other| one.partial_cmp(other).expect("numbers"));
    entries
}

#[test]
fn there_and_back_is_the_same_matrix() {
    let folder = scratch();
    let before = entries(&folder.path().join("a.mtx"));
    for format in ["csr", "bcsr", "bcsr:64x32", "auto"] {
        for dtype in ["bf16", "f16", "f32", "f64"] {
            let pack = ["convert", "a.mtx", "p.safetensors", "--format", format, "--dtype", dtype, "--force"];
            run_in(folder.path(), &pack).succeeded();
            run_in(folder.path(), &["convert", "p.safetensors", "back.mtx", "--force"]).succeeded();
            // Each value of the small matrix is exact in every type.
            assert_eq!(entries(&folder.path().join("back.mtx")), before, "{format} {dtype}");
        }
    }
    assert_eq!(names(folder.path()), ["a.mtx", "back.mtx", "p.safetensors"]);
}

#[test]
fn gzip_comes_and_goes() {
    let folder = scratch();
    run_in(folder.path(), &["convert", "a.mtx", "a.mtx.gz"]).succeeded();
    let packed = fs::read(folder.path().join("a.mtx.gz")).expect("written");
    assert_eq!(packed[..2], [0x1f, 0x8b], "no gzip");
    run_in(folder.path(), &["convert", "a.mtx.gz", "b.mtx"]).succeeded();
    assert_eq!(entries(&folder.path().join("b.mtx")), entries(&folder.path().join("a.mtx")));
}

#[test]
fn what_the_file_holds_is_kept_unless_asked() {
    let folder = scratch();
    run_in(folder.path(), &["convert", "a.mtx", "a.safetensors", "--format", "bcsr:64x16", "--dtype", "f16"])
        .succeeded();
    let json = run_in(folder.path(), &["convert", "a.safetensors", "b.safetensors", "--json"]).succeeded().json();
    assert_eq!(json["format"]["name"], "bcsr:64x16");
    assert_eq!(json["format"]["dtype"], "f16");
    let json = run_in(folder.path(), &["spmm", "b.safetensors", "--cols", "2", "--json"]).succeeded().json();
    assert_eq!(json["format"]["name"], "bcsr:64x16");
    assert_eq!(json["format"]["reason"], "as in the file");
}

#[test]
fn rounding_is_said() {
    let folder = scratch();
    let text = "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 0.1\n2 2 0.5\n";
    fs::write(folder.path().join("tenth.mtx"), text).expect("written");
    let outcome = run_in(folder.path(), &["convert", "tenth.mtx", "tenth.safetensors", "--dtype", "bf16"]).succeeded();
    assert!(outcome.stdout.contains("1 values were rounded to bf16"), "{}", outcome.stdout);
    let json = run_in(folder.path(), &["convert", "a.mtx", "a.safetensors", "--json"]).succeeded().json();
    assert_eq!(json["format"]["rounded_values"], 0);
    assert_eq!(json["matrix"]["empty_rows"], 1);
    assert_eq!(json["matrix"]["row_max"], 3);
}

#[test]
fn force_replaces() {
    let folder = scratch();
    fs::write(folder.path().join("old.safetensors"), "old").expect("written");
    run_in(folder.path(), &["convert", "a.mtx", "old.safetensors", "--force"]).succeeded();
    assert_ne!(fs::read(folder.path().join("old.safetensors")).expect("read"), b"old");
}

#[test]
fn blocks_do_not_fit_a_text_file() {
    let folder = scratch();
    run_in(folder.path(), &["convert", "a.mtx", "b.mtx", "--format", "bcsr:64x64"]).refused(2).saying("blocks");
    assert_eq!(names(folder.path()), ["a.mtx"]);
}

#[cfg(unix)]
#[test]
fn an_interrupt_leaves_nothing() {
    let folder = scratch();
    let mut text = String::from("%%MatrixMarket matrix coordinate real general\n300000 300000 3000000\n");
    for entry in 0..3_000_000 {
        text.push_str(&format!("{} {} 1.5\n", entry / 10 + 1, (entry * 7919) % 300_000 + 1));
    }
    fs::File::create(folder.path().join("large.mtx"))
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .expect("written");
    let mut child = common::command(&["convert", "large.mtx", "large.mtx.gz"])
        .current_dir(folder.path())
        .spawn()
        .expect("the command starts");
    // Interrupt it once it has begun to write.
    while names(folder.path()).len() < 3 {
        assert!(child.try_wait().expect("its state").is_none(), "it ended before it could be interrupted");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let interrupted =
        std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
    assert!(interrupted.success());
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert_eq!(names(folder.path()), ["a.mtx", "large.mtx"]);
}
