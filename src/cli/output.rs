//! Where results go: stdout, or a file that is there whole or not at all.
//!
//! | function | for | escaped | styles |
//! |---|---|---|---|
//! | [`print`] | texts of our own | no | no |
//! | [`show`] | people: what holds names or texts of a file | yes | no |
//! | [`stream`], [`TerminalText`] | the same, piece by piece | yes | yes |
//! | [`json`], [`json_text`] | programs, and people who look | DEL and C1 controls | no |
//! | [`note`] | stderr | yes | no |
//! | [`error`], [`warning`], [`note_of`] | stderr | yes | yes |
//!
//! Escaping is for terminals: they obey control characters, and a hostile file could hide or rewrite what was printed.

use super::CliError;
use super::closed_stdout;
use super::color::{self, StyledWrite, TerminalText};
use anstyle::Style;
use serde_core::Serialize;
use std::borrow::Cow;
use std::fmt::{self, Display, Write as _};
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Read, Seek as _, StdoutLock, Write};
use std::path::Path;
use tvmspec::conformance::report::Emphasis;

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

/// Stdout, whose errors name it: a full disk behind `> FILE` is not one of an input.
pub(crate) struct Stdout(StdoutLock<'static>);

/// [`Stdout`], for as long as it is held.
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

/// Of the same kind, since a closed pipe and an interruption are no failures.
pub(crate) fn of_stdout(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::Interrupted | io::ErrorKind::BrokenPipe => error,
        kind => io::Error::new(kind, format!("stdout: {error}")),
    }
}

/// Writes `text` to stdout as it is: texts of our own alone, with nothing from a file. A closed pipe is
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

/// Writes to stdout for people what `write` writes, piece by piece: it is never in memory as a whole.
pub(crate) fn stream(
    write: impl FnOnce(&mut TerminalWriter) -> fmt::Result,
) -> Result<(), CliError> {
    let mut out = TerminalWriter {
        out: BufWriter::new(stdout()),
        failed: Ok(()),
    };
    let written = write(&mut out);
    // `fmt::Error` has no cause: what really failed, a closed pipe for example, was kept aside.
    out.failed?;
    written.map_err(CliError::new)?;
    out.out.flush()?;
    Ok(())
}

/// Stdout for people: what a terminal obeys is escaped, and styles show where stdout is painted.
pub(crate) struct TerminalWriter {
    /// Buffered, because a dump writes several pieces for each line.
    out: BufWriter<Stdout>,
    /// The error that made a write fail, which `fmt::Error` cannot carry.
    failed: io::Result<()>,
}

impl TerminalWriter {
    /// Writes `text` as it is, and keeps the error.
    fn put(&mut self, text: &str) -> fmt::Result {
        self.out.write_all(text.as_bytes()).map_err(|error| {
            self.failed = Err(error);
            fmt::Error
        })
    }
}

impl fmt::Write for TerminalWriter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.put(&plain(text))
    }
}

