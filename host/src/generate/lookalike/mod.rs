//! Look-alikes of matrices that papers measure on: generated, at full size, where the files are not at hand.

mod edges;
mod lattice;
mod optimisation;
mod scatter;
mod table;
#[cfg(test)]
mod tests;
mod webs;
mod zipf;

use core::fmt;

use super::{position, symmetric_position, with_values};
use crate::formats::{Csr, CsrPattern};
use edges::{Edges, Kronecker};
use lattice::{Mesh, Roads};
use optimisation::{Arrow, Kkt, Strips};
use webs::Webs;

/// What a matrix comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LookalikeKind {
    /// Finite elements with several unknowns a node.
    FiniteElements,
    /// Grids with one unknown a node.
    Grid,
    /// Social networks and other undirected graphs.
    Graph,
    /// Road networks.
    Road,
    /// Pages and their links.
    Web,
    /// Electric circuits.
    Circuit,
    /// Optimisation and power flow.
    Optimisation,
}

impl LookalikeKind {
    /// A name for a class of matrices: `finite-elements`, `grid`, ...
    pub const fn name(self) -> &'static str {
        match self {
            Self::FiniteElements => "finite-elements",
            Self::Grid => "grid",
            Self::Graph => "graph",
            Self::Road => "road",
            Self::Web => "web",
            Self::Circuit => "circuit",
            Self::Optimisation => "optimisation",
        }
    }
}

impl fmt::Display for LookalikeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A matrix that can be imitated. All are square.
///
/// A look-alike has the rows of the matrix whose name it bears, its number of entries within 1 %, and what decides how
/// fast a product is: rows of about the same mean and greatest length, and rows that share their columns with those near
/// them as matrices of its kind do. It is **not** that matrix. Not reproduced are the values, the exact places, the order
/// that its makers gave the rows, communities and other structure beyond what [`Lookalike::law`] says, and asymmetry where
/// a law is symmetric. So whoever shows a result on one says "look-alike": [`Lookalike::label`] does.
///
/// Rows and entries (both halves of a symmetric matrix) are those of the list of 414 SuiteSparse matrices that DTC-SpMM
/// (Fan, Wang and Chu, ASPLOS 2024) publishes with its code. The greatest lengths are as publications give them; nobody has
/// checked them against the files here, and they are met within a quarter. `docs/look-alikes.md` has a table of what came
/// out.
///
/// ```
/// use hopper_sparse::generate::Lookalike;
///
/// let cant = Lookalike::find("cant").expect("it is in the table");
/// assert_eq!((cant.num_rows(), cant.num_entries()), (62_451, 4_007_383));
/// assert_eq!(cant.label(), "cant (look-alike)");
/// ```
#[derive(Debug, PartialEq)]
pub struct Lookalike {
    name: &'static str,
    kind: LookalikeKind,
    size: Size,
    rule: Rule,
    law: &'static str,
}

impl Lookalike {
    /// All of them, kind by kind.
    pub fn all() -> &'static [Self] {
        table::TABLE
    }

    /// The one called `name`, in whatever case.
    pub fn find(name: &str) -> Option<&'static Self> {
        Self::all().iter().find(|known| known.name.eq_ignore_ascii_case(name))
    }

    /// The name of the matrix that it imitates.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// What that matrix comes from.
    pub const fn kind(&self) -> LookalikeKind {
        self.kind
    }

    /// Rows and columns.
    pub const fn num_rows(&self) -> usize {
        self.size.num_rows
    }

    /// Entries of the matrix that it imitates; its own are as many within 1 %.
    pub const fn num_entries(&self) -> u64 {
        self.size.num_entries
    }

    /// Entries of the longest row of the matrix that it imitates; its own longest row has as many within a quarter.
    pub const fn longest_row(&self) -> u32 {
        self.size.longest_row
    }

    /// The law that its rows follow, and why this one.
    pub const fn law(&self) -> &'static str {
        self.law
    }

    /// What a report calls it: its name, and that it is a look-alike.
    pub fn label(&self) -> String {
        format!("{} (look-alike)", self.name)
    }

    /// Generates it. Where the pattern is symmetric the values are, too.
    pub fn generate(&self, seed: u64) -> Csr<f32> {
        let key = if self.rule.is_symmetric() { symmetric_position } else { position };
        with_values(self.rule.pattern(self.size, seed), key, seed)
    }
}

/// How large a matrix is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    num_rows: usize,
    num_entries: u64,
    longest_row: u32,
}

/// Whether each row has an entry on the diagonal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Diagonal {
    Stored,
    Absent,
}

/// Where the entries are.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rule {
    Mesh(Mesh),
    Roads(Roads),
    Edges(Edges),
    Kronecker(Kronecker),
    Webs(Webs),
    Kkt(Kkt),
    Arrow(Arrow),
    Strips(Strips),
}

impl Rule {
    const fn is_symmetric(&self) -> bool {
        !matches!(self, Self::Webs(_) | Self::Strips(_))
    }

    fn pattern(&self, size: Size, seed: u64) -> CsrPattern {
        match self {
            Self::Mesh(mesh) => mesh.pattern(size, seed),
            Self::Roads(roads) => roads.pattern(size, seed),
            Self::Edges(edges) => edges.pattern(size, seed),
            Self::Kronecker(graph) => graph.pattern(size.num_entries, seed),
            Self::Webs(webs) => webs.pattern(size, seed),
            // Its places are given by its side alone.
            Self::Kkt(kkt) => kkt.pattern(),
            Self::Arrow(arrow) => arrow.pattern(size, seed),
            Self::Strips(strips) => strips.pattern(size, seed),
        }
    }
}
