//! The directory of a server for the files of its sessions. A server that was killed leaves its directory, and the next server removes
//! it.

use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use tempfile::{Builder, TempDir};

/// The prefix of the name of a server's directory in the system's temporary directory.
const PREFIX: &str = "tvmspec-rpc-";

/// The lock file. The system holds the lock as long as the server runs.
const LOCK: &str = "lock";

/// The directory of a server, which only this user can read.
pub(super) struct ServerDirectory {
    folder: TempDir,
    _lock: File,
}

impl ServerDirectory {
    /// Creates a directory, and removes those of servers that have ended.
    pub(super) fn new() -> io::Result<ServerDirectory> {
        remove_orphans(&std::env::temp_dir());
        let folder = Builder::new().prefix(PREFIX).tempdir()?;
        let unnamed = folder.path().join("lock.new");
        let lock = File::create_new(&unnamed)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        // Renamed after it is locked, so that another server never finds a lock file that is not locked.
        fs::rename(unnamed, folder.path().join(LOCK))?;
        Ok(ServerDirectory {
            folder,
            _lock: lock,
        })
    }

    /// Creates a directory for a session. If the directory of the server was removed, as systems do with old files, creates that anew.
    pub(super) fn session(&mut self) -> io::Result<TempDir> {
        match self.create_subdirectory() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                *self = ServerDirectory::new()?;
                self.create_subdirectory()
            }
            made => made,
        }
    }

    /// Creates a directory inside that of the server.
    fn create_subdirectory(&self) -> io::Result<TempDir> {
        Builder::new()
            .prefix("session-")
            .tempdir_in(self.folder.path())
    }

    /// Removes everything, at the end of the process.
    pub(super) fn remove(&self) {
        // Files that cannot be removed are left for the next server.
        let _ = fs::remove_dir_all(self.folder.path());
    }
}

/// Removes the directories that servers of this user have left in `folder`. Those that cannot be removed stay.
fn remove_orphans(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    let own = rustix::process::getuid().as_raw();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_ours = name.to_string_lossy().starts_with(PREFIX)
            && entry
                .metadata()
                .is_ok_and(|entry| entry.is_dir() && entry.uid() == own);
        if !is_ours {
            continue;
        }
        // A directory without a lock file is being created (`new`), and stays.
        let Ok(lock) = File::open(entry.path().join(LOCK)) else {
            continue;
        };
        // The system releases a lock when its process ends. A lock that can be taken belongs to a server that has ended.
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