impl StyledWrite for TerminalWriter {
    fn styled(&mut self, style: Style, text: &str) -> fmt::Result {
        self.put(&color::in_style(style, text, color::paints()))
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

/// JSON for a terminal as much as for a parser: indented, an end of line behind, and no control character but ends of lines.
pub(crate) fn json_text<T: Serialize + ?Sized>(value: &T) -> Result<String, CliError> {
    let mut text = Vec::new();
    write_json(&mut text, value)?;
    String::from_utf8(text).map_err(CliError::new)
}

/// Writes `value` to `out`, indented by two blanks, with an end of line behind it.
fn write_json<T: Serialize + ?Sized>(out: impl Write, value: &T) -> Result<(), CliError> {
    let mut out = Escaped { out, held: false };
    serde_json::to_writer_pretty(&mut out, value).map_err(io::Error::from)?;
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(())
}

/// JSON with DEL and the characters from U+0080 to U+009F as escapes: JSON allows them raw in a string, and terminals
/// obey them.
struct Escaped<W> {
    /// Where the escaped text goes.
    out: W,
    // serde_json writes a text in pieces, which may end inside a character.
    /// Whether the byte 0xc2 came last, which those characters start with.
    held: bool,
}

impl<W: Write> Write for Escaped<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut start = 0;
        for (at, byte) in bytes.iter().copied().enumerate() {
            if std::mem::take(&mut self.held) {
                // In UTF-8 they are 0xc2 and their own number: U+0080 to U+009F are the bytes c2 80 to c2 9f.
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

/// Writes a line to stderr for people, or several.
pub(crate) fn note(text: impl Display) {
    note_of(|out| writeln!(out, "{text}"));
}

/// Writes `error: MESSAGE` to stderr.
pub(crate) fn error(message: impl Display) {
    note_of(|out| {
        out.styled(color::BAD, "error:")?;
        writeln!(out, " {message}")
    });
}

/// Writes `warning: MESSAGE` to stderr.
pub(crate) fn warning(message: impl Display) {
    note_of(|out| {
        out.styled(color::ODD, "warning:")?;
        writeln!(out, " {message}")
    });
}

/// Writes whole lines to stderr, at once: several threads and processes share it.
pub(crate) fn note_of(write: impl FnOnce(&mut TerminalText) -> fmt::Result) {
    let mut text = TerminalText::for_stderr();
    // A `Display` of ours does not fail, and what came before it is still worth showing.
    let _ = write(&mut text);
    // Where stderr takes nothing the exit code is left.
    let _ = io::stderr().write_all(text.as_str().as_bytes());
}

/// A text of a file may hold what a terminal obeys: what is unseen, but for ends of lines, is written as an escape.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    let is_escaped = |letter: char| letter != '\n' && is_unseen(letter);
    // Most texts have nothing to escape, and are not copied.
    match text.contains(is_escaped) {
        true => escaped(text, is_escaped).into(),
        false => text.into(),
    }
}

/// [`plain`] for a name, which is on one line with what describes it: a name that ends the line could pass for a line of ours.
pub(crate) fn line_of(text: &str) -> String {
    escaped(text, is_unseen)
}

/// The name of a file, on one line: in messages it stands between words of ours.
pub(crate) fn file_name(path: &Path) -> String {
    line_of(&path.display().to_string())
}

/// `text` with the selected characters as Rust escapes them: `\u{1b}`, `\t`.
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

/// Control characters; what ends a line or turns its direction; what has no width. A name with one of them could look
/// like another name.
pub(crate) fn is_unseen(letter: char) -> bool {
    // C0, DEL and C1; behind it soft hyphens, marks of direction, separators of lines, joiners, the byte order mark
    // and tags.
    letter.is_control()
        || matches!(letter, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(letter, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Writes `bytes` to `path`, or to stdout for `-`. Binary never goes to a terminal.
///
/// A file appears under its name only when it is complete; an interrupted run leaves the old one.
pub(crate) fn write(path: &Path, bytes: &[u8], content: Content) -> Result<(), CliError> {
    if path.as_os_str() == "-" {
        check_stdout(content)?;
        let mut out = stdout();
        out.write_all(bytes)?;
        out.flush()?;
        return Ok(());
    }
    replace(path, bytes, content).map_err(|error| cannot_write(path, &error))
}

/// Checks that [`write`] can write to `path` before there is anything to write.
pub(crate) fn check(path: &Path, content: Content) -> Result<(), CliError> {
    if path.as_os_str() == "-" {
        return check_stdout(content);
    }
    let existing = std::fs::metadata(path);
    let checked = match existing {
        Ok(there) if there.is_dir() => Err(io::Error::other("it is a directory")),
        Ok(there) if !there.is_file() => Ok(()),
        _ => tempfile::tempfile_in(folder_of(path)).map(drop),
    };
    checked.map_err(|error| cannot_write(path, &error))
}

fn check_stdout(content: Content) -> Result<(), CliError> {
    if content != Content::Text && stdout().0.is_terminal() {
        return Err(CliError::new(
            "this is binary, and stdout is a terminal; give -o FILE, or redirect",
        ));
    }
    Ok(())
}

fn cannot_write(path: &Path, error: &io::Error) -> CliError {
    // An error of the temporary file goes on to name that file, which is nothing to the user.
    let text = error.to_string();
    let cause = text.split(" at path ").next().unwrap_or_default();
    CliError::new(format!("cannot write {}: {cause}", file_name(path)))
}

/// The folder that a file lies in.
fn folder_of(path: &Path) -> &Path {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Writes a new file beside the old one and renames it. In the same folder: a rename does not cross file systems.
///
/// A failure before the rename removes the new file and leaves the old one.
fn replace(path: &Path, bytes: &[u8], content: Content) -> io::Result<()> {
    // A device or a pipe cannot be replaced, only written to.
    let existing = std::fs::metadata(path).ok();
    if existing.as_ref().is_some_and(|there| !there.is_file()) {
        if existing.is_some_and(|there| there.is_dir()) {
            return Err(io::Error::other("it is a directory"));
        }
        return std::fs::write(path, bytes);
    }
    let mut builder = tempfile::Builder::new();
    // Hidden, because an interrupted run leaves it behind.
    builder.prefix(".tvmspec-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // A temporary file is private to its user by default; this one becomes an ordinary file.
        builder.permissions(std::fs::Permissions::from_mode(mode(content)));
    }
    let mut file = builder.tempfile_in(folder_of(path))?;
    fill(file.as_file_mut(), bytes)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Writes `bytes` to a new file and reads them back: what is renamed into place is what was meant.
pub(crate) fn fill(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.rewind()?;
    match holds(file, bytes)? {
        true => Ok(()),
        false => Err(io::Error::other("what was written reads back differently")),
    }
}

/// Whether `file` has these bytes from its position on, and no more. Reads 64 KiB at a time, so that no second copy of
/// the bytes is in memory.
fn holds(file: &mut impl Read, bytes: &[u8]) -> io::Result<bool> {
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

/// What a new file may be used for, before the umask takes its part: what linkers and editors pass to `open`.
pub(crate) fn mode(content: Content) -> u32 {
    match content {
        Content::Library => 0o777,
        Content::Text | Content::Binary => 0o666,
    }
}
