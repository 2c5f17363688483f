//! The attributes `#[kernel]` and `#[instruction]`, and the [`SharedLayout`](macro@SharedLayout) derive of hopper-std.
//!
//! Import them from hopper-std: what they expand to names `::hopper_std`.

mod kernel;
mod shared_layout;

use proc_macro::TokenStream;

/// Makes a function a kernel: an entry of the PTX with a [`KernelSpec`] that states how it must be launched.
///
/// ```ignore
/// /// Doubles `n` floats.
/// ///
/// /// # Safety
/// /// `x` points to `n` floats of device memory that nothing else uses during the launch.
/// #[kernel(threads = 256, shared = 0)]
/// pub unsafe fn double(x: *mut f32, n: u32) { /* ... */ }
/// ```
///
/// | argument | meaning | type | default |
/// | --- | --- | --- | --- |
/// | `threads` | threads of a block, exactly | `u32` constant | required |
/// | `shared` | dynamic shared memory, in bytes | `usize` constant | required |
/// | `cluster` | blocks of a cluster along x | `u32` constant | 1 |
/// | `min_blocks` | blocks that fit a multiprocessor at once | `u32` constant | 1 |
///
/// `kernel` named `double` also gives `pub const DOUBLE: KernelSpec`, on the device and on the host. On the device the
/// function is a PTX entry, and a global named `__hopper_spec_double` holds the specification's record, from which
/// hopper-builder writes the launch bounds. Elsewhere it is a plain `unsafe fn` with the same body.
///
/// [`KernelSpec`]: https://docs.rs/hopper-std
#[proc_macro_attribute]
pub fn kernel(arguments: TokenStream, item: TokenStream) -> TokenStream {
    kernel::expand(arguments.into(), item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Gives every field of a `#[repr(C)]` struct a function from the struct's shared-memory address to the field's.
///
/// For a field `full: [FullBarrier; 4]` of `Smem` the derive writes
/// `fn full(this: Shared<Smem>) -> Shared<[FullBarrier; 4]>`, with the field's visibility and documentation: the offset
/// comes from the compiler, so a kernel computes none. Generic parameters, const ones too, are allowed.
#[proc_macro_derive(SharedLayout)]
pub fn shared_layout(item: TokenStream) -> TokenStream {
    shared_layout::expand(item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Of hopper-std's own: a function that is an instruction, or a few, to the kernel that calls it.
///
/// Inlined on every target. In a simulated launch (the CPU, with the feature `sim`) `Location::caller()` within it is its
/// caller, so that through any number of such functions an instruction is reported at the line of the kernel.
#[proc_macro_attribute]
pub fn instruction(_arguments: TokenStream, item: TokenStream) -> TokenStream {
    let item = proc_macro2::TokenStream::from(item);
    quote::quote! {
        #[inline(always)]
        #[cfg_attr(all(feature = "sim", not(target_arch = "nvptx64")), track_caller)]
        #item
    }
    .into()
}
