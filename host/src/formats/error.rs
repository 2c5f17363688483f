//! What a format refuses.

use core::fmt;

use super::{BlockShape, HeadsAxis, TileFault, WindowShape};

/// An axis of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Rows.
    Row,
    /// Columns.
    Column,
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Row => "row",
            Self::Column => "column",
        })
    }
}

/// Why a matrix was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormatError {
    /// An index lies outside the matrix.
    IndexOutOfRange {
        /// The axis of the index.
        axis: Axis,
        /// The index found, from 0.
        index: u64,
        /// The size of that axis.
        size: u64,
        /// The position of the entry, from 0.
        entry: u64,
    },
    /// An array does not have the length that the format demands.
    Length {
        /// The array's name.
        array: &'static str,
        /// The length demanded.
        expected: u64,
        /// The length found.
        found: u64,
    },
    /// An array ends before the last element that is read or written.
    TooShort {
        /// The array's name.
        array: &'static str,
        /// The least length.
        needed: u64,
        /// The length found.
        found: u64,
    },
    /// Lines of a dense matrix overlap.
    LeadingDimension {
        /// The length of a line.
        least: u64,
        /// The leading dimension found.
        found: u64,
    },
    /// Rows of a tensor of tokens and heads overlap.
    HeadsOverlap {
        /// The axis whose stride is too small.
        axis: HeadsAxis,
        /// The least stride.
        least: u64,
        /// The stride found.
        found: u64,
    },
    /// A tensor of tokens and heads reaches over more elements than can be addressed.
    HeadsTooMany {
        /// Sequences, tokens, heads, and elements of a row.
        dims: [u64; 4],
    },
    /// A matrix has more elements than can be addressed.
    SizeOverflow {
        /// Number of rows.
        num_rows: u64,
        /// Number of columns.
        num_cols: u64,
    },
    /// A range of rows or columns is reversed or ends outside of the matrix.
    RangeOutOfBounds {
        /// The axis of the range.
        axis: Axis,
        /// The first index.
        start: u64,
        /// The index after the last.
        end: u64,
        /// The size of that axis.
        size: u64,
    },
    /// An axis is longer than 32-bit indices reach.
    SizeTooLarge {
        /// The axis.
        axis: Axis,
        /// Its size.
        size: u64,
    },
    /// The words of a tile of three layers are not what a kernel may read.
    Tile {
        /// The tile, from 0, row of tiles after row of tiles.
        tile: u64,
        /// What is wrong with it.
        fault: TileFault,
    },
    /// The first row offset is not 0.
    FirstOffset {
        /// The offset found.
        found: u64,
    },
    /// A row ends before it begins.
    OffsetsDecrease {
        /// The row (or block row, or window), from 0.
        row: u64,
        /// Where it begins.
        begin: u64,
        /// Where it ends.
        end: u64,
    },
    /// The last row offset is not the number of entries (or blocks).
    LastOffset {
        /// The number of entries.
        expected: u64,
        /// The offset found.
        found: u64,
    },
    /// Within a row, a column does not come after the one before it.
    ColumnsNotIncreasing {
        /// The row (or block row), from 0.
        row: u64,
        /// The column before.
        previous: u32,
        /// The column found.
        found: u32,
    },
    /// A stored element that lies outside the matrix is not zero.
    PaddingNotZero {
        /// The element's row, from 0.
        row: u64,
        /// The element's column, from 0.
        col: u64,
    },
    /// A matrix of one size where one of another is wanted.
    OtherSize {
        /// Rows wanted.
        expected_rows: u64,
        /// Columns wanted.
        expected_cols: u64,
        /// Rows found.
        found_rows: u64,
        /// Columns found.
        found_cols: u64,
    },
    /// An entry lies in none of the blocks, or stored columns, of a pattern.
    OutsidePattern {
        /// The entry's row, from 0.
        row: u64,
        /// The entry's column, from 0.
        col: u64,
    },
    /// A block shape that is not offered.
    BlockShapeNotOffered {
        /// Rows asked for.
        rows: u64,
        /// Columns asked for.
        cols: u64,
    },
    /// A text that is no block shape.
    BlockShapeSyntax,
    /// A shape of windows that is not offered.
    WindowShapeNotOffered {
        /// Rows asked for.
        rows: u64,
        /// Columns of a group asked for.
        group: u64,
    },
    /// A text that is no shape of windows.
    WindowShapeSyntax,
    /// A column group that is neither one of the matrix nor padding.
    GroupOutOfRange {
        /// Its place among the groups of all windows, from 0.
        entry: u64,
        /// The group found.
        group: u32,
        /// The number of groups of the matrix, which is also what padding holds.
        num_groups: u32,
    },
    /// Within a window, a column group does not come after the one before it.
    GroupsNotIncreasing {
        /// The window, from 0.
        window: u64,
        /// The group before, or padding.
        previous: u32,
        /// The group found.
        found: u32,
    },
    /// A panel in which no column of the matrix is stored.
    PanelOfPadding {
        /// Its window, from 0.
        window: u64,
    },
    /// An order of rows that holds a row twice.
    RowRepeated {
        /// The row, from 0.
        row: u32,
        /// Its first place.
        first: u32,
        /// Its second place.
        second: u32,
    },
    /// The memory for a conversion cannot be had.
    OutOfMemory {
        /// Bytes wanted.
        bytes: u128,
    },
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IndexOutOfRange { axis, index, size, entry } => {
                write!(f, "entry {entry} has {axis} index {index}, but the matrix has {size} {axis}s")
            }
            Self::Length { array, expected, found } => {
                write!(f, "`{array}` has {found} elements, but {expected} are expected")
            }
            Self::TooShort { array, needed, found } => {
                write!(f, "`{array}` has {found} elements, but at least {needed} are needed")
            }
            Self::LeadingDimension { least, found } => {
                write!(f, "the leading dimension is {found}, but lines of {least} elements need at least {least}")
            }
            Self::HeadsOverlap { axis, least, found } => write!(
                f,
                "from {axis} to {axis} there are {found} elements, but {least} or more are needed, lest rows overlap"
            ),
            Self::HeadsTooMany { dims: [batch, tokens, heads, head_dim] } => {
                write!(f, "{batch} x {tokens} x {heads} x {head_dim} elements are more than memory can be addressed")
            }
            Self::SizeOverflow { num_rows, num_cols } => {
                write!(f, "a matrix of {num_rows} x {num_cols} elements is larger than memory can be addressed")
            }
            Self::RangeOutOfBounds { axis, start, end, size } => {
                write!(f, "{axis}s {start}..{end} are not a range of the matrix's {size} {axis}s")
            }
            Self::SizeTooLarge { axis, size } => {
                write!(f, "the matrix has {size} {axis}s, but at most {} are supported", u32::MAX)
            }
            Self::Tile { tile, fault } => write!(f, "tile {tile} is not one: {fault}"),
            Self::FirstOffset { found } => write!(f, "the first row offset is {found}, but it must be 0"),
            Self::OffsetsDecrease { row, begin, end } => {
                write!(f, "row {row} begins at {begin} and ends at {end}: row offsets must not decrease")
            }
            Self::LastOffset { expected, found } => {
                write!(f, "the last row offset is {found}, but there are {expected} column indices")
            }
            Self::ColumnsNotIncreasing { row, previous, found } => write!(
                f,
                "in row {row} column {found} comes after column {previous}: columns must increase strictly within a row"
            ),
            Self::PaddingNotZero { row, col } => {
                write!(f, "the element at row {row}, column {col} lies outside the matrix and must be zero")
            }
            Self::OtherSize { expected_rows, expected_cols, found_rows, found_cols } => {
                write!(f, "the matrix is {found_rows}x{found_cols}, but {expected_rows}x{expected_cols} is expected")
            }
            Self::OutsidePattern { row, col } => {
                write!(f, "the entry at row {row}, column {col} lies at no place that the pattern stores")
            }
            Self::BlockShapeNotOffered { rows, cols } => {
                write!(f, "blocks of {rows}x{cols} are not offered; ")?;
                write_list(f, &BlockShape::ALL)
            }
            Self::BlockShapeSyntax => {
                f.write_str("a block shape is written ROWSxCOLS, such as 128x64; ")?;
                write_list(f, &BlockShape::ALL)
            }
            Self::WindowShapeNotOffered { rows, group } => {
                write!(f, "windows of {rows} rows by groups of {group} columns are not offered; ")?;
                write_list(f, &WindowShape::ALL)
            }
            Self::WindowShapeSyntax => {
                f.write_str("a shape of windows is written ROWSxGROUP, such as 64x8; ")?;
                write_list(f, &WindowShape::ALL)
            }
            Self::GroupOutOfRange { entry, group, num_groups } => write!(
                f,
                "place {entry} of `groups` holds {group}, but the matrix has {num_groups} column groups, and padding is \
                 {num_groups}"
            ),
            Self::GroupsNotIncreasing { window, previous, found } => write!(
                f,
                "in window {window} column group {found} comes after {previous}: groups must increase strictly within a \
                 window, and padding must be last"
            ),
            Self::PanelOfPadding { window } => {
                write!(f, "window {window} has a panel of padding alone: it must end with a panel that stores a column")
            }
            Self::RowRepeated { row, first, second } => {
                write!(f, "row {row} stands at places {first} and {second} of the row order, but must stand at one")
            }
            Self::OutOfMemory { bytes } => write!(f, "{bytes} bytes of memory are wanted, and cannot be had"),
        }
    }
}

