//! `info` and `--help`, where there is no GPU.

mod common;

use common::{SMALL, run_in};

#[test]
fn without_a_device_the_reason_is_given_and_the_kernels_are_listed() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let outcome = run_in(folder.path(), &["info"]).succeeded();
    assert!(outcome.stdout.lines().any(|line| line.starts_with("device") && line.contains("no")), "{}", outcome.stdout);
    let json = run_in(folder.path(), &["info", "--json"]).succeeded().json();
    assert_eq!(json["device"], serde_json::Value::Null);
    assert!(json["reason"].as_str().expect("a reason").contains("no "), "{json:#}");
    for kernel in json["kernels"].as_array().expect("a list") {
        assert!(kernel["threads"].as_u64().expect("threads") >= 32, "{kernel:#}");
        assert!(outcome.stdout.contains(kernel["name"].as_str().expect("a name")), "{kernel:#}\n{}", outcome.stdout);
    }
}

#[test]
fn of_a_matrix_every_shape_of_windows_is_shown() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    std::fs::write(folder.path().join("small.mtx"), SMALL).expect("written");
    let text = run_in(folder.path(), &["info", "small.mtx"]).succeeded().stdout;
    assert!(text.contains("5 x 4, 8 nonzeros") && text.contains("128x8"), "{text}");
    let json = run_in(folder.path(), &["info", "small.mtx", "--json"]).succeeded().json();
    let windows = json["windows"].as_array().expect("a list");
    assert_eq!(windows.len(), 8, "{json:#}");
    // All four columns in one panel of eight rows.
    assert_eq!((&windows[0]["rows"], &windows[0]["group"]), (&8.into(), &1.into()));
    assert_eq!((&windows[0]["panels"], &windows[0]["columns"]), (&1.into(), &4.into()));
    assert_eq!((&windows[0]["fill"], &windows[0]["fetched_per_entry"]), (&0.0625.into(), &0.5.into()));
    run_in(folder.path(), &["info", "small.mtx", "--load"]).refused(2);
    run_in(folder.path(), &["info", "none.mtx"]).refused(1).saying("none.mtx");
}

/// Rows of four kinds in turn: an order puts those of a kind together where windows have fewer rows than the matrix.
#[test]
fn an_order_of_the_rows_is_looked_for_where_asked() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let entries = (1..=64).flat_map(|row| (1..=16).map(move |col| format!("{row} {} 1\n", row % 4 * 16 + col)));
    let text = format!("%%MatrixMarket matrix coordinate real general\n64 64 1024\n{}", entries.collect::<String>());
    std::fs::write(folder.path().join("kinds.mtx"), text).expect("written");
    let json = run_in(folder.path(), &["info", "kinds.mtx", "--json", "--reorder"]).succeeded().json();
    let windows = json["windows"].as_array().expect("a list");
    for window in windows {
        let (rows, ordered) = (window["rows"].as_u64().expect("a number"), &window["ordered"]);
        assert!(window["order_seconds"].as_f64().expect("a number") >= 0.0, "{window:#}");
        if rows < 64 {
            assert_eq!((&window["fill"], &ordered["fill"]), (&0.25.into(), &1.0.into()), "{window:#}");
            assert_eq!(ordered["panels"], 64 / rows, "{window:#}");
            let bytes = |of: &serde_json::Value| of["bytes"].as_u64().expect("a number");
            // Half of the panels' values are gone and more; an order is 4 bytes a row.
            assert!(bytes(ordered) > 64 * 4 + 64 * 16 * 2 && bytes(ordered) < bytes(window) / 2, "{window:#}");
        } else {
            assert!(ordered.is_null(), "{window:#}");
        }
    }
    let text = run_in(folder.path(), &["info", "kinds.mtx", "--reorder"]).succeeded().stdout;
    assert!(text.contains("100 %") && text.contains("no better order"), "{text}");
    let plain = run_in(folder.path(), &["info", "kinds.mtx", "--json"]).succeeded().json();
    assert!(plain["windows"][0].get("ordered").is_none(), "{plain:#}");
    run_in(folder.path(), &["info", "--reorder"]).refused(2);
}

#[test]
fn help_has_examples_for_every_verb() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    for arguments in
        [&["--help"][..], &["spmm", "--help"], &["convert", "--help"], &["info", "--help"], &["help", "spmm"]]
    {
        let outcome = run_in(folder.path(), arguments).succeeded();
        assert!(outcome.stdout.contains("Examples:\n  hopper-sparse "), "{arguments:?}: {}", outcome.stdout);
    }
}

#[test]
fn what_is_misspelt_is_a_usage_error() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    run_in(folder.path(), &["multiply"]).refused(2);
    run_in(folder.path(), &["info", "--device", "first"]).refused(2);
    run_in(folder.path(), &["spmm", "--gen", "fem:400", "--cols", "4", "--dtype", "f8"]).refused(2);
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    use std::process::Stdio;
    let mut child =
        common::command(&["info", "--json"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
