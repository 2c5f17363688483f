//! Checkpoints as they come, whole and broken.

use std::fs;
use std::path::Path;

use hopper_sparse::io::checkpoint::Checkpoint;
use hopper_sparse::{Dtype, Element, bf16, f16};
use safetensors::Dtype as TensorDtype;
use serde_json::json;

use crate::model::{
    Tensor, Tensors, compress, elements, is_layer, shard_name, small, write_file, write_sharded, write_single,
};

fn refusal(folder: &Path) -> String {
    Checkpoint::open(folder).err().expect("a refusal").to_string()
}

#[track_caller]
fn says(folder: &Path, words: &str) {
    let sentence = refusal(folder);
    assert!(sentence.contains(words), "`{words}` is not in: {sentence}");
}

fn holds<T: Element>(folder: &Path, model: &Tensors) {
    let checkpoint = Checkpoint::open(folder).unwrap();
    let expected: Vec<_> = model.iter().filter(|(name, _)| is_layer(name)).collect();
    assert_eq!(checkpoint.layers().len(), expected.len());
    for (layer, (name, tensor)) in checkpoint.layers().iter().zip(expected) {
        assert_eq!(
            (&layer.name, [layer.num_rows, layer.num_cols], layer.dtype),
            (name, [tensor.shape[0], tensor.shape[1]], T::DTYPE)
        );
        let found = checkpoint.elements::<T>(layer).unwrap();
        assert_eq!(bytemuck::cast_slice::<T, u8>(&found), &tensor.bytes[..], "{name}");
    }
    let others: Vec<_> = checkpoint.others().map(|tensor| tensor.name.to_owned()).collect();
    assert_eq!(others, model.keys().filter(|name| !is_layer(name)).cloned().collect::<Vec<_>>());
}

#[test]
fn one_file_and_many_hold_the_same() {
    fn check<T: Element>() {
        let model = small::<T>();
        let folder = tempfile::tempdir().unwrap();
        write_sharded(folder.path(), &model, 3);
        holds::<T>(folder.path(), &model);
        let folder = tempfile::tempdir().unwrap();
        write_single(folder.path(), &model);
        holds::<T>(folder.path(), &model);
    }
    check::<f32>();
    check::<f16>();
    check::<bf16>();
}

#[test]
fn unaligned_elements_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let header = r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"layers.0.fc1.weight":{"dtype":"F32","shape":[1,2],"data_offsets":[1,9]}}"#;
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.bytes());
    bytes.push(7);
    bytes.extend([1.5_f32, -2.0].iter().flat_map(|value| value.to_le_bytes()));
    fs::write(folder.path().join("model.safetensors"), bytes).unwrap();
    let checkpoint = Checkpoint::open(folder.path()).unwrap();
    assert_eq!(checkpoint.elements::<f32>(&checkpoint.layers()[0]).unwrap().as_ref(), [1.5, -2.0]);
}

#[test]
fn bitmasks_are_read_under_both_names() {
    fn check<T: Element>(prefix: &str) {
        for sparsity in [0.0, 0.5, 0.7, 1.0] {
            for (num_rows, num_cols) in [(5, 8), (24, 41), (3, 7), (1, 64)] {
                let name = "model.layers.0.self_attn.q_proj.weight";
                let dense = elements::<T>(num_rows, num_cols, sparsity, 1);
                let mut tensors = Tensors::from([(name.to_owned(), Tensor::elements(&[num_rows, num_cols], &dense))]);
                compress::<T>(&mut tensors, name, prefix);
                let folder = tempfile::tempdir().unwrap();
                write_sharded(folder.path(), &tensors, 2);
                let checkpoint = Checkpoint::open(folder.path()).unwrap();
                let [layer] = checkpoint.layers() else { panic!("one layer") };
                assert_eq!((layer.name.as_str(), layer.num_rows, layer.num_cols), (name, num_rows, num_cols));
                let found = checkpoint.elements::<T>(layer).unwrap();
                let to_bits = |element: T| if element == T::ZERO { 0 } else { element.to_f64().to_bits() };
                assert!(found.iter().zip(&dense).all(|(&one, &other)| to_bits(one) == to_bits(other)));
                assert_eq!(checkpoint.others().count(), 0);
            }
        }
    }
    check::<bf16>("model.layers.0.self_attn.q_proj");
    check::<f16>("model.layers.0.self_attn.q_proj.weight");
    check::<f32>("model.layers.0.self_attn.q_proj");
}

