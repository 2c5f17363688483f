//! A plan on a device: lists and tensor maps, launched many times.

use core::fmt;
use core::marker::PhantomData;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::AttentionPlan;
use super::launch::{Lists, PlacedHeads, Tensors};
use crate::element::Element;
use crate::error::Error;
use crate::formats::{HeadsShape, HeadsStrides};
use crate::gpu::{
    Device, DeviceBuffer, DeviceDenseViewMut, DeviceHeadsView, DeviceHeadsViewMut, DevicePtr, GpuError, Kernel, Stream,
    TensorMap, TensorMaps,
};
#[cfg(doc)]
use crate::ops::attention::AttentionError;

/// Maps are kept for this many places of Q, K, V and O together; one more, and all are made anew.
const MAX_MAPS: usize = 64;

/// A plan on a device, for tensors of type `T`. Send and Sync: threads and streams may launch it at once.
pub struct AttentionPrepared<T> {
    plan: AttentionPlan,
    kernel: Kernel,
    tiles: DeviceBuffer<[u32; 4]>,
    tile_offsets: DeviceBuffer<u32>,
    blocks: DeviceBuffer<u32>,
    columns: DeviceBuffer<u32>,
    maps: Mutex<HashMap<Tensors, Arc<TensorMaps<6>>>>,
    element: PhantomData<T>,
}

impl AttentionPlan {
    /// Loads the kernel, and puts the plan's lists into device memory.
    ///
    /// # Errors
    /// [`AttentionError::OtherDtype`] where the problem is not of type `T`; [`GpuError::OutOfMemory`] with the bytes wanted
    /// and free; any other [`GpuError`] of the driver.
    pub fn prepare<T: Element>(&self, device: &Device) -> Result<AttentionPrepared<T>, Error> {
        self.check_dtype(T::DTYPE)?;
        let (_, offsets) = self.lists();
        Ok(AttentionPrepared {
            plan: self.clone(),
            kernel: device.kernel(self.configuration().spec)?,
            tiles: DeviceBuffer::from_slice(device, &self.tile_words())?,
            tile_offsets: DeviceBuffer::from_slice(device, offsets)?,
            blocks: DeviceBuffer::from_slice(device, &self.entries().blocks)?,
            columns: DeviceBuffer::from_slice(device, &self.entries().columns)?,
            maps: Mutex::new(HashMap::new()),
            element: PhantomData,
        })
    }
}

impl<T: Element> AttentionPrepared<T> {
    /// The plan.
    pub fn plan(&self) -> &AttentionPlan {
        &self.plan
    }

    /// The loaded kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Device memory held, in bytes.
    pub fn num_bytes(&self) -> usize {
        self.tiles.num_bytes() + self.tile_offsets.num_bytes() + self.blocks.num_bytes() + self.columns.num_bytes()
    }

    /// Launches O = softmax(scale Q K^T) V on `stream` and returns without waiting; with an array for them, the log-sum-exps
    /// are stored, too. Every element of both is written.
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
        let placed = |view: DeviceHeadsView<'_, T>| placed::<T>(view.ptr(), view.shape(), view.strides());
        let tensors = Tensors { q: placed(q), k: placed(k), v: placed(v), o: placed(o.as_view()) };
        self.plan.check_tensors(tensors)?;
        let lse = match lse {
            Some(lse) => {
                let placed = lse.placed();
                self.plan.problem().check_lse(placed.shape)?;
                placed.address
            }
            None => DevicePtr::NULL,
        };
        if self.plan.num_tiles() == 0 {
            return Ok(());
        }
        let maps = self.maps_for(tensors)?;
        let [map_q, map_o, map_k, map_v, map_key, map_value] = maps.addresses();
        let lists = Lists {
            tiles: self.tiles.ptr(),
            tile_offsets: self.tile_offsets.ptr(),
            blocks: self.blocks.ptr(),
            columns: self.columns.ptr(),
        };
        let arguments = self.plan.arguments(lists, lse);
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
        );
        // SAFETY: the parameters are those that `Arguments` lists, in its order; the lists and the maps live as long as
        // `self`, which the caller keeps until the launch is done; the rest is the caller's promise.
        unsafe { self.kernel.launch(self.plan.grid(), stream, params) }?;
        Ok(())
    }

    /// The maps of tensors that lie so.
    fn maps_for(&self, tensors: Tensors) -> Result<Arc<TensorMaps<6>>, GpuError> {
        let mut cache = self.maps.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(maps) = cache.get(&tensors) {
            return Ok(Arc::clone(maps));
        }
        let device = self.kernel.device();
        let [q, o, k, v, key, value] = self.plan.maps(tensors).map(|spec| TensorMap::new(device, &spec));
        let maps = Arc::new(TensorMaps::upload(device, &[q?, o?, k?, v?, key?, value?])?);
        if cache.len() >= MAX_MAPS {
            // Freeing device memory waits for the launches that may still read it.
            cache.clear();
        }
        cache.insert(tensors, Arc::clone(&maps));
        Ok(maps)
    }
}

fn placed<T: Element>(address: DevicePtr, shape: HeadsShape, strides: HeadsStrides) -> PlacedHeads {
    PlacedHeads { address, shape, strides, dtype: T::DTYPE }
}

impl<T: Element> fmt::Debug for AttentionPrepared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttentionPrepared").field("plan", &self.plan.to_string()).finish_non_exhaustive()
    }
}
