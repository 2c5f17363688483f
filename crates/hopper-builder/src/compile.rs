//! The nested cargo that compiles a kernel crate.

use crate::ptx::{self, Kernel};
use crate::{Error, Toolchain, messages};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// Names the builder's output; part of the source hash. Raise it with every change of flags or of the PTX text.
pub const REVISION: u32 = 1;

/// The processor. The `a` makes WGMMA and `setmaxnreg` available, on exactly this one.
pub const TARGET_CPU: &str = "sm_90a";

/// PTX 8.2: the first version with every instruction that hopper-std wraps (sparse WGMMA is the last), so old drivers load
/// it.
pub const TARGET_FEATURE: &str = "+ptx82";

const TARGET: &str = "nvptx64-nvidia-cuda";

/// What `#[kernel]` and hopper-std's macros expand to needs these in the kernel crate.
const CRATE_ATTRIBUTE: &str = "-Zcrate-attr=feature(abi_ptx,asm_experimental_arch,stdarch_nvptx)";

/// Profile settings by environment: they hold in a workspace too, where a member's own profile is ignored.
const PROFILE: [(&str, &str); 9] = [
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "3"),
    ("CARGO_PROFILE_RELEASE_LTO", "fat"),
    ("CARGO_PROFILE_RELEASE_PANIC", "abort"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1"),
    ("CARGO_PROFILE_RELEASE_DEBUG", "false"),
    ("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "false"),
    ("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "false"),
    ("CARGO_PROFILE_RELEASE_INCREMENTAL", "false"),
    ("CARGO_PROFILE_RELEASE_STRIP", "none"),
];

/// Compiles one kernel crate: a plain library that imports hopper-std.
#[derive(Clone, Debug)]
pub struct Builder {
    crate_dir: PathBuf,
    target_dir: PathBuf,
    features: Vec<String>,
    only: Option<String>,
}

impl Builder {
    /// A builder of the crate in this folder; build files go to `target/kernels` below it.
    pub fn new(crate_dir: impl Into<PathBuf>) -> Self {
        let crate_dir = crate_dir.into();
        let target_dir = crate_dir.join("target/kernels");
        Self { crate_dir, target_dir, features: Vec::new(), only: None }
    }

    /// Puts build files into this folder. The first build in a folder compiles `core` too, about 40 s.
    pub fn target_dir(mut self, target_dir: impl Into<PathBuf>) -> Self {
        self.target_dir = target_dir.into();
        self
    }

    /// Turns on a cargo feature of the kernel crate.
    pub fn feature(mut self, feature: impl Into<String>) -> Self {
        self.features.push(feature.into());
        self
    }

    /// Compiles only the kernels whose name contains `substring`.
    pub fn only(mut self, substring: impl Into<String>) -> Self {
        self.only = Some(substring.into());
        self
    }

    /// Compiles the crate and cuts the result into one module for each kernel, sorted by name.
    ///
    /// The compiler's messages go to standard error.
    ///
    /// # Errors
    /// Where the crate does not compile, exports no kernel, or exports an entry that is none.
    pub fn build(&self, toolchain: &Toolchain) -> Result<Vec<Kernel>, Error> {
        fs::create_dir_all(&self.target_dir).map_err(Error::io(&self.target_dir))?;
        let target_dir = self.target_dir.canonicalize().map_err(Error::io(&self.target_dir))?;
        let output = target_dir.join(self.output_name());
        let mut command = self.command(toolchain, &target_dir, &output);
        let program = PathBuf::from(command.get_program());
        let status = run(command.stderr(Stdio::piped())).map_err(|source| Error::Start { program, source })?;
        if !status.success() {
            return Err(Error::CargoFailed { crate_dir: self.crate_dir.clone(), status });
        }
        let text = fs::read_to_string(&output).map_err(Error::io(&output))?;
        let kernels = ptx::split(&text)?;
        match kernels.is_empty() {
            true => Err(Error::NoKernels { crate_dir: self.crate_dir.clone() }),
            false => Ok(kernels),
        }
    }

    /// The files on which the builds in this target folder depend, those of path dependencies too.
    ///
    /// # Errors
    /// Where what cargo noted about the builds cannot be read.
    pub fn source_files(&self) -> Result<BTreeSet<PathBuf>, Error> {
        let folder = self.target_dir.join(TARGET).join("release");
        let mut files = BTreeSet::new();
        for entry in folder.read_dir().map_err(Error::io(&folder))? {
            let path = entry.map_err(Error::io(&folder))?.path();
            if path.extension().is_some_and(|extension| extension == "d") {
                files.extend(dependencies(&fs::read_to_string(&path).map_err(Error::io(&path))?));
            }
        }
        Ok(files)
    }

    /// One file for each choice of kernels: cargo does not write it again where it finds a choice up to date.
    fn output_name(&self) -> String {
        let mut name = "kernels".to_owned();
        for part in self.features.iter().chain(&self.only) {
            name.push('-');
            name.extend(part.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }));
        }
        name + ".s"
    }

    fn command(&self, toolchain: &Toolchain, target_dir: &Path, output: &Path) -> Command {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_outer_build(name)) {
            command.env_remove(name);
        }
        command
            .current_dir(&self.crate_dir)
            .stdout(Stdio::null())
            .env("RUSTC", toolchain.rustc())
            .env("RUSTC_BOOTSTRAP", "1")
            // Empty: no wrapper, whatever the user's configuration says.
            .env("RUSTC_WRAPPER", "")
            .env("RUSTC_WORKSPACE_WRAPPER", "")
            .envs(PROFILE)
            // The "linker" of the module does nothing: the PTX that is wanted comes before it.
            .env(
                "CARGO_ENCODED_RUSTFLAGS",
                format!("-Ctarget-cpu={TARGET_CPU}\x1f-Ctarget-feature={TARGET_FEATURE}\x1f-Clinker=true"),
            )
            .args(["rustc", "--release", "--lib", "--crate-type", "cdylib", "--target", TARGET, "-Zbuild-std=core"])
            .arg("--target-dir")
            .arg(target_dir);
        if !self.features.is_empty() {
            command.arg("--features").arg(self.features.join(","));
        }
        let mut emit = OsString::from("--emit=asm=");
        emit.push(output);
        // Not every kernel crate uses all that the attribute turns on.
        command.arg("--").arg(emit).args([CRATE_ATTRIBUTE, "-Aunused_features"]);
        if let Some(only) = &self.only {
            // The macro reads the variable; the flag makes cargo see the change.
            command.env("HOPPER_ONLY", only).arg("--cfg").arg(format!("hopper_only={only:?}"));
            command.args(["-Adead_code", "-Aunused_imports", "-Aunused_macros"]);
        }
        command
    }
}

