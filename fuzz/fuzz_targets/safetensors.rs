//! Any bytes, as a packed matrix.
#![no_main]

use hopper_sparse::bf16;
use hopper_sparse::io::packed::{bcsr_from_bytes, csr_from_bytes, wcsr_from_bytes};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = csr_from_bytes::<f32>(bytes);
    if let Ok(matrix) = bcsr_from_bytes::<bf16>(bytes) {
        // Reads every offset, index and element.
        drop(matrix.to_csr());
    }
    if let Ok(matrix) = wcsr_from_bytes::<bf16>(bytes) {
        drop(matrix.to_csr());
    }
});
