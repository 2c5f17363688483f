//! What a launch is given, the same on a device and in the simulator: tensor maps, lists, arguments.

use core::f32::consts::LOG2_E;

use kernels_gpu::attention::{Arguments, CHUNK, CONSUMER_ROWS, UNBOUNDED, WORDS_PER_TILE};

use super::plan::token_extent;
use super::{AttentionError, AttentionPlan, AttentionTensor, Sequences};
use crate::element::Dtype;
use crate::formats::{HeadsAxis, HeadsShape, HeadsStrides};
use crate::tensor_map::{DevicePtr, L2Promotion, TensorMapSpec, TensorMapSwizzle};

/// Bytes that tensor copies want addresses and strides to be multiples of.
const ALIGNMENT: u64 = 16;

/// Where Q, K, V or O lies in the memory of a device, or of the simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PlacedHeads {
    pub(super) address: DevicePtr,
    pub(super) shape: HeadsShape,
    pub(super) strides: HeadsStrides,
    pub(super) dtype: Dtype,
}

/// The tensors of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Tensors {
    pub(super) q: PlacedHeads,
    pub(super) k: PlacedHeads,
    pub(super) v: PlacedHeads,
    pub(super) o: PlacedHeads,
}

/// Where the plan's lists lie.
#[derive(Clone, Copy)]
pub(super) struct Lists {
    pub(super) tiles: DevicePtr,
    pub(super) tile_offsets: DevicePtr,
    /// Of no element where tiles have no lists of keys, and so are the columns.
    pub(super) blocks: DevicePtr,
    pub(super) columns: DevicePtr,
}

impl AttentionPlan {
    /// Whether the problem's tensors have elements of this type.
    pub(super) fn check_dtype(&self, found: Dtype) -> Result<(), AttentionError> {
        let expected = self.problem().dtype;
        if found == expected { Ok(()) } else { Err(AttentionError::OtherDtype { expected, found }) }
    }

    /// Whether these are the problem's tensors, and lie where tensor copies reach them.
    pub(super) fn check_tensors(&self, tensors: Tensors) -> Result<(), AttentionError> {
        let Tensors { q, k, v, o } = tensors;
        for (tensor, placed) in
            [(AttentionTensor::Q, q), (AttentionTensor::K, k), (AttentionTensor::V, v), (AttentionTensor::O, o)]
        {
            self.check_dtype(placed.dtype)?;
            self.problem().check_shape(tensor, placed.shape)?;
            check_alignment(tensor, placed)?;
        }
        Ok(())
    }

    /// The list of tiles, as the kernel reads it: three entries a tile.
    pub(super) fn tile_words(&self) -> Vec<[u32; 4]> {
        const { assert!(WORDS_PER_TILE == 12) };
        let (tiles, _) = self.lists();
        tiles
            .iter()
            .flat_map(|tile| {
                let [a, b, c, d, e, f, g, h, i, j, k, l] = tile.to_words();
                [[a, b, c, d], [e, f, g, h], [i, j, k, l]]
            })
            .collect()
    }

    /// The tensor maps of Q, O, K and V, and of single keys and values, in the order of the kernel's parameters.
    pub(super) fn maps(&self, tensors: Tensors) -> [TensorMapSpec<4>; 6] {
        let Tensors { q, k, v, o } = tensors;
        let (queries, keys) = (&self.problem().queries, &self.problem().keys);
        let key_rows = self.configuration().keys;
        [
            map(q, queries, CONSUMER_ROWS, q.address),
            map(o, queries, CONSUMER_ROWS, q.address),
            map(k, keys, key_rows, q.address),
            map(v, keys, key_rows, q.address),
            map(k, keys, 1, q.address),
            map(v, keys, 1, q.address),
        ]
    }

