//! JSON text with byte offsets. Every value knows its offset, and members keep their order and their repetitions.
//!
//! This parser accepts the same texts as `serde_json`, which a test checks, with these differences:
//!
//! * Half of a surrogate pair is an error only when its string is read, but not when it is skipped.
//! * A number that no type can represent is also an error only when it is read.
//! * `-0` is the integer 0 and not a float, but it is not an index.
//! * The depth of nesting is not limited.

use crate::graph::GRF_01;
use crate::object::string_at;
use crate::rule::{Kind, Rule, Violation};
use std::borrow::Cow;

/// A JSON value that is still text, with its offset from the start of the document.
///
/// A value is parsed when it is needed. A skipped value therefore costs no memory, and an error can state the byte at which a value
/// begins. The parameters `rule` and `what` of the functions are the rule that a value of another form breaks, and the name of the
/// field.
#[derive(Clone, Copy, Debug)]
pub(super) struct JsonText<'a> {
    text: &'a str,
    /// The number of bytes of the document before the value.
    offset: u64,
}

impl<'a> JsonText<'a> {
    /// Checks the whole document; text that is not JSON breaks GRF-01.
    pub(super) fn document(text: &'a str) -> Result<JsonText<'a>, Violation> {
        let mut scan = Scan { text, at: 0 };
        if let Some(value) = scan.value() {
            scan.space();
            // GRF-01: no release reads past the closing brace. Text after it is a second document, or the rest of a broken one.
            if scan.at == text.len() {
                return Ok(JsonText::slice(text, 0, value));
            }
        }
        // GRF-01: the scan stopped at the unexpected byte, or at the end.
        let (kind, message) = match scan.peek() {
            None => (
                Kind::Truncated,
                "not JSON: the text ends too early".to_owned(),
            ),
            Some(byte) => {
                let shown = char::from(byte).escape_default();
                (
                    Kind::Malformed,
                    format!("not JSON: `{shown}` is not expected here"),
                )
            }
        };
        Err(GRF_01.broken(kind, scan.at as u64, message))
    }

    /// Creates the value for the part `inner` of `text`, which starts at `offset`.
    fn slice(text: &'a str, offset: u64, inner: (usize, usize)) -> JsonText<'a> {
        JsonText {
            text: text.get(inner.0..inner.1).unwrap_or_default(),
            offset: offset.saturating_add(inner.0 as u64),
        }
    }

    /// Returns the offset of the first byte of the value.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the members of an object, in order and with repetitions.
    pub(super) fn members(
        &self,
        rule: Rule,
        what: &str,
    ) -> Result<Vec<(Cow<'a, str>, JsonText<'a>)>, Violation> {
        let parts = self.bracketed_elements(b'{');
        let parts = parts.ok_or_else(|| self.wrong_form(rule, what, "an object"))?;
        let mut members = Vec::new();
        // `document` has checked that every name has a value.
        for pair in parts.chunks_exact(2) {
            let [key, value] = pair else { continue };
            let name = unescaped(key.text);
            let name =
                name.ok_or_else(|| key.wrong_form(rule, "the name of a member", "text of UTF-16"))?;
            members.push((name, *value));
        }
        Ok(members)
    }

    /// Returns the elements of an array.
    pub(super) fn elements(&self, rule: Rule, what: &str) -> Result<Vec<JsonText<'a>>, Violation> {
        let elements = self.bracketed_elements(b'[');
        elements.ok_or_else(|| self.wrong_form(rule, what, "a list"))
    }

    /// Returns the element at `index` for an error message; `None` if the list is too short.
    pub(super) fn element(&self, index: usize) -> Option<JsonText<'a>> {
        self.elements(GRF_01, "").ok()?.get(index).copied()
    }

    /// Returns the member `name` for an error message.
    pub(super) fn member(&self, name: &str) -> Option<JsonText<'a>> {
        let mut members = self.members(GRF_01, "").ok()?.into_iter();
        members.find_map(|(key, value)| (key == name).then_some(value))
    }

    /// Returns the value as a string.
    pub(super) fn string(&self, rule: Rule, what: &str) -> Result<String, Violation> {
        // GRF-01: half of a surrogate pair is an error here, but not when the string is skipped.
        let text = unescaped(self.text).map(Cow::into_owned);
        text.ok_or_else(|| self.wrong_form(rule, what, "a string"))
    }

    /// Returns the value as an integer.
    pub(super) fn integer(&self, rule: Rule, what: &str) -> Result<i64, Violation> {
        let number = self.text.parse();
        // `parse` also accepts `+1` and `01`. Neither is JSON, so `document` has rejected them.
        number.map_err(|_| self.wrong_form(rule, what, "an integer"))
    }

    /// Returns the value as a count or an index.
    pub(super) fn index(&self, rule: Rule, what: &str) -> Result<usize, Violation> {
        let number = self.text.parse();
        number.map_err(|_| self.wrong_form(rule, what, "an integer from 0 on"))
    }

    /// Returns the elements between the brackets, or alternating keys and values. Returns `None` if the text does not begin with
    /// `open`.
    fn bracketed_elements(&self, open: u8) -> Option<Vec<JsonText<'a>>> {
        let mut scan = Scan {
            text: self.text,
            at: 0,
        };
        let mut parts = Vec::new();
        if !scan.skip_byte_if_next(open) {
            return None;
        }
        // `document` has checked that the text is JSON, so all separators are in the right places.
        loop {
            scan.space();
            match scan.peek()? {
                b',' | b':' => scan.step(),
                b']' | b'}' => return Some(parts),
                // An inner value is skipped here, and parsed when it is needed.
                _ => parts.push(JsonText::slice(self.text, self.offset, scan.value()?)),
            }
        }
    }

    /// Creates the violation of `rule` in field `what`, for a value that does not have the form `form`.
    #[cold]
    fn wrong_form(&self, rule: Rule, what: &str, form: &str) -> Violation {
        // The message shows only the beginning, because the value may be a list of megabytes.
        let message = format!("expected {form}, found `{:.32}`", self.text);
        rule.broken(Kind::Malformed, self.offset, message)
            .in_field(what)
    }
}

