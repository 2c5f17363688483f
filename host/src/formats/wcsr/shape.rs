//! The shapes of windows on offer.

use core::fmt;
use core::str::FromStr;

use crate::formats::FormatError;

/// Stored columns of a panel: the K step of a tensor core's product of 16-bit elements.
pub const PANEL_COLS: usize = 16;

/// The shape of a window, at run time: rows 8, 16, 64 or 128; columns stored by groups of 1 or 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WindowShape {
    /// Rows of a window.
    pub rows: usize,
    /// Columns of a group: where one of them is stored, all are. Group g stands for columns g * group .. (g + 1) * group.
    pub group: usize,
}

impl WindowShape {
    /// Every shape on offer.
    pub const ALL: [Self; 8] = [
        Self { rows: 8, group: 1 },
        Self { rows: 8, group: 8 },
        Self { rows: 16, group: 1 },
        Self { rows: 16, group: 8 },
        Self { rows: 64, group: 1 },
        Self { rows: 64, group: 8 },
        Self { rows: 128, group: 1 },
        Self { rows: 128, group: 8 },
    ];

    /// Whether [`ALL`](Self::ALL) holds this shape.
    pub const fn is_offered(self) -> bool {
        matches!(self.rows, 8 | 16 | 64 | 128) && matches!(self.group, 1 | 8)
    }

    /// A shape on offer.
    ///
    /// # Errors
    /// [`FormatError::WindowShapeNotOffered`] for every other shape.
    pub const fn try_new(rows: usize, group: usize) -> Result<Self, FormatError> {
        Self { rows, group }.offered()
    }

    /// This shape, where it is on offer: its fields can be set to anything.
    pub(super) const fn offered(self) -> Result<Self, FormatError> {
        if self.is_offered() {
            Ok(self)
        } else {
            Err(FormatError::WindowShapeNotOffered { rows: self.rows as u64, group: self.group as u64 })
        }
    }

    /// Reads `ROWSxGROUP`, such as `64x8`.
    ///
    /// # Errors
    /// [`FormatError::WindowShapeSyntax`] where `text` is not two numbers around an `x`;
    /// [`FormatError::WindowShapeNotOffered`] where they are no shape on offer.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        let (rows, group) = text.split_once(['x', 'X']).ok_or(FormatError::WindowShapeSyntax)?;
        let number = |text: &str| text.trim().parse::<usize>().map_err(|_| FormatError::WindowShapeSyntax);
        Self::try_new(number(rows)?, number(group)?)
    }

    /// Elements of one panel: `rows` lines of [`PANEL_COLS`].
    pub const fn panel_elements(self) -> usize {
        self.rows * PANEL_COLS
    }

    /// Column groups of one panel of a shape on offer.
    pub const fn panel_groups(self) -> usize {
        PANEL_COLS / self.group
    }

    /// The index that stands for no group of a matrix of `num_cols` columns, at most 2^32 - 1: the one behind the last. For
    /// a shape on offer.
    pub const fn padding(self, num_cols: usize) -> u32 {
        num_cols.div_ceil(self.group) as u32
    }
}

impl FromStr for WindowShape {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        Self::parse(text)
    }
}

impl fmt::Display for WindowShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.rows, self.group)
    }
}
