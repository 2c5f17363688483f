//! Where the stored columns of a windowed matrix are.

use core::ops::Range;

use rayon::prelude::*;

use super::check::check_pattern;
use super::union::GroupSet;
use super::windows::Windows;
use super::{PANEL_COLS, RowOrder, WindowShape, WindowStatistics};
use crate::formats::error::check_length;
use crate::formats::rows::{accumulate, split_by_rows};
use crate::formats::{CsrPattern, FormatError};

/// Where the stored columns of a [`Wcsr`](super::Wcsr) matrix are.
///
/// Row r of window w is row `w * window.rows + r` of the matrix, or the row that stands at this place of its
/// [`RowOrder`]. The columns of a window are stored by groups of `window.group`, and by panels of [`PANEL_COLS`] columns.
///
/// Invariants, all checked: `window_offsets` counts panels; it has `ceil(num_rows / window.rows) + 1` elements, starts
/// with 0 and never decreases. `groups` has `PANEL_COLS / window.group` elements for each panel. Within a window the
/// groups increase strictly and are under `ceil(num_cols / window.group)`; only at the end of its last panel, behind at
/// least one group, this very number may stand, any number of times: it is padding, and stands for no column. The last group
/// of the matrix may reach beyond its last column. An order has a place for each row. Both sizes are at most 2^32 - 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WcsrPattern {
    pub(super) num_rows: usize,
    pub(super) num_cols: usize,
    pub(super) window: WindowShape,
    pub(super) window_offsets: Vec<u64>,
    pub(super) groups: Vec<u32>,
    pub(super) order: Option<RowOrder>,
}

impl WcsrPattern {
    /// Takes offsets and groups.
    ///
    /// # Errors
    /// Where an invariant of the type does not hold: [`FormatError::WindowShapeNotOffered`],
    /// [`FormatError::SizeTooLarge`], [`FormatError::Length`], [`FormatError::FirstOffset`],
    /// [`FormatError::OffsetsDecrease`], [`FormatError::GroupOutOfRange`], [`FormatError::GroupsNotIncreasing`] or
    /// [`FormatError::PanelOfPadding`].
    pub fn try_new(
        num_rows: usize,
        num_cols: usize,
        window: WindowShape,
        window_offsets: Vec<u64>,
        groups: Vec<u32>,
        order: Option<RowOrder>,
    ) -> Result<Self, FormatError> {
        check_pattern(num_rows, num_cols, window, &window_offsets, &groups, order.as_ref())?;
        Ok(Self { num_rows, num_cols, window, window_offsets, groups, order })
    }

    /// The unions of the columns of `matrix`, window by window; an explicit zero is an entry.
    ///
    /// # Errors
    /// [`FormatError::WindowShapeNotOffered`].
    pub fn from_csr(matrix: &CsrPattern, window: WindowShape) -> Result<Self, FormatError> {
        Self::build(matrix.num_rows(), matrix.num_cols(), matrix.row_offsets(), matrix.col_indices(), window, None)
    }

    /// The same with the rows in an order.
    ///
    /// # Errors
    /// [`FormatError::WindowShapeNotOffered`]; [`FormatError::Length`] where the order is not one of as many rows.
    pub fn from_csr_ordered(matrix: &CsrPattern, window: WindowShape, order: RowOrder) -> Result<Self, FormatError> {
        let (row_offsets, col_indices) = (matrix.row_offsets(), matrix.col_indices());
        Self::build(matrix.num_rows(), matrix.num_cols(), row_offsets, col_indices, window, Some(order))
    }

    pub(super) fn build(
        num_rows: usize,
        num_cols: usize,
        row_offsets: &[u64],
        col_indices: &[u32],
        window: WindowShape,
        order: Option<RowOrder>,
    ) -> Result<Self, FormatError> {
        let shape = window.offered()?;
        if let Some(order) = &order {
            check_length("rows", num_rows, order.rows().len())?;
        }
        let windows = Windows { row_offsets, col_indices, order: order.as_ref(), shape };
        let tasks = windows.tasks();
        let found: Vec<(Vec<u64>, Vec<u32>)> = tasks
            .par_iter()
            .map_init(GroupSet::default, |set, task| union_panels(set, &windows, task, num_cols))
            .collect();
        let mut window_offsets = Vec::with_capacity(windows.len() + 1);
        window_offsets.push(0);
        window_offsets.extend(found.iter().flat_map(|(panels, _)| panels));
        accumulate(&mut window_offsets);
        let mut groups = vec![0; found.iter().map(|(_, groups)| groups.len()).sum()];
        split_by_rows(&mut groups, &tasks, &window_offsets, shape.panel_groups())
            .into_par_iter()
            .zip(found)
            .for_each(|(piece, (_, found))| piece.copy_from_slice(&found));
        Ok(Self { num_rows, num_cols, window, window_offsets, groups, order })
    }

