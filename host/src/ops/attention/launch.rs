//! What a launch is given, the same on a device and in the simulator: tensor maps, lists, arguments.

use core::f32::consts::LOG2_E;

#[cfg(doc)]
use kernels_gpu::attention::TileWork;
use kernels_gpu::attention::{
    Arguments, CHUNK, CONSUMER_ROWS, CombineArguments, RowWork, SHIFT, Serves, UNBOUNDED, WORDS_PER_ROW, WORDS_PER_TILE,
};

use super::plan::{Combination, CombinedRow};
use super::room::{Steps, outer_end, token_bytes};
use super::{Attention, AttentionError, AttentionPlan, AttentionTensor, Pass, PassKind, Sequences};
use crate::element::Dtype;
use crate::formats::{HeadsAxis, HeadsShape, HeadsStrides, Shape};
use crate::ops::PlacedHeads;
use crate::tensor_map::{DevicePtr, L2Promotion, TensorMapSpec, TensorMapSwizzle};

/// Bytes that tensor copies want addresses and strides to be multiples of.
const ALIGNMENT: u64 = 16;

/// Strides of a tensor map are less, in bytes.
const STRIDE_END: u64 = 1 << 40;

/// From token to token of packed sequences there are fewer bytes: see [`TileWork`].
const PACKED_STRIDE_END: u64 = 1 << 34;

/// The tensor maps of a pass: described, or made.
pub(super) struct Maps<M> {
    /// Of Q, O, K and V.
    pub(super) tiles: [M; 4],
    /// Of single rows of K and V, where the kernel reads such.
    pub(super) rows: Option<[M; 2]>,
}

/// The tensors of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Tensors {
    pub(super) q: PlacedHeads,
    pub(super) k: PlacedHeads,
    pub(super) v: PlacedHeads,
    pub(super) o: PlacedHeads,
}

/// Where a pass's lists lie.
#[derive(Clone, Copy)]
pub(super) struct Lists {
    pub(super) tiles: DevicePtr,
    pub(super) tile_offsets: DevicePtr,
    /// Of no element where tiles have no lists of keys, and so are the columns.
    pub(super) blocks: DevicePtr,
    pub(super) columns: DevicePtr,
}

/// Where the parts of rows lie; nowhere where there are none.
#[derive(Clone, Copy)]
pub(super) struct Workspace {
    /// Rows in f32.
    pub(super) rows: DevicePtr,
    /// Their log-sum-exps.
    pub(super) lse: DevicePtr,
}

impl Pass {
    /// The list of tiles, as the kernel reads it: three entries a tile.
    pub(super) fn tile_words(&self, problem: &Attention, steps: Steps) -> Vec<[u32; 4]> {
        const { assert!(WORDS_PER_TILE == 12) };
        let (tiles, _) = self.lists();
        tiles
            .iter()
            .flat_map(|tile| {
                let [a, b, c, d, e, f, g, h, i, j, k, l] = steps.placed(problem, self, *tile).to_words();
                [[a, b, c, d], [e, f, g, h], [i, j, k, l]]
            })
            .collect()
    }
}

impl Combination {
    /// The list of rows, as the kernel reads it, of an O that lies so: two entries a row.
    pub(super) fn row_words(&self, strides: HeadsStrides) -> Vec<[u32; 4]> {
        const { assert!(WORDS_PER_ROW == 8) };
        let words = |row: &CombinedRow| {
            let steps = [(row.batch, strides.batch), (row.token, strides.token), (row.head, strides.head)];
            let work = RowWork {
                first: row.first,
                step: row.step,
                count: row.count,
                lse_index: row.lse_index,
                // Of an axis of one, no step is taken, whatever its stride is.
                output: steps.iter().map(|&(at, stride)| u64::from(at).wrapping_mul(stride as u64)).sum(),
            };
            let [a, b, c, d, e, f, g, h] = work.to_words();
            [[a, b, c, d], [e, f, g, h]]
        };
        self.rows.iter().flat_map(words).collect()
    }