#[test]
fn bitmasks_that_do_not_agree_are_refused() {
    let name = "model.layers.0.mlp.up_proj.weight";
    let prefix = "model.layers.0.mlp.up_proj";
    let sound = || {
        let mut tensors = Tensors::from([(
            name.to_owned(),
            Tensor::elements(&[2, 4], &[1.0_f32, 0.0, 2.0, 0.0, 0.0, 3.0, 0.0, 0.0]),
        )]);
        compress::<f32>(&mut tensors, name, prefix);
        tensors
    };
    let read = |part: &str, tensor: Option<Tensor>| {
        let mut tensors = sound();
        match tensor {
            Some(tensor) => tensors.insert(format!("{prefix}.{part}"), tensor),
            None => tensors.remove(&format!("{prefix}.{part}")),
        };
        let folder = tempfile::tempdir().unwrap();
        write_single(folder.path(), &tensors);
        Checkpoint::open(folder.path())
            .and_then(|checkpoint| {
                checkpoint.elements::<f32>(&checkpoint.layers()[0]).map(|elements| elements.to_vec())
            })
            .map_err(|error| error.to_string())
    };
    let ints = |shape: &[usize], values: &[i64]| Some(Tensor::of(TensorDtype::I64, shape, values));
    assert_eq!(read("row_offsets", None).unwrap(), [1.0, 0.0, 2.0, 0.0, 0.0, 3.0, 0.0, 0.0]);
    for (part, tensor, words) in [
        ("shape", None, "the tensor `shape` is missing"),
        ("compressed", None, "the tensor `compressed` is missing"),
        ("shape", ints(&[3], &[2, 4, 1]), "the shape is not a number of rows and one of columns"),
        ("shape", ints(&[2], &[2, -4]), "the shape is not a number of rows and one of columns"),
        ("shape", ints(&[2], &[3, 4]), "`bitmask` has 2 elements, but 3 are expected"),
        ("shape", ints(&[2], &[2, 2]), "row 0 of the bitmask has bits behind the last column"),
        (
            "compressed",
            Some(Tensor::elements(&[2], &[1.0_f32, 2.0])),
            "`compressed` has 2 elements, but 3 are expected",
        ),
        ("compressed", Some(Tensor::of(TensorDtype::I8, &[3], &[1_i8, 2, 3])), "is of type I8"),
        ("bitmask", Some(Tensor::of(TensorDtype::I8, &[2, 1], &[5_i8, 2])), "`bitmask` is I8, but U8 is expected"),
        ("row_offsets", ints(&[2], &[0, 1]), "row 1 begins at value 1 by its offset, but at 2 by the bitmask"),
        ("row_offsets", ints(&[1], &[0]), "`row_offsets` has 1 elements, but 2 are expected"),
    ] {
        let sentence = read(part, tensor).unwrap_err();
        assert!(sentence.contains(words) && sentence.contains(name), "`{words}` is not in: {sentence}");
    }
}

#[test]
fn a_compression_that_is_not_read_is_refused_wherever_it_is_named() {
    let folder = tempfile::tempdir().unwrap();
    write_single(folder.path(), &small::<f16>());
    let sparsity = |format: &str| json!({ "sparsity_config": { "format": format } });
    for format in ["dense", "sparse-bitmask", "sparse-24-bitmask", "marlin-24"] {
        for config in [
            sparsity(format),
            json!({ "quantization_config": sparsity(format) }),
            json!({ "compression_config": sparsity(format) }),
        ] {
            fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
            match Checkpoint::open(folder.path()) {
                Ok(_) => assert_ne!(format, "marlin-24"),
                Err(error) => assert!(error.to_string().contains("compressed as `marlin-24`"), "{error}"),
            }
        }
    }
}

