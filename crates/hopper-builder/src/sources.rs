//! The hash that ties kept PTX to the sources it came from.

use crate::compile::REVISION;
use crate::{Error, TARGET_CPU};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// The hash of the Rust sources and the manifest of some packages, as 64 hexadecimal digits.
///
/// Covers `Cargo.toml` and every file below `src/` of each package, by the package's place in `packages` and the
/// file's path in it, with line ends as `\n`; and the builder's [`REVISION`] and target. The compiler's version is not
/// in it: PTX that another rustc made from the same sources is not stale.
///
/// # Errors
/// Where a file cannot be read.
pub fn hash(packages: &[PathBuf]) -> Result<String, Error> {
    let mut hasher = Sha256::new();
    hasher.update(format!("hopper-builder {REVISION} {TARGET_CPU}\n"));
    for (index, package) in packages.iter().enumerate() {
        let mut files = vec![package.join("Cargo.toml")];
        list(&package.join("src"), &mut files)?;
        let mut files: Vec<(String, PathBuf)> =
            files.into_iter().map(|path| (relative(&path, package), path)).collect();
        files.sort();
        for (name, path) in files {
            let mut content = fs::read(&path).map_err(Error::io(&path))?;
            normalize_line_ends(&mut content);
            hasher.update(format!("{index}/{name} {}\n", content.len()));
            hasher.update(&content);
        }
    }
    let mut text = String::with_capacity(64);
    for byte in hasher.finalize() {
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

fn relative(path: &Path, package: &Path) -> String {
    let parts = path.strip_prefix(package).unwrap_or(path).components();
    parts.map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

/// Adds every file below `folder`, except hidden ones, which editors leave behind.
fn list(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    for entry in folder.read_dir().map_err(Error::io(folder))? {
        let path = entry.map_err(Error::io(folder))?.path();
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if hidden {
            continue;
        }
        match path.is_dir() {
            true => list(&path, files)?,
            false => files.push(path),
        }
    }
    Ok(())
}

/// A checkout may end lines with `\r\n`.
fn normalize_line_ends(content: &mut Vec<u8>) {
    let mut previous_is_return = false;
    let bytes = std::mem::take(content);
    content.reserve(bytes.len());
    for byte in bytes {
        if byte == b'\n' && previous_is_return {
            content.pop();
        }
        previous_is_return = byte == b'\r';
        content.push(byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(folder: &Path, manifest: &str, library: &str) -> PathBuf {
        fs::create_dir_all(folder.join("src/deep")).unwrap();
        fs::write(folder.join("Cargo.toml"), manifest).unwrap();
        fs::write(folder.join("src/lib.rs"), library).unwrap();
        fs::write(folder.join("src/deep/mod.rs"), "//! Deep.\n").unwrap();
        folder.to_owned()
    }

    #[test]
    fn every_source_counts_and_the_place_does_not() {
        let root = tempfile::tempdir().unwrap();
        let of = |name: &str, manifest, library| hash(&[package(&root.path().join(name), manifest, library)]).unwrap();
        let first = of("a", "[package]\n", "fn a() {}\n");
        assert_eq!(first.len(), 64);
        assert_eq!(first, of("b", "[package]\n", "fn a() {}\n"));
        assert_eq!(first, of("c", "[package]\r\n", "fn a() {}\r\n"));
        assert_ne!(first, of("d", "[package] \n", "fn a() {}\n"));
        assert_ne!(first, of("e", "[package]\n", "fn b() {}\n"));

        fs::write(root.path().join("a/src/deep/.mod.rs.swp"), "x").unwrap();
        assert_eq!(first, hash(&[root.path().join("a")]).unwrap());
        fs::rename(root.path().join("a/src/deep/mod.rs"), root.path().join("a/src/deep/other.rs")).unwrap();
        assert_ne!(first, hash(&[root.path().join("a")]).unwrap());
    }

    #[test]
    fn a_missing_package_is_an_error_with_its_path() {
        let sentence = hash(&[PathBuf::from("/no/such/package")]).unwrap_err().to_string();
        assert!(sentence.starts_with("/no/such/package/src: "), "{sentence}");
    }
}
