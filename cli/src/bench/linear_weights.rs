//! W of a linear layer, drawn from its law, and what implementations have made of it.
//!
//! A W of 340 million elements is drawn in parallel, a row at a time, and kept for all numbers of tokens that it is multiplied with.

use core::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

use hopper_sparse::prune::{self, PruneError};
use hopper_sparse::reference::SparseRows;
use hopper_sparse::{Element, Error};
use rayon::prelude::*;

#[cfg(feature = "gpu")]
use super::device::{DeviceBytes, Gpu};
use super::elements::{Elements, with_dtype};
use super::error::BenchError;
use super::linear::{WeightMask, WeightsLaw};
use crate::random::{Random, normal_at};

/// What tells the streams of numbers of a W apart.
const PLACES: u64 = 0x706c_6163_6573;
const IMPORTANCE: u64 = 0x696d_706f_7274;
/// The spread of the logarithm of a column's importance: inputs of language models differ by a few times, some by many.
const IMPORTANCE_SPREAD: f32 = 0.5;
/// The part of columns that have no weight at all, of [`WeightMask::DeadColumns`].
const DEAD_COLUMNS: f64 = 1.0 / 16.0;

/// The weights of a layer.
pub struct LinearWeights {
    /// What they were drawn from.
    pub law: WeightsLaw,
    /// M x K, row-major.
    pub w: Elements,
    /// Weights that are not zero.
    pub num_nonzeros: u64,
    /// What implementations have made of them.
    pub kept: Kept,
}

impl LinearWeights {
    /// Draws values, then sets those to zero that the mask prunes.
    ///
    /// # Errors
    /// [`BenchError::Library`] where the library cannot prune so.
    pub fn draw(law: WeightsLaw) -> Result<Self, BenchError> {
        let mut w = Elements::from_fn(law.dtype, law.m * law.k, |_| 0.0);
        let num_nonzeros = with_dtype!(law.dtype, T => draw_rows::<T>(&law, w.as_slice_mut())).map_err(Error::from)?;
        Ok(Self { law, w, num_nonzeros, kept: Kept::default() })
    }

    /// W as rows of entries that are not zero.
    pub fn rows<T: Element>(&self) -> DenseRows<'_, T> {
        DenseRows { num_rows: self.law.m, num_cols: self.law.k, values: self.w.as_slice() }
    }

    /// Copies of the dense W at `count` addresses, made once.
    ///
    /// # Errors
    /// [`BenchError::Library`] where the device's memory does not suffice.
    #[cfg(feature = "gpu")]
    pub fn dense_copies(&self, gpu: &Gpu, count: usize) -> Result<Rc<Vec<DeviceBytes>>, BenchError> {
        self.kept.get_or("dense", || gpu.upload_copies(self.w.as_bytes(), count))
    }
}

/// A dense row-major matrix, read as if its zeros were not there.
pub struct DenseRows<'a, T> {
    num_rows: usize,
    num_cols: usize,
    values: &'a [T],
}

impl<T: Element> SparseRows<T> for DenseRows<'_, T> {
    fn num_rows(&self) -> usize {
        self.num_rows
    }

    fn num_cols(&self) -> usize {
        self.num_cols
    }

    fn for_each_entry(&self, row: usize, mut visit: impl FnMut(usize, T)) {
        let row = &self.values[row * self.num_cols..][..self.num_cols];
        for (col, &value) in row.iter().enumerate().filter(|(_, value)| value.to_f32() != 0.0) {
            visit(col, value);
        }
    }
}

