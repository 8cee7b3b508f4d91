//! The JSON dialect of 0.2 to 0.21: the syntax that its reader accepts, and the layout that its writer produces.

use crate::object::OBJ_21;
use crate::rule::{Kind, Violation};

/// Returns whether `repr_str` may contain the byte (OBJ-25).
pub(super) const fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~')
}

/// A reader of values of known types. It keeps no values and does not recurse; nesting is up to the caller.
pub(super) struct LegacyReader<'a> {
    /// The whole text.
    text: &'a [u8],
    /// The next byte.
    at: usize,
}

impl<'a> LegacyReader<'a> {
    /// Creates a reader at the beginning of a text.
    pub(super) fn new(text: &'a [u8]) -> LegacyReader<'a> {
        LegacyReader { text, at: 0 }
    }

    /// Creates a reader of the same text that starts at `at`.
    pub(super) fn reader_at(&self, at: u64) -> LegacyReader<'a> {
        let at = usize::try_from(at).unwrap_or(self.text.len());
        LegacyReader {
            text: self.text,
            at,
        }
    }

    /// Skips space and returns the offset of the next byte.
    pub(super) fn next_offset(&mut self) -> u64 {
        self.skip();
        self.at as u64
    }

    /// Skips space and returns the rest of the text.
    pub(super) fn remaining(&mut self) -> &'a [u8] {
        self.skip();
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Reads the name of the next member of an object and returns it with its offset; `None` after the last. `begun` is false before the
    /// first.
    pub(super) fn member(
        &mut self,
        what: &str,
        begun: &mut bool,
    ) -> Result<Option<(Vec<u8>, u64)>, Violation> {
        if !self.next(b"{}", what, begun)? {
            return Ok(None);
        }
        let at = self.next_offset();
        let key = self.string("the name of a member")?;
        self.expect(b':', what)?;
        Ok(Some((key, at)))
    }

    /// Returns whether an array has another element, and moves to it. `begun` is false before the first.
    pub(super) fn element(&mut self, what: &str, begun: &mut bool) -> Result<bool, Violation> {
        self.next(b"[]", what, begun)
    }

    /// Returns whether a container has another item, and moves to it. Reads the opening bracket before the first item, and a comma before
    /// every other.
    fn next(
        &mut self,
        brackets: &[u8; 2],
        what: &str,
        begun: &mut bool,
    ) -> Result<bool, Violation> {
        let [open, close] = *brackets;
        // The caller keeps the state, so that nesting takes no memory here.
        let first = !std::mem::replace(begun, true);
        if first {
            self.expect(open, what)?;
        }
        // OBJ-21: the closing bracket may follow the opening bracket or an item, but never a comma.
        if self.skip_byte_if_next(close) {
            return Ok(false);
        }
        if !first {
            self.expect(b',', what)?;
        }
        Ok(true)
    }

    /// Reads a string: five escapes, every other byte unchanged, and no line break. `what` names the string in a violation.
    pub(super) fn string(&mut self, what: &str) -> Result<Vec<u8>, Violation> {
        self.expect(b'"', what)?;
        let mut text = Vec::new();
        loop {
            let at = self.at;
            match self.take() {
                Some(b'"') => return Ok(text),
                Some(b'\\') => text.push(match self.take() {
                    Some(b'r') => b'\r',
                    Some(b'n') => b'\n',
                    Some(b't') => b'\t',
                    // OBJ-21: the escapes `\/` and `\u` of JSON are missing, because writers of this form never wrote them.
                    Some(plain @ (b'"' | b'\\')) => plain,
                    Some(other) => {
                        let message = format!(
                            "\\{} is not an escape of this form: \\r, \\n, \\t, \\\\ and \\\" are",
                            char::from(other).escape_default()
                        );
                        return Err(OBJ_21.broken(Kind::Malformed, at as u64, message));
                    }
                    None => return Err(self.unexpected_end(what)),
                }),
                Some(byte) => {
                    // OBJ-21: a string ends on its line. Every other byte is text, even control characters.
                    let inside = !matches!(byte, b'\r' | b'\n');
                    OBJ_21.require(inside, at as u64, || format!("a line ends inside {what}"))?;
                    text.push(byte);
                }
                None => return Err(self.unexpected_end(what)),
            }
        }
    }

