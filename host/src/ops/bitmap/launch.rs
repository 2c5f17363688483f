//! What a launch is given, the same on a device and in the simulator: arrays, tensor map, arguments.

use kernels_gpu::bitmap::{Arguments, STARTS_PER_PIECE, STREAMS_PER_PIECE, Stream};
use kernels_gpu::linear::{WARPS, Work};
use rayon::prelude::*;

use super::BitmapPlan;
use crate::element::Element;
use crate::formats::{Bitmap, GROUP_VALUES, LANES, Walk, first_group, last_group};
use crate::ops::linear::Operands;
use crate::tensor_map::DevicePtr;

/// Bits of a value in a lane's stream.
const VALUE_BITS: u32 = 16;

/// Where the weights and the plan's lists lie.
#[derive(Clone, Copy)]
pub(super) struct Lists {
    pub(super) masks: DevicePtr,
    pub(super) values: DevicePtr,
    pub(super) pieces: DevicePtr,
    pub(super) streams: DevicePtr,
    pub(super) starts: DevicePtr,
    pub(super) realignments: DevicePtr,
}

/// Where each warp's values begin, for each piece.
pub(super) struct Streams {
    pub(super) streams: Vec<[u32; 4]>,
    pub(super) starts: Vec<u32>,
}

impl BitmapPlan {
    /// Where each warp's values begin, for each piece: as far as its lanes are when they come to the piece's first unit.
    pub(super) fn streams<T: Element>(&self, weights: &Bitmap<T>) -> Streams {
        let pieces = self.pieces.placed();
        let mut streams = vec![[0; 4]; pieces.len() * STREAMS_PER_PIECE];
        let mut starts = vec![0; pieces.len() * STARTS_PER_PIECE];
        let of_pieces =
            streams.par_chunks_exact_mut(STREAMS_PER_PIECE).zip(starts.par_chunks_exact_mut(STARTS_PER_PIECE));
        of_pieces.zip(&pieces).for_each(|((streams, starts), piece)| {
            let Some(piece) = piece else { return };
            for warp in 0..WARPS {
                let strip = piece.row_block as usize * WARPS + warp;
                let (begin, arrived) = walk(weights.strip_masks(strip), piece.begin, piece.end);
                let (first, last) = (first_group(&begin), last_group(&arrived));
                let first_realignment = weights.strips().realignments_after(strip, piece.begin);
                let first_of_strip = weights.strips().group_offsets[strip] as u32;
                let stream =
                    Stream { first_group: first_of_strip + first, num_groups: last - first + 1, first_realignment };
                streams[warp] = stream.to_words();
                for (start, position) in starts[warp * LANES..][..LANES].iter_mut().zip(begin) {
                    *start = (position - first * GROUP_VALUES) * VALUE_BITS;
                }
            }
        });
        Streams { streams, starts }
    }

    /// All arguments of the kernel but the map.
    pub(super) fn arguments(
        &self,
        lists: Lists,
        operands: &Operands,
        workspace: DevicePtr,
        counters: DevicePtr,
    ) -> Arguments {
        // SAFETY: nothing is read here; that the lists live and stay as they are is a promise of whoever launches.
        unsafe {
            Arguments {
                masks: lists.masks.array(),
                values: lists.values.as_mut_ptr(),
                work: Work { pieces: lists.pieces.array(), stride: self.pieces.stride() },
                streams: lists.streams.array(),
                starts: lists.starts.array(),
                realignments: lists.realignments.array(),
                units: self.pieces.units,
                policy: self.policy(),
                output: operands.output(&self.pieces, workspace, counters),
            }
        }
    }
}

/// Where a strip's lanes begin unit `begin`, and where they are after the last unit before `end`.
fn walk(masks: &[u32], begin: u32, end: u32) -> ([u32; LANES], [u32; LANES]) {
    let mut first = [0; LANES];
    let mut walk = Walk::new(masks);
    for unit in walk.by_ref().take(end as usize) {
        if unit.index == begin {
            first = unit.positions;
        }
    }
    (first, *walk.arrived())
}
