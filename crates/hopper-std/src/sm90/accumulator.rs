//! Accumulators, and what may be done with them while products are in flight.

use hopper_macros::instruction;

use super::{KMajor, Major};
use crate::ptx::wgmma::{self, Mma, Registers};

/// The accumulator of a warp group: 64 rows by `2 * REGISTERS` columns of f32, `REGISTERS` in each thread.
///
/// [`AccumulatorFragment`](super::AccumulatorFragment) says which element is where.
pub struct Accumulator<const REGISTERS: usize> {
    registers: [f32; REGISTERS],
}

impl<const REGISTERS: usize> Accumulator<REGISTERS>
where
    [f32; REGISTERS]: Registers,
{
    /// Zeros.
    #[inline(always)]
    pub fn zeroed() -> Self {
        // NOTE: `[0.0; REGISTERS]` becomes a loop over memory, which puts the array there for good.
        // SAFETY: zero bits are a valid f32.
        Self { registers: unsafe { core::mem::zeroed() } }
    }

    /// This thread's elements. Index with constants only: one index that is not costs the registers their place.
    ///
    /// What is computed from them is not moved above this call: where two branches begin with it, the compiler does not
    /// compute in advance what they share and keep it beside the elements.
    #[instruction]
    pub fn read(&mut self) -> &[f32; REGISTERS] {
        self.registers.tie();
        &self.registers
    }

    /// Opens a series of products that replaces what the accumulator holds. Until [`Pending::wait`] it cannot be read.
    #[inline(always)]
    pub fn begin<Slot>(&mut self) -> Pending<'_, REGISTERS, Slot> {
        Pending { accumulator: self, in_flight: None, scale_d: 0 }
    }
}

/// An accumulator while products are in flight, and the slot that the last of them read.
#[must_use = "products in flight must be waited for"]
pub struct Pending<'a, const REGISTERS: usize, Slot> {
    accumulator: &'a mut Accumulator<REGISTERS>,
    in_flight: Option<Slot>,
    scale_d: u32,
}

impl<const REGISTERS: usize, Slot> Pending<'_, REGISTERS, Slot>
where
    [f32; REGISTERS]: Registers,
{
    /// Issues the products of one slot as a group, waits until only this group is in flight, and gives back the slot
    /// that the group before it read. Warp group.
    ///
    /// # Safety
    /// All warps of the warp group call it together, and the descriptors that `issue` uses name tiles of `slot`.
    #[instruction]
    pub unsafe fn multiply(
        &mut self,
        slot: Slot,
        issue: impl FnOnce(&mut Products<'_, REGISTERS>, &Slot),
    ) -> Option<Slot> {
        self.accumulator.registers.tie();
        // SAFETY: the caller's promise.
        unsafe { wgmma::wgmma_fence() };
        issue(&mut Products { d: &mut self.accumulator.registers, scale_d: self.scale_d }, &slot);
        self.scale_d = 1;
        // SAFETY: the caller's promise.
        unsafe {
            wgmma::wgmma_commit_group();
            wgmma::wgmma_wait_group::<1>();
        }
        self.in_flight.replace(slot)
    }

    /// Waits for all products, and gives back the last slot. After it the accumulator can be read. Warp group.
    ///
    /// # Safety
    /// All warps of the warp group call it together.
    #[instruction]
    pub unsafe fn wait(self) -> Option<Slot> {
        // SAFETY: the caller's promise.
        unsafe { wgmma::wgmma_wait_group::<0>() };
        self.accumulator.registers.tie();
        self.in_flight
    }
}

/// The products of one group.
pub struct Products<'a, const REGISTERS: usize> {
    d: &'a mut [f32; REGISTERS],
    scale_d: u32,
}

impl<const REGISTERS: usize> Products<'_, REGISTERS> {
    /// D += A B over the 16 elements of K at `step`, A and B of element type `E`, both in shared memory. Warp group.
    ///
    /// # Safety
    /// As [`Pending::multiply`], within whose `issue` this is called.
    #[instruction]
    pub unsafe fn add<E: Mma<REGISTERS>, B: Major>(&mut self, a: KMajor, b: B, step: u32) {
        // SAFETY: the caller's promise; `Pending` fences before and waits after.
        unsafe { E::mma_shared::<KMajor, B>(self.d, a.step(step).bits(), b.step(step).bits(), self.scale_d) };
        self.scale_d = 1;
    }
}
