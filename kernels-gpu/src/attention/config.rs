//! What an attention kernel is made of: tiles, shared memory, arguments.

use hopper_std::global::GlobalArray;
use hopper_std::sm90::{PipelineBarriers, Swizzle128, Tile};
use hopper_std::{KernelSpec, SharedLayout};

/// Rows of Q that one consumer warp group works on.
pub const CONSUMER_ROWS: usize = 64;

/// Elements of a line of a tile: 128 bytes.
pub const CHUNK: usize = 64;

/// The rows of Q of one consumer, in chunks of 64 columns; later the same rows of O.
pub type QueryTile<E, const CHUNKS: usize> = [Tile<E, CONSUMER_ROWS, CHUNK, Swizzle128>; CHUNKS];

/// `KEYS` rows of K or of V, in chunks of 64 columns.
pub type KeyTile<E, const KEYS: usize, const CHUNKS: usize> = [Tile<E, KEYS, CHUNK, Swizzle128>; CHUNKS];

/// All of a kernel's shared memory.
#[repr(C, align(1024))]
#[derive(SharedLayout)]
pub struct Smem<Q, KV, const CONSUMERS: usize, const QUERY_STAGES: usize, const STAGES: usize> {
    /// The ring of Q tiles, a part for each consumer.
    pub queries: [[Q; CONSUMERS]; QUERY_STAGES],
    /// The ring of K and V tiles.
    pub stages: [KV; STAGES],
    /// Barriers of Q.
    pub query_barriers: PipelineBarriers<QUERY_STAGES>,
    /// Barriers of the ring.
    pub barriers: PipelineBarriers<STAGES>,
}

/// Words of an entry in the list of tiles.
pub const WORDS_PER_TILE: usize = 12;

/// One tile of O: rows of one head of one sequence, and the tiles of keys that they attend to.
///
/// Maps have five dimensions: column, token, head, outer, shift. In a batch of sequences of one length the outer one is the
/// sequence, and the shift is 0. Packed sequences lie end to end. There what lies beyond a sequence must be read as zeros and not
/// be written, whatever follows it: token coordinates are such that they reach the map's bound, [`SHIFT`], where the sequence
/// ends. A token's stride is s bytes along the token and the outer dimension, and 2^34 - s along the shift. Then token p of a
/// sequence of n tokens that begins at token b is at `token` SHIFT - n + p, `outer` b + n, `shift` SHIFT, since
/// SHIFT (2^34 - s) = -SHIFT s modulo 2^64. The base is that of the tensor: with one before it, and a dimension less, an H200
/// stopped with an illegal address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TileWork {
    /// Token coordinate of the tile's first row in the maps of Q and O.
    pub query_token: i32,
    /// Outer coordinate in the maps of Q and O.
    pub query_outer: i32,
    /// Head of Q and O.
    pub query_head: u32,
    /// Head of K and V.
    pub key_head: u32,
    /// Token coordinate of the sequence's key 0 in the maps of K and V.
    pub key_token: i32,
    /// Outer coordinate in the maps of K and V.
    pub key_outer: i32,
    /// The first tile of keys: tile t begins at key `t * KEYS`. With a list of blocks, the first position in the list.
    pub first_tile: u32,
    /// One past the last tile of keys, or the last position. There is at least one; a row may see none of its keys.
    pub end_tile: u32,
    /// The key on the first row's diagonal.
    pub diagonal: i32,
    /// Rows of the tile that there are.
    pub num_rows: u32,
    /// Keys of the sequence.
    pub num_keys: u32,
    /// Where the tile's first row is in the array of log-sum-exps.
    pub lse_index: u32,
}

/// The tokens of a map of packed sequences, and the shift of its coordinates.
pub const SHIFT: i32 = 1 << 30;

impl TileWork {
    /// As the kernel reads it.
    pub const fn to_words(self) -> [u32; WORDS_PER_TILE] {
        [
            self.query_token as u32,
            self.query_outer as u32,
            self.query_head,
            self.key_head,
            self.key_token as u32,
            self.key_outer as u32,
            self.first_tile,
            self.end_tile,
            self.diagonal as u32,
            self.num_rows,
            self.num_keys,
            self.lse_index,
        ]
    }
}

