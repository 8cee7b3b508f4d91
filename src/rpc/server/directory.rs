//! The files of a session. All of them are in one directory, independent of their names (RPC-92).

use super::super::RPC_92;
use crate::blob::pack::write_whole;
use crate::file_name::is_file_name;
use crate::function::{Error, ErrorKind, Result};
use crate::lock::lock;
use crate::rule::Kind;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Maximum number of files of a session at a time: even empty files cost the server something.
const MOST: usize = 4096;

/// The directory, and the number of bytes that may still be written to it.
pub(super) struct Directory {
    path: PathBuf,
    written: Mutex<WrittenFiles>,
}

/// The files that this server has written to the directory. Files of uploaded code are not counted.
struct WrittenFiles {
    /// Number of bytes that may still be written.
    left: u64,
    /// Names of the files that exist.
    names: BTreeSet<String>,
}

impl Directory {
    /// Creates the file store at `path`, for uploads of at most `bytes`.
    pub(super) fn new(path: PathBuf, bytes: u64) -> Directory {
        Directory {
            path,
            written: Mutex::new(WrittenFiles {
                left: bytes,
                names: BTreeSet::new(),
            }),
        }
    }

    /// Returns the path of the file `name`.
    pub(super) fn path_of(&self, name: &str) -> Result<PathBuf> {
        // RPC-92: upstream joins the name to the directory, so that `..` or an absolute name leads to any file.
        RPC_92.demand(Kind::Malformed, is_file_name(name), || {
            format!(
                "`{}` is not a name of a file of the session",
                name.escape_debug()
            )
        })?;
        let path = self.path.join(name);
        // Uploaded code may create a link, which a user of the path would follow.
        let link = std::fs::symlink_metadata(&path).is_ok_and(|file| file.is_symlink());
        RPC_92.demand(Kind::Malformed, !link, || format!("`{name}` is a link"))?;
        Ok(path)
    }

    /// Writes the file `name`, and replaces an existing one.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.path_of(name)?;
        self.enter(name, bytes.len() as u64)?;
        // The file is renamed into place, so that it replaces a link that was created in the meantime.
        write_whole(&path, bytes).map_err(|error| failed(name, &error))
    }

    /// Counts a file to which `length` bytes are written.
    pub(super) fn enter(&self, name: &str, length: u64) -> Result<()> {
        let mut written = lock(&self.written);
        let is_new = !written.names.contains(name);
        RPC_92.demand(Kind::Limit, !is_new || written.names.len() < MOST, || {
            format!("a session has {MOST} files at most: remove some")
        })?;
        // RPC-92: never given back: the limit applies to all uploads of a session, even if a file is overwritten or removed.
        let left = written.left.checked_sub(length);
        RPC_92.demand(Kind::Limit, left.is_some(), || {
            format!("{length} bytes are more than the uploads of this session may still have")
        })?;
        written.left = left.unwrap_or_default();
        if is_new {
            written.names.insert(name.to_owned());
        }
        Ok(())
    }

    /// Returns the bytes of the file `name`.
    pub(super) fn read(&self, name: &str) -> Result<Vec<u8>> {
        let path = self.path_of(name)?;
        let failed = |error| failed(name, &error);
        let mut file = File::open(&path).map_err(failed)?;
        // RPC-92: a link may have been created since the name was checked.
        let is_own = is_at(&file, &path).map_err(failed)?;
        RPC_92.demand(Kind::Malformed, is_own, || format!("`{name}` is a link"))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        Ok(bytes)
    }

    /// Removes the file `name`. A missing file is not an error.
    pub(super) fn remove(&self, name: &str) -> Result<()> {
        match std::fs::remove_file(self.path_of(name)?) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed(name, &error)),
            _ => {
                lock(&self.written).names.remove(name);
                Ok(())
            }
        }
    }

    /// Returns the names of all files, each followed by a comma, like the C++ server.
    pub(super) fn list(&self) -> Result<String> {
        let entries = std::fs::read_dir(&self.path).map_err(|error| failed(".", &error))?;
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        // A system lists a directory in any order.
        names.sort();
        Ok(names.iter().flat_map(|name| [name, ","]).collect())
    }
}

/// Returns whether `file` is the file at `path` itself, not the target of a link there.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> std::io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let (opened, there) = (file.metadata()?, std::fs::symlink_metadata(path)?);
    Ok((opened.dev(), opened.ino()) == (there.dev(), there.ino()))
}

/// Returns whether there is no link at `path`.
#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> std::io::Result<bool> {
    Ok(!std::fs::symlink_metadata(path)?.is_symlink())
}

/// Creates the error of a file operation. The client learns only the name that it wrote, not the path of the directory.
fn failed(name: &str, error: &std::io::Error) -> Error {
    let message = format!("file `{}`: {error}", name.escape_debug());
    Error::new(ErrorKind::Runtime, message)
}
