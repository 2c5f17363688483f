//! Which 16-byte units of shared memory change places. PTX ISA 5.5.7.

/// The swizzle of a box in shared memory: which 16-byte units of its lines change places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorSwizzle {
    /// None.
    None,
    /// Address bit 4 is xored with bit 7.
    B32,
    /// Address bits 4 and 5 are xored with bits 7 and 8.
    B64,
    /// Address bits 4 to 6 are xored with bits 7 to 9.
    B128,
}

impl TensorSwizzle {
    /// Bytes of the lines within which units change places; `None` where none do.
    pub const fn span_bytes(self) -> Option<u32> {
        match self {
            Self::None => None,
            Self::B32 => Some(32),
            Self::B64 => Some(64),
            Self::B128 => Some(128),
        }
    }

    /// Where the byte lies that would lie at `address` without the swizzle. PTX ISA 5.5.7.
    pub const fn apply(self, address: u32) -> u32 {
        match self.span_bytes() {
            None => address,
            Some(span) => address ^ (((address >> 7) & (span / 16 - 1)) << 4),
        }
    }
}
