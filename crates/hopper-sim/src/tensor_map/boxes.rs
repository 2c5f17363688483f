//! The bytes that a box names, in global and in shared memory.

use super::{TensorMap, TensorSwizzle};

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
        let mut offset = 0_u64;
        let outer = self.dims.iter().zip(&self.box_dims).zip(at).skip(1);
        for (((&extent, &box_extent), &at), stride) in outer.zip(&self.strides) {
            let index = i64::from(at) + i64::from(line % box_extent);
            line /= box_extent;
            let index = u64::try_from(index).ok().filter(|&index| index < extent)?;
            // Addresses are numbers modulo 2^64: a stride may stand for a step back.
            offset = offset.wrapping_add(index.wrapping_mul(*stride));
        }
        Some(self.base.wrapping_add(offset as usize))
    }
}
