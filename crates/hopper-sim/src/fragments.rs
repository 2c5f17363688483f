//! Which lane holds which element: accumulators and left operands of products, and 8 x 8 matrices of 16-bit elements.

use hopper_std::sim::MatrixMove;

/// Where an element of a fragment lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The thread of the warp group.
    pub(crate) thread: usize,
    /// Its register.
    pub(crate) register: usize,
}

/// Row and column of D (64 x N, fp32) that register `register` of thread `thread` holds. PTX ISA 9.7.15.5.1.
pub(crate) const fn d_element(thread: usize, register: usize) -> (usize, usize) {
    let (warp, lane) = (thread / 32, thread % 32);
    (warp * 16 + lane / 4 + 8 * (register / 2 % 2), 8 * (register / 4) + 2 * (lane % 4) + register % 2)
}

/// Where element (`row`, `col`) of D lies.
#[cfg(test)]
pub(crate) const fn d_place(row: usize, col: usize) -> Place {
    Place { thread: row / 16 * 32 + row % 8 * 4 + col % 8 / 2, register: col / 8 * 4 + row % 16 / 8 * 2 + col % 2 }
}

/// Where the pair of 16-bit elements (`row`, `col`) and (`row`, `col` + 1) of A (64 x 16) lies; `col` is even, its element
/// in the low half. PTX ISA 9.7.15.5.1. The stored values of a sparse A lie likewise.
pub(crate) const fn a_place(row: usize, col: usize) -> Place {
    Place { thread: row / 16 * 32 + row % 8 * 4 + col % 8 / 2, register: col / 8 * 2 + row % 16 / 8 }
}

/// Element (`row`, `col`) of A (64 x 16), of the four registers of each of the 128 threads.
pub(crate) fn a_element(registers: &[[u32; 4]], row: usize, col: usize) -> u16 {
    let Place { thread, register } = a_place(row, col & !1);
    (registers[thread][register] >> (16 * (col & 1))) as u16
}

/// The lane whose address names row `row` of matrix `matrix` to `ldmatrix` and `stmatrix`.
pub(crate) const fn row_lane(matrix: usize, row: usize) -> usize {
    8 * matrix + row
}

/// The rows of an 8 x 8 matrix.
pub(crate) type Rows = [[u16; 8]; 8];

/// What `ldmatrix` gives each lane of one matrix: row lane / 4, columns 2 (lane % 4) and the next, the first in the low
/// half; or of the transposed matrix. PTX ISA 9.7.14.5.15.
pub(crate) fn ldmatrix(rows: &Rows, how: MatrixMove) -> [u32; 32] {
    core::array::from_fn(|lane| {
        let (row, col) = (lane / 4, 2 * (lane % 4));
        let [low, high] = match how {
            MatrixMove::Plain => [rows[row][col], rows[row][col + 1]],
            MatrixMove::Trans => [rows[col][row], rows[col + 1][row]],
        };
        u32::from(low) | u32::from(high) << 16
    })
}

/// The rows that `stmatrix` writes of one matrix: the inverse of [`ldmatrix`]. PTX ISA 9.7.14.5.16.
pub(crate) fn stmatrix(lanes: &[u32; 32], how: MatrixMove) -> Rows {
    let mut rows = Rows::default();
    for (lane, pair) in lanes.iter().enumerate() {
        let (row, col) = (lane / 4, 2 * (lane % 4));
        for (col, value) in [(col, *pair as u16), (col + 1, (pair >> 16) as u16)] {
            match how {
                MatrixMove::Plain => rows[row][col] = value,
                MatrixMove::Trans => rows[col][row] = value,
            }
        }
    }
    rows
}

/// What `movmatrix.trans` gives each lane of the matrix that the lanes hold. PTX ISA 9.7.14.5.17.
pub(crate) fn movmatrix_trans(lanes: &[u32; 32]) -> [u32; 32] {
    ldmatrix(&stmatrix(lanes, MatrixMove::Plain), MatrixMove::Trans)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_d() {
        for thread in 0..128 {
            for register in 0..128 {
                let (row, col) = d_element(thread, register);
                assert_eq!(d_place(row, col), Place { thread, register });
            }
        }
        // Row 21 is warp 1, lanes 20 to 23; row 29 shares them.
        assert_eq!(d_place(21, 0), Place { thread: 52, register: 0 });
        assert_eq!(d_place(29, 11), Place { thread: 53, register: 7 });
    }

    #[test]
    fn places_of_a() {
        assert_eq!(a_place(0, 0), Place { thread: 0, register: 0 });
        assert_eq!(a_place(8, 0), Place { thread: 0, register: 1 });
        assert_eq!(a_place(0, 8), Place { thread: 0, register: 2 });
        assert_eq!(a_place(63, 14), Place { thread: 127, register: 3 });
        let mut seen = vec![[false; 4]; 128];
        let mut registers = vec![[0; 4]; 128];
        for row in 0..64 {
            for col in (0..16).step_by(2) {
                let Place { thread, register } = a_place(row, col);
                assert!(!core::mem::replace(&mut seen[thread][register], true));
                registers[thread][register] = (row * 16 + col) as u32 | ((row * 16 + col + 1) as u32) << 16;
            }
        }
        for row in 0..64 {
            for col in 0..16 {
                assert_eq!(usize::from(a_element(&registers, row, col)), row * 16 + col);
            }
        }
    }

    #[test]
    fn eight_by_eight() {
        let rows: Rows = core::array::from_fn(|row| core::array::from_fn(|col| (row * 8 + col) as u16));
        let transposed: Rows = core::array::from_fn(|row| core::array::from_fn(|col| (col * 8 + row) as u16));
        let lanes = ldmatrix(&rows, MatrixMove::Plain);
        assert_eq!(lanes[0], 0x0001_0000);
        assert_eq!(lanes[7], (8 + 6) | (8 + 7) << 16);
        assert_eq!(ldmatrix(&rows, MatrixMove::Trans), ldmatrix(&transposed, MatrixMove::Plain));
        assert_eq!(ldmatrix(&rows, MatrixMove::Trans)[1], 16 | 24 << 16);
        for how in [MatrixMove::Plain, MatrixMove::Trans] {
            assert_eq!(stmatrix(&ldmatrix(&rows, how), how), rows);
        }
        assert_eq!(movmatrix_trans(&lanes), ldmatrix(&transposed, MatrixMove::Plain));
        assert_eq!(row_lane(3, 7), 31);
    }
}
