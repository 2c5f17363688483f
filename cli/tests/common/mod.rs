//! Runs the command, and says what a user would see.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::path::Path;
use std::process::{Command, Output};

/// Eight entries of a 5 x 4 matrix, whose fourth row is empty; each is exact in every type.
pub const SMALL: &str = "%%MatrixMarket matrix coordinate real general
% rows cols entries
5 4 8
1 1 1.5
2 1 -2
2 2 0.25
2 4 4
3 3 1
5 1 3
5 2 -0.5
5 4 8
";

/// What the command printed, and how it ended.
pub struct Outcome {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    /// Fails unless the command ended well.
    #[track_caller]
    pub fn succeeded(self) -> Self {
        assert_eq!(self.code, Some(0), "stderr: {}", self.stderr);
        assert_eq!(self.stderr, "", "something was said on stderr");
        self
    }

    /// Fails unless the command ended with `code` after one sentence, and without a trace of a panic.
    #[track_caller]
    pub fn refused(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        assert!(self.stderr.starts_with("error: "), "stderr: {}", self.stderr);
        for trace in ["panicked", "RUST_BACKTRACE", "unwrap()", "Some(", "Os {"] {
            assert!(!self.stderr.contains(trace), "stderr: {}", self.stderr);
        }
        let errors = self.stderr.lines().filter(|line| line.starts_with("error: ")).count();
        assert_eq!(errors, 1, "not one sentence: {}", self.stderr);
        self
    }

    /// Fails unless the sentence contains `words`.
    #[track_caller]
    pub fn saying(self, words: &str) -> Self {
        assert!(self.stderr.contains(words), "`{words}` is not in: {}", self.stderr);
        self
    }

    /// The JSON object that was printed.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }
}

/// Runs `hopper-sparse` in `folder`, where no driver is seen.
pub fn run_in(folder: &Path, arguments: &[&str]) -> Outcome {
    let output = command(arguments).current_dir(folder).output().expect("the command starts");
    outcome(output)
}

/// The command, its devices hidden.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hopper-sparse"));
    command.args(arguments).env("CUDA_VISIBLE_DEVICES", "").env("COLUMNS", "200");
    command
}

fn outcome(output: Output) -> Outcome {
    Outcome {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("UTF-8 on stdout"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8 on stderr"),
    }
}

/// The names in a folder, sorted, hidden ones too.
pub fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
