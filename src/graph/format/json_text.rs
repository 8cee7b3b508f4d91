//! JSON text with byte offsets: every value knows its offset, and members keep their order and their repetitions.
//!
//! What is JSON here is JSON to `serde_json`, which a test holds it to, but for three things. Half of a surrogate pair is
//! rejected where its string is read, not where it is skipped. So is a number that no type holds: it stays text until then.
//! `-0` is the integer 0, not a float, but no index. Containers may nest as deep as the text is long.

use crate::graph::GRF_01;
use crate::object::string_at;
use crate::rule::{Kind, Rule, Violation};
use std::borrow::Cow;

/// A JSON value that is still text, and its offset from the start of the document.
///
/// A value is parsed where it is needed: what a reader skips costs no memory, and a rule can blame the byte where a value begins,
/// which a tree of values has lost. `rule` and `what` of its functions are what another form breaks, and the field.
#[derive(Clone, Copy, Debug)]
pub(super) struct JsonText<'a> {
    text: &'a str,
    /// Bytes of the document in front of it.
    offset: u64,
}

impl<'a> JsonText<'a> {
    /// The whole document; anything that is not JSON breaks GRF-01.
    pub(super) fn document(text: &'a str) -> Result<JsonText<'a>, Violation> {
        let mut scan = Scan { text, at: 0 };
        if let Some(value) = scan.value() {
            scan.space();
            // GRF-01: no release looks behind the closing brace. Text there is a second document, or the rest of a broken one.
            if scan.at == text.len() {
                return Ok(JsonText::within(text, 0, value));
            }
        }
        // GRF-01: the scan stopped at the byte that is not expected, or at the end.
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

    /// The part `inner` of `text`, which starts at `offset`.
    fn within(text: &'a str, offset: u64, inner: (usize, usize)) -> JsonText<'a> {
        JsonText {
            text: text.get(inner.0..inner.1).unwrap_or_default(),
            offset: offset.saturating_add(inner.0 as u64),
        }
    }

    /// Offset of the first byte of the value.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// The members of an object, in order, repetitions included.
    pub(super) fn members(
        &self,
        rule: Rule,
        what: &str,
    ) -> Result<Vec<(Cow<'a, str>, JsonText<'a>)>, Violation> {
        let parts = self.parts(b'{');
        let parts = parts.ok_or_else(|| self.wrong(rule, what, "an object"))?;
        let mut members = Vec::new();
        // `document` has seen that every name has a value.
        for pair in parts.chunks_exact(2) {
            let [key, value] = pair else { continue };
            let name = unescaped(key.text);
            let name =
                name.ok_or_else(|| key.wrong(rule, "the name of a member", "text of UTF-16"))?;
            members.push((name, *value));
        }
        Ok(members)
    }

    /// The elements of an array.
    pub(super) fn elements(&self, rule: Rule, what: &str) -> Result<Vec<JsonText<'a>>, Violation> {
        let elements = self.parts(b'[');
        elements.ok_or_else(|| self.wrong(rule, what, "a list"))
    }

    /// The element at `index`, to blame it: nothing where there is none.
    pub(super) fn at(&self, index: usize) -> Option<JsonText<'a>> {
        self.elements(GRF_01, "").ok()?.get(index).copied()
    }

    /// The member `name`, to blame it.
    pub(super) fn member(&self, name: &str) -> Option<JsonText<'a>> {
        let mut members = self.members(GRF_01, "").ok()?.into_iter();
        members.find_map(|(key, value)| (key == name).then_some(value))
    }

    /// A string.
    pub(super) fn string(&self, rule: Rule, what: &str) -> Result<String, Violation> {
        // GRF-01: here, and not when it was skipped, half of a surrogate pair is an error.
        let text = unescaped(self.text).map(Cow::into_owned);
        text.ok_or_else(|| self.wrong(rule, what, "a string"))
    }

    /// An integer.
    pub(super) fn integer(&self, rule: Rule, what: &str) -> Result<i64, Violation> {
        let number = self.text.parse();
        // `parse` accepts `+1` and `01` as well; neither is JSON, so that `document` has rejected them.
        number.map_err(|_| self.wrong(rule, what, "an integer"))
    }

    /// An integer that counts or indexes.
    pub(super) fn index(&self, rule: Rule, what: &str) -> Result<usize, Violation> {
        let number = self.text.parse();
        number.map_err(|_| self.wrong(rule, what, "an integer from 0 on"))
    }

