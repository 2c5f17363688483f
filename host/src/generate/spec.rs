//! A generated matrix as a word of the command line.

use core::fmt;
use core::str::FromStr;

use super::{Lookalike, banded, blocks, fem, rmat, uniform};
use crate::formats::{BlockShape, Csr, FormatError};
use crate::io::Excerpt;
use crate::memory::require_memory;

/// A kind of generated matrix, with its sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Generator {
    /// See [`fem`](super::fem).
    Fem {
        /// Rows and columns.
        num_rows: u32,
    },
    /// See [`rmat`](super::rmat).
    Rmat {
        /// The binary logarithm of the number of rows, at most 31.
        scale: u32,
        /// Edges drawn for each row.
        edges_per_row: u32,
    },
    /// See [`banded`](super::banded).
    Banded {
        /// Rows and columns.
        num_rows: u32,
        /// Entries on either side of the diagonal.
        half_bandwidth: u32,
    },
    /// See [`blocks`](super::blocks).
    Blocks {
        /// Rows.
        num_rows: u32,
        /// Columns.
        num_cols: u32,
        /// The shape of a block.
        block: BlockShape,
        /// Share of blocks that are there, 0 to 1.
        density: f64,
    },
    /// See [`uniform`](super::uniform).
    Uniform {
        /// Rows.
        num_rows: u32,
        /// Columns.
        num_cols: u32,
        /// Share of elements that are there, 0 to 1.
        density: f64,
    },
    /// See [`Lookalike`].
    Lookalike(&'static Lookalike),
}

/// A generated matrix: what, and from which seed.
///
/// As a text: `fem:ROWS`, `rmat:SCALE,EDGES`, `banded:ROWS,HALF`, `blocks:ROWSxCOLS,BLOCK,DENSITY`,
/// `uniform:ROWSxCOLS,DENSITY` or `lookalike:NAME`, each with `,seed=NUMBER` behind it if the seed is not 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GeneratorSpec {
    /// What to generate.
    pub generator: Generator,
    /// Where the random numbers begin.
    pub seed: u64,
}

/// What the generators are called and take, in the order of [`Generator`].
const USAGES: [(&str, &str); 6] = [
    ("fem", "fem:ROWS, as in fem:20000"),
    ("rmat", "rmat:SCALE,EDGES, as in rmat:15,8"),
    ("banded", "banded:ROWS,HALF, as in banded:10000,32"),
    ("blocks", "blocks:ROWSxCOLS,BLOCK,DENSITY, as in blocks:8192x8192,128x64,0.1"),
    ("uniform", "uniform:ROWSxCOLS,DENSITY, as in uniform:4096x4096,0.01"),
    ("lookalike", "lookalike:NAME, as in lookalike:cant"),
];

/// Why a text specifies no matrix, or why it is not generated.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GeneratorError {
    /// No generator has this name.
    Unknown {
        /// The name found.
        found: Excerpt,
    },
    /// The wrong number of arguments.
    Arguments {
        /// How it is written.
        usage: &'static str,
        /// Arguments found, the seed apart.
        found: u64,
    },
    /// An argument that is not what stands at its place.
    Argument {
        /// How it is written.
        usage: &'static str,
        /// What is expected there.
        expected: &'static str,
        /// What stands there.
        found: Excerpt,
    },
    /// No look-alike has this name.
    UnknownLookalike {
        /// The name found.
        found: Excerpt,
    },
    /// A block shape that is none.
    Block(FormatError),
    /// The matrix would not fit memory.
    OutOfMemory {
        /// Bytes wanted, about.
        bytes: u128,
    },
}

impl fmt::Display for GeneratorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { found } => {
                write!(f, "no generator is called {found}; there are ")?;
                write_list(f, USAGES.iter().map(|(name, _)| *name))
            }
            Self::UnknownLookalike { found } => {
                write!(f, "no look-alike is called {found}; there are ")?;
                write_list(f, Lookalike::all().iter().map(Lookalike::name))
            }
            Self::Arguments { usage, found } => {
                write!(f, "found {found} arguments; it is written {usage}, and may end with ,seed=NUMBER")
            }
            Self::Argument { usage, expected, found } => {
                write!(f, "expected {expected}, found {found}; it is written {usage}")
            }
            Self::Block(error) => error.fmt(f),
            Self::OutOfMemory { bytes } => {
                write!(f, "the matrix would take about {bytes} bytes of memory, which cannot be had")
            }
        }
    }
}

