//! JSON text as the tvm-ffi reader takes it (OBJ-16): beyond the standard `NaN`, `Infinity`, `-Infinity`, and numbers such as `01`,
//! `1.`, `.5` and `+1`.

mod characters;

use crate::object::{OBJ_16, OBJ_39, OBJ_40};
use crate::rule::{Kind, Violation};
use std::borrow::Cow;

/// How deep arrays and objects may nest (OBJ-40). The reference has no limit and overflows its stack.
pub const MAX_DEPTH: usize = 10_000;

/// Makes values of what is read. A key of an object is a text.
pub(crate) trait Build {
    /// A value.
    type Value: Default;
    /// `null`.
    fn null(&mut self) -> Self::Value;
    /// `true`, `false`.
    fn truth(&mut self, value: bool) -> Self::Value;
    /// A number without a fraction and an exponent, of 64 bits, which starts at `at`.
    fn int(&mut self, value: i64, at: usize) -> Self::Value;
    /// Any other number.
    fn float(&mut self, value: f64) -> Self::Value;
    /// A string, its escapes resolved, whose quote is at `at`.
    fn text(&mut self, bytes: &[u8], at: usize) -> Self::Value;
    /// An array.
    fn array(&mut self, items: Vec<Self::Value>) -> Self::Value;
    /// An object without a member.
    fn empty_object(&mut self) -> Self::Value;
    /// An object, whose keys may repeat: the last counts. `None` where too many keys share a chain of a map (OBJ-39).
    fn object(&mut self, pairs: Vec<(Self::Value, Self::Value)>) -> Option<Self::Value>;
}

/// Reads a text to its end.
pub(crate) fn read<B: Build>(text: &[u8], build: B) -> Result<B::Value, Violation> {
    let mut reader = JsonReader { text, at: 0, build };
    reader.document().map_err(|wrong| {
        let message = reader.describe(&wrong);
        match wrong.what {
            COLLIDING => OBJ_39.broken(Kind::Limit, wrong.at as u64, message),
            TOO_DEEP => OBJ_40.broken(Kind::Limit, wrong.at as u64, message),
            _ => OBJ_16.broken(Kind::Malformed, wrong.at as u64, message),
        }
    })
}

/// The integer at `at` of a text that was read.
pub(crate) fn int_at(text: &[u8], at: usize) -> Option<i64> {
    let build = ();
    JsonReader { text, at, build }.figures().parse().ok()
}

/// The string whose quote is at `at` of a text that was read.
pub(crate) fn string_at(text: &[u8], at: usize) -> Option<Cow<'_, [u8]>> {
    let build = ();
    JsonReader { text, at, build }.characters().ok()
}

/// What is wrong, and where.
struct JsonError {
    /// The message, in the words of upstream, which are those of the `json` module of Python.
    what: &'static str,
    /// The byte that it is about.
    at: usize,
}

/// A text that is being read, by position: what is read into values is the business of `build`.
struct JsonReader<'a, B> {
    /// The whole text.
    text: &'a [u8],
    /// The next byte.
    at: usize,
    /// What makes the values.
    build: B,
}

/// A container on the way.
enum OpenContainer<V> {
    /// An array and its elements so far.
    Array(Vec<V>),
    /// An object, its members so far, and the name of the next one.
    Object(Vec<(V, V)>, V),
}

/// What is wrong where a value should begin.
const VALUE: &str = "Expecting value";
/// What is wrong where names collide (OBJ-39); [`read`] knows the rule by this message.
const COLLIDING: &str = "Too many names of an object share a chain of the map";
/// What is wrong where containers nest too deep (OBJ-40); [`read`] knows the rule by this message.
const TOO_DEEP: &str = "Nested too deeply";
/// What is wrong where a name should begin.
const NAME: &str = "Expecting property name enclosed in double quotes";

impl<'a, B: Build> JsonReader<'a, B> {
    /// The message with line and column, both from 1, and position, from 0 (OBJ-16). Columns count bytes, as positions do.
    fn describe(&self, wrong: &JsonError) -> String {
        let before = self.text.get(..wrong.at).unwrap_or(self.text);
        let mut lines = before.split(|byte| *byte == b'\n');
        let last = lines.next_back().unwrap_or_default();
        format!(
            "{}: line {} column {} (char {})",
            wrong.what,
            lines.count().saturating_add(1),
            last.len().saturating_add(1),
            wrong.at
        )
    }

    /// Reads a value, and nothing but space behind it.
    fn document(&mut self) -> Result<B::Value, JsonError> {
        let value = self.value()?;
        self.skip_space();
        if self.at < self.text.len() {
            // At the first byte that is too much, as Python's reader has it.
            return self.wrong("Extra data");
        }
        Ok(value)
    }

