//! The formats and configurations that are compared.

use core::fmt;

use crate::formats::{BlockShape, WindowShape};

/// A format of A on a device, with its shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Compressed rows, on the CUDA cores.
    Csr,
    /// Dense blocks, on the tensor cores.
    Bcsr(BlockShape),
    /// Windows of rows, on the tensor cores.
    Wcsr(WindowShape),
}

impl Format {
    /// The window shapes that are compared: those with kernels.
    pub const WINDOWS: [WindowShape; 8] = [
        WindowShape { rows: 8, group: 8 },
        WindowShape { rows: 8, group: 1 },
        WindowShape { rows: 16, group: 8 },
        WindowShape { rows: 16, group: 1 },
        WindowShape { rows: 64, group: 8 },
        WindowShape { rows: 64, group: 1 },
        WindowShape { rows: 128, group: 8 },
        WindowShape { rows: 128, group: 1 },
    ];

    /// Every format that is compared, once.
    pub fn all() -> impl Iterator<Item = Self> {
        let blocks = BlockShape::ALL.into_iter().map(Self::Bcsr);
        core::iter::once(Self::Csr).chain(blocks).chain(Self::WINDOWS.into_iter().map(Self::Wcsr))
    }
}

/// As the command writes it: `csr`, `bcsr:128x64`, `wcsr:64x8`.
impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Csr => f.pad("csr"),
            Self::Bcsr(block) => f.pad(&format!("bcsr:{block}")),
            Self::Wcsr(window) => f.pad(&format!("wcsr:{window}")),
        }
    }
}
