//! Packed checkpoints: there and back to the bit, resumed, and never in part.

use std::fs;
use std::path::Path;

use hopper_sparse::io::checkpoint::Checkpoint;
use hopper_sparse::io::checkpoint::packed::{
    Conversion, ConversionOptions, FormatRule, PackedModel, PackedWeight, WeightFormat,
};
use hopper_sparse::io::{Existing, IoError};
use hopper_sparse::{Dtype, Element, bf16, f16};

use crate::model::{Tensor, Tensors, elements, is_layer, small, write_sharded, write_single};

/// Packs a folder; the number of layers that were found packed.
fn pack(folder: &Path, output: &Path, options: ConversionOptions) -> Result<usize, IoError> {
    let checkpoint = Checkpoint::open(folder)?;
    let mut conversion = Conversion::begin(&checkpoint, output, options)?;
    for layer in checkpoint.layers() {
        conversion.pack(layer)?;
    }
    let num_kept = conversion.num_kept();
    conversion.assemble(output, Existing::Replace)?;
    conversion.remove_folder()?;
    Ok(num_kept)
}

fn bits<T: Element>(elements: &[T]) -> &[u8] {
    bytemuck::cast_slice(elements)
}

/// Elements with +0.0 in the place of -0.0.
fn without_negative_zeros<T: Element>(bytes: &[u8]) -> Vec<T> {
    let elements: Vec<T> = bytemuck::pod_collect_to_vec(bytes);
    elements.into_iter().map(|element| if element == T::ZERO { T::ZERO } else { element }).collect()
}

fn comes_back<T: Element>(model: &Tensors, path: &Path, rule: FormatRule) {
    let packed = PackedModel::open(path).unwrap();
    for (name, tensor) in model {
        if !is_layer(name) {
            let kept = packed.tensor(name).unwrap();
            assert_eq!((kept.dtype, kept.shape, kept.bytes), (tensor.dtype, &tensor.shape[..], &tensor.bytes[..]));
            continue;
        }
        let (entry, layer) = (packed.entry(name).unwrap(), packed.layer::<T>(name).unwrap());
        assert_eq!([entry.num_rows, entry.num_cols], tensor.shape[..]);
        assert_eq!((layer.format(), layer.num_bytes()), (entry.format, entry.num_bytes), "{name}");
        assert!(matches!(rule, FormatRule::Smallest) || rule == FormatRule::Only(entry.format), "{name}");
        let expected = without_negative_zeros::<T>(&tensor.bytes);
        let dense = layer.to_dense().unwrap();
        match layer {
            PackedWeight::Dense(_) => assert_eq!(bits(dense.data()), &tensor.bytes[..], "{name}"),
            _ => assert_eq!(bits(dense.data()), bits(&expected), "{name}"),
        }
        let nonzeros = |row: &[T]| row.iter().filter(|&&element| element != T::ZERO).count() as u64;
        let counts: Vec<_> = expected.chunks(entry.num_cols).map(nonzeros).collect();
        assert_eq!(entry.balance.num_nonzeros, counts.iter().sum::<u64>(), "{name}");
        assert_eq!(Some(&entry.balance.row_min), counts.iter().min(), "{name}");
        assert_eq!(Some(&entry.balance.row_max), counts.iter().max(), "{name}");
    }
    assert_eq!(packed.layers().count(), model.keys().filter(|name| is_layer(name)).count());
    assert_eq!(packed.others().count(), model.keys().filter(|name| !is_layer(name)).count());
}

fn round_trip<T: Element>() {
    let model = small::<T>();
    let folder = tempfile::tempdir().unwrap();
    write_sharded(folder.path(), &model, 3);
    let output = folder.path().join("packed.safetensors");
    for rule in WeightFormat::ALL.map(FormatRule::Only).into_iter().chain([FormatRule::Smallest]) {
        pack(folder.path(), &output, ConversionOptions { rule, dtype: None }).unwrap();
        comes_back::<T>(&model, &output, rule);
    }
}

#[test]
fn every_bit_comes_back() {
    round_trip::<bf16>();
    round_trip::<f16>();
    round_trip::<f32>();
}

