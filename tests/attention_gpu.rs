//! The attention kernels against the reference, on a device: the suite of the simulator, and larger problems.

#![cfg(feature = "gpu")]

#[path = "suite/attention_device.rs"]
mod attention_device;
#[path = "suite/gpu.rs"]
mod gpu;
mod suite;

use std::slice;
use std::sync::Arc;
use std::thread;

use hopper_sparse::formats::{DenseViewMut, HeadsView, HeadsViewMut};
use hopper_sparse::gpu::{Device, DeviceBuffer, DeviceHeadsView, DeviceHeadsViewMut, DevicePtr, Stream};
use hopper_sparse::ops::attention::{Attention, AttentionPlan, OneQuery, Sequences, Whole, Window};
use hopper_sparse::{Dtype, Element, Result, bf16, f16};
use kernels_gpu::attention::{CONFIGURATIONS, Configuration};
use suite::attention::{self, Case, Choices, Runner};
use suite::operands::Random;
use suite::{cache, isolation, one_query};

/// Runs a problem on a device by the kernel that the plan chooses, or by one of some kernels.
struct OnDevice {
    device: Device,
    kernels: Option<&'static [Configuration]>,
    one_query: OneQuery,
}

impl OnDevice {
    /// By the kernels that plans choose.
    fn chosen(device: &Device) -> Self {
        Self { device: device.clone(), kernels: None, one_query: OneQuery::default() }
    }

    fn plan(&self, problem: &Attention) -> Result<AttentionPlan> {
        let multiprocessors = self.device.num_multiprocessors();
        Ok(problem.plan_with(self.kernels.unwrap_or(CONFIGURATIONS), multiprocessors, self.one_query)?)
    }
}

