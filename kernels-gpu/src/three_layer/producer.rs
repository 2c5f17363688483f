//! The producer: one thread that keeps the ring full, across pieces.

use hopper_std::half::Half;
use hopper_std::ptx::tensor::CachePolicy;
use hopper_std::sm90::{BlockScope, Producer, TensorMapRef, TileShape};
use hopper_std::thread;

use super::config::{Arguments, BOX_COLS, BOXES, Stage, XTile};
use crate::linear::Piece;

/// Fills the ring with the tiles of W, and the columns of X, of this worker's pieces. Thread.
///
/// # Safety
/// The launch contract of [`Arguments`]; one thread of the block calls it.
#[inline(always)]
pub(super) unsafe fn produce<E: Half, const TOKENS: usize, const STAGES: usize>(
    arguments: &Arguments,
    map_x: TensorMapRef<XTile<E, TOKENS>>,
    mut ring: Producer<Stage<E, TOKENS>, STAGES, BlockScope>,
) {
    map_x.prefetch();
    let first_token = (thread::block_idx_y() * TOKENS as u32) as i32;
    let x_bytes = (BOXES * <XTile<E, TOKENS> as TileShape>::BYTES) as u32;
    let mut index = arguments.work.first(thread::block_idx_x());
    loop {
        // SAFETY: the list has a worker's pieces.
        let piece = unsafe { arguments.work.piece(index) };
        let (first, end) = arguments.tiles_of(&piece);
        let mut tile = first;
        // SAFETY: the piece's tiles are there, and where they end.
        let mut begin = unsafe { arguments.tile_offsets.get(piece.row_block * arguments.col_tiles + tile) };
        while tile < end {
            // SAFETY: as above.
            let next = unsafe { arguments.tile_offsets.get(piece.row_block * arguments.col_tiles + tile + 1) };
            let bytes = (next - begin) * 16;
            let slot = ring.acquire_part(x_bytes + bytes);
            let stage = slot.stage();
            // SAFETY: X's boxes and the tile are parts of the stage, each filled once; a tile has no more words than its part. Every
            // block reads X: it should stay in L2.
            unsafe {
                let from = arguments.tiles.wrapping_add(begin as usize * 16);
                slot.load_bytes_hinted(Stage::w(stage), from, bytes, arguments.policy);
                let mut part = 0;
                while part < BOXES as u32 {
                    let at = [((tile * BOXES as u32 + part) * BOX_COLS as u32) as i32, first_token];
                    slot.load_2d_hinted(Stage::x(stage).at(part), map_x, at, CachePolicy::EVICT_LAST);
                    part += 1;
                }
            }
            begin = next;
            tile += 1;
        }
        if piece.behind == 0 {
            break;
        }
        index += 1;
    }
}

impl Arguments {
    /// The first tile of a piece in its row block, and one past the last.
    #[inline(always)]
    pub(super) fn tiles_of(&self, piece: &Piece) -> (u32, u32) {
        let end = piece.end * UNIT_TILES;
        (piece.begin * UNIT_TILES, if end < self.col_tiles { end } else { self.col_tiles })
    }
}

/// Tiles of a unit of work.
const UNIT_TILES: u32 = (crate::linear::UNIT_COLS / super::layout::TILE_COLS) as u32;
