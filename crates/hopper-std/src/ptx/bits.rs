//! Bytes and bits of words. PTX ISA 9.7.8.7 (`shf`), 9.7.9.7 (`prmt`), 9.7.1.23 (`dp4a`).
//!
//! Arithmetic: a CPU does it as well.

use hopper_macros::instruction;

/// `prmt.b32 d, low, high, selector;` Thread. Byte i of the result is that byte of `low` (0 to 3) or `high` (4 to 7) which nibble
/// i of the selector names by its lower three bits, or, with the fourth, that byte's sign eight times; bits 16 and up do not count.
///
/// # Safety
/// None; unsafe as all of this module is.
#[instruction]
pub unsafe fn prmt_b32(low: u32, high: u32, selector: u32) -> u32 {
    let bytes: u32;
    ptx_asm!(
        cpu {
            let [a, b] = [low.to_le_bytes(), high.to_le_bytes()];
            bytes = u32::from_le_bytes(core::array::from_fn(|byte| {
                let name = (selector >> (4 * byte) & 0xf) as usize;
                let named = if name & 4 == 0 { a[name & 3] } else { b[name & 3] };
                if name & 8 == 0 { named } else { (named as i8 >> 7) as u8 }
            }));
        }
        "prmt.b32 {}, {}, {}, {};",
        out(reg32) bytes,
        in(reg32) low,
        in(reg32) high,
        in(reg32) selector,
        options(pure, nomem, nostack)
    );
    bytes
}

/// `shf.r.wrap.b32 d, low, high, count;` Thread. Bits `count % 32` and up of the pair of words.
///
/// # Safety
/// None; unsafe as all of this module is.
#[instruction]
pub unsafe fn shf_r_wrap_b32(low: u32, high: u32, count: u32) -> u32 {
    let word: u32;
    ptx_asm!(
        cpu { word = ((u64::from(high) << 32 | u64::from(low)) >> (count % 32)) as u32 }
        "shf.r.wrap.b32 {}, {}, {}, {};",
        out(reg32) word,
        in(reg32) low,
        in(reg32) high,
        in(reg32) count,
        options(pure, nomem, nostack)
    );
    word
}

/// `shf.r.clamp.b32 d, low, high, count;` Thread. Bits `count` and up of the pair of words, at most 32.
///
/// # Safety
/// None; unsafe as all of this module is.
#[instruction]
pub unsafe fn shf_r_clamp_b32(low: u32, high: u32, count: u32) -> u32 {
    let word: u32;
    ptx_asm!(
        cpu {
            let count = if count > 32 { 32 } else { count };
            word = ((u64::from(high) << 32 | u64::from(low)) >> count) as u32;
        }
        "shf.r.clamp.b32 {}, {}, {}, {};",
        out(reg32) word,
        in(reg32) low,
        in(reg32) high,
        in(reg32) count,
        options(pure, nomem, nostack)
    );
    word
}

/// `dp4a.u32.u32 d, a, b, c;` Thread. The products of the words' bytes, added to `c`.
///
/// # Safety
/// None; unsafe as all of this module is.
#[instruction]
pub unsafe fn dp4a_u32_u32(a: u32, b: u32, c: u32) -> u32 {
    let sum: u32;
    ptx_asm!(
        cpu {
            let products = a.to_le_bytes().into_iter().zip(b.to_le_bytes()).map(|(a, b)| u32::from(a) * u32::from(b));
            sum = products.fold(c, u32::wrapping_add);
        }
        "dp4a.u32.u32 {}, {}, {}, {};",
        out(reg32) sum,
        in(reg32) a,
        in(reg32) b,
        in(reg32) c,
        options(pure, nomem, nostack)
    );
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_shifts() {
        // SAFETY: arithmetic of the CPU.
        unsafe {
            assert_eq!(prmt_b32(0x3322_1100, 0x7766_5544, 0xffff_7250), 0x7722_5500);
            assert_eq!(shf_r_wrap_b32(0x4444_3333, 0x6666_5555, 16), 0x5555_4444);
            assert_eq!(shf_r_wrap_b32(0x4444_3333, 0x6666_5555, 32), 0x4444_3333);
            assert_eq!(shf_r_clamp_b32(0x4444_3333, 0x6666_5555, 32), 0x6666_5555);
            assert_eq!(shf_r_clamp_b32(0x4444_3333, 0x6666_5555, 48), 0x6666_5555);
            assert_eq!(dp4a_u32_u32(0x0403_0201, 0x0101_0101, 7), 17);
        }
    }
}
