//! An order that puts ranks far apart.

/// A bijection of the numbers under a bound: multiplication by a number near the golden ratio of the bound.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scatter {
    bound: u64,
    factor: u64,
}

impl Scatter {
    /// `bound` is from 1 to 2^32.
    pub fn new(bound: u64) -> Self {
        let first = ((u128::from(bound) * 0x9e37_79b9) >> 32) as u64 | 1;
        let factor = (first..).find(|&factor| is_coprime(factor, bound)).unwrap_or(1);
        Self { bound, factor }
    }

    /// Where `number`, under the bound, goes.
    pub fn place(&self, number: u64) -> u64 {
        ((u128::from(number) * u128::from(self.factor)) % u128::from(self.bound)) as u64
    }
}

fn is_coprime(left: u64, right: u64) -> bool {
    let (mut left, mut right) = (left, right);
    while right != 0 {
        (left, right) = (right, left % right);
    }
    left == 1
}
