//! The GPU kernels against the reference, on a device: the suite of the CPU backend, and what only a device has.

#![cfg(feature = "gpu")]

#[path = "suite/gpu.rs"]
mod gpu;
mod suite;

use std::sync::Arc;
use std::thread;

use hopper_sparse::formats::{BcsrView, BlockShape, CsrView, DenseView, DenseViewMut, Layout};
use hopper_sparse::gpu::{Device, DeviceBuffer, DeviceDenseView, DeviceDenseViewMut, Stream};
use hopper_sparse::ops::bcsr::{BcsrSpmm, Cluster};
use hopper_sparse::ops::csr::{CsrSpmm, RowSharing};
use hopper_sparse::reference::naive::Unit;
use hopper_sparse::{Element, Result, bf16, f16};
use suite::operands::{Padding, Random, Sparse};
use suite::products::{self, Runner};
use suite::{Case, Format, Placement, Specials, csr_rows};

impl Runner for Device {
    fn multiply_bcsr<T: Element, U: Element>(
        &self,
        cluster: Cluster,
        (alpha, beta): (f64, f64),
        a: BcsrView<'_, T>,
        b: DenseView<'_, T>,
        c: &mut DenseViewMut<'_, U>,
    ) -> Result<()> {
        let problem = BcsrSpmm::new(&a, b.num_cols(), U::DTYPE, b.layout(), c.layout());
        let prepared = problem.plan_with(&a, self.num_multiprocessors(), cluster)?.prepare(self, &a)?;
        gpu::on_device(self, b, c, |stream, b, c| {
            // SAFETY: `gpu::on_device` keeps B and C until the launch is done.
            unsafe { prepared.launch(stream, alpha as f32, b, beta as f32, c) }
        })
    }

    fn multiply_csr<T: Element, U: Element>(
        &self,
        sharing: RowSharing,
        (alpha, beta): (f64, f64),
        a: CsrView<'_, T>,
        b: DenseView<'_, T>,
        c: &mut DenseViewMut<'_, U>,
    ) -> Result<()> {
        let problem = CsrSpmm::new(&a, b.num_cols(), U::DTYPE, b.layout(), c.layout());
        let prepared = problem.plan_with(&a, sharing)?.prepare(self, &a)?;
        gpu::on_device(self, b, c, |stream, b, c| {
            // SAFETY: `gpu::on_device` keeps B and C until the launch is done.
            unsafe { prepared.launch(stream, alpha as f32, b, beta as f32, c) }
        })
    }
}

macro_rules! blocks_are_right {
    ($($name:ident, $rows:literal, $cols:literal;)*) => {
        $(
            #[test]
            fn $name() {
                let Some(device) = gpu::device_or_skip(stringify!($name)) else { return };
                let block = BlockShape { rows: $rows, cols: $cols };
                products::check_bcsr::<bf16, bf16>(&device, block, Cluster::Auto);
                products::check_bcsr::<bf16, f32>(&device, block, Cluster::Auto);
                products::check_bcsr::<f16, f16>(&device, block, Cluster::Auto);
                products::check_bcsr::<f16, f32>(&device, block, Cluster::Auto);
            }
        )*
    };
}

blocks_are_right! {
    bcsr_small_blocks_128x128, 128, 128;
    bcsr_small_blocks_128x64, 128, 64;
    bcsr_small_blocks_128x32, 128, 32;
    bcsr_small_blocks_128x16, 128, 16;
    bcsr_small_blocks_64x128, 64, 128;
    bcsr_small_blocks_64x64, 64, 64;
    bcsr_small_blocks_64x32, 64, 32;
    bcsr_small_blocks_64x16, 64, 16;
}

#[test]
fn bcsr_small_clusters() {
    let Some(device) = gpu::device_or_skip("bcsr_small_clusters") else { return };
    products::check_bcsr::<bf16, bf16>(&device, BlockShape { rows: 128, cols: 64 }, Cluster::Two);
    products::check_bcsr::<f16, f32>(&device, BlockShape { rows: 128, cols: 128 }, Cluster::Two);
}

/// One problem of several tiles a worker, in every layout, with and without a cluster.
#[test]
fn bcsr_large() {
    let Some(device) = gpu::device_or_skip("bcsr_large") else { return };
    let mut random = Random::fresh();
    for (block, cluster) in [
        (BlockShape { rows: 128, cols: 64 }, Cluster::One),
        (BlockShape { rows: 128, cols: 64 }, Cluster::Two),
        (BlockShape { rows: 64, cols: 64 }, Cluster::Auto),
        (BlockShape { rows: 128, cols: 16 }, Cluster::Auto),
    ] {
        for (b, c) in [
            (Layout::RowMajor, Layout::RowMajor),
            (Layout::ColumnMajor, Layout::ColumnMajor),
            (Layout::RowMajor, Layout::ColumnMajor),
        ] {
            let placed = |layout| Placement { layout, padding: Padding::Tight };
            let case = Case {
                format: Format::Bcsr(block),
                shape: (3000, 3333, 2000),
                density: 0.15,
                b: placed(b),
                c: placed(c),
                alpha: 1.0,
                beta: 0.0,
                seed: random.next(),
                unit: Unit::TensorCore,
            };
            products::check_case::<bf16, bf16>(&device, &case, Specials::None, cluster);
        }
    }
}

