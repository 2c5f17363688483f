//! Attention to lists of keys against the reference, on a device: the suite of the simulator, larger problems, and lists
//! estimated from Q and K.

#![cfg(feature = "gpu")]

#[path = "suite/attention_device.rs"]
mod attention_device;
#[path = "suite/gpu.rs"]
mod gpu;
mod suite;

use hopper_sparse::formats::{DenseViewMut, HeadsView, HeadsViewMut};
use hopper_sparse::gpu::Device;
use hopper_sparse::ops::attention::blocks::estimate::{self, VerticalSlashOptions};
use hopper_sparse::ops::attention::blocks::{BlockSize, KeyLists, SparseAttention};
use hopper_sparse::ops::attention::{Attention, Sequences, Window};
use hopper_sparse::{Dtype, Element, Result, bf16, f16};
use suite::attention::Case;
use suite::attention_blocks::{self, Kind, Shared, SparseRunner};
use suite::operands::Random;

/// Runs a problem on a device.
struct OnDevice {
    device: Device,
}

impl SparseRunner for OnDevice {
    fn attend<T: Element>(
        &self,
        problem: &SparseAttention,
        tensors: [HeadsView<'_, T>; 3],
        o: &mut HeadsViewMut<'_, T>,
        lse: Option<&mut DenseViewMut<'_, f32>>,
    ) -> Result<()> {
        let plan = problem.plan(self.device.num_multiprocessors())?;
        attention_device::launch(&self.device, &plan, tensors, o, lse)
    }
}

/// What is small enough for every tool.
fn check_small<T: Element>(device: Device, head_dim: usize) {
    let runner = OnDevice { device };
    for kind in Kind::ALL {
        attention_blocks::check_options::<T>(&runner, kind, head_dim);
        attention_blocks::check_options::<T>(&runner, kind, head_dim - 24);
        attention_blocks::check_edges::<T>(&runner, kind, head_dim);
        attention_blocks::check_leaks::<T>(&runner, kind, head_dim);
        attention_blocks::check_batches::<T>(&runner, kind, head_dim);
    }
}

macro_rules! small_is_right {
    ($($name:ident, $element:ty, $head_dim:literal;)*) => {
        $(
            #[test]
            fn $name() {
                let Some(device) = gpu::device_or_skip(stringify!($name)) else { return };
                check_small::<$element>(device, $head_dim);
            }
        )*
    };
}

small_is_right! {
    attention_blocks_small_bf16_64, bf16, 64;
    attention_blocks_small_bf16_128, bf16, 128;
    attention_blocks_small_f16_64, f16, 64;
    attention_blocks_small_f16_128, f16, 128;
}

/// Several tiles a worker, of which some rows are compared.
fn check_large<T: Element>(device: Device, head_dim: usize) {
    let runner = OnDevice { device };
    let mut random = Random::fresh();
    let lengths = [3000, 17, 0, 4096, 1, 900];
    for (queries, keys, heads) in [
        (Sequences::Equal { batch: 2, len: 4096 }, Sequences::Equal { batch: 2, len: 4096 }, (4, 4)),
        (Sequences::Equal { batch: 1, len: 1000 }, Sequences::Equal { batch: 1, len: 9003 }, (8, 2)),
        (Sequences::of_lengths(&lengths), Sequences::of_lengths(&lengths), (4, 1)),
    ] {
        for (kind, window) in Kind::ALL.into_iter().flat_map(|kind| [(kind, Window::FULL), (kind, Window::CAUSAL)]) {
            let problem = Attention::new(queries.clone(), heads.0, head_dim, T::DTYPE)
                .with_keys(keys.clone())
                .with_key_heads(heads.1)
                .with_window(window);
            let mut case = attention_blocks::case(kind, problem, [Shared::No; 2], &mut random);
            case.case.most_rows = 100;
            attention_blocks::check_case::<T>(&runner, &case);
        }
    }
}

#[test]
fn attention_blocks_large_bf16_128() {
    let Some(device) = gpu::device_or_skip("attention_blocks_large_bf16_128") else { return };
    check_large::<bf16>(device, 128);
}

#[test]
fn attention_blocks_large_f16_64() {
    let Some(device) = gpu::device_or_skip("attention_blocks_large_f16_64") else { return };
    check_large::<f16>(device, 64);
}

/// Lists out of Q and K, of a prompt of 20,000 tokens.
#[test]
fn attention_blocks_large_estimates() {
    let Some(device) = gpu::device_or_skip("attention_blocks_large_estimates") else { return };
    let runner = OnDevice { device };
    let problem = Attention::new(Sequences::Equal { batch: 1, len: 20_000 }, 4, 128, Dtype::Bf16)
        .with_key_heads(2)
        .with_window(Window::CAUSAL);
    let case = Case { most_rows: 100, ..Case::of(problem.clone(), &mut Random::fresh()) };
    let inputs = case.inputs::<bf16>();
    let (q, k) = (inputs[0].view(), inputs[1].view());
    let lists: [KeyLists; 3] = [
        estimate::a_shape(&problem, BlockSize::B128, 128, 1024).expect("lists").into(),
        estimate::top_blocks(&problem, q, k, BlockSize::B64, 32).expect("lists").into(),
        estimate::vertical_slash(&problem, q, k, VerticalSlashOptions::new(500, 200)).expect("lists").into(),
    ];
    for lists in lists {
        attention_blocks::check_lists(&runner, &case, &inputs, &lists);
    }
}
