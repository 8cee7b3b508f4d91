//! Output of results: to stdout, or to a file that appears completely or not at all.
//!
//! | function | for | escaped | styles |
//! |---|---|---|---|
//! | [`print`] | fixed texts of this program | no | no |
//! | [`show`] | people: texts with names or content of a file | yes | no |
//! | [`stream`], [`TerminalText`] | like `show`, piece by piece | yes | yes |
//! | [`json`], [`json_text`] | programs and people | DEL and C1 controls | no |
//! | [`note`] | stderr | yes | no |
//! | [`error`], [`warning`], [`note_of`] | stderr | yes | yes |
//!
//! Escaping protects terminals: they obey control characters, and a hostile file could hide or rewrite printed text.

use super::CliError;
use super::closed_stdout;
use super::color::{self, StyledWrite, TerminalText};
use super::embedding;
use crate::conformance::sanitized_text::is_unseen;
use anstyle::Style;
use serde_core::Serialize;
use std::borrow::Cow;
use std::fmt::{self, Display, Write as _};
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Read, Seek as _, StdoutLock, Write};
use std::path::Path;
use tvmspec::conformance::report::Emphasis;

/// The kind of content, which decides whether it may go to a terminal and whether a file is executable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// For people or parsers.
    Text,
    /// Bytes that would garble a terminal.
    Binary,
    /// A shared library: binary, and executable as a file, as linkers create it.
    Library,
}

/// Stdout. Its errors name it, so that a full disk after `> FILE` does not look like an error of an input.
pub(crate) struct Stdout(StdoutLock<'static>);

/// Returns [`Stdout`], locked while it is held.
pub(crate) fn stdout() -> Stdout {
    Stdout(io::stdout().lock())
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        closed_stdout::check()?;
        self.0.write(bytes).map_err(of_stdout)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(of_stdout)
    }
}

/// Adds the name of stdout to an error and keeps its kind. A closed pipe or an interruption is no failure and stays unchanged.
pub(crate) fn of_stdout(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::Interrupted | io::ErrorKind::BrokenPipe => error,
        kind => io::Error::new(kind, format!("stdout: {error}")),
    }
}

/// Writes `text` to stdout unescaped. Only for texts of this program without content of a file. A closed pipe is
/// [`CliError::ClosedPipe`], which has no message.
pub(crate) fn print(text: &str) -> Result<(), CliError> {
    let mut out = stdout();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Writes `text` to stdout for people. A closed pipe is [`CliError::ClosedPipe`], which has no message.
pub(crate) fn show(text: &str) -> Result<(), CliError> {
    stream(|out| out.write_str(text))
}

/// Writes the output of `write` to stdout for people, piece by piece, so that it is never in memory as a whole.
pub(crate) fn stream(
    write: impl FnOnce(&mut TerminalWriter) -> fmt::Result,
) -> Result<(), CliError> {
    let mut out = TerminalWriter {
        out: BufWriter::new(stdout()),
        failed: Ok(()),
    };
    let written = write(&mut out);
    // `fmt::Error` has no cause. `failed` has the original error, such as a closed pipe.
    out.failed?;
    written.map_err(CliError::new)?;
    out.out.flush()?;
    Ok(())
}

/// Stdout for people: control sequences are escaped, and styles are shown if stdout is painted.
pub(crate) struct TerminalWriter {
    /// Buffered, because a dump writes several pieces for each line.
    out: BufWriter<Stdout>,
    /// The error that made a write fail, which `fmt::Error` cannot carry.
    failed: io::Result<()>,
}

impl TerminalWriter {
    /// Writes `text` unescaped, and stores the error.
    fn write_unescaped(&mut self, text: &str) -> fmt::Result {
        self.out.write_all(text.as_bytes()).map_err(|error| {
            self.failed = Err(error);
            fmt::Error
        })
    }
}

impl fmt::Write for TerminalWriter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.write_unescaped(&escape_text(text))
    }
}

impl StyledWrite for TerminalWriter {
    fn styled(&mut self, style: Style, text: &str) -> fmt::Result {
        self.write_unescaped(&color::in_style(style, text, color::paints()))
    }
}

impl Emphasis for TerminalWriter {
    fn emphasize(&mut self, word: &str, is_bad: bool) -> fmt::Result {
        let style = if is_bad { color::BAD } else { color::ODD };
        self.styled(style, word)
    }
}

