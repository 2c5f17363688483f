//! Real matrices, as an independent reader counted them. They are not part of the repository: the test looks for
//! them in `HOPPER_MATRICES`, or beside the repository, and says so where it is skipped.

use std::path::PathBuf;

use hopper_sparse::formats::{RowOrder, WindowShape, WindowStatistics};
use hopper_sparse::io::matrix_market::{ExplicitZeros, ReadOptions, Symmetry, read};

/// Name, rows, columns, stored entries, distinct entries after mirroring, explicit zeros, sum of all values.
const REAL_FILES: [(&str, usize, usize, u64, usize, u64, f64); 23] = [
    ("1138_bus", 1138, 1138, 2596, 4054, 0, 4054.0),
    ("3elt", 4720, 4720, 13722, 27444, 0, 27444.0),
    // 13 pairs stand in both triangles.
    ("EVA", 8497, 8497, 6726, 13424, 0, 13450.0),
    ("USPowerGrid", 4941, 4941, 6594, 13188, 0, 13188.0),
    ("add32", 4960, 4960, 23884, 23884, 4036, 24.704040790598285),
    ("bcspwr07", 1612, 1612, 3718, 5824, 0, 5824.0),
    ("bcsstk09", 1083, 1083, 9760, 18437, 0, 8687330265.982275),
    ("bcsstk13", 2003, 2003, 42943, 83883, 0, 30220739908119.47),
    ("bcsstk33", 8738, 8738, 300321, 591904, 0, 591904.0),
    ("ca-CondMat", 23133, 23133, 93497, 186936, 0, 186936.0),
    ("ca-GrQc", 5242, 5242, 14496, 28980, 0, 28980.0),
    ("cage8", 1015, 1015, 11003, 11003, 0, 1015.0),
    ("citeseer", 3327, 3327, 4536, 9072, 0, 9072.0),
    ("commanche", 7920, 7920, 19800, 31680, 0, 31680.0),
    // 151 pairs stand in both triangles: 10,858 after mirroring, 302 of which coincide with another.
    ("cora", 2708, 2708, 5429, 10556, 0, 10858.0),
    ("crack", 10240, 10240, 30380, 60760, 0, 60760.0),
    ("cryg2500", 2500, 2500, 12349, 12349, 0, -13508.421748371342),
    ("fe_4elt2", 11143, 11143, 32818, 65636, 0, 65636.0),
    ("fidapex6", 1651, 1651, 49533, 49533, 471, 965.113007817296),
    ("lp_ship04l", 402, 2166, 6380, 6380, 0, 2151.4856996),
    ("luxembourg", 114599, 114599, 119666, 239332, 0, 239332.0),
    ("qh1484", 1484, 1484, 6110, 6110, 0, 1.777390603013536e+17),
    ("rajat11", 135, 135, 812, 812, 147, 46.917482),
];

/// Where the real matrices are: `HOPPER_MATRICES`, or beside the repository.
fn matrices() -> PathBuf {
    match std::env::var_os("HOPPER_MATRICES") {
        Some(folder) => folder.into(),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/matrices/suitesparse"),
    }
}

#[test]
fn real_files_are_what_an_independent_count_says() {
    let folder = matrices();
    if !folder.is_dir() {
        println!("skipped: no folder {}; HOPPER_MATRICES names another", folder.display());
        return;
    }
    for (name, rows, cols, stored, distinct, zeros, sum) in REAL_FILES {
        let path = folder.join(format!("{name}.mtx"));
        let loaded = read::<f64>(&path, &ReadOptions::default()).unwrap_or_else(|error| panic!("{error}"));
        let csr = loaded.matrix.to_csr();
        assert_eq!((csr.num_rows(), csr.num_cols(), loaded.header.num_stored), (rows, cols, stored), "{name}");
        assert_eq!(csr.num_entries(), distinct, "{name}");
        let total: f64 = csr.values().iter().sum();
        let magnitude: f64 = csr.values().iter().map(|value| value.abs()).sum();
        assert!((total - sum).abs() <= 1e-12 * magnitude, "{name}: the sum is {total}, not {sum}");
        let options = ReadOptions { zeros: ExplicitZeros::Drop, ..ReadOptions::default() };
        assert_eq!(read::<f64>(&path, &options).expect("good").dropped_zeros, zeros, "{name}");
        if loaded.header.banner.symmetry == Symmetry::Symmetric {
            assert_eq!(csr.transpose(), csr, "{name}");
        }
    }
}

