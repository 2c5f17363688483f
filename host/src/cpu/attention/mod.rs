//! O = softmax(scale Q K^T) V: tiles of rows of one head, each with its keys block after block.
//!
//! ```text
//! for each (sequence, head, tile of rows), whichever thread is free:
//!     for each block of keys that some of its rows see:
//!         S = scale Q K^T                          f32, a row of Q in a lane
//!         softmax, under the greatest score so far; what was summed up under a smaller one is multiplied down
//!         O += P V
//!     O / sum of P, rounded once
//! ```
//!
//! The order is that of FlashAttention-2 (Dao, arXiv 2307.08691); the softmax is Milakov and Gimelshein's (arXiv 1805.02867).
//! Which rows and keys are taken together depends on a sequence's lengths and the problem's options alone, and every sum has
//! one order: a sequence has the same bits in any batch, by any number of threads.

mod exp;
mod products;
mod tile;

use rayon::prelude::*;

use super::simd::Path;
use crate::element::Element;
use crate::error::Result;
use crate::formats::{DenseViewMut, HeadsView, HeadsViewMut};
use crate::ops::attention::blocks::SparseAttention;
use crate::ops::attention::{Attention, AttentionError, AttentionTensor};
use tile::{Buffers, Tile, TileKeys};

/// Rows of a tile. It divides every block of lists.
const ROWS: usize = 64;

/// The keys that the rows of a tile see, apart from what the window hides from some of them.
type KeysOfTile<'a> = dyn Fn(&Place) -> TileKeys + Sync + 'a;

/// Where a tile is.
#[derive(Clone, Copy)]
struct Place {
    sequence: usize,
    /// The head of Q and O.
    head: usize,
    first_row: usize,
    num_rows: usize,
    /// Of its first row, among the log-sum-exps; its other rows follow.
    lse_index: usize,
}

/// A tile, and where its results go.
struct Work<'a, 'o, T> {
    place: Place,
    rows: &'a mut [&'o mut [T]],
    /// Empty where none are wanted.
    lse: &'a mut [f32],
}

/// O = softmax(scale Q K^T) V, and the log-sum-exps of its rows where there is an array for them.
pub(super) fn attention<T: Element>(
    path: Path,
    problem: &Attention,
    tensors: [HeadsView<'_, T>; 3],
    o: &mut HeadsViewMut<'_, T>,
    lse: Option<&mut DenseViewMut<'_, f32>>,
) -> Result<()> {
    problem.check()?;
    let keys_of = |place: &Place| TileKeys::Range(problem.keys_of_rows(place.sequence, place.rows()));
    run(path, problem, &keys_of, tensors, o, lse)
}

/// As [`attention`], where rows see the keys of lists.
pub(super) fn attention_to_lists<T: Element>(
    path: Path,
    problem: &SparseAttention,
    tensors: [HeadsView<'_, T>; 3],
    o: &mut HeadsViewMut<'_, T>,
    lse: Option<&mut DenseViewMut<'_, f32>>,
) -> Result<()> {
    problem.check()?;
    let keys_of = |place: &Place| TileKeys::Listed(problem.keys_of_rows(place.sequence, place.head, place.rows()));
    run(path, &problem.attention, &keys_of, tensors, o, lse)
}

/// Checks the tensors, and shares out the tiles.
fn run<T: Element>(
    path: Path,
    problem: &Attention,
    keys_of: &KeysOfTile<'_>,
    tensors: [HeadsView<'_, T>; 3],
    o: &mut HeadsViewMut<'_, T>,
    mut lse: Option<&mut DenseViewMut<'_, f32>>,
) -> Result<()> {
    if T::DTYPE != problem.dtype {
        return Err(AttentionError::OtherDtype { expected: problem.dtype, found: T::DTYPE }.into());
    }
    let [q, k, v] = tensors;
    for (tensor, shape) in [
        (AttentionTensor::Q, q.shape()),
        (AttentionTensor::K, k.shape()),
        (AttentionTensor::V, v.shape()),
        (AttentionTensor::O, o.shape()),
    ] {
        problem.check_shape(tensor, shape)?;
    }
    if let Some(lse) = &lse {
        problem.check_lse(lse.shape)?;
    }
    let mut rows = o.rows_mut();
    let lse = lse.as_mut().map_or(&mut [][..], |lse| lse.data_mut());
    let work = shared_out(problem, &mut rows, lse);
    work.into_par_iter().with_max_len(1).for_each_init(
        || Buffers::new(problem.head_dim),
        |buffers, Work { place, rows, lse }| {
            let tile = Tile { problem, tensors, place };
            tile.attend(path, &keys_of(&place), buffers);
            tile.store(buffers, rows, lse);
        },
    );
    Ok(())
}

/// All tiles, each with its rows of O and its log-sum-exps: these lie one behind the other, in the order of `rows`.
fn shared_out<'a, 'o, T>(
    problem: &Attention,
    mut rows: &'a mut [&'o mut [T]],
    mut lse: &'a mut [f32],
) -> Vec<Work<'a, 'o, T>> {
    let mut places = Vec::new();
    for sequence in 0..problem.queries.num_sequences() {
        let num_rows = problem.queries.len_of(sequence);
        for head in 0..problem.num_query_heads {
            places.extend((0..num_rows).step_by(ROWS).map(|first_row| Place {
                sequence,
                head,
                first_row,
                num_rows: ROWS.min(num_rows - first_row),
                lse_index: problem.lse_index(sequence, head, first_row),
            }));
        }
    }
    places.sort_unstable_by_key(|place| place.lse_index);
    let mut passed = 0;
    let mut work = Vec::with_capacity(places.len());
    for place in places {
        let skipped = place.lse_index - passed;
        passed = place.lse_index + place.num_rows;
        work.push(Work {
            place,
            rows: next(&mut rows, skipped, place.num_rows),
            lse: if lse.is_empty() { &mut [] } else { next(&mut lse, skipped, place.num_rows) },
        });
    }
    work
}

/// Takes `count` items off a slice, behind `skipped` others.
fn next<'a, I>(rest: &mut &'a mut [I], skipped: usize, count: usize) -> &'a mut [I] {
    let (taken, tail) = core::mem::take(rest)[skipped..].split_at_mut(count);
    *rest = tail;
    taken
}

impl Place {
    fn rows(&self) -> core::ops::Range<usize> {
        self.first_row..self.first_row + self.num_rows
    }
}
