//! The attention kernels against the reference, in the simulator: every kernel, on small problems, in many orders of events.
//!
//! `HOPPER_SIM_SEEDS=n` runs each kernel with `n` seeds of every mode.

#![cfg(feature = "sim")]

#[path = "suite/plain_attention.rs"]
mod plain_attention;
mod suite;

use std::slice;

use hopper_sparse::formats::{DenseViewMut, HeadsShape, HeadsStrides, HeadsView, HeadsViewMut};
use hopper_sparse::ops::attention::{Attention, OneQuery, Sequences, Whole, Window};
use hopper_sparse::sim::{Mode, Schedule, Simulated};
use hopper_sparse::{Dtype, Element, Result, bf16, f16};
use kernels_gpu::attention::{CONFIGURATIONS, Configuration, Serves};
use suite::attention::{self, Case, Choices, Runner};
use suite::heads::HeadsPlacement;
use suite::operands::Random;
use suite::schedules::Schedules;
use suite::{cache, isolation, one_query};

/// So few that each works on several tiles.
const MULTIPROCESSORS: u32 = 2;

/// So few keys in a part that small problems have several.
const STORED: OneQuery = OneQuery { keys_per_part: 128, whole: Whole::Stored };
const COMBINED: OneQuery = OneQuery { keys_per_part: 192, whole: Whole::Combined };

/// Runs a problem in the simulator by some of these kernels, and fails on any finding.
struct InSimulator {
    schedules: Schedules,
    kernels: &'static [Configuration],
    one_query: OneQuery,
}

impl InSimulator {
    /// All modes in turn, from a fresh seed on.
    fn of_any_schedule(kernels: &'static [Configuration]) -> Self {
        Self { schedules: Schedules::any(), kernels, one_query: STORED }
    }
}

