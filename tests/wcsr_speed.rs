//! How fast windowed rows are built, on one core. Not a test by default: it generates matrices of 8 million entries.
//! Rates are per second of processor time, the kernel's share included, so that a busy machine does not change them
//! much; where the system does not tell it (it does on Linux), per second that passed.
//!
//! ```text
//! cargo test --release --test wcsr_speed -- --ignored --nocapture
//! ```

use std::hint::black_box;
use std::time::Instant;

use hopper_sparse::bf16;
use hopper_sparse::formats::{Wcsr, WindowShape, WindowStatistics};
use hopper_sparse::generate::GeneratorSpec;

/// 200 million entries a second on 16 cores.
const DEMANDED_PER_S: f64 = 12.5e6;

/// Matrices, and the largest windows that they are put into: beyond them the panels of scattered entries take 128 bytes
/// an entry and more, and the time is the system's for handing out zeroed pages.
const MATRICES: [(&str, usize); 4] =
    [("fem:100000", 128), ("uniform:500000x500000,0.000032", 16), ("rmat:19,16", 16), ("uniform:20000x40000,0.01", 16)];

/// Processor time that this thread has used, in seconds.
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: f64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds / 1e9)
}

/// The median of three runs.
fn seconds(run: impl Fn()) -> f64 {
    let mut times = [0.0; 3].map(|_: f64| {
        let (start, used) = (Instant::now(), processor_seconds());
        run();
        match (used, processor_seconds()) {
            (Some(before), Some(after)) => after - before,
            _ => start.elapsed().as_secs_f64(),
        }
    });
    times.sort_by(f64::total_cmp);
    times[1]
}

#[test]
#[ignore = "a measurement: needs a quiet machine and a release build"]
fn builds_200_million_entries_per_second_on_16_cores() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    let mut slowest = f64::INFINITY;
    for (spec, max_rows) in MATRICES {
        let matrix = spec.parse::<GeneratorSpec>().expect("a generator").generate().expect("small").cast::<bf16>();
        let millions = matrix.num_entries() as f64 / 1e6;
        for shape in WindowShape::ALL.into_iter().filter(|shape| shape.rows <= max_rows) {
            // Groups are for columns that lie together.
            if shape.group > 1 && !spec.starts_with("fem") {
                continue;
            }
            let (build, count) = pool.install(|| {
                (
                    seconds(|| drop(black_box(Wcsr::from_csr(matrix.view(), shape).expect("memory")))),
                    seconds(|| {
                        black_box(WindowStatistics::of(matrix.pattern(), shape));
                    }),
                )
            });
            println!(
                "{spec:32} {:6} {millions:5.1} million entries: built at {:6.1}, counted at {:6.1} million/s",
                shape.to_string(),
                millions / build,
                millions / count
            );
            slowest = slowest.min(millions * 1e6 / build);
        }
    }
    assert!(slowest >= DEMANDED_PER_S, "{:.1} million entries a second and core", slowest / 1e6);
}
