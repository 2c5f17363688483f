//! What a CSR kernel is made of: the sharing out of work, arguments.

use hopper_std::KernelSpec;
use hopper_std::global::GlobalArray;

/// Threads of a block.
pub const THREADS: u32 = 128;

/// Blocks on a multiprocessor at once: 64 registers a thread.
pub const MIN_BLOCKS: u32 = 8;

/// The same where rows come in runs: 80 registers a thread.
pub const MIN_BLOCKS_OF_RUNS: u32 = 5;

/// The largest M, N or K: positions past the last row and column of a launch still fit 32 bits.
pub const MAX_SIZE: u64 = u32::MAX as u64 - 1024;

/// The largest grid along y; chunks beyond it are done in turns.
const MAX_GRID_Y: u32 = 65_535;

/// Entries of A that are loaded together, and the alignment of those loads.
pub const GROUP: u32 = 4;

/// The logarithm of a length of parts that no row exceeds: rows stay whole.
pub const UNSPLIT_LOG2: u32 = 32;

/// Which columns of a chunk a thread computes, and how it reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Columns {
    /// One, by a load of one element.
    Spread1 = 0,
    /// Four that lie a team apart, each by a load of one element.
    Spread4 = 1,
    /// Two neighbours, by one load.
    Packed2 = 2,
    /// Four neighbours, by one load.
    Packed4 = 3,
    /// Eight neighbours, by one load: of 16-bit elements.
    Packed8 = 4,
}

impl Columns {
    /// How many there are.
    pub const fn count(self) -> u32 {
        match self {
            Self::Spread1 => 1,
            Self::Packed2 => 2,
            Self::Spread4 | Self::Packed4 => 4,
            Self::Packed8 => 8,
        }
    }

    /// The best for `num_cols` columns of `element_bytes` bytes each, where the columns of B are neighbours in memory and
    /// its rows start at multiples of `alignment_bytes`. An alignment of one element stands also for a B whose columns
    /// are no neighbours.
    pub const fn best(num_cols: u32, element_bytes: u32, alignment_bytes: u32) -> Self {
        let candidates = [Self::Packed8, Self::Packed4, Self::Packed2];
        let mut index = 0;
        while index < candidates.len() {
            let count = candidates[index].count();
            let bytes = count * element_bytes;
            // One load has 4, 8 or 16 bytes.
            if bytes <= 16 && alignment_bytes.is_multiple_of(bytes) && num_cols.is_multiple_of(count) {
                return candidates[index];
            }
            index += 1;
        }
        if num_cols < 4 { Self::Spread1 } else { Self::Spread4 }
    }
}

/// How the work of one launch is shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// The columns of a thread.
    pub columns: Columns,
    /// The logarithm to base 2 of the number of threads of a team: 0 to 5.
    pub team_log2: u32,
    /// Blocks along x: parts and rows.
    pub grid_x: u32,
    /// Blocks along y: chunks of columns.
    pub grid_y: u32,
}

impl Geometry {
    /// The smallest team that covers all columns, or a warp. `num_items` (parts and rows, each the work of one team) and
    /// `num_cols` are at least 1 and at most [`MAX_SIZE`].
    pub const fn new(num_items: u32, num_cols: u32, columns: Columns) -> Self {
        let wanted = num_cols.div_ceil(columns.count());
        let team_log2 = if wanted >= 32 { 5 } else { wanted.next_power_of_two().trailing_zeros() };
        let num_chunks = num_cols.div_ceil(columns.count() << team_log2);
        Self {
            columns,
            team_log2,
            grid_x: num_items.div_ceil(THREADS >> team_log2),
            grid_y: if num_chunks < MAX_GRID_Y { num_chunks } else { MAX_GRID_Y },
        }
    }

    /// Threads that share a row.
    pub const fn team(&self) -> u32 {
        1 << self.team_log2
    }

    /// Teams of a block.
    pub const fn teams(&self) -> u32 {
        THREADS >> self.team_log2
    }

    /// Columns of a chunk.
    pub const fn chunk(&self) -> u32 {
        self.columns.count() << self.team_log2
    }
}

/// The logarithm of the most rows of a [run](Ways::run_log2).
pub const MAX_RUN_LOG2: u32 = 4;

/// The logarithm of the longest parts with which rows come in runs: places in a run then fit 32 bits.
pub const MAX_RUN_PART_LOG2: u32 = 24;

