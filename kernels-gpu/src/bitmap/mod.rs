//! Linear layers with unstructured sparse weights: a bitmap and packed values, multiplied by the dense tensor cores.
//!
//! # Mathematics
//!
//! Y (N x M) = X (N x K) W^T + bias, computed as Y^T = W X^T with fp32 sums. W is stored as one bit for each element and the values
//! of those whose bit is set: 1/8 byte for an element and 2 bytes for a value, 1.13 bytes an element at 50 % and 0.73 at 70 %, where
//! a dense W has 2. At few tokens a product costs what W costs to read.
//!
//! # The order of the values
//!
//! The left operand of a product may come from registers: then each lane holds, of 16 columns of its warp's 16 rows, eight elements
//! at known places (PTX ISA 9.7.15.5.1). So each lane has a *stream* of its own: the values of its places, in the order in which it
//! will want them, column after column of the strip. Nothing has to be found, counted over lanes or scattered.
//!
//! ```text
//! 16 columns of a strip          lane 4 q + t holds                   its mask, 8 of 32 bits for 64 columns
//!      2t  2t+1   2t+8 2t+9
//! q     a    b     e    f        pairs 0 (a b), 1 (c d),              pair 0: bit set for a, bit set for b
//! q+8   c    d     g    h              2 (e f), 3 (g h)               ...
//! ```
//!
//! The streams of a warp's lanes are interleaved word by word, 32 words a row of memory ([`WarpStream`]): read coalesced,
//! and without bank conflicts however far the lanes are from one another. They are padded to one length at the end of a strip, and at
//! the few units where lanes would drift further apart than the ring holds (*realigned*).
//!
//! # Decoding
//!
//! Eight values at most come out of five words of the ring, aligned by funnel shifts. A pair's two bits name four bytes of two
//! values or of zeros: `prmt` does it, with a selector that `prmt` itself looked up, for four pairs at once (`decode.rs`).
//!
//! # Pseudo-code
//!
//! ```text
//! a block: 128 rows of W, a panel of tokens; pieces of K as its worker's list says
//! producer thread: for each piece, for each 64 columns: X^T into the ring (TMA)
//! each of eight warps, for itself:
//!     for each piece:
//!         for each 64 columns:
//!             mask = 32 bits of each lane
//!             free the groups of the stream that all lanes have passed, and copy the next ones
//!             fragment = decode(mask, stream)                       runs beside the products of the step before
//!             wait for the products of the step before; release their X
//!             sums += fragment X^T                                  four products of 16 columns, with the other warps of 64 rows
//!         finish: store, or add up parts
//! ```
//!
//! # Pipeline
//!
//! ```text
//! producer    X0 X1 X2 X3 X4 ...
//! copies      rows of values, 128 bytes each, as far ahead as the ring goes (16 KiB a warp)
//! warp        decode 0 | decode 1 | decode 2 | decode 3 ...
//! tensor core          | product 0| product 1| product 2 ...
//! ```
//!
//! # Contract
//!
//! See [`Arguments`].

mod config;
mod consumer;
mod decode;
mod kernel;
mod producer;
mod strip;

pub use config::{Arguments, Configuration, RING_GROUPS, STARTS_PER_PIECE, STREAMS_PER_PIECE, Stream, XTile};
pub use kernel::{CONFIGURATIONS, entries};

#[cfg(doc)]
use hopper_std::sm90::WarpStream;
