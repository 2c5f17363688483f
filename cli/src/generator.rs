//! Generated matrices, as the command line names them.

use core::fmt;
use std::str::FromStr;

/// A kind of matrix and its sizes: `fem:20`, `rmat:14:8`, `banded:10000:16`, `blocks:8192x8192:128x64:0.1`, `uniform:1000x2000:0.01`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Generator {
    /// A mesh of `nodes[0]` x `nodes[1]` x `nodes[2]` nodes with 3 unknowns each.
    Fem {
        /// Nodes along each axis.
        nodes: [usize; 3],
    },
    /// A graph of 2^`scale` vertices.
    Rmat {
        /// The logarithm of the number of vertices.
        scale: u32,
        /// Edges of a vertex, on average.
        degree: usize,
    },
    /// Every entry within `width` of the diagonal.
    Banded {
        /// Rows and columns.
        size: usize,
        /// The farthest diagonal.
        width: usize,
    },
    /// Full blocks at random places.
    Blocks {
        /// Rows of the matrix.
        num_rows: usize,
        /// Columns of the matrix.
        num_cols: usize,
        /// Rows of a block.
        block_rows: usize,
        /// Columns of a block.
        block_cols: usize,
        /// Blocks that are full, 0 to 1.
        density: f64,
    },
    /// Entries at random places.
    Uniform {
        /// Rows.
        num_rows: usize,
        /// Columns.
        num_cols: usize,
        /// Entries over elements, 0 to 1.
        density: f64,
    },
}

/// The largest size along one axis: what a 32-bit index reaches.
const MAX_SIZE: usize = u32::MAX as usize;

impl FromStr for Generator {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, sizes) = text.split_once(':').unwrap_or((text, ""));
        let fields: Vec<&str> = if sizes.is_empty() { Vec::new() } else { sizes.split(':').collect() };
        match (kind, fields.as_slice()) {
            ("fem", [nodes]) => Ok(Self::Fem { nodes: parse_nodes(nodes)? }),
            ("rmat", [scale, degree]) => match scale.parse::<u32>() {
                Ok(scale @ 1..=30) => Ok(Self::Rmat { scale, degree: parse_size(degree)? }),
                _ => Err(format!("the scale of rmat is a whole number from 1 to 30, not `{scale}`")),
            },
            ("banded", [size, width]) => Ok(Self::Banded { size: parse_size(size)?, width: parse_width(width)? }),
            ("blocks", [shape, block, density]) => {
                let (num_rows, num_cols) = parse_pair(shape)?;
                let (block_rows, block_cols) = parse_pair(block)?;
                Ok(Self::Blocks { num_rows, num_cols, block_rows, block_cols, density: parse_density(density)? })
            }
            ("uniform", [shape, density]) => {
                let (num_rows, num_cols) = parse_pair(shape)?;
                Ok(Self::Uniform { num_rows, num_cols, density: parse_density(density)? })
            }
            ("fem", _) => Err("expected fem:NX or fem:NXxNYxNZ".to_owned()),
            ("rmat", _) => Err("expected rmat:SCALE:DEGREE".to_owned()),
            ("banded", _) => Err("expected banded:N:WIDTH".to_owned()),
            ("blocks", _) => Err("expected blocks:MxK:RxC:DENSITY".to_owned()),
            ("uniform", _) => Err("expected uniform:MxK:DENSITY".to_owned()),
            _ => Err("expected fem:..., rmat:..., banded:..., blocks:... or uniform:...".to_owned()),
        }
    }
}

impl fmt::Display for Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Fem { nodes: [x, y, z] } => write!(f, "fem:{x}x{y}x{z}"),
            Self::Rmat { scale, degree } => write!(f, "rmat:{scale}:{degree}"),
            Self::Banded { size, width } => write!(f, "banded:{size}:{width}"),
            Self::Blocks { num_rows, num_cols, block_rows, block_cols, density } => {
                write!(f, "blocks:{num_rows}x{num_cols}:{block_rows}x{block_cols}:{density}")
            }
            Self::Uniform { num_rows, num_cols, density } => write!(f, "uniform:{num_rows}x{num_cols}:{density}"),
        }
    }
}

/// A size of at least 1, with `k` for thousands and `M` for millions.
fn parse_size(text: &str) -> Result<usize, String> {
    match parse_width(text)? {
        0 => Err("a size is at least 1, not 0".to_owned()),
        size => Ok(size),
    }
}

/// A size that may be 0.
fn parse_width(text: &str) -> Result<usize, String> {
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'k') => (&text[..text.len() - 1], 1_000),
        Some(b'M') => (&text[..text.len() - 1], 1_000_000),
        _ => (text, 1),
    };
    digits
        .parse::<usize>()
        .ok()
        .and_then(|value| value.checked_mul(unit))
        .filter(|&size| size <= MAX_SIZE)
        .ok_or_else(|| format!("expected a whole number up to {MAX_SIZE}, found `{text}`"))
}

fn parse_pair(text: &str) -> Result<(usize, usize), String> {
    let (rows, cols) = text.split_once('x').ok_or_else(|| format!("expected rows x columns, as in 512x256, found `{text}`"))?;
    Ok((parse_size(rows)?, parse_size(cols)?))
}

fn parse_nodes(text: &str) -> Result<[usize; 3], String> {
    let sizes = text.split('x').map(parse_size).collect::<Result<Vec<_>, _>>()?;
    match sizes[..] {
        [side] => Ok([side; 3]),
        [x, y, z] => Ok([x, y, z]),
        _ => Err("expected fem:NX or fem:NXxNYxNZ".to_owned()),
    }
}

fn parse_density(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(density) if (0.0..=1.0).contains(&density) => Ok(density),
        _ => Err(format!("a density is a number from 0 to 1, not `{text}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for text in
            ["fem:20x10x5", "rmat:14:8", "banded:1000:0", "blocks:512x256:64x32:0.25", "uniform:1000x2000:0.01"]
        {
            assert_eq!(text.parse::<Generator>().unwrap().to_string(), text);
        }
        assert_eq!("fem:20".parse(), Ok(Generator::Fem { nodes: [20; 3] }));
        assert_eq!("banded:2M:3k".parse(), Ok(Generator::Banded { size: 2_000_000, width: 3_000 }));
    }

    #[test]
    fn what_makes_no_matrix_is_refused() {
        for text in [
            "", "fem", "fem:", "fem:0", "fem:2x3", "fem:k", "rmat:0:8", "rmat:31:8", "rmat:14", "banded:9", "banded:5000M:1",
            "blocks:512x512:64x64", "blocks:512:64x64:0.5", "uniform:9x9:1.5", "uniform:9x9:nan", "ring:9",
        ] {
            assert!(text.parse::<Generator>().is_err(), "{text} was accepted");
        }
    }
}
