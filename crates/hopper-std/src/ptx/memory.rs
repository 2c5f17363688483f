//! Loads and stores with vectors and cache operators. PTX ISA 9.7.9.8 to 9.7.9.13.
//!
//! No load is `pure`: a kernel that loads early, to hide the latency, wants it to stay early.

use hopper_macros::instruction;

macro_rules! loads {
    ($($(#[$doc:meta])* $name:ident, $count:literal, $address:ty, $class:ident, $sim:ident, $line:literal, ($($index:literal),*), $options:tt;)*) => {
        $(
            $(#[$doc])*
            ///
            /// Thread.
            ///
            /// # Safety
            /// The address is readable and aligned to the size of the access.
            #[instruction]
            pub unsafe fn $name(address: $address) -> [u32; $count] {
                let mut words = [0u32; $count];
                ptx_asm!(
                    sim(machine, at) {
                        let mut bytes = [[0; 4]; $count];
                        machine.$sim(at, address as _, bytes.as_flattened_mut());
                        words.copy_from_slice(&bytes.map(u32::from_le_bytes));
                    }
                    $line, $(out(reg32) words[$index],)* address = in($class) address, options $options
                );
                words
            }
        )*
    };
}

loads! {
    /// `ld.global.u32 d, [address];`
    ld_global_u32, 1, *const u32, reg64, load_global, "ld.global.u32 {0}, [{address}];", (0), (readonly, nostack);
    /// `ld.global.v2.u32 {..}, [address];`
    ld_global_v2_u32, 2, *const u32, reg64, load_global, "ld.global.v2.u32 {{{0}, {1}}}, [{address}];", (0, 1), (readonly, nostack);
    /// `ld.global.v4.u32 {..}, [address];`
    ld_global_v4_u32, 4, *const u32, reg64, load_global, "ld.global.v4.u32 {{{0}, {1}, {2}, {3}}}, [{address}];", (0, 1, 2, 3), (readonly, nostack);
    /// `ld.global.nc.u32 d, [address];` Memory that nobody writes during the kernel.
    ld_global_nc_u32, 1, *const u32, reg64, load_global, "ld.global.nc.u32 {0}, [{address}];", (0), (readonly, nostack);
    /// `ld.global.nc.v2.u32 {..}, [address];` Memory that nobody writes during the kernel.
    ld_global_nc_v2_u32, 2, *const u32, reg64, load_global, "ld.global.nc.v2.u32 {{{0}, {1}}}, [{address}];", (0, 1), (readonly, nostack);
    /// `ld.global.nc.v4.u32 {..}, [address];` Memory that nobody writes during the kernel.
    ld_global_nc_v4_u32, 4, *const u32, reg64, load_global, "ld.global.nc.v4.u32 {{{0}, {1}, {2}, {3}}}, [{address}];", (0, 1, 2, 3), (readonly, nostack);
    /// `ld.global.nc.L2::128B.v2.u32 {..}, [address];` Memory that nobody writes during the kernel, and that is read to the end: the
    /// 128 bytes around it are fetched into L2.
    ld_global_nc_l2_128b_v2_u32, 2, *const u32, reg64, load_global, "ld.global.nc.L2::128B.v2.u32 {{{0}, {1}}}, [{address}];", (0, 1), (readonly, nostack);
    /// `ld.global.nc.L2::128B.v4.u32 {..}, [address];` Memory that nobody writes during the kernel, and that is read to the end: the
    /// 128 bytes around it are fetched into L2.
    ld_global_nc_l2_128b_v4_u32, 4, *const u32, reg64, load_global, "ld.global.nc.L2::128B.v4.u32 {{{0}, {1}, {2}, {3}}}, [{address}];", (0, 1, 2, 3), (readonly, nostack);
    /// `ld.shared::cta.u32 d, [address];`
    ld_shared_u32, 1, u32, reg32, load_shared, "ld.shared::cta.u32 {0}, [{address}];", (0), (readonly, nostack);
    /// `ld.shared::cta.v2.u32 {..}, [address];`
    ld_shared_v2_u32, 2, u32, reg32, load_shared, "ld.shared::cta.v2.u32 {{{0}, {1}}}, [{address}];", (0, 1), (readonly, nostack);
    /// `ld.shared::cta.v4.u32 {..}, [address];`
    ld_shared_v4_u32, 4, u32, reg32, load_shared, "ld.shared::cta.v4.u32 {{{0}, {1}, {2}, {3}}}, [{address}];", (0, 1, 2, 3), (readonly, nostack);
}

macro_rules! stores {
    ($($(#[$doc:meta])* $name:ident, $count:literal, $address:ty, $class:ident, $sim:ident, $line:literal, ($($index:literal),*);)*) => {
        $(
            $(#[$doc])*
            ///
            /// Thread.
            ///
            /// # Safety
            /// The address is writable and aligned to the size of the access.
            #[instruction]
            pub unsafe fn $name(address: $address, words: [u32; $count]) {
                ptx_asm!(
                    sim(machine, at) { machine.$sim(at, address as _, words.map(u32::to_le_bytes).as_flattened()) }
                    $line, $(in(reg32) words[$index],)* address = in($class) address, options(nostack)
                );
            }
        )*
    };
}

stores! {
    /// `st.global.u32 [address], d;`
    st_global_u32, 1, *mut u32, reg64, store_global, "st.global.u32 [{address}], {0};", (0);
    /// `st.global.v2.u32 [address], {..};`
    st_global_v2_u32, 2, *mut u32, reg64, store_global, "st.global.v2.u32 [{address}], {{{0}, {1}}};", (0, 1);
    /// `st.global.v4.u32 [address], {..};`
    st_global_v4_u32, 4, *mut u32, reg64, store_global, "st.global.v4.u32 [{address}], {{{0}, {1}, {2}, {3}}};", (0, 1, 2, 3);
    /// `st.global.cs.v4.u32 [address], {..};` Streaming: first to leave L2.
    st_global_cs_v4_u32, 4, *mut u32, reg64, store_global, "st.global.cs.v4.u32 [{address}], {{{0}, {1}, {2}, {3}}};", (0, 1, 2, 3);
    /// `st.shared::cta.u32 [address], d;`
    st_shared_u32, 1, u32, reg32, store_shared, "st.shared::cta.u32 [{address}], {0};", (0);
    /// `st.shared::cta.v2.u32 [address], {..};`
    st_shared_v2_u32, 2, u32, reg32, store_shared, "st.shared::cta.v2.u32 [{address}], {{{0}, {1}}};", (0, 1);
    /// `st.shared::cta.v4.u32 [address], {..};`
    st_shared_v4_u32, 4, u32, reg32, store_shared, "st.shared::cta.v4.u32 [{address}], {{{0}, {1}, {2}, {3}}};", (0, 1, 2, 3);
}

/// `ld.global.u16 d, [address];` Thread.
///
/// # Safety
/// The address is readable and even.
#[instruction]
pub unsafe fn ld_global_u16(address: *const u16) -> u16 {
    let value: u16;
    ptx_asm!(
        sim(machine, at) {
            let mut bytes = [0; 2];
            machine.load_global(at, address.cast(), &mut bytes);
            value = u16::from_le_bytes(bytes);
        }
        "ld.global.u16 {}, [{}];", out(reg16) value, in(reg64) address, options(readonly, nostack)
    );
    value
}

/// `ld.global.nc.u16 d, [address];` Thread. Memory that nobody writes during the kernel.
///
/// # Safety
/// The address is readable and even.
#[instruction]
pub unsafe fn ld_global_nc_u16(address: *const u16) -> u16 {
    let value: u16;
    ptx_asm!(
        sim(machine, at) {
            let mut bytes = [0; 2];
            machine.load_global(at, address.cast(), &mut bytes);
            value = u16::from_le_bytes(bytes);
        }
        "ld.global.nc.u16 {}, [{}];", out(reg16) value, in(reg64) address, options(pure, readonly, nostack)
    );
    value
}

/// `st.global.u16 [address], d;` Thread.
///
/// # Safety
/// The address is writable and even.
#[instruction]
pub unsafe fn st_global_u16(address: *mut u16, value: u16) {
    ptx_asm!(
        sim(machine, at) { machine.store_global(at, address.cast(), &value.to_le_bytes()) }
        "st.global.u16 [{}], {};", in(reg64) address, in(reg16) value, options(nostack)
    );
}

/// `st.shared::cta.u16 [address], d;` Thread.
///
/// # Safety
/// The address is writable and even.
#[instruction]
pub unsafe fn st_shared_u16(address: u32, value: u16) {
    ptx_asm!(
        sim(machine, at) { machine.store_shared(at, address, &value.to_le_bytes()) }
        "st.shared::cta.u16 [{}], {};", in(reg32) address, in(reg16) value, options(nostack)
    );
}

/// `@p st.shared::cta.u16 [address], d;` where p is `condition != 0`. Thread.
///
/// # Safety
/// Where the condition holds, the address is writable and even.
#[instruction]
pub unsafe fn st_shared_u16_if(condition: u32, address: u32, value: u16) {
    ptx_asm!(
        sim(machine, at) {
            if condition != 0 {
                machine.store_shared(at, address, &value.to_le_bytes());
            }
        }
        "{{",
        ".reg .pred p;",
        "setp.ne.u32 p, {0}, 0;",
        "@p st.shared::cta.u16 [{1}], {2};",
        "}}",
        in(reg32) condition,
        in(reg32) address,
        in(reg16) value,
        options(nostack)
    );
}
