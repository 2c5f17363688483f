//! Rows put together that share columns.

use core::cmp::Reverse;

use rayon::prelude::*;

use super::{RowOrder, WindowShape, WindowStatistics};
use crate::formats::CsrPattern;

/// Rows that are put together among themselves, in one task; a multiple of every window's rows.
const ROWS_PER_TASK: usize = 4096;

/// A column of more rows of a task is not followed: it says little about which of them belong together, and costs most.
const MAX_ROWS_OF_COLUMN: usize = 256;

impl RowOrder {
    /// An order that makes the unions of columns smaller, or `None` where none was found that stores fewer panels (or as
    /// many of fewer columns) than the rows' own.
    ///
    /// First the rows are sorted by their columns, the first column first, if that is better than their own order. Then, in
    /// every 4096 rows, windows are filled one after the other: with the first row that is left, and each time with the row
    /// that shares most columns with the window for those that it adds. The result depends on the matrix and the shape
    /// alone, not on the number of threads.
    ///
    /// It gains most where rows that share columns lie apart (a shuffled band is filled more than 15 times as well, which a test
    /// counts), something on meshes, circuits and graphs, and little on finite elements in a good order. It takes several times as
    /// long as building.
    ///
    /// # Panics
    /// Where `window` is not offered.
    pub fn compacting(matrix: &CsrPattern, window: WindowShape) -> Option<Self> {
        let size_of = |order: &Self| size(&WindowStatistics::of_ordered(matrix, window, order));
        let own_size = size(&WindowStatistics::of(matrix, window));
        let mut rows: Vec<u32> = (0..matrix.num_rows() as u32).collect();
        rows.par_sort_by(|&a, &b| columns(matrix, a).cmp(columns(matrix, b)));
        let sorted = Self::from_permutation(rows);
        let sorted_size = size_of(&sorted);
        let start = (sorted_size < own_size).then_some(sorted);
        let rows = match &start {
            Some(order) => order.rows.clone(),
            None => (0..matrix.num_rows() as u32).collect(),
        };
        let shift = window.group.trailing_zeros();
        let tasks = rows.par_chunks(ROWS_PER_TASK);
        let clustered =
            tasks.flat_map_iter(|rows| Holders::new(matrix, rows, shift).cluster(rows, window.rows)).collect();
        let clustered = Self::from_permutation(clustered);
        if size_of(&clustered) < sorted_size.min(own_size) { Some(clustered) } else { start }
    }
}

/// What is made small: panels, and then columns.
fn size(statistics: &WindowStatistics) -> (u64, u64) {
    (statistics.num_panels, statistics.num_columns)
}

fn columns(matrix: &CsrPattern, row: u32) -> &[u32] {
    let entries = matrix.row_offsets()[row as usize] as usize..matrix.row_offsets()[row as usize + 1] as usize;
    &matrix.col_indices()[entries]
}

/// Some rows and their column groups, both numbered from 0: the groups of each row, and the rows that hold each group.
struct Holders {
    row_offsets: Vec<usize>,
    row_groups: Vec<u32>,
    group_offsets: Vec<usize>,
    group_rows: Vec<u32>,
}

impl Holders {
    fn new(matrix: &CsrPattern, rows: &[u32], shift: u32) -> Self {
        let mut pairs: Vec<u64> = Vec::new();
        for (index, &row) in rows.iter().enumerate() {
            pairs.extend(columns(matrix, row).iter().map(|&col| u64::from(col >> shift) << 32 | index as u64));
        }
        pairs.sort_unstable();
        pairs.dedup();
        let mut row_offsets = vec![0; rows.len() + 1];
        for &pair in &pairs {
            row_offsets[pair as u32 as usize + 1] += 1;
        }
        for row in 0..rows.len() {
            row_offsets[row + 1] += row_offsets[row];
        }
        let mut next = row_offsets.clone();
        let mut row_groups = vec![0; pairs.len()];
        let (mut group_offsets, mut group_rows) = (vec![0], Vec::with_capacity(pairs.len()));
        for (group, of_group) in pairs.chunk_by(|a, b| a >> 32 == b >> 32).enumerate() {
            for &pair in of_group {
                let row = pair as u32;
                row_groups[next[row as usize]] = group as u32;
                next[row as usize] += 1;
                group_rows.push(row);
            }
            group_offsets.push(group_rows.len());
        }
        Self { row_offsets, row_groups, group_offsets, group_rows }
    }

    fn groups(&self, row: u32) -> &[u32] {
        &self.row_groups[self.row_offsets[row as usize]..self.row_offsets[row as usize + 1]]
    }

    /// The rows that hold a group, or none where they are too many to follow.
    fn rows(&self, group: u32) -> &[u32] {
        let rows = &self.group_rows[self.group_offsets[group as usize]..self.group_offsets[group as usize + 1]];
        if rows.len() > MAX_ROWS_OF_COLUMN { &[] } else { rows }
    }

    /// The rows, window after window, under the names that `names` has for them.
    fn cluster(&self, names: &[u32], window_rows: usize) -> Vec<u32> {
        let num_rows = names.len();
        let mut window = Window {
            holders: self,
            is_placed: vec![false; num_rows],
            is_stored: vec![false; self.group_offsets.len() - 1],
            stored: Vec::new(),
            num_shared: vec![0; num_rows],
            sharing: Vec::new(),
        };
        let mut first_left = 0;
        let mut order = Vec::with_capacity(num_rows);
        for place in 0..num_rows {
            if place.is_multiple_of(window_rows) {
                window.clear();
            }
            let row = window.closest().unwrap_or_else(|| {
                while window.is_placed[first_left] {
                    first_left += 1;
                }
                first_left as u32
            });
            window.add(row);
            order.push(names[row as usize]);
        }
        order
    }
}

/// A window that is being filled.
struct Window<'a> {
    holders: &'a Holders,
    /// Rows of this and of earlier windows.
    is_placed: Vec<bool>,
    is_stored: Vec<bool>,
    /// The groups that this window stores.
    stored: Vec<u32>,
    /// How many of them each row holds that is left.
    num_shared: Vec<u32>,
    /// The rows that hold at least one; some may be placed by now.
    sharing: Vec<u32>,
}

impl Window<'_> {
    fn clear(&mut self) {
        for group in self.stored.drain(..) {
            self.is_stored[group as usize] = false;
        }
        for row in self.sharing.drain(..) {
            self.num_shared[row as usize] = 0;
        }
    }

    /// The row to add next, where one shares a column: a shared column counts twice what an added one does. Of equals it
    /// is the first.
    fn closest(&mut self) -> Option<u32> {
        self.sharing.retain(|&row| !self.is_placed[row as usize]);
        let gain = |row: u32| {
            let num_added = self.holders.groups(row).len() as i64 - i64::from(self.num_shared[row as usize]);
            2 * i64::from(self.num_shared[row as usize]) - num_added
        };
        self.sharing.iter().copied().max_by_key(|&row| (gain(row), Reverse(row)))
    }

    fn add(&mut self, row: u32) {
        self.is_placed[row as usize] = true;
        for &group in self.holders.groups(row) {
            if core::mem::replace(&mut self.is_stored[group as usize], true) {
                continue;
            }
            self.stored.push(group);
            for &other in self.holders.rows(group) {
                if !self.is_placed[other as usize] {
                    if self.num_shared[other as usize] == 0 {
                        self.sharing.push(other);
                    }
                    self.num_shared[other as usize] += 1;
                }
            }
        }
    }
}
