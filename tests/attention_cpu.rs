//! Attention by the CPU backend against the reference: the suite of the GPU kernels.

mod suite;

use hopper_sparse::formats::{DenseViewMut, Heads, HeadsLayout, HeadsView, HeadsViewMut};
use hopper_sparse::ops::attention::blocks::{BlockSize, SparseAttention};
use hopper_sparse::ops::attention::{Attention, Sequences, Window};
use hopper_sparse::reference::attention as reference;
use hopper_sparse::{Dtype, Element, Result, bf16, cpu, f16};
use suite::attention::{Case, Choices, Runner, check_climbs, check_edges, check_options, check_short_sequences};
use suite::attention_blocks::{self as blocks, Kind, SparseRunner};
use suite::operands::Random;
use suite::{cache, isolation, one_query};

struct OnCpu;

impl Runner for OnCpu {
    fn attend<T: Element>(
        &self,
        problem: &Attention,
        [q, k, v]: [HeadsView<'_, T>; 3],
        o: &mut HeadsViewMut<'_, T>,
        lse: Option<&mut DenseViewMut<'_, f32>>,
    ) -> Result<()> {
        cpu::attention(problem, q, k, v, o, lse)
    }
}

impl SparseRunner for OnCpu {
    fn attend<T: Element>(
        &self,
        problem: &SparseAttention,
        [q, k, v]: [HeadsView<'_, T>; 3],
        o: &mut HeadsViewMut<'_, T>,
        lse: Option<&mut DenseViewMut<'_, f32>>,
    ) -> Result<()> {
        cpu::attention_to_lists(problem, q, k, v, o, lse)
    }
}

#[test]
fn options_alone_and_in_pairs() {
    check_options::<bf16>(&OnCpu, 64, Choices::All);
    check_options::<f16>(&OnCpu, 40, Choices::Dealt { first: 0, of: 3 });
    check_options::<bf16>(&OnCpu, 256, Choices::Dealt { first: 1, of: 9 });
}

#[test]
fn little_and_nothing() {
    for head_dim in [8, 24, 128] {
        check_edges::<bf16>(&OnCpu, head_dim);
    }
    check_edges::<f16>(&OnCpu, 16);
    check_climbs::<bf16>(&OnCpu, 32);
    check_short_sequences::<bf16>(&OnCpu, 8);
}

#[test]
fn one_query_each() {
    one_query::check_one_query::<bf16>(&OnCpu, 64);
    one_query::check_one_query::<f16>(&OnCpu, 8);
    one_query::check_one_query_leaks::<bf16>(&OnCpu, 24);
}

#[test]
fn sequences_have_nothing_to_do_with_one_another() {
    isolation::check_leaks::<bf16>(&OnCpu, 40);
    isolation::check_leaks::<f16>(&OnCpu, 64);
    isolation::check_batches::<bf16>(&OnCpu, 64);
    one_query::check_one_query_batches::<f16>(&OnCpu, 32, 300);
}

#[test]
fn sequences_with_room_to_spare() {
    cache::check_caches::<bf16>(&OnCpu, 64);
    cache::check_caches::<f16>(&OnCpu, 24);
    cache::check_cache_bits::<bf16>(&OnCpu, 64);
}

#[test]
fn lists_of_keys() {
    for kind in Kind::ALL {
        blocks::check_options::<bf16>(&OnCpu, kind, 16);
        blocks::check_edges::<f16>(&OnCpu, kind, 24);
        blocks::check_leaks::<bf16>(&OnCpu, kind, 16);
        blocks::check_batches::<bf16>(&OnCpu, kind, 32);
    }
    blocks::check_options::<f16>(&OnCpu, Kind::Blocks(BlockSize::B64), 64);
}

/// Pools of one thread and of several: the same bits.
#[test]
fn the_number_of_threads_does_not_matter() {
    let mut random = Random::fresh();
    let problem = Attention::new(Sequences::of_lengths(&[130, 1, 200]), 4, 48, Dtype::Bf16)
        .with_key_heads(2)
        .with_window(Window::CAUSAL);
    let case = Case::of(problem, &mut random);
    let inputs = case.inputs::<bf16>();
    let [one, several] = [1, 5].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        let output = pool.install(|| case.run(&OnCpu, &inputs));
        (output.o.view().data().to_vec(), output.lse.view().data().to_vec())
    });
    assert!(one == several, "{case:?}");
}

/// Where every score is minus infinity the softmax is 0 / 0, and where one is not, the others have no part.
#[test]
fn infinite_scores_take_the_way_of_the_textbook() {
    let problem =
        Attention::new(Sequences::Equal { batch: 1, len: 130 }, 1, 8, Dtype::Bf16).with_window(Window::CAUSAL);
    let filled = |of: fn(usize) -> f32| {
        let data = (0..130 * 8).map(|index| bf16::from_f32(of(index / 8))).collect();
        Heads::from_vec(data, problem.query_shape(), HeadsLayout::TokensHeads).expect("130 rows of 8")
    };
    let q = filled(|_| 1.0);
    let k = filled(|row| if row < 70 { f32::NEG_INFINITY } else { 1.0 });
    let v = filled(|row| row as f32 / 128.0);
    let mut o = Heads::zeros(problem.query_shape(), HeadsLayout::TokensHeads);
    let mut lse = vec![0f32; 130];
    let mut lse_view =
        DenseViewMut::try_new(&mut lse, 1, 130, 130, hopper_sparse::formats::Layout::RowMajor).expect("a view");
    cpu::attention(&problem, q.view(), k.view(), v.view(), &mut o.view_mut(), Some(&mut lse_view)).expect("a problem");
    let rows = reference::rows(&problem);
    let exact = reference::attention(&problem, q.view(), k.view(), v.view(), &rows).expect("a problem");
    for (row, &expected) in exact.lse().iter().enumerate() {
        assert_eq!(lse[row].is_nan(), expected.is_nan(), "row {row}: {} for {expected}", lse[row]);
        assert_eq!(o.view().row(0, row, 0)[0].is_nan(), row < 70, "row {row}");
    }
}

#[test]
fn what_is_not_the_problems_is_refused() {
    let problem = Attention::new(Sequences::of_lengths(&[3, 4]), 2, 16, Dtype::Bf16);
    let tensor = Heads::<bf16>::zeros(problem.query_shape(), HeadsLayout::TokensHeads);
    let other = Attention::new(Sequences::of_lengths(&[3, 5]), 2, 16, Dtype::Bf16);
    let refusal = |problem: &Attention| {
        let mut o = tensor.clone();
        let view = tensor.view();
        cpu::attention(problem, view, view, view, &mut o.view_mut(), None).expect_err("a refusal").to_string()
    };
    assert_eq!(refusal(&other), "Q has 1 x 7 tokens x 2 heads x 16, but the problem has 1 x 8 tokens x 2 heads x 16");
    let other = Attention { dtype: Dtype::F16, ..problem.clone() };
    assert_eq!(refusal(&other), "the problem is of f16, but the tensors are of bf16");
    assert_eq!(refusal(&problem.with_scale(-1.0)), "the scale is -1, but must be a positive number");
}
