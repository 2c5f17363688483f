//! A plan on a device: lists and tensor maps, launched many times.

use core::fmt;
use core::marker::PhantomData;
use std::sync::Arc;

use kernels_gpu::attention::WORDS_PER_TILE;

use super::launch::{Lists, Maps, Tensors, Workspace};
use super::room::Steps;
use super::{Attention, AttentionPlan, Pass};
use crate::element::Element;
use crate::error::Error;
use crate::formats::HeadsStrides;
use crate::gpu::{
    Device, DeviceBuffer, DeviceDenseViewMut, DeviceHeadsView, DeviceHeadsViewMut, DevicePtr, GpuError, Kept, Kernel,
    Scratch, Stream, TensorMap, TensorMaps,
};
use crate::ops::PlacedHeads;
#[cfg(doc)]
use crate::ops::attention::AttentionError;
use crate::tensor_map::TensorMapSpec;

/// A plan on a device, for tensors of type `T`. Send and Sync: threads and streams may launch it at once.
pub struct AttentionPrepared<T> {
    plan: AttentionPlan,
    device: Device,
    /// As many as there are passes.
    passes: Vec<PreparedPass>,
    combining: Option<Combining>,
    /// As many for each place of the tensors.
    maps: Kept<Tensors, [PassMaps]>,
    element: PhantomData<T>,
}

/// A pass on a device.
struct PreparedPass {
    kernel: Kernel,
    /// By how far apart sequences are.
    tiles: Kept<Steps, DeviceBuffer<[u32; 4]>>,
    /// Of one list of tiles.
    tile_bytes: usize,
    tile_offsets: DeviceBuffer<u32>,
    blocks: DeviceBuffer<u32>,
    columns: DeviceBuffer<u32>,
}

/// The tensor maps of a pass in device memory.
struct PassMaps {
    tiles: TensorMaps<4>,
    rows: Option<TensorMaps<2>>,
}

/// What combines parts of rows.
struct Combining {
    kernel: Kernel,
    /// Lists of rows, by how O lies.
    rows: Kept<HeadsStrides, DeviceBuffer<[u32; 4]>>,
}

impl PreparedPass {
    fn new(device: &Device, problem: &Attention, pass: &Pass) -> Result<Self, GpuError> {
        let (_, offsets) = pass.lists();
        let prepared = Self {
            kernel: device.kernel(pass.configuration().spec)?,
            tiles: Kept::default(),
            tile_bytes: pass.num_tiles() * WORDS_PER_TILE * size_of::<u32>(),
            tile_offsets: DeviceBuffer::from_slice(device, offsets)?,
            blocks: DeviceBuffer::from_slice(device, &pass.entries().blocks)?,
            columns: DeviceBuffer::from_slice(device, &pass.entries().columns)?,
        };
        if Steps::are_known(problem) {
            prepared.tiles_of(device, problem, pass, Steps::default())?;
        }
        Ok(prepared)
    }

    /// The list of tiles where sequences are so far apart.
    fn tiles_of(
        &self,
        device: &Device,
        problem: &Attention,
        pass: &Pass,
        steps: Steps,
    ) -> Result<Arc<DeviceBuffer<[u32; 4]>>, GpuError> {
        self.tiles.get_or(steps, || Ok(Arc::new(DeviceBuffer::from_slice(device, &pass.tile_words(problem, steps))?)))
    }

    fn num_bytes(&self) -> usize {
        let Self { kernel: _, tiles: _, tile_bytes, tile_offsets, blocks, columns } = self;
        tile_bytes + tile_offsets.num_bytes() + blocks.num_bytes() + columns.num_bytes()
    }

    /// Where its lists lie.
    fn lists(&self, tiles: &DeviceBuffer<[u32; 4]>) -> Lists {
        Lists {
            tiles: tiles.ptr(),
            tile_offsets: self.tile_offsets.ptr(),
            blocks: self.blocks.ptr(),
            columns: self.columns.ptr(),
        }
    }
}

impl PassMaps {
    fn new(device: &Device, Maps { tiles, rows }: Maps<TensorMapSpec<5>>) -> Result<Self, GpuError> {
        Ok(Self {
            tiles: uploaded(device, &tiles)?,
            rows: match rows {
                Some(rows) => Some(uploaded(device, &rows)?),
                None => None,
            },
        })
    }
}

