//! The types of elements: how they are loaded, widened, rounded and stored.

use hopper_std::half::{Bf16, F16, Half};
use hopper_std::ptx::memory::{
    ld_global_nc_l2_128b_v2_u32, ld_global_nc_l2_128b_v4_u32, ld_global_nc_u16, ld_global_nc_u32, ld_global_u16,
    ld_global_u32, st_global_u16, st_global_u32,
};

/// A type that A, B and C may have.
pub trait Element: Copy + 'static {
    /// Elements in a 32-bit word.
    const PER_WORD: usize;

    /// Widens the elements of a word; the second is zero where there is but one.
    fn unpack(word: u32) -> (f32, f32);

    /// Rounds to nearest even and packs a word; of the first alone where it holds but one.
    fn pack(first: f32, second: f32) -> u32;

    /// Loads and widens an element that nobody writes during the kernel.
    ///
    /// # Safety
    /// The address is readable and aligned.
    unsafe fn load_constant(address: *const Self) -> f32;

    /// Loads and widens four neighbours that nobody writes during the kernel, and of which all that follow are read.
    ///
    /// # Safety
    /// The address is readable, and aligned to the four.
    unsafe fn load_constant_group(address: *const Self) -> [f32; 4];

    /// Loads and widens an element.
    ///
    /// # Safety
    /// The address is readable and aligned.
    unsafe fn load(address: *const Self) -> f32;

    /// Rounds and stores an element.
    ///
    /// # Safety
    /// The address is writable and aligned.
    unsafe fn store(address: *mut Self, value: f32);
}

macro_rules! half_element {
    ($($half:ident)*) => {
        $(
            impl Element for $half {
                const PER_WORD: usize = 2;

                #[inline(always)]
                fn unpack(word: u32) -> (f32, f32) {
                    <Self as Half>::unpack(word)
                }

                #[inline(always)]
                fn pack(first: f32, second: f32) -> u32 {
                    <Self as Half>::pack(first, second)
                }

                #[inline(always)]
                unsafe fn load_constant(address: *const Self) -> f32 {
                    // SAFETY: the caller's promise.
                    <Self as Half>::unpack(u32::from(unsafe { ld_global_nc_u16(address.cast()) })).0
                }

                #[inline(always)]
                unsafe fn load_constant_group(address: *const Self) -> [f32; 4] {
                    // SAFETY: the caller's promise.
                    let [low, high] = unsafe { ld_global_nc_l2_128b_v2_u32(address.cast()) };
                    let ((a, b), (c, d)) = (<Self as Half>::unpack(low), <Self as Half>::unpack(high));
                    [a, b, c, d]
                }

                #[inline(always)]
                unsafe fn load(address: *const Self) -> f32 {
                    // SAFETY: the caller's promise.
                    <Self as Half>::unpack(u32::from(unsafe { ld_global_u16(address.cast()) })).0
                }

                #[inline(always)]
                unsafe fn store(address: *mut Self, value: f32) {
                    // SAFETY: the caller's promise.
                    unsafe { st_global_u16(address.cast(), <Self as Half>::pack(value, 0.0) as u16) }
                }
            }
        )*
    };
}

half_element!(Bf16 F16);

impl Element for f32 {
    const PER_WORD: usize = 1;

    #[inline(always)]
    fn unpack(word: u32) -> (f32, f32) {
        (f32::from_bits(word), 0.0)
    }

    #[inline(always)]
    fn pack(first: f32, _: f32) -> u32 {
        first.to_bits()
    }

    #[inline(always)]
    unsafe fn load_constant(address: *const Self) -> f32 {
        // SAFETY: the caller's promise.
        f32::from_bits(unsafe { ld_global_nc_u32(address.cast()) }[0])
    }

    #[inline(always)]
    unsafe fn load_constant_group(address: *const Self) -> [f32; 4] {
        // SAFETY: the caller's promise.
        unsafe { ld_global_nc_l2_128b_v4_u32(address.cast()) }.map(f32::from_bits)
    }

    #[inline(always)]
    unsafe fn load(address: *const Self) -> f32 {
        // SAFETY: the caller's promise.
        f32::from_bits(unsafe { ld_global_u32(address.cast()) }[0])
    }

    #[inline(always)]
    unsafe fn store(address: *mut Self, value: f32) {
        // SAFETY: the caller's promise.
        unsafe { st_global_u32(address.cast(), [value.to_bits()]) }
    }
}
