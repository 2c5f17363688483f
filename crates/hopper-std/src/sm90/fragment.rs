//! Which element of D each register of each thread holds. PTX ISA 9.7.15.5.1.

/// The map of an accumulator of 64 rows: register `r` of thread `t` of the warp group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccumulatorFragment;

impl AccumulatorFragment {
    /// Rows of D.
    pub const ROWS: u32 = 64;

    /// The row of registers 0 and 1 of every four, from `0`; registers 2 and 3 are eight rows further down.
    #[inline(always)]
    pub const fn row(warp: u32, lane: u32) -> u32 {
        warp * 16 + lane / 4
    }

    /// The column of register 0 of every four, within eight columns; register 1 is the next.
    #[inline(always)]
    pub const fn col(lane: u32) -> u32 {
        lane % 4 * 2
    }

    /// Row and column of a register.
    pub const fn element(thread: u32, register: u32) -> (u32, u32) {
        let (warp, lane) = (thread / 32, thread % 32);
        (Self::row(warp, lane) + register % 4 / 2 * 8, Self::col(lane) + register / 4 * 8 + register % 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_has_one_register() {
        let columns = 256;
        let mut seen = vec![false; 64 * columns];
        for thread in 0..128 {
            for register in 0..columns as u32 / 2 {
                let (row, col) = AccumulatorFragment::element(thread, register);
                let place = row as usize * columns + col as usize;
                assert!(!seen[place], "({row}, {col}) twice");
                seen[place] = true;
            }
        }
        assert!(seen.iter().all(|&seen| seen));
    }
}
