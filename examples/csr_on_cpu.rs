//! Times the CPU backend's product of CSR matrices with a dense row-major one, `f32`.
//!
//! ```text
//! cargo run --release --no-default-features --example csr_on_cpu -- COLUMNS FILE.mtx...
//! ```
//!
//! Prints the CSV of `bench/peers/scipy_csr.py`, for one thread and for two. Each matrix runs for at least 20
//! repetitions and a fifth of a second, into a result that is there already.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use hopper_sparse::cpu;
use hopper_sparse::formats::{Csr, Dense, Layout};
use hopper_sparse::io::matrix_market::{self, ReadOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let num_cols = arguments.next().ok_or("the number of columns is missing")?.parse()?;
    println!("implementation,matrix,rows,columns,entries,n,threads,median_s,fastest_s");
    for path in arguments {
        let a = matrix_market::read::<f32>(&path, &ReadOptions::default())?.matrix.try_to_csr()?;
        let name = Path::new(&path).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        for num_threads in [1, 2] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(num_threads).build()?;
            let samples = pool.install(|| samples(&a, num_cols))?;
            let (median, fastest) = (samples[samples.len() / 2].as_secs_f64(), samples[0].as_secs_f64());
            let shape = format!("{},{},{}", a.num_rows(), a.num_cols(), a.num_entries());
            println!("hopper-sparse,{name},{shape},{num_cols},{num_threads},{median:.3e},{fastest:.3e}");
        }
    }
    Ok(())
}

/// The times of one product, shortest first.
fn samples(a: &Csr<f32>, num_cols: usize) -> hopper_sparse::Result<Vec<Duration>> {
    let b = Dense::from_fn(a.num_cols(), num_cols, Layout::RowMajor, |i, j| ((7 * i + 13 * j) % 17) as f32 / 8.0 - 1.0);
    let mut c = Dense::<f32>::zeros(a.num_rows(), num_cols, Layout::RowMajor);
    cpu::spmm_csr(1.0, a.view(), b.view(), 0.0, &mut c.view_mut())?;
    let (begin, mut samples) = (Instant::now(), vec![]);
    while samples.len() < 20 || begin.elapsed() < Duration::from_millis(200) {
        let start = Instant::now();
        cpu::spmm_csr(1.0, a.view(), b.view(), 0.0, &mut c.view_mut())?;
        samples.push(start.elapsed());
    }
    samples.sort();
    Ok(samples)
}
