//! A product of the library's on the device, whatever the format.

use core::fmt;
use core::marker::PhantomData;

use hopper_sparse::gpu::{DeviceDenseView, DeviceDenseViewMut, Stream};
use hopper_sparse::ops::auto::AutoPrepared;
use hopper_sparse::{Element, Error};

use super::error::BenchError;
use super::implementation::Prepared;
use super::product_operands::{ProductOperands, device_views, product_flops};
use super::workspace::Workspace;

/// An A that was prepared, whatever the format and the kernel. It shows what was chosen.
pub trait PreparedA<T: Element>: fmt::Display {
    /// Device memory held, in bytes.
    fn num_bytes(&self) -> usize;

    /// Launches C = A B.
    ///
    /// # Errors
    /// As [`AutoPrepared::launch`].
    ///
    /// # Safety
    /// As [`AutoPrepared::launch`].
    unsafe fn multiply<U: Element>(
        &self,
        stream: &Stream,
        b: DeviceDenseView<'_, T>,
        c: &mut DeviceDenseViewMut<'_, U>,
    ) -> Result<(), Error>;
}

impl<T: Element> PreparedA<T> for AutoPrepared<T> {
    fn num_bytes(&self) -> usize {
        self.num_bytes()
    }

    unsafe fn multiply<U: Element>(
        &self,
        stream: &Stream,
        b: DeviceDenseView<'_, T>,
        c: &mut DeviceDenseViewMut<'_, U>,
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { self.launch(stream, 1.0, b, 0.0, c) }
    }
}

/// What is prepared, and how much of A it multiplies. `T` is the type of A and B, `U` that of C.
pub struct OurProduct<'a, P, T, U> {
    workspace: &'a Workspace<'a, ProductOperands>,
    prepared: P,
    num_stored: u64,
    types: PhantomData<(T, U)>,
}

impl<'a, P: PreparedA<T>, T: Element, U: Element> OurProduct<'a, P, T, U> {
    /// A product that multiplies `num_stored` elements of A.
    pub fn new(workspace: &'a Workspace<'a, ProductOperands>, prepared: P, num_stored: u64) -> Self {
        Self { workspace, prepared, num_stored, types: PhantomData }
    }

    /// After one launch for each set: the tensor map of each B is made on first use, and that is part of preparation.
    ///
    /// # Errors
    /// As a launch.
    pub fn with_maps(mut self) -> Result<Self, BenchError> {
        let (gpu, sets) = self.workspace.on_device();
        for set in 0..sets.len() {
            self.launch(set)?;
        }
        gpu.synchronize()?;
        Ok(self)
    }
}

impl<P: PreparedA<T>, T: Element, U: Element> Prepared for OurProduct<'_, P, T, U> {
    fn launch(&mut self, set: usize) -> Result<(), BenchError> {
        let (gpu, sets) = self.workspace.on_device();
        // SAFETY: the set is the workload's, whose types are T and U, on the device that this was prepared on. It outlives
        // `self`, and all work is on the one stream, which is waited for before a set is read or filled from elsewhere.
        unsafe {
            let (b, mut c) = device_views::<T, U>(&self.workspace.operands().product, &sets[set])?;
            Ok(self.prepared.multiply(gpu.stream(), b, &mut c)?)
        }
    }

    fn flops(&self) -> u64 {
        product_flops(self.num_stored, self.workspace.operands().product.n)
    }

    fn bytes(&self) -> u64 {
        self.prepared.num_bytes() as u64 + self.workspace.operands().product.dense_bytes()
    }

    fn choice(&self) -> String {
        self.prepared.to_string()
    }
}