/// What implementations have made of one W, by name: made once, however many numbers of tokens there are.
#[derive(Default)]
pub struct Kept(RefCell<Vec<(&'static str, Rc<dyn Any>)>>);

impl Kept {
    /// What is kept under `name`, or else what `make` makes, which is kept from then on.
    ///
    /// # Errors
    /// What `make` failed at.
    pub fn get_or<T: 'static>(
        &self,
        name: &'static str,
        make: impl FnOnce() -> Result<T, BenchError>,
    ) -> Result<Rc<T>, BenchError> {
        let found = self.0.borrow().iter().find(|(known, _)| *known == name).map(|(_, one)| one.clone());
        if let Some(one) = found.and_then(|one| one.downcast::<T>().ok()) {
            return Ok(one);
        }
        let made = Rc::new(make()?);
        self.0.borrow_mut().push((name, made.clone()));
        Ok(made)
    }
}

/// The last weights that were drawn: the next workload often has the same ones.
#[derive(Default)]
pub struct LastWeights(Option<Rc<LinearWeights>>);

impl LastWeights {
    /// The weights of `law`: the last ones, where those were they, or new ones.
    ///
    /// # Errors
    /// As [`LinearWeights::draw`].
    pub fn get_or_draw(&mut self, law: WeightsLaw) -> Result<Rc<LinearWeights>, BenchError> {
        if let Some(last) = self.0.as_ref().filter(|last| last.law == law) {
            return Ok(last.clone());
        }
        // Two large ones, with what was made of them, are not held at once.
        self.0 = None;
        Ok(self.0.insert(Rc::new(LinearWeights::draw(law)?)).clone())
    }
}

/// Fills a matrix, and returns how many elements are not zero.
fn draw_rows<T: Element>(law: &WeightsLaw, w: &mut [T]) -> Result<u64, PruneError> {
    let WeightsLaw { k, sparsity, mask, seed, .. } = *law;
    let first_of = |row: usize| (row * k) as u64;
    w.par_chunks_exact_mut(k.max(1)).enumerate().for_each(|(row, values)| {
        for (value, index) in values.iter_mut().zip(first_of(row)..) {
            *value = T::from_f32(Random::bell_at(seed, index));
        }
    });
    if mask == WeightMask::Wanda {
        let importance = |col| (IMPORTANCE_SPREAD * normal_at(seed ^ IMPORTANCE, col)).exp();
        prune::wanda(w, k, &(0..k as u64).map(importance).collect::<Vec<f32>>(), sparsity)?;
    } else {
        let chances = Chances::of(law);
        let rows = w.par_chunks_exact_mut(k.max(1)).enumerate();
        rows.for_each(|(row, values)| chances.prune(values, first_of(row)));
    }
    Ok(w.par_iter().filter(|value| value.to_f32() != 0.0).count() as u64)
}

/// Which weights of a row become zero, whatever their values are.
struct Chances {
    /// Draws places.
    places: u64,
    law: ChanceLaw,
}

enum ChanceLaw {
    /// Two of each four.
    TwoOfFour,
    /// Each with this chance, and all of columns that are dead, where there are such.
    Each { chance: f64, dead: Vec<bool> },
}

impl Chances {
    fn of(law: &WeightsLaw) -> Self {
        let WeightsLaw { k, sparsity, mask, seed, .. } = *law;
        let law = match mask {
            WeightMask::TwoOfFour => ChanceLaw::TwoOfFour,
            WeightMask::DeadColumns => {
                let columns = 0..k as u64;
                let dead: Vec<bool> = columns.map(|col| happens(seed ^ IMPORTANCE, col, DEAD_COLUMNS)).collect();
                let part = dead.iter().filter(|dead| **dead).count() as f64 / k.max(1) as f64;
                ChanceLaw::Each { chance: (sparsity - part) / (1.0 - part), dead }
            }
            WeightMask::Wanda | WeightMask::Matrix => ChanceLaw::Each { chance: sparsity, dead: Vec::new() },
        };
        Self { places: seed ^ PLACES, law }
    }

    /// Sets weights of a row to zero, whose first element is number `first` of the matrix.
    fn prune<T: Element>(&self, values: &mut [T], first: u64) {
        match &self.law {
            ChanceLaw::TwoOfFour => {
                for (four, index) in values.chunks_mut(4).zip(first..) {
                    // Six pairs, by chance; the last four of a row may be fewer.
                    let kept = PAIRS[((Random::at(self.places, index) + 1.0) / 2.0 * PAIRS.len() as f32) as usize];
                    for (position, value) in four.iter_mut().enumerate() {
                        if !kept.contains(&position) {
                            *value = T::ZERO;
                        }
                    }
                }
            }
            ChanceLaw::Each { chance, dead } => {
                for ((col, value), index) in values.iter_mut().enumerate().zip(first..) {
                    if dead.get(col).copied().unwrap_or(false) || happens(self.places, index, *chance) {
                        *value = T::ZERO;
                    }
                }
            }
        }
    }
}

/// The places of two of four.
const PAIRS: [[usize; 2]; 6] = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]];

