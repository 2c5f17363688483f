//! The consumers: S = Q K^T, softmax, O += P V.

// `seq!` writes an expression out for each index, and for index 0 it says what nobody would write by hand.
#![allow(clippy::erasing_op, clippy::identity_op)]

use hopper_std::ptx::wgmma::{Mma, RegisterWords, Registers};
use hopper_std::sm90::{
    Accumulator, BlockScope, Consumer, Flight, FullSlot, Initial, LeftFragment, Products, Shared, Swizzle128,
    TensorMapRef, Tile, WarpGroup,
};
use hopper_std::thread;
use hopper_std::warp::lane_id;

use super::config::{Arguments, CHUNK, CONSUMER_ROWS, KeyTile, QueryTile, Source};
use super::epilogue::{Place, store};
use super::mask::Mask;
use super::softmax::{Softmax, pack, rescale_rows};
use super::turn::Turns;

/// A slot of the ring.
type KeySlot<E, const KEYS: usize, const CHUNKS: usize> = FullSlot<KeyTile<E, KEYS, CHUNKS>, BlockScope>;

/// A tile of O whose last product is in flight.
struct Ended<Query> {
    softmax: Softmax,
    query: Query,
}

/// Works on this block's tiles. Warp group.
///
/// `S` and `O` are the registers of scores and output, `P` the words of the scores rounded to 16 bits.
///
/// # Safety
/// The launch contract of [`Arguments`]; all warps of a consumer warp group call it.
#[inline(always)]
pub(super) unsafe fn consume<
    E: Mma<S> + Mma<O>,
    const S: usize,
    const P: usize,
    const O: usize,
    const KEYS: usize,
    const CHUNKS: usize,
    const CONSUMERS: usize,
    const QUERY_STAGES: usize,
    const STAGES: usize,
    K: Source,
    T: Turns,