    /// All arguments of the kernel that combines.
    pub(super) fn arguments(
        &self,
        rows: DevicePtr,
        workspace: Workspace,
        o: PlacedHeads,
        lse: DevicePtr,
    ) -> CombineArguments {
        // SAFETY: the list and the workspace are arrays of these types for as long as a launch that is given their addresses,
        // and the pass that fills the workspace is done before; so its caller promises.
        unsafe {
            CombineArguments {
                rows: rows.array(),
                num_rows: self.rows.len() as u32,
                partial: workspace.rows.array(),
                partial_lse: workspace.lse.array(),
                width: self.width as u32,
                head_dim: o.shape.head_dim as u32,
                output: o.address.as_mut_ptr(),
                lse: lse.as_mut_ptr(),
            }
        }
    }
}

impl AttentionPlan {
    /// Whether the problem's tensors have elements of this type.
    pub(super) fn check_dtype(&self, found: Dtype) -> Result<(), AttentionError> {
        let expected = self.problem().dtype;
        if found == expected { Ok(()) } else { Err(AttentionError::OtherDtype { expected, found }) }
    }

    /// Whether these are the problem's tensors, and lie where tensor copies reach them; and the array of log-sum-exps, where
    /// there is one. Says how far apart sequences are.
    pub(super) fn check_tensors(&self, tensors: Tensors, lse: Option<Shape>) -> Result<Steps, AttentionError> {
        let (problem, Tensors { q, k, v, o }) = (self.problem(), tensors);
        for (tensor, placed, sequences) in [
            (AttentionTensor::Q, q, &problem.queries),
            (AttentionTensor::K, k, &problem.keys),
            (AttentionTensor::V, v, &problem.keys),
            (AttentionTensor::O, o, &problem.queries),
        ] {
            self.check_dtype(placed.dtype)?;
            problem.check_shape(tensor, placed.shape)?;
            check_place(tensor, placed, sequences)?;
        }
        lse.map_or(Ok(()), |lse| problem.check_lse(lse))?;
        Steps::of(problem, tensors)
    }

    /// The tensor maps of a pass.
    pub(super) fn maps(&self, pass: &Pass, tensors: Tensors) -> Maps<TensorMapSpec<5>> {
        let Tensors { q, k, v, o } = tensors;
        let keys = &self.problem().keys;
        let key_rows = pass.configuration().keys;
        let map_of_rows = |placed| match pass.kind() {
            PassKind::Queries => map(placed, &self.problem().queries, CONSUMER_ROWS, q.address),
            PassKind::Heads | PassKind::Parts => map_of_heads(placed, self.problem()),
        };
        let maps_of_keys = |rows| [k, v].map(|placed| map(placed, keys, rows, q.address));
        let [map_k, map_v] = maps_of_keys(key_rows);
        Maps {
            tiles: [map_of_rows(q), map_of_rows(o), map_k, map_v],
            rows: (pass.configuration().serves == Serves::Blocks).then(|| maps_of_keys(1)),
        }
    }

    /// All arguments of a pass's kernel but the maps.
    pub(super) fn arguments(&self, pass: &Pass, lists: Lists, workspace: Workspace, lse: DevicePtr) -> Arguments {
        let problem = self.problem();
        let bound = |keys: Option<u32>| keys.map_or(UNBOUNDED, |keys| keys.min(UNBOUNDED as u32) as i32);
        let (scale, softcap) = match problem.softcap {
            None => (problem.scale * LOG2_E, 0.0),
            Some(softcap) => (problem.scale / softcap, softcap * LOG2_E),
        };
        let (lse, partial) = match pass.kind() {
            PassKind::Queries | PassKind::Heads => (lse, DevicePtr::NULL),
            PassKind::Parts => (workspace.lse, workspace.rows),
        };
        // SAFETY: the lists are arrays of these types, as long as the pass says, for as long as a launch that is given their
        // addresses; so its caller promises.
        unsafe {
            Arguments {
                tiles: lists.tiles.array(),
                tile_offsets: lists.tile_offsets.array(),
                lse: lse.as_mut_ptr(),
                scale,
                softcap,
                left: bound(problem.window.left),
                right: bound(problem.window.right),
                diagonal_step: i32::from(pass.kind() == PassKind::Queries),
                blocks: lists.blocks.array(),
                columns: lists.columns.array(),
                partial: partial.as_mut_ptr(),
                query_shift: if pass.kind() == PassKind::Queries { shift(&problem.queries) } else { 0 },
                key_shift: shift(&problem.keys),
            }
        }
    }
}