/// A scanner that steps through text, value by value. A function that returns `None` or false stops at the unexpected byte.
struct Scan<'a> {
    text: &'a str,
    /// The position of the next byte.
    at: usize,
}

impl Scan<'_> {
    /// Skips the next value and returns its start and end.
    fn value(&mut self) -> Option<(usize, usize)> {
        self.space();
        let start = self.at;
        // GRF-01: the closing brackets of the open containers. A list replaces recursion, so that no depth overflows the stack.
        let mut open = Vec::new();
        loop {
            self.space();
            match self.peek()? {
                b'{' => {
                    self.step();
                    self.space();
                    if self.peek() != Some(b'}') {
                        self.key()?;
                        open.push(b'}');
                        continue;
                    }
                    self.step();
                }
                b'[' => {
                    self.step();
                    self.space();
                    if self.peek() != Some(b']') {
                        open.push(b']');
                        continue;
                    }
                    self.step();
                }
                b'"' => self.string()?,
                b't' => self.skip_word("true")?,
                b'f' => self.skip_word("false")?,
                b'n' => self.skip_word("null")?,
                _ => self.number()?,
            }
            // The value is complete, and the containers around it may also be complete.
            loop {
                let Some(close) = open.last() else {
                    return Some((start, self.at));
                };
                self.space();
                if self.skip_byte_if_next(b',') {
                    // A name must follow a comma in an object: `{"a":1,}` is not JSON.
                    if *close == b'}' {
                        self.space();
                        self.key()?;
                    }
                    break;
                }
                if !self.skip_byte_if_next(*close) {
                    return None;
                }
                open.pop();
            }
        }
    }

    /// Skips the name of a member, and its colon.
    fn key(&mut self) -> Option<()> {
        self.string()?;
        self.space();
        self.skip_byte_if_next(b':').then_some(())
    }

    /// Skips a string with its quotes. Only the form of escapes is checked; `unescaped` joins surrogate pairs.
    fn string(&mut self) -> Option<()> {
        if !self.skip_byte_if_next(b'"') {
            return None;
        }
        loop {
            match self.peek()? {
                b'"' => {
                    self.step();
                    return Some(());
                }
                b'\\' => {
                    self.step();
                    match self.peek()? {
                        b'u' => {
                            // GRF-01: any four digits are accepted. Half of a surrogate pair is an error only if the string is
                            // used.
                            self.step();
                            for _ in 0..4 {
                                self.peek().filter(u8::is_ascii_hexdigit)?;
                                self.step();
                            }
                        }
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.step(),
                        _ => return None,
                    }
                }
                // JSON allows control characters in strings only as escapes.
                0..32 => return None,
                // This includes bytes of a multi-byte UTF-8 character, none of which equals a quote or a backslash.
                _ => self.step(),
            }
        }
    }

    /// Skips a number: no leading zero, no sign except `-`, and a digit on both sides of a point.
    fn number(&mut self) -> Option<()> {
        self.skip_byte_if_next(b'-');
        if !self.skip_byte_if_next(b'0') {
            self.digits()?;
        }
        // A digit must follow: `1.` is not a JSON number.
        if self.skip_byte_if_next(b'.') {
            self.digits()?;
        }
        if self.skip_byte_if_next(b'e') || self.skip_byte_if_next(b'E') {
            if !self.skip_byte_if_next(b'+') {
                self.skip_byte_if_next(b'-');
            }
            self.digits()?;
        }
        Some(())
    }

    /// Skips one or more digits.
    fn digits(&mut self) -> Option<()> {
        self.peek().filter(u8::is_ascii_digit)?;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.step();
        }
        Some(())
    }

    /// Skips exactly these letters.
    fn skip_word(&mut self, word: &str) -> Option<()> {
        word.bytes()
            .all(|byte| self.skip_byte_if_next(byte))
            .then_some(())
    }

    /// Skips the four characters that JSON defines as white space.
    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.step();
        }
    }

    /// Returns whether `byte` comes next, and skips it if it does.
    fn skip_byte_if_next(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        if there {
            self.step();
        }
        there
    }

    /// Returns the next byte, or `None` at the end.
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Advances by one byte.
    fn step(&mut self) {
        self.at = self.at.saturating_add(1);
    }
}

/// Returns the content of a JSON string, or `None` for another value and for half of a surrogate pair.
fn unescaped(text: &str) -> Option<Cow<'_, str>> {
    if !text.starts_with('"') {
        return None;
    }
    // In tvm-ffi's JSON, strings follow the standard and only numbers deviate. Its string reader is therefore used here.
    match string_at(text.as_bytes(), 0)? {
        Cow::Borrowed(bytes) => str::from_utf8(bytes).ok().map(Cow::Borrowed),
        Cow::Owned(bytes) => String::from_utf8(bytes).ok().map(Cow::Owned),
    }
}
