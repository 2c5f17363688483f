//! The matrices that can be imitated: their sizes, and the law of each.

use super::LookalikeKind::{Circuit, FiniteElements, Graph, Grid, Optimisation, Road, Web};
use super::edges::{Edges, Kronecker};
use super::lattice::{Junctions, Mesh, Roads};
use super::optimisation::{Arrow, Kkt, Strips};
use super::webs::Webs;
use super::{Diagonal, Lookalike, LookalikeKind, Rule, Size};

/// Rows, entries and the longest row's entries.
const fn size(num_rows: usize, num_entries: u64, longest_row: u32) -> Size {
    Size { num_rows, num_entries, longest_row }
}

const fn lookalike(name: &'static str, kind: LookalikeKind, size: Size, rule: Rule, law: &'static str) -> Lookalike {
    Lookalike { name, kind, size, rule, law }
}

const fn mesh(unknowns: u32, sides: [u32; 2], full: u32, partial: u32) -> Rule {
    Rule::Mesh(Mesh { unknowns, sides, full, partial, junctions: None })
}

/// A mesh where one node in `every` couples up to the squared distance `reach`.
const fn joined(unknowns: u32, sides: [u32; 2], full: u32, partial: u32, [every, reach]: [u32; 2]) -> Rule {
    Rule::Mesh(Mesh { unknowns, sides, full, partial, junctions: Some(Junctions { every, reach }) })
}

const fn roads(side: u32, along: f64, [every, reach]: [u32; 2]) -> Rule {
    Rule::Roads(Roads { side, along, junctions: Junctions { every, reach } })
}

const fn graph(steepness: u32, local: f64, span: u32) -> Rule {
    Rule::Edges(Edges { steepness, local, span, diagonal: Diagonal::Absent })
}

const fn circuit(steepness: u32, local: f64, span: u32) -> Rule {
    Rule::Edges(Edges { steepness, local, span, diagonal: Diagonal::Stored })
}

const fn web(host: u32, local: f64, steepness: u32) -> Rule {
    Rule::Webs(Webs { host, local, steepness })
}

const FLAT: u32 = Mesh::FLAT;