fn uploaded<const N: usize>(device: &Device, specs: &[TensorMapSpec<5>; N]) -> Result<TensorMaps<N>, GpuError> {
    let maps: Result<Vec<TensorMap>, _> = specs.iter().map(|spec| TensorMap::new(device, spec)).collect();
    let maps = maps?;
    TensorMaps::upload(device, &core::array::from_fn(|index| maps[index]))
}

impl AttentionPlan {
    /// Loads the kernels, and puts the plan's lists into device memory.
    ///
    /// # Errors
    /// [`AttentionError::OtherDtype`] where the problem is not of type `T`; [`GpuError::OutOfMemory`] with the bytes wanted
    /// and free; any other [`GpuError`] of the driver.
    pub fn prepare<T: Element>(&self, device: &Device) -> Result<AttentionPrepared<T>, Error> {
        self.check_dtype(T::DTYPE)?;
        let passes: Result<Vec<_>, _> =
            self.passes().iter().map(|pass| PreparedPass::new(device, self.problem(), pass)).collect();
        let combining = match self.combination() {
            Some(parts) => Some(Combining { kernel: device.kernel(parts.kernel.spec)?, rows: Kept::default() }),
            None => None,
        };
        Ok(AttentionPrepared {
            plan: self.clone(),
            device: device.clone(),
            passes: passes?,
            combining,
            maps: Kept::default(),
            element: PhantomData,
        })
    }
}

impl<T: Element> AttentionPrepared<T> {
    /// The plan.
    pub fn plan(&self) -> &AttentionPlan {
        &self.plan
    }

