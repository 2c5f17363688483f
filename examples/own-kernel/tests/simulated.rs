//! The kernel on the CPU, in the simulator: right in every order of events, and nothing found. It needs no GPU.

use half::bf16;
use hopper_sim::{Address, Memory, Mode, Schedule, TensorElement, TensorMap, TensorSwizzle, launch};
use hopper_std::sm90::{TensorMapRef, TileShape};
use own_kernel_device::{GEMM, TileA, TileB, gemm};

/// M, N and K: two tiles by two, all of them ragged, and more steps of K than the ring has stages.
const SHAPE: [usize; 3] = [152, 136, 328];

/// The tensor map of a row-major matrix whose box is the tile `T`.
fn map<T: TileShape>(memory: &mut Memory, matrix: *mut bf16, rows: usize, cols: usize) -> Address<u8> {
    let (dims, strides) = ([cols as u64, rows as u64], [cols as u64 * 2]);
    let map = TensorMap::new(TensorElement::Bf16, matrix.cast(), &dims, &strides, &T::BOX, TensorSwizzle::B128);
    Address::new(memory.tensor_map(map.unwrap()).unwrap().cast_mut())
}

/// Small integers: their products and sums are exact in f32.
fn values(count: usize, seed: usize) -> Vec<bf16> {
    (0..count).map(|index| bf16::from_f32(((index * seed) % 7) as f32 - 3.0)).collect()
}

#[test]
fn the_product_is_right_in_every_order() {
    let [m, n, k] = SHAPE;
    let (a, b) = (values(m * k, 5), values(k * n, 11));
    let exact = |at: usize| -> f32 { (0..k).map(|k_| (a[at / n * k + k_] * b[k_ * n + at % n]).to_f32()).sum() };
    let exact: Vec<f32> = (0..m * n).map(exact).collect();
    for mode in Mode::ALL {
        let mut memory = Memory::new();
        let (at_a, at_b) = (memory.upload("A", &a), memory.upload("B", &b));
        let c = memory.upload("C", &vec![f32::NAN; m * n]); // what the kernel leaves out is seen
        let (map_a, map_b) = (map::<TileA>(&mut memory, at_a, m, k), map::<TileB>(&mut memory, at_b, k, n));
        let at_c = Address::new(c.cast::<u32>());
        let grid = [m.div_ceil(128) as u32, n.div_ceil(128) as u32, 1];
        let report = launch(&GEMM, grid, &memory, Schedule::new(mode, 1), || {
            // SAFETY: the parameters are those of `gemm`, as its contract says; all of it lives in `memory`.
            unsafe {
                let (map_a, map_b) = (TensorMapRef::from_raw(map_a.get()), TensorMapRef::from_raw(map_b.get()));
                gemm(map_a, map_b, at_c.get(), m as u32, n as u32, k as u32);
            }
        });
        report.assert_clean();
        assert!(memory.download(c, m * n) == exact, "{mode:?}: another product");
    }
}
