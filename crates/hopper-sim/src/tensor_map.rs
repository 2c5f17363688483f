//! Tensor maps as the simulator reads them, and the bytes that their boxes name.

use half::{bf16, f16};

/// The type of a tensor's elements: what a reduction adds, and how many bytes an element has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TensorElement {
    /// 8 bits.
    U8,
    /// 16-bit integers.
    U16,
    /// 32-bit integers.
    U32,
    /// binary16.
    F16,
    /// bfloat16.
    Bf16,
    /// binary32.
    F32,
    /// binary64.
    F64,
}

impl TensorElement {
    /// Bytes of one element.
    pub const fn bytes(self) -> u32 {
        match self {
            Self::U8 => 1,
            Self::U16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

/// The swizzle of a box in shared memory: which 16-byte units of its lines change places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorSwizzle {
    /// None.
    None,
    /// Address bit 4 is xored with bit 7.
    B32,
    /// Address bits 4 and 5 are xored with bits 7 and 8.
    B64,
    /// Address bits 4 to 6 are xored with bits 7 to 9.
    B128,
}

impl TensorSwizzle {
    /// Bytes of the lines within which units change places; `None` where none do.
    pub const fn span_bytes(self) -> Option<u32> {
        match self {
            Self::None => None,
            Self::B32 => Some(32),
            Self::B64 => Some(64),
            Self::B128 => Some(128),
        }
    }

    /// Where the byte lies that would lie at `address` without the swizzle. PTX ISA 5.5.7.
    pub const fn apply(self, address: u32) -> u32 {
        match self.span_bytes() {
            None => address,
            Some(span) => address ^ (((address >> 7) & (span / 16 - 1)) << 4),
        }
    }
}

/// A tensor in global memory and the box that one copy moves, as `cuTensorMapEncodeTiled` takes them.
#[derive(Clone, Debug)]
pub struct TensorMap {
    /// The type of the elements.
    pub element: TensorElement,
    /// The address of element 0, a multiple of 16.
    pub base: *mut u8,
    /// Elements of each dimension, the contiguous one first; 1 to 5 dimensions.
    pub dims: Vec<u64>,
    /// Bytes from one to the next in each dimension but the first; multiples of 16.
    pub strides: Vec<u64>,
    /// Elements of the box in each dimension, at most 256.
    pub box_dims: Vec<u32>,
    /// The swizzle of the box in shared memory.
    pub swizzle: TensorSwizzle,
}

// SAFETY: the base is an address for the simulated copy engine; nothing here reads or writes through it.
unsafe impl Send for TensorMap {}
// SAFETY: as above.
unsafe impl Sync for TensorMap {}

/// Dynamic shared memory of a block, at most.
const SHARED_BYTES: u64 = 227 * 1024;

/// Bytes that one copy moves as a whole: global and shared addresses that run together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Where in global memory; `None` outside of the tensor: zeros on a load, nothing on a store.
    pub(crate) global: Option<*mut u8>,
    /// Where in shared memory, swizzled.
    pub(crate) shared: u32,
    /// How many; with a swizzle at most 16, within one unit.
    pub(crate) bytes: u32,
}

/// Which way a box goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// To shared memory.
    Load,
    /// To global memory.
    Store,
}

impl TensorMap {
    /// A map that keeps the rules of `cuTensorMapEncodeTiled`.
    ///
    /// # Errors
    /// A sentence that names the first rule it does not keep.
    pub fn new(
        element: TensorElement,
        base: *mut u8,
        dims: &[u64],
        strides: &[u64],
        box_dims: &[u32],
        swizzle: TensorSwizzle,
    ) -> Result<Self, String> {
        let map = Self {
            element,
            base,
            dims: dims.to_vec(),
            strides: strides.to_vec(),
            box_dims: box_dims.to_vec(),
            swizzle,
        };
        map.check()?;
        Ok(map)
    }

