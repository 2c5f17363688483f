//! What a matrix would be in each format: counted, not built.
//!
//! One look at the offsets serves CSR. One pass over the column indices serves every shape of blocks and windows: it gives the union
//! of the columns of 8 rows, sorted; unions of unions are those of 16, 64 and 128 rows, and shifts give the groups of 8, 16, 32, 64 and 128
//! columns. Threads share the windows; nothing of the size of the matrix is allocated.

use core::ops::Range;

use rayon::prelude::*;

use super::format::Format;
use crate::formats::{CsrPattern, GroupSet, PANEL_COLS, WindowShape};

/// Columns of a stage of the tensor-core kernels.
pub(super) const STAGE_COLS: u64 = 64;

/// Rows of a window of the survey: the highest window, and several of each other height.
const SURVEY_ROWS: usize = 128;

/// Heights of blocks and windows, each a multiple of the one before.
const HEIGHTS: [usize; 4] = [8, 16, 64, SURVEY_ROWS];

/// How far apart columns are that windows which follow one another may find in L2 without being the same: the rows of two windows.
const NEAR: u32 = 128;

/// What the lengths of rows say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rows {
    pub num_entries: u64,
    /// Entries of the longest row.
    pub longest: u64,
    /// Rows that have an entry.
    pub occupied: u64,
    /// Stages of 64 columns that windows of 64 and of 128 rows store at least: those of each window's longest row.
    pub least_stages: [u64; 2],
}

impl Rows {
    pub(super) fn of(offsets: &[u64]) -> Self {
        let num_rows = offsets.len().saturating_sub(1);
        (0..num_rows.div_ceil(SURVEY_ROWS)).into_par_iter().map(|window| Self::of_window(offsets, window)).reduce(
            Self::default,
            |one, other| Self {
                num_entries: one.num_entries + other.num_entries,
                longest: one.longest.max(other.longest),
                occupied: one.occupied + other.occupied,
                least_stages: [
                    one.least_stages[0] + other.least_stages[0],
                    one.least_stages[1] + other.least_stages[1],
                ],
            },
        )
    }

    fn of_window(offsets: &[u64], window: usize) -> Self {
        let begin = window * SURVEY_ROWS;
        let end = (begin + SURVEY_ROWS).min(offsets.len() - 1);
        let mut found = Self { num_entries: offsets[end] - offsets[begin], ..Self::default() };
        let mut halves = [0; 2];
        for row in begin..end {
            let len = offsets[row + 1] - offsets[row];
            let half = &mut halves[usize::from(row - begin >= SURVEY_ROWS / 2)];
            *half = len.max(*half);
            found.occupied += u64::from(len > 0);
        }
        found.longest = halves[0].max(halves[1]);
        let stages = halves.map(|longest| longest.div_ceil(STAGE_COLS));
        found.least_stages = [stages[0] + stages[1], found.longest.div_ceil(STAGE_COLS)];
        found
    }
}

/// What a matrix would be in blocks or windows of one shape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fit {
    /// Windows or block rows, empty ones included.
    pub num_windows: u64,
    /// Panels of 16 columns, or blocks.
    pub num_units: u64,
    /// Columns of the matrix that are stored, added up over windows or block rows: rows of B that are fetched for each tile of columns.
    pub num_columns: u64,
    /// Those of them that are not near a column of the window before, which L2 may have lost where B does not stay in it.
    pub num_strays: u64,
    /// Stages of 64 columns, each window padded to whole ones.
    pub num_stages: u64,
    /// Stages of the window or block row that has the most.
    pub longest: u64,
}

impl Fit {
    fn of_window(num_groups: u64, format: Format) -> Self {
        let (num_units, num_columns) = match format {
            // No tensor core multiplies it.
            Format::Csr => return Self::default(),
            Format::Bcsr(block) => (num_groups, num_groups * block.cols as u64),
            Format::Wcsr(window) => {
                let columns = num_groups * window.group as u64;
                (columns.div_ceil(PANEL_COLS as u64), columns)
            }
        };
        let num_stages = num_columns.div_ceil(STAGE_COLS);
        Self { num_windows: 1, num_units, num_columns, num_strays: 0, num_stages, longest: num_stages }
    }

    fn join(self, other: Self) -> Self {
        Self {
            num_windows: self.num_windows + other.num_windows,
            num_units: self.num_units + other.num_units,
            num_columns: self.num_columns + other.num_columns,
            num_strays: self.num_strays + other.num_strays,
            num_stages: self.num_stages + other.num_stages,
            longest: self.longest.max(other.longest),
        }
    }
}

/// Shapes of one group of columns, by the logarithm of its columns; the number of shapes is that of [`SHIFTS`] for each height.
const SHIFTS: [u32; 6] = [0, 3, 4, 5, 6, 7];

/// How every shape of blocks and windows fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fits {
    found: Counted,
}

impl Fits {
    pub(super) fn of(matrix: &CsrPattern) -> Self {
        let num_windows = matrix.num_rows().div_ceil(SURVEY_ROWS);
        // A task has some windows at least: each has scratch memory of its own.
        let found = (0..num_windows)
            .into_par_iter()
            .with_min_len(16)
            .map_init(Scratch::default, |scratch, window| scratch.fit(matrix, window))
            .reduce(Counted::default, Counted::join);
        Self { found }
    }

    /// How rows of B are fetched by blocks of so many rows, each of its columns once: between the heights that were counted, and from single
    /// rows on, by the power of the height that joins them.
    pub(super) fn fetched(&self, num_entries: u64, rows: usize) -> Fit {
        let (mut below, mut fetched) = ((1, num_entries as f64), num_entries as f64);
        for height in HEIGHTS {
            let columns = self.get(Format::Wcsr(WindowShape { rows: height, group: 1 })).num_columns as f64;
            if rows > below.0 && below.1 > 0.0 {
                let place = (rows.min(height) as f64 / below.0 as f64).ln() / (height as f64 / below.0 as f64).ln();
                fetched = below.1 * (columns / below.1).powf(place);
            }
            below = (height, columns);
        }
        Fit { num_columns: fetched as u64, num_strays: (fetched * self.stray()) as u64, ..Fit::default() }
    }

