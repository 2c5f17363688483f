//! Special registers. PTX ISA 10.

macro_rules! special {
    ($($(#[$doc:meta])* $name:ident, $type:ty, $class:ident, $line:literal;)*) => {
        $(
            $(#[$doc])*
            ///
            /// Thread.
            ///
            /// # Safety
            /// None; unsafe as all of this module is.
            #[inline(always)]
            pub unsafe fn $name() -> $type {
                let value: $type;
                ptx_asm!($line, out($class) value, options(pure, nomem, nostack));
                value
            }
        )*
    };
}

special! {
    /// `%tid.x`
    tid_x, u32, reg32, "mov.u32 {}, %tid.x;";
    /// `%ntid.x`
    ntid_x, u32, reg32, "mov.u32 {}, %ntid.x;";
    /// `%ctaid.x`
    ctaid_x, u32, reg32, "mov.u32 {}, %ctaid.x;";
    /// `%ctaid.y`
    ctaid_y, u32, reg32, "mov.u32 {}, %ctaid.y;";
    /// `%ctaid.z`
    ctaid_z, u32, reg32, "mov.u32 {}, %ctaid.z;";
    /// `%nctaid.x`
    nctaid_x, u32, reg32, "mov.u32 {}, %nctaid.x;";
    /// `%nctaid.y`
    nctaid_y, u32, reg32, "mov.u32 {}, %nctaid.y;";
    /// `%nctaid.z`
    nctaid_z, u32, reg32, "mov.u32 {}, %nctaid.z;";
    /// `%laneid`
    laneid, u32, reg32, "mov.u32 {}, %laneid;";
    /// `%smid`
    smid, u32, reg32, "mov.u32 {}, %smid;";
    /// `%clusterid.x`
    clusterid_x, u32, reg32, "mov.u32 {}, %clusterid.x;";
    /// `%nclusterid.x`
    nclusterid_x, u32, reg32, "mov.u32 {}, %nclusterid.x;";
    /// `%dynamic_smem_size`: bytes
    dynamic_smem_size, u32, reg32, "mov.u32 {}, %dynamic_smem_size;";
}

/// `%clock64`: cycles of this multiprocessor. Thread.
///
/// # Safety
/// None; unsafe as all of this module is.
#[inline(always)]
pub unsafe fn clock64() -> u64 {
    let value: u64;
    ptx_asm!("mov.u64 {}, %clock64;", out(reg64) value, options(nomem, nostack));
    value
}

/// `%globaltimer`: nanoseconds, coarse. Thread.
///
/// # Safety
/// None; unsafe as all of this module is.
#[inline(always)]
pub unsafe fn globaltimer() -> u64 {
    let value: u64;
    ptx_asm!("mov.u64 {}, %globaltimer;", out(reg64) value, options(nomem, nostack));
    value
}

#[cfg(target_arch = "nvptx64")]
core::arch::global_asm!(".extern .shared .align 1024 .b8 hopper_dynamic_shared[];");

/// The address of the block's dynamic shared memory, 1024-byte aligned. Thread.
///
/// # Safety
/// None; unsafe as all of this module is.
#[inline(always)]
pub unsafe fn dynamic_shared_address() -> u32 {
    let address: u32;
    ptx_asm!("mov.u32 {}, hopper_dynamic_shared;", out(reg32) address, options(pure, nomem, nostack));
    address
}
