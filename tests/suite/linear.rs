//! Linear layers by every format of their weights: Y = X W^T + bias against the reference.

use hopper_sparse::formats::{Csr, DenseView, DenseViewMut, Layout};
use hopper_sparse::reference::naive::Unit;
use hopper_sparse::{Element, HalfElement, Result, bf16, f16, reference};

use super::operands::{Buffer, Padding, Random};
use super::{Placement, Specials};

/// Which weights are not zero.
#[derive(Clone, Copy, Debug)]
pub enum Mask {
    /// Each with this chance.
    Random(f64),
    /// Those of one row; a few elsewhere.
    OneRow,
    /// Whole columns are zero, as where an input was dead.
    DeadColumns,
    /// Two of each four.
    TwoOfFour,
    /// A row, and then another one, so that one lane runs ahead and is caught up with.
    Alternating,
    /// Rows of every density from none to all.
    Sloped,
}

/// Every sparsity, and what wants to break a format.
pub const MASKS: [Mask; 12] = [
    Mask::Random(0.0),
    Mask::Random(0.05),
    Mask::Random(0.3),
    Mask::Random(0.4),
    Mask::Random(0.5),
    Mask::Random(0.8),
    Mask::Random(1.0),
    Mask::OneRow,
    Mask::DeadColumns,
    Mask::TwoOfFour,
    Mask::Alternating,
    Mask::Sloped,
];

impl Mask {
    fn keeps(self, (row, col): (usize, usize), (num_rows, num_cols): (usize, usize), random: &mut Random) -> bool {
        let chance = random.unit();
        match self {
            Self::Random(density) => chance < density,
            Self::OneRow => row == num_rows / 2 || chance < 0.001,
            Self::DeadColumns => col % 96 >= 40 && chance < 0.5,
            Self::TwoOfFour => (col + row) % 4 < 2,
            Self::Alternating => row == usize::from(col >= num_cols / 2) * 8,
            Self::Sloped => chance < row as f64 / num_rows as f64,
        }
    }
}

/// Whether there is a bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bias {
    None,
    Some,
}

/// One problem. Its `Debug` form says all that is needed to see a failure again.
#[derive(Clone, Copy, Debug)]
pub struct Problem {
    /// M, N and K.
    pub shape: (usize, usize, usize),
    pub mask: Mask,
    pub bias: Bias,
    pub specials: Specials,
    /// Of X and of Y.
    pub padding: (Padding, Padding),
    pub seed: u64,
}

/// (M, N, K): nothing, one, ragged, several of everything.
pub const SHAPES: [(usize, usize, usize); 11] = [
    (0, 3, 5),
    (5, 0, 3),
    (5, 3, 0),
    (1, 1, 1),
    (16, 8, 64),
    (128, 16, 256),
    (129, 17, 300),
    (77, 5, 1000),
    (300, 9, 513),
    (40, 150, 264),
    (256, 33, 700),
];

/// The formats of weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Bitmap,
    ThreeLayer,
}

impl Family {
    /// What operands may hold. Three layers do not always multiply a zero of W: NaN in X comes through in other places than the
    /// reference's.
    pub fn specials(self) -> Specials {
        match self {
            Self::Bitmap => Specials::Some,
            Self::ThreeLayer => Specials::None,
        }
    }
}

/// A format of weights, with its kernels or without.
pub trait Runner {
    fn multiply<T: HalfElement>(
        &self,
        weights: &Csr<T>,
        x: DenseView<'_, T>,
        bias: Option<&[T]>,
        y: &mut DenseViewMut<'_, T>,
    ) -> Result<()>;
}

/// Every shape, each with some masks; `specials` in some of the operands.
pub fn check_shapes(runner: &impl Runner, specials: Specials) {
    let mut random = Random::fresh();
    for (index, shape) in SHAPES.into_iter().enumerate() {
        for round in 0..3 {
            let wide = |bit: usize| if (index + round) >> bit & 1 == 1 { Padding::Wide } else { Padding::Tight };
            let problem = Problem {
                shape,
                mask: MASKS[(index * 3 + round) % MASKS.len()],
                bias: if round == 1 { Bias::Some } else { Bias::None },
                specials: if round == 2 { specials } else { Specials::None },
                padding: (wide(0), wide(1)),
                seed: random.next(),
            };
            check(runner, &problem);
        }
    }
}