/// Writes `value` to stdout as [`json_text`], piece by piece.
pub(crate) fn json<T: Serialize + ?Sized>(value: &T) -> Result<(), CliError> {
    write_json(BufWriter::new(stdout()), value)
}

/// Formats JSON for terminals and parsers: indented, ending with a line end, without control characters other than line ends.
pub(crate) fn json_text<T: Serialize + ?Sized>(value: &T) -> Result<String, CliError> {
    let mut text = Vec::new();
    write_json(&mut text, value)?;
    String::from_utf8(text).map_err(CliError::new)
}

/// Writes `value` to `out`, indented by two blanks and followed by a line end.
fn write_json<T: Serialize + ?Sized>(out: impl Write, value: &T) -> Result<(), CliError> {
    let mut out = Escaped { out, held: false };
    serde_json::to_writer_pretty(&mut out, value).map_err(io::Error::from)?;
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(())
}

/// A JSON writer that escapes DEL and the characters from U+0080 to U+009F. JSON allows them in a string, but terminals obey them.
struct Escaped<W> {
    /// The destination of the escaped text.
    out: W,
    // serde_json writes a text in pieces, which may end inside a character.
    /// Whether the last byte was 0xc2, the first byte of those characters.
    held: bool,
}

impl<W: Write> Write for Escaped<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut start = 0;
        for (at, byte) in bytes.iter().copied().enumerate() {
            if std::mem::take(&mut self.held) {
                // In UTF-8, U+0080 to U+009F are the bytes c2 80 to c2 9f.
                if (0x80..=0x9f).contains(&byte) {
                    write!(self.out, "\\u{byte:04x}")?;
                    start = at + 1;
                    continue;
                }
                // A character from U+00A0 to U+00BF, which starts with the same byte.
                self.out.write_all(&[0xc2])?;
            }
            if byte == 0x7f || byte == 0xc2 {
                self.out.write_all(&bytes[start..at])?;
                start = at + 1;
                self.held = byte == 0xc2;
                if !self.held {
                    self.out.write_all(b"\\u007f")?;
                }
            }
        }
        self.out.write_all(&bytes[start..])?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Writes one or more lines to stderr for people. An embedded command adds them to its warnings.
pub(crate) fn note(text: impl Display) {
    let text = text.to_string();
    if embedding::with_exchange(|exchange| exchange.warnings.push(text.clone())).is_none() {
        note_of(|out| writeln!(out, "{text}"));
    }
}

/// Writes `error: MESSAGE` to stderr.
pub(crate) fn error(message: impl Display) {
    note_of(|out| {
        out.styled(color::BAD, "error:")?;
        writeln!(out, " {message}")
    });
}

/// Writes `warning: MESSAGE` to stderr. An embedded command adds the message to its warnings.
pub(crate) fn warning(message: impl Display) {
    let message = message.to_string();
    if embedding::with_exchange(|exchange| exchange.warnings.push(message.clone())).is_none() {
        note_of(|out| {
            out.styled(color::ODD, "warning:")?;
            writeln!(out, " {message}")
        });
    }
}

/// Writes whole lines to stderr in one call, because several threads and processes share it.
pub(crate) fn note_of(write: impl FnOnce(&mut TerminalText) -> fmt::Result) {
    let mut text = TerminalText::for_stderr();
    // Only this program's `Display` implementations are used, which do not fail. Earlier text is printed in any case.
    let _ = write(&mut text);
    // If stderr cannot be written, the exit code still reports the outcome.
    let _ = io::stderr().write_all(text.as_str().as_bytes());
}

/// Escapes invisible characters except line ends, because a text from a file may contain control sequences.
pub(crate) fn escape_text(text: &str) -> Cow<'_, str> {
    let is_escaped = |letter: char| letter != '\n' && is_unseen(letter);
    // Most texts need no escapes, and are not copied.
    if text.contains(is_escaped) {
        escaped(text, is_escaped).into()
    } else {
        text.into()
    }
}

/// Like [`escape_text`], for a name within a line. Line ends are escaped too, because a name with one could imitate a line of this program.
pub(crate) fn escape_line(text: &str) -> String {
    escaped(text, is_unseen)
}

/// Returns the name of a file on one line, for use within a message.
pub(crate) fn file_name(path: &Path) -> String {
    escape_line(&path.display().to_string())
}

/// Escapes the selected characters of `text` as Rust does: `\u{1b}`, `\t`.
fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_escaped(letter) {
            out.extend(letter.escape_default())
        } else {
            out.push(letter)
        }
    }
    out
}