/// The type of C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum OutputKind {
    /// That of A and B.
    Input = 0,
    /// f32.
    Float = 1,
}

/// What a launch chooses among the ways that a kernel has, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ways {
    /// The type of C.
    pub output: OutputKind,
    /// The columns of a thread; a packed kind only where [`Columns::best`] allows it or a wider one.
    pub columns: Columns,
    /// [`Geometry::team_log2`].
    pub team_log2: u32,
    /// The logarithm to base 2 of how many neighbouring rows a team computes one after the other, of which it reads the entries
    /// as one sequence: 0 to [`MAX_RUN_LOG2`], and 0 with an order of rows or parts of over 1 << [`MAX_RUN_PART_LOG2`] entries.
    pub run_log2: u32,
    /// The logarithm to base 2 of the most entries that a team adds up: 2 to 31, or [`UNSPLIT_LOG2`].
    pub part_log2: u32,
}

impl Ways {
    /// As the kernel reads it.
    pub const fn to_word(self) -> u32 {
        let Self { output, columns, team_log2, run_log2, part_log2 } = self;
        output as u32 | (columns as u32) << 8 | team_log2 << 16 | run_log2 << 20 | part_log2 << 24
    }
}

/// Floats of a row of the workspace: N, rounded up so that each row is aligned to 16 bytes.
pub const fn workspace_stride(num_cols: u32) -> u64 {
    (num_cols as u64).next_multiple_of(4)
}

/// The arguments of every CSR kernel, in the order of its parameters.
///
/// | parameter | what it is |
/// | --- | --- |
/// | `row_offsets` | a word of 64 bits for each row of A and one more: where each row's entries begin |
/// | `col_indices` | the column of each entry, under K; aligned to 16 bytes |
/// | `values` | the value of each entry; aligned to 16 bytes |
/// | `num_entries` | how many entries there are |
/// | `parts` | row and number of each part of a long row, the parts of a row one after the other |
/// | `num_parts` | how many there are |
/// | `order` | the rows of the teams behind those of the parts; null: row 0, row 1 and so on, by runs |
/// | `num_rows` | how many rows they have: M, or the length of `order` |
/// | `workspace` | a row of [`workspace_stride`] floats for the sums of each part; aligned to 16 bytes |
/// | `b` | B |
/// | `b_row_stride`, `b_col_stride` | from row to row and from column to column of B, in elements |
/// | `c` | C |
/// | `c_row_stride`, `c_col_stride` | from row to row and from column to column of C, in elements |
/// | `num_cols` | N, at most [`MAX_SIZE`] |
/// | `alpha`, `beta` | scalars; with alpha = 0 the entries of A and B are not read, with beta = 0 C is not |
/// | `ways` | [`Ways::to_word`] |
///
/// The grid is that of [`Geometry`] for `num_parts` and `num_rows >> run_log2`, rounded up, items, at most [`MAX_SIZE`].
///
/// A row of more than `1 << part_log2` entries is long. It has a part for each so many entries, the last part fewer;
/// the team that has it among its rows leaves it out, and [`CombineArguments`](super::CombineArguments) says who stores it.
#[derive(Clone, Copy)]
pub struct Arguments<E> {
    /// Where each row's entries begin.
    pub row_offsets: GlobalArray<u64>,
    /// The column of each entry.
    pub col_indices: GlobalArray<u32>,
    /// The value of each entry.
    pub values: GlobalArray<E>,
    /// How many entries there are.
    pub num_entries: u64,
    /// Row and number of each part of a long row.
    pub parts: GlobalArray<[u32; 2]>,
    /// How many parts there are.
    pub num_parts: u32,
    /// The row of each team behind those of the parts, or null.
    pub order: GlobalArray<u32>,
    /// How many rows these teams have.
    pub num_rows: u32,
    /// The sums of parts.
    pub workspace: *mut f32,
    /// B.
    pub b: GlobalArray<E>,
    /// From row to row of B, in elements.
    pub b_row_stride: u64,
    /// From column to column of B, in elements.
    pub b_col_stride: u64,
    /// C.
    pub c: *mut u8,
    /// From row to row of C, in elements.
    pub c_row_stride: u64,
    /// From column to column of C, in elements.
    pub c_col_stride: u64,
    /// N.
    pub num_cols: u32,
    /// Factor of A B.
    pub alpha: f32,
    /// Factor of what C held.
    pub beta: f32,
    /// A [`Ways`].
    pub ways: u32,
}

