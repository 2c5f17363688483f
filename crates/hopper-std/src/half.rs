//! 16-bit floats as kernels carry them: bits, never arithmetic. `asm!` has no class for them.

use hopper_macros::instruction;

/// bfloat16, as its 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Bf16(pub u16);

/// IEEE binary16, as its 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct F16(pub u16);

/// A 16-bit float that the tensor cores take.
pub trait Half: Copy + 'static {
    /// The name in kernel names: `bf16` or `f16`.
    const NAME: &'static str;

    /// Rounds two floats to nearest even and packs them; `low` in bits 0..16.
    fn pack(low: f32, high: f32) -> u32;

    /// Widens both halves of a packed pair: `(bits 0..16, bits 16..32)`.
    fn unpack(pair: u32) -> (f32, f32);
}

impl Half for Bf16 {
    const NAME: &'static str = "bf16";

    #[instruction]
    fn pack(low: f32, high: f32) -> u32 {
        // SAFETY: a conversion has no preconditions.
        unsafe { crate::ptx::convert::cvt_rn_bf16x2_f32(high, low) }
    }

    #[inline(always)]
    fn unpack(pair: u32) -> (f32, f32) {
        (f32::from_bits(pair << 16), f32::from_bits(pair & 0xffff_0000))
    }
}

impl Half for F16 {
    const NAME: &'static str = "f16";

    #[instruction]
    fn pack(low: f32, high: f32) -> u32 {
        // SAFETY: a conversion has no preconditions.
        unsafe { crate::ptx::convert::cvt_rn_f16x2_f32(high, low) }
    }

    #[instruction]
    fn unpack(pair: u32) -> (f32, f32) {
        // SAFETY: a conversion has no preconditions.
        unsafe {
            (crate::ptx::convert::cvt_f32_f16(pair as u16), crate::ptx::convert::cvt_f32_f16((pair >> 16) as u16))
        }
    }
}
