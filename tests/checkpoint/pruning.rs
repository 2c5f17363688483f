//! Pruned checkpoints: the same files with zeros.

use std::fs;

use hopper_sparse::f16;
use hopper_sparse::io::checkpoint::{Checkpoint, Norms, Pruning};
use hopper_sparse::io::{Existing, IoError};
use hopper_sparse::prune::{Pattern, wanda};

use crate::model::{Tensor, Tensors, compress, is_layer, shard_name, small, write_file, write_sharded, write_single};

const HALF: Pattern = Pattern::Rows { sparsity: 0.5 };

/// Norms of every layer, under the module's name.
fn norms(model: &Tensors) -> Tensors {
    let layers = model.iter().filter(|(name, _)| is_layer(name));
    layers
        .map(|(name, tensor)| {
            let norms: Vec<f32> = (0..tensor.shape[1]).map(|col| 1.0 + (col * 37 % 11) as f32).collect();
            (name.trim_end_matches(".weight").to_owned(), Tensor::elements(&[norms.len()], &norms))
        })
        .collect()
}

#[test]
fn layers_are_pruned_and_all_else_stays() {
    let (folder, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let model = small::<f16>();
    write_sharded(folder.path(), &model, 3);
    let index = "model.safetensors.index.json";
    fs::copy(folder.path().join(index), out.path().join(index)).unwrap();
    let norms_path = folder.path().join("norms.safetensors");
    let norm_tensors = norms(&model);
    write_file(&norms_path, &norm_tensors);
    let norms = Norms::open(&norms_path).unwrap();
    let pruning = Pruning { pattern: HALF, norms: Some(&norms) };
    let checkpoint = Checkpoint::open(folder.path()).unwrap();
    let mut num_reported = 0;
    for shard in 0..checkpoint.num_shards() {
        let path = out.path().join(checkpoint.shard_name(shard));
        let mut reported = Vec::new();
        let report = |layer: &_, balance| reported.push((Clone::clone(layer), balance));
        checkpoint.write_pruned_shard(shard, &path, pruning, Existing::Refuse, report).unwrap();
        let found = checkpoint.find_pruned_shard(shard, &path, pruning).unwrap().expect("a finished file");
        let mut found: Vec<_> = found.into_iter().map(|(layer, balance)| (layer.clone(), balance)).collect();
        found.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
        reported.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
        assert_eq!(found, reported);
        num_reported += found.len();
    }
    let pruned = Checkpoint::open(out.path()).unwrap();
    assert_eq!(num_reported, pruned.layers().len());
    for layer in pruned.layers() {
        let mut expected: Vec<f16> = bytemuck::pod_collect_to_vec(&model[&layer.name].bytes);
        let norms: Vec<f32> = bytemuck::pod_collect_to_vec(&norm_tensors[layer.name.trim_end_matches(".weight")].bytes);
        wanda(&mut expected, layer.num_cols, &norms, 0.5).unwrap();
        let found = pruned.elements::<f16>(layer).unwrap();
        assert_eq!(
            bytemuck::cast_slice::<f16, u8>(&found),
            bytemuck::cast_slice::<f16, u8>(&expected),
            "{}",
            layer.name
        );
    }
    for tensor in pruned.others() {
        assert_eq!(tensor.bytes, &model[tensor.name].bytes[..], "{}", tensor.name);
    }
}

#[test]
fn a_finished_file_is_known_by_what_it_was_made_from() {
    let (folder, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write_sharded(folder.path(), &small::<f16>(), 2);
    let checkpoint = Checkpoint::open(folder.path()).unwrap();
    let path = out.path().join(shard_name(0, 2));
    let pruning = |pattern| Pruning { pattern, norms: None };
    let find = |pattern| checkpoint.find_pruned_shard(0, &path, pruning(pattern)).unwrap().is_some();
    assert!(!find(HALF));
    checkpoint.write_pruned_shard(0, &path, pruning(HALF), Existing::Refuse, |_, _| {}).unwrap();
    assert!(find(HALF) && !find(Pattern::TwoOfFour) && !find(Pattern::Rows { sparsity: 0.25 }));
    assert!(checkpoint.find_pruned_shard(1, &path, pruning(HALF)).unwrap().is_none(), "another file's");
    let refused = checkpoint.write_pruned_shard(0, &path, pruning(HALF), Existing::Refuse, |_, _| {});
    assert!(matches!(refused, Err(IoError::Exists { .. })));
    // What is pruned again says so: the first source is not what it was made from.
    let again = out.path().join("model.safetensors");
    let single = tempfile::tempdir().unwrap();
    fs::copy(&path, single.path().join("model.safetensors")).unwrap();
    let second = Checkpoint::open(single.path()).unwrap();
    second.write_pruned_shard(0, &again, pruning(HALF), Existing::Refuse, |_, _| {}).unwrap();
    assert!(second.find_pruned_shard(0, &again, pruning(HALF)).unwrap().is_some());
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    assert!(!find(HALF), "a file that was cut off");
}

#[test]
fn what_cannot_be_pruned_leaves_no_file() {
    let (folder, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut model = small::<f16>();
    write_single(folder.path(), &model);
    let path = out.path().join("model.safetensors");
    let norms_path = folder.path().join("norms.safetensors");
    let name = "model.layers.0.mlp.up_proj";
    let attempt = |tensors: &Tensors, pattern| {
        write_file(&norms_path, tensors);
        let norms = Norms::open(&norms_path).unwrap();
        let checkpoint = Checkpoint::open(folder.path()).unwrap();
        let pruning = Pruning { pattern, norms: Some(&norms) };
        checkpoint.write_pruned_shard(0, &path, pruning, Existing::Refuse, |_, _| {}).unwrap_err().to_string()
    };
    let sound = norms(&model);
    let with = |tensor: Tensor| {
        let mut tensors = sound.clone();
        tensors.insert(name.to_owned(), tensor);
        tensors
    };
    assert!(attempt(&sound, Pattern::Rows { sparsity: 2.0 }).contains("a share from 0 to 1, and 2 is not"));
    assert!(attempt(&Tensors::new(), HALF).contains("there are no norms"));
    let short = attempt(&with(Tensor::elements(&[3], &[1.0_f32; 3])), HALF);
    assert!(short.contains("`norms` has 3 elements, but 40 are expected"), "{short}");
    assert!(attempt(&with(Tensor::elements(&[40], &[f16::ONE; 40])), HALF).contains("`norms` is F16, but F32"));
    assert!(attempt(&with(Tensor::elements(&[40], &[-1.0_f32; 40])), HALF).contains("the norm of column 0 is -1"));
    compress::<f16>(&mut model, &format!("{name}.weight"), name);
    write_single(folder.path(), &model);
    assert!(attempt(&sound, HALF).contains("this weight is compressed already"));
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0);
}