>(
    arguments: &Arguments,
    warp_group: WarpGroup,
    map_o: TensorMapRef<Tile<E, CONSUMER_ROWS, CHUNK, Swizzle128>>,
    mut queries: Consumer<[QueryTile<E, CHUNKS>; CONSUMERS], QUERY_STAGES, BlockScope>,
    mut ring: Consumer<KeyTile<E, KEYS, CHUNKS>, STAGES, BlockScope>,
) where
    [f32; S]: Registers,
    [f32; O]: Registers,
    [u32; P]: RegisterWords,
{
    let consumer = warp_group.index() - 1;
    let mut turn = T::of(consumer);
    let scale = if arguments.softcap != 0.0 { arguments.softcap } else { arguments.scale };
    let (warp, lane) = (warp_group.warp(), lane_id());
    let worker = thread::block_idx_x();
    // SAFETY: the offsets have one more element than there are workers.
    let (mut index, last) = unsafe { (arguments.tile_offsets.get(worker), arguments.tile_offsets.get(worker + 1)) };
    let first_row = consumer * CONSUMER_ROWS as u32;
    let mut scores = Accumulator::<S>::zeroed();
    let mut output = Accumulator::<O>::zeroed();
    while index < last {
        // SAFETY: a worker's tiles are in the list.
        let mut work = unsafe { arguments.tile(index) };
        let mut mask = Mask::new(arguments, &work, first_row);
        let mut softmax = Softmax::EMPTY;
        let mut query = queries.wait();
        let mut tile = work.end_tile - 1;
        // SAFETY: a tile's positions are in the list.
        let keys = unsafe { K::keys(arguments, tile, KEYS as u32) };
        let k = ring.wait();
        // SAFETY: the whole warp group is here, as at each step below; the operands are parts of the slots, and Q of a slot that
        // is released after the tile's last product.
        let mut p = unsafe {
            turn.wait();
            let flight = start_scores::<E, S, KEYS, CHUNKS, O>(&mut scores, query.stage().at(consumer), k);
            turn.pass();
            flight.wait().release();
            mask.prepare::<K, S>(arguments, scores.modify(), keys, warp, lane);
            softmax.update(scores.modify(), scale);
            pack::<E, S, P>(scores.read())
        };
        let mut initial = Initial::Zero;
        loop {
            let ended = if tile > work.first_tile {
                tile -= 1;
                None
            } else {
                index += 1;
                if QUERY_STAGES == 1 || index == last {
                    break;
                }
                // SAFETY: a worker's tiles are in the list.
                let next = unsafe { arguments.tile(index) };
                let ended = Ended { softmax, query };
                work = next;
                mask = Mask::new(arguments, &work, first_row);
                softmax = Softmax::EMPTY;
                query = queries.wait();
                tile = work.end_tile - 1;
                Some(ended)
            };
            // SAFETY: as above.
            unsafe {
                let keys = K::keys(arguments, tile, KEYS as u32);
                let k = ring.wait();
                turn.wait();
                let flight = start_scores::<E, S, KEYS, CHUNKS, O>(&mut scores, query.stage().at(consumer), k);
                let v = ring.wait();
                let flights = flight.then(&mut output, initial, (v, p), |products, read| {
                    multiply_values::<E, P, O, KEYS, CHUNKS>(products, read);
                });
                turn.pass();
                let (k, flight) = flights.wait_first();
                k.release();
                mask.prepare::<K, S>(arguments, scores.modify(), keys, warp, lane);
                let factors = softmax.update(scores.modify(), scale);
                // Nothing of the softmax is put off until the products of P and V are done: not by the compiler, nor by the
                // assembler.
                scores.read();
                softmax.finish_before_wait();
                let (v, _) = flight.wait();
                v.release();
                match ended {
                    None => {
                        rescale_rows(output.modify(), factors);
                        initial = Initial::Kept;
                    }
                    Some(Ended { softmax, query }) => {
                        // Read once more: kept, its words would take the registers of a step.
                        let work = arguments.tile(index - 1);
                        let place = Place { work: &work, first_row, warp, lane, consumer };
                        let staging = query.stage().at(consumer);
                        store::<E, O, CHUNKS>(arguments, map_o, place, output.modify(), softmax.finish(scale), staging);
                        query.release();
                        initial = Initial::Zero;
                    }
                }
                p = pack::<E, S, P>(scores.read());
            }
        }
        let v = ring.wait();
        // SAFETY: as above; the consumer reads its rows of Q no more.
        unsafe {
            let flight = output.start(initial, (v, p), |products, read| {
                multiply_values::<E, P, O, KEYS, CHUNKS>(products, read);
            });
            let (v, _) = flight.wait();
            v.release();
            // Read once more, as above.
            let work = arguments.tile(index - 1);
            let place = Place { work: &work, first_row, warp, lane, consumer };
            let staging = query.stage().at(consumer);
            store::<E, O, CHUNKS>(arguments, map_o, place, output.modify(), softmax.finish(scale), staging);
        }
        query.release();
    }
    // SAFETY: every consumer comes here.
    unsafe { turn.end() };
}

/// Issues S = Q K^T: D in steps of 16. The columns beyond D are zeros, or left out. Warp group.
///
/// # Safety
/// As [`Accumulator::start`]; `q` stays as it is until the wait.
#[inline(always)]
unsafe fn start_scores<'a, E: Mma<S>, const S: usize, const KEYS: usize, const CHUNKS: usize, const O: usize>(
    scores: &'a mut Accumulator<S>,
    q: Shared<QueryTile<E, CHUNKS>>,
    k: KeySlot<E, KEYS, CHUNKS>,
) -> Flight<'a, S, KeySlot<E, KEYS, CHUNKS>>
where
    [f32; S]: Registers,
{
    // SAFETY: the caller's promise; the keys are a part of the slot.
    unsafe {
        scores.start(Initial::Zero, k, |products, k| {
            let mut step = 0;
            while step < (O / 8) as u32 {
                let chunk = step / 4;
                products.add::<E, _>(q.at(chunk).k_major(0), k.stage().at(chunk).k_major(0), step % 4);
                step += 1;
            }
        })
    }
}

/// O += P V: the tile's keys in steps of 16.
///
/// # Safety
/// As [`Accumulator::start`], within whose `issue` this is called with what that keeps until the wait.
#[inline(always)]
unsafe fn multiply_values<E: Mma<O>, const P: usize, const O: usize, const KEYS: usize, const CHUNKS: usize>(
    products: &mut Products<'_, O>,
    (v, p): &(KeySlot<E, KEYS, CHUNKS>, LeftFragment<P>),
) {
    let v = v.stage().mn_major();
    hopper_std::seq!(STEP in 0..16 {
        if STEP * 4 < P {
            // SAFETY: the caller's promise.
            unsafe { products.add_left::<E, _, P>(p, v, STEP) };
        }
    });
}
