//! `info` and `--help`, where there is no GPU.

mod common;

use common::run_in;

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