    /// The loaded kernels, in the order of the plan's passes; where parts are combined, the one that does so is behind them.
    pub fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        let combining = self.combining.as_ref().map(|combining| &combining.kernel);
        self.passes.iter().map(|pass| &pass.kernel).chain(combining)
    }

    /// Device memory held for the plan's lists, in bytes; where sequences have room to spare, for those of one launch. A launch takes [`AttentionPlan::num_workspace_bytes`] besides.
    pub fn num_bytes(&self) -> usize {
        self.passes.iter().map(PreparedPass::num_bytes).sum()
    }

    /// Launches O = softmax(scale Q K^T) V on `stream` and returns without waiting; with an array for them, the log-sum-exps
    /// are stored, too. Every row of a sequence is written.
    ///
    /// Where keys are split, each launch has a workspace of its own, allocated and freed in the order of the stream.
    ///
    /// It may be captured in a graph, with what the graph needs alive for as long as it is replayed: see [graphs](crate::gpu#graphs).
    ///
    /// # Errors
    /// [`AttentionError`] where a tensor is not what was planned for, or does not lie where tensor copies reach it; a
    /// [`GpuError`] where the driver refuses.
    ///
    /// # Safety
    /// The tensors stay allocated, Q, K and V are not written and O and the log-sum-exps are not used, until the launch is
    /// done; all are in the memory of the device that this was prepared on, and `stream` is one of its streams.
    pub unsafe fn launch(
        &self,
        stream: &Stream,
        q: DeviceHeadsView<'_, T>,
        k: DeviceHeadsView<'_, T>,
        v: DeviceHeadsView<'_, T>,
        o: &mut DeviceHeadsViewMut<'_, T>,
        lse: Option<&mut DeviceDenseViewMut<'_, f32>>,
    ) -> Result<(), Error> {
        let tensors = Tensors { q: q.placed(), k: k.placed(), v: v.placed(), o: o.as_view().placed() };
        let lse = lse.map(|lse| lse.placed());
        let steps = self.plan.check_tensors(tensors, lse.map(|lse| lse.shape))?;
        let lse = lse.map_or(DevicePtr::NULL, |lse| lse.address);
        if self.plan.num_tiles() == 0 {
            return Ok(());
        }
        let maps = self.maps_for(tensors)?;
        let scratch = match self.plan.num_workspace_bytes() {
            0 => None,
            bytes => Some(Scratch::new(&self.device, stream, bytes as usize)?),
        };
        let workspace = self.workspace_at(scratch.as_ref().map_or(DevicePtr::NULL, Scratch::ptr));
        for ((pass, prepared), maps) in self.plan.passes().iter().zip(&self.passes).zip(maps.iter()) {
            let tiles = prepared.tiles_of(&self.device, self.plan.problem(), pass, steps)?;
            let lists = prepared.lists(&tiles);
            // SAFETY: the caller's promise; the workspace is freed on the same stream, after all launches. The lists are kept by
            // `self`, and freeing them waits for the launches that may still read them.
            unsafe { self.launch_pass(stream, (pass, &prepared.kernel), lists, maps, workspace, lse) }?;
        }
        // SAFETY: as above.
        Ok(unsafe { self.combine(stream, workspace, tensors.o, lse) }?)
    }

    /// # Safety
    /// As [`launch`](Self::launch); the workspace is there until the launch is done.
    unsafe fn launch_pass(
        &self,
        stream: &Stream,
        (pass, kernel): (&Pass, &Kernel),
        lists: Lists,
        maps: &PassMaps,
        workspace: Workspace,
        lse: DevicePtr,
    ) -> Result<(), GpuError> {
        let [map_q, map_o, map_k, map_v] = maps.tiles.addresses();
        let [map_key, map_value] = maps.rows.as_ref().map_or([DevicePtr::NULL; 2], TensorMaps::addresses);
        let arguments = self.plan.arguments(pass, lists, workspace, lse);
        let params = (
            map_q,
            map_o,
            map_k,
            map_v,
            map_key,
            map_value,
            DevicePtr::of(arguments.tiles.as_ptr()),
            DevicePtr::of(arguments.tile_offsets.as_ptr()),
            DevicePtr::of(arguments.lse),
            arguments.scale,
            arguments.softcap,
            arguments.left,
            arguments.right,
            arguments.diagonal_step,
            DevicePtr::of(arguments.blocks.as_ptr()),
            DevicePtr::of(arguments.columns.as_ptr()),
            DevicePtr::of(arguments.partial),
            arguments.query_shift,
            arguments.key_shift,
        );
        // SAFETY: the parameters are those that `Arguments` lists, in its order; the lists and the maps live as long as
        // `self`, which the caller keeps until the launch is done; the rest is the caller's promise.
        unsafe { kernel.launch(pass.grid(), stream, params) }
    }

    /// Makes rows of O from their parts, where there are parts.
    ///
    /// # Safety
    /// As [`launch_pass`](Self::launch_pass), behind the passes on the same stream.
    unsafe fn combine(
        &self,
        stream: &Stream,
        workspace: Workspace,
        o: PlacedHeads,
        lse: DevicePtr,
    ) -> Result<(), GpuError> {
        let (Some(parts), Some(combining)) = (self.plan.combination(), &self.combining) else { return Ok(()) };
        let rows = combining
            .rows
            .get_or(o.strides, || Ok(Arc::new(DeviceBuffer::from_slice(&self.device, &parts.row_words(o.strides))?)))?;
        let arguments = parts.arguments(rows.ptr(), workspace, o, lse);
        let params = (
            DevicePtr::of(arguments.rows.as_ptr()),
            arguments.num_rows,
            DevicePtr::of(arguments.partial.as_ptr()),
            DevicePtr::of(arguments.partial_lse.as_ptr()),
            arguments.width,
            arguments.head_dim,
            DevicePtr::of(arguments.output),
            DevicePtr::of(arguments.lse),
        );
        // SAFETY: the parameters are those that `CombineArguments` lists, in its order; the list lives as long as `self`; the
        // rest is the caller's promise.
        unsafe { combining.kernel.launch(parts.grid(), stream, params) }
    }

    /// The parts of the workspace that begins there.
    fn workspace_at(&self, address: DevicePtr) -> Workspace {
        let bytes = self.plan.combination().map_or(0, |parts| parts.num_partial_rows * parts.width * size_of::<f32>());
        Workspace { rows: address, lse: address.byte_add(bytes as u64) }
    }

    /// The maps of tensors that lie so, by pass.
    fn maps_for(&self, tensors: Tensors) -> Result<Arc<[PassMaps]>, GpuError> {
        self.maps.get_or(tensors, || {
            let maps_of = |pass| PassMaps::new(&self.device, self.plan.maps(pass, tensors));
            self.plan.passes().iter().map(maps_of).collect()
        })
    }
}

impl<T: Element> fmt::Debug for AttentionPrepared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttentionPrepared").field("plan", &self.plan.to_string()).finish_non_exhaustive()
    }
}