/// Every mask on one shape.
pub fn check_masks(runner: &impl Runner, shape: (usize, usize, usize)) {
    let mut random = Random::fresh();
    for mask in MASKS {
        let padding = (Padding::Tight, Padding::Tight);
        let specials = Specials::None;
        check(runner, &Problem { shape, mask, bias: Bias::Some, specials, padding, seed: random.next() });
    }
}

/// Runs one problem with both types.
pub fn check(runner: &impl Runner, problem: &Problem) {
    check_type::<bf16>(runner, problem);
    check_type::<f16>(runner, problem);
}

/// Runs one problem and compares it with the reference, in which zeros count.
pub fn check_type<T: HalfElement>(runner: &impl Runner, problem: &Problem) {
    let (num_outputs, num_tokens, num_inputs) = problem.shape;
    let mut random = Random::new(problem.seed);
    let dense = weights::<T>(problem, &mut random);
    let place = |padding| Placement { layout: Layout::RowMajor, padding };
    let mut x = Buffer::<T>::random(num_tokens, num_inputs, place(problem.padding.0), &mut random);
    if problem.specials == Specials::Some {
        x.add_specials(&mut random);
    }
    let bias: Option<Vec<T>> =
        (problem.bias == Bias::Some).then(|| (0..num_outputs).map(|_| random.element()).collect());

    let mut y = Buffer::<T>::poisoned(num_tokens, num_outputs, place(problem.padding.1));
    let beta = f64::from(u8::from(bias.is_some()));
    if let Some(bias) = &bias {
        y.view_mut().lines_mut().for_each(|line| line.copy_from_slice(bias));
    }
    let (a, b) = (dense.view(), x.view().transposed());
    let exact = reference::spmm(1.0, &a, b, beta, y.view().transposed()).expect("the shapes agree");
    let tolerance = reference::naive::tolerance(Unit::TensorCore, 1.0, &a, b, beta, y.view().transposed(), &exact)
        .expect("the shapes agree");

    let mut y = Buffer::<T>::poisoned(num_tokens, num_outputs, place(problem.padding.1));
    runner
        .multiply(&dense, x.view(), bias.as_deref(), &mut y.view_mut())
        .unwrap_or_else(|error| panic!("{}, {problem:?}: {error}", T::DTYPE));
    let report = exact.compare(y.view().transposed()).expect("the shapes agree");
    let verdict = tolerance.judge(&report);
    assert!(verdict.is_accepted(), "{}, {problem:?}: {verdict}", T::DTYPE);
    assert!(y.padding_is_untouched(), "{}, {problem:?}: memory between rows of Y changed", T::DTYPE);
}

/// The weights, with an entry for each element, zeros of either sign among them.
fn weights<T: Element>(problem: &Problem, random: &mut Random) -> Csr<T> {
    let (num_rows, _, num_cols) = problem.shape;
    let mut values = Vec::with_capacity(num_rows * num_cols);
    for row in 0..num_rows {
        for col in 0..num_cols {
            let zero = if random.below(9) == 0 { T::from_f64(-0.0) } else { T::ZERO };
            let keeps = problem.mask.keeps((row, col), (num_rows, num_cols), random);
            values.push(if keeps { random.element() } else { zero });
        }
    }
    if problem.specials == Specials::Some && !values.is_empty() {
        let at = random.below(values.len());
        values[at] = random.special();
    }
    let row_offsets = (0..=num_rows as u64).map(|row| row * num_cols as u64).collect();
    let col_indices = (0..num_rows).flat_map(|_| 0..num_cols as u32).collect();
    Csr::try_new(num_rows, num_cols, row_offsets, col_indices, values).expect("each row has each column")
}
