//! Generated matrices: their structure, their seeds, and the words that ask for them.

use hopper_sparse::formats::{BlockShape, Csr, CsrPattern, FillStatistics};
use hopper_sparse::generate::{
    Generator, GeneratorError, GeneratorSpec, Lookalike, banded, blocks, fem, rmat, uniform,
};

fn generate(text: &str) -> Csr<f32> {
    GeneratorSpec::parse(text).and_then(|spec| spec.generate()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

const SPECS: [&str; 13] = [
    "fem:3000",
    "fem:1",
    "fem:0",
    "rmat:10,8",
    "rmat:0,3",
    "banded:1000,32",
    "banded:5,100",
    "blocks:1000x700,128x64,0.1",
    "blocks:64x16,64x16,1",
    "uniform:500x300,0.01",
    "uniform:50x30,0.9",
    "uniform:0x30,0.5",
    "lookalike:coAuthorsCiteseer",
];

#[test]
fn every_matrix_is_sound_and_seeded() {
    for text in SPECS {
        let csr = generate(text);
        let checked =
            CsrPattern::try_new(csr.num_rows(), csr.num_cols(), csr.row_offsets().to_vec(), csr.col_indices().to_vec());
        assert_eq!(checked.as_ref(), Ok(&**csr.pattern()), "{text}");
        assert!(csr.values().iter().all(|value| (-1.0..1.0).contains(value)), "{text}");
        assert_eq!(generate(text), csr, "{text}: the same again");
        let other = generate(&format!("{text},seed=7"));
        if csr.num_entries() > 0 {
            assert_ne!(other.values(), csr.values(), "{text}: another seed");
        }
        let one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
        assert_eq!(one_thread.install(|| generate(text)), csr, "{text}: on one thread");
    }
}

#[test]
fn finite_elements_have_dense_nodes_and_are_symmetric() {
    let csr = fem(3000, 1);
    assert_eq!((csr.num_rows(), csr.num_cols()), (3000, 3000));
    assert_eq!(csr.transpose(), csr);
    let longest = (0..3000).map(|row| csr.view().row(row).0.len()).max();
    assert_eq!(longest, Some(81));
    // A 10 x 10 x 10 grid: (3 * 10 - 2)^3 pairs of neighbours, 9 entries each.
    assert_eq!(csr.num_entries(), 28_usize.pow(3) * 9);
    for row in (0..3000).step_by(3) {
        assert_eq!(csr.view().row(row).0, csr.view().row(row + 2).0, "the unknowns of a node share their columns");
    }
    // A grid that is not full, and a node that is not.
    let cut = fem(2000, 1);
    assert_eq!((cut.num_rows(), cut.transpose() == cut), (2000, true));
}

#[test]
fn power_law_graphs_have_long_rows() {
    let csr = rmat(12, 8, 3);
    let lengths: Vec<usize> = (0..4096).map(|row| csr.view().row(row).0.len()).collect();
    let mean = csr.num_entries() as f64 / 4096.0;
    let longest = *lengths.iter().max().expect("rows");
    assert!(mean > 4.0 && mean <= 8.0, "{mean}");
    assert!(longest as f64 > 20.0 * mean, "the longest row has {longest} entries");
    assert!(lengths.iter().filter(|&&length| length == 0).count() > 400);
}

#[test]
fn bands_are_full() {
    let csr = banded(100, 3, 0);
    assert_eq!(csr.num_entries(), 100 * 7 - 2 * (3 + 2 + 1));
    assert_eq!(csr.view().row(0).0, [0, 1, 2, 3]);
    assert_eq!(csr.view().row(50).0, [47, 48, 49, 50, 51, 52, 53]);
    assert_eq!(csr.view().row(99).0, [96, 97, 98, 99]);
    assert_eq!(banded(10, 0, 0).num_entries(), 10);
}

#[test]
fn blocks_are_counted_exactly() {
    for (block, density, expected) in [
        (BlockShape { rows: 128, cols: 64 }, 0.1, 26),
        (BlockShape { rows: 64, cols: 16 }, 0.05, 102),
        (BlockShape { rows: 64, cols: 64 }, 1.0, 512),
        (BlockShape { rows: 64, cols: 64 }, 0.0, 0),
    ] {
        let csr = blocks(1024, 2048, block, density, 5);
        let statistics = FillStatistics::of(csr.view(), block);
        assert_eq!(statistics.num_blocks, expected, "{block} {density}");
        assert_eq!(csr.num_entries() as u64, expected * block.num_elements() as u64, "each block is dense");
    }
    // 1000 = 7 * 128 + 104 and 700 = 10 * 64 + 60: blocks are cut off at the border.
    assert_eq!(blocks(1000, 700, BlockShape { rows: 128, cols: 64 }, 1.0, 0).num_entries(), 700_000);
}

#[test]
fn single_entries_are_counted_exactly() {
    assert_eq!(uniform(500, 300, 0.01, 0).num_entries(), 1500);
    assert_eq!(uniform(500, 300, 0.7, 0).num_entries(), 105_000);
    assert_eq!(uniform(500, 300, 1.0, 0).num_entries(), 150_000);
    assert_eq!(uniform(500, 300, 0.0, 0).num_entries(), 0);
    // As tall and wide as can be: 2^64 elements, nearly.
    let wide = uniform(10, u32::MAX, 1e-7, 0);
    assert_eq!(wide.num_entries(), 4295);
}

#[test]
fn specifications_are_read_and_written() {
    for text in SPECS {
        let spec = GeneratorSpec::parse(text).expect("good");
        assert_eq!(spec.to_string(), text);
        assert_eq!(spec.seed, 0);
        let seeded = format!("{text},seed=18446744073709551615");
        assert_eq!(seeded.parse::<GeneratorSpec>().expect("good").to_string(), seeded);
    }
    assert_eq!(
        GeneratorSpec::parse(" Blocks:8192X4096 , 128x64, 0.5 , seed=3"),
        Ok(GeneratorSpec {
            generator: Generator::Blocks {
                num_rows: 8192,
                num_cols: 4096,
                block: BlockShape { rows: 128, cols: 64 },
                density: 0.5
            },
            seed: 3
        })
    );
}

#[test]
fn look_alikes_are_labelled() {
    let spec = GeneratorSpec::parse("lookalike:CANT").expect("in whatever case");
    assert_eq!((spec.to_string().as_str(), spec.label().as_str()), ("lookalike:cant", "cant (look-alike)"));
    assert_eq!(GeneratorSpec { seed: 4, ..spec }.label(), "cant (look-alike), seed=4");
    assert_eq!(GeneratorSpec::parse("fem:30").expect("good").label(), "fem:30");
}

#[test]
fn bad_specifications_give_a_sentence() {
    for (text, sentence) in [
        ("", "no generator is called ``; there are fem, rmat, banded, blocks, uniform and lookalike"),
        ("mesh:5", "no generator is called `mesh`; there are fem, rmat, banded, blocks, uniform and lookalike"),
        ("fem", "found 0 arguments; it is written fem:ROWS, as in fem:20000, and may end with ,seed=NUMBER"),
        ("fem:1,2", "found 2 arguments; it is written fem:ROWS, as in fem:20000, and may end with ,seed=NUMBER"),
        ("fem:x", "expected a whole number of at most 32 bits, found `x`; it is written fem:ROWS, as in fem:20000"),
        (
            "fem:4294967296",
            "expected a whole number of at most 32 bits, found `4294967296`; it is written fem:ROWS, as in fem:20000",
        ),
        (
            "fem:9,seed=-1",
            "expected seed= and a whole number, found `seed=-1`; it is written fem:ROWS, as in fem:20000",
        ),
        ("rmat:32,8", "expected a scale of at most 31, found `32`; it is written rmat:SCALE,EDGES, as in rmat:15,8"),
        (
            "uniform:10,0.5",
            "expected rows and columns such as 4096x4096, found `10`; it is written uniform:ROWSxCOLS,DENSITY, as in uniform:4096x4096,0.01",
        ),
        (
            "uniform:9x9,1.5",
            "expected a density from 0 to 1, found `1.5`; it is written uniform:ROWSxCOLS,DENSITY, as in uniform:4096x4096,0.01",
        ),
        (
            "uniform:9x9,nan",
            "expected a density from 0 to 1, found `nan`; it is written uniform:ROWSxCOLS,DENSITY, as in uniform:4096x4096,0.01",
        ),
    ] {
        assert_eq!(GeneratorSpec::parse(text).map_err(|error| error.to_string()), Err(sentence.to_owned()), "{text}");
    }
    let unknown = GeneratorSpec::parse("lookalike:cont").expect_err("not in the table").to_string();
    assert!(unknown.starts_with("no look-alike is called `cont`; there are cant, consph, "), "{unknown}");
    assert!(Lookalike::all().iter().all(|matrix| unknown.contains(matrix.name())), "{unknown}");
    let shape = GeneratorSpec::parse("blocks:9x9,8x8,0.5").expect_err("not offered");
    assert!(matches!(shape, GeneratorError::Block(_)), "{shape:?}");
}

#[test]
fn what_memory_cannot_hold_is_refused() {
    let spec = GeneratorSpec::parse("uniform:4294967295x4294967295,1").expect("well formed");
    assert!(matches!(spec.generate(), Err(GeneratorError::OutOfMemory { .. })));
}
