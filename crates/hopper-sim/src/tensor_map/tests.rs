//! Boxes inside, across and outside of tensors, swizzles, and what is refused.

use half::{bf16, f16};

use super::*;

/// A tensor of bytes that count up, 16-byte aligned.
fn bytes(count: usize) -> Vec<u128> {
    let mut words = vec![0; count.div_ceil(16)];
    for (index, byte) in bytemuck::cast_slice_mut::<_, u8>(&mut words).iter_mut().enumerate() {
        *byte = (index % 251) as u8 + 1;
    }
    words
}

/// Loads a box into otherwise untouched shared memory of `shared_bytes`, that is 0xff.
fn load(map: &TensorMap, at: &[i32], shared: u32, shared_bytes: usize) -> Vec<u8> {
    let mut memory = vec![0xff; shared_bytes];
    let mut total = 0;
    for piece in map.pieces(at, shared, Way::Load) {
        let to = &mut memory[piece.shared as usize..][..piece.bytes as usize];
        match piece.global {
            // SAFETY: the tests' tensors live, and pieces lie inside of them.
            Some(from) => to.copy_from_slice(unsafe { core::slice::from_raw_parts(from, piece.bytes as usize) }),
            None => to.fill(0),
        }
        total += piece.bytes;
    }
    assert_eq!(total, map.box_bytes());
    memory
}

fn map(base: *mut u8, dims: &[u64], strides: &[u64], box_dims: &[u32], swizzle: TensorSwizzle) -> TensorMap {
    TensorMap::new(TensorElement::U16, base, dims, strides, box_dims, swizzle).unwrap()
}

#[test]
fn a_box_inside_lies_densely() {
    let mut memory = bytes(64 * 32);
    let base = memory.as_mut_ptr().cast::<u8>();
    let map = map(base, &[32, 32], &[64], &[8, 4], TensorSwizzle::None);
    let shared = load(&map, &[3, 5], 128, 256);
    let tensor: &[u8] = bytemuck::cast_slice(&memory);
    for row in 0..4 {
        assert_eq!(shared[128 + 16 * row..][..16], tensor[(5 + row) * 64 + 6..][..16]);
    }
    assert!(shared[192..].iter().all(|&byte| byte == 0xff));
}

#[test]
fn outside_is_zero_on_every_side() {
    let mut memory = bytes(32 * 8 * 4);
    let base = memory.as_mut_ptr().cast::<u8>();
    let map = map(base, &[13, 7, 4], &[32, 256], &[24, 9, 6], TensorSwizzle::None);
    let tensor: &[u8] = bytemuck::cast_slice(&memory);
    let corner = [-4, -1, -1];
    let shared = load(&map, &corner, 0, map.box_bytes() as usize);
    for z in 0..6_i32 {
        for y in 0..9_i32 {
            for x in 0..24_i32 {
                let (gx, gy, gz) = (x + corner[0], y + corner[1], z + corner[2]);
                let inside = (0..13).contains(&gx) && (0..7).contains(&gy) && (0..4).contains(&gz);
                let at = ((z * 9 + y) * 24 + x) as usize * 2;
                let expected = if inside { &tensor[(gz * 256 + gy * 32 + gx * 2) as usize..][..2] } else { &[0, 0] };
                assert_eq!(&shared[at..][..2], expected, "{x} {y} {z}");
            }
        }
    }
    // Far outside, and in lines that miss the tensor altogether.
    assert!(load(&map, &[100, 0, 0], 0, 4096).iter().take(map.box_bytes() as usize).all(|&byte| byte == 0));
    assert!(map.pieces(&[-100, 0, 0], 0, Way::Load).iter().all(|piece| piece.global.is_none()));
    assert!(map.pieces(&[i32::MIN, i32::MAX, 0], 0, Way::Load).iter().all(|piece| piece.global.is_none()));
}

#[test]
fn five_dimensions_and_one() {
    let mut memory = bytes(16 * 2 * 2 * 2 * 2);
    let base = memory.as_mut_ptr().cast::<u8>();
    let five = map(base, &[8, 2, 2, 2, 2], &[16, 32, 64, 128], &[8, 2, 2, 2, 2], TensorSwizzle::None);
    let tensor: &[u8] = bytemuck::cast_slice(&memory);
    assert_eq!(load(&five, &[0; 5], 0, 256), tensor);
    let one = map(base, &[128], &[], &[64], TensorSwizzle::None);
    assert_eq!(load(&one, &[32], 0, 128), tensor[64..192]);
}

