//! `prune` and `convert` of a model's directory: what is said, resumed and left behind.

mod common;

use std::fs;
use std::path::Path;

use common::{command, names, run_in};
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::json;

const SHARDS: [&str; 2] = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"];

const LAYERS: [&str; 4] = [
    "model.layers.0.mlp.down_proj.weight",
    "model.layers.0.mlp.up_proj.weight",
    "model.layers.1.mlp.down_proj.weight",
    "model.layers.1.mlp.up_proj.weight",
];

fn write_file(path: &Path, tensors: &[(&str, Vec<usize>, Vec<f32>)]) {
    let views = tensors.iter().map(|(name, shape, elements)| {
        let view = TensorView::new(Dtype::F32, shape.clone(), bytemuck::cast_slice(elements)).expect("a tensor");
        (*name, view)
    });
    safetensors::serialize_to_file(views, None, path).expect("written");
}

/// Two blocks of layers of 24 x 40, one in each of two files, and embeddings; no zero among the weights.
fn write_model(folder: &Path) {
    fs::create_dir_all(folder).expect("a folder");
    let weights = |seed: usize| (0..24 * 40).map(|index| ((index * 7919 + seed) % 997) as f32 - 498.5).collect();
    let mut weight_map = serde_json::Map::new();
    for (shard, layers) in SHARDS.iter().zip(LAYERS.chunks(2)) {
        let mut tensors: Vec<_> = layers.iter().map(|name| (*name, vec![24, 40], weights(name.len()))).collect();
        if *shard == SHARDS[0] {
            tensors.push(("model.embed_tokens.weight", vec![24, 40], weights(1)));
        }
        tensors.iter().for_each(|(name, _, _)| drop(weight_map.insert((*name).to_owned(), json!(shard))));
        write_file(&folder.join(shard), &tensors);
    }
    let index = json!({ "weight_map": weight_map }).to_string();
    fs::write(folder.join("model.safetensors.index.json"), index).expect("written");
    fs::write(folder.join("config.json"), "{\"model_type\": \"llama\"}").expect("written");
    fs::write(folder.join("pytorch_model.bin"), "not copied").expect("written");
}

fn scratch() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a scratch folder");
    write_model(&folder.path().join("model"));
    folder
}

const PRUNE: [&str; 8] = ["prune", "model", "--out", "pruned", "--method", "wanda", "--sparsity", "0.5"];

#[test]
fn a_pruned_model_is_like_its_source() {
    let folder = scratch();
    let json = run_in(folder.path(), &[&PRUNE[..], &["--json"]].concat()).succeeded().json();
    assert_eq!(json["sparsity"], 0.5);
    let layers = json["layers"].as_array().expect("layers");
    assert_eq!(layers.iter().map(|layer| layer["name"].as_str().expect("a name")).collect::<Vec<_>>(), LAYERS);
    assert!(layers.iter().all(|layer| layer["row_min"] == 20 && layer["row_max"] == 20), "{layers:?}");
    let mut expected = names(&folder.path().join("model"));
    expected.retain(|name| name != "pytorch_model.bin");
    assert_eq!(names(&folder.path().join("pruned")), expected);
    assert_eq!(names(folder.path()), ["model", "pruned"]);
}

#[test]
fn pruning_goes_on_where_it_was_interrupted() {
    let folder = scratch();
    run_in(folder.path(), &PRUNE).succeeded();
    let pruned = folder.path().join("pruned");
    let first = fs::read(pruned.join(SHARDS[1])).expect("a file");
    fs::remove_file(pruned.join(SHARDS[1])).expect("removed");
    let outcome = run_in(folder.path(), &PRUNE).succeeded();
    assert!(outcome.stdout.contains("1 were finished before"), "{}", outcome.stdout);
    assert_eq!(outcome.stdout.matches("50.0 %").count(), LAYERS.len() + 1, "{}", outcome.stdout);
    assert!(fs::read(pruned.join(SHARDS[1])).expect("a file") == first);
    // Another request finds files that it did not make.
    let other = ["prune", "model", "--out", "pruned", "--method", "magnitude", "--pattern", "2:4"];
    run_in(folder.path(), &other).refused(1).saying("--force");
    let json = run_in(folder.path(), &[&other[..], &["--force", "--json"]].concat()).succeeded().json();
    assert_eq!((&json["finished_before"], &json["sparsity"]), (&json!(0), &json!(0.5)));
}