/// Names, the last behind `and`.
fn write_list(f: &mut fmt::Formatter<'_>, mut names: impl ExactSizeIterator<Item = &'static str>) -> fmt::Result {
    if let Some(first) = names.next() {
        f.write_str(first)?;
    }
    while let Some(name) = names.next() {
        let separator = if names.len() == 0 { " and " } else { ", " };
        write!(f, "{separator}{name}")?;
    }
    Ok(())
}

impl std::error::Error for GeneratorError {}

/// The arguments of a generator, and how it is written.
struct Arguments<'a> {
    usage: &'static str,
    words: Vec<&'a str>,
}

impl Arguments<'_> {
    fn refuse(&self, expected: &'static str, index: usize) -> GeneratorError {
        let found = Excerpt::new(self.words[index].as_bytes());
        GeneratorError::Argument { usage: self.usage, expected, found }
    }

    fn expect(&self, count: usize) -> Result<(), GeneratorError> {
        if self.words.len() == count {
            Ok(())
        } else {
            Err(GeneratorError::Arguments { usage: self.usage, found: self.words.len() as u64 })
        }
    }

    fn number(&self, index: usize) -> Result<u32, GeneratorError> {
        self.words[index].parse().map_err(|_| self.refuse("a whole number of at most 32 bits", index))
    }

    fn size(&self, index: usize) -> Result<(u32, u32), GeneratorError> {
        let sides = self.words[index].split_once(['x', 'X']);
        sides
            .and_then(|(rows, cols)| Some((rows.parse().ok()?, cols.parse().ok()?)))
            .ok_or_else(|| self.refuse("rows and columns such as 4096x4096", index))
    }

    fn density(&self, index: usize) -> Result<f64, GeneratorError> {
        self.words[index]
            .parse()
            .ok()
            .filter(|density| (0.0..=1.0).contains(density))
            .ok_or_else(|| self.refuse("a density from 0 to 1", index))
    }
}

