//! Attention, forward.

mod config;
mod consumer;
mod epilogue;
mod kernel;
mod mask;
mod producer;
mod softmax;
mod turn;

pub use config::{Arguments, CHUNK, CONSUMER_ROWS, Configuration, Dtype, Serves, TileWork, UNBOUNDED, WORDS_PER_TILE};
pub use kernel::{CONFIGURATIONS, entries};