impl<E> Arguments<E> {
    /// The same arguments, for elements of another type.
    pub const fn cast<F>(self) -> Arguments<F>
    where
        E: Copy,
    {
        let Self { row_offsets, col_indices, num_entries, parts, num_parts, order, num_rows, workspace, .. } = self;
        let Self { b_row_stride, b_col_stride, c, c_row_stride, c_col_stride, num_cols, alpha, beta, ways, .. } = self;
        Arguments {
            row_offsets,
            col_indices,
            values: self.values.cast(),
            num_entries,
            parts,
            num_parts,
            order,
            num_rows,
            workspace,
            b: self.b.cast(),
            b_row_stride,
            b_col_stride,
            c,
            c_row_stride,
            c_col_stride,
            num_cols,
            alpha,
            beta,
            ways,
        }
    }

    /// Whether C has the type of A and B.
    #[inline(always)]
    pub(super) fn has_input_type(&self) -> bool {
        self.ways & 0xff == OutputKind::Input as u32
    }

    /// Whether threads have these columns.
    #[inline(always)]
    pub(super) fn has_columns(&self, columns: Columns) -> bool {
        self.ways >> 8 & 0xff == columns as u32
    }

    /// The logarithm of the team's size.
    #[inline(always)]
    pub(super) fn team_log2(&self) -> u32 {
        self.ways >> 16 & 0xf
    }

    /// The logarithm of the number of rows of a run.
    #[inline(always)]
    pub(super) fn run_log2(&self) -> u32 {
        self.ways >> 20 & 0xf
    }

    /// The logarithm of the length of parts.
    #[inline(always)]
    pub(super) fn part_log2(&self) -> u32 {
        self.ways >> 24
    }
}

/// The type of the elements of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Dtype {
    /// bfloat16.
    Bf16 = 0,
    /// IEEE binary16.
    F16 = 1,
    /// IEEE binary32.
    F32 = 2,
}

/// How a kernel takes rows that are not long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKind {
    /// One by one, as they come or in an order: [`Ways::run_log2`] is 0.
    Single,
    /// By [runs](Ways::run_log2) of 2 and more.
    Run,
}

/// What the host must know of one exported kernel.
#[derive(Clone, Copy, Debug)]
pub struct Configuration {
    /// Its launch contract.
    pub spec: &'static KernelSpec,
    /// The type of A and B.
    pub dtype: Dtype,
    /// How it takes rows that are not long.
    pub rows: RowKind,
    /// Calls the kernel on the CPU, as one thread of a simulated launch. The contract is the kernel's, for elements of its
    /// type.
    #[cfg(feature = "sim")]
    pub simulate: unsafe fn(arguments: Arguments<()>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_widest_load_that_alignment_and_columns_allow() {
        for (num_cols, element_bytes, alignment, columns) in [
            (128, 2, 256, Columns::Packed8),
            (128, 4, 256, Columns::Packed4),
            (128, 2, 8, Columns::Packed4),
            (100, 2, 256, Columns::Packed4),
            (102, 4, 256, Columns::Packed2),
            (128, 2, 2, Columns::Spread4),
            (129, 4, 256, Columns::Spread4),
            (2, 2, 4, Columns::Packed2),
            (3, 4, 16, Columns::Spread1),
            (1, 2, 256, Columns::Spread1),
        ] {
            assert_eq!(Columns::best(num_cols, element_bytes, alignment), columns, "{num_cols} of {element_bytes}");
        }
    }

    #[test]
    fn teams_cover_every_column_once() {
        for num_cols in [1, 2, 3, 5, 31, 32, 33, 128, 129, 1000, 4096, MAX_SIZE as u32] {
            for columns in [Columns::Spread1, Columns::Spread4, Columns::Packed2, Columns::Packed4, Columns::Packed8] {
                let geometry = Geometry::new(1000, num_cols, columns);
                let chunks = u64::from(num_cols.div_ceil(geometry.chunk()));
                assert!(geometry.team() <= 32);
                assert_eq!(u64::from(geometry.grid_y), chunks.min(u64::from(MAX_GRID_Y)));
                let half_a_team = u64::from(geometry.chunk() / 2);
                assert!(geometry.team_log2 == 0 || geometry.team() == 32 || half_a_team < u64::from(num_cols));
            }
        }
        let widest = Geometry::new(MAX_SIZE as u32, MAX_SIZE as u32, Columns::Packed8);
        assert!(widest.grid_x <= i32::MAX as u32);
    }
}
