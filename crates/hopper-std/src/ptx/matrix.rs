//! 8 x 8 matrices of 16-bit elements between shared memory and registers. PTX ISA 9.7.14.5.15 and 9.7.14.5.16.
//!
//! Lane l addresses row l % 8 of matrix l / 8: 16 bytes, 16-byte aligned. In registers lane l holds elements
//! (l / 4, 2 (l % 4)) and the one after it of each matrix; with `trans`, of its transpose.

use hopper_macros::instruction;

macro_rules! matrix_moves {
    ($($load:ident, $store:ident, $count:literal, $trans:literal, $list:literal, ($($index:literal),*);)*) => {
        $(
            #[doc = concat!("`ldmatrix.sync.aligned.m8n8.x", $count, $trans, ".shared::cta.b16`. Warp.")]
            ///
            /// # Safety
            /// All 32 lanes execute it together; each address that counts points to 16 bytes of shared memory.
            #[instruction]
            pub unsafe fn $load(address: u32) -> [u32; $count] {
                let mut matrices = [0u32; $count];
                ptx_asm!(
                    sim(machine, at) {
                        machine.ldmatrix(at, address, crate::sim::MatrixMove::of_qualifier($trans), &mut matrices)
                    }
                    concat!("ldmatrix.sync.aligned.m8n8.x", $count, $trans, ".shared::cta.b16 ", $list, ", [{address}];"),
                    $(out(reg32) matrices[$index],)*
                    address = in(reg32) address,
                    options(nostack)
                );
                matrices
            }

            #[doc = concat!("`stmatrix.sync.aligned.m8n8.x", $count, $trans, ".shared::cta.b16`. Warp.")]
            ///
            /// # Safety
            #[doc = concat!("As [`", stringify!($load), "`].")]
            #[instruction]
            pub unsafe fn $store(address: u32, matrices: [u32; $count]) {
                ptx_asm!(
                    sim(machine, at) {
                        machine.stmatrix(at, address, crate::sim::MatrixMove::of_qualifier($trans), &matrices)
                    }
                    concat!("stmatrix.sync.aligned.m8n8.x", $count, $trans, ".shared::cta.b16 [{address}], ", $list, ";"),
                    $(in(reg32) matrices[$index],)*
                    address = in(reg32) address,
                    options(nostack)
                );
            }
        )*
    };
}

matrix_moves! {
    ldmatrix_x1, stmatrix_x1, 1, "", "{{{0}}}", (0);
    ldmatrix_x2, stmatrix_x2, 2, "", "{{{0}, {1}}}", (0, 1);
    ldmatrix_x4, stmatrix_x4, 4, "", "{{{0}, {1}, {2}, {3}}}", (0, 1, 2, 3);
    ldmatrix_x1_trans, stmatrix_x1_trans, 1, ".trans", "{{{0}}}", (0);
    ldmatrix_x2_trans, stmatrix_x2_trans, 2, ".trans", "{{{0}, {1}}}", (0, 1);
    ldmatrix_x4_trans, stmatrix_x4_trans, 4, ".trans", "{{{0}, {1}, {2}, {3}}}", (0, 1, 2, 3);
}
