//! The test programs that use a GPU.

use crate::{Result, cargo};
use std::path::PathBuf;
use std::process::Stdio;

/// Tests that do not run where only their program is.
const NEED_THE_REPOSITORY: [&str; 3] = ["compile_fail", "contracts", "own_kernel"];

/// A compiled test program.
pub(crate) struct TestProgram {
    /// The test target's name: `spmm` for tests/spmm.rs, the package's name for its unit tests.
    pub(crate) name: String,
    /// The program.
    pub(crate) executable: PathBuf,
}

/// Compiles the tests of the packages that may use a GPU, with these further arguments for cargo.
///
/// Those that need the repository (`contracts` reads the kept PTX, the others start a compiler) are left out.
pub(crate) fn build(arguments: &[&str]) -> Result<Vec<TestProgram>> {
    let output = cargo()
        .args(["test", "--no-run", "--lib", "--tests", "--message-format=json-render-diagnostics"])
        .args(["--package", "hopper-sparse", "--package", "cuda-loader"])
        .args(arguments)
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err("the tests do not compile".into());
    }
    let text = String::from_utf8(output.stdout)?;
    let mut programs: Vec<TestProgram> = text.lines().filter_map(read_message).collect();
    programs.retain(|test| !NEED_THE_REPOSITORY.contains(&test.name.as_str()));
    Ok(programs)
}

/// Reads cargo's message about one artifact, where that is a test program.
fn read_message(line: &str) -> Option<TestProgram> {
    // The target's name comes before the profile, and package ids are not called "name".
    let artifact = line.contains(r#""reason":"compiler-artifact""#) && line.contains(r#""test":true}"#);
    let executable = after(line, r#""executable":""#).filter(|_| artifact)?;
    let name = after(line, r#""name":""#)?;
    Some(TestProgram { name: name.replace('-', "_"), executable: PathBuf::from(executable) })
}

/// What stands between `start` and the next quote.
fn after<'a>(line: &'a str, start: &str) -> Option<&'a str> {
    let rest = &line[line.find(start)? + start.len()..];
    Some(&rest[..rest.find('"')?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_told_from_libraries() {
        let test = concat!(
            r#"{"reason":"compiler-artifact","package_id":"path+file:///p#hopper-sparse@0.1.0","target":{"kind":["test"],"#,
            r#""name":"spmm","test":true},"profile":{"opt_level":"3","test":true},"filenames":["/t/spmm-1"],"#,
            r#""executable":"/t/spmm-1","fresh":true}"#
        );
        let program = read_message(test).unwrap();
        assert_eq!((program.name.as_str(), program.executable), ("spmm", PathBuf::from("/t/spmm-1")));
        let library = test.replace(r#""opt_level":"3","test":true"#, r#""opt_level":"3","test":false"#);
        let library = library.replace(r#""executable":"/t/spmm-1""#, r#""executable":null"#);
        assert!(read_message(&library).is_none());
        assert!(read_message(r#"{"reason":"build-finished","success":true}"#).is_none());
    }
}