    /// What is between the brackets: elements, or keys and values in turn. `None` where `open` does not come first.
    fn parts(&self, open: u8) -> Option<Vec<JsonText<'a>>> {
        let mut scan = Scan {
            text: self.text,
            at: 0,
        };
        let mut parts = Vec::new();
        if !scan.accept(open) {
            return None;
        }
        // `document` has seen that the text is JSON: whatever separates values is where it belongs.
        loop {
            scan.space();
            match scan.peek()? {
                b',' | b':' => scan.step(),
                b']' | b'}' => return Some(parts),
                // A value inside is skipped here, and parsed when it is needed.
                _ => parts.push(JsonText::within(self.text, self.offset, scan.value()?)),
            }
        }
    }

    /// A value of another form than `form`, which breaks `rule` in field `what`.
    #[cold]
    fn wrong(&self, rule: Rule, what: &str, form: &str) -> Violation {
        // Only its beginning: the value may be a list of megabytes.
        let message = format!("{form} is expected, not `{:.32}`", self.text);
        rule.broken(Kind::Malformed, self.offset, message)
            .in_field(what)
    }
}

/// Steps through text, value by value. What returns `None` or false stays at the byte that is not expected.
struct Scan<'a> {
    text: &'a str,
    /// The byte that comes next.
    at: usize,
}

impl Scan<'_> {
    /// Start and end of the value that comes next.
    fn value(&mut self) -> Option<(usize, usize)> {
        self.space();
        let start = self.at;
        // What closes the containers on the way: a list of bytes in place of recursion, so that no depth overflows the stack (GRF-01).
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
                b't' => self.word("true")?,
                b'f' => self.word("false")?,
                b'n' => self.word("null")?,
                _ => self.number()?,
            }
            // A value is complete, and so may be those around it.
            loop {
                let Some(close) = open.last() else {
                    return Some((start, self.at));
                };
                self.space();
                if self.accept(b',') {
                    // Behind a comma of an object a name must come: `{"a":1,}` is no JSON.
                    if *close == b'}' {
                        self.space();
                        self.key()?;
                    }
                    break;
                }
                if !self.accept(*close) {
                    return None;
                }
                open.pop();
            }
        }
    }

    /// The name of a member, and its colon.
    fn key(&mut self) -> Option<()> {
        self.string()?;
        self.space();
        self.accept(b':').then_some(())
    }

    /// A string with its quotes. Escapes are checked for their form alone: a pair of surrogates is for `unescaped` to join.
    fn string(&mut self) -> Option<()> {
        if !self.accept(b'"') {
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
                            // Four digits, whatever they mean: half of a pair is an error only where the string is used (GRF-01).
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
                // JSON has control characters in strings only as escapes.
                0..32 => return None,
                // Bytes of a longer UTF-8 letter too: none of them looks like a quote or a backslash.
                _ => self.step(),
            }
        }
    }

    /// A number: no leading zero, no sign but `-`, and a digit on both sides of a point.
    fn number(&mut self) -> Option<()> {
        self.accept(b'-');
        if !self.accept(b'0') {
            self.digits()?;
        }
        // A digit must follow: `1.` is no number of JSON.
        if self.accept(b'.') {
            self.digits()?;
        }
        if self.accept(b'e') || self.accept(b'E') {
            if !self.accept(b'+') {
                self.accept(b'-');
            }
            self.digits()?;
        }
        Some(())
    }

    /// One digit or more.
    fn digits(&mut self) -> Option<()> {
        self.peek().filter(u8::is_ascii_digit)?;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.step();
        }
        Some(())
    }

    /// Exactly these letters.
    fn word(&mut self, word: &str) -> Option<()> {
        word.bytes().all(|byte| self.accept(byte)).then_some(())
    }

    /// The four letters that JSON calls white space.
    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.step();
        }
    }

    /// Whether `byte` comes next; then it is behind.
    fn accept(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        if there {
            self.step();
        }
        there
    }

    /// The byte that comes next; `None` at the end.
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Goes on by one byte.
    fn step(&mut self) {
        self.at = self.at.saturating_add(1);
    }
}

/// The content of a string of JSON; `None` for another value, and for half of a surrogate pair.
fn unescaped(text: &str) -> Option<Cow<'_, str>> {
    if !text.starts_with('"') {
        return None;
    }
    // The strings of tvm-ffi's JSON are those of the standard: only its numbers are not.
    match string_at(text.as_bytes(), 0)? {
        Cow::Borrowed(bytes) => str::from_utf8(bytes).ok().map(Cow::Borrowed),
        Cow::Owned(bytes) => String::from_utf8(bytes).ok().map(Cow::Owned),
    }
}
