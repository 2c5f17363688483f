//! Special registers. PTX ISA 10.

use hopper_macros::instruction;

macro_rules! special {
    ($($(#[$doc:meta])* $name:ident, $type:ty, $class:ident, $register:ident, $line:literal;)*) => {
        $(
            $(#[$doc])*
            ///
            /// Thread.
            ///
            /// # Safety
            /// None; unsafe as all of this module is.
            #[instruction]
            pub unsafe fn $name() -> $type {
                let value: $type;
                ptx_asm!(
                    sim(machine, _) { value = machine.special(crate::sim::Special::$register) as $type }
                    $line, out($class) value, options(pure, nomem, nostack)
                );
                value
            }
        )*
    };
}

special! {
    /// `%tid.x`
    tid_x, u32, reg32, TidX, "mov.u32 {}, %tid.x;";
    /// `%ntid.x`
    ntid_x, u32, reg32, NtidX, "mov.u32 {}, %ntid.x;";
    /// `%ctaid.x`
    ctaid_x, u32, reg32, CtaidX, "mov.u32 {}, %ctaid.x;";
    /// `%ctaid.y`
    ctaid_y, u32, reg32, CtaidY, "mov.u32 {}, %ctaid.y;";
    /// `%ctaid.z`
    ctaid_z, u32, reg32, CtaidZ, "mov.u32 {}, %ctaid.z;";
    /// `%nctaid.x`
    nctaid_x, u32, reg32, NctaidX, "mov.u32 {}, %nctaid.x;";
    /// `%nctaid.y`
    nctaid_y, u32, reg32, NctaidY, "mov.u32 {}, %nctaid.y;";
    /// `%nctaid.z`
    nctaid_z, u32, reg32, NctaidZ, "mov.u32 {}, %nctaid.z;";
    /// `%laneid`
    laneid, u32, reg32, Laneid, "mov.u32 {}, %laneid;";
    /// `%smid`
    smid, u32, reg32, Smid, "mov.u32 {}, %smid;";
    /// `%clusterid.x`
    clusterid_x, u32, reg32, ClusteridX, "mov.u32 {}, %clusterid.x;";
    /// `%nclusterid.x`
    nclusterid_x, u32, reg32, NclusteridX, "mov.u32 {}, %nclusterid.x;";
    /// `%dynamic_smem_size`: bytes
    dynamic_smem_size, u32, reg32, DynamicSmemSize, "mov.u32 {}, %dynamic_smem_size;";
}

/// `%clock64`: cycles of this multiprocessor. Thread.
///
/// # Safety
/// None; unsafe as all of this module is.
#[instruction]
pub unsafe fn clock64() -> u64 {
    let value: u64;
    ptx_asm!(
        sim(machine, _) { value = machine.special(crate::sim::Special::Clock64) }
        "mov.u64 {}, %clock64;", out(reg64) value, options(nomem, nostack)
    );
    value
}

/// `%globaltimer`: nanoseconds, coarse. Thread.
///
/// # Safety
/// None; unsafe as all of this module is.
#[instruction]
pub unsafe fn globaltimer() -> u64 {
    let value: u64;
    ptx_asm!(
        sim(machine, _) { value = machine.special(crate::sim::Special::Globaltimer) }
        "mov.u64 {}, %globaltimer;", out(reg64) value, options(nomem, nostack)
    );
    value
}

#[cfg(target_arch = "nvptx64")]
core::arch::global_asm!(".extern .shared .align 1024 .b8 hopper_dynamic_shared[];");

/// The address of the block's dynamic shared memory, 1024-byte aligned. Thread.
///
/// # Safety
/// None; unsafe as all of this module is.
#[instruction]
pub unsafe fn dynamic_shared_address() -> u32 {
    let address: u32;
    ptx_asm!(
        sim(machine, _) { address = machine.dynamic_shared_address() }
        "mov.u32 {}, hopper_dynamic_shared;", out(reg32) address, options(pure, nomem, nostack)
    );
    address
}