#[test]
fn norms_decide_with_the_weights() {
    let folder = scratch();
    let norms: Vec<f32> = (0..40).map(|col| if col < 20 { 0.0 } else { 1.0 }).collect();
    let of = |name: &'static str| (name.trim_end_matches(".weight"), vec![40], norms.clone());
    write_file(&folder.path().join("norms.safetensors"), &LAYERS.map(of));
    write_file(&folder.path().join("few.safetensors"), &[of(LAYERS[0])]);
    run_in(folder.path(), &[&PRUNE[..], &["--norms", "few.safetensors"]].concat())
        .refused(1)
        .saying("there are no norms of this weight's inputs");
    assert_eq!(names(folder.path()), ["few.safetensors", "model", "norms.safetensors"]);
    run_in(folder.path(), &[&PRUNE[..], &["--norms", "norms.safetensors"]].concat()).succeeded();
    let bytes = fs::read(folder.path().join("pruned").join(SHARDS[0])).expect("a file");
    let file = safetensors::SafeTensors::deserialize(&bytes).expect("tensors");
    let weights: Vec<f32> = bytemuck::pod_collect_to_vec(file.tensor(LAYERS[0]).expect("a layer").data());
    assert!(weights.chunks(40).all(|row| row[..20] == [0.0; 20] && !row[20..].contains(&0.0)));
}

#[test]
fn options_that_contradict_are_refused() {
    let folder = scratch();
    let refused = |options: &[&str], words: &str| {
        run_in(folder.path(), &[&["prune", "model", "--out", "pruned"], options].concat()).refused(2).saying(words);
    };
    refused(&["--method", "wanda"], "--sparsity is missing");
    refused(&["--method", "wanda", "--sparsity", "1.5"], "from 0 to 1");
    refused(&["--method", "wanda", "--sparsity", "0.5", "--pattern", "2:4"], "nothing to say");
    refused(&["--method", "magnitude", "--sparsity", "0.5", "--norms", "x"], "no use for norms");
    run_in(folder.path(), &["prune", "model", "--out", "model", "--method", "wanda", "--sparsity", "0.5"])
        .refused(2)
        .saying("name another --out");
    assert_eq!(names(folder.path()), ["model"]);
}

#[test]
fn a_model_is_packed_with_a_line_for_each_layer() {
    let folder = scratch();
    let arguments = ["prune", "model", "--out", "pruned", "--method", "magnitude", "--sparsity", "0.9"];
    run_in(folder.path(), &arguments).succeeded();
    let outcome = run_in(folder.path(), &["convert", "pruned", "--out", "packed.safetensors"]).succeeded();
    for name in LAYERS {
        assert!(outcome.stdout.contains(name.trim_end_matches(".weight")), "{name}: {}", outcome.stdout);
    }
    assert_eq!(names(folder.path()), ["model", "packed.safetensors", "pruned"]);
    run_in(folder.path(), &["convert", "pruned", "packed.safetensors"]).refused(1).saying("exists already");
    let first = fs::read(folder.path().join("packed.safetensors")).expect("a file");
    let json =
        run_in(folder.path(), &["convert", "pruned", "packed.safetensors", "--force", "--json"]).succeeded().json();
    assert!(fs::read(folder.path().join("packed.safetensors")).expect("a file") == first);
    for (layer, name) in json["layers"].as_array().expect("layers").iter().zip(LAYERS) {
        assert_eq!((&layer["name"], &layer["format"], &layer["rows"]), (&json!(name), &json!("csr"), &json!(24)));
        assert_eq!(layer["sparsity"], 0.9);
        assert!(layer["speed_up_bound"].as_f64().expect("a number") > 3.0, "{layer}");
    }
    assert_eq!(json["input"]["other_tensors"], 1);
}

#[test]
fn packing_takes_formats_and_types() {
    let folder = scratch();
    for format in ["dense", "csr", "bitmap"] {
        let arguments =
            ["convert", "model", "--out", "p.safetensors", "--format", format, "--dtype", "bf16", "--force", "--json"];
        let json = run_in(folder.path(), &arguments).succeeded().json();
        for layer in json["layers"].as_array().expect("layers") {
            assert_eq!((&layer["format"], &layer["dtype"]), (&json!(format), &json!("bf16")));
        }
    }
    fs::write(folder.path().join("a.mtx"), common::SMALL).expect("written");
    let refused = |arguments: &[&str], words: &str| {
        run_in(folder.path(), &[&["convert"], arguments].concat()).refused(2).saying(words);
    };
    refused(&["model", "p.mtx"], "packed into a .safetensors file");
    refused(&["model", "q.safetensors", "--format", "bcsr"], "no format of a checkpoint's layers");
    refused(&["model", "q.safetensors", "--dtype", "f64"], "not in f64");
    refused(&["a.mtx", "q.safetensors", "--format", "dense"], "a format of a model's layers");
    assert_eq!(names(folder.path()), ["a.mtx", "model", "p.safetensors"]);
}

