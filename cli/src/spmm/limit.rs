//! The limit that a time is compared with: the larger of what moving the data and what the arithmetic must take.

use core::fmt;
use std::time::Instant;

use gemm::Parallelism;
use hopper_sparse::Dtype;
use rayon::prelude::*;

use crate::table::rate;

/// A rate, and how it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Bytes or operations a second.
    pub per_second: f64,
    /// How it is known.
    pub origin: Origin,
}

/// How a rate is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Measured in this run.
    Measured,
    /// Computed from the clock and the number of multiprocessors.
    #[cfg_attr(not(feature = "gpu"), expect(dead_code, reason = "only a GPU's peak is estimated"))]
    Estimated,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Measured => "measured",
            Self::Estimated => "estimated",
        })
    }
}

/// What a machine can do.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Copying memory to memory, bytes read and written.
    pub copy: Rate,
    /// Dense arithmetic in the types at hand, additions and multiplications.
    pub peak: Rate,
}

/// What bounds a product.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// Each byte of A, B and C must move once.
    Copy {
        /// The least time, in seconds.
        seconds: f64,
        /// The rate behind it.
        rate: Rate,
    },
    /// Each stored element must be multiplied.
    Peak {
        /// The least time, in seconds.
        seconds: f64,
        /// The rate behind it.
        rate: Rate,
    },
}

impl Limit {
    /// The tighter limit of the two.
    pub fn of(machine: &Machine, moved_bytes: u64, operations: f64) -> Self {
        let copy = moved_bytes as f64 / machine.copy.per_second;
        let peak = operations / machine.peak.per_second;
        if copy >= peak {
            Self::Copy { seconds: copy, rate: machine.copy }
        } else {
            Self::Peak { seconds: peak, rate: machine.peak }
        }
    }

    /// The least time, in seconds.
    pub fn seconds(&self) -> f64 {
        match *self {
            Self::Copy { seconds, .. } | Self::Peak { seconds, .. } => seconds,
        }
    }

    /// The rate behind it.
    pub fn rate(&self) -> Rate {
        match *self {
            Self::Copy { rate, .. } | Self::Peak { rate, .. } => rate,
        }
    }

    /// `copy` or `peak`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Copy { .. } => "copy",
            Self::Peak { .. } => "peak",
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Copy { rate: Rate { per_second, origin }, .. } => {
                write!(f, "copy bandwidth ({}, {origin})", rate(per_second, "B"))
            }
            Self::Peak { rate: Rate { per_second, origin }, .. } => {
                write!(f, "dense peak ({}, {origin})", rate(per_second, "FLOP"))
            }
        }
    }
}

/// Bytes of the buffer that is copied: larger than the last cache of most machines.
const COPIED_BYTES: usize = 128 << 20;
/// Rows and columns of the dense product, and of a smaller one that is enough where it is slow (a debug build).
const DENSE_SIZES: [usize; 2] = [192, 768];
/// A product that takes longer than this, in seconds, is slow.
const SLOW: f64 = 0.01;
/// The best of this many is taken: a limit is what the machine can do, not what it does on average.
const TRIES: usize = 3;

/// Measures this machine's processors, all threads at work.
pub fn measure_cpu(dtype: Dtype) -> Machine {
    let peak = match dtype {
        Dtype::F64 => dense_peak(1.0f64, 0.0f64),
        Dtype::Bf16 | Dtype::F16 | Dtype::F32 => dense_peak(1.0f32, 0.0f32),
    };
    Machine {
        copy: Rate { per_second: copy_bandwidth(), origin: Origin::Measured },
        peak: Rate { per_second: peak, origin: Origin::Measured },
    }
}

fn copy_bandwidth() -> f64 {
    let source = vec![1u64; COPIED_BYTES / 8];
    let mut target = vec![0u64; COPIED_BYTES / 8];
    let chunk = source.len().div_ceil(rayon::current_num_threads());
    let seconds = best_of(|| {
        target.par_chunks_mut(chunk).zip(source.par_chunks(chunk)).for_each(|(to, from)| to.copy_from_slice(from));
    });
    2.0 * COPIED_BYTES as f64 / seconds
}

fn dense_peak<T: Copy + Send + Sync + 'static>(one: T, zero: T) -> f64 {
    let [small, large] = DENSE_SIZES;
    let seconds = dense_seconds(small, one, zero);
    let (n, seconds) = if seconds > SLOW { (small, seconds) } else { (large, dense_seconds(large, one, zero)) };
    2.0 * (n as f64).powi(3) / seconds
}

/// The time of an n x n x n product.
fn dense_seconds<T: Copy + Send + Sync + 'static>(n: usize, one: T, zero: T) -> f64 {
    let (a, b) = (vec![one; n * n], vec![one; n * n]);
    let mut c = vec![zero; n * n];
    let stride = n as isize;
    best_of(|| {
        // SAFETY: the three matrices are n x n, row-major, without gaps, in vectors of n * n elements; c is ours alone.
        unsafe {
            gemm::gemm(
                n,
                n,
                n,
                c.as_mut_ptr(),
                1,
                stride,
                false,
                a.as_ptr(),
                1,
                stride,
                b.as_ptr(),
                1,
                stride,
                zero,
                one,
                false,
                false,
                false,
                Parallelism::Rayon(0),
            );
        }
    })
}

/// The shortest time of a few, in seconds, after one that is not counted.
fn best_of(mut work: impl FnMut()) -> f64 {
    work();
    (0..TRIES)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        let rate = |per_second| Rate { per_second, origin: Origin::Measured };
        Machine { copy: rate(10.0), peak: rate(100.0) }
    }

    #[test]
    fn the_tighter_limit_holds() {
        let moving = Limit::of(&machine(), 20, 100.0);
        assert_eq!((moving.name(), moving.seconds()), ("copy", 2.0));
        let computing = Limit::of(&machine(), 20, 1000.0);
        assert_eq!((computing.name(), computing.seconds()), ("peak", 10.0));
    }
}