/// Writes `bytes` to `path`, or for `-` to stdout, or to the program in which the command is embedded. Binary content never goes to a
/// terminal.
///
/// A file appears under its name only when it is complete. An interrupted run leaves the old file.
pub(crate) fn write(path: &Path, bytes: &[u8], content: Content) -> Result<(), CliError> {
    if path.as_os_str() == "-" {
        if embedding::with_exchange(|exchange| exchange.output.extend_from_slice(bytes)).is_some() {
            return Ok(());
        }
        check_stdout(content)?;
        let mut out = stdout();
        out.write_all(bytes)?;
        out.flush()?;
        return Ok(());
    }
    replace(path, bytes, content).map_err(|error| cannot_write(path, error))
}

/// Checks that [`write`] can write to `path`, before the content is computed.
pub(crate) fn check(path: &Path, content: Content) -> Result<(), CliError> {
    if path.as_os_str() == "-" {
        return check_stdout(content);
    }
    let existing = std::fs::metadata(path);
    let checked = match existing {
        Ok(there) if there.is_dir() => Err(is_directory()),
        Ok(there) if !there.is_file() => Ok(()),
        _ => tempfile::tempfile_in(folder_of(path)).map(drop),
    };
    checked.map_err(|error| cannot_write(path, error))
}

fn check_stdout(content: Content) -> Result<(), CliError> {
    if content != Content::Text && stdout().0.is_terminal() {
        return Err(CliError::new(
            "this is binary, and stdout is a terminal; give -o FILE, or redirect",
        ));
    }
    Ok(())
}

/// Creates the error for a file or a folder that cannot be written.
pub(crate) fn cannot_write(path: &Path, error: io::Error) -> CliError {
    // An error of the temporary file also names that file, which means nothing to the user.
    let text = error.to_string();
    let cause = text.split(" at path ").next().unwrap_or_default();
    CliError::File {
        message: format!("cannot write {}: {cause}", file_name(path)),
        path: path.to_owned(),
        error,
    }
}

/// Creates the error for a path that is a directory and not a file.
pub(crate) fn is_directory() -> io::Error {
    io::Error::new(io::ErrorKind::IsADirectory, "it is a directory")
}

/// Returns the folder of a file.
fn folder_of(path: &Path) -> &Path {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Writes a new file in the folder of the old one and renames it, because a rename cannot cross file systems.
///
/// A failure before the rename removes the new file and leaves the old one.
fn replace(path: &Path, bytes: &[u8], content: Content) -> io::Result<()> {
    // A device or a pipe cannot be replaced, only written to.
    let existing = std::fs::metadata(path).ok();
    if existing.as_ref().is_some_and(|there| !there.is_file()) {
        if existing.is_some_and(|there| there.is_dir()) {
            return Err(is_directory());
        }
        return std::fs::write(path, bytes);
    }
    let mut builder = tempfile::Builder::new();
    // Hidden, because an interrupted run leaves it.
    builder.prefix(".tvmspec-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // A temporary file is private to its user by default, but this one becomes an ordinary file.
        builder.permissions(std::fs::Permissions::from_mode(mode(content)));
    }
    let mut file = builder.tempfile_in(folder_of(path))?;
    fill(file.as_file_mut(), bytes)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Writes `bytes` to a new file and reads them back, so that only the intended content is renamed into place.
pub(crate) fn fill(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.rewind()?;
    if has_content(file, bytes)? {
        Ok(())
    } else {
        Err(io::Error::other("what was written reads back differently"))
    }
}

/// Returns whether `file` contains exactly these bytes from its position on. Reads 64 KiB at a time, to avoid a second copy in memory.
fn has_content(file: &mut impl Read, bytes: &[u8]) -> io::Result<bool> {
    let mut rest = bytes;
    let mut room = [0; 1 << 16];
    loop {
        let count = file.read(&mut room)?;
        if count == 0 {
            return Ok(rest.is_empty());
        }
        let Some((here, behind)) = rest.split_at_checked(count) else {
            return Ok(false);
        };
        if here != &room[..count] {
            return Ok(false);
        }
        rest = behind;
    }
}

/// Returns the permissions of a new file before the umask applies, as linkers and editors pass them to `open`.
pub(crate) fn mode(content: Content) -> u32 {
    match content {
        Content::Library => 0o777,
        Content::Text | Content::Binary => 0o666,
    }
}