/// The same inputs give the same bits, from several threads on several streams of one prepared product.
#[test]
fn bcsr_small_threads_and_streams() {
    let Some(device) = gpu::device_or_skip("bcsr_small_threads_and_streams") else { return };
    let block = BlockShape { rows: 128, cols: 64 };
    let mut random = Random::fresh();
    let arrays = suite::operands::SparseArrays::<bf16>::random(Format::Bcsr(block), 1000, 1500, 0.3, &mut random);
    let Sparse::Bcsr(a) = arrays.view() else { unreachable!("blocks were asked for") };
    let placed = Placement { layout: Layout::RowMajor, padding: Padding::Tight };
    let b = suite::operands::Buffer::<bf16>::random(1500, 640, placed, &mut random);
    let problem = BcsrSpmm::new(&a, 640, bf16::DTYPE, Layout::RowMajor, Layout::RowMajor);
    let plan = problem.plan(&a, device.num_multiprocessors()).expect("a plan");
    let prepared = Arc::new(plan.prepare(&device, &a).expect("device memory"));
    let device_b = Arc::new(DeviceBuffer::from_slice(&device, b.view().data()).expect("device memory"));

    let run = |_: usize| {
        let (device, prepared, device_b) = (device.clone(), Arc::clone(&prepared), Arc::clone(&device_b));
        thread::spawn(move || {
            let stream = Stream::new(&device).expect("a stream");
            let mut results = Vec::new();
            for _ in 0..5 {
                let c = DeviceBuffer::<bf16>::filled(&device, 1000 * 640, 0xff).expect("device memory");
                let b = DeviceDenseView::of_buffer(&device_b, 1500, 640, 640, Layout::RowMajor).expect("a view");
                // SAFETY: the buffer has that many elements, and nothing else uses it.
                let view =
                    unsafe { DeviceDenseViewMut::<bf16>::from_raw_parts(c.ptr(), 1000, 640, 640, Layout::RowMajor) };
                // SAFETY: the buffers live until the stream is synchronized.
                unsafe { prepared.launch(&stream, 1.0, b, 0.0, &mut view.expect("a view")).expect("a launch") };
                stream.synchronize().expect("no fault");
                results.push(c.to_vec().expect("a download").iter().map(|value| value.to_bits()).collect::<Vec<_>>());
            }
            results
        })
    };
    let threads: Vec<_> = (0..4).map(run).collect();
    let results: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect();
    assert!(results.iter().all(|bits| *bits == results[0]), "the bits differ between launches");
}

macro_rules! entries_are_right {
    ($($name:ident, $input:ty, $output:ty;)*) => {
        $(
            #[test]
            fn $name() {
                let Some(device) = gpu::device_or_skip(stringify!($name)) else { return };
                products::check_csr::<$input, $output>(&device);
            }
        )*
    };
}

entries_are_right! {
    csr_small_bf16_to_bf16, bf16, bf16;
    csr_small_bf16_to_f32, bf16, f32;
    csr_small_f16_to_f16, f16, f16;
    csr_small_f16_to_f32, f16, f32;
    csr_small_f32_to_f32, f32, f32;
}

/// Every width of load, and several chunks of columns.
#[test]
fn csr_small_widths() {
    let Some(device) = gpu::device_or_skip("csr_small_widths") else { return };
    products::check_csr_widths(&device, (37, 111));
}

/// Long rows in parts, in both orders.
#[test]
fn csr_small_long_rows() {
    let Some(device) = gpu::device_or_skip("csr_small_long_rows") else { return };
    csr_rows::check_long_rows(&device);
    csr_rows::check_runs(&device);
    csr_rows::check_rows_of_note(&device);
}

#[test]
fn csr_small_bits_depend_on_the_row_and_the_column() {
    let Some(device) = gpu::device_or_skip("csr_small_bits_depend_on_the_row_and_the_column") else { return };
    csr_rows::check_bits_of_rows(&device);
}

/// A view that breaks the format's promises is refused before the device follows it.
#[test]
fn csr_small_broken_views() {
    let Some(device) = gpu::device_or_skip("csr_small_broken_views") else { return };
    let sound =
        CsrView { num_rows: 2, num_cols: 3, row_offsets: &[0, 1, 2], col_indices: &[0, 2], values: &[1.0_f32; 2] };
    let prepare = |a: CsrView<'_, f32>| {
        let plan = CsrSpmm::new(&a, 4, f32::DTYPE, Layout::RowMajor, Layout::RowMajor).plan(&a)?;
        plan.prepare(&device, &a)
    };
    assert!(prepare(sound).is_ok());
    assert!(prepare(CsrView { row_offsets: &[0, 1, 9], ..sound }).is_err());
    assert!(prepare(CsrView { col_indices: &[0, 3], ..sound }).is_err());
    assert!(prepare(CsrView { row_offsets: &[0, 2], ..sound }).is_err());
}