/// The arguments of every attention kernel, in the order of its parameters.
///
/// | parameter | what it is |
/// | --- | --- |
/// | `map_q`, `map_o` | Q and O: dimensions (D, tokens, heads, outer, shift), box (64, 64, 1, 1, 1) |
/// | `map_k`, `map_v` | K and V: the same dimensions, box (64, KEYS, 1, 1, 1) |
/// | `map_key`, `map_value` | K and V once more, box (64, 1, 1, 1, 1); read by kernels of [`Serves::Blocks`] only |
/// | `tiles` | [`TileWork`] for each tile, by worker |
/// | `tile_offsets` | where each worker's tiles begin; one more than there are blocks |
/// | `lse` | log-sum-exp of each row's scores (natural logarithm), or null |
/// | `scale` | factor of Q K^T, positive, times log2(e); with a softcap: the factor over the cap |
/// | `softcap` | the cap times log2(e), or 0 for none |
/// | `left`, `right` | keys that a row sees to either side of its diagonal |
/// | `diagonal_step` | from a row's diagonal to the next row's: 1, or 0 where the rows are heads of one query |
/// | `blocks` | for kernels of [`Serves::Blocks`]: the list that [`TileWork::first_tile`] is a position of |
/// | `columns` | for the same: numbers of single keys |
/// | `partial` | where rows go as f32, `2 * O` of them to a row, at the row's index among `lse`; or null: to `map_o` |
/// | `query_shift`, `key_shift` | the last coordinate in the maps of Q and O, and of K and V: 0, or [`SHIFT`] for packed sequences |
///
/// Row i of a sequence with Lq queries and Lk keys has its diagonal at key i + Lk - Lq: the last row's is the last key. It
/// sees the keys from `diagonal - left` to `diagonal + right`; causal is `right` 0, and [`UNBOUNDED`] no bound.
#[derive(Clone, Copy)]
pub struct Arguments {
    /// [`TileWork`], three entries each.
    pub tiles: GlobalArray<[u32; 4]>,
    /// Where each worker's tiles begin.
    pub tile_offsets: GlobalArray<u32>,
    /// Log-sum-exps, or null.
    pub lse: *mut f32,
    /// Factor of the scores, for powers of 2.
    pub scale: f32,
    /// The cap, for powers of 2, or 0.
    pub softcap: f32,
    /// Keys before the diagonal that a row sees.
    pub left: i32,
    /// Keys after the diagonal that a row sees.
    pub right: i32,
    /// From a row's diagonal to the next row's.
    pub diagonal_step: i32,
    /// Entries of the lists of blocks.
    pub blocks: GlobalArray<u32>,
    /// Numbers of single keys.
    pub columns: GlobalArray<u32>,
    /// Rows of O in f32, or null.
    pub partial: *mut f32,
    /// The last coordinate in the maps of Q and O.
    pub query_shift: i32,
    /// The last coordinate in the maps of K and V.
    pub key_shift: i32,
}

/// A window's side that has no bound. Sums with row and key numbers stay within 32 bits.
pub const UNBOUNDED: i32 = 1 << 30;

impl Arguments {
    /// A worker's tile.
    ///
    /// # Safety
    /// The launch contract; `index` is under the list's length.
    #[inline(always)]
    pub(super) unsafe fn tile(&self, index: u32) -> TileWork {
        // SAFETY: the caller's promise: three entries a tile.
        let [[a, b, c, d], [e, f, g, h], [i, j, k, l]] =
            unsafe { [self.tiles.get(3 * index), self.tiles.get(3 * index + 1), self.tiles.get(3 * index + 2)] };
        TileWork {
            query_token: a as i32,
            query_outer: b as i32,
            query_head: c,
            key_head: d,
            key_token: e as i32,
            key_outer: f as i32,
            first_tile: g,
            end_tile: h,
            diagonal: i as i32,
            num_rows: j,
            num_keys: k,
            lse_index: l,
        }
    }
}

/// The element type of Q, K, V and O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dtype {
    /// bfloat16.
    Bf16,
    /// IEEE binary16.
    F16,
}

/// Which problems a kernel is for. Any kernel can do any of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serves {
    /// Rows of any kind.
    Either,
    /// Rows that see only a part of the keys, of sequences with few of them: smaller tiles waste less at the edges of what is
    /// seen.
    Masked,
    /// Tiles of at most 64 rows, such as the heads of one query: two small blocks on a multiprocessor.
    FewRows,
    /// Tiles with a list of the tiles of keys that they see.
    Blocks,
}

/// In an entry of a list of blocks: the other bits are where `KEYS` single keys begin in the array of columns. Those that are
/// not wanted are numbers from the sequence's end on. Else the entry is the first of `KEYS` consecutive keys.
pub const COLUMNS: u32 = 1 << 31;

/// What a tile of keys consists of.
#[derive(Clone, Copy)]
pub(super) enum Keys {
    /// Consecutive keys, from this one on.
    From(u32),
    /// Single keys, which begin here in the array of columns.
    Columns(u32),
}

/// Where a tile of O has its keys from.
pub(super) trait Source {
    /// Whether there are single keys: where not, nothing is compiled for them.
    const GATHERS: bool;

    /// The tile of keys at a position.
    ///
    /// # Safety
    /// The launch contract; the position is one of a tile's.
    unsafe fn keys(arguments: &Arguments, position: u32, keys: u32) -> Keys;
}

/// Tile after tile.
pub(super) struct Range;

impl Source for Range {
    const GATHERS: bool = false;

    #[inline(always)]
    unsafe fn keys(_: &Arguments, position: u32, keys: u32) -> Keys {
        Keys::From(position * keys)
    }
}

/// As a list says.
pub(super) struct List;

impl Source for List {
    const GATHERS: bool = true;

    #[inline(always)]
    unsafe fn keys(arguments: &Arguments, position: u32, _: u32) -> Keys {
        // SAFETY: the caller's promise.
        let entry = unsafe { arguments.blocks.get(position) };
        if entry & COLUMNS == 0 { Keys::From(entry) } else { Keys::Columns(entry & !COLUMNS) }
    }
}

/// What the host must know of one exported kernel.
#[derive(Clone, Copy, Debug)]
pub struct Configuration {
    /// Its launch contract.
    pub spec: &'static KernelSpec,
    /// The type of Q, K, V and O.
    pub dtype: Dtype,
    /// D: columns of Q, K, V and O; the maps may have fewer.
    pub head_dim: usize,
    /// Rows of a tile of O.
    pub rows: usize,
    /// Keys of a tile of K and V.
    pub keys: usize,
    /// Which problems it is for.
    pub serves: Serves,
    /// Calls the kernel on the CPU, as one thread of a simulated launch, with the addresses of the maps
    /// in the order of its parameters.
    /// The contract is the kernel's.
    #[cfg(feature = "sim")]
    pub simulate: unsafe fn(maps: [*const u8; 6], arguments: Arguments),
}
