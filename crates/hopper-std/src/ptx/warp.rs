//! Shuffles (PTX ISA 9.7.9.6), synchronisation, votes, election and reductions (9.7.13.2, 9.7.13.9, 9.7.13.11,
//! 9.7.13.14) in a warp, and the
//! transpose of a matrix that it holds (9.7.14.5.17).

use hopper_macros::instruction;

macro_rules! shuffle {
    ($($(#[$doc:meta])* $name:ident, $kind:ident, $line:literal;)*) => {
        $(
            $(#[$doc])*
            ///
            /// Warp.
            ///
            /// # Safety
            /// All 32 lanes execute it together.
            #[instruction]
            pub unsafe fn $name(value: u32, lane: u32) -> u32 {
                let result: u32;
                ptx_asm!(
                    sim(machine, at) { result = machine.shuffle(at, crate::sim::Shuffle::$kind, value, lane) }
                    $line, out(reg32) result, in(reg32) value, in(reg32) lane, options(nomem, nostack)
                );
                result
            }
        )*
    };
}

shuffle! {
    /// `shfl.sync.bfly.b32 d, value, lane, 31, 0xffffffff;` The value of lane `laneid ^ lane`.
    shfl_sync_bfly, Bfly, "shfl.sync.bfly.b32 {}, {}, {}, 31, 0xffffffff;";
    /// `shfl.sync.idx.b32 d, value, lane, 31, 0xffffffff;` The value of lane `lane`.
    shfl_sync_idx, Idx, "shfl.sync.idx.b32 {}, {}, {}, 31, 0xffffffff;";
    /// `shfl.sync.up.b32 d, value, lane, 0, 0xffffffff;` The value of lane `laneid - lane`; its own below.
    shfl_sync_up, Up, "shfl.sync.up.b32 {}, {}, {}, 0, 0xffffffff;";
    /// `shfl.sync.down.b32 d, value, lane, 31, 0xffffffff;` The value of lane `laneid + lane`; its own above.
    shfl_sync_down, Down, "shfl.sync.down.b32 {}, {}, {}, 31, 0xffffffff;";
}

/// `shfl.sync.up.b32 d|p, value, lane, 0, 0xffffffff;` The value of lane `laneid - lane`; 0 below, where p is false. Warp.
///
/// # Safety
/// All 32 lanes execute it together.
#[instruction]
pub unsafe fn shfl_sync_up_or_zero(value: u32, lane: u32) -> u32 {
    let result: u32;
    ptx_asm!(
        sim(machine, at) {
            let above = machine.shuffle(at, crate::sim::Shuffle::Up, value, lane);
            result = if machine.special(crate::sim::Special::Laneid) >= u64::from(lane) { above } else { 0 };
        }
        "{{",
        ".reg .pred p;",
        "shfl.sync.up.b32 {0}|p, {1}, {2}, 0, 0xffffffff;",
        "selp.b32 {0}, {0}, 0, p;",
        "}}",
        out(reg32) result,
        in(reg32) value,
        in(reg32) lane,
        options(nomem, nostack)
    );
    result
}

/// `vote.sync.ballot.b32 d, p, 0xffffffff;` Warp. Bit i is the predicate of lane i.
///
/// # Safety
/// All 32 lanes execute it together.
#[instruction]
pub unsafe fn vote_sync_ballot(predicate: bool) -> u32 {
    let mask: u32;
    ptx_asm!(
        sim(machine, at) { mask = machine.ballot(at, predicate) }
        "{{",
        ".reg .pred p;",
        "setp.ne.u32 p, {1}, 0;",
        "vote.sync.ballot.b32 {0}, p, 0xffffffff;",
        "}}",
        out(reg32) mask,
        in(reg32) u32::from(predicate),
        options(nomem, nostack)
    );
    mask
}

macro_rules! reduce {
    ($($(#[$doc:meta])* $name:ident, $kind:ident, $line:literal;)*) => {
        $(
            $(#[$doc])*
            ///
            /// Warp.
            ///
            /// # Safety
            /// All 32 lanes execute it together.
            #[instruction]
            pub unsafe fn $name(value: u32) -> u32 {
                let result: u32;
                ptx_asm!(
                    sim(machine, at) { result = machine.reduce(at, crate::sim::Reduce::$kind, value) }
                    $line, out(reg32) result, in(reg32) value, options(nomem, nostack)
                );
                result
            }
        )*
    };
}

reduce! {
    /// `redux.sync.min.u32 d, value, 0xffffffff;` The least of the lanes' values.
    redux_sync_min_u32, Min, "redux.sync.min.u32 {}, {}, 0xffffffff;";
    /// `redux.sync.max.u32 d, value, 0xffffffff;` The greatest of the lanes' values.
    redux_sync_max_u32, Max, "redux.sync.max.u32 {}, {}, 0xffffffff;";
}

/// `elect.sync _|p, 0xffffffff;` Warp. True in one lane, the same one each time.
///
/// # Safety
/// All 32 lanes execute it together.
#[instruction]
pub unsafe fn elect_sync() -> bool {
    let elected: u32;
    ptx_asm!(
        sim(machine, at) { elected = u32::from(machine.elect(at)) }
        "{{",
        ".reg .pred p;",
        "elect.sync _|p, 0xffffffff;",
        "selp.u32 {}, 1, 0, p;",
        "}}",
        out(reg32) elected,
        options(nomem, nostack)
    );
    elected != 0
}

/// `bar.warp.sync 0xffffffff;` Warp.
///
/// # Safety
/// All 32 lanes execute it together.
#[instruction]
pub unsafe fn bar_warp_sync() {
    ptx_asm!(
        sim(machine, at) { machine.warp_sync(at) }
        "bar.warp.sync 0xffffffff;", options(nostack)
    );
}

/// `movmatrix.sync.aligned.m8n8.trans.b16 d, a;` Warp. Transposes an 8 x 8 matrix of 16-bit elements that lies in
/// fragment form: lane l holds elements (l / 4, 2 (l % 4)) and the one after it.
///
/// # Safety
/// All 32 lanes execute it together.
#[instruction]
pub unsafe fn movmatrix_trans_b16(pair: u32) -> u32 {
    let transposed: u32;
    ptx_asm!(
        sim(machine, at) { transposed = machine.movmatrix_trans(at, pair) }
        "movmatrix.sync.aligned.m8n8.trans.b16 {}, {};",
        out(reg32) transposed,
        in(reg32) pair,
        options(nomem, nostack)
    );
    transposed
}
