//! A directory by its handle. Files that are created in it stay in it, even if somebody replaces it or one of its files by a link. On
//! systems other than Unix, a path takes the place of the handle.

pub(crate) use self::system::Directory;

#[cfg(unix)]
mod system {
    use rustix::fs::{self, AtFlags, FileType, FlockOperation, Mode, OFlags};
    use rustix::io::Errno;
    use std::fs::File;
    use std::io;
    use std::os::fd::OwnedFd;
    use std::path::Path;

    /// An open directory.
    pub(crate) struct Directory(OwnedFd);

    /// The flags that every directory is opened with.
    const FLAGS: OFlags = OFlags::RDONLY
        .union(OFlags::DIRECTORY)
        .union(OFlags::CLOEXEC);

    impl Directory {
        /// Opens the directory at `path` and follows links, because the user states the path on the command line.
        pub(crate) fn open(path: &Path) -> io::Result<Directory> {
            Ok(Directory(fs::open(path, FLAGS, Mode::empty())?))
        }

        /// Waits until no other process holds the lock of this directory, and takes the lock until the handle is closed.
        ///
        /// Returns `false` if `path` now leads to another directory, because the other process has removed this one.
        pub(crate) fn lock(&self, path: &Path) -> io::Result<bool> {
            // A file system without locks cannot keep two processes apart, but this does not prevent writing.
            while let Err(Errno::INTR) = fs::flock(&self.0, FlockOperation::LockExclusive) {}
            let own = fs::fstat(&self.0)?;
            match fs::stat(path) {
                Ok(there) => Ok((own.st_dev, own.st_ino) == (there.st_dev, there.st_ino)),
                Err(Errno::NOENT) => Ok(false),
                Err(error) => Err(error.into()),
            }
        }

        /// Creates the directory `name` in this one and opens it.
        pub(crate) fn make(&self, name: &str, is_private: bool) -> io::Result<Directory> {
            let mode = if is_private { 0o700 } else { 0o777 };
            fs::mkdirat(&self.0, name, Mode::from_raw_mode(mode))?;
            self.enter(name)
        }

        /// Opens the directory `name` in this one, which may not be a link.
        pub(crate) fn enter(&self, name: &str) -> io::Result<Directory> {
            let flags = FLAGS | OFlags::NOFOLLOW;
            Ok(Directory(fs::openat(&self.0, name, flags, Mode::empty())?))
        }

        /// Creates the file `name`, which must not exist, for reading and writing.
        pub(crate) fn create(&self, name: &str, mode: u32) -> io::Result<File> {
            let flags =
                OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            // The umask applies, as for any other file.
            let mode = Mode::from_raw_mode(mode as _);
            Ok(fs::openat(&self.0, name, flags, mode)?.into())
        }

        /// Returns whether `name` is a directory, and not a link to one.
        pub(crate) fn has_directory(&self, name: &str) -> bool {
            fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|there| FileType::from_raw_mode(there.st_mode) == FileType::Directory)
        }

        /// Moves the file `name` of this directory into `other`, and replaces a file or a link there.
        pub(crate) fn rename_into(&self, name: &str, other: &Directory) -> io::Result<()> {
            Ok(fs::renameat(&self.0, name, &other.0, name)?)
        }

        /// Removes the file or link `name`.
        pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
            Ok(fs::unlinkat(&self.0, name, AtFlags::empty())?)
        }

        /// Removes the empty directory `name`.
        pub(crate) fn remove_directory(&self, name: &str) -> io::Result<()> {
            Ok(fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
        }
    }
}

#[cfg(not(unix))]
mod system {
    use std::fs::{self, File};
    use std::io;
    use std::path::{Path, PathBuf};

    /// A directory by its path.
    pub(crate) struct Directory(PathBuf);

    impl Directory {
        /// Checks that `path` is a directory.
        pub(crate) fn open(path: &Path) -> io::Result<Directory> {
            fs::read_dir(path)?;
            Ok(Directory(path.to_owned()))
        }

        /// Locks nothing, because Rust cannot lock directories here.
        pub(crate) fn lock(&self, path: &Path) -> io::Result<bool> {
            Ok(path.is_dir())
        }

        /// Creates the directory `name` in this one.
        pub(crate) fn make(&self, name: &str, _is_private: bool) -> io::Result<Directory> {
            fs::create_dir(self.0.join(name))?;
            self.enter(name)
        }

        /// Returns the directory `name` in this one, which must not be a link.
        pub(crate) fn enter(&self, name: &str) -> io::Result<Directory> {
            let path = self.0.join(name);
            match fs::symlink_metadata(&path)?.is_dir() {
                true => Ok(Directory(path)),
                false => Err(io::Error::other("it is not a directory")),
            }
        }

        /// Creates the file `name`, which must not exist, for reading and writing.
        pub(crate) fn create(&self, name: &str, _mode: u32) -> io::Result<File> {
            let mut options = File::options();
            let options = options.read(true).write(true).create_new(true);
            options.open(self.0.join(name))
        }

        /// Returns whether `name` is a directory, and not a link to one.
        pub(crate) fn has_directory(&self, name: &str) -> bool {
            fs::symlink_metadata(self.0.join(name)).is_ok_and(|there| there.is_dir())
        }

        /// Moves the file `name` of this directory into `other`, and replaces a file or a link there.
        pub(crate) fn rename_into(&self, name: &str, other: &Directory) -> io::Result<()> {
            fs::rename(self.0.join(name), other.0.join(name))
        }

        /// Removes the file or link `name`.
        pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
            fs::remove_file(self.0.join(name))
        }

        /// Removes the empty directory `name`.
        pub(crate) fn remove_directory(&self, name: &str) -> io::Result<()> {
            fs::remove_dir(self.0.join(name))
        }
    }
}