#[test]
fn the_smallest_format_is_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let mut model = small::<f32>();
    let half = elements::<f32>(128, 512, 0.5, 3);
    model.insert("model.layers.1.self_attn.k_proj.weight".to_owned(), Tensor::elements(&[128, 512], &half));
    write_single(folder.path(), &model);
    let output = folder.path().join("packed.safetensors");
    pack(folder.path(), &output, ConversionOptions::default()).unwrap();
    comes_back::<f32>(&model, &output, FormatRule::Smallest);
    let packed = PackedModel::open(&output).unwrap();
    let entry = |name: &str| packed.entry(&format!("model.layers.1.{name}.weight")).unwrap();
    assert_eq!(entry("mlp.gate_proj").format, WeightFormat::Dense);
    assert!(entry("mlp.gate_proj").sparsity() < 0.1);
    assert_eq!(entry("self_attn.k_proj").format, WeightFormat::Bitmap);
    assert!(entry("self_attn.k_proj").bytes_per_element() < 2.5);
    // A bitmap's padding costs more than so small a matrix has.
    assert_eq!(entry("self_attn.o_proj").format, WeightFormat::Csr);
    assert!(entry("self_attn.o_proj").speed_up_bound() > 1.5);
    assert_eq!(entry("mlp.down_proj").sparsity(), 1.0);
}

#[test]
fn elements_are_rounded_where_that_is_asked_for() {
    let model = small::<f32>();
    let folder = tempfile::tempdir().unwrap();
    write_single(folder.path(), &model);
    let output = folder.path().join("packed.safetensors");
    let options = ConversionOptions { dtype: Some(Dtype::Bf16), ..ConversionOptions::default() };
    pack(folder.path(), &output, options).unwrap();
    let packed = PackedModel::open(&output).unwrap();
    for (name, tensor) in model.iter().filter(|(name, _)| is_layer(name)) {
        let rounded = without_negative_zeros::<f32>(&tensor.bytes).into_iter().map(|x| bf16::from_f64(x.to_f64()));
        let found = packed.layer::<bf16>(name).unwrap().to_dense().unwrap();
        assert!(
            rounded.zip(found.data()).all(|(one, &other)| one.to_bits() == other.to_bits() || one == other),
            "{name}"
        );
    }
}

#[test]
fn the_same_checkpoint_gives_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let model = small::<bf16>();
    write_sharded(folder.path(), &model, 2);
    let output = folder.path().join("packed.safetensors");
    pack(folder.path(), &output, ConversionOptions::default()).unwrap();
    let first = fs::read(&output).unwrap();
    let other = tempfile::tempdir().unwrap();
    write_single(other.path(), &model);
    let again = other.path().join("again.safetensors");
    pack(other.path(), &again, ConversionOptions::default()).unwrap();
    assert!(first == fs::read(&again).unwrap(), "how a checkpoint is cut up shows in its packed file");
}

#[test]
fn a_conversion_goes_on_where_it_was_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    write_sharded(folder.path(), &small::<f16>(), 2);
    let output = folder.path().join("packed.safetensors");
    let partial = folder.path().join("packed.safetensors.partial");
    let begin = |count: usize| {
        let checkpoint = Checkpoint::open(folder.path()).unwrap();
        let mut conversion = Conversion::begin(&checkpoint, &output, ConversionOptions::default()).unwrap();
        checkpoint.layers().iter().take(count).for_each(|layer| drop(conversion.pack(layer).unwrap().clone()));
        conversion.num_kept()
    };
    assert_eq!(begin(4), 0);
    assert!(!output.exists(), "a part of the layers is no output");
    assert_eq!(begin(6), 4);
    // A file that was cut off, and one of another layer: both are made again.
    let layer_file = |index: usize| partial.join(format!("{index:05}.safetensors"));
    let whole = fs::read(layer_file(1)).unwrap();
    fs::write(layer_file(1), &whole[..whole.len() - 1]).unwrap();
    fs::copy(layer_file(0), layer_file(2)).unwrap();
    assert_eq!(pack(folder.path(), &output, ConversionOptions::default()).unwrap(), 4);
    assert!(!partial.exists());
    comes_back::<f16>(&small::<f16>(), &output, FormatRule::Smallest);
}

