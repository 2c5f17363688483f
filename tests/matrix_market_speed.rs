//! How fast Matrix Market files are read, on one core. Not a test by default: it writes and reads files of 20 million
//! entries. Rates are per second of processor time, the kernel's share included, so that a busy machine does not
//! change them much; where the system does not tell it (it does on Linux), per second that passed.
//!
//! ```text
//! cargo test --release --test matrix_market_speed -- --ignored --nocapture
//! ```

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use hopper_sparse::io::matrix_market::{ReadOptions, read};

const NUM_ENTRIES: u64 = 20_000_000;
const NUM_ROWS: u64 = 1_000_000;
const DEMANDED_MB_PER_S: f64 = 300.0;

/// Entry `index` in a fixed, scattered order.
fn entry(index: u64) -> (u64, u64, f64) {
    let mixed = (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed % NUM_ROWS + 1, (mixed >> 32) % NUM_ROWS + 1, (mixed >> 11) as f64 / (1_u64 << 53) as f64)
}

/// Processor time that this thread has used, in seconds.
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: f64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds / 1e9)
}

fn write(path: &Path, field: &str) -> std::io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    writeln!(out, "%%MatrixMarket matrix coordinate {field} general\n{NUM_ROWS} {NUM_ROWS} {NUM_ENTRIES}")?;
    for index in 0..NUM_ENTRIES {
        let (row, col, value) = entry(index);
        match field {
            "real" => writeln!(out, "{row} {col} {value:.16e}")?,
            "integer" => writeln!(out, "{row} {col} {}", index % 1000)?,
            _ => writeln!(out, "{row} {col}")?,
        }
    }
    out.flush()
}

#[test]
#[ignore = "a measurement: writes files of up to 800 MB"]
fn reads_twenty_million_entries_at_300_mb_per_second() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("speed.mtx");
    let mut slowest = f64::INFINITY;
    for field in ["real", "integer", "pattern"] {
        write(&path, field).expect("written");
        let megabytes = path.metadata().expect("written").len() as f64 / 1e6;
        let mut rates: Vec<f64> = (0..5)
            .map(|_| {
                let (start, used) = (Instant::now(), processor_seconds());
                let loaded = read::<f64>(&path, &ReadOptions::default()).expect("good");
                let seconds = match (used, processor_seconds()) {
                    (Some(before), Some(after)) => after - before,
                    _ => start.elapsed().as_secs_f64(),
                };
                assert_eq!(loaded.matrix.num_entries() as u64, NUM_ENTRIES);
                megabytes / seconds
            })
            .collect();
        rates.sort_by(f64::total_cmp);
        println!(
            "{field}: {megabytes:.0} MB, median {:.0} MB/s ({:.0} to {:.0}), {:.1} million entries a second",
            rates[2],
            rates[0],
            rates[4],
            rates[2] / megabytes * NUM_ENTRIES as f64 / 1e6,
        );
        slowest = slowest.min(rates[2]);
    }
    assert!(slowest >= DEMANDED_MB_PER_S, "{slowest:.0} MB/s");
}