    /// The share of a window's columns that are not near one of the window before, 0 to 1: of 64 rows and the 64 before. A mesh's
    /// and a band's windows move on by as many columns as rows, wherever their bands lie; a graph's columns are anywhere.
    fn stray(&self) -> f64 {
        if self.found.followers == 0 { 0.0 } else { self.found.strays as f64 / self.found.followers as f64 }
    }

    /// How `format` fits; nothing of CSR.
    pub(super) fn get(&self, format: Format) -> Fit {
        let (rows, group) = match format {
            Format::Csr => return Fit::default(),
            Format::Bcsr(block) => (block.rows, block.cols),
            Format::Wcsr(window) => (window.rows, window.group),
        };
        let places =
            (HEIGHTS.iter().position(|&height| rows == height), SHIFTS.iter().position(|&shift| group == 1 << shift));
        let (Some(height), Some(shift)) = places else { return Fit::default() };
        let fit = self.found.fits[height][shift];
        Fit { num_strays: (fit.num_columns as f64 * self.stray()) as u64, ..fit }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counted {
    /// By [`HEIGHTS`], then by [`SHIFTS`].
    fits: [[Fit; SHIFTS.len()]; HEIGHTS.len()],
    /// Columns of the lower windows of 64 rows, and those of them that are not within [`NEAR`] of one of the upper windows.
    followers: u64,
    strays: u64,
}

impl Counted {
    fn join(mut self, other: Self) -> Self {
        for (mine, theirs) in self.fits.iter_mut().flatten().zip(other.fits.iter().flatten()) {
            *mine = mine.join(*theirs);
        }
        self.followers += other.followers;
        self.strays += other.strays;
        self
    }

    /// Counts how far one window's columns follow those of the window before, both ascending.
    fn follow(&mut self, before: &[u32], columns: &[u32]) {
        let mut at = 0;
        for &column in columns {
            while before.get(at).is_some_and(|&near| near < column.saturating_sub(NEAR)) {
                at += 1;
            }
            let is_near = before.get(at).is_some_and(|&near| near <= column.saturating_add(NEAR));
            self.strays += u64::from(!is_near);
        }
        self.followers += columns.len() as u64;
    }
}

#[derive(Default)]
struct Scratch {
    set: GroupSet,
    /// The unions of the present height, one after the other, and those of the height before.
    unions: Unions,
    below: Unions,
}

/// Ascending columns, one window's after another's.
#[derive(Default)]
struct Unions {
    columns: Vec<u32>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Unions {
    fn get(&self, window: usize) -> &[u32] {
        let begin = if window == 0 { 0 } else { self.ends[window - 1] };
        &self.columns[begin..self.ends[window]]
    }

    fn clear(&mut self) {
        self.columns.clear();
        self.ends.clear();
    }
}

impl Scratch {
    fn fit(&mut self, matrix: &CsrPattern, window: usize) -> Counted {
        let begin = window * SURVEY_ROWS;
        let end = (begin + SURVEY_ROWS).min(matrix.num_rows());
        let columns = |rows: Range<usize>| {
            rows.map(|row| {
                &matrix.col_indices()[matrix.row_offsets()[row] as usize..matrix.row_offsets()[row + 1] as usize]
            })
        };
        let mut counted = Counted::default();
        for (height_index, &height) in HEIGHTS.iter().enumerate() {
            core::mem::swap(&mut self.unions, &mut self.below);
            let Self { set, unions, below } = self;
            unions.clear();
            for (place, first) in (begin..end).step_by(height).enumerate() {
                if height_index == 0 {
                    set.union(columns(first..end.min(first + height)), 0, &mut unions.columns);
                } else {
                    let merged = height / HEIGHTS[height_index - 1];
                    let parts = place * merged..below.ends.len().min((place + 1) * merged);
                    set.union(parts.map(|part| below.get(part)), 0, &mut unions.columns);
                }
                unions.ends.push(unions.columns.len());
                for (shift_index, &shift) in SHIFTS.iter().enumerate().filter(|(_, shift)| is_offered(height, **shift))
                {
                    let found = &mut counted.fits[height_index][shift_index];
                    *found = found.join(Fit::of_window(shrink(unions.get(place), shift), formats_of(shift)));
                }
            }
            if height == 64 && self.unions.ends.len() == 2 {
                counted.follow(self.unions.get(0), self.unions.get(1));
            }
        }
        counted
    }
}

/// Whether some format has groups of 2^`shift` columns in that many rows: blocks have 64 and more.
fn is_offered(height: usize, shift: u32) -> bool {
    height >= 64 || 1 << shift < PANEL_COLS
}

/// Some format whose groups have 2^`shift` columns: rows do not matter to what a window stores.
fn formats_of(shift: u32) -> Format {
    let cols = 1 << shift;
    if cols < PANEL_COLS {
        Format::Wcsr(WindowShape { rows: SURVEY_ROWS, group: cols })
    } else {
        Format::Bcsr(crate::formats::BlockShape { rows: SURVEY_ROWS, cols })
    }
}

/// How many groups of 2^`shift` columns hold some of `columns`, which ascend.
fn shrink(columns: &[u32], shift: u32) -> u64 {
    let mut last = None;
    let is_new = |&&column: &&u32| last.replace(column >> shift) != Some(column >> shift);
    columns.iter().filter(is_new).count() as u64
}
