//! Any bytes, as Matrix Market text.
#![no_main]

use hopper_sparse::io::matrix_market::{ComplexPolicy, ExplicitZeros, ReadOptions, read_bytes};
use libfuzzer_sys::fuzz_target;

/// Sizes over this are not converted: their offsets fit memory, but take all of a second.
const MAX_ROWS: usize = 1 << 16;

fuzz_target!(|text: &[u8]| {
    for zeros in [ExplicitZeros::Keep, ExplicitZeros::Drop] {
        let options = ReadOptions { zeros, complex: ComplexPolicy::RealPart };
        match read_bytes::<f64>(text, &options) {
            Ok(loaded) if loaded.matrix.num_rows() <= MAX_ROWS => drop(loaded.matrix.try_to_csr()),
            Ok(_) => {}
            Err((_, error)) => assert!(!error.to_string().is_empty()),
        }
    }
});
