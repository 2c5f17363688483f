//! Writing a file whole or not at all.

use std::fs::File;
use std::io;
use std::path::Path;

use super::{Action, Existing, IoError, system};

/// Lets `write` fill a temporary file in the folder of `path`, and gives it that name once it is complete. Where
/// anything fails, the temporary file is removed and what stood at `path` stays.
pub(super) fn write_atomically(
    path: &Path,
    existing: Existing,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), IoError> {
    try_write_atomically(path, existing, |file| write(file).map_err(system(Action::Write, path)))
}

/// As [`write_atomically`], where more can go wrong than writing.
pub(super) fn try_write_atomically(
    path: &Path,
    existing: Existing,
    write: impl FnOnce(&mut File) -> Result<(), IoError>,
) -> Result<(), IoError> {
    if path.is_dir() {
        return Err(IoError::IsDirectory { path: path.to_owned() });
    }
    // Asked early to spare the work; `persist_noclobber` below is what decides.
    if existing == Existing::Refuse && path.exists() {
        return Err(IoError::Exists { path: path.to_owned() });
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".hopper-sparse-").suffix(".partial");
    #[cfg(unix)]
    {
        // A temporary file is its owner's alone by default; a result should have what the umask leaves.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(folder).map_err(system(Action::Write, path))?;
    write(file.as_file_mut())?;
    file.as_file().sync_all().map_err(system(Action::Write, path))?;
    let persisted = match existing {
        Existing::Refuse => file.persist_noclobber(path),
        Existing::Replace => file.persist(path),
    };
    match persisted {
        Ok(_) => Ok(()),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
            Err(IoError::Exists { path: path.to_owned() })
        }
        Err(error) => Err(system(Action::Write, path)(error.error)),
    }
}