/// Kind by kind.
pub(super) static TABLE: &[Lookalike] = &[
    lookalike(
        "cant",
        FiniteElements,
        size(62_451, 4_007_383, 78),
        mesh(3, [9, 9], 2, 3),
        "a beam of 9 x 9 x 257 nodes, which has exactly its rows, three displacements a node; all neighbours along edges \
         and faces of a brick, and most of those across it",
    ),
    lookalike(
        "consph",
        FiniteElements,
        size(83_334, 6_010_480, 81),
        mesh(3, [16, 16], 2, 3),
        "bricks, three unknowns a node: 27 neighbours are the longest row, 24 the mean; ordered, the fronts of a sphere are \
         narrow",
    ),
    lookalike(
        "crystk03",
        FiniteElements,
        size(24_696, 1_751_178, 81),
        mesh(3, [14, 14], 2, 3),
        "a block of 14 x 14 x 42 nodes, which has exactly its rows, of bricks with three displacements a node",
    ),
    lookalike(
        "pdb1HYS",
        FiniteElements,
        size(36_417, 4_344_765, 204),
        joined(3, [10, 10], 4, 5, [400, 6]),
        "a protein: three coordinates an atom, some 40 atoms within reach of each, which is a ball in space rather than a \
         brick; a few see more",
    ),
    lookalike(
        "bmwcra_1",
        FiniteElements,
        size(148_770, 10_644_002, 351),
        joined(3, [12, 12], 2, 3, [4000, 9]),
        "a crankshaft of solid elements, three displacements a node; 24 neighbours are the mean, and a few nodes, where \
         parts are tied together, have 120",
    ),
    lookalike(
        "rma10",
        FiniteElements,
        size(46_835, 2_374_001, 145),
        joined(5, [40, FLAT], 2, 4, [600, 9]),
        "a harbour, wide and shallow: a surface whose nodes have 10 neighbours, and five unknowns, which divide its rows \
         and its longest row",
    ),
    lookalike(
        "pwtk",
        FiniteElements,
        size(217_918, 11_634_424, 180),
        joined(6, [120, FLAT], 1, 2, [1000, 9]),
        "the shell of a wind tunnel: quadrilaterals, six unknowns a node, nine neighbours; more where walls meet",
    ),
    lookalike(
        "shipsec1",
        FiniteElements,
        size(140_874, 7_813_404, 102),
        joined(6, [80, FLAT], 2, 4, [200, 5]),
        "the shell of a ship's section: as pwtk, with stiffeners, at which a node has more neighbours than nine",
    ),
    lookalike(
        "s3dkq4m2",
        FiniteElements,
        size(90_449, 4_820_891, 54),
        mesh(6, [100, FLAT], 1, 2),
        "a cylindrical shell of quadrilaterals, six unknowns a node: nine neighbours are the longest row and nearly the \
         mean",
    ),
    lookalike(
        "hood",
        FiniteElements,
        size(220_542, 10_768_436, 77),
        joined(6, [120, FLAT], 1, 2, [300, 4]),
        "a car's hood: a shell of triangles and quadrilaterals, six unknowns a node, eight neighbours",
    ),
    lookalike(
        "x104",
        FiniteElements,
        size(108_384, 10_167_624, 324),
        joined(6, [20, 20], 1, 2, [2000, 5]),
        "a solid with six unknowns a node, 16 neighbours, and a few nodes with over 50",
    ),
    lookalike(
        "raefsky3",
        FiniteElements,
        size(21_200, 1_488_768, 80),
        mesh(8, [50, FLAT], 2, 4),
        "a flow beside a structure: dense 8 x 8 blocks, nine neighbours inside",
    ),
    lookalike(
        "af_shell1",
        FiniteElements,
        size(504_855, 17_588_875, 40),
        mesh(5, [200, FLAT], 1, 2),
        "sheet metal being formed: a shell with five unknowns a node and seven neighbours",
    ),
    lookalike(
        "ecology1",
        Grid,
        size(1_000_000, 4_996_000, 5),
        mesh(1, [1000, FLAT], 0, 1),
        "the five-point stencil on a square of 1000 x 1000, which has exactly its rows and entries",
    ),
    lookalike(
        "atmosmodd",
        Grid,
        size(1_270_432, 8_814_880, 7),
        mesh(1, [148, 148], 0, 1),
        "the seven-point stencil on 148 x 148 x 58 cells, which has exactly its rows and entries",
    ),
    lookalike(
        "kron_g500-logn16",
        Graph,
        size(65_536, 4_912_469, 17_998),
        Rule::Kronecker(Kronecker { scale: 16 }),
        "Graph500's own law, R-MAT with 0.57, 0.19, 0.19 and 0.05, drawn until the entries are as many",
    ),
    lookalike(
        "com-Youtube",
        Graph,
        size(1_134_890, 5_975_248, 28_754),
        graph(4, 0.1, 1000),
        "a social network: degrees of a power law of exponent 2.33, up to its most popular member; few friends nearby",
    ),
    lookalike(
        "loc-Gowalla",
        Graph,
        size(196_591, 1_900_654, 14_730),
        graph(4, 0.1, 500),
        "a social network, as com-Youtube",
    ),
    lookalike(
        "coAuthorsCiteseer",
        Graph,
        size(227_320, 1_628_268, 1372),
        graph(3, 0.3, 200),
        "authors: a power law of exponent 2.5, and a third of the co-authors nearby",
    ),
    lookalike(
        "as-Skitter",
        Graph,
        size(1_696_415, 22_190_596, 35_455),
        graph(4, 0.2, 500),
        "routers: a power law of exponent 2.33, and a fifth of the links nearby",
    ),
    lookalike(
        "roadNet-CA",
        Road,
        size(1_971_281, 5_533_214, 12),
        roads(1400, 0.9, [5000, 4]),
        "crossings with two to four roads, numbered along them",
    ),
    lookalike("roadNet-PA", Road, size(1_090_920, 3_083_796, 9), roads(1000, 0.9, [5000, 2]), "as roadNet-CA"),
    lookalike(
        "belgium_osm",
        Road,
        size(1_441_295, 3_099_940, 10),
        roads(1200, 0.95, [20_000, 4]),
        "chains of points along roads, of which few are crossings",
    ),
    lookalike(
        "webbase-1M",
        Web,
        size(1_000_005, 3_105_536, 4700),
        web(128, 0.7, 3),
        "a crawl in the order of addresses: most links stay on the host",
    ),
    lookalike(
        "web-Google",
        Web,
        size(916_428, 5_105_039, 456),
        web(128, 0.1, 3),
        "pages in no order: few links lead nearby",
    ),
    lookalike(
        "cnr-2000",
        Web,
        size(325_557, 3_216_152, 2716),
        web(128, 0.8, 3),
        "as webbase-1M, within one country's research network",
    ),
    lookalike("in-2004", Web, size(1_382_908, 16_917_053, 7753), web(128, 0.8, 3), "as webbase-1M"),
    lookalike(
        "G3_circuit",
        Circuit,
        size(1_585_478, 7_660_826, 6),
        mesh(1, [2, 900], 0, 1),
        "a power grid of two layers: no row has more than six entries",
    ),
    lookalike(
        "ASIC_680ks",
        Circuit,
        size(682_712, 2_329_176, 210),
        circuit(2, 0.7, 64),
        "a diagonal, a few neighbours nearby, and nets that reach many",
    ),
    lookalike("ASIC_320ks", Circuit, size(321_671, 1_827_807, 412), circuit(2, 0.7, 64), "as ASIC_680ks"),
    lookalike(
        "nlpkkt80",
        Optimisation,
        size(1_062_400, 28_704_672, 28),
        Rule::Kkt(Kkt { side: 80 }),
        "states, controls and multipliers on a cube of 80^3 cells and its faces: 27 neighbours, nine at a face; this has \
         exactly its rows, entries and longest row",
    ),
    lookalike(
        "mip1",
        Optimisation,
        size(66_463, 10_352_819, 66_395),
        Rule::Arrow(Arrow { hubs: 16, block: 96 }),
        "constraints in dense groups, and a few that reach across all: the longest row is nearly full",
    ),
    lookalike(
        "gupta3",
        Optimisation,
        size(16_783, 9_323_427, 14_672),
        Rule::Arrow(Arrow { hubs: 32, block: 300 }),
        "the normal equations of a linear program: as mip1, denser",
    ),
    lookalike(
        "TSOPF_RS_b2383",
        Optimisation,
        size(38_120, 16_171_169, 983),
        Rule::Strips(Strips { height: 512, least: 0.85 }),
        "optimal power flow: rows of up to 983 entries in dense blocks, and as many nearly empty ones",
    ),
];