    /// Reads a count or an index in decimal digits. Returns `None` if it does not fit a machine word.
    pub(super) fn number(&mut self, what: &str) -> Result<Option<usize>, Violation> {
        let start = self.next_offset();
        // OBJ-23: a number that is too large is read to its end. It is an invalid index, and not malformed text.
        let mut value = Some(0usize);
        let mut digits = 0u32;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            let digit = usize::from(digit.saturating_sub(b'0'));
            value = value
                .and_then(|value| value.checked_mul(10))
                .and_then(|value| value.checked_add(digit));
            digits = digits.saturating_add(1);
            self.at = self.at.saturating_add(1);
        }
        if digits > 0 {
            return Ok(value);
        }
        // A sign is not a digit: -1 is malformed text here, not an index.
        match self.peek() {
            None => Err(self.unexpected_end(what)),
            Some(_) => Err(self.unexpected_byte(what, "a number from 0 on", start)),
        }
    }

    /// Reads `byte`, which must be next in `what`.
    fn expect(&mut self, byte: u8, what: &str) -> Result<(), Violation> {
        if self.skip_byte_if_next(byte) {
            return Ok(());
        }
        // OBJ-21: upstream accepts the end of the text instead of any missing bracket.
        match self.peek() {
            None => Err(self.unexpected_end(what)),
            Some(_) => {
                let at = self.at as u64;
                Err(self.unexpected_byte(what, &format!("`{}`", char::from(byte)), at))
            }
        }
    }

    /// Skips space, and reads `byte` if it is next. Returns whether it was.
    fn skip_byte_if_next(&mut self, byte: u8) -> bool {
        self.skip();
        let there = self.peek() == Some(byte);
        if there {
            self.at = self.at.saturating_add(1);
        }
        there
    }

    /// Returns the violation for an unexpected byte at `at`.
    fn unexpected_byte(&self, what: &str, wanted: &str, at: u64) -> Violation {
        let found = self.peek().map_or(String::new(), |byte| {
            format!(", not `{}`", char::from(byte).escape_default())
        });
        OBJ_21.broken(
            Kind::Malformed,
            at,
            format!("{wanted} is expected in {what}{found}"),
        )
    }

    /// Returns the violation for a text that ends inside `what`.
    fn unexpected_end(&self, what: &str) -> Violation {
        // OBJ-21: the kind is truncated, because more text could complete it.
        let message = format!("the text ends inside {what}");
        OBJ_21.broken(Kind::Truncated, self.at as u64, message)
    }

    /// Returns the next byte; `None` at the end of the text.
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Reads the next byte.
    fn take(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at = self.at.saturating_add(1);
        Some(byte)
    }

    /// Skips space as defined by `isspace`, which includes the vertical tab and the form feed.
    fn skip(&mut self) {
        while let Some(b' ' | b'\t'..=b'\r') = self.peek() {
            self.at = self.at.saturating_add(1);
        }
    }
}

/// A writer that indents by two spaces for each level, and writes a space after every comma, even at the end of a line.
#[derive(Default)]
pub(super) struct LegacyWriter {
    /// The text so far.
    text: Vec<u8>,
    /// The open containers, outermost first.
    scopes: Vec<WriterScope>,
}

/// An open container.
struct WriterScope {
    /// True if each item has its own line.
    lines: bool,
    /// True if the container has no item yet.
    empty: bool,
    /// Its closing bracket.
    close: u8,
}

impl LegacyWriter {
    /// Returns the finished text.
    pub(super) fn into_text(self) -> Vec<u8> {
        self.text
    }

    /// Opens an object. With `lines`, each member has its own line.
    pub(super) fn object(&mut self, lines: bool) {
        self.open(b'{', b'}', lines);
    }

    /// Opens an array. With `lines`, each element has its own line.
    pub(super) fn array(&mut self, lines: bool) {
        self.open(b'[', b']', lines);
    }

    /// Opens a container.
    fn open(&mut self, open: u8, close: u8, lines: bool) {
        self.text.push(open);
        self.scopes.push(WriterScope {
            lines,
            empty: true,
            close,
        });
    }

    /// Closes the container that was opened last.
    pub(super) fn close(&mut self) {
        let Some(scope) = self.scopes.pop() else {
            return;
        };
        // An empty container has both brackets on one line, even if its items would have their own lines.
        if scope.lines && !scope.empty {
            self.line();
        }
        self.text.push(scope.close);
    }

    /// Starts an element.
    pub(super) fn element(&mut self) {
        let Some(scope) = self.scopes.last_mut() else {
            return;
        };
        let lines = scope.lines;
        if !std::mem::replace(&mut scope.empty, false) {
            // OBJ-31: the space is written even at the end of a line.
            self.text.extend_from_slice(b", ");
        }
        // The first item also begins a new line.
        if lines {
            self.line();
        }
    }

    /// Starts a member. The name is written unchanged.
    pub(super) fn member(&mut self, name: &str) {
        self.element();
        self.text.push(b'"');
        self.text.extend_from_slice(name.as_bytes());
        self.text.extend_from_slice(b"\": ");
    }

    /// Writes a string with the five escapes of OBJ-21.
    pub(super) fn string(&mut self, bytes: &[u8]) {
        self.text.push(b'"');
        for byte in bytes {
            match byte {
                // OBJ-21: only these five bytes are escaped. Every other byte is written unchanged, also control characters and invalid
                // UTF-8.
                b'\r' => self.text.extend_from_slice(b"\\r"),
                b'\n' => self.text.extend_from_slice(b"\\n"),
                b'\t' => self.text.extend_from_slice(b"\\t"),
                b'\\' | b'"' => self.text.extend_from_slice(&[b'\\', *byte]),
                _ => self.text.push(*byte),
            }
        }
        self.text.push(b'"');
    }

    /// Writes a number in decimal digits.
    pub(super) fn number(&mut self, value: usize) {
        self.text.extend_from_slice(value.to_string().as_bytes());
    }

    /// Begins a line, with two spaces for each open container.
    fn line(&mut self) {
        self.text.push(b'\n');
        // OBJ-31: open containers on a single line also count.
        for _ in &self.scopes {
            self.text.extend_from_slice(b"  ");
        }
    }
}
