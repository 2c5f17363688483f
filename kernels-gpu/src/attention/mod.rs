//! Attention, forward.

mod config;

pub use config::{
    Arguments, CHUNK, CONSUMER_ROWS, Configuration, Dtype, TileWork, UNBOUNDED, WORDS_PER_TILE,
};
