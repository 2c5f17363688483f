//! `attention` where there is no device: what it refuses, and how, and what the CPU does.

mod common;

use common::{Outcome, run_in};

fn attention(arguments: &str) -> Outcome {
    let folder = tempfile::tempdir().expect("a scratch folder");
    run_in(folder.path(), &["attention"].into_iter().chain(arguments.split_whitespace()).collect::<Vec<_>>())
}

#[test]
fn what_no_kernel_serves_is_refused_with_the_reason() {
    for (arguments, words) in [
        ("--head-dim 100", "multiples of 8 up to 256, not 100"),
        ("--head-dim 264", "multiples of 8 up to 256, not 264"),
        ("--head-dim 0", "multiples of 8"),
        ("--dtype f32", "take bf16 and f16, not f32"),
        ("--dtype f64", "take bf16 and f16, not f64"),
        ("--heads 6 --kv-heads 4", "6 query heads cannot be divided among 4 heads of keys"),
        ("--heads 0", "0 query heads"),
        ("--scale 0", "the scale is 0"),
        ("--scale -1", "the scale is -1"),
        ("--scale NaN", "the scale is NaN"),
        ("--softcap -30", "the softcap is -30"),
        ("--keys 1073741824", "but a kernel can number 1073740800 at most"),
    ] {
        attention(arguments).refused(2).saying(words);
    }
}

#[test]
fn arguments_that_do_not_parse_or_do_not_go_together_are_named() {
    attention("--window 5").refused(2).saying("as in 1024,0");
    attention("--window some,0").refused(2).saying("`some` is neither a number of keys nor `all`");
    attention("--causal --window 5,0").refused(2).saying("--window");
    attention("--lengths 5,6 --batch 2").refused(2).saying("--batch");
    attention("--lengths 5,x").refused(2).saying("--lengths");
    attention("--keys -1").refused(2);
    attention("--repeat 0").refused(2).saying("--repeat");
    attention("--backend tpu").refused(2).saying("gpu");
}

#[test]
fn without_a_gpu_the_cpu_computes_and_the_command_says_why() {
    let table = attention("--keys 64 --heads 2 --repeat 2 --check").succeeded();
    for words in ["backend", "CPU, ", "no ", "median of 2", "every row"] {
        assert!(table.stdout.contains(words), "`{words}` is not in: {}", table.stdout);
    }
    let outcome =
        attention("--lengths 5,0,9 --window all,3 --softcap 30 --dtype f16 --repeat 1 --check --json").succeeded();
    let json = outcome.json();
    assert_eq!(json["backend"]["name"], "cpu");
    assert!(json["backend"]["reason"].as_str().is_some_and(|reason| reason.contains("no ")), "{json}");
    assert_eq!((&json["check"]["accepted"], &json["plan"]), (&true.into(), &serde_json::Value::Null));
    attention("--keys 64 --backend gpu").refused(1).saying("no ");
}

#[test]
fn the_cpu_where_it_is_asked_for() {
    let outcome =
        attention("--batch 3 --queries 1 --keys 77 --heads 4 --kv-heads 2 --backend cpu --repeat 1 --check --json");
    let json = outcome.succeeded().json();
    assert_eq!((&json["backend"]["name"], &json["backend"]["reason"]), (&"cpu".into(), &serde_json::Value::Null));
    assert_eq!(json["check"]["accepted"], true);
}

#[test]
fn more_memory_than_there_is() {
    attention("--batch 1000 --keys 1000000 --heads 2 --head-dim 256").refused(1).saying("memory");
}
