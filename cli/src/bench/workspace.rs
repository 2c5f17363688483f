//! The memory of one workload: the operands and the result, on the host or in several sets on the device.
//!
//! A launch whose operands fit the L2 cache would find them there each time after the first, which no user
//! sees. So the device holds several copies of operands and result, and launches take them in turn.

use std::cell::{Ref, RefCell};

#[cfg(feature = "gpu")]
use super::device::{DeviceSet, Gpu};
use super::elements::Elements;
use super::error::BenchError;
#[cfg(feature = "gpu")]
pub use super::graph::Graph;
use super::operands::Operands;

/// There is no device to launch it.
#[cfg(not(feature = "gpu"))]
pub struct Graph<'a>(core::convert::Infallible, core::marker::PhantomData<&'a ()>);

#[cfg(not(feature = "gpu"))]
impl Graph<'_> {
    /// Never called.
    ///
    /// # Errors
    /// None.
    pub fn launch(&self) -> Result<(), BenchError> {
        match self.0 {}
    }
}

/// Whether launches may find their operands in the device's L2 cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Cache {
    /// Operands come from memory: sets of them are used in turn, together at least twice the L2 cache.
    #[default]
    Cold,
    /// One set is used again and again.
    Warm,
}

impl Cache {
    /// The name used on the command line and in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Warm => "warm",
        }
    }

    /// How many sets of `set_bytes` a device with `l2_bytes` of cache takes in turn; at most 64.
    pub fn num_sets(self, set_bytes: u64, l2_bytes: u64) -> usize {
        match self {
            Self::Warm => 1,
            Self::Cold if set_bytes >= 2 * l2_bytes => 1,
            Self::Cold => (2 * l2_bytes).div_ceil(set_bytes.max(1)).clamp(2, 64) as usize,
        }
    }
}

/// Operands and result of a workload, and where they are.
pub struct Workspace<'a, O> {
    operands: &'a O,
    memory: Memory<'a>,
}

enum Memory<'a> {
    Host(RefCell<Elements>),
    #[cfg(feature = "gpu")]
    Device {
        gpu: &'a Gpu,
        sets: Vec<DeviceSet>,
    },
    #[cfg(not(feature = "gpu"))]
    Nowhere(core::convert::Infallible, core::marker::PhantomData<&'a ()>),
}

impl<'a, O: Operands> Workspace<'a, O> {
    /// The result on the host; the operands are there.
    pub fn host(operands: &'a O) -> Self {
        Self { operands, memory: Memory::Host(RefCell::new(poison(operands))) }
    }

    /// Operands and result on the device, as many times as `cache` wants.
    ///
    /// # Errors
    /// [`BenchError::Library`] where the device's memory does not suffice.
    #[cfg(feature = "gpu")]
    pub fn device(operands: &'a O, gpu: &'a Gpu, cache: Cache) -> Result<Self, BenchError> {
        let (dtype, len) = operands.output();
        let num_sets = operands.num_sets(cache, gpu.l2_bytes());
        let mut sets = Vec::with_capacity(num_sets);
        for _ in 0..num_sets {
            let inputs = operands.inputs().into_iter().map(|input| gpu.upload(input.as_bytes()));
            let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
            sets.push(DeviceSet { inputs, output: gpu.allocate(len * dtype.size_bytes())? });
        }
        Ok(Self { operands, memory: Memory::Device { gpu, sets } })
    }

