//! A plan on a device: values, lists and tensor maps, launched many times.

use core::fmt;
use core::marker::PhantomData;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use kernels_gpu::bcsr::{CachePolicy, OutputKind};

use super::BcsrPlan;
use crate::element::{Dtype, Element};
use crate::error::Error;
use crate::formats::{BcsrView, Layout};
use crate::gpu::{
    AlignedCopy, Device, DeviceBuffer, DeviceDenseView, DeviceDenseViewMut, DevicePtr, GpuError, Kernel, L2Promotion,
    Stream, TensorElement, TensorMap, TensorMapSpec, TensorMapSwizzle, TensorMaps,
};
use crate::ops::{Operand, PlanError};

/// Maps are kept for this many matrices B; one more, and all are made anew.
const MAX_MAPS: usize = 64;

/// A BCSR matrix on a device, with all that its products need. Send and Sync: threads and streams may launch it at once.
pub struct BcsrPrepared<T> {
    plan: BcsrPlan,
    kernel: Kernel,
    values: DeviceBuffer<T>,
    blocks: DeviceBuffer<[u32; 2]>,
    tiles: DeviceBuffer<[u32; 4]>,
    tile_offsets: DeviceBuffer<u32>,
    /// The maps of A and B, by address and leading dimension of B.
    maps: Mutex<HashMap<(DevicePtr, usize), Arc<TensorMaps<2>>>>,
    element: PhantomData<T>,
}

impl BcsrPlan {
    /// Puts `a` and the plan's lists into device memory.
    ///
    /// # Errors
    /// [`PlanError::NotPlanned`] where `a` is not what was planned for; [`GpuError::OutOfMemory`] with the bytes wanted
    /// and free; any other [`GpuError`] of the driver.
    pub fn prepare<T: Element>(&self, device: &Device, a: &BcsrView<'_, T>) -> Result<BcsrPrepared<T>, Error> {
        let problem = &self.problem;
        let halves = problem.block.cols / self.configuration.block_cols;
        problem.check_sparse(a)?;
        if a.num_blocks() * halves != self.num_blocks {
            return Err(PlanError::NotPlanned { operand: Operand::A }.into());
        }
        let kernel = device.kernel(self.configuration.spec)?;
        let values = match halves {
            1 => Cow::Borrowed(a.values),
            _ => Cow::Owned(split_columns(a.values, problem.block.cols, problem.block.rows, halves)),
        };
        let values = if values.is_empty() {
            // Something to point the tensor map to: it is never read.
            DeviceBuffer::filled(device, self.configuration.block_rows * self.configuration.block_cols, 0)?
        } else {
            DeviceBuffer::from_slice(device, &values)?
        };
        let tiles: Vec<[u32; 4]> = self.schedule.tiles.iter().map(|tile| tile.to_words()).collect();
        Ok(BcsrPrepared {
            plan: self.clone(),
            kernel,
            values,
            blocks: DeviceBuffer::from_slice(device, &self.blocks)?,
            tiles: DeviceBuffer::from_slice(device, &tiles)?,
            tile_offsets: DeviceBuffer::from_slice(device, &self.schedule.offsets)?,
            maps: Mutex::new(HashMap::new()),
            element: PhantomData,
        })
    }
}

/// Cuts row-major blocks of `cols` columns into `halves` blocks side by side, each row-major.
fn split_columns<T: Element>(values: &[T], cols: usize, rows: usize, halves: usize) -> Vec<T> {
    let part = cols / halves;
    let mut split = Vec::with_capacity(values.len());
    for block in values.chunks_exact(rows * cols) {
        for half in 0..halves {
            for row in block.chunks_exact(cols) {
                split.extend_from_slice(&row[half * part..(half + 1) * part]);
            }
        }
    }
    split
}

impl<T: Element> BcsrPrepared<T> {
    /// The plan.
    pub fn plan(&self) -> &BcsrPlan {
        &self.plan
    }

    /// The loaded kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Device memory held, in bytes.
    pub fn num_bytes(&self) -> usize {
        self.values.num_bytes() + self.blocks.num_bytes() + self.tiles.num_bytes() + self.tile_offsets.num_bytes()
    }

    /// Launches C = alpha A B + beta C on `stream` and returns without waiting. With `beta` 0, C is not read; with
    /// `alpha` 0, A and B are not.
    ///
    /// B and C may lie anywhere, with any leading dimension. Where B is not aligned as tensor copies demand (16 bytes for
    /// its base and its lines), an aligned copy of it is made first, on the same stream.
    ///
    /// # Errors
    /// [`PlanError::ShapeMismatch`] and [`PlanError::NotPlanned`] where B or C is not what was planned for; a
    /// [`GpuError`] where the driver refuses.
    ///
    /// # Safety
    /// B and C stay allocated, B is not written and C is not used, until the launch is done; both are in the memory of
    /// the device that this was prepared on, and `stream` is one of its streams.
    pub unsafe fn launch<U: Element>(
        &self,
        stream: &Stream,
        alpha: f32,
        b: DeviceDenseView<'_, T>,
        beta: f32,
        c: &mut DeviceDenseViewMut<'_, U>,
    ) -> Result<(), Error> {
        self.plan.problem.factors().check_planned(&b, c)?;
        if self.plan.num_tiles() == 0 {
            return Ok(());
        }
        if is_aligned(&b) {
            // SAFETY: the caller's promise.
            return Ok(unsafe { self.launch_aligned(stream, alpha, &b, beta, c) }?);
        }
        self.kernel.device().make_current()?;
        let copy = AlignedCopy::new(stream, &b)?;
        // SAFETY: the copy is freed on the same stream, after the launch.
        Ok(unsafe { self.launch_aligned(stream, alpha, &copy.view(), beta, c) }?)
    }

