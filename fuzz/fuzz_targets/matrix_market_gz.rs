//! Any bytes, as a file that may be compressed.
#![no_main]

use std::io::Write;

use hopper_sparse::io::matrix_market::{ReadOptions, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut file) = tempfile::NamedTempFile::new() else { return };
    // With the magic bytes ahead, every input gets to the decompressor.
    if file.write_all(&[0x1f, 0x8b]).and_then(|()| file.write_all(bytes)).is_ok() {
        let _ = read::<f32>(file.path(), &ReadOptions::default());
    }
});