/// The last coordinate in the maps of tensors with these sequences.
const fn shift(sequences: &Sequences) -> i32 {
    match sequences {
        Sequences::Equal { .. } => 0,
        Sequences::Packed { .. } | Sequences::WithRoom { .. } => SHIFT,
    }
}

/// Whether every row begins at a multiple of 16 bytes, at a distance that tensor maps can have.
fn check_place(tensor: AttentionTensor, placed: PlacedHeads, sequences: &Sequences) -> Result<(), AttentionError> {
    let HeadsShape { batch, tokens, heads, .. } = placed.shape;
    if batch.min(tokens).min(heads) == 0 {
        return Ok(());
    }
    if !placed.address.0.is_multiple_of(ALIGNMENT) {
        return Err(AttentionError::Address { tensor, address: placed.address.0 });
    }
    for (axis, extent, stride) in placed.shape.steps(placed.strides) {
        // Of an axis of one, no step is taken.
        if extent <= 1 {
            continue;
        }
        let bytes = (stride as u64).saturating_mul(placed.dtype.size_bytes() as u64);
        let end = match (sequences, axis) {
            (Sequences::Packed { .. } | Sequences::WithRoom { .. }, HeadsAxis::Token) => PACKED_STRIDE_END,
            // The step from sequence to sequence is then the token's.
            (Sequences::WithRoom { .. }, HeadsAxis::Batch) if tokens == 1 => PACKED_STRIDE_END,
            _ => STRIDE_END,
        };
        if bytes >= end {
            return Err(AttentionError::StrideTooWide { tensor, axis, bytes, end });
        }
        if !bytes.is_multiple_of(ALIGNMENT) {
            return Err(AttentionError::Stride { tensor, axis, bytes });
        }
    }
    Ok(())
}

/// The map of a tensor: dimensions (D, tokens, heads, outer, shift), in boxes of `rows` rows of 64 elements.
///
/// For packed sequences see [`TileWork`], for those with room [`room`](super::room); `plan` counts as they say.
fn map(placed: PlacedHeads, sequences: &Sequences, rows: usize, anywhere: DevicePtr) -> TensorMapSpec<5> {
    let HeadsShape { batch, tokens, heads, head_dim } = placed.shape;
    let size = placed.dtype.size_bytes() as u64;
    let row_bytes = head_dim as u64 * size;
    let spec = TensorMapSpec {
        element: placed.dtype.into(),
        address: placed.address,
        dims: [head_dim as u64, tokens as u64, heads as u64, batch as u64, 1],
        strides_bytes: [size, row_bytes, row_bytes, row_bytes, row_bytes],
        box_dims: [CHUNK as u32, rows as u32, 1, 1, 1],
        element_strides: [1; 5],
        swizzle: TensorMapSwizzle::Bytes128,
        l2_promotion: L2Promotion::Bytes256,
    };
    if spec.dims.contains(&0) {
        // No tile has a row or a key within its bounds, so that it is never read; the map must still be one.
        return TensorMapSpec { address: anywhere, dims: [head_dim as u64, 1, 1, 1, 1], ..spec };
    }
    // The stride of an axis of one may be any number, also one that no map can have: then no step is taken.
    let stride = |extent: usize, stride: usize| if extent > 1 { stride as u64 * size } else { row_bytes };
    let token = stride(tokens, placed.strides.token);
    let head = stride(heads, placed.strides.head);
    match sequences {
        Sequences::Equal { .. } => {
            let outer = stride(batch, placed.strides.batch);
            TensorMapSpec { strides_bytes: [size, token, head, outer, row_bytes], ..spec }
        }
        Sequences::Packed { .. } => shifted(spec, tokens as u64 + 1, token, head),
        Sequences::WithRoom { .. } => shifted(spec, outer_end(placed), token_bytes(placed), head),
    }
}

/// A map whose token coordinates reach its bound where a sequence ends: see [`TileWork`].
fn shifted(spec: TensorMapSpec<5>, outer: u64, token: u64, head: u64) -> TensorMapSpec<5> {
    let ([head_dim, _, heads, ..], [size, ..]) = (spec.dims, spec.strides_bytes);
    TensorMapSpec {
        dims: [head_dim, SHIFT as u64, heads, outer, SHIFT as u64 + 1],
        strides_bytes: [size, token, head, token, (1 << 34) - token],
        ..spec
    }
}

