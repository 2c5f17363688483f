//! Puts an empty `libcuda.a` on the link path.
//!
//! cust_raw asks the linker for `-lcuda`. An archive with no members satisfies it; the functions themselves are
//! defined by this crate (`src/table.rs`).

use std::path::PathBuf;
use std::{env, fs};

fn main() {
    let out_dir = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let archive = out_dir.join("libcuda.a");
    // The magic line alone is a whole archive that holds nothing.
    fs::write(&archive, b"!<arch>\n").unwrap_or_else(|error| panic!("cannot write {}: {error}", archive.display()));
    println!("cargo::rustc-link-search=native={}", out_dir.display());
    println!("cargo::rerun-if-changed=build.rs");
}
