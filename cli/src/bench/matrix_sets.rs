//! The matrices of a suite that names none itself: the files of a folder, and look-alikes.

use std::path::{Path, PathBuf};

use hopper_sparse::generate::Lookalike;

use super::error::BenchError;
use super::workload::Source;

/// A matrix of a set.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// The matrix's name; it says whether a look-alike is one.
    pub label: String,
    /// What the matrix comes from, where that is known.
    pub class: Option<String>,
    /// Where it is had from.
    pub source: Source,
}

/// The Matrix Market files of a folder, by name. A file has the class of the look-alike of its name.
///
/// # Errors
/// [`BenchError::NoMatrices`] without a folder or a file in it, [`BenchError::File`] where it cannot be read.
pub fn files(folder: Option<&Path>) -> Result<Vec<Member>, BenchError> {
    let folder = folder.ok_or(BenchError::NoMatrices { folder: None })?;
    let files = matrix_files(folder)?;
    if files.is_empty() {
        return Err(BenchError::NoMatrices { folder: Some(folder.to_owned()) });
    }
    let member = |path: PathBuf| {
        let label = stem(&path);
        let class = Lookalike::find(&label).map(|known| known.kind().name().to_owned());
        Member { label, class, source: Source::File(path) }
    };
    Ok(files.into_iter().map(member).collect())
}

/// Every look-alike; in its place the file of the same name, where the folder has it.
///
/// # Errors
/// [`BenchError::File`] where the folder cannot be read.
pub fn lookalikes(folder: Option<&Path>) -> Result<Vec<Member>, BenchError> {
    let files = folder.map_or(Ok(Vec::new()), matrix_files)?;
    let member = |matrix: &'static Lookalike| {
        let file = files.iter().find(|path| stem(path).eq_ignore_ascii_case(matrix.name()));
        let (label, source) = match file {
            Some(path) => (format!("{} (real)", matrix.name()), Source::File(path.clone())),
            None => (matrix.label(), Source::Lookalike(matrix)),
        };
        Member { label, class: Some(matrix.kind().name().to_owned()), source }
    };
    Ok(Lookalike::all().iter().map(member).collect())
}

/// A file's name without `.mtx` or `.mtx.gz`.
fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    name.strip_suffix(".mtx").unwrap_or(name).to_owned()
}

fn matrix_files(folder: &Path) -> Result<Vec<PathBuf>, BenchError> {
    let unreadable = |source| BenchError::File { path: folder.to_owned(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.to_string_lossy();
        if name.ends_with(".mtx") || name.ends_with(".mtx.gz") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_takes_the_place_of_its_look_alike_and_the_label_says_so() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("cant.mtx.gz");
        std::fs::write(&path, "").expect("a file");
        let members = lookalikes(Some(folder.path())).expect("a folder");
        assert_eq!(members.len(), Lookalike::all().len());
        for member in members {
            let is_real = member.label == "cant (real)";
            assert_eq!(is_real, member.source == Source::File(path.clone()), "{}", member.label);
            assert_eq!(!is_real, member.label.ends_with(" (look-alike)"), "{}", member.label);
        }
        let files = files(Some(folder.path())).expect("a file");
        assert_eq!((files[0].label.as_str(), files[0].class.as_deref()), ("cant", Some("finite-elements")));
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        assert!(matches!(lookalikes(Some(Path::new("/nonexistent"))), Err(BenchError::File { .. })));
        assert!(lookalikes(None).is_ok());
    }
}