    /// # Safety
    /// As [`launch`](Self::launch).
    unsafe fn launch_aligned<U: Element>(
        &self,
        stream: &Stream,
        alpha: f32,
        b: &DeviceDenseView<'_, T>,
        beta: f32,
        c: &mut DeviceDenseViewMut<'_, U>,
    ) -> Result<(), GpuError> {
        let maps = self.maps_for(b)?;
        let [map_a, map_b] = maps.addresses();
        let (policy_a, policy_b) = match self.plan.streams_b {
            true => (CachePolicy::EVICT_LAST, CachePolicy::EVICT_FIRST),
            false => (CachePolicy::EVICT_NORMAL, CachePolicy::EVICT_NORMAL),
        };
        let params = (
            map_a,
            map_b,
            self.blocks.ptr(),
            self.tiles.ptr(),
            self.tile_offsets.ptr(),
            c.ptr(),
            c.leading_dimension() as u64,
            c.num_rows() as u32,
            c.num_cols() as u32,
            alpha,
            beta,
            output_kind(c, beta) as u32,
            policy_a.0,
            policy_b.0,
        );
        // SAFETY: the parameters are those that `Arguments` lists, in its order; the lists and the maps live as long as
        // `self`, which the caller keeps until the launch is done; the rest is the caller's promise.
        unsafe { self.kernel.launch(self.plan.grid(), stream, params) }
    }

    /// The maps of A and of this B.
    fn maps_for(&self, b: &DeviceDenseView<'_, T>) -> Result<Arc<TensorMaps<2>>, GpuError> {
        let key = (b.ptr(), b.leading_dimension());
        let mut cache = self.maps.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(maps) = cache.get(&key) {
            return Ok(Arc::clone(maps));
        }
        let device = self.kernel.device();
        let maps = [TensorMap::new(device, &self.a_map())?, TensorMap::new(device, &self.b_map(b))?];
        let maps = Arc::new(TensorMaps::upload(device, &maps)?);
        if cache.len() >= MAX_MAPS {
            // Freeing device memory waits for the launches that may still read it.
            cache.clear();
        }
        cache.insert(key, Arc::clone(&maps));
        Ok(maps)
    }

    fn a_map(&self) -> TensorMapSpec<3> {
        let configuration = self.plan.configuration;
        let (rows, cols) = (configuration.block_rows as u64, configuration.block_cols as u64);
        let size = size_of::<T>() as u64;
        let [box_cols, box_rows] = configuration.a_box;
        TensorMapSpec {
            element: TensorElement::from(T::DTYPE),
            address: self.values.ptr(),
            dims: [cols, rows, self.plan.num_blocks.max(1) as u64],
            strides_bytes: [size, cols * size, rows * cols * size],
            box_dims: [box_cols, box_rows, 1],
            element_strides: [1; 3],
            swizzle: swizzle(configuration.a_swizzle),
            l2_promotion: L2Promotion::Bytes128,
        }
    }

    fn b_map(&self, b: &DeviceDenseView<'_, T>) -> TensorMapSpec<2> {
        let configuration = self.plan.configuration;
        let spec = TensorMapSpec {
            // PERF: 256 bytes, twice the width of a box: 3584 x 16384 x 18944 at 10 %, 343 us for 333 (H200).
            l2_promotion: L2Promotion::Bytes128,
            ..TensorMapSpec::matrix(b, configuration.b_box, swizzle(configuration.b_swizzle))
        };
        if spec.dims.contains(&0) {
            // K = 0: there is no block, and B is never read; the map must still be one.
            return TensorMapSpec { address: self.values.ptr(), dims: [1, 1], strides_bytes: [2, 16], ..spec };
        }
        spec
    }
}

impl<T: Element> fmt::Debug for BcsrPrepared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BcsrPrepared").field("plan", &self.plan.to_string()).finish_non_exhaustive()
    }
}

/// The configuration's number as the host's type; the kernels' swizzles are 1 to 3.
fn swizzle(number: u32) -> TensorMapSwizzle {
    TensorMapSwizzle::from_number(number).unwrap_or(TensorMapSwizzle::None)
}

/// Whether tensor copies can read the matrix where it is.
fn is_aligned<T: Element>(b: &DeviceDenseView<'_, T>) -> bool {
    b.ptr().0.is_multiple_of(16) && (b.leading_dimension() * size_of::<T>()).is_multiple_of(16)
}

/// The fastest epilogue that can store to C.
fn output_kind<U: Element>(c: &DeviceDenseViewMut<'_, U>, beta: f32) -> OutputKind {
    let rows = c.layout() == Layout::RowMajor;
    if U::DTYPE == Dtype::F32 {
        return if rows { OutputKind::FloatRows } else { OutputKind::FloatCols };
    }
    let line = if rows { c.num_cols() } else { c.num_rows() };
    let packed = beta == 0.0
        && c.ptr().0.is_multiple_of(16)
        && c.leading_dimension().is_multiple_of(8)
        && line.is_multiple_of(8);
    match (rows, packed) {
        (true, true) => OutputKind::HalfRows,
        (false, true) => OutputKind::HalfCols,
        (true, false) => OutputKind::HalfRowsAny,
        (false, false) => OutputKind::HalfColsAny,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_keeps_every_element_in_its_half() {
        let values: Vec<f32> = (0..2 * 4).map(|index| index as f32).collect();
        assert_eq!(split_columns(&values, 4, 2, 2), [0.0, 1.0, 4.0, 5.0, 2.0, 3.0, 6.0, 7.0]);
    }
}
