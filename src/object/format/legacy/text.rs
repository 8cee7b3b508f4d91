//! The JSON of 0.2 to 0.21: what its reader takes, and how its writer spaces and breaks lines.

use crate::object::OBJ_21;
use crate::rule::{Kind, Violation};

/// Whether `repr_str` may hold the byte (OBJ-25).
pub(super) const fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~')
}

/// Reads values of known types from text; no value is kept unless it is asked for, and nothing nests but by the caller.
pub(super) struct LegacyReader<'a> {
    /// The whole text.
    text: &'a [u8],
    /// The next byte.
    at: usize,
}

impl<'a> LegacyReader<'a> {
    /// A reader at the beginning of a text.
    pub(super) fn new(text: &'a [u8]) -> LegacyReader<'a> {
        LegacyReader { text, at: 0 }
    }

    /// A reader of the same text, from `at` on.
    pub(super) fn back_at(&self, at: u64) -> LegacyReader<'a> {
        let at = usize::try_from(at).unwrap_or(self.text.len());
        LegacyReader {
            text: self.text,
            at,
        }
    }

    /// Offset of the next byte that is not space.
    pub(super) fn here(&mut self) -> u64 {
        self.skip();
        self.at as u64
    }

    /// What is left behind space.
    pub(super) fn rest(&mut self) -> &'a [u8] {
        self.skip();
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The name of the next member of an object, and its offset; `None` behind the last. `begun` is false before the first.
    pub(super) fn member(
        &mut self,
        what: &str,
        begun: &mut bool,
    ) -> Result<Option<(Vec<u8>, u64)>, Violation> {
        if !self.next(b"{}", what, begun)? {
            return Ok(None);
        }
        let at = self.here();
        let key = self.string("the name of a member")?;
        self.expect(b':', what)?;
        Ok(Some((key, at)))
    }

    /// Whether an array has a next element, which is then what comes. `begun` is false before the first.
    pub(super) fn element(&mut self, what: &str, begun: &mut bool) -> Result<bool, Violation> {
        self.next(b"[]", what, begun)
    }

    /// Whether a container has a next item, which is then what comes. Reads its opening bracket before the first, and a comma
    /// before all others.
    fn next(
        &mut self,
        brackets: &[u8; 2],
        what: &str,
        begun: &mut bool,
    ) -> Result<bool, Violation> {
        let [open, close] = *brackets;
        // The caller keeps the state, so that a text of any depth takes no memory here.
        let first = !std::mem::replace(begun, true);
        if first {
            self.expect(open, what)?;
        }
        // OBJ-21: also behind the opening bracket alone, and never behind a comma.
        if self.accept(close) {
            return Ok(false);
        }
        if !first {
            self.expect(b',', what)?;
        }
        Ok(true)
    }

