//! Accumulators, and what may be done with them while products are in flight.

use hopper_macros::instruction;
use seq_macro::seq;

use super::{FullSlot, KMajor, Major};
use crate::ptx::wgmma::{self, Mma, RegisterWords, Registers, SparseMma};

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

    /// This thread's elements, to be changed in place. Index with constants only, as in [`read`](Self::read).
    #[instruction]
    pub fn modify(&mut self) -> &mut [f32; REGISTERS] {
        self.registers.tie();
        &mut self.registers
    }

    /// The first `2 * OTHER` columns, zeros where there are none. Warp group.
    #[instruction]
    pub fn resized<const OTHER: usize>(&mut self) -> Accumulator<OTHER>
    where
        [f32; OTHER]: Registers,
    {
        self.registers.tie();
        let mut other = Accumulator::<OTHER>::zeroed();
        seq!(I in 0..128 {
            if I < OTHER && I < REGISTERS {
                other.registers[I] = self.registers[I];
            }
        });
        other
    }

    /// Issues products as one group: D = A B, or with [`Initial::Kept`] D += A B. `read` is what they read: it comes back from
    /// the wait. Warp group.
    ///
    /// # Safety
    /// All warps of the warp group call it together, and what `issue` multiplies is part of `read`, or stays as it is until
    /// the wait.
    #[instruction]
    pub unsafe fn start<Read: InUse>(
        &mut self,
        initial: Initial,
        mut read: Read,
        issue: impl FnOnce(&mut Products<'_, REGISTERS>, &Read),
    ) -> Flight<'_, REGISTERS, Read> {
        self.registers.tie();
        read.tie();
        // SAFETY: the caller's promise.
        unsafe { wgmma::wgmma_fence() };
        issue(&mut Products { d: &mut self.registers, scale_d: initial as u32 }, &read);
        // SAFETY: the caller's promise.
        unsafe { wgmma::wgmma_commit_group() };
        Flight { accumulator: self, read }
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
        // SAFETY: the caller's promise; the slot is kept until the next wait.
        unsafe {
            self.multiply_more(&slot, issue);
            wgmma::wgmma_wait_group::<1>();
        }
        self.in_flight.replace(slot)
    }

    /// Issues some of the products of a slot, as a group of their own; [`multiply`](Self::multiply) with the rest of them takes
    /// the slot, or [`wait`](Self::wait) ends the series, and the slot's other products are of another. Warp group.
    ///
    /// # Safety
    /// As [`multiply`](Self::multiply); the slot is not released before one of both.
    #[instruction]
    pub unsafe fn multiply_more(&mut self, slot: &Slot, issue: impl FnOnce(&mut Products<'_, REGISTERS>, &Slot)) {
        self.accumulator.registers.tie();
        // SAFETY: the caller's promise.
        unsafe { wgmma::wgmma_fence() };
        issue(&mut Products { d: &mut self.accumulator.registers, scale_d: self.scale_d }, slot);
        self.scale_d = 1;
        // SAFETY: the caller's promise.
        unsafe { wgmma::wgmma_commit_group() };
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

impl<const REGISTERS: usize, Read: InUse> Pending<'_, REGISTERS, Read>
where
    [f32; REGISTERS]: Registers,
{
    /// Keeps what the products read that [`multiply_more`](Self::multiply_more) has issued, until the next wait.
    #[inline(always)]
    pub fn keep(&mut self, read: Read) {
        self.in_flight = Some(read);
    }

    /// Waits for all products, and gives back what was [kept](Self::keep); the series goes on. Warp group.
    ///
    /// # Safety
    /// All warps of the warp group call it together.
    #[instruction]
    pub unsafe fn wait_all(&mut self) -> Option<Read> {
        // SAFETY: the caller's promise.
        unsafe { wgmma::wgmma_wait_group::<0>() };
        self.accumulator.registers.tie();
        let mut read = self.in_flight.take()?;
        read.tie();
        Some(read)
    }
}

/// What becomes of an accumulator's former value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Initial {
    /// It does not count: the sum begins with zero.
    Zero = 0,
    /// Products are added to it.
    Kept = 1,
}

/// What products in flight read: slots of a ring, fragments in registers, or both.
pub trait InUse {
    /// To the compiler, a use and a new value of what lies in registers: their life lasts until the wait.
    fn tie(&mut self);
}

impl<Stage, S> InUse for FullSlot<Stage, S> {
    #[inline(always)]
    fn tie(&mut self) {}
}

/// Of what outlives the products: the caller of [`Accumulator::start`] answers for it.
impl InUse for () {
    #[inline(always)]
    fn tie(&mut self) {}
}

impl<A: InUse, B: InUse> InUse for (A, B) {
    #[instruction]
    fn tie(&mut self) {
        self.0.tie();
        self.1.tie();
    }
}

/// The left operand of a warp group in registers: 64 rows of 16-bit elements, `WORDS` pairs in each thread, four words for
/// every 16 columns, in the order of [`AccumulatorFragment`](super::AccumulatorFragment): words 0 and 1 are two columns of
/// the upper and of the lower row, 2 and 3 those eight columns on. PTX ISA 9.7.15.5.1.
#[derive(Clone, Copy)]
pub struct LeftFragment<const WORDS: usize> {
    words: [u32; WORDS],
}

impl<const WORDS: usize> LeftFragment<WORDS> {
    /// The fragment of these words.
    #[inline(always)]
    pub const fn new(words: [u32; WORDS]) -> Self {
        Self { words }
    }

    /// A wait that comes after this begins when the words have been computed: see [`hint::computed`](crate::hint::computed). Thread.
    #[inline(always)]
    pub fn finish_before_wait(&self) {
        if let Some(&last) = self.words.last() {
            crate::hint::computed(last);
        }
    }
}

impl<const WORDS: usize> LeftFragment<WORDS>
where
    [u32; WORDS]: RegisterWords,
{
    /// The end of the words' life, after the wait for the products that read them: before it, no other operand is computed into
    /// their registers. Thread. See [`RegisterWords::keep`].
    #[instruction]
    pub fn end(self) {
        self.words.keep();
    }
}

impl<const WORDS: usize> InUse for LeftFragment<WORDS>
where
    [u32; WORDS]: RegisterWords,
{
    #[instruction]
    fn tie(&mut self) {
        self.words.tie();
    }
}

/// Metadata of sparse left operands, `WORDS` words in each thread; [`SparseMma`] says whose word is what.
#[derive(Clone, Copy)]
pub struct Metadata<const WORDS: usize> {
    words: [u32; WORDS],
}

impl<const WORDS: usize> Metadata<WORDS> {
    /// Of these words.
    #[inline(always)]
    pub const fn new(words: [u32; WORDS]) -> Self {
        Self { words }
    }
}

impl<const WORDS: usize> InUse for Metadata<WORDS>
where
    [u32; WORDS]: RegisterWords,
{
    #[instruction]
    fn tie(&mut self) {
        self.words.tie();
    }
}

/// An accumulator whose products are in flight, and what they read.
#[must_use = "products in flight must be waited for"]
pub struct Flight<'a, const REGISTERS: usize, Read> {
    accumulator: &'a mut Accumulator<REGISTERS>,
    read: Read,
}

