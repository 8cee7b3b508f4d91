//! Folders of files that a command writes together: all of them appear, or none does.

use super::CliError;
use super::directory::Directory;
use super::output::{self, Content};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// A folder that one command at a time writes to.
///
/// Files are written into a directory inside it and renamed by [`OutputFolder::finish`], which is what cannot fail for want of room.
/// The folder is locked meanwhile: of two processes that write to it, the second waits for the first, so that the files of one are
/// there in the end.
pub(crate) struct OutputFolder {
    /// For messages.
    path: PathBuf,
    /// The files that are written and have no name in the folder yet; gone when dropped.
    files: VecDeque<String>,
    // The order of the next three is that in which they are dropped: folders are removed before the lock is.
    made: MadeFolders,
    /// The directory that holds `files`, and its name.
    staged: (Directory, String),
    folder: Directory,
}

impl OutputFolder {
    /// Opens the folder at `path`, or the one below it that `names` lead to, and makes what is missing. No link among `names` is
    /// followed.
    pub(crate) fn open(path: &Path, names: &[&str]) -> Result<OutputFolder, CliError> {
        let whole = names.iter().fold(path.to_owned(), |at, name| at.join(name));
        let failed = |error| cannot_write(&whole, &error);
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

    /// Writes the file `name`, which [`OutputFolder::finish`] puts into the folder. It is a single part of a path.
    pub(crate) fn write(
        &mut self,
        name: &str,
        bytes: &[u8],
        content: Content,
    ) -> Result<(), CliError> {
        let failed = |error| cannot_write(&self.path.join(name), &error);
        if self.folder.has_directory(name) {
            return Err(failed(io::Error::other("it is a directory")));
        }
        let file = self.staged.0.create(name, output::mode(content));
        let mut file = file.map_err(failed)?;
        self.files.push_back(name.to_owned());
        output::fill(&mut file, bytes).map_err(failed)
    }

    /// Removes the file `name` of the folder, if it is there.
    pub(crate) fn remove(&self, name: &str) -> Result<(), CliError> {
        match self.folder.remove(name) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                let path = output::file_name(&self.path.join(name));
                Err(CliError::new(format!("cannot remove {path}: {error}")))
            }
            _ => Ok(()),
        }
    }

    /// Puts every file under its name, in the order in which they were written.
    pub(crate) fn finish(&mut self) -> Result<(), CliError> {
        while let Some(name) = self.files.front() {
            let renamed = self.staged.0.rename_into(name, &self.folder);
            renamed.map_err(|error| cannot_write(&self.path.join(name), &error))?;
            self.files.pop_front();
        }
        self.made.0.clear();
        Ok(())
    }
}

impl Drop for OutputFolder {
    fn drop(&mut self) {
        let (staged, name) = &self.staged;
        // A file that cannot be removed is litter, not an error.
        for file in &self.files {
            let _ = staged.remove(file);
        }
        let _ = self.folder.remove_directory(name);
    }
}

/// Opens and locks the folder `whole`, to which `names` lead from `path`, and makes what is missing of it.
fn locked(path: &Path, names: &[&str], whole: &Path) -> io::Result<Directory> {
    /// Each failure removes the folder that another process waits for.
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

/// Makes the directory in `folder` that files are written to first, and returns its name with it. In the same folder: a rename
/// there moves no bytes.
fn staged(folder: &Directory) -> io::Result<(Directory, String)> {
    let mut number = 0;
    loop {
        // Hidden, because a run that is killed does not remove it; a later one takes another number.
        let name = format!(".tvmspec-{}-{number}", std::process::id());
        match folder.make(&name, true) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            made => return Ok((made?, name)),
        }
    }
}

/// The error for a file or a folder that cannot be written.
fn cannot_write(path: &Path, error: &io::Error) -> CliError {
    let path = output::file_name(path);
    CliError::new(format!("cannot write {path}: {error}"))
}

/// The folders that are made for the output, the innermost first; gone when dropped, where they are empty.
struct MadeFolders(Vec<PathBuf>);

impl MadeFolders {
    /// Those on the way to `folder` that are not there yet.
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
            // One that is not empty is in use.
            let _ = std::fs::remove_dir(folder);
        }
    }
}