/// Lists the shapes on offer.
fn write_list(f: &mut fmt::Formatter<'_>, shapes: &[impl fmt::Display]) -> fmt::Result {
    f.write_str("the shapes offered are")?;
    for (index, shape) in shapes.iter().enumerate() {
        write!(f, "{} {shape}", if index == 0 { "" } else { "," })?;
    }
    Ok(())
}

impl std::error::Error for FormatError {}

/// Refuses an axis that 32-bit indices do not reach.
pub(crate) fn check_sizes(num_rows: usize, num_cols: usize) -> Result<(), FormatError> {
    for (axis, size) in [(Axis::Row, num_rows), (Axis::Column, num_cols)] {
        if size as u64 > u64::from(u32::MAX) {
            return Err(FormatError::SizeTooLarge { axis, size: size as u64 });
        }
    }
    Ok(())
}

/// Refuses an array of the wrong length.
pub(crate) fn check_length(array: &'static str, expected: usize, found: usize) -> Result<(), FormatError> {
    if expected == found {
        Ok(())
    } else {
        Err(FormatError::Length { array, expected: expected as u64, found: found as u64 })
    }
}

/// Checks offsets and column indices as both compressed formats demand: lengths, order, range.
///
/// `num_rows` and `num_cols` count rows and columns for CSR, block rows and block columns for BCSR.
pub(crate) fn check_compressed(
    num_rows: usize,
    num_cols: usize,
    row_offsets: &[u64],
    col_indices: &[u32],
) -> Result<(), FormatError> {
    check_length("row_offsets", num_rows + 1, row_offsets.len())?;
    if row_offsets[0] != 0 {
        return Err(FormatError::FirstOffset { found: row_offsets[0] });
    }
    for (row, pair) in row_offsets.windows(2).enumerate() {
        if pair[1] < pair[0] {
            return Err(FormatError::OffsetsDecrease { row: row as u64, begin: pair[0], end: pair[1] });
        }
    }
    let last = row_offsets[num_rows];
    if last != col_indices.len() as u64 {
        return Err(FormatError::LastOffset { expected: col_indices.len() as u64, found: last });
    }
    for (row, pair) in row_offsets.windows(2).enumerate() {
        let columns = &col_indices[pair[0] as usize..pair[1] as usize];
        for (index, &column) in columns.iter().enumerate() {
            if column as usize >= num_cols {
                return Err(FormatError::IndexOutOfRange {
                    axis: Axis::Column,
                    index: u64::from(column),
                    size: num_cols as u64,
                    entry: pair[0] + index as u64,
                });
            }
            if index > 0 && columns[index - 1] >= column {
                return Err(FormatError::ColumnsNotIncreasing {
                    row: row as u64,
                    previous: columns[index - 1],
                    found: column,
                });
            }
        }
    }
    Ok(())
}