    /// A string: five escapes, everything else as it stands, no end of line.
    /// `what` is named in the violation.
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
                    // OBJ-21: no `\/` and no `\u`, which JSON has: writers of this form never wrote them.
                    Some(plain @ (b'"' | b'\\')) => plain,
                    Some(other) => {
                        let message = format!(
                            "\\{} is not an escape of this form: \\r, \\n, \\t, \\\\ and \\\" are",
                            char::from(other).escape_default()
                        );
                        return Err(OBJ_21.broken(Kind::Malformed, at as u64, message));
                    }
                    None => return Err(self.ends(what)),
                }),
                Some(byte) => {
                    // OBJ-21: a string ends on its line. Every other byte is text, control characters too.
                    let inside = !matches!(byte, b'\r' | b'\n');
                    OBJ_21.require(inside, at as u64, || format!("a line ends inside {what}"))?;
                    text.push(byte);
                }
                None => return Err(self.ends(what)),
            }
        }
    }

    /// A count or index in decimal digits; `None` where it is more than a machine word.
    pub(super) fn number(&mut self, what: &str) -> Result<Option<usize>, Violation> {
        let start = self.here();
        // OBJ-23: a number too large is read to its end, and is an index of no node rather than broken text.
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
        // A sign is no digit: -1 is broken text here, not an index.
        match self.peek() {
            None => Err(self.ends(what)),
            Some(_) => Err(self.not(what, "a number from 0 on", start)),
        }
    }

    /// Reads one byte, which is expected in `what`.
    fn expect(&mut self, byte: u8, what: &str) -> Result<(), Violation> {
        if self.accept(byte) {
            return Ok(());
        }
        // OBJ-21: upstream takes the end of the text for every bracket that is missing.
        match self.peek() {
            None => Err(self.ends(what)),
            Some(_) => {
                let at = self.at as u64;
                Err(self.not(what, &format!("`{}`", char::from(byte)), at))
            }
        }
    }

    /// Reads `byte` if it is next behind space; whether it is.
    fn accept(&mut self, byte: u8) -> bool {
        self.skip();
        let there = self.peek() == Some(byte);
        if there {
            self.at = self.at.saturating_add(1);
        }
        there
    }

    /// The violation for a byte at `at` that is not what is wanted.
    fn not(&self, what: &str, wanted: &str, at: u64) -> Violation {
        let found = self.peek().map_or(String::new(), |byte| {
            format!(", not `{}`", char::from(byte).escape_default())
        });
        OBJ_21.broken(
            Kind::Malformed,
            at,
            format!("{wanted} is expected in {what}{found}"),
        )
    }

    /// The violation for a text that ends inside of `what`.
    fn ends(&self, what: &str) -> Violation {
        // OBJ-21: of kind truncated, as more of the text may make it whole.
        let message = format!("the text ends inside {what}");
        OBJ_21.broken(Kind::Truncated, self.at as u64, message)
    }

    /// The next byte; `None` at the end of the text.
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// The next byte, which is then read.
    fn take(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at = self.at.saturating_add(1);
        Some(byte)
    }

    /// Space is what `isspace` calls so: the vertical tab and the form feed, too.
    fn skip(&mut self) {
        while let Some(b' ' | b'\t'..=b'\r') = self.peek() {
            self.at = self.at.saturating_add(1);
        }
    }
}

/// Writes text with two spaces for each level, and a space behind every comma, even at the end of a line.
#[derive(Default)]
pub(super) struct LegacyWriter {
    /// The text so far.
    text: Vec<u8>,
    /// The containers that are open, outermost first.
    scopes: Vec<WriterScope>,
}

/// A container that is open.
struct WriterScope {
    /// Whether each of its items is on a line of its own.
    lines: bool,
    /// Whether it has no item yet.
    empty: bool,
    /// Its closing bracket.
    close: u8,
}

impl LegacyWriter {
    /// The finished text.
    pub(super) fn into_text(self) -> Vec<u8> {
        self.text
    }

    /// Opens an object; `lines`: each member on its own line.
    pub(super) fn object(&mut self, lines: bool) {
        self.open(b'{', b'}', lines);
    }

    /// Opens an array; `lines`: each element on its own line.
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

    /// Closes what was opened last.
    pub(super) fn close(&mut self) {
        let Some(scope) = self.scopes.pop() else {
            return;
        };
        // An empty container has both brackets on one line, also where its items would have lines of their own.
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
            // OBJ-31: the space is there even where the line ends.
            self.text.extend_from_slice(b", ");
        }
        // The first item begins a line, too.
        if lines {
            self.line();
        }
    }

    /// Starts a member. The name is written as it is.
    pub(super) fn member(&mut self, name: &str) {
        self.element();
        self.text.push(b'"');
        self.text.extend_from_slice(name.as_bytes());
        self.text.extend_from_slice(b"\": ");
    }

    /// Writes a string with the five escapes of OBJ-21; every other byte as it is.
    pub(super) fn string(&mut self, bytes: &[u8]) {
        self.text.push(b'"');
        for byte in bytes {
            match byte {
                // OBJ-21: these five have escapes; every other byte is written as it is, control characters and what is not UTF-8
                // too.
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
        // OBJ-31: by the containers that are open, those on one line among them.
        for _ in &self.scopes {
            self.text.extend_from_slice(b"  ");
        }
    }
}
