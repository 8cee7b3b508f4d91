//! Output folders: the files that a command writes together all appear, or none of them.

use super::CliError;
use super::directory::Directory;
use super::output::{self, Content};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// A folder that only one command writes to at a time.
///
/// Files are written into a directory inside it. [`OutputFolder::finish`] renames them, which cannot fail for lack of space. The folder
/// is locked in the meantime. A second process that writes to it waits, so that the final files come from one process.
pub(crate) struct OutputFolder {
    /// The path, for messages.
    path: PathBuf,
    /// The written files that have no name in the folder yet. They are removed on drop.
    files: VecDeque<String>,
    // The order of the next three fields is their drop order: folders are removed before the lock is released.
    made: MadeFolders,
    /// The directory that contains `files`, and its name.
    staged: (Directory, String),
    folder: Directory,
}

impl OutputFolder {
    /// Opens the folder at `path`, or the folder below it to which `names` lead, and creates missing folders. Does not follow links
    /// among `names`.
    pub(crate) fn open(path: &Path, names: &[&str]) -> Result<OutputFolder, CliError> {
        let whole = names.iter().fold(path.to_owned(), |at, name| at.join(name));
        let failed = |error| output::cannot_write(&whole, error);
        let made = MadeFolders::missing(&whole);
        let folder = locked(path, names, &whole).map_err(failed)?;
        Ok(OutputFolder {
            files: VecDeque::new(),
            made,
            staged: staged(&folder).map_err(failed)?,
            folder,
            path: whole,
        })
    }

    /// Writes the file `name`, which must be a single path component. [`OutputFolder::finish`] puts it into the folder.
    pub(crate) fn write(
        &mut self,
        name: &str,
        bytes: &[u8],
        content: Content,
    ) -> Result<(), CliError> {
        let failed = |error| output::cannot_write(&self.path.join(name), error);
        if self.folder.has_directory(name) {
            return Err(failed(output::is_directory()));
        }
        let file = self.staged.0.create(name, output::mode(content));
        let mut file = file.map_err(failed)?;
        self.files.push_back(name.to_owned());
        output::fill(&mut file, bytes).map_err(failed)
    }

    /// Removes the file `name` of the folder, if it exists.
    pub(crate) fn remove(&self, name: &str) -> Result<(), CliError> {
        match self.folder.remove(name) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                let path = output::file_name(&self.path.join(name));
                Err(CliError::new(format!("cannot remove {path}: {error}")))
            }
            _ => Ok(()),
        }
    }

    /// Renames every file to its final name, in the order in which they were written.
    pub(crate) fn finish(&mut self) -> Result<(), CliError> {
        while let Some(name) = self.files.front() {
            let renamed = self.staged.0.rename_into(name, &self.folder);
            renamed.map_err(|error| output::cannot_write(&self.path.join(name), error))?;
            self.files.pop_front();
        }
        self.made.0.clear();
        Ok(())
    }
}

impl Drop for OutputFolder {
    fn drop(&mut self) {
        let (staged, name) = &self.staged;
        // A file that cannot be removed is left over, but this is no error.
        for file in &self.files {
            let _ = staged.remove(file);
        }
        let _ = self.folder.remove_directory(name);
    }
}

/// Opens and locks the folder `whole`, to which `names` lead from `path`, and creates missing folders.
fn locked(path: &Path, names: &[&str], whole: &Path) -> io::Result<Directory> {
    /// The number of attempts. An attempt fails if another process removes the folder in the meantime.
    const MOST: usize = 1000;
    let mut last = io::Error::other("other processes remove it");
    for _ in 0..MOST {
        let opened = std::fs::create_dir_all(path).and_then(|()| {
            let entered = |folder: Directory, name: &&str| match folder.make(name, false) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => folder.enter(name),
                made => made,
            };
            names.iter().try_fold(Directory::open(path)?, entered)
        });
        let folder = match opened {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                last = error;
                continue;
            }
            opened => opened?,
        };
        if folder.lock(whole)? {
            return Ok(folder);
        }
    }
    Err(last)
}

/// Creates the directory in `folder` that files are written to first, and also returns its name. It is in the same folder, so that a
/// rename moves no bytes.
fn staged(folder: &Directory) -> io::Result<(Directory, String)> {
    let mut number = 0;
    loop {
        // Hidden, because a killed run does not remove it. A later run takes another number.
        let name = format!(".tvmspec-{}-{number}", std::process::id());
        match folder.make(&name, true) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            made => return Ok((made?, name)),
        }
    }
}

/// The folders that were created for the output, the innermost first. Empty ones are removed on drop.
struct MadeFolders(Vec<PathBuf>);

impl MadeFolders {
    /// Returns the folders on the way to `folder` that do not exist yet.
    fn missing(folder: &Path) -> MadeFolders {
        let missing = folder
            .ancestors()
            .take_while(|around| !around.as_os_str().is_empty() && !around.exists());
        MadeFolders(missing.map(Path::to_owned).collect())
    }
}

impl Drop for MadeFolders {
    fn drop(&mut self) {
        for folder in &self.0 {
            // A folder that is not empty is in use.
            let _ = std::fs::remove_dir(folder);
        }
    }
}
