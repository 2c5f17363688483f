//! Conversions and approximate functions. PTX ISA 9.7.9.21 and 9.7.3.

use hopper_macros::instruction;

#[cfg(not(target_arch = "nvptx64"))]
use super::cpu::{bf16_from_f32, f16_from_f32, f32_from_f16, flush, max, use_f32};

/// `cvt.rn.bf16x2.f32 d, high, low;` Thread. `low` goes to bits 0..16.
///
/// # Safety
/// None; unsafe as all of this module is.
#[instruction]
pub unsafe fn cvt_rn_bf16x2_f32(high: f32, low: f32) -> u32 {
    let pair: u32;
    ptx_asm!(
        cpu {
            use_f32([high, low]);
            pair = u32::from(bf16_from_f32(high)) << 16 | u32::from(bf16_from_f32(low));
        }
        "cvt.rn.bf16x2.f32 {}, {}, {};",
        out(reg32) pair,
        in(reg32) high,
        in(reg32) low,
        options(pure, nomem, nostack)
    );
    pair
}

/// `cvt.rn.f16x2.f32 d, high, low;` Thread. `low` goes to bits 0..16.
///
/// # Safety
/// None; unsafe as all of this module is.
#[instruction]
pub unsafe fn cvt_rn_f16x2_f32(high: f32, low: f32) -> u32 {
    let pair: u32;
    ptx_asm!(
        cpu {
            use_f32([high, low]);
            pair = u32::from(f16_from_f32(high)) << 16 | u32::from(f16_from_f32(low));
        }
        "cvt.rn.f16x2.f32 {}, {}, {};",
        out(reg32) pair,
        in(reg32) high,
        in(reg32) low,
        options(pure, nomem, nostack)
    );
    pair
}

/// `cvt.f32.f16 d, half;` Thread.
///
/// # Safety
/// None; unsafe as all of this module is.
#[instruction]
pub unsafe fn cvt_f32_f16(half: u16) -> f32 {
    let value: f32;
    ptx_asm!(
        cpu { value = f32_from_f16(half) }
        "cvt.f32.f16 {}, {};", out(reg32) value, in(reg16) half, options(pure, nomem, nostack)
    );
    value
}

/// `ex2.approx.ftz.f32 d, x;` Thread. 2^x, 2 ulp.
///
/// # Safety
/// None; unsafe as all of this module is.
#[instruction]
pub unsafe fn ex2_approx_ftz_f32(x: f32) -> f32 {
    let value: f32;
    ptx_asm!(
        cpu {
            use_f32([x]);
            value = flush(flush(x).exp2());
        }
        "ex2.approx.ftz.f32 {}, {};", out(reg32) value, in(reg32) x, options(pure, nomem, nostack)
    );
    value
}

/// `lg2.approx.ftz.f32 d, x;` Thread. log2(x), 2^-22 absolute where the result is near 0.
///
/// # Safety
/// None; unsafe as all of this module is.
#[instruction]
pub unsafe fn lg2_approx_ftz_f32(x: f32) -> f32 {
    let value: f32;
    ptx_asm!(
        cpu {
            use_f32([x]);
            value = flush(flush(x).log2());
        }
        "lg2.approx.ftz.f32 {}, {};", out(reg32) value, in(reg32) x, options(pure, nomem, nostack)
    );
    value
}

/// `rcp.approx.ftz.f32 d, x;` Thread. 1 / x, 1 ulp.
///
/// # Safety
/// None; unsafe as all of this module is.
#[instruction]
pub unsafe fn rcp_approx_ftz_f32(x: f32) -> f32 {
    let value: f32;
    ptx_asm!(
        cpu {
            use_f32([x]);
            value = flush(1.0 / flush(x));
        }
        "rcp.approx.ftz.f32 {}, {};", out(reg32) value, in(reg32) x, options(pure, nomem, nostack)
    );
    value
}

/// `fma.rn.f32 d, a, b, c;` Thread.
///
/// # Safety
/// None; unsafe as all of this module is.
#[instruction]
pub unsafe fn fma_rn_f32(a: f32, b: f32, c: f32) -> f32 {
    let value: f32;
    ptx_asm!(
        cpu {
            use_f32([a, b, c]);
            value = a.mul_add(b, c);
        }
        "fma.rn.f32 {}, {}, {}, {};",
        out(reg32) value,
        in(reg32) a,
        in(reg32) b,
        in(reg32) c,
        options(pure, nomem, nostack)
    );
    value
}

/// `max.f32 d, a, b;` Thread. The other operand where one is NaN.
///
/// # Safety
/// None; unsafe as all of this module is.
#[instruction]
pub unsafe fn max_f32(a: f32, b: f32) -> f32 {
    let value: f32;
    ptx_asm!(
        cpu {
            use_f32([a, b]);
            value = max(a, b);
        }
        "max.f32 {}, {}, {};",
        out(reg32) value,
        in(reg32) a,
        in(reg32) b,
        options(pure, nomem, nostack)
    );
    value
}
