//! Barriers by name, so that ids cannot collide.

use hopper_macros::instruction;

use crate::ptx::barrier;

/// The block barriers of a kernel, apart from number 0, which is everybody's. Made by
/// [`named_barriers!`](crate::named_barriers).
pub trait NamedBarrier: Copy {
    /// 1 to 15.
    fn id(self) -> u32;
    /// Threads that meet there.
    fn threads(self) -> u32;

    /// Waits until all threads of this barrier are here. Warp.
    ///
    /// # Safety
    /// Exactly the warps whose threads make up [`threads`](Self::threads) reach it.
    #[instruction]
    unsafe fn sync(self) {
        // SAFETY: the id is under 16 and no other barrier's; the rest is the caller's promise.
        unsafe { barrier::barrier_sync(self.id(), self.threads()) }
    }

    /// Counts this warp as here, and goes on. Warp.
    ///
    /// # Safety
    /// As [`sync`](Self::sync); some warp waits there.
    #[instruction]
    unsafe fn arrive(self) {
        // SAFETY: as above.
        unsafe { barrier::barrier_arrive(self.id(), self.threads()) }
    }
}

/// Names a kernel's barriers: `named_barriers! { pub enum Meet { Softmax = 1: 128, Store = 2: 256 } }`, each with its id
/// and the number of threads that meet there. Two names with one id do not compile, nor does an id outside 1 to 15.
#[macro_export]
macro_rules! named_barriers {
    ($(#[$meta:meta])* $visibility:vis enum $name:ident { $($(#[$doc:meta])* $variant:ident = $id:literal : $threads:expr),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        $visibility enum $name {
            $($(#[$doc])* $variant = $id),+
        }

        $(const _: () = {
            assert!($id >= 1 && $id <= 15, "barrier ids are 1 to 15; 0 is the block's");
            assert!($threads > 0 && $threads % 32 == 0, "whole warps meet at a barrier");
        };)+

        impl $crate::sm90::NamedBarrier for $name {
            #[inline(always)]
            fn id(self) -> u32 {
                self as u32
            }

            #[inline(always)]
            fn threads(self) -> u32 {
                match self {
                    $(Self::$variant => $threads),+
                }
            }
        }
    };
}