    /// The operands on the host.
    pub fn operands(&self) -> &'a O {
        self.operands
    }

    /// The number of sets that launches take in turn.
    pub fn num_sets(&self) -> usize {
        match &self.memory {
            Memory::Host(_) => 1,
            #[cfg(feature = "gpu")]
            Memory::Device { sets, .. } => sets.len(),
            #[cfg(not(feature = "gpu"))]
            Memory::Nowhere(never, _) => match *never {},
        }
    }

    /// The result on the host, for an implementation there.
    ///
    /// # Panics
    /// On a workspace of the device: the harness gives an implementation a workspace of its own place.
    pub fn host_output(&self) -> &RefCell<Elements> {
        match &self.memory {
            Memory::Host(c) => c,
            #[cfg(feature = "gpu")]
            Memory::Device { .. } => unreachable!("an implementation on the CPU was given a workspace of the device"),
            #[cfg(not(feature = "gpu"))]
            Memory::Nowhere(never, _) => match *never {},
        }
    }

    /// The device and the sets there, for an implementation on it.
    ///
    /// # Panics
    /// On a workspace of the host.
    #[cfg(feature = "gpu")]
    pub fn on_device(&self) -> (&'a Gpu, &[DeviceSet]) {
        match &self.memory {
            Memory::Device { gpu, sets } => (gpu, sets),
            Memory::Host(_) => unreachable!("an implementation on the device was given a workspace of the host"),
        }
    }

    /// Fills the result of a set with NaN.
    ///
    /// # Errors
    /// What the device failed at.
    #[cfg_attr(not(feature = "gpu"), allow(unused_variables, reason = "the host has one set"))]
    pub fn poison(&self, set: usize) -> Result<(), BenchError> {
        match &self.memory {
            Memory::Host(c) => {
                *c.borrow_mut() = poison(self.operands);
                Ok(())
            }
            #[cfg(feature = "gpu")]
            Memory::Device { gpu, sets } => gpu.fill_ones(&sets[set].output),
            #[cfg(not(feature = "gpu"))]
            Memory::Nowhere(never, _) => match *never {},
        }
    }

    /// The result of a set, once all work enqueued has ended.
    ///
    /// # Errors
    /// What the device, or the work on it, failed at.
    #[cfg_attr(not(feature = "gpu"), allow(unused_variables, reason = "the host has one set"))]
    pub fn output(&self, set: usize) -> Result<Output<'_>, BenchError> {
        match &self.memory {
            Memory::Host(c) => Ok(Output::Borrowed(c.borrow())),
            #[cfg(feature = "gpu")]
            Memory::Device { gpu, sets } => {
                let mut copy = poison(self.operands);
                gpu.download(&sets[set].output, copy.as_bytes_mut())?;
                Ok(Output::Copied(copy))
            }
            #[cfg(not(feature = "gpu"))]
            Memory::Nowhere(never, _) => match *never {},
        }
    }

    /// Captures what `work` enqueues on the device as a graph, and launches nothing.
    ///
    /// # Errors
    /// [`NotCaptured`](super::implementation::Refusal::NotCaptured), or what `work` failed at.
    ///
    /// # Panics
    /// On a workspace of the host, whose launches the harness does not capture.
    #[cfg_attr(not(feature = "gpu"), allow(unused_variables, reason = "there is nothing to capture from"))]
    pub fn capture(&self, work: impl FnOnce() -> Result<(), BenchError>) -> Result<Graph<'a>, BenchError> {
        match &self.memory {
            Memory::Host(_) => unreachable!("what the host computes was to be captured"),
            #[cfg(feature = "gpu")]
            Memory::Device { gpu, .. } => Graph::capture(gpu, work),
            #[cfg(not(feature = "gpu"))]
            Memory::Nowhere(never, _) => match *never {},
        }
    }

    /// Runs `work`, waits for it, and returns the microseconds that it took.
    ///
    /// # Errors
    /// What `work`, or the device, failed at.
    pub fn time_us(&self, work: impl FnOnce() -> Result<(), BenchError>) -> Result<f64, BenchError> {
        match &self.memory {
            Memory::Host(_) => {
                let start = std::time::Instant::now();
                work()?;
                Ok(start.elapsed().as_secs_f64() * 1e6)
            }
            #[cfg(feature = "gpu")]
            Memory::Device { gpu, .. } => gpu.time_us(work),
            #[cfg(not(feature = "gpu"))]
            Memory::Nowhere(never, _) => match *never {},
        }
    }
}

/// The result as the harness reads it.
pub enum Output<'a> {
    /// Where it was computed.
    Borrowed(Ref<'a, Elements>),
    /// Copied from the device.
    #[cfg(feature = "gpu")]
    Copied(Elements),
}

impl core::ops::Deref for Output<'_> {
    type Target = Elements;

    fn deref(&self) -> &Elements {
        match self {
            Self::Borrowed(elements) => elements,
            #[cfg(feature = "gpu")]
            Self::Copied(elements) => elements,
        }
    }
}

fn poison<O: Operands>(operands: &O) -> Elements {
    let (dtype, len) = operands.output();
    Elements::poisoned(dtype, len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cold_cache_takes_sets_in_turn_until_they_exceed_it_twice() {
        let l2 = 60 << 20;
        assert_eq!(Cache::Cold.num_sets(64 << 20, l2), 2);
        assert_eq!(Cache::Cold.num_sets(32 << 20, l2), 4);
        assert_eq!(Cache::Cold.num_sets(256 << 20, l2), 1);
        assert_eq!(Cache::Cold.num_sets(0, l2), 64);
        assert_eq!(Cache::Warm.num_sets(1, l2), 1);
    }
}