impl GeneratorSpec {
    /// Reads a specification as the type's documentation writes it.
    ///
    /// # Errors
    /// [`GeneratorError`], with how the generator is written.
    pub fn parse(text: &str) -> Result<Self, GeneratorError> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let Some(&(name, usage)) = USAGES.iter().find(|(known, _)| name.trim().eq_ignore_ascii_case(known)) else {
            return Err(GeneratorError::Unknown { found: Excerpt::new(name.as_bytes()) });
        };
        let words = rest.split(',').map(str::trim).filter(|_| !rest.trim().is_empty()).collect();
        let mut arguments = Arguments { usage, words };
        let mut seed = 0;
        if let Some(number) = arguments.words.last().and_then(|word| word.strip_prefix("seed=")) {
            let last = arguments.words.len() - 1;
            seed = number.parse().map_err(|_| arguments.refuse("seed= and a whole number", last))?;
            arguments.words.pop();
        }
        let generator = match name {
            "fem" => {
                arguments.expect(1)?;
                Generator::Fem { num_rows: arguments.number(0)? }
            }
            "rmat" => {
                arguments.expect(2)?;
                let scale = arguments.number(0)?;
                if scale > 31 {
                    return Err(arguments.refuse("a scale of at most 31", 0));
                }
                Generator::Rmat { scale, edges_per_row: arguments.number(1)? }
            }
            "banded" => {
                arguments.expect(2)?;
                Generator::Banded { num_rows: arguments.number(0)?, half_bandwidth: arguments.number(1)? }
            }
            "blocks" => {
                arguments.expect(3)?;
                let (num_rows, num_cols) = arguments.size(0)?;
                let block = BlockShape::parse(arguments.words[1]).map_err(GeneratorError::Block)?;
                Generator::Blocks { num_rows, num_cols, block, density: arguments.density(2)? }
            }
            "lookalike" => {
                arguments.expect(1)?;
                let name = arguments.words[0];
                let unknown = || GeneratorError::UnknownLookalike { found: Excerpt::new(name.as_bytes()) };
                Generator::Lookalike(Lookalike::find(name).ok_or_else(unknown)?)
            }
            _ => {
                arguments.expect(2)?;
                let (num_rows, num_cols) = arguments.size(0)?;
                Generator::Uniform { num_rows, num_cols, density: arguments.density(1)? }
            }
        };
        Ok(Self { generator, seed })
    }

    /// What a report calls the matrix: its text, or the name of the matrix that it imitates and that it is a look-alike.
    pub fn label(&self) -> String {
        match self.generator {
            Generator::Lookalike(matrix) if self.seed == 0 => matrix.label(),
            Generator::Lookalike(matrix) => format!("{}, seed={}", matrix.label(), self.seed),
            _ => self.to_string(),
        }
    }

    /// Entries that the matrix has, or a bound on them.
    fn max_entries(&self) -> u128 {
        match self.generator {
            Generator::Fem { num_rows } => u128::from(num_rows) * 81,
            Generator::Rmat { scale, edges_per_row } => u128::from(edges_per_row) << scale.min(31),
            Generator::Banded { num_rows, half_bandwidth } => {
                u128::from(num_rows) * u128::from(num_rows.min(half_bandwidth.saturating_mul(2).saturating_add(1)))
            }
            Generator::Blocks { num_rows, num_cols, density, .. }
            | Generator::Uniform { num_rows, num_cols, density } => {
                (f64::from(num_rows) * f64::from(num_cols) * density) as u128
            }
            // Graphs are drawn edge by edge before they are sorted by rows.
            Generator::Lookalike(matrix) => u128::from(matrix.num_entries()) * 2,
        }
    }

    fn num_rows(&self) -> u64 {
        match self.generator {
            Generator::Fem { num_rows }
            | Generator::Banded { num_rows, .. }
            | Generator::Blocks { num_rows, .. }
            | Generator::Uniform { num_rows, .. } => num_rows.into(),
            Generator::Rmat { scale, .. } => 1 << scale.min(31),
            Generator::Lookalike(matrix) => matrix.num_rows() as u64,
        }
    }

    /// Generates the matrix.
    ///
    /// # Errors
    /// [`GeneratorError::OutOfMemory`] where the machine refuses the memory that it takes.
    pub fn generate(&self) -> Result<Csr<f32>, GeneratorError> {
        // Position, column and value of each entry, and the offsets.
        let bytes = self.max_entries() * 16 + u128::from(self.num_rows()) * 8;
        require_memory(bytes).map_err(|bytes| GeneratorError::OutOfMemory { bytes })?;
        let seed = self.seed;
        Ok(match self.generator {
            Generator::Fem { num_rows } => fem(num_rows, seed),
            Generator::Rmat { scale, edges_per_row } => rmat(scale, edges_per_row, seed),
            Generator::Banded { num_rows, half_bandwidth } => banded(num_rows, half_bandwidth, seed),
            Generator::Blocks { num_rows, num_cols, block, density } => {
                blocks(num_rows, num_cols, block, density, seed)
            }
            Generator::Uniform { num_rows, num_cols, density } => uniform(num_rows, num_cols, density, seed),
            Generator::Lookalike(matrix) => matrix.generate(seed),
        })
    }
}

impl FromStr for GeneratorSpec {
    type Err = GeneratorError;

    fn from_str(text: &str) -> Result<Self, GeneratorError> {
        Self::parse(text)
    }
}

impl fmt::Display for GeneratorSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.generator {
            Generator::Fem { num_rows } => write!(f, "fem:{num_rows}"),
            Generator::Rmat { scale, edges_per_row } => write!(f, "rmat:{scale},{edges_per_row}"),
            Generator::Banded { num_rows, half_bandwidth } => write!(f, "banded:{num_rows},{half_bandwidth}"),
            Generator::Blocks { num_rows, num_cols, block, density } => {
                write!(f, "blocks:{num_rows}x{num_cols},{block},{density}")
            }
            Generator::Uniform { num_rows, num_cols, density } => write!(f, "uniform:{num_rows}x{num_cols},{density}"),
            Generator::Lookalike(matrix) => write!(f, "lookalike:{}", matrix.name()),
        }?;
        if self.seed == 0 { Ok(()) } else { write!(f, ",seed={}", self.seed) }
    }
}
