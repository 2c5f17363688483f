//! The compiler of device code.

use crate::Error;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The oldest rustc whose NVPTX backend and `asm!` carry the kernels: minor version of 1.x.
const OLDEST_MINOR: u32 = 96;

/// A rustc of version 1.96 or newer that has the sources of its own `core`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolchain {
    rustc: PathBuf,
    version: (u32, u32, u32),
}

impl Toolchain {
    /// The first that serves of: `HOPPER_DEVICE_RUSTC` (which then must serve); rustup's toolchains, the oldest that
    /// is new enough; Debian's `/usr/bin/rustc`.
    ///
    /// # Errors
    /// [`Error::NoToolchain`], or what is wrong with the rustc in `HOPPER_DEVICE_RUSTC`.
    pub fn find() -> Result<Self, Error> {
        if let Some(rustc) = env::var_os("HOPPER_DEVICE_RUSTC").filter(|v| !v.is_empty()) {
            return Self::at(Path::new(&rustc));
        }
        let rustup = rustup_compilers().into_iter().filter_map(|rustc| Self::at(&rustc).ok());
        rustup
            .min_by_key(|toolchain| toolchain.version)
            .or_else(|| Self::at(Path::new("/usr/bin/rustc")).ok())
            .ok_or(Error::NoToolchain)
    }

    /// The toolchain of this `rustc`.
    ///
    /// # Errors
    /// Where it cannot be started, is older than 1.96, or has no library sources.
    pub fn at(rustc: &Path) -> Result<Self, Error> {
        let bad_answer = || Error::BadAnswer { program: rustc.to_owned() };
        let version = parse_version(&ask(rustc, &["--version"])?).ok_or_else(bad_answer)?;
        if version < (1, OLDEST_MINOR, 0) {
            return Err(Error::OldRustc { rustc: rustc.to_owned(), found: version });
        }
        let sysroot = PathBuf::from(ask(rustc, &["--print", "sysroot"])?.trim_end());
        let expected = sysroot.join("lib/rustlib/src/rust/library/core/src/lib.rs");
        if !expected.is_file() {
            return Err(Error::NoSources { rustc: rustc.to_owned(), expected });
        }
        Ok(Self { rustc: rustc.to_owned(), version })
    }

    #[cfg(test)]
    pub(crate) fn for_test(version: (u32, u32, u32)) -> Self {
        Self { rustc: PathBuf::from("rustc"), version }
    }

    /// The compiler.
    pub fn rustc(&self) -> &Path {
        &self.rustc
    }

    /// Its version: major, minor, patch.
    pub fn version(&self) -> (u32, u32, u32) {
        self.version
    }
}

/// Runs `rustc` with `arguments`, outside of any toolchain override, and returns what it prints.
fn ask(rustc: &Path, arguments: &[&str]) -> Result<String, Error> {
    let output = Command::new(rustc)
        .args(arguments)
        .env_remove("RUSTUP_TOOLCHAIN")
        .output()
        .map_err(|source| Error::Start { program: rustc.to_owned(), source })?;
    let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success());
    text.ok_or_else(|| Error::BadAnswer { program: rustc.to_owned() })
}

/// The compilers of rustup's toolchains, sorted by path. Read from its folder, so that no proxy is started.
fn rustup_compilers() -> Vec<PathBuf> {
    let home = env::var_os("RUSTUP_HOME")
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".rustup")));
    let Some(entries) = home.and_then(|home| home.join("toolchains").read_dir().ok()) else {
        return Vec::new();
    };
    let mut compilers: Vec<PathBuf> = entries.flatten().map(|entry| entry.path().join("bin/rustc")).collect();
    compilers.retain(|rustc| rustc.is_file());
    compilers.sort();
    compilers
}

/// Reads `rustc 1.96.0 (hash date)`, also with `-nightly` or `-beta.1` after the number.
fn parse_version(text: &str) -> Option<(u32, u32, u32)> {
    let number = text.strip_prefix("rustc ")?.split([' ', '-', '\n']).next()?;
    let mut parts = number.split('.').map(|part| part.parse().ok());
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(Some(major)), Some(Some(minor)), Some(Some(patch)), None) => Some((major, minor, patch)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_every_channel_are_read() {
        assert_eq!(parse_version("rustc 1.96.0 (ac68faa20 2026-05-25)\n"), Some((1, 96, 0)));
        assert_eq!(parse_version("rustc 1.98.1-nightly (abc 2026-06-01)"), Some((1, 98, 1)));
        assert_eq!(parse_version("rustc 1.97.0-beta.2 (abc 2026-06-01)"), Some((1, 97, 0)));
        assert_eq!(parse_version("clang version 19.1"), None);
        assert_eq!(parse_version("rustc 1.96"), None);
    }

    #[test]
    fn a_program_that_is_no_rustc_is_refused() {
        assert!(matches!(Toolchain::at(Path::new("/no/such/rustc")), Err(Error::Start { .. })));
        assert!(matches!(Toolchain::at(Path::new("true")), Err(Error::BadAnswer { .. })));
    }

    #[test]
    fn the_sentence_says_how_to_get_one() {
        let sentence = Error::NoToolchain.to_string();
        assert!(sentence.contains("rustup toolchain install 1.96.0 --component rust-src"));
        assert!(sentence.contains("rustc-web rust-web-src"));
    }
}