#[test]
fn layers_of_other_options_or_sources_are_packed_again() {
    let folder = tempfile::tempdir().unwrap();
    write_single(folder.path(), &small::<f16>());
    let output = folder.path().join("packed.safetensors");
    let kept = |rule| {
        let checkpoint = Checkpoint::open(folder.path()).unwrap();
        let options = ConversionOptions { rule, dtype: None };
        let mut conversion = Conversion::begin(&checkpoint, &output, options).unwrap();
        checkpoint.layers().iter().for_each(|layer| drop(conversion.pack(layer).unwrap().clone()));
        conversion.num_kept()
    };
    let num_layers = small::<f16>().keys().filter(|name| is_layer(name)).count();
    assert_eq!(kept(FormatRule::Smallest), 0);
    assert_eq!(kept(FormatRule::Smallest), num_layers);
    assert_eq!(kept(FormatRule::Only(WeightFormat::Csr)), 0);
    let file = fs::File::options().append(true).open(folder.path().join("model.safetensors")).unwrap();
    file.set_modified(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(kept(FormatRule::Only(WeightFormat::Csr)), 0);
}

#[test]
fn an_output_is_kept_unless_it_may_be_replaced() {
    let folder = tempfile::tempdir().unwrap();
    write_single(folder.path(), &small::<f16>());
    let output = folder.path().join("packed.safetensors");
    fs::write(&output, "old").unwrap();
    let checkpoint = Checkpoint::open(folder.path()).unwrap();
    let conversion = Conversion::begin(&checkpoint, &output, ConversionOptions::default()).unwrap();
    assert!(matches!(conversion.assemble(&output, Existing::Refuse), Err(IoError::Exists { .. })));
    assert_eq!(fs::read(&output).unwrap(), b"old");
}

#[test]
fn files_that_are_no_packed_model_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    write_single(folder.path(), &small::<f16>());
    let say = |path: &Path| PackedModel::open(path).err().unwrap().to_string();
    assert!(say(&folder.path().join("model.safetensors")).ends_with("is not a checkpoint packed by hopper-sparse"));
    let output = folder.path().join("packed.safetensors");
    pack(folder.path(), &output, ConversionOptions::default()).unwrap();
    let packed = PackedModel::open(&output).unwrap();
    let name = "model.layers.0.mlp.up_proj.weight";
    let sentence = |error: IoError| error.to_string();
    assert!(sentence(packed.layer::<f32>(name).unwrap_err()).contains("type f32 are expected, but these are f16"));
    assert!(sentence(packed.layer::<f16>("x.weight").unwrap_err()).contains("there is no packed weight `x.weight`"));

    let whole = fs::read(&output).unwrap();
    let cut = folder.path().join("cut.safetensors");
    fs::write(&cut, &whole[..whole.len() - 10]).unwrap();
    assert!(say(&cut).contains(&format!("{} bytes, but the file has {}", whole.len(), whole.len() - 10)));
    let text = String::from_utf8_lossy(&whole[..]);
    for (from, to, words) in [
        (r#""version":"1""#, r#""version":"7""#, "packed in version `7`, but only version 1"),
        (r#"\"format\":\"csr\""#, r#"\"format\":\"xyz\""#, "`format` is not understood"),
        (r#"\"dtype\":\"f16\""#, r#"\"dtype\":\"i16\""#, "`dtype` is not understood"),
        (r#"\"row_min\""#, r#"\"row_mon\""#, "`row_min` is not understood"),
    ] {
        assert!(text.contains(from), "{from}");
        let at = whole.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
        let mut changed = whole.clone();
        changed[at..at + to.len()].copy_from_slice(to.as_bytes());
        fs::write(&cut, &changed).unwrap();
        assert!(say(&cut).contains(words), "{}", say(&cut));
    }
}

#[test]
fn arrays_that_are_no_matrix_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    write_single(folder.path(), &small::<f32>());
    let output = folder.path().join("packed.safetensors");
    pack(folder.path(), &output, ConversionOptions { rule: FormatRule::Only(WeightFormat::Csr), dtype: None }).unwrap();
    let mut bytes = fs::read(&output).unwrap();
    // The widest elements come first: the first tensor is the first layer's offsets, whose first is 0.
    let header = u64::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
    bytes[8 + header] = 1;
    fs::write(&output, bytes).unwrap();
    let packed = PackedModel::open(&output).unwrap();
    let first = packed.layers().next().unwrap().name.clone();
    let error = packed.layer::<f32>(&first).unwrap_err().to_string();
    assert!(error.contains(&first) && error.contains("offset"), "{error}");
    assert!(packed.layers().skip(1).all(|entry| packed.layer::<f32>(&entry.name).is_ok()));
}