/// Writes a second file of one layer of 1 x 8, as a bitmask that selects 8 elements and so many values.
fn write_bitmask(path: &Path, num_values: usize) {
    let (values, shape) = (vec![1.0_f32; num_values], [1_i64, 8]);
    let tensors = [
        ("compressed", Dtype::F32, vec![num_values], bytemuck::cast_slice(&values)),
        ("bitmask", Dtype::U8, vec![1, 1], &[0xff][..]),
        ("shape", Dtype::I64, vec![2], bytemuck::cast_slice(&shape)),
    ];
    let views = tensors.map(|(part, dtype, shape, bytes)| {
        (format!("model.layers.2.mlp.up_proj.{part}"), TensorView::new(dtype, shape, bytes).expect("a tensor"))
    });
    safetensors::serialize_to_file(views, None, path).expect("written");
}

#[test]
fn finished_layers_are_not_packed_again() {
    let folder = scratch();
    let model = folder.path().join("model");
    let last = "model.layers.2.mlp.up_proj";
    let mut weight_map: serde_json::Map<_, _> =
        LAYERS[..2].iter().map(|name| ((*name).to_owned(), json!(SHARDS[0]))).collect();
    for part in ["compressed", "bitmask", "shape"] {
        weight_map.insert(format!("{last}.{part}"), json!(SHARDS[1]));
    }
    let index = json!({ "weight_map": weight_map }).to_string();
    fs::write(model.join("model.safetensors.index.json"), index).expect("written");
    write_bitmask(&model.join(SHARDS[1]), 7);
    let convert = ["convert", "model", "--out", "p.safetensors", "--json"];
    run_in(folder.path(), &convert).refused(1).saying("`compressed` has 7 elements, but 8 are expected");
    assert_eq!(names(folder.path()), ["model", "p.safetensors.partial"]);
    assert_eq!(names(&folder.path().join("p.safetensors.partial")).len(), 2, "two layers are finished");
    write_bitmask(&model.join(SHARDS[1]), 8);
    let json = run_in(folder.path(), &convert).succeeded().json();
    assert_eq!((&json["packed_before"], &json["layers"][2]["name"]), (&json!(2), &json!(format!("{last}.weight"))));
    assert_eq!(names(folder.path()), ["model", "p.safetensors"]);
}

#[cfg(unix)]
#[test]
fn an_interrupt_leaves_no_output() {
    let folder = scratch();
    let weights: Vec<f32> = (0..2048 * 2048).map(|index| (index % 997) as f32).collect();
    let large: Vec<_> = LAYERS.iter().map(|name| (*name, vec![2048, 2048], weights.clone())).collect();
    write_file(&folder.path().join("model/model.safetensors"), &large);
    let mut child = command(&["convert", "model", "--out", "p.safetensors"])
        .current_dir(folder.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("it starts");
    let first = folder.path().join("p.safetensors.partial/00000.safetensors");
    while !first.exists() {
        assert!(child.try_wait().expect("its state").is_none(), "it ended before it could be interrupted");
    }
    let interrupted = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupted.expect("kill runs").success());
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert_eq!(names(folder.path()), ["model", "p.safetensors.partial"]);
    let json = run_in(folder.path(), &["convert", "model", "--out", "p.safetensors", "--json"]).succeeded().json();
    assert!(json["packed_before"].as_u64() >= Some(1), "{json}");
    assert_eq!(names(folder.path()), ["model", "p.safetensors"]);
}

#[test]
fn pickles_are_answered_with_what_to_do() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    fs::create_dir(folder.path().join("old")).expect("a folder");
    fs::write(folder.path().join("old/pytorch_model.bin"), "x").expect("written");
    for arguments in [
        &["convert", "old", "--out", "p.safetensors"][..],
        &["prune", "old", "--out", "new", "--method", "magnitude", "--sparsity", "0.5"],
    ] {
        run_in(folder.path(), arguments).refused(1).saying("safe_serialization=True");
    }
    assert_eq!(names(folder.path()), ["old"]);
}
