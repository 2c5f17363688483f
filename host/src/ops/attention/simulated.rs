//! A plan in the simulator.

use super::AttentionPlan;
use super::launch::{Lists, Maps, Tensors, Workspace};
use crate::element::Element;
use crate::error::Error;
use crate::formats::{DenseViewMut, HeadsView, HeadsViewMut};
use crate::ops::PlacedHeads;
#[cfg(doc)]
use crate::ops::attention::AttentionError;
use crate::sim::{Report, Simulated, SimulatedMemory};
use crate::tensor_map::DevicePtr;

impl AttentionPlan {
    /// Computes O, and the log-sum-exps where an array is given, by the plan's kernels in the simulator: what `prepare` and
    /// `launch` do on a device.
    ///
    /// What is wrong with a kernel is in the report, and no error; O is then whatever it stored.
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
        let steps = self.check_tensors(tensors, lse.as_ref().map(|lse| lse.shape))?;
        if self.num_tiles() == 0 {
            return Ok(Report::default());
        }
        let num_lse = self.problem().lse_shape().into_iter().product();
        let placed_lse = match &lse {
            Some(lse) => memory.upload("log-sum-exps", &lse.as_view().data()[..num_lse]),
            None => DevicePtr::NULL,
        };
        let workspace = self.upload_workspace(&mut memory);
        let mut report = Report::default();
        for pass in self.passes() {
            let (_, offsets) = pass.lists();
            let lists = Lists {
                tiles: memory.upload("list of tiles", &pass.tile_words(self.problem(), steps)),
                tile_offsets: memory.upload("tile offsets", offsets),
                blocks: memory.upload("lists of keys", &pass.entries().blocks),
                columns: memory.upload("columns", &pass.entries().columns),
            };
            let Maps { tiles, rows } = self.maps(pass, tensors);
            let mut maps = [DevicePtr::NULL; 6];
            for (address, spec) in maps.iter_mut().zip(tiles.iter().chain(rows.iter().flatten())) {
                *address = memory.tensor_map(spec)?;
            }
            let (simulate, grid) = (pass.configuration().simulate, [pass.grid(), 1, 1]);
            let launched = hopper_sim::launch(pass.configuration().spec, grid, memory.get(), device.schedule(), || {
                let arguments = self.arguments(pass, lists, workspace, placed_lse);
                // SAFETY: the arguments are the contract's; the lists and maps live in `memory`. Accesses outside of it,
                // to which a wrong list could lead, are caught by the simulator.
                unsafe { simulate(maps.map(|map| map.as_mut_ptr::<u8>().cast_const()), arguments) }
            });
            add(&mut report, launched);
        }
        if let Some(parts) = self.combination() {
            let rows = memory.upload("list of rows", &parts.row_words(tensors.o.strides));
            let (simulate, grid) = (parts.kernel.simulate, [parts.grid(), 1, 1]);
            let launched = hopper_sim::launch(parts.kernel.spec, grid, memory.get(), device.schedule(), || {
                let arguments = parts.arguments(rows, workspace, tensors.o, placed_lse);
                // SAFETY: as above.
                unsafe { simulate(arguments) }
            });
            add(&mut report, launched);
        }
        let reach = tensors.o.shape.reach(tensors.o.strides).unwrap_or(0);
        memory.download_slice(tensors.o.address, &mut o.data_mut()[..reach]);
        if let Some(lse) = lse {
            memory.download_slice(placed_lse, &mut lse.data_mut()[..num_lse]);
        }
        device.add(&report);
        Ok(report)
    }

    /// A workspace full of NaN.
    fn upload_workspace(&self, memory: &mut SimulatedMemory) -> Workspace {
        match self.combination() {
            Some(parts) => Workspace {
                rows: memory.upload("parts of rows", &vec![f32::NAN; parts.num_partial_rows * parts.width]),
                lse: memory.upload("log-sum-exps of parts", &vec![f32::NAN; parts.num_partial_rows]),
            },
            None => Workspace { rows: DevicePtr::NULL, lse: DevicePtr::NULL },
        }
    }
}

/// Adds what a launch came to.
fn add(report: &mut Report, launched: Report) {
    report.findings.extend(launched.findings);
    report.bank_conflicts += launched.bank_conflicts;
    report.num_instructions += launched.num_instructions;
}

/// A tensor with what lies between its rows, and nothing behind the last.
fn upload<T: Element>(memory: &mut SimulatedMemory, name: &str, view: HeadsView<'_, T>) -> PlacedHeads {
    let (shape, strides) = (view.shape(), view.strides());
    let data = shape.reach(strides).and_then(|reach| view.data().get(..reach)).unwrap_or(view.data());
    PlacedHeads { address: memory.upload(name, data), shape, strides, dtype: T::DTYPE }
}