    /// All arguments of the kernel but the maps.
    pub(super) fn arguments(&self, lists: Lists, lse: DevicePtr) -> Arguments {
        let problem = self.problem();
        let bound = |keys: Option<u32>| keys.map_or(UNBOUNDED, |keys| keys.min(UNBOUNDED as u32) as i32);
        let (scale, softcap) = match problem.softcap {
            None => (problem.scale * LOG2_E, 0.0),
            Some(softcap) => (problem.scale / softcap, softcap * LOG2_E),
        };
        // SAFETY: the lists are arrays of these types, as long as the plan says, for as long as a launch that is given their
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
                diagonal_step: 1,
                blocks: lists.blocks.array(),
                columns: lists.columns.array(),
                partial: DevicePtr::NULL.as_mut_ptr(),
            }
        }
    }
}

/// Whether every row begins at a multiple of 16 bytes.
fn check_alignment(tensor: AttentionTensor, placed: PlacedHeads) -> Result<(), AttentionError> {
    let HeadsShape { batch, tokens, heads, .. } = placed.shape;
    if batch.min(tokens).min(heads) == 0 {
        return Ok(());
    }
    if !placed.address.0.is_multiple_of(ALIGNMENT) {
        return Err(AttentionError::Address { tensor, address: placed.address.0 });
    }
    let steps = [
        (HeadsAxis::Batch, batch, placed.strides.batch),
        (HeadsAxis::Token, tokens, placed.strides.token),
        (HeadsAxis::Head, heads, placed.strides.head),
    ];
    for (axis, extent, stride) in steps {
        let bytes = stride as u64 * placed.dtype.size_bytes() as u64;
        if extent > 1 && !bytes.is_multiple_of(ALIGNMENT) {
            return Err(AttentionError::Stride { tensor, axis, bytes });
        }
    }
    Ok(())
}

/// The map of a tensor: dimensions (D, tokens, heads, outer), in boxes of `rows` rows of 64 elements.
///
/// Packed sequences have a token's stride in the outer dimension, too, and a base before the first row by as many tokens as
/// the token axis has; `plan` counts so.
fn map(placed: PlacedHeads, sequences: &Sequences, rows: usize, anywhere: DevicePtr) -> TensorMapSpec<4> {
    let HeadsShape { batch, tokens, heads, head_dim } = placed.shape;
    let size = placed.dtype.size_bytes() as u64;
    let row_bytes = head_dim as u64 * size;
    let spec = TensorMapSpec {
        element: placed.dtype.into(),
        address: placed.address,
        dims: [head_dim as u64, tokens as u64, heads as u64, batch as u64],
        strides_bytes: [size, row_bytes, row_bytes, row_bytes],
        box_dims: [CHUNK as u32, rows as u32, 1, 1],
        element_strides: [1; 4],
        swizzle: TensorMapSwizzle::Bytes128,
        l2_promotion: L2Promotion::Bytes256,
    };
    if spec.dims.contains(&0) {
        // No tile has a row or a key within its bounds, so that it is never read; the map must still be one.
        return TensorMapSpec { address: anywhere, dims: [head_dim as u64, 1, 1, 1], ..spec };
    }
    // The stride of an axis of one may be any number, also one that no map can have: then no step is taken.
    let stride = |extent: usize, stride: usize| if extent > 1 { stride as u64 * size } else { row_bytes };
    let token = stride(tokens, placed.strides.token);
    let head = stride(heads, placed.strides.head);
    match sequences {
        Sequences::Equal { .. } => {
            let outer = stride(batch, placed.strides.batch);
            TensorMapSpec { strides_bytes: [size, token, head, outer], ..spec }
        }
        Sequences::Packed { .. } => {
            let extent = token_extent(sequences) as u64;
            TensorMapSpec {
                address: DevicePtr(placed.address.0.wrapping_sub(extent * token)),
                dims: [head_dim as u64, extent, heads as u64, tokens as u64 + 1],
                strides_bytes: [size, token, head, token],
                ..spec
            }
        }
    }
}