    /// Number of rows of the matrix.
    pub fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// Number of columns of the matrix.
    pub fn num_cols(&self) -> usize {
        self.num_cols
    }

    /// The shape of a window.
    pub fn window(&self) -> WindowShape {
        self.window
    }

    /// Number of windows.
    pub fn num_windows(&self) -> usize {
        self.window_offsets.len() - 1
    }

    /// Number of stored panels.
    pub fn num_panels(&self) -> usize {
        self.groups.len() / self.window.panel_groups()
    }

    /// The panel that each window begins with; `ceil(num_rows / window.rows) + 1` elements.
    pub fn window_offsets(&self) -> &[u64] {
        &self.window_offsets
    }

    /// The index of each column group, padding included.
    pub fn groups(&self) -> &[u32] {
        &self.groups
    }

    /// The order of the rows, where it is not their own.
    pub fn order(&self) -> Option<&RowOrder> {
        self.order.as_ref()
    }

    /// How well these windows fit a matrix of `num_entries` entries.
    pub fn window_statistics(&self, num_entries: u64) -> WindowStatistics {
        let widths = (0..self.num_windows()).into_par_iter().map(|window| {
            let panels = self.window_offsets[window + 1] - self.window_offsets[window];
            WindowStatistics::of_window(panels, self.num_stored_columns(window) as u64)
        });
        WindowStatistics::sum(self.window, num_entries, widths)
    }

    /// The panels of one window.
    pub(super) fn panels(&self, window: usize) -> Range<usize> {
        self.window_offsets[window] as usize..self.window_offsets[window + 1] as usize
    }

    /// The groups of one window, without its padding.
    pub(super) fn window_groups(&self, window: usize) -> &[u32] {
        real_groups(self.window, self.num_cols, &self.groups, self.panels(window))
    }

    /// How many columns of the matrix one window stores: all before the first element of padding.
    pub(super) fn num_stored_columns(&self, window: usize) -> usize {
        stored_columns(self.window, self.num_cols, self.window_groups(window))
    }
}

/// The groups of a window's panels, without padding, which is at their end.
pub(super) fn real_groups(shape: WindowShape, num_cols: usize, groups: &[u32], panels: Range<usize>) -> &[u32] {
    let (padding, per_panel) = (shape.padding(num_cols), shape.panel_groups());
    let groups = &groups[panels.start * per_panel..panels.end * per_panel];
    &groups[..groups.len() - groups.iter().rev().take_while(|&&group| group == padding).count()]
}

/// How many columns of the matrix these groups hold.
pub(super) fn stored_columns(shape: WindowShape, num_cols: usize, groups: &[u32]) -> usize {
    match groups {
        [] => 0,
        [before @ .., last] => before.len() * shape.group + shape.group.min(num_cols - *last as usize * shape.group),
    }
}

/// The panels of each window of a task, and their groups with padding.
fn union_panels(
    set: &mut GroupSet,
    windows: &Windows<'_>,
    task: &Range<usize>,
    num_cols: usize,
) -> (Vec<u64>, Vec<u32>) {
    let (mut panels, mut groups) = (Vec::with_capacity(task.len()), Vec::new());
    let (padding, per_panel) = (windows.shape.padding(num_cols), windows.shape.panel_groups());
    for window in task.clone() {
        let begin = groups.len();
        set.union(windows.columns(window), windows.group_shift(), &mut groups);
        let num_panels = (groups.len() - begin).div_ceil(per_panel);
        groups.resize(begin + num_panels * per_panel, padding);
        panels.push(num_panels as u64);
    }
    debug_assert_eq!(panels.iter().sum::<u64>() as usize * PANEL_COLS, groups.len() * windows.shape.group);
    (panels, groups)
}