    /// Whether it keeps the rules.
    ///
    /// # Errors
    /// A sentence that names the first rule it does not keep.
    pub fn check(&self) -> Result<(), String> {
        let rank = self.dims.len();
        if !(1..=5).contains(&rank) {
            return Err(format!("a tensor has 1 to 5 dimensions, this one {rank}"));
        }
        if self.box_dims.len() != rank || self.strides.len() != rank - 1 {
            return Err(format!(
                "a tensor of {rank} dimensions needs {rank} box extents and {} strides, this one has {} and {}",
                rank - 1,
                self.box_dims.len(),
                self.strides.len()
            ));
        }
        if !self.base.addr().is_multiple_of(16) {
            return Err(format!("the tensor begins at {:p}, not at a multiple of 16", self.base));
        }
        if let Some(dim) = self.dims.iter().position(|&extent| extent == 0 || extent > 1 << 32) {
            return Err(format!("dimension {dim} has {} elements, not 1 to 2^32", self.dims[dim]));
        }
        let element_bytes = u64::from(self.element.bytes());
        let line_bytes = self.dims[0] * element_bytes;
        for (dim, &stride) in (1..).zip(&self.strides) {
            if !stride.is_multiple_of(16) || stride >= 1 << 40 {
                return Err(format!(
                    "the stride of dimension {dim} is {stride} bytes, not a multiple of 16 under 2^40"
                ));
            }
            // The outer strides may come in any order: heads within a line of a batch, for one.
            if stride < line_bytes && self.dims[dim] > 1 {
                return Err(format!(
                    "the stride of dimension {dim} is {stride} bytes, fewer than the {line_bytes} of dimension 0"
                ));
            }
        }
        if let Some(dim) = self.box_dims.iter().position(|extent| !(1..=256).contains(extent)) {
            return Err(format!("the box has {} elements in dimension {dim}, not 1 to 256", self.box_dims[dim]));
        }
        let inner_bytes = self.inner_bytes();
        if !inner_bytes.is_multiple_of(16) {
            return Err(format!("the inner extent of the box has {inner_bytes} bytes, not a multiple of 16"));
        }
        if let Some(span) = self.swizzle.span_bytes().filter(|&span| inner_bytes > span) {
            return Err(format!("the inner extent of the box has {inner_bytes} bytes, more than the swizzle's {span}"));
        }
        let bytes = self.box_dims.iter().fold(element_bytes, |bytes, &extent| bytes * u64::from(extent));
        if bytes > SHARED_BYTES {
            return Err(format!("the box has {bytes} bytes, more than the {SHARED_BYTES} of shared memory"));
        }
        Ok(())
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Bytes of one box: what a load adds to its barrier, wherever the box lies.
    pub fn box_bytes(&self) -> u32 {
        self.box_dims.iter().product::<u32>() * self.element.bytes()
    }

    /// In a form that a kernel can be given the address of.
    ///
    /// # Errors
    /// As [`TensorMap::check`].
    pub fn encode(self) -> Result<EncodedTensorMap, String> {
        self.check()?;
        Ok(EncodedTensorMap { map: Box::new(self), _unused: [0; 15] })
    }

    fn inner_bytes(&self) -> u32 {
        self.box_dims[0] * self.element.bytes()
    }

    /// Why no copy takes a box that begins at `at`, where none does.
    ///
    /// The device stops at such a box with an illegal instruction; seen on an H200, the documents do not say it.
    pub(crate) fn refuses(&self, at: &[i32], way: Way) -> Option<String> {
        let bytes = i64::from(at[0]) * i64::from(self.element.bytes());
        if bytes.rem_euclid(16) != 0 {
            return Some(format!(
                "the box begins {bytes} bytes into the contiguous dimension: it must begin at a multiple of 16"
            ));
        }
        let negative = way == Way::Store && at.iter().any(|&at| at < 0);
        negative.then(|| format!("a store begins at {at:?}: only a load may begin before the tensor"))
    }

    /// The bytes of the box whose first element has the coordinates `at`, in the order in which they lie in shared memory
    /// from `shared` on before they are swizzled: the first dimension fastest. Lines that are shorter than the swizzle's
    /// span lie a span apart, others densely.
    ///
    /// A store writes whole units of 16 bytes: where a line of the tensor ends within one, the padding behind it, too (seen
    /// on an H200).
    ///
    /// # Panics
    /// Where `at` has not as many coordinates as the tensor has dimensions.
    pub(crate) fn pieces(&self, at: &[i32], shared: u32, way: Way) -> Vec<Piece> {
        assert_eq!(at.len(), self.rank(), "one coordinate for each dimension");
        let inner_bytes = self.inner_bytes();
        let element_bytes = i64::from(self.element.bytes());
        // Of a line of the box, the bytes from `low` to `high` lie inside of the tensor.
        let first = i64::from(at[0]) * element_bytes;
        let low = (-first).clamp(0, inner_bytes.into()) as u32;
        let end = self.dims[0] as i64 * element_bytes;
        let end = if way == Way::Store { (end + 15) / 16 * 16 } else { end };
        let high = (end - first).clamp(low.into(), inner_bytes.into()) as u32;
        let pitch = self.swizzle.span_bytes().unwrap_or(inner_bytes);
        let num_lines: u32 = self.box_dims[1..].iter().product();
        let mut pieces = Vec::new();
        for line in 0..num_lines {
            let start = self.line_address(at, line);
            let line_shared = shared + line * pitch;
            let mut offset = 0;
            while offset < inner_bytes {
                let inside = start.is_some() && (low..high).contains(&offset);
                let mut end = match start {
                    Some(_) if offset < low => low,
                    Some(_) if offset < high => high,
                    _ => inner_bytes,
                };
                if self.swizzle != TensorSwizzle::None {
                    end = end.min((offset / 16 + 1) * 16);
                }
                pieces.push(Piece {
                    global: start
                        .filter(|_| inside)
                        .map(|start| start.wrapping_offset((first + i64::from(offset)) as isize)),
                    shared: self.swizzle.apply(line_shared + offset),
                    bytes: end - offset,
                });
                offset = end;
            }
        }
        pieces
    }

    /// The address of element 0 of the tensor's line under line `line` of the box; `None` where there is none.
    fn line_address(&self, at: &[i32], mut line: u32) -> Option<*mut u8> {
        let mut offset = 0;
        let outer = self.dims.iter().zip(&self.box_dims).zip(at).skip(1);
        for (((&extent, &box_extent), &at), stride) in outer.zip(&self.strides) {
            let index = i64::from(at) + i64::from(line % box_extent);
            line /= box_extent;
            let index = u64::try_from(index).ok().filter(|&index| index < extent)?;
            offset += index * stride;
        }
        Some(self.base.wrapping_add(offset as usize))
    }
}

/// A [`TensorMap`] as kernels know it: 128 bytes that are named by their address, aligned to 64.
///
/// It is not moved while a kernel has its address.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct EncodedTensorMap {
    map: Box<TensorMap>,
    _unused: [u64; 15],
}

