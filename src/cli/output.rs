//! Where results go: stdout, or a file that is there whole or not at all.

use super::Error;
use serde_json::Value;
use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use tvmspec::wire::json::pretty;

/// What is written, which decides whether it may go to a terminal and whether it may be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// For people or parsers.
    Text,
    /// Bytes that would garble a terminal.
    Binary,
    /// A shared library: binary, and a file of it is executable as linkers make them.
    Library,
}

/// Writes `text` to stdout. A closed pipe is [`Error::ClosedPipe`], which says nothing.
pub(crate) fn print(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Writes `text` to stdout for people.
pub(crate) fn show(text: &str) -> Result<(), Error> {
    print(&plain(text))
}

/// Writes `value` to stdout.
pub(crate) fn json(value: &Value) -> Result<(), Error> {
    print(&pretty(value))
}

/// Writes a line to stderr for people.
pub(crate) fn note(text: impl Display) {
    eprintln!("{}", plain(&text.to_string()));
}

/// What files say may hold what a terminal obeys: control characters but ends of lines are written as escapes.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for one in text.chars() {
        match one {
            '\n' => plain.push(one),
            _ if one.is_control() => plain.extend(one.escape_default()),
            _ => plain.push(one),
        }
    }
    plain
}

/// Writes `bytes` to `path`, or to stdout for `-`. Binary never goes to a terminal.
///
/// A file appears under its name only when it is complete; an interrupted run leaves the old one.
pub(crate) fn write(path: &Path, bytes: &[u8], content: Content) -> Result<(), Error> {
    if path.as_os_str() == "-" {
        let mut out = io::stdout().lock();
        if content != Content::Text && out.is_terminal() {
            return Err(Error::new(
                "this is binary, and stdout is a terminal; give -o FILE, or redirect",
            ));
        }
        out.write_all(bytes)?;
        out.flush()?;
        return Ok(());
    }
    replace(path, bytes, content).map_err(|error| {
        // An error of the temporary file goes on to name that file, which is nothing to the user.
        let text = error.to_string();
        let cause = text.split(" at path ").next().unwrap_or_default();
        Error::new(format!("cannot write {}: {cause}", path.display()))
    })
}

fn replace(path: &Path, bytes: &[u8], content: Content) -> io::Result<()> {
    // A device or a pipe cannot be replaced, only written to.
    let existing = std::fs::metadata(path).ok();
    if existing.as_ref().is_some_and(|there| !there.is_file()) {
        if existing.is_some_and(|there| there.is_dir()) {
            return Err(io::Error::other("it is a directory"));
        }
        return std::fs::write(path, bytes);
    }
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let mut builder = tempfile::Builder::new();
    builder.prefix(".tvmspec-");
    let permissions = permissions(content);
    if let Some(permissions) = permissions {
        builder.permissions(permissions);
    }
    let mut file = builder.tempfile_in(folder.unwrap_or(Path::new(".")))?;
    file.write_all(bytes)?;
    file.flush()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// What a new file may be used for; the umask takes its part as for any other file.
fn permissions(content: Content) -> Option<std::fs::Permissions> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = if content == Content::Library {
            0o777
        } else {
            0o666
        };
        Some(std::fs::Permissions::from_mode(mode))
    }
    #[cfg(not(unix))]
    {
        let _ = content;
        None
    }
}