impl<'a, const REGISTERS: usize, Read: InUse> Flight<'a, REGISTERS, Read>
where
    [f32; REGISTERS]: Registers,
{
    /// Waits, and gives back what was read. After it the accumulator can be used. Warp group.
    ///
    /// # Safety
    /// All warps of the warp group call it together.
    #[instruction]
    pub unsafe fn wait(mut self) -> Read {
        // SAFETY: the caller's promise.
        unsafe { wgmma::wgmma_wait_group::<0>() };
        self.accumulator.registers.tie();
        self.read.tie();
        self.read
    }

    /// Issues the products of another accumulator behind these. Warp group.
    ///
    /// # Safety
    /// As [`Accumulator::start`].
    #[instruction]
    pub unsafe fn then<'b, const LATER: usize, Other: InUse>(
        self,
        later: &'b mut Accumulator<LATER>,
        initial: Initial,
        read: Other,
        issue: impl FnOnce(&mut Products<'_, LATER>, &Other),
    ) -> Flights<'a, 'b, REGISTERS, LATER, Read, Other>
    where
        [f32; LATER]: Registers,
    {
        // SAFETY: the caller's promise.
        Flights { first: self, second: unsafe { later.start(initial, read, issue) } }
    }
}

/// Two accumulators whose products are in flight, one group behind the other.
#[must_use = "products in flight must be waited for"]
pub struct Flights<'a, 'b, const FIRST: usize, const SECOND: usize, ReadFirst, ReadSecond> {
    first: Flight<'a, FIRST, ReadFirst>,
    second: Flight<'b, SECOND, ReadSecond>,
}

