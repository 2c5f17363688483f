//! What a windowed matrix must keep.

use super::pattern::{real_groups, stored_columns};
use super::{PANEL_COLS, RowOrder, WcsrView, WindowShape};
use crate::element::Element;
use crate::formats::FormatError;
use crate::formats::error::{check_length, check_sizes};

/// Checks the invariants of [`WcsrPattern`](super::WcsrPattern).
pub(super) fn check_pattern(
    num_rows: usize,
    num_cols: usize,
    window: WindowShape,
    window_offsets: &[u64],
    groups: &[u32],
    order: Option<&RowOrder>,
) -> Result<(), FormatError> {
    let window = window.offered()?;
    check_sizes(num_rows, num_cols)?;
    check_length("window_offsets", num_rows.div_ceil(window.rows) + 1, window_offsets.len())?;
    if window_offsets[0] != 0 {
        return Err(FormatError::FirstOffset { found: window_offsets[0] });
    }
    for (row, pair) in window_offsets.windows(2).enumerate() {
        if pair[1] < pair[0] {
            return Err(FormatError::OffsetsDecrease { row: row as u64, begin: pair[0], end: pair[1] });
        }
    }
    let num_panels = window_offsets[window_offsets.len() - 1];
    let expected = num_panels.saturating_mul(window.panel_groups() as u64);
    if groups.len() as u64 != expected {
        return Err(FormatError::Length { array: "groups", expected, found: groups.len() as u64 });
    }
    if let Some(order) = order {
        check_length("rows", num_rows, order.rows().len())?;
    }
    let padding = window.padding(num_cols);
    for (index, pair) in window_offsets.windows(2).enumerate() {
        check_window(index, pair[0] as usize..pair[1] as usize, window, padding, groups)?;
    }
    Ok(())
}

/// Checks the groups of one window.
fn check_window(
    index: usize,
    panels: core::ops::Range<usize>,
    window: WindowShape,
    padding: u32,
    groups: &[u32],
) -> Result<(), FormatError> {
    let begin = panels.start * window.panel_groups();
    let groups = &groups[begin..panels.end * window.panel_groups()];
    for (place, &group) in groups.iter().enumerate() {
        if group > padding {
            return Err(FormatError::GroupOutOfRange { entry: (begin + place) as u64, group, num_groups: padding });
        }
        if place > 0 && groups[place - 1] >= group && (groups[place - 1], group) != (padding, padding) {
            let previous = groups[place - 1];
            return Err(FormatError::GroupsNotIncreasing { window: index as u64, previous, found: group });
        }
    }
    // Padding is behind all else by now, so that the first group of the last panel tells.
    match groups.len().checked_sub(window.panel_groups()) {
        Some(last_panel) if groups[last_panel] == padding => Err(FormatError::PanelOfPadding { window: index as u64 }),
        _ => Ok(()),
    }
}

/// Checks the values of a matrix whose pattern is right: their number, and that all outside of the matrix is zero. It
/// would be multiplied like an element.
pub(super) fn check_values<T: Element>(matrix: &WcsrView<'_, T>) -> Result<(), FormatError> {
    let WcsrView { num_rows, num_cols, window, window_offsets, groups, values, .. } = *matrix;
    let elements = groups.len() / window.panel_groups() * window.panel_elements();
    check_length("values", elements, values.len())?;
    for (index, pair) in window_offsets.windows(2).enumerate() {
        let panels = pair[0] as usize..pair[1] as usize;
        let stored = real_groups(window, num_cols, groups, panels.clone());
        let stored_columns = stored_columns(window, num_cols, stored);
        let (first_place, num_columns) = (index * window.rows, panels.len() * PANEL_COLS);
        let outside = (0..window.rows).flat_map(|row| {
            let first = if first_place + row < num_rows { stored_columns } else { 0 };
            (first..num_columns).map(move |column| (row, column))
        });
        for (row, column) in outside {
            let panel = panels.start + column / PANEL_COLS;
            if values[(panel * window.rows + row) * PANEL_COLS + column % PANEL_COLS] != T::ZERO {
                let place = first_place + row;
                let row =
                    matrix.order.and_then(|order| order.rows().get(place)).map_or(place as u64, |&row| row.into());
                let group = groups[panels.start * window.panel_groups() + column / window.group];
                let col = u64::from(group) * window.group as u64 + (column % window.group) as u64;
                return Err(FormatError::PaddingNotZero { row, col });
            }
        }
    }
    Ok(())
}