impl Runner for InSimulator {
    fn attend<T: Element>(
        &self,
        problem: &Attention,
        [q, k, v]: [HeadsView<'_, T>; 3],
        o: &mut HeadsViewMut<'_, T>,
        lse: Option<&mut DenseViewMut<'_, f32>>,
    ) -> Result<()> {
        let plan = problem.plan_with(self.kernels, MULTIPROCESSORS * self.kernels[0].spec.cluster, self.one_query)?;
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
    attention::check_options::<bf16>(&runner, 16, Choices::All);
    attention::check_edges::<bf16>(&runner, 8);
    attention::check_short_sequences::<bf16>(&runner, 8);
    isolation::check_leaks::<bf16>(&runner, 24);
    isolation::check_batches::<bf16>(&runner, 16);
    attention::check_options::<f16>(&runner, 24, Choices::Dealt { first: 0, of: 4 });
    for one_query in [STORED, COMBINED, OneQuery { keys_per_part: 1, ..STORED }] {
        let runner = InSimulator { one_query, ..InSimulator::of_any_schedule(&plain_attention::CONFIGURATIONS) };
        one_query::check_one_query::<bf16>(&runner, 16);
        one_query::check_one_query::<f16>(&runner, 8);
        one_query::check_one_query_leaks::<bf16>(&runner, 8);
        one_query::check_one_query_batches::<bf16>(&runner, 24, 333);
    }
}

/// Sequences with room to spare, by the plainest kernels, and by those that plans choose.
#[test]
fn caches() {
    let runner = InSimulator::of_any_schedule(&plain_attention::CONFIGURATIONS);
    cache::check_caches::<bf16>(&runner, 16);
    cache::check_caches::<f16>(&runner, 8);
    cache::check_cache_bits::<bf16>(&runner, 24);
    let runner = InSimulator { one_query: COMBINED, ..runner };
    cache::check_caches::<bf16>(&runner, 8);
    let runner = InSimulator::of_any_schedule(CONFIGURATIONS);
    cache::check_caches::<bf16>(&runner, 64);
    cache::check_cache_bits::<f16>(&runner, 128);
}

/// Sequences of one query, by the kernels that plans choose: those of few rows, and beside them those of many.
fn check_one_query<T: Element>(head_dim: usize) {
    let runner = InSimulator::of_any_schedule(CONFIGURATIONS);
    one_query::check_one_query::<T>(&runner, head_dim);
    one_query::check_one_query_leaks::<T>(&runner, head_dim);
    let runner = InSimulator { one_query: COMBINED, ..InSimulator::of_any_schedule(CONFIGURATIONS) };
    one_query::check_one_query_batches::<T>(&runner, head_dim - 8, 210);
    let mut random = Random::fresh();
    for schedule in Schedule::all(1) {
        let runner = InSimulator { schedules: Schedules::from(schedule), kernels: CONFIGURATIONS, one_query: STORED };
        let keys = Sequences::of_lengths(&[200, 60]);
        for queries in [Sequences::Equal { batch: 2, len: 1 }, Sequences::of_lengths(&[1, 2])] {
            let problem = Attention::new(queries, 4, head_dim, T::DTYPE).with_keys(keys.clone()).with_key_heads(2);
            attention::check_case::<T>(&runner, &Case::of(problem, &mut random));
        }
    }
}

/// The kernels for several queries, with rows of any length of a type.
fn kernels_of_rows(dtype: Dtype) -> Vec<&'static Configuration> {
    let problem = Attention::new(Sequences::of_lengths(&[]), 1, 8, dtype);
    problem.kernels().filter(|kernel| kernel.serves != Serves::FewRows).collect()
}

/// Every kernel for several queries with rows of `head_dim` elements, and the same kernels with shorter rows. Pairs of options
/// are dealt out to the kernels. In f16 these are the kernels of bf16 but for the type: there, single options are dealt out,
/// too. Those of few rows, which plans choose for sequences of one query, have a suite of their own.
fn check_kernels<T: Element>(head_dim: usize) {
    let all = kernels_of_rows(T::DTYPE);
    let of = all.len();
    let mut num_kernels = 0;
    for (first, kernel) in all.into_iter().enumerate().filter(|(_, kernel)| kernel.head_dim == head_dim) {
        let runner = InSimulator::of_any_schedule(slice::from_ref(kernel));
        let choices = match T::DTYPE {
            Dtype::Bf16 => Choices::EachAlone { first, of },
            _ => Choices::Dealt { first, of },
        };
        attention::check_options::<T>(&runner, head_dim, choices);
        if T::DTYPE == Dtype::Bf16 {
            attention::check_short_sequences::<T>(&runner, head_dim);
            isolation::check_batches::<T>(&runner, head_dim);
        }
        attention::check_edges::<T>(&runner, head_dim - 24);
        attention::check_climbs::<T>(&runner, head_dim);
        isolation::check_leaks::<T>(&runner, head_dim - 8);
        check_schedules::<T>(slice::from_ref(kernel), head_dim);
        println!("{}: no finding", kernel.spec.name);
        num_kernels += 1;
    }
    assert!(num_kernels > 0, "no kernel takes rows of {head_dim} elements of {}", T::DTYPE);
    check_few_rows::<T>(head_dim);
}

/// A kernel of few rows can do what any kernel can: a part of the suite, where nobody would choose it.
fn check_few_rows<T: Element>(head_dim: usize) {
    let problem = Attention::new(Sequences::of_lengths(&[]), 1, head_dim, T::DTYPE);
    let kernel = problem.kernels().find(|kernel| kernel.head_dim == head_dim && kernel.serves == Serves::FewRows);
    let kernel = slice::from_ref(kernel.expect("one of few rows"));
    attention::check_edges::<T>(&InSimulator::of_any_schedule(kernel), head_dim);
    check_schedules::<T>(kernel, head_dim);
}

/// One problem with several tiles a worker, some of which are cut by the mask, under every schedule.
fn check_schedules<T: Element>(kernels: &'static [Configuration], head_dim: usize) {
    let mut random = Random::fresh();
    for (index, schedule) in Schedule::all(1).enumerate() {
        let runner = InSimulator { schedules: Schedules::from(schedule), kernels, one_query: STORED };
        let lengths = Sequences::of_lengths(&[kernels[0].rows + 9, 5, 2 * kernels[0].keys + 1]);
        let window = [Window::CAUSAL, Window::FULL, Window::sliding(100)][index % 3];
        let problem = Attention::new(lengths, 2, head_dim, T::DTYPE).with_key_heads(1).with_window(window);
        attention::check_case::<T>(&runner, &Case::of(problem, &mut random));
    }
}

/// Tests of a type and a head dimension.
macro_rules! of_each {
    ($($name:ident: $check:ident::<$element:ty>($head_dim:literal);)*) => {
        $(
            #[test]
            fn $name() {
                $check::<$element>($head_dim);
            }
        )*
    };
}

of_each! {
    every_kernel_with_bf16_and_64: check_kernels::<bf16>(64);
    every_kernel_with_bf16_and_96: check_kernels::<bf16>(96);
    every_kernel_with_bf16_and_128: check_kernels::<bf16>(128);
    every_kernel_with_bf16_and_192: check_kernels::<bf16>(192);
    every_kernel_with_bf16_and_256: check_kernels::<bf16>(256);
    every_kernel_with_f16_and_64: check_kernels::<f16>(64);
    every_kernel_with_f16_and_96: check_kernels::<f16>(96);
    every_kernel_with_f16_and_128: check_kernels::<f16>(128);
    every_kernel_with_f16_and_192: check_kernels::<f16>(192);
    every_kernel_with_f16_and_256: check_kernels::<f16>(256);
    one_query_with_bf16_and_64: check_one_query::<bf16>(64);
    one_query_with_bf16_and_96: check_one_query::<bf16>(96);
    one_query_with_bf16_and_128: check_one_query::<bf16>(128);
    one_query_with_bf16_and_192: check_one_query::<bf16>(192);
    one_query_with_bf16_and_256: check_one_query::<bf16>(256);
    one_query_with_f16_and_128: check_one_query::<f16>(128);
}

/// Tensors that the problem does not have, or that tensor copies do not reach.
#[test]
fn other_tensors_are_refused() {
    let problem = Attention::new(Sequences::of_lengths(&[3, 4]), 2, 16, Dtype::Bf16);
    let plan = problem.plan_among(&plain_attention::CONFIGURATIONS, 1).expect("a plan");
    let device = Simulated::new(Schedule::new(Mode::Fair, 0));
    let refused = |shape: HeadsShape, strides: HeadsStrides, lse_cols: usize| {
        let data = vec![bf16::ZERO; 4096];
        let (mut o, mut lse) = (data.clone(), vec![0.0; 2 * lse_cols]);
        let view = HeadsView::try_new(&data, shape, strides).expect("a view");
        let mut o = HeadsViewMut::try_new(&mut o, shape, strides).expect("a view");
        let mut lse = DenseViewMut::try_new(&mut lse, 2, lse_cols, lse_cols, hopper_sparse::formats::Layout::RowMajor)
            .expect("a view");
        let ran = plan.simulate(&device, view, view, view, &mut o, Some(&mut lse));
        ran.expect_err("a refusal").to_string()
    };
    let shape = problem.query_shape();
    let strides = HeadsStrides { batch: 0, token: 32, head: 16 };
    assert_eq!(
        refused(HeadsShape { tokens: 8, ..shape }, strides, 7),
        "Q has 1 x 8 tokens x 2 heads x 16, but the problem has 1 x 7 tokens x 2 heads x 16"
    );
    assert_eq!(
        refused(shape, HeadsStrides { token: 36, ..strides }, 7),
        "from token to token of Q there are 72 bytes, but it must be a multiple of 16"
    );
    assert_eq!(
        refused(shape, HeadsStrides { head: 20, token: 40, ..strides }, 7),
        "from head to head of Q there are 40 bytes, but it must be a multiple of 16"
    );
    assert_eq!(
        refused(shape, strides, 6),
        "the log-sum-exps are 2 rows of 6, 6 apart, but the problem has 2 of 7, row-major and without space between them"
    );
    let view = [f16::ZERO; 4096];
    let mut o = [f16::ZERO; 4096];
    let (view, mut o) = (
        HeadsView::try_new(&view, shape, strides).expect("a view"),
        HeadsViewMut::try_new(&mut o, shape, strides).expect("a view"),
    );
    let error = plan.simulate(&device, view, view, view, &mut o, None).expect_err("another type");
    assert_eq!(error.to_string(), "the problem is of bf16, but the tensors are of f16");
}

/// Sequences with room that lie where no step from token to token leads, or K elsewhere than V.
#[test]
fn ways_from_sequence_to_sequence_that_no_map_has_are_refused() {
    let problem = Attention::new(Sequences::Equal { batch: 2, len: 1 }, 1, 16, Dtype::Bf16)
        .with_keys(Sequences::with_room(4, &[3, 1]));
    let plan = problem.plan_among(&plain_attention::CONFIGURATIONS, 1).expect("a plan");
    let data = vec![bf16::ZERO; 1024];
    let refused = |[k, v]: [(usize, usize); 2]| {
        let view = |shape, (batch, token)| {
            HeadsView::try_new(&data, shape, HeadsStrides { batch, token, head: 16 }).expect("a view")
        };
        let mut o = vec![bf16::ZERO; 32];
        let strides = HeadsStrides { batch: 16, token: 16, head: 16 };
        let mut o = HeadsViewMut::try_new(&mut o, problem.query_shape(), strides).expect("a view");
        let (q, keys) = (view(problem.query_shape(), (16, 16)), problem.key_shape());
        let device = Simulated::new(Schedule::new(Mode::Fair, 0));
        let ran = plan.simulate(&device, q, view(keys, k), view(keys, v), &mut o, None);
        ran.expect_err("a refusal").to_string()
    };
    assert_eq!(
        refused([(104, 16), (64, 16)]),
        "from sequence to sequence of K there are 208 bytes, but with room to spare it must be a multiple of the 32 from token to token"
    );
    assert_eq!(
        refused([(64, 16), (144, 24)]),
        "from sequence to sequence there are 4 tokens in K, but 6 in V: with room to spare they must be as many"
    );
}

/// A sequence of one token in one head may have any strides: no step is taken.
#[test]
fn strides_of_single_axes_do_not_matter() {
    let runner = InSimulator::of_any_schedule(&plain_attention::CONFIGURATIONS);
    let mut random = Random::fresh();
    for placement in [HeadsPlacement::Tokens, HeadsPlacement::HeadsApart] {
        let problem = Attention::new(Sequences::Equal { batch: 1, len: 1 }, 1, 8, Dtype::Bf16);
        attention::check_case::<bf16>(&runner, &Case { placements: [placement; 4], ..Case::of(problem, &mut random) });
    }
}