/// Runs cargo to its end; its messages go to standard error.
fn run(command: &mut Command) -> io::Result<ExitStatus> {
    let mut child = command.spawn()?;
    if let Some(stderr) = child.stderr.take() {
        messages::relay(BufReader::new(stderr), io::stderr())?;
    }
    child.wait()
}

/// What stands after `target:` in a line of a makefile, where a backslash keeps a space in a path.
fn dependencies(makefile: &str) -> Vec<PathBuf> {
    let lists = makefile.lines().filter_map(|line| line.split_once(": ")).map(|(_, list)| list.replace("\\ ", "\0"));
    lists.flat_map(|list| list.split(' ').map(|path| path.replace('\0', " ").into()).collect::<Vec<_>>()).collect()
}

/// Whether a variable belongs to the cargo that runs this program and would mislead the nested one.
fn is_of_outer_build(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let kept = ["CARGO_HOME", "CARGO_NET_", "CARGO_HTTP_", "CARGO_REGISTRY_", "CARGO_REGISTRIES_", "CARGO_TERM_"];
    let by_name = [
        "CARGO",
        "RUSTC",
        "RUSTDOC",
        "RUSTFLAGS",
        "RUSTDOCFLAGS",
        "RUSTUP_TOOLCHAIN",
        "RUST_RECURSION_COUNT",
        "MAKEFLAGS",
        "MFLAGS",
        "TARGET",
        "HOST",
        "OUT_DIR",
        "OPT_LEVEL",
        "PROFILE",
        "DEBUG",
        "NUM_JOBS",
        "HOPPER_ONLY",
    ];
    let by_prefix = ["CARGO_", "RUSTC_", "DEP_", "CLIPPY_"];
    by_name.contains(&name)
        || by_prefix.iter().any(|prefix| name.starts_with(prefix)) && !kept.iter().any(|k| name.starts_with(k))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outer_build_is_left_behind_but_not_the_users_settings() {
        for name in ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET", "RUSTC_WORKSPACE_WRAPPER", "CARGO", "RUSTUP_TOOLCHAIN"] {
            assert!(is_of_outer_build(OsStr::new(name)), "{name}");
        }
        for name in ["PATH", "HOME", "CARGO_HOME", "CARGO_NET_OFFLINE", "RUSTUP_HOME", "HOPPER_PTXAS"] {
            assert!(!is_of_outer_build(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn paths_may_have_spaces() {
        let paths = dependencies("/t/k.ptx: /a/lib.rs /my\\ files/b.rs\n\n/a/lib.rs:\n");
        assert_eq!(paths, [PathBuf::from("/a/lib.rs"), PathBuf::from("/my files/b.rs")]);
    }

    #[test]
    fn each_choice_of_kernels_has_its_own_output() {
        let builder = Builder::new("kernels");
        assert_eq!(builder.output_name(), "kernels.s");
        assert_eq!(builder.feature("big").only("bcsr/64").output_name(), "kernels-big-bcsr_64.s");
    }
}
