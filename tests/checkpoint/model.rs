//! Small synthetic models, as files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use hopper_sparse::{Dtype, Element};
use safetensors::Dtype as TensorDtype;
use safetensors::tensor::TensorView;
use serde_json::json;

/// A tensor to write.
#[derive(Clone)]
pub struct Tensor {
    pub dtype: TensorDtype,
    pub shape: Vec<usize>,
    pub bytes: Vec<u8>,
}

impl Tensor {
    pub fn of<T: bytemuck::Pod>(dtype: TensorDtype, shape: &[usize], elements: &[T]) -> Self {
        Self { dtype, shape: shape.to_vec(), bytes: bytemuck::cast_slice(elements).to_vec() }
    }

    pub fn elements<T: Element>(shape: &[usize], elements: &[T]) -> Self {
        let dtype = match T::DTYPE {
            Dtype::Bf16 => TensorDtype::BF16,
            Dtype::F16 => TensorDtype::F16,
            Dtype::F32 => TensorDtype::F32,
            Dtype::F64 => TensorDtype::F64,
        };
        Self::of(dtype, shape, elements)
    }
}

/// Tensors by name.
pub type Tensors = BTreeMap<String, Tensor>;

/// Writes one file.
pub fn write_file(path: &Path, tensors: &Tensors) {
    let views = tensors.iter().map(|(name, tensor)| {
        (name, TensorView::new(tensor.dtype, tensor.shape.clone(), &tensor.bytes).expect("a sound tensor"))
    });
    let metadata = [("format".to_owned(), "pt".to_owned())].into();
    safetensors::serialize_to_file(views, Some(metadata), path).expect("written");
}

/// Writes a model in one file.
pub fn write_single(folder: &Path, tensors: &Tensors) {
    write_file(&folder.join("model.safetensors"), tensors);
    fs::write(folder.join("config.json"), "{}").expect("written");
}

/// Writes a model in `num_shards` files with an index; every tensor goes to the next file.
pub fn write_sharded(folder: &Path, tensors: &Tensors, num_shards: usize) {
    let mut shards = vec![Tensors::new(); num_shards];
    let mut weight_map = BTreeMap::new();
    for (index, (name, tensor)) in tensors.iter().enumerate() {
        shards[index % num_shards].insert(name.clone(), tensor.clone());
        weight_map.insert(name, shard_name(index % num_shards, num_shards));
    }
    for (index, shard) in shards.iter().enumerate() {
        write_file(&folder.join(shard_name(index, num_shards)), shard);
    }
    let index = json!({ "metadata": { "total_size": 0 }, "weight_map": weight_map });
    fs::write(folder.join("model.safetensors.index.json"), index.to_string()).expect("written");
    fs::write(folder.join("config.json"), "{}").expect("written");
}

pub fn shard_name(index: usize, num_shards: usize) -> String {
    format!("model-{:05}-of-{num_shards:05}.safetensors", index + 1)
}

/// Elements of which about the share `sparsity` is zero, with one of every special value where there is room: NaN with a
/// payload, infinities, the smallest number, -0.0; and a dead column.
pub fn elements<T: Element>(num_rows: usize, num_cols: usize, sparsity: f64, seed: u64) -> Vec<T> {
    let mut elements: Vec<T> = (0..num_rows * num_cols)
        .map(|index| {
            let mixed = (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(seed as u32 * 7 + 1);
            let is_zero = (mixed >> 40) as f64 / (1_u64 << 24) as f64;
            if is_zero < sparsity || index % num_cols == 3 {
                T::ZERO
            } else {
                T::from_f64((mixed % 509) as f64 - 254.5)
            }
        })
        .collect();
    let specials = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 2.0_f64.powi(-24), -f64::NAN];
    if sparsity < 1.0 {
        elements.iter_mut().step_by(11).zip(specials).for_each(|(element, special)| *element = T::from_f64(special));
    }
    elements
}

/// A model of two blocks whose layers have sparsities 0, 0.5, 0.7 and 1, with embeddings, norms, biases and a head.
pub fn small<T: Element>() -> Tensors {
    let mut tensors = Tensors::new();
    let mut add = |name: &str, shape: &[usize], sparsity: f64| {
        let seed = name.len() as u64;
        let elements = elements::<T>(shape[0], shape.get(1).copied().unwrap_or(4), sparsity, seed);
        let len = shape.iter().product();
        tensors.insert(name.to_owned(), Tensor::elements(shape, &elements[..len]));
    };
    add("model.embed_tokens.weight", &[50, 40], 0.5);
    add("lm_head.weight", &[50, 40], 0.5);
    for block in 0..2 {
        let name = |rest: &str| format!("model.layers.{block}.{rest}");
        add(&name("self_attn.q_proj.weight"), &[24, 40], 0.5);
        add(&name("self_attn.q_proj.bias"), &[24], 0.0);
        add(&name("self_attn.o_proj.weight"), &[40, 24], 0.9);
        add(&name("mlp.up_proj.weight"), &[72, 40], 0.7);
        add(&name("mlp.gate_proj.weight"), &[72, 40], 0.0);
        add(&name("mlp.down_proj.weight"), &[40, 72], 1.0);
        add(&name("input_layernorm.weight"), &[40], 0.0);
    }
    tensors
}

/// The names of [`small`]'s layers.
pub fn is_layer(name: &str) -> bool {
    name.contains("proj.weight")
}

/// Replaces a weight by what `compressed-tensors` stores of it.
pub fn compress<T: Element>(tensors: &mut Tensors, name: &str, prefix: &str) {
    let dense = tensors.remove(name).expect("a weight");
    let &[num_rows, num_cols] = &dense.shape[..] else { panic!("two dimensions") };
    let elements: Vec<T> = bytemuck::pod_collect_to_vec(&dense.bytes);
    let (mut values, mut bitmask, mut offsets) = (Vec::new(), vec![0_u8; num_rows * num_cols.div_ceil(8)], Vec::new());
    for (row, elements) in elements.chunks(num_cols).enumerate() {
        offsets.push(values.len() as i64);
        for (col, &element) in elements.iter().enumerate().filter(|(_, element)| element.to_f64() != 0.0) {
            values.push(element);
            bitmask[row * num_cols.div_ceil(8) + col / 8] |= 1 << (col % 8);
        }
    }
    let mut add = |part: &str, tensor| tensors.insert(format!("{prefix}.{part}"), tensor);
    add("compressed", Tensor::elements(&[values.len()], &values));
    add("bitmask", Tensor::of(TensorDtype::U8, &[num_rows, num_cols.div_ceil(8)], &bitmask));
    add("row_offsets", Tensor::of(TensorDtype::I64, &[num_rows], &offsets));
    add("shape", Tensor::of(TensorDtype::I64, &[2], &[num_rows as i64, num_cols as i64]));
}