#[test]
fn directories_without_safetensors_say_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    says(folder.path(), "there is neither model.safetensors nor model.safetensors.index.json");
    for name in ["pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin", "pytorch_model.bin.index.json"]
    {
        fs::write(folder.path().join(name), "x").unwrap();
    }
    says(folder.path(), "the weights are pickles (2 files)");
    says(folder.path(), "safe_serialization=True");
    says(&folder.path().join("pytorch_model.bin.index.json"), "a checkpoint is a directory");
    says(&folder.path().join("nowhere"), "nowhere");
}

#[test]
fn what_the_index_lists_must_be_there() {
    let folder = tempfile::tempdir().unwrap();
    let model = small::<bf16>();
    write_sharded(folder.path(), &model, 3);
    let index_path = folder.path().join("model.safetensors.index.json");
    let index = fs::read_to_string(&index_path).unwrap();

    fs::write(&index_path, "{").unwrap();
    says(folder.path(), "not the JSON that is expected");
    fs::write(&index_path, "{}").unwrap();
    says(folder.path(), "has no `weight_map`");
    fs::write(&index_path, r#"{"weight_map": {"a": "../other.safetensors"}}"#).unwrap();
    says(folder.path(), "`../other.safetensors`, which is no file of the directory");
    fs::write(&index_path, index.replace("lm_head", "lm_tail")).unwrap();
    says(folder.path(), "the index says that `lm_tail.weight` is in `model-00001-of-00003.safetensors`, but it is not");

    fs::write(&index_path, &index).unwrap();
    fs::remove_file(folder.path().join(shard_name(1, 3))).unwrap();
    says(
        folder.path(),
        "1 of the 3 files that the index names are missing, the first is `model-00002-of-00003.safetensors`",
    );
}

#[test]
fn files_that_are_not_whole_are_refused_with_both_lengths() {
    let folder = tempfile::tempdir().unwrap();
    write_single(folder.path(), &small::<f16>());
    let path = folder.path().join("model.safetensors");
    let whole = fs::read(&path).unwrap();
    for len in [whole.len() - 1, whole.len() / 2] {
        fs::write(&path, &whole[..len]).unwrap();
        says(folder.path(), &format!("speaks of {} bytes, but the file has {len}", whole.len()));
    }
    for len in [0, 7, 100] {
        fs::write(&path, &whole[..len]).unwrap();
        says(folder.path(), "this is not a complete safetensors file");
    }
}

#[test]
fn weights_of_other_types_are_refused_and_others_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut tensors = small::<f16>();
    tensors.insert("model.layers.0.counts".to_owned(), Tensor::of(TensorDtype::I64, &[1], &[7_i64]));
    write_single(folder.path(), &tensors);
    assert!(Checkpoint::open(folder.path()).unwrap().others().any(|tensor| tensor.dtype == TensorDtype::I64));
    tensors.insert("model.layers.0.mlp.up_proj.weight".to_owned(), Tensor::of(TensorDtype::I8, &[2, 2], &[1_i8; 4]));
    write_single(folder.path(), &tensors);
    says(folder.path(), "`model.layers.0.mlp.up_proj.weight`: the weight is of type I8");
    tensors.retain(|name, _| !is_layer(name));
    write_single(folder.path(), &tensors);
    says(folder.path(), "there is no weight of a linear layer");
}

#[test]
fn elements_are_asked_for_by_their_type() {
    let folder = tempfile::tempdir().unwrap();
    write_file(&folder.path().join("model.safetensors"), &small::<f16>());
    let checkpoint = Checkpoint::open(folder.path()).unwrap();
    assert_eq!(checkpoint.layers()[0].dtype, Dtype::F16);
    let error = checkpoint.elements::<bf16>(&checkpoint.layers()[0]).unwrap_err().to_string();
    assert!(error.contains("elements of type bf16 are expected, but these are f16"), "{error}");
}
