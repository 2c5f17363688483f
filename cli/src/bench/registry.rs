//! Every implementation, once. A new one is a file in `implementations/` and a line here.

use super::error::BenchError;
use super::implementation::Implementation;
use super::implementations as all;

/// All implementations, ours first.
pub static IMPLEMENTATIONS: &[&dyn Implementation] = &[
    #[cfg(feature = "gpu")]
    &all::ours_spmm_bcsr::Bcsr,
    #[cfg(feature = "gpu")]
    &all::ours_spmm_csr::Csr,
    &all::ours_spmm_csr_cpu::CsrCpu,
    &all::naive_spmm_cpu::NaiveCpu,
    #[cfg(feature = "gpu")]
    &all::vendor_gemm_cublaslt::CublasLt::WITH_ZEROS,
    #[cfg(feature = "gpu")]
    &all::vendor_gemm_cublaslt::CublasLt::FULL,
    #[cfg(feature = "gpu")]
    &all::vendor_spmm_cusparse_csr::CusparseCsr::ALG1,
    #[cfg(feature = "gpu")]
    &all::vendor_spmm_cusparse_csr::CusparseCsr::ALG2,
    #[cfg(feature = "gpu")]
    &all::vendor_spmm_cusparse_csr::CusparseCsr::ALG3,
    #[cfg(feature = "gpu")]
    &all::vendor_spmm_cusparse_bsr::CusparseBsr,
];

/// The implementation called `name`.
pub fn find(name: &str) -> Option<&'static dyn Implementation> {
    IMPLEMENTATIONS.iter().find(|implementation| implementation.name() == name).copied()
}

/// The implementations whose names start with one of `prefixes`.
///
/// # Errors
/// [`BenchError::UnknownImplementation`] with a prefix that no name starts with.
pub fn select(prefixes: &[String]) -> Result<Vec<&'static dyn Implementation>, BenchError> {
    let starts =
        |implementation: &&dyn Implementation, prefix: &String| implementation.name().starts_with(prefix.as_str());
    for prefix in prefixes {
        if !IMPLEMENTATIONS.iter().any(|implementation| starts(implementation, prefix)) {
            return Err(BenchError::UnknownImplementation { name: prefix.clone() });
        }
    }
    let chosen = |implementation: &&&dyn Implementation| prefixes.iter().any(|prefix| starts(implementation, prefix));
    Ok(IMPLEMENTATIONS.iter().filter(chosen).copied().collect())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn names_are_paths_and_do_not_repeat() {
        let mut seen = HashSet::new();
        for implementation in IMPLEMENTATIONS {
            let name = implementation.name();
            assert!(seen.insert(name), "{name} is there twice");
            assert_eq!(name.split('/').count(), 3, "{name} is not kind/operation/variant");
        }
    }

    #[test]
    fn every_file_is_in_the_registry() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bench/implementations");
        let registry = include_str!("registry.rs");
        let entries = fs::read_dir(folder).expect("the sources are there");
        let mut num_files = 0;
        for entry in entries {
            let name = entry.expect("readable").file_name().into_string().expect("UTF-8");
            let module = name.strip_suffix(".rs").expect("a Rust file");
            if module != "mod" {
                num_files += 1;
                assert!(registry.contains(&format!("&all::{module}::")), "{module} is not in the registry");
            }
        }
        assert!(num_files > 0);
    }

    #[test]
    fn a_prefix_selects_all_below_it_and_an_unknown_one_is_refused() {
        let ours = select(&["ours/".to_owned()]).expect("there are some");
        assert!(ours.iter().all(|implementation| implementation.name().starts_with("ours/")));
        assert!(select(&["theirs/".to_owned()]).is_err());
        assert!(find("naive/spmm/cpu").is_some());
    }
}
