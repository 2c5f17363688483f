//! The test programs that use a GPU.

use crate::{ABLATION, Result, cargo, root};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// A compiled test program.
pub(crate) struct TestProgram {
    /// The test target's name: `device` for tests/device.rs.
    pub(crate) name: String,
    /// The program.
    pub(crate) executable: PathBuf,
}

/// A test that may use a GPU names this module, which decides what happens where there is none.
const GPU_MODULE: &str = "suite/gpu.rs";

/// Compiles the tests that may use a GPU, with these further arguments for cargo.
pub(crate) fn build(arguments: &[&str]) -> Result<Vec<TestProgram>> {
    let mut command = cargo();
    command.args(["test", "--no-run", "--message-format=json-render-diagnostics"]).args(arguments);
    // What only a measurement runs is tested, too.
    command.args(["--features", &format!("hopper-sparse/{ABLATION}")]);
    // cuda-loader's test meets the driver without our library between them.
    command.args(["--package", "cuda-loader", "--test", "cust", "--package", "hopper-sparse"]);
    for test in gpu_tests(&root().join("tests"))? {
        command.args(["--test", &test]);
    }
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err("the tests do not compile".into());
    }
    let text = String::from_utf8(output.stdout)?;
    Ok(text.lines().filter_map(read_message).collect())
}

/// The names of the tests in a folder that may use a GPU, sorted.
fn gpu_tests(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in folder.read_dir()? {
        let path = entry?.path();
        let is_source = path.extension().is_some_and(|extension| extension == "rs");
        if is_source && fs::read_to_string(&path)?.contains(GPU_MODULE) {
            names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    match names.is_empty() {
        true => Err(format!("no test in {} names {GPU_MODULE}", folder.display()).into()),
        false => Ok(names),
    }
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

    #[test]
    fn the_tests_that_use_a_gpu_are_found() {
        let tests = gpu_tests(&root().join("tests")).unwrap();
        assert!(tests.contains(&"device".to_owned()) && tests.contains(&"spmm_gpu".to_owned()), "{tests:?}");
        assert!(!tests.contains(&"spmm_cpu".to_owned()), "{tests:?}");
    }
}