impl<'b, const FIRST: usize, const SECOND: usize, ReadFirst: InUse, ReadSecond: InUse>
    Flights<'_, 'b, FIRST, SECOND, ReadFirst, ReadSecond>
where
    [f32; FIRST]: Registers,
{
    /// Waits for the first group only, and gives back what it read, and the second. Warp group.
    ///
    /// # Safety
    /// All warps of the warp group call it together.
    #[instruction]
    pub unsafe fn wait_first(mut self) -> (ReadFirst, Flight<'b, SECOND, ReadSecond>) {
        // SAFETY: the caller's promise.
        unsafe { wgmma::wgmma_wait_group::<1>() };
        self.first.accumulator.registers.tie();
        self.first.read.tie();
        (self.first.read, self.second)
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
    pub unsafe fn add<E: Mma<REGISTERS>, B: Major>(&mut self, a: impl Major, b: B, step: u32) {
        // SAFETY: the caller's promise.
        unsafe { self.add_shared::<E, _, B>(a, b, step) };
    }

    /// As [`add`](Self::add), which spares its callers a name for the type of A.
    ///
    /// # Safety
    /// As [`add`](Self::add).
    #[instruction]
    unsafe fn add_shared<E: Mma<REGISTERS>, A: Major, B: Major>(&mut self, a: A, b: B, step: u32) {
        // SAFETY: the caller's promise; `Pending` fences before and waits after.
        unsafe { E::mma_shared::<A, B>(self.d, a.step(step).bits(), b.step(step).bits(), self.scale_d) };
        self.scale_d = 1;
    }

    /// D += A B over the 16 elements of K at `step`, A from registers, B in shared memory. Warp group.
    ///
    /// # Safety
    /// As [`Accumulator::start`], within whose `issue` this is called; `step` is a constant where this is inlined.
    #[instruction]
    pub unsafe fn add_left<E: Mma<REGISTERS>, B: Major, const WORDS: usize>(
        &mut self,
        a: &LeftFragment<WORDS>,
        b: B,
        step: u32,
    ) {
        let first = step as usize * 4;
        let a = [a.words[first], a.words[first + 1], a.words[first + 2], a.words[first + 3]];
        // SAFETY: the caller's promise.
        unsafe { E::mma_registers::<B>(self.d, a, b.step(step).bits(), self.scale_d) };
        self.scale_d = 1;
    }

    /// D += A B over 32 elements of K, A sparse, both in shared memory: of A the 16 stored values at `steps[0]`, of B the 16 elements at
    /// `steps[1]` and the 16 behind them. Word `word` of the metadata is A's, in the lanes that `SELECTOR` selects. Warp group.
    ///
    /// # Safety
    /// As [`Accumulator::start`], within whose `issue` this is called; `word` is a constant where this is inlined, and the two places
    /// of a group differ.
    #[instruction]
    pub unsafe fn add_sparse<E: SparseMma<REGISTERS>, B: Major, const SELECTOR: u32, const WORDS: usize>(
        &mut self,
        a: KMajor,
        b: B,
        steps: [u32; 2],
        metadata: &Metadata<WORDS>,
        word: usize,
    ) {
        let (a, b, word) = (a.step(steps[0]).bits(), b.step(steps[1]).bits(), metadata.words[word]);
        // SAFETY: the caller's promise.
        unsafe { E::mma_shared_sparse::<B, SELECTOR>(self.d, a, b, word, self.scale_d) };
        self.scale_d = 1;
    }
}