/// Whether something of this chance, 0 to 1, happens at number `index` of a stream.
fn happens(stream: u64, index: u64, chance: f64) -> bool {
    f64::from(Random::at(stream, index)) < 2.0 * chance - 1.0
}

#[cfg(test)]
mod tests {
    use hopper_sparse::Dtype;

    use super::*;

    fn draw(law: WeightsLaw) -> LinearWeights {
        LinearWeights::draw(law).expect("the law is sound")
    }

    fn law(mask: WeightMask, sparsity: f64) -> WeightsLaw {
        WeightsLaw { m: 96, k: 640, sparsity, mask, dtype: Dtype::Bf16, seed: 5 }
    }

    /// Zeros by row and by column.
    fn zeros(weights: &LinearWeights) -> (Vec<usize>, Vec<usize>) {
        let WeightsLaw { m, k, .. } = weights.law;
        let (mut rows, mut cols) = (vec![0; m], vec![0; k]);
        for index in (0..m * k).filter(|index| weights.w.get(*index) == 0.0) {
            rows[index / k] += 1;
            cols[index % k] += 1;
        }
        assert_eq!(weights.num_nonzeros as usize, m * k - rows.iter().sum::<usize>());
        (rows, cols)
    }

    #[test]
    fn wanda_prunes_the_same_number_in_every_row_and_unimportant_columns_more() {
        for (sparsity, expected) in [(0.0, 0), (0.5, 320), (0.6, 384), (0.701, 448), (1.0, 640)] {
            let weights = draw(law(WeightMask::Wanda, sparsity));
            let (rows, cols) = zeros(&weights);
            assert!(rows.iter().all(|zeros| *zeros == expected), "{sparsity}: {rows:?}");
            if sparsity == 0.5 {
                let (least, most) = (cols.iter().min().expect("columns"), cols.iter().max().expect("columns"));
                assert!(*least < 24 && *most > 72, "{least} {most}");
            }
        }
    }

    #[test]
    fn a_matrix_pruned_by_chance_has_about_as_many_zeros_and_unequal_rows() {
        let (rows, _) = zeros(&draw(law(WeightMask::Matrix, 0.6)));
        let part = rows.iter().sum::<usize>() as f64 / (96.0 * 640.0);
        assert!((part - 0.6).abs() < 0.01, "{part}");
        assert!(rows.iter().any(|zeros| *zeros != rows[0]));
    }

    #[test]
    fn of_four_neighbours_two_are_zero() {
        let weights = draw(law(WeightMask::TwoOfFour, 0.5));
        let mut seen = [0_usize; 16];
        for four in 0..96 * 640 / 4 {
            let places = (0..4).filter(|place| weights.w.get(4 * four + place) != 0.0);
            seen[places.map(|place| 1 << place).sum::<usize>()] += 1;
        }
        for (places, count) in seen.iter().enumerate() {
            assert_eq!(*count > 2000, places.count_ones() == 2, "{places:04b}: {count}");
        }
    }

    #[test]
    fn dead_columns_are_empty_and_the_rest_makes_up_for_them() {
        let (rows, cols) = zeros(&draw(law(WeightMask::DeadColumns, 0.5)));
        let num_dead = cols.iter().filter(|zeros| **zeros == 96).count();
        assert!((15..80).contains(&num_dead), "{num_dead}");
        let part = rows.iter().sum::<usize>() as f64 / (96.0 * 640.0);
        assert!((part - 0.5).abs() < 0.01, "{part}");
    }

    #[test]
    fn the_law_alone_decides_and_the_last_weights_are_drawn_once() {
        let wanda = law(WeightMask::Wanda, 0.5);
        assert_eq!(draw(wanda).w, draw(wanda).w);
        assert_ne!(draw(wanda).w, draw(WeightsLaw { seed: 6, ..wanda }).w);
        let mut last = LastWeights::default();
        let first = last.get_or_draw(wanda).expect("the law is sound");
        assert!(Rc::ptr_eq(&first, &last.get_or_draw(wanda).expect("the law is sound")));
        assert!(!Rc::ptr_eq(&first, &last.get_or_draw(law(WeightMask::Wanda, 0.7)).expect("the law is sound")));
        let made = |weights: &LinearWeights, number: u32| weights.kept.get_or("a", || Ok(number)).map(|one| *one).ok();
        assert_eq!((made(&first, 1), made(&first, 2)), (Some(1), Some(1)));
    }
}
