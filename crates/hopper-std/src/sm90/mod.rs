//! The typed machine: Hopper's asynchronous hardware as types.
//!
//! | type | what it makes impossible |
//! | --- | --- |
//! | [`Tile`] | a tensor-map box, byte count or descriptor that disagrees with the data |
//! | [`Shared`], [`SharedMemory`] | more than 227 KiB; misaligned tiles; pointer arithmetic in kernels |
//! | [`FullBarrier`], [`EmptyBarrier`] | waiting on the wrong one |
//! | [`PipelineState`] | a phase flipped by hand |
//! | [`Producer`], [`Consumer`], [`EmptySlot`], [`FullSlot`] | doing the other role's half; releasing twice; using a slot after its release |
//! | [`Accumulator`], [`Pending`], [`Flight`] | reading an accumulator, or releasing the slot it reads, before the wait |
//! | [`RegisterBudget`] | a register split that does not fit, which would hang the machine |
//! | [`named_barriers!`](crate::named_barriers) | colliding barrier ids |
//! | [`KernelSpec`](crate::KernelSpec) | a launch that disagrees with the kernel |

mod accumulator;
mod barrier;
mod descriptor;
mod fragment;
mod gatherer;
mod named_barrier;
mod pipeline;
mod shared;
mod tensor_map;
mod tile;
mod warp_group;
mod warp_stream;

pub use accumulator::{Accumulator, Flight, Flights, InUse, Initial, LeftFragment, Metadata, Pending, Products};
pub use barrier::{EmptyBarrier, FullBarrier, Phase};
pub use descriptor::{KMajor, Major, MnMajor, SmemDescriptor};
pub use fragment::AccumulatorFragment;
pub use gatherer::Gatherer;
pub use named_barrier::NamedBarrier;
pub use pipeline::{
    BlockScope, ClusterScope, Consumer, EmptySlot, FullSlot, Pipeline, PipelineBarriers, PipelineState, Producer,
    Scope, Uninit,
};
pub use shared::{Shared, SharedMemory};
pub use tensor_map::{TensorMapObject, TensorMapRef};
pub use tile::{Linear, Swizzle, Swizzle32, Swizzle64, Swizzle128, Tile, TileRow, TileShape};
pub use warp_group::{RegisterBudget, WarpGroup};
pub use warp_stream::{GROUP_ROWS, ROW_BYTES, WINDOW, WarpRing, WarpStream};