    /// Reads a value. Without recursion: OBJ-40 allows more levels than a small stack has room for.
    fn value(&mut self) -> Result<B::Value, JsonError> {
        let mut open: Vec<OpenContainer<B::Value>> = Vec::new();
        loop {
            self.skip_space();
            // A value by its first byte; an empty container is a value at once and is never open, so that it does not count in
            // OBJ-40.
            let mut done = match self.peek() {
                None => return self.wrong(VALUE),
                Some(b'{') => {
                    self.step(1);
                    self.skip_space();
                    if self.peek() == Some(b'}') {
                        self.step(1);
                        self.build.empty_object()
                    } else {
                        let key = self.key()?;
                        self.push(&mut open, OpenContainer::Object(Vec::new(), key))?;
                        continue;
                    }
                }
                Some(b'[') => {
                    self.step(1);
                    self.skip_space();
                    if self.peek() == Some(b']') {
                        self.step(1);
                        self.build.array(Vec::new())
                    } else {
                        self.push(&mut open, OpenContainer::Array(Vec::new()))?;
                        continue;
                    }
                }
                Some(b'"') => self.string()?,
                Some(b't') => self.literal("true", |build| build.truth(true))?,
                Some(b'f') => self.literal("false", |build| build.truth(false))?,
                Some(b'n') => self.literal("null", |build| build.null())?,
                // OBJ-16: beyond the standard, so that every float that is printed (OBJ-17) reads back.
                Some(b'N') => self.literal("NaN", |build| build.float(f64::NAN))?,
                Some(b'I') => self.literal("Infinity", |build| build.float(f64::INFINITY))?,
                // A minus begins a number as well: the byte behind it decides.
                Some(b'-') if self.rest().get(1) == Some(&b'I') => {
                    self.literal("-Infinity", |build| build.float(f64::NEG_INFINITY))?
                }
                // Anything else begins a number or nothing.
                Some(_) => self.number()?,
            };
            // Hand the value to what is open around it, as long as that ends.
            loop {
                // Nothing is open: this was the outermost value.
                let Some(around) = open.last_mut() else {
                    return Ok(done);
                };
                match around {
                    OpenContainer::Array(items) => items.push(done),
                    OpenContainer::Object(pairs, key) => pairs.push((std::mem::take(key), done)),
                }
                self.skip_space();
                match (self.peek(), around) {
                    (Some(b','), OpenContainer::Array(_)) => {
                        self.step(1);
                        break;
                    }
                    // The next name is read here, and so a comma with no name behind it is an error: the standard has no trailing
                    // comma.
                    (Some(b','), OpenContainer::Object(_, key)) => {
                        self.step(1);
                        self.skip_space();
                        *key = self.key()?;
                        break;
                    }
                    (Some(b']'), OpenContainer::Array(items)) => {
                        done = self.build.array(std::mem::take(items));
                    }
                    (Some(b'}'), OpenContainer::Object(pairs, _)) => {
                        done = self.object(std::mem::take(pairs))?
                    }
                    _ => return self.wrong("Expecting ',' delimiter"),
                }
                self.step(1);
                open.pop();
            }
        }
    }

    /// The value of an object whose closing brace is the next byte.
    fn object(&mut self, pairs: Vec<(B::Value, B::Value)>) -> Result<B::Value, JsonError> {
        match self.build.object(pairs) {
            Some(object) => Ok(object),
            None => self.wrong(COLLIDING),
        }
    }

    /// Opens a container that is not empty, unless it nests too deep (OBJ-40).
    fn push(
        &self,
        open: &mut Vec<OpenContainer<B::Value>>,
        fresh: OpenContainer<B::Value>,
    ) -> Result<(), JsonError> {
        if open.len() >= MAX_DEPTH {
            return self.wrong(TOO_DEEP);
        }
        open.push(fresh);
        Ok(())
    }

    /// Reads a name and its colon.
    fn key(&mut self) -> Result<B::Value, JsonError> {
        if self.peek() != Some(b'"') {
            return self.wrong(NAME);
        }
        let key = self.string()?;
        self.skip_space();
        if self.peek() != Some(b':') {
            return self.wrong("Expecting ':' delimiter");
        }
        self.step(1);
        Ok(key)
    }

    /// Reads `word`, which the cursor is expected to be at.
    fn literal(
        &mut self,
        word: &str,
        value: impl FnOnce(&mut B) -> B::Value,
    ) -> Result<B::Value, JsonError> {
        if !self.rest().starts_with(word.as_bytes()) {
            return self.wrong(VALUE);
        }
        self.step(word.len());
        Ok(value(&mut self.build))
    }

    /// Reads a number (OBJ-16). What is wrong with it is blamed on its first byte.
    fn number(&mut self) -> Result<B::Value, JsonError> {
        let start = self.at;
        // All bytes that a number can have, and then one parser: `1-2` is one wrong number and not two.
        let text = self.figures();
        let wrong = Err(JsonError {
            what: VALUE,
            at: start,
        });
        // A byte that begins no value at all.
        if text.is_empty() {
            return wrong;
        }
        // OBJ-16: an integer that does not fit 64 bits is a float.
        if !text.contains(['.', 'e', 'E'])
            && let Ok(value) = text.parse::<i64>()
        {
            return Ok(self.build.int(value, start));
        }
        match text.parse::<f64>() {
            // OBJ-16: digits beyond the largest float would read as infinity, and print as another text.
            Ok(value) if value.is_finite() => Ok(self.build.float(value)),
            _ => wrong,
        }
    }

    /// Reads a string as a value.
    fn string(&mut self) -> Result<B::Value, JsonError> {
        let start = self.at;
        let text = self.characters()?;
        Ok(self.build.text(&text, start))
    }
}

/// What makes no value.
impl<'a, B> JsonReader<'a, B> {
    /// The error at the next byte.
    const fn wrong<T>(&self, what: &'static str) -> Result<T, JsonError> {
        Err(JsonError { what, at: self.at })
    }

    /// The text from the next byte on.
    fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Goes on by some bytes.
    fn step(&mut self, bytes: usize) {
        self.at = self.at.saturating_add(bytes);
    }

    /// The next byte; `None` at the end of the text.
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Goes on behind what the standard calls space, and no other.
    fn skip_space(&mut self) {
        // JSON has these four; other space, as a form feed, is an error.
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.step(1);
        }
    }

    /// What a number may consist of.
    fn figures(&mut self) -> &'a str {
        let start = self.at;
        while matches!(
            self.peek(),
            Some(b'0'..=b'9' | b'e' | b'E' | b'+' | b'-' | b'.')
        ) {
            self.step(1);
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        std::str::from_utf8(text).unwrap_or_default()
    }
}
