//! Multiplies two matrices with the kernel of `kernels/`, and compares the result with a plain product in f64.
//!
//! Where there is no Hopper device it says why, and ends well: building the kernel needs none.

use std::process::ExitCode;

use half::bf16;
use hopper_sparse::formats::Layout;
use hopper_sparse::gpu::{
    Device, DeviceBuffer, DeviceDenseView, GpuError, Kernel, Stream, TensorMap, TensorMapSpec, TensorMapSwizzle,
    TensorMaps,
};
use hopper_std::sm90::TileShape;
use own_kernel_device::{GEMM, TileA, TileB};

// `KERNELS: &[(&str, &str)]`, the name and the PTX of each kernel: what build.rs wrote.
include!(concat!(env!("OUT_DIR"), "/kernels.rs"));

/// M, N and K: none of them whole tiles. TMA wants rows of whole 16 bytes, so N and K are multiples of 8.
const SHAPE: [usize; 3] = [1000, 520, 456];

fn main() -> ExitCode {
    let device = match Device::hopper() {
        Ok(device) => device,
        Err(reason) => {
            println!("not run: {reason}");
            return ExitCode::SUCCESS;
        }
    };
    let [m, n, k] = SHAPE;
    let (a, b) = (values(m * k, 1), values(k * n, 2));
    match multiply(&device, &a, &b) {
        Ok(c) => report(device.name(), largest_error(&a, &b, &c)),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// C = A B on the device.
fn multiply(device: &Device, a: &[bf16], b: &[bf16]) -> Result<Vec<f32>, GpuError> {
    let [m, n, k] = SHAPE;
    let (a, b) = (DeviceBuffer::from_slice(device, a)?, DeviceBuffer::from_slice(device, b)?);
    let c = DeviceBuffer::<f32>::filled(device, m * n, 0xFF)?; // NaN: what the kernel leaves out is seen
    let maps = [map::<TileA>(device, &a, m, k)?, map::<TileB>(device, &b, k, n)?];
    let maps = TensorMaps::upload(device, &maps)?;
    let [map_a, map_b] = maps.addresses();

    let kernel = Kernel::from_ptx(device, &GEMM, KERNELS[0].1)?;
    let stream = Stream::new(device)?; // a stream of cust: one of the caller's own serves as well
    let grid = (m.div_ceil(128) as u32, n.div_ceil(128) as u32);
    // SAFETY: the parameters are those of `gemm`, as its contract says; all of it lives until the stream is done.
    unsafe { kernel.launch(grid, &stream, (map_a, map_b, c.ptr(), m as u32, n as u32, k as u32))? };
    stream.synchronize()?;
    c.to_vec()
}

/// The tensor map of a row-major matrix whose box is the tile `T`.
fn map<T: TileShape>(
    device: &Device,
    matrix: &DeviceBuffer<bf16>,
    rows: usize,
    cols: usize,
) -> Result<TensorMap, GpuError> {
    let view = DeviceDenseView::of_buffer(matrix, rows, cols, cols, Layout::RowMajor)?;
    TensorMap::new(device, &TensorMapSpec::matrix(&view, T::BOX, TensorMapSwizzle::Bytes128))
}

/// Numbers in [-1, 1) from a linear congruential sequence.
fn values(count: usize, seed: u32) -> Vec<bf16> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        bf16::from_f32((state >> 8) as f32 / (1 << 23) as f32 - 1.0)
    };
    (0..count).map(|_| next()).collect()
}

/// The largest of |C - A B| over |A| |B|, element by element; NaN where C has one.
fn largest_error(a: &[bf16], b: &[bf16], c: &[f32]) -> f64 {
    let [_, n, k] = SHAPE;
    let mut largest = 0.0_f64;
    for (i, row) in a.chunks_exact(k).enumerate() {
        for j in 0..n {
            let (mut sum, mut scale) = (0.0, 0.0);
            for (x, y) in row.iter().zip(b[j..].iter().step_by(n)) {
                let product = x.to_f64() * y.to_f64();
                sum += product;
                scale += product.abs();
            }
            let error = (f64::from(c[i * n + j]) - sum).abs() / scale;
            if error.is_nan() {
                return error;
            }
            largest = largest.max(error);
        }
    }
    largest
}

/// Prints the error, and says whether it is small enough: K sums in f32, each rounded by at most 2^-23.
fn report(device: &str, error: f64) -> ExitCode {
    let [m, n, k] = SHAPE;
    let bound = k as f64 * f64::from(f32::EPSILON);
    println!("{device}: C = A B of {m} x {n} x {k}, error {error:.1e} of at most {bound:.1e}");
    if error <= bound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