/// The map of Q or O whose rows are the heads of a group: dimensions (D, heads of the group, groups, sequences or tokens, 1).
///
/// Sequences of one query have it at token 0 of their place along the batch axis, or at a token of the one place: the
/// other of the two axes has one place, or is left out.
fn map_of_heads(placed: PlacedHeads, problem: &Attention) -> TensorMapSpec<5> {
    let HeadsShape { batch, tokens, head_dim, .. } = placed.shape;
    let (groups, group) = (problem.num_key_heads, problem.num_query_heads / problem.num_key_heads);
    let (outer, outer_stride) = match &problem.queries {
        Sequences::Equal { .. } | Sequences::WithRoom { .. } => (batch, placed.strides.batch),
        Sequences::Packed { .. } => (tokens, placed.strides.token),
    };
    let size = placed.dtype.size_bytes() as u64;
    let row_bytes = head_dim as u64 * size;
    // As in `map`: no step is taken along an axis of one.
    let stride =
        |extent: usize, stride: usize| if extent > 1 { (stride as u64).saturating_mul(size) } else { row_bytes };
    TensorMapSpec {
        element: placed.dtype.into(),
        address: placed.address,
        dims: [head_dim as u64, group as u64, groups as u64, outer as u64, 1],
        strides_bytes: [
            size,
            stride(group, placed.strides.head),
            stride(groups, placed.strides.head.saturating_mul(group)),
            stride(outer, outer_stride),
            row_bytes,
        ],
        box_dims: [CHUNK as u32, CONSUMER_ROWS as u32, 1, 1, 1],
        element_strides: [1; 5],
        swizzle: TensorMapSwizzle::Bytes128,
        l2_promotion: L2Promotion::Bytes256,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_no_map_has_are_refused() {
        let shape = HeadsShape { batch: 1, tokens: 3, heads: 2, head_dim: 8 };
        let packed = Sequences::of_lengths(&[1, 2]);
        let equal = Sequences::Equal { batch: 1, len: 3 };
        let check = |sequences, token, head| {
            let strides = HeadsStrides { batch: 0, token, head };
            let placed = PlacedHeads { address: DevicePtr(256), shape, strides, dtype: Dtype::Bf16 };
            check_place(AttentionTensor::K, placed, sequences).map_err(|error| error.to_string())
        };
        assert_eq!(check(&packed, (1 << 33) - 8, 8), Ok(()));
        assert_eq!(check(&equal, (1 << 39) - 8, 8), Ok(()));
        for (sequences, token, head, sentence) in [
            (
                &packed,
                1 << 33,
                8,
                "from token to token of K there are 17179869184 bytes, but it must be less than 17179869184",
            ),
            (
                &equal,
                8,
                1 << 39,
                "from head to head of K there are 1099511627776 bytes, but it must be less than 1099511627776",
            ),
            (
                &equal,
                usize::MAX / 4,
                8,
                "from token to token of K there are 9223372036854775806 bytes, but it must be less than 1099511627776",
            ),
            (&equal, 12, 40, "from token to token of K there are 24 bytes, but it must be a multiple of 16"),
        ] {
            assert_eq!(check(sequences, token, head), Err(sentence.to_owned()));
        }
        // No step is taken along an axis of one.
        let one = HeadsShape { tokens: 1, heads: 1, ..shape };
        let strides = HeadsStrides { batch: usize::MAX, token: usize::MAX, head: usize::MAX };
        let placed = PlacedHeads { address: DevicePtr(256), shape: one, strides, dtype: Dtype::F16 };
        assert_eq!(check_place(AttentionTensor::O, placed, &packed), Ok(()));
    }

    #[test]
    fn single_rows_have_maps_where_kernels_read_them() {
        let problem = Attention::new(Sequences::of_lengths(&[3, 200]), 2, 64, Dtype::Bf16);
        let shape = problem.query_shape();
        let strides = HeadsStrides { batch: 0, token: 128, head: 64 };
        let placed = PlacedHeads { address: DevicePtr(256), shape, strides, dtype: Dtype::Bf16 };
        let tensors = Tensors { q: placed, k: placed, v: placed, o: placed };
        let plan = problem.plan(4).expect("a plan");
        for pass in plan.passes() {
            let Maps { tiles, rows } = plan.maps(pass, tensors);
            assert!(tiles.iter().all(|map| map.check().is_ok()) && rows.is_none());
        }
    }
}