/// Name, then fill in percent and columns fetched per entry in windows of 8, 16 and 64 rows, to the digits that they were
/// counted to by other means; unions are padded to 16 columns.
const WINDOW_FILLS: [(&str, [f64; 3], [f64; 3]); 11] = [
    ("bcsstk33", [49.4, 35.1, 17.9], [0.24, 0.17, 0.09]),
    ("bcsstk13", [39.9, 29.4, 15.3], [0.29, 0.20, 0.10]),
    ("fidapex6", [45.0, 31.7, 16.5], [0.24, 0.18, 0.09]),
    ("cage8", [15.0, 9.1, 3.7], [0.73, 0.65, 0.41]),
    ("crack", [13.3, 7.4, 2.1], [0.80, 0.76, 0.72]),
    ("add32", [18.4, 10.3, 3.2], [0.57, 0.53, 0.47]),
    ("lp_ship04l", [12.2, 6.4, 1.9], [0.97, 0.95, 0.82]),
    ("luxembourg", [12.7, 6.5, 2.4], [0.70, 0.65, 0.60]),
    ("cora", [10.3, 5.9, 1.8], [0.95, 0.92, 0.84]),
    ("ca-CondMat", [11.3, 6.0, 1.6], [0.99, 0.98, 0.95]),
    ("p2p-Gnutella31", [9.1, 5.2, 1.5], [1.0, 1.0, 1.0]),
];

#[test]
fn windows_fill_as_an_independent_count_says() {
    let folder = matrices();
    if !folder.is_dir() {
        println!("skipped: no folder {}; HOPPER_MATRICES names another", folder.display());
        return;
    }
    for (name, fills, fetched) in WINDOW_FILLS {
        let path = folder.join(format!("{name}.mtx"));
        if !path.is_file() {
            println!("skipped: no file {}", path.display());
            continue;
        }
        let csr = read::<f32>(&path, &ReadOptions::default()).unwrap_or_else(|error| panic!("{error}")).matrix.to_csr();
        for (index, rows) in [8, 16, 64].into_iter().enumerate() {
            let found = WindowStatistics::of(csr.pattern(), WindowShape { rows, group: 1 });
            let (fill, per_entry) = (found.fill() * 100.0, found.fetched_per_entry());
            assert!((fill - fills[index]).abs() <= 0.0501, "{name}, {rows} rows: {fill} %, not {} %", fills[index]);
            assert!((per_entry - fetched[index]).abs() <= 0.00501, "{name}, {rows} rows: {per_entry} columns an entry");
        }
    }
}

/// How many times the fill of 64 rows a compacting order must give at least.
const COMPACTED: [(&str, f64); 6] =
    [("ca-CondMat", 1.9), ("cora", 1.8), ("lp_ship04l", 1.6), ("crack", 1.5), ("add32", 1.4), ("bcsstk33", 1.1)];

#[test]
fn a_compacting_order_fills_windows() {
    let folder = matrices();
    if !folder.is_dir() {
        println!("skipped: no folder {}; HOPPER_MATRICES names another", folder.display());
        return;
    }
    let window = WindowShape { rows: 64, group: 1 };
    for (name, least) in COMPACTED {
        let path = folder.join(format!("{name}.mtx"));
        let csr = read::<f32>(&path, &ReadOptions::default()).unwrap_or_else(|error| panic!("{error}")).matrix.to_csr();
        let order = RowOrder::compacting(csr.pattern(), window).expect("a better one");
        let own = WindowStatistics::of(csr.pattern(), window).fill();
        let found = WindowStatistics::of_ordered(csr.pattern(), window, &order).fill();
        assert!(found >= least * own, "{name}: {found} is {:.2} times {own}", found / own);
    }
}
