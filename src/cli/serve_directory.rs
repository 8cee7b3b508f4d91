//! Where the sessions of a server have their files. A server that was killed leaves its directory behind, and the next one removes it.

use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use tempfile::{Builder, TempDir};

/// How the name of a server's directory begins, in the directory of the system for such.
const PREFIX: &str = "tvmspec-rpc-";

/// Locked for as long as the server runs, which the system sees to.
const LOCK: &str = "lock";

/// The directory of a server, which this user alone reads.
pub(super) struct ServerDirectory {
    folder: TempDir,
    _lock: File,
}

impl ServerDirectory {
    /// A new one; those of servers that are gone are removed.
    pub(super) fn new() -> io::Result<ServerDirectory> {
        remove_orphans(&std::env::temp_dir());
        let folder = Builder::new().prefix(PREFIX).tempdir()?;
        let unnamed = folder.path().join("lock.new");
        let lock = File::create_new(&unnamed)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        // It has its name once it is locked: another server finds no directory with a lock that no process holds.
        fs::rename(unnamed, folder.path().join(LOCK))?;
        Ok(ServerDirectory {
            folder,
            _lock: lock,
        })
    }

    /// A directory for a session; in a new one of the server where its own was removed, as systems do with what is old.
    pub(super) fn session(&mut self) -> io::Result<TempDir> {
        match self.inside() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                *self = ServerDirectory::new()?;
                self.inside()
            }
            made => made,
        }
    }

    /// A directory in that of the server.
    fn inside(&self) -> io::Result<TempDir> {
        Builder::new()
            .prefix("session-")
            .tempdir_in(self.folder.path())
    }

    /// Removes all of it, at the end of the process.
    pub(super) fn remove(&self) {
        // What cannot be removed is left for the next server.
        let _ = fs::remove_dir_all(self.folder.path());
    }
}

/// Removes what servers of this user have left in `folder`. What cannot be removed stays.
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
        // One without a lock is being made (`new`), and stays.
        let Ok(lock) = File::open(entry.path().join(LOCK)) else {
            continue;
        };
        // The system lets go of a lock with its process: one that can be had is of a server that is gone.
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