const _: () = assert!(size_of::<EncodedTensorMap>() == 128);

impl EncodedTensorMap {
    /// The map.
    pub fn map(&self) -> &TensorMap {
        &self.map
    }

    /// What a kernel is given.
    pub fn address(&self) -> *const u8 {
        core::ptr::from_ref(self).cast()
    }
}

/// Adds `source` to `destination`, element by element, as a reducing store does: each sum rounded to the type.
///
/// # Errors
/// A sentence, where no reduction adds such elements.
///
/// # Panics
/// Where both have not as many bytes, or part of an element.
pub(crate) fn add(element: TensorElement, destination: &mut [u8], source: &[u8]) -> Result<(), String> {
    fn each<const BYTES: usize>(to: &mut [u8], from: &[u8], sum: impl Fn([u8; BYTES], [u8; BYTES]) -> [u8; BYTES]) {
        let (to, to_rest) = to.as_chunks_mut();
        let (from, from_rest) = from.as_chunks();
        assert!(to.len() == from.len() && to_rest.is_empty() && from_rest.is_empty(), "as many whole elements");
        for (to, from) in to.iter_mut().zip(from) {
            *to = sum(*to, *from);
        }
    }
    match element {
        TensorElement::U8 | TensorElement::U16 => {
            return Err(format!("no reduction adds elements of the type {element:?}"));
        }
        TensorElement::U32 => {
            each(destination, source, |a, b| u32::from_le_bytes(a).wrapping_add(u32::from_le_bytes(b)).to_le_bytes())
        }
        TensorElement::F16 => each(destination, source, |a, b| {
            // A sum of two such numbers in binary32 is rounded so far beyond the type that rounding again does no harm.
            f16::from_f32(f16::from_le_bytes(a).to_f32() + f16::from_le_bytes(b).to_f32()).to_le_bytes()
        }),
        TensorElement::Bf16 => each(destination, source, |a, b| {
            bf16::from_f64(bf16::from_le_bytes(a).to_f64() + bf16::from_le_bytes(b).to_f64()).to_le_bytes()
        }),
        TensorElement::F32 => {
            each(destination, source, |a, b| (f32::from_le_bytes(a) + f32::from_le_bytes(b)).to_le_bytes());
        }
        TensorElement::F64 => {
            each(destination, source, |a, b| (f64::from_le_bytes(a) + f64::from_le_bytes(b)).to_le_bytes());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
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
                    let expected =
                        if inside { &tensor[(gz * 256 + gy * 32 + gx * 2) as usize..][..2] } else { &[0, 0] };
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
        let of_line: Vec<_> =
            pieces[..3].iter().map(|piece| (piece.global.is_some(), piece.shared, piece.bytes)).collect();
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
        let map = TensorMap::new(TensorElement::U16, line.as_mut_ptr(), &[64, 8], &[128], &[32, 4], TensorSwizzle::B64)
            .unwrap();
        assert!(map.refuses(&[3, 0], Way::Load).is_some_and(|text| text.contains("begins 6 bytes")));
        assert!(map.refuses(&[-8, -1], Way::Load).is_none());
        assert!(map.refuses(&[-8, 0], Way::Store).is_some());
        assert!(map.refuses(&[8, 7], Way::Store).is_none());
    }
}