impl Runner for OnDevice {
    fn attend<T: Element>(
        &self,
        problem: &Attention,
        tensors: [HeadsView<'_, T>; 3],
        o: &mut HeadsViewMut<'_, T>,
        lse: Option<&mut DenseViewMut<'_, f32>>,
    ) -> Result<()> {
        attention_device::launch(&self.device, &self.plan(problem)?, tensors, o, lse)
    }
}

/// Runs `check` with each kernel for rows of `head_dim` elements of a type, beginning with the one that plans choose.
fn with_kernels(device: &Device, dtype: Dtype, head_dim: usize, check: impl Fn(&OnDevice)) {
    check(&OnDevice::chosen(device));
    let problem = Attention::new(Sequences::of_lengths(&[]), 1, head_dim, dtype);
    for kernel in problem.kernels().filter(|kernel| kernel.head_dim == head_dim) {
        check(&OnDevice { kernels: Some(slice::from_ref(kernel)), ..OnDevice::chosen(device) });
    }
}

/// What is small enough for every tool.
fn check_small<T: Element>(device: &Device, head_dim: usize) {
    with_kernels(device, T::DTYPE, head_dim, |runner| {
        attention::check_options::<T>(runner, head_dim, Choices::All);
        attention::check_edges::<T>(runner, head_dim);
        attention::check_climbs::<T>(runner, head_dim);
        attention::check_short_sequences::<T>(runner, head_dim);
        isolation::check_leaks::<T>(runner, head_dim);
        isolation::check_batches::<T>(runner, head_dim);
    });
    let runner = OnDevice::chosen(device);
    attention::check_options::<T>(&runner, head_dim - 24, Choices::All);
    // The default takes some of the small problems in one part, these all others in several.
    for whole in [Whole::Stored, Whole::Combined] {
        for one_query in [OneQuery { whole, ..OneQuery::default() }, OneQuery { keys_per_part: 128, whole }] {
            let runner = OnDevice { one_query, ..OnDevice::chosen(device) };
            one_query::check_one_query::<T>(&runner, head_dim);
            one_query::check_one_query::<T>(&runner, head_dim - 8);
            one_query::check_one_query_leaks::<T>(&runner, head_dim);
            one_query::check_one_query_batches::<T>(&runner, head_dim, 333);
        }
    }
}

/// Several tiles a worker. Rows of which the reference is quick are compared, by every kernel with the same.
fn check_large<T: Element>(device: &Device, head_dim: usize) {
    let mut random = Random::fresh();
    let lengths = [3000, 17, 0, 4096, 1, 900];
    for (queries, keys, heads) in [
        (Sequences::Equal { batch: 2, len: 4096 }, Sequences::Equal { batch: 2, len: 4096 }, (8, 8)),
        (Sequences::Equal { batch: 3, len: 1000 }, Sequences::Equal { batch: 3, len: 5003 }, (8, 2)),
        (Sequences::of_lengths(&lengths), Sequences::of_lengths(&lengths), (16, 4)),
        (Sequences::Equal { batch: 6, len: 1 }, Sequences::of_lengths(&lengths), (32, 8)),
    ] {
        let problem = Attention::new(queries, heads.0, head_dim, T::DTYPE).with_keys(keys).with_key_heads(heads.1);
        check_variants::<T>(
            &Case { most_rows: 100, ..Case::of(problem, &mut random) },
            &[
                (Window::FULL, None),
                (Window::CAUSAL, None),
                (Window::CAUSAL, Some(20.0)),
                (Window::sliding(1000), None),
                (Window { left: Some(300), right: Some(2000) }, Some(4.0)),
            ],
            |check| with_kernels(device, T::DTYPE, head_dim, |runner| check(runner)),
        );
    }
}

/// One problem with each of these windows and softcaps. Inputs are drawn once, and the reference computed once for all runners.
fn check_variants<T: Element>(
    case: &Case,
    variants: &[(Window, Option<f32>)],
    with_runners: impl Fn(&dyn Fn(&OnDevice)),
) {
    let inputs = case.inputs::<T>();
    for &(window, softcap) in variants {
        let case = Case { problem: Attention { window, softcap, ..case.problem.clone() }, ..case.clone() };
        let expected = case.expected(&inputs, &case.rows());
        with_runners(&|runner| expected.check(&case.run(runner, &inputs)));
    }
}

/// Contexts of 8 and 64 thousand keys for one query each: in parts, equal, packed and beside longer sequences.
fn check_long<T: Element>(device: &Device, head_dim: usize) {
    let mut random = Random::fresh();
    let ones = |batch| Sequences::Equal { batch, len: 1 };
    let packed = Sequences::of_lengths;
    let runner = OnDevice::chosen(device);
    for (queries, keys, heads) in [
        (ones(16), Sequences::Equal { batch: 16, len: 8192 }, (16, 4)),
        (ones(2), Sequences::Equal { batch: 2, len: 65_536 }, (8, 2)),
        (ones(4), packed(&[65_537, 1, 1024, 8191]), (16, 1)),
        (packed(&[1; 4]), packed(&[0, 65_536, 1025, 8192]), (16, 4)),
        (packed(&[1, 300, 1, 2]), packed(&[8192, 300, 65_535, 8192]), (4, 4)),
    ] {
        let problem = Attention::new(queries, heads.0, head_dim, T::DTYPE).with_keys(keys).with_key_heads(heads.1);
        check_variants::<T>(
            &Case { most_rows: 32, ..Case::of(problem, &mut random) },
            &[(Window::FULL, None), (Window::CAUSAL, Some(20.0)), (Window::sliding(5000), None)],
            |check| check(&runner),
        );
    }
    one_query::check_one_query_batches::<T>(&runner, head_dim, 8192);
    one_query::check_one_query_batches::<T>(&runner, head_dim, 65_536);
}

/// Tests of a type and a head dimension, each on a device of its own.
macro_rules! on_device {
    ($($name:ident: $check:ident::<$element:ty>($head_dim:literal);)*) => {
        $(
            #[test]
            fn $name() {
                let Some(device) = gpu::device_or_skip(stringify!($name)) else { return };
                $check::<$element>(&device, $head_dim);
            }
        )*
    };
}

on_device! {
    attention_small_bf16_64: check_small::<bf16>(64);
    attention_small_bf16_96: check_small::<bf16>(96);
    attention_small_bf16_128: check_small::<bf16>(128);
    attention_small_bf16_192: check_small::<bf16>(192);
    attention_small_bf16_256: check_small::<bf16>(256);
    attention_small_f16_64: check_small::<f16>(64);
    attention_small_f16_96: check_small::<f16>(96);
    attention_small_f16_128: check_small::<f16>(128);
    attention_small_f16_192: check_small::<f16>(192);
    attention_small_f16_256: check_small::<f16>(256);
    attention_large_bf16_64: check_large::<bf16>(64);
    attention_large_bf16_128: check_large::<bf16>(128);
    attention_large_bf16_256: check_large::<bf16>(256);
    attention_large_f16_96: check_large::<f16>(96);
    attention_large_f16_192: check_large::<f16>(192);
    attention_one_query_bf16_64: check_long::<bf16>(64);
    attention_one_query_bf16_128: check_long::<bf16>(128);
    attention_one_query_bf16_256: check_long::<bf16>(256);
    attention_one_query_f16_128: check_long::<f16>(128);
}

/// A million keys: no index overflows, and sums of so many lose no more than the textbook's.
#[test]
fn attention_small_caches() {
    let Some(device) = gpu::device_or_skip("attention_small_caches") else { return };
    cache::check_caches::<bf16>(&OnDevice::chosen(&device), 128);
    cache::check_caches::<f16>(&OnDevice::chosen(&device), 64);
    cache::check_cache_bits::<bf16>(&OnDevice::chosen(&device), 128);
}

#[test]
fn attention_a_million_keys() {
    let Some(device) = gpu::device_or_skip("attention_a_million_keys") else { return };
    let (runner, mut random) = (OnDevice::chosen(&device), Random::fresh());
    for keys in [Sequences::Equal { batch: 1, len: 1 << 20 }, Sequences::of_lengths(&[1 << 20])] {
        let problem = Attention::new(Sequences::Equal { batch: 1, len: 40 }, 2, 128, Dtype::Bf16)
            .with_keys(keys)
            .with_key_heads(1);
        let case = Case { most_rows: 8, ..Case::of(problem, &mut random) };
        let variants = [(Window::FULL, None), (Window::sliding(1 << 19), None)];
        check_variants::<bf16>(&case, &variants, |check| check(&runner));
    }
}

/// The same inputs give the same bits, from several threads on several streams of one prepared plan.
#[test]
fn attention_small_threads_and_streams() {
    let Some(device) = gpu::device_or_skip("attention_small_threads_and_streams") else { return };
    let lengths = Sequences::of_lengths(&[700, 90, 1300]);
    let problem = Attention::new(lengths, 8, 128, Dtype::Bf16).with_key_heads(2).with_window(Window::CAUSAL);
    check_threads(&device, &problem);
    // Each launch has a workspace of its own.
    check_threads(&device, &Attention { queries: Sequences::of_lengths(&[1, 90, 1]), ..problem.clone() });
}

fn check_threads(device: &Device, problem: &Attention) {
    let case = Case::of(problem.clone(), &mut Random::fresh());
    let inputs = case.inputs::<bf16>();
    let buffers = Arc::new([0, 1, 2].map(|index| {
        let data = inputs[index].view().data();
        DeviceBuffer::from_slice(device, data).expect("device memory")
    }));
    let places = [0, 1, 2].map(|index| (inputs[index].view().shape(), inputs[index].view().strides()));
    let plan = problem.plan(device.num_multiprocessors()).expect("a plan");
    let prepared = Arc::new(plan.prepare::<bf16>(device).expect("device memory"));

    let run = |_: usize| {
        let (device, prepared, buffers) = (device.clone(), Arc::clone(&prepared), Arc::clone(&buffers));
        thread::spawn(move || {
            let stream = Stream::new(&device).expect("a stream");
            let mut results = Vec::new();
            for _ in 0..5 {
                let [q, k, v] = [0, 1, 2].map(|index| {
                    let (shape, strides) = places[index];
                    DeviceHeadsView::of_buffer(&buffers[index], shape, strides).expect("a view")
                });
                let mut o = DeviceBuffer::<bf16>::filled(&device, buffers[0].len(), 0xff).expect("device memory");
                let mut view = DeviceHeadsViewMut::of_buffer(&mut o, q.shape(), q.strides()).expect("a view");
                // SAFETY: the buffers live until the stream is synchronized.
                unsafe { prepared.launch(&stream, q, k, v, &mut view, None).expect("a launch") };
                stream.synchronize().expect("no fault");
                results.push(o.to_vec().expect("a download").iter().map(|value| value.to_bits()).collect::<Vec<_>>());
            }
            results
        })
    };
    let threads: Vec<_> = (0..4).map(run).collect();
    let results: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect();
    assert!(results.iter().all(|bits| *bits == results[0]), "the bits differ between launches");
}

/// Memory that does not begin at a multiple of 16 bytes is refused before the driver sees it.
#[test]
fn attention_small_misaligned_memory() {
    let Some(device) = gpu::device_or_skip("attention_small_misaligned_memory") else { return };
    let problem = Attention::new(Sequences::of_lengths(&[5]), 1, 64, Dtype::F16);
    let prepared = problem.plan(4).expect("a plan").prepare::<f16>(&device).expect("device memory");
    let mut o = DeviceBuffer::<f16>::filled(&device, 1000, 0).expect("device memory");
    let strides = hopper_sparse::formats::HeadsStrides { batch: 0, token: 64, head: 64 };
    let q = DeviceBuffer::<f16>::filled(&device, 1000, 0).expect("device memory");
    let at = |bytes| {
        let ptr = DevicePtr(q.ptr().0 + bytes);
        // SAFETY: the buffer has so many elements behind that address, and nothing writes to it.
        unsafe { DeviceHeadsView::<f16>::from_raw_parts(ptr, problem.query_shape(), strides) }.expect("a view")
    };
    let mut o = DeviceHeadsViewMut::of_buffer(&mut o, problem.query_shape(), strides).expect("a view");
    let stream = Stream::new(&device).expect("a stream");
    // SAFETY: the buffers live until the stream is synchronized.
    let refused = unsafe { prepared.launch(&stream, at(0), at(8), at(16), &mut o, None) };
    assert!(refused.expect_err("K is misaligned").to_string().starts_with("K begins at 0x"));
    // SAFETY: as above.
    unsafe { prepared.launch(&stream, at(0), at(32), at(16), &mut o, None) }.expect("a launch");
    stream.synchronize().expect("no fault");
}