#[test]
fn swizzles_take_the_bits_of_the_shared_address() {
    let mut memory = bytes(128 * 16);
    let base = memory.as_mut_ptr().cast::<u8>();
    let map = map(base, &[64, 16], &[128], &[64, 8], TensorSwizzle::B128);
    let shared = load(&map, &[0, 0], 1024, 4096);
    let tensor: &[u8] = bytemuck::cast_slice(&memory);
    for row in 0..8 {
        for unit in 0..8 {
            let at = 1024 + row * 128 + ((unit ^ row) * 16);
            assert_eq!(shared[at..][..16], tensor[row * 128 + unit * 16..][..16]);
        }
    }
    // From a line in the middle of an atom on: the line's own address counts.
    let shared = load(&map, &[0, 0], 1024 + 3 * 128, 4096);
    assert_eq!(shared[1024 + 3 * 128 + 3 * 16..][..16], tensor[..16]);
}

#[test]
fn a_boundary_within_a_swizzled_unit() {
    let mut memory = bytes(64);
    let base = memory.as_mut_ptr().cast::<u8>();
    let map = map(base, &[11, 2], &[32], &[16, 2], TensorSwizzle::B32);
    let pieces = map.pieces(&[0, 0], 128, Way::Load);
    let of_line: Vec<_> = pieces[..3].iter().map(|piece| (piece.global.is_some(), piece.shared, piece.bytes)).collect();
    assert_eq!(of_line, [(true, 128 + 16, 16), (true, 128, 6), (false, 134, 10)]);
}

#[test]
fn what_is_refused() {
    let base = 4096 as *mut u8;
    let new = |base: *mut u8, dims: &[u64], strides: &[u64], box_dims: &[u32], swizzle| {
        TensorMap::new(TensorElement::Bf16, base, dims, strides, box_dims, swizzle).map(|_| ()).unwrap_err()
    };
    let none = TensorSwizzle::None;
    assert!(new(base, &[], &[], &[], none).contains("dimensions"));
    assert!(new(base, &[8; 6], &[16; 5], &[8; 6], none).contains("dimensions"));
    assert!(new(base, &[8, 8], &[], &[8, 8], none).contains("strides"));
    assert!(new(base.wrapping_add(8), &[8], &[], &[8], none).contains("multiple of 16"));
    assert!(new(base, &[0], &[], &[8], none).contains("dimension 0"));
    assert!(new(base, &[8, 8], &[24], &[8, 8], none).contains("stride"));
    assert!(new(base, &[16, 8], &[16], &[8, 8], none).contains("fewer"));
    assert!(new(base, &[512, 8], &[1024], &[257, 8], none).contains("1 to 256"));
    assert!(new(base, &[8, 8], &[16], &[4, 8], none).contains("8 bytes"));
    assert!(new(base, &[64, 8], &[128], &[64, 8], TensorSwizzle::B64).contains("swizzle"));
    assert!(new(base, &[256, 256, 8], &[512, 512 * 256], &[256, 256, 2], none).contains("shared memory"));
    // Heads within a line: the outer strides fall.
    let heads =
        TensorMap::new(TensorElement::Bf16, base, &[64, 100, 4], &[512, 128], &[64, 64, 1], TensorSwizzle::B128);
    assert!(heads.is_ok());
}

#[test]
fn an_encoded_map_is_aligned_as_the_hardware_demands() {
    let map = map(4096 as *mut u8, &[8], &[], &[8], TensorSwizzle::None);
    let encoded = map.encode().unwrap();
    assert!(encoded.address().addr().is_multiple_of(64));
    assert_eq!(encoded.map().dims, [8]);
}

#[test]
fn sums_in_each_type() {
    fn sum<T: bytemuck::Pod>(element: TensorElement, a: T, b: T) -> T {
        let mut to = [a];
        add(element, bytemuck::cast_slice_mut(&mut to), bytemuck::bytes_of(&b)).unwrap();
        to[0]
    }
    assert_eq!(sum(TensorElement::F32, 1.5_f32, 2.25), 3.75);
    assert_eq!(sum(TensorElement::F64, 1.5_f64, 2.25), 3.75);
    assert_eq!(sum(TensorElement::U32, u32::MAX, 2), 1);
    assert_eq!(sum(TensorElement::F16, f16::from_f32(2048.0), f16::from_f32(1.0)).to_f32(), 2048.0);
    assert_eq!(sum(TensorElement::Bf16, bf16::from_f32(256.0), bf16::from_f32(3.0)).to_f32(), 260.0);
    assert!(add(TensorElement::U8, &mut [1], &[2]).is_err());
}

#[test]
fn boxes_that_no_copy_takes() {
    let mut line = vec![0_u8; 4096];
    let map =
        TensorMap::new(TensorElement::U16, line.as_mut_ptr(), &[64, 8], &[128], &[32, 4], TensorSwizzle::B64).unwrap();
    assert!(map.refuses(&[3, 0], Way::Load).is_some_and(|text| text.contains("begins 6 bytes")));
    assert!(map.refuses(&[-8, -1], Way::Load).is_none());
    assert!(map.refuses(&[-8, 0], Way::Store).is_some());
    assert!(map.refuses(&[8, 7], Way::Store).is_none());
}
