//! A product of the library's on the device, whatever the format.

use core::marker::PhantomData;

use hopper_sparse::Element;
use hopper_sparse::ops::auto::AutoPrepared;

use super::error::BenchError;
use super::implementation::Prepared;
use super::product_operands::{ProductOperands, device_views, product_flops};
use super::workspace::Workspace;

/// What is prepared, and how much of A it multiplies.
pub struct OurProduct<'a, T: Element, U> {
    workspace: &'a Workspace<'a, ProductOperands>,
    prepared: AutoPrepared<T>,
    num_stored: u64,
    output: PhantomData<U>,
}

impl<'a, T: Element, U: Element> OurProduct<'a, T, U> {
    /// A product that multiplies `num_stored` elements of A.
    pub fn new(workspace: &'a Workspace<'a, ProductOperands>, prepared: AutoPrepared<T>, num_stored: u64) -> Self {
        Self { workspace, prepared, num_stored, output: PhantomData }
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

impl<T: Element, U: Element> Prepared for OurProduct<'_, T, U> {
    fn launch(&mut self, set: usize) -> Result<(), BenchError> {
        let (gpu, sets) = self.workspace.on_device();
        // SAFETY: the set is the workload's, whose types are T and U, on the device that this was prepared on. It outlives
        // `self`, and all work is on the one stream, which is waited for before a set is read or filled from elsewhere.
        unsafe {
            let (b, mut c) = device_views::<T, U>(&self.workspace.operands().product, &sets[set])?;
            Ok(self.prepared.launch(gpu.stream(), 1.0, b, 0.0, &mut c)?)
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
