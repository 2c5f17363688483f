//! `spmm` on good input: every type, format and layout on the CPU, checked against float64.

mod common;

use std::fs;

use common::{Outcome, SMALL, run_in};

const GENERATORS: [&str; 5] =
    ["fem:500", "rmat:7,4", "banded:300,5", "blocks:256x320,64x32,0.3", "uniform:130x70,0.05"];

fn in_scratch(arguments: &[&str]) -> Outcome {
    let folder = tempfile::tempdir().expect("a scratch folder");
    fs::write(folder.path().join("a.mtx"), SMALL).expect("written");
    run_in(folder.path(), arguments)
}

fn checked(arguments: &[&str]) -> serde_json::Value {
    let outcome = in_scratch(&[&["spmm", "--check", "--json", "--repeat", "1"], arguments].concat()).succeeded();
    let json = outcome.json();
    assert_eq!(json["check"]["accepted"], true, "{arguments:?}: {json:#}");
    json
}

#[test]
fn every_generator_gives_a_matrix_that_is_multiplied_right() {
    for generator in GENERATORS {
        let json = checked(&["--gen", generator, "--cols", "17"]);
        assert!(json["matrix"]["nonzeros"].as_u64().expect("a count") > 0, "{generator}: {json:#}");
        assert!(json["time"]["median_seconds"].as_f64().expect("a time") > 0.0, "{generator}: {json:#}");
    }
}

#[test]
fn every_type_and_format_is_right() {
    for dtype in ["bf16", "f16", "f32", "f64"] {
        for format in ["csr", "bcsr", "bcsr:64x16", "bcsr:128x128"] {
            let json = checked(&["a.mtx", "--cols", "9", "--dtype", dtype, "--format", format]);
            assert_eq!(json["product"]["dtype"], dtype);
            let name = json["format"]["name"].as_str().expect("a name");
            assert!(name.starts_with(format), "{format} became {name}");
            assert_eq!(json["matrix"]["nonzeros"], 8);
        }
    }
    checked(&["a.mtx", "--cols", "9", "--dtype", "bf16", "--c-dtype", "f32"]);
}

#[test]
fn every_layout_and_factor_is_right() {
    for b_layout in ["row", "col"] {
        for c_layout in ["row", "col"] {
            for (alpha, beta) in [("1", "0"), ("-2.5", "0.5"), ("0", "2"), ("0", "0")] {
                checked(&[
                    "a.mtx",
                    "--cols",
                    "1",
                    "--b-layout",
                    b_layout,
                    "--c-layout",
                    c_layout,
                    "--alpha",
                    alpha,
                    "--beta",
                    beta,
                ]);
            }
        }
    }
}

#[test]
fn auto_takes_blocks_where_they_are_full_and_says_why() {
    let blocks = checked(&["--gen", "blocks:512x512,128x128,0.5", "--cols", "8"]);
    assert_eq!(blocks["format"]["name"], "bcsr:128x128");
    assert_eq!(blocks["format"]["fill"], 1.0);
    let scattered = checked(&["--gen", "uniform:512x512,0.001", "--cols", "8"]);
    assert_eq!(scattered["format"]["name"], "csr");
    for json in [blocks, scattered] {
        assert!(json["format"]["reason"].as_str().expect("a reason").contains("full"), "{json:#}");
    }
}

#[test]
fn auto_takes_the_cpu_where_there_is_no_gpu_and_says_so() {
    let json = checked(&["a.mtx", "--cols", "4"]);
    assert_eq!(json["backend"]["name"], "cpu");
    assert!(json["backend"]["reason"].as_str().expect("a reason").contains("no "), "{json:#}");
    let json = checked(&["a.mtx", "--cols", "4", "--backend", "cpu"]);
    assert_eq!(json["backend"]["reason"], serde_json::Value::Null);
}

#[test]
fn the_table_names_what_the_issue_of_a_run_is() {
    let outcome = in_scratch(&["spmm", "a.mtx", "--cols", "4", "--check", "--repeat", "3"]).succeeded();
    for label in ["matrix", "product", "backend", "format", "memory", "prepared", "time", "rate", "limit", "check"] {
        let is_there = outcome.stdout.lines().any(|line| line.split_whitespace().next() == Some(label));
        assert!(is_there, "{label} is missing:\n{}", outcome.stdout);
    }
    assert!(outcome.stdout.contains("median of 3"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("measured"), "{}", outcome.stdout);
}

#[test]
fn empty_matrices_are_multiplied() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    for (name, size) in [("none.mtx", "3 4 0"), ("rows.mtx", "0 4 0"), ("cols.mtx", "3 0 0"), ("zero.mtx", "0 0 0")] {
        let text = format!("%%MatrixMarket matrix coordinate real general\n{size}\n");
        fs::write(folder.path().join(name), text).expect("written");
        for format in ["auto", "csr", "bcsr"] {
            run_in(folder.path(), &["spmm", name, "--cols", "3", "--check", "--format", format, "--repeat", "1"])
                .succeeded();
        }
    }
}

#[test]
fn the_result_is_saved_whole_and_the_same_each_time() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    fs::write(folder.path().join("a.mtx"), SMALL).expect("written");
    let save = |name: &str, more: &[&str]| {
        let arguments = [&["spmm", "a.mtx", "--cols", "3", "--repeat", "1", "--out", name], more].concat();
        run_in(folder.path(), &arguments).succeeded();
        fs::read(folder.path().join(name)).expect("saved")
    };
    let first = save("c.safetensors", &["--seed", "5"]);
    assert_eq!(save("d.safetensors", &["--seed", "5"]), first);
    assert_ne!(save("e.safetensors", &["--seed", "6"]), first);
    assert_ne!(save("c.safetensors", &["--seed", "6", "--force"]), first);
    // Five rows of three bf16.
    assert!(first.len() > 30 && first.len() < 1000, "{} bytes", first.len());
    assert_eq!(common::names(folder.path()), ["a.mtx", "c.safetensors", "d.safetensors", "e.safetensors"]);
}
