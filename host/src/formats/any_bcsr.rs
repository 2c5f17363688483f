//! A block-sparse matrix whose block shape is chosen at run time.

use super::{Bcsr, BcsrView, BlockShape, Csr, CsrView, Dense, FormatError};
use crate::element::Element;

macro_rules! any_bcsr {
    ($($variant:ident => $rows:literal x $cols:literal),+ $(,)?) => {
        /// A [`Bcsr`] matrix of any shape on offer.
        #[derive(Clone, Debug, PartialEq)]
        pub enum AnyBcsr<T> {
            $(
                #[doc = concat!("Blocks of ", $rows, "x", $cols, ".")]
                $variant(Bcsr<T, $rows, $cols>),
            )+
        }

        impl<T: Element> AnyBcsr<T> {
            /// Takes offsets, block columns and the elements of each block, of the given shape.
            ///
            /// # Errors
            /// As [`Bcsr::try_new`], and [`FormatError::BlockShapeNotOffered`].
            pub fn try_new(
                num_rows: usize,
                num_cols: usize,
                block: BlockShape,
                row_offsets: Vec<u64>,
                col_indices: Vec<u32>,
                values: Vec<T>,
            ) -> Result<Self, FormatError> {
                match (block.rows, block.cols) {
                    $(
                        ($rows, $cols) => {
                            Bcsr::try_new(num_rows, num_cols, row_offsets, col_indices, values).map(Self::$variant)
                        }
                    )+
                    (rows, cols) => {
                        Err(FormatError::BlockShapeNotOffered { rows: rows as u64, cols: cols as u64 })
                    }
                }
            }

            /// The same matrix in blocks of the given shape. Values are moved bit for bit.
            ///
            /// # Errors
            /// As [`Bcsr::from_csr`], and [`FormatError::BlockShapeNotOffered`].
            pub fn from_csr(matrix: CsrView<'_, T>, block: BlockShape) -> Result<Self, FormatError> {
                match (block.rows, block.cols) {
                    $( ($rows, $cols) => Bcsr::from_csr(matrix).map(Self::$variant), )+
                    (rows, cols) => {
                        Err(FormatError::BlockShapeNotOffered { rows: rows as u64, cols: cols as u64 })
                    }
                }
            }

            /// The whole matrix, borrowed; it tells its shape.
            pub fn view(&self) -> BcsrView<'_, T> {
                match self {
                    $( Self::$variant(matrix) => matrix.view(), )+
                }
            }

            /// As [`Bcsr::cast`].
            pub fn cast<U: Element>(&self) -> AnyBcsr<U> {
                match self {
                    $( Self::$variant(matrix) => AnyBcsr::$variant(matrix.cast()), )+
                }
            }

            /// As [`Bcsr::to_csr`].
            pub fn to_csr(&self) -> Csr<T> {
                match self {
                    $( Self::$variant(matrix) => matrix.to_csr(), )+
                }
            }

            /// As [`Bcsr::to_dense`].
            ///
            /// # Errors
            /// As [`Bcsr::to_dense`].
            pub fn to_dense(&self) -> Result<Dense<T>, FormatError> {
                match self {
                    $( Self::$variant(matrix) => matrix.to_dense(), )+
                }
            }
        }

        $(
            impl<T> From<Bcsr<T, $rows, $cols>> for AnyBcsr<T> {
                fn from(matrix: Bcsr<T, $rows, $cols>) -> Self {
                    Self::$variant(matrix)
                }
            }
        )+
    };
}

any_bcsr! {
    B64x16 => 64 x 16,
    B64x32 => 64 x 32,
    B64x64 => 64 x 64,
    B64x128 => 64 x 128,
    B128x16 => 128 x 16,
    B128x32 => 128 x 32,
    B128x64 => 128 x 64,
    B128x128 => 128 x 128,
}

impl<T: Element> AnyBcsr<T> {
    /// Number of rows of the matrix.
    pub fn num_rows(&self) -> usize {
        self.view().num_rows
    }

    /// Number of columns of the matrix.
    pub fn num_cols(&self) -> usize {
        self.view().num_cols
    }

    /// The shape of a block.
    pub fn block(&self) -> BlockShape {
        self.view().block
    }

    /// Number of stored blocks.
    pub fn num_blocks(&self) -> usize {
        self.view().num_blocks()
    }
}
