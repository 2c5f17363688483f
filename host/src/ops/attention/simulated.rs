//! A plan in the simulator.

use super::AttentionPlan;
use super::launch::{Lists, PlacedHeads, Tensors};
use crate::element::Element;
use crate::error::Error;
use crate::formats::{DenseViewMut, HeadsView, HeadsViewMut};
#[cfg(doc)]
use crate::ops::attention::AttentionError;
use crate::sim::{Report, Simulated, SimulatedMemory};
use crate::tensor_map::DevicePtr;

impl AttentionPlan {
    /// Computes O, and the log-sum-exps where an array is given, by the plan's kernel in the simulator: what `prepare` and
    /// `launch` do on a device.
    ///
    /// What is wrong with the kernel is in the report, and no error; O is then whatever it stored.
    ///
    /// # Errors
    /// [`AttentionError`] where a tensor is not what was planned for, or does not lie where tensor copies reach it.
    pub fn simulate<T: Element>(
        &self,
        device: &Simulated,
        q: HeadsView<'_, T>,
        k: HeadsView<'_, T>,
        v: HeadsView<'_, T>,
        o: &mut HeadsViewMut<'_, T>,
        lse: Option<&mut DenseViewMut<'_, f32>>,
    ) -> Result<Report, Error> {
        let mut memory = SimulatedMemory::default();
        let tensors = Tensors {
            q: upload(&mut memory, "Q", q),
            k: upload(&mut memory, "K", k),
            v: upload(&mut memory, "V", v),
            o: upload(&mut memory, "O", o.as_view()),
        };
        self.check_tensors(tensors)?;
        if let Some(lse) = &lse {
            self.problem().check_lse(lse.shape)?;
        }
        if self.num_tiles() == 0 {
            return Ok(Report::default());
        }
        let (_, offsets) = self.lists();
        let lists = Lists {
            tiles: memory.upload("list of tiles", &self.tile_words()),
            tile_offsets: memory.upload("tile offsets", offsets),
            blocks: memory.upload("lists of keys", &self.entries().blocks),
            columns: memory.upload("columns", &self.entries().columns),
        };
        let num_lse = self.problem().lse_shape().into_iter().product();
        let placed_lse = match &lse {
            Some(lse) => memory.upload("log-sum-exps", &lse.as_view().data()[..num_lse]),
            None => DevicePtr::NULL,
        };
        let mut maps = [DevicePtr::NULL; 6];
        for (address, spec) in maps.iter_mut().zip(self.maps(tensors)) {
            *address = memory.tensor_map(&spec)?;
        }
        let (simulate, grid) = (self.configuration().simulate, [self.grid(), 1, 1]);
        let report = hopper_sim::launch(self.configuration().spec, grid, memory.get(), device.schedule(), || {
            let arguments = self.arguments(lists, placed_lse);
            // SAFETY: the arguments are the contract's; the lists and maps live in `memory`. Accesses outside of it, to
            // which a wrong list could lead, are caught by the simulator.
            unsafe { simulate(maps.map(|map| map.as_mut_ptr::<u8>().cast_const()), arguments) }
        });
        let reach = tensors.o.shape.reach(tensors.o.strides).unwrap_or(0);
        memory.download_slice(tensors.o.address, &mut o.data_mut()[..reach]);
        if let Some(lse) = lse {
            memory.download_slice(placed_lse, &mut lse.data_mut()[..num_lse]);
        }
        device.add(&report);
        Ok(report)
    }
}

/// A tensor with what lies between its rows, and nothing behind the last.
fn upload<T: Element>(memory: &mut SimulatedMemory, name: &str, view: HeadsView<'_, T>) -> PlacedHeads {
    let (shape, strides) = (view.shape(), view.strides());
    let data = shape.reach(strides).and_then(|reach| view.data().get(..reach)).unwrap_or(view.data());
    PlacedHeads { address: memory.upload(name, data), shape, strides, dtype: T::DTYPE }
}
