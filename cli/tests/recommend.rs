//! `recommend`, where there is no GPU.

mod common;

use common::{SMALL, run_in};

#[test]
fn a_matrix_gets_every_format_ranked_or_refused_with_a_reason() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    std::fs::write(folder.path().join("small.mtx"), SMALL).expect("written");
    for source in [&["small.mtx"][..], &["--gen", "fem:3000"]] {
        let arguments = [&["recommend"][..], source, &["--cols", "128"]].concat();
        let text = run_in(folder.path(), &arguments).succeeded().stdout;
        for word in ["csr", "bcsr:128x64", "wcsr:64x8", "assumed", "NVIDIA H200", "best"] {
            assert!(text.contains(word), "{word} is not in: {text}");
        }
        let json = run_in(folder.path(), &[&arguments[..], &["--json"]].concat()).succeeded().json();
        let length = |list: &str| json[list].as_array().expect("a list").len();
        assert_eq!(length("candidates") + length("passed_over") + length("refused"), 17, "{json:#}");
        assert_eq!(json["best"], json["candidates"][0]["format"]);
        assert!(json["device"]["assumed"].as_str().is_some_and(|reason| !reason.is_empty()), "{json:#}");
        assert_eq!(json["measured"], serde_json::Value::Null);
        let seconds: Vec<_> =
            json["candidates"].as_array().expect("a list").iter().map(|one| one["seconds"].as_f64()).collect();
        assert!(seconds.is_sorted(), "{json:#}");
    }
}

#[test]
fn f32_is_csr_and_the_others_say_why() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let outcome =
        run_in(folder.path(), &["recommend", "--gen", "fem:300", "--cols", "8", "--dtype", "f32"]).succeeded();
    assert!(outcome.stdout.contains("refused: the WCSR kernels take bf16 and f16, not f32"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("refused: the BCSR kernels take bf16 and f16, not f32"), "{}", outcome.stdout);
}

#[test]
fn what_cannot_be_done_is_a_sentence() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let generated = ["recommend", "--gen", "fem:300", "--cols", "8"];
    let with = |more: &[&str]| run_in(folder.path(), &[&generated[..], more].concat());
    with(&["--measure"]).refused(1).saying("nothing can be measured");
    with(&["--device", "0"]).refused(1);
    with(&["--dtype", "f64"]).refused(2).saying("not f64");
    with(&["--times", "0"]).refused(2);
    with(&["--repeat", "3"]).refused(2);
    run_in(folder.path(), &["recommend", "none.mtx", "--cols", "8"]).refused(1).saying("none.mtx");
    run_in(folder.path(), &["recommend", "--gen", "fem:300"]).refused(2);
    let help = run_in(folder.path(), &["recommend", "--help"]).succeeded();
    assert!(help.stdout.contains("Examples:\n  hopper-sparse "), "{}", help.stdout);
}
