//! Attention to lists of keys against the reference, in the simulator: every kernel, on small problems, in many orders of
//! events.

#![cfg(feature = "sim")]

#[path = "suite/plain_attention.rs"]
mod plain_attention;
mod suite;

use hopper_sparse::formats::{DenseViewMut, HeadsView, HeadsViewMut};
use hopper_sparse::ops::attention::blocks::{BlockSize, SparseAttention};
use hopper_sparse::ops::attention::{Attention, Sequences, Window};
use hopper_sparse::sim::Schedule;
use hopper_sparse::{Element, Result, bf16, f16};
use kernels_gpu::attention::{CONFIGURATIONS, Configuration};
use suite::attention_blocks::{self, Kind, Shared, SparseRunner};
use suite::operands::Random;
use suite::schedules::Schedules;

/// So few that each works on several tiles.
const MULTIPROCESSORS: u32 = 2;

/// Runs a problem in the simulator by some of these kernels, and fails on any finding.
struct InSimulator {
    schedules: Schedules,
    kernels: &'static [Configuration],
}

impl InSimulator {
    /// All modes in turn, from a fresh seed on.
    fn of_any_schedule(kernels: &'static [Configuration]) -> Self {
        Self { schedules: Schedules::any(), kernels }
    }
}

impl SparseRunner for InSimulator {
    fn attend<T: Element>(
        &self,
        problem: &SparseAttention,
        [q, k, v]: [HeadsView<'_, T>; 3],
        o: &mut HeadsViewMut<'_, T>,
        lse: Option<&mut DenseViewMut<'_, f32>>,
    ) -> Result<()> {
        let plan = problem.plan_among(self.kernels, MULTIPROCESSORS)?;
        let device = self.schedules.device();
        plan.simulate(&device, q, k, v, o, lse)?;
        let report = device.report();
        assert!(report.findings.is_empty(), "{plan}, {problem}, {:?}: {report}", device.schedule());
        Ok(())
    }
}

/// What the host hands to kernels, by the plainest of them.
#[test]
fn the_contract() {
    let runner = InSimulator::of_any_schedule(&plain_attention::CONFIGURATIONS);
    for kind in [Kind::Blocks(BlockSize::B64), Kind::VerticalSlash] {
        attention_blocks::check_options::<bf16>(&runner, kind, 16);
        attention_blocks::check_edges::<f16>(&runner, kind, 8);
        attention_blocks::check_leaks::<bf16>(&runner, kind, 24);
        attention_blocks::check_batches::<f16>(&runner, kind, 16);
    }
}

fn check_all<T: Element>(kind: Kind, head_dim: usize) {
    let runner = InSimulator::of_any_schedule(CONFIGURATIONS);
    attention_blocks::check_options::<T>(&runner, kind, head_dim);
    attention_blocks::check_edges::<T>(&runner, kind, head_dim - 24);
    attention_blocks::check_leaks::<T>(&runner, kind, head_dim);
    attention_blocks::check_batches::<T>(&runner, kind, head_dim - 8);
    check_schedules::<T>(kind, head_dim);
}

/// One problem with several tiles a worker, some of which are cut by the mask, under every schedule.
fn check_schedules<T: Element>(kind: Kind, head_dim: usize) {
    let mut random = Random::fresh();
    for (index, schedule) in Schedule::all(1).enumerate() {
        let lengths = Sequences::of_lengths(&[kind.tokens() + 9, 5, 2 * kind.tokens() + 1]);
        let window = [Window::CAUSAL, Window::FULL, Window::sliding(100)][index % 3];
        let problem = Attention::new(lengths, 2, head_dim, T::DTYPE).with_key_heads(1).with_window(window);
        let case = attention_blocks::case(kind, problem, [Shared::No; 2], &mut random);
        attention_blocks::check_case::<T>(
            &InSimulator { schedules: Schedules::from(schedule), kernels: CONFIGURATIONS },
            &case,
        );
    }
}

macro_rules! lists_are_right {
    ($($name:ident, $element:ty, $head_dim:literal, $kind:expr;)*) => {
        $(
            #[test]
            fn $name() {
                check_all::<$element>($kind, $head_dim);
            }
        )*
    };
}

lists_are_right! {
    blocks_of_64_with_bf16_and_64, bf16, 64, Kind::Blocks(BlockSize::B64);
    blocks_of_64_with_bf16_and_128, bf16, 128, Kind::Blocks(BlockSize::B64);
    blocks_of_128_with_bf16_and_64, bf16, 64, Kind::Blocks(BlockSize::B128);
    blocks_of_128_with_bf16_and_128, bf16, 128, Kind::Blocks(BlockSize::B128);
    columns_with_bf16_and_64, bf16, 64, Kind::VerticalSlash;
    columns_with_bf16_and_128, bf16, 128, Kind::VerticalSlash;
    blocks_of_64_with_f16_and_64, f16, 64, Kind::Blocks(BlockSize::B64);
    blocks_of_64_with_f16_and_128, f16, 128, Kind::Blocks(BlockSize::B64);
    blocks_of_128_with_f16_and_64, f16, 64, Kind::Blocks(BlockSize::B128);
    blocks_of_128_with_f16_and_128, f16, 128, Kind::Blocks(BlockSize::B128);
    columns_with_f16_and_64, f16, 64, Kind::VerticalSlash;
    columns_with_f16_and_128, f16, 128, Kind::VerticalSlash;
}
