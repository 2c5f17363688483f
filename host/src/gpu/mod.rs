//! The device: found, described, and handed its work.
//!
//! The layer is thin. It is built on [cust] and on `cuda-loader`, which finds the driver at run time, and adds what
//! Hopper kernels need: launches checked against a [`KernelSpec`](hopper_std::KernelSpec), clusters, and tensor maps.
//!
//! - [`Device`]: one Hopper GPU, found or refused with the reason.
//! - [`Kernel`]: compiled PTX with its specification; [`Kernel::launch`] is the only way to run device code here.
//! - [`Stream`], [`Event`]: order and time. Functions that take a stream take cust's, so one of the caller's serves.
//! - [`DeviceBuffer`], [`DeviceDense`] and their views: device memory; [`DeviceHeadsView`] for attention.
//! - [`TensorMap`], [`TensorMaps`]: what the tensor memory accelerator reads a matrix by.
//!
//! Every function makes its device's context current on the calling thread, and leaves it so: any thread may call
//! anything, with several devices too. Code that relies on another current context must set it again.
//!
//! # Graphs
//!
//! Launches of products and of attention may be captured from a [`Stream`] into a CUDA graph (`cuStreamBeginCapture_v2` on its
//! [`as_inner`](cust::stream::Stream::as_inner)) and replayed: the graph holds the kernels and, as memory nodes that it frees itself, their
//! workspaces.
//!
//! - Launch once with the same operands, at the same addresses, before the capture: tensor maps and lists are uploaded on first use, and the
//!   memory for workspaces is set up. In a capture the driver refuses that, the launch returns its code, and the capture is lost.
//! - A B of which a launch makes an aligned copy cannot be captured, for the copy lies elsewhere each time.
//! - A graph holds addresses. The operands, the result and what was prepared stay alive for as long as it is replayed. What is
//!   prepared keeps the tensor maps of 64 places of its operands: one that was launched with more has none that a graph may rely on.
//! - Copies, fills and allocations of this library wait for the legacy default stream, which waits for every [`Stream`]: while one is
//!   captured, no thread may make any on its device, or the driver refuses them and the capture is lost.

mod aligned;
mod buffer;
mod copy;
mod dense;
mod device;
mod error;
mod heads;
mod kept;
mod launch;
mod module;
mod scratch;
mod stream;
mod tensor_map;
mod view;

pub use crate::tensor_map::{
    DevicePtr, L2Promotion, TensorElement, TensorMapError, TensorMapPart, TensorMapSpec, TensorMapSwizzle,
};
pub(crate) use aligned::AlignedCopy;
pub use buffer::DeviceBuffer;
pub use cuda_loader::{DriverVersion, LoadError};
pub use dense::DeviceDense;
pub use device::Device;
pub use error::{GpuError, LaunchRefusal, SpecProperty};
pub use heads::{DeviceHeadsView, DeviceHeadsViewMut};
pub(crate) use kept::Kept;
pub use launch::{KernelParam, KernelParams};
pub use module::Kernel;
pub(crate) use scratch::Scratch;
pub use stream::{Event, Stream};
pub use tensor_map::{TensorMap, TensorMaps};
pub use view::{DeviceDenseView, DeviceDenseViewMut};
