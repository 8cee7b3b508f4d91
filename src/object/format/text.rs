//! JSON text as the tvm-ffi reader accepts it (OBJ-16). Beyond the standard it accepts `NaN`, `Infinity`, `-Infinity`, and numbers such as
//! `01`, `1.`, `.5` and `+1`.

mod characters;

use crate::object::{OBJ_16, OBJ_39, OBJ_40};
use crate::rule::{Kind, Violation};
use std::borrow::Cow;

/// Maximum nesting depth of arrays and objects (OBJ-40). The reference has no limit, and its stack overflows.
pub const MAX_DEPTH: usize = 10_000;

/// A builder that creates values from parsed JSON. An object key is a text value.
pub(crate) trait Build {
    /// The type of the created values.
    type Value: Default;
    /// Creates `null`.
    fn null(&mut self) -> Self::Value;
    /// Creates `true` or `false`.
    fn truth(&mut self, value: bool) -> Self::Value;
    /// Creates a 64-bit integer: a number without fraction and exponent, which starts at `at`.
    fn int(&mut self, value: i64, at: usize) -> Self::Value;
    /// Creates any other number.
    fn float(&mut self, value: f64) -> Self::Value;
    /// Creates a string. Its escapes are resolved, and its quote is at `at`.
    fn text(&mut self, bytes: &[u8], at: usize) -> Self::Value;
    /// Creates an array.
    fn array(&mut self, items: Vec<Self::Value>) -> Self::Value;
    /// Creates an object without members.
    fn empty_object(&mut self) -> Self::Value;
    /// Creates an object. Keys may repeat, and the last one counts. Returns `None` if too many keys share a chain of a map (OBJ-39).
    fn object(&mut self, pairs: Vec<(Self::Value, Self::Value)>) -> Option<Self::Value>;
}

/// Parses a whole text.
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

/// Returns the integer at `at` in a text that was parsed before.
pub(crate) fn int_at(text: &[u8], at: usize) -> Option<i64> {
    let build = ();
    JsonReader { text, at, build }
        .read_number_text()
        .parse()
        .ok()
}

/// Returns the string whose quote is at `at` in a text that was parsed before.
pub(crate) fn string_at(text: &[u8], at: usize) -> Option<Cow<'_, [u8]>> {
    let build = ();
    JsonReader { text, at, build }.characters().ok()
}

/// A parse error and its position.
struct JsonError {
    /// The message, in the words of upstream, which match Python's `json` module.
    what: &'static str,
    /// Offset of the byte that the message is about.
    at: usize,
}

/// A parser of a text. It keeps only a position; `build` creates the values.
struct JsonReader<'a, B> {
    /// The whole text.
    text: &'a [u8],
    /// The next byte.
    at: usize,
    /// The builder of the values.
    build: B,
}

/// A container that is not closed yet.
enum OpenContainer<V> {
    /// An array with its elements so far.
    Array(Vec<V>),
    /// An object with its members so far and the name of the next one.
    Object(Vec<(V, V)>, V),
}

/// Message for text that does not begin a value.
const VALUE: &str = "Expecting value";
/// Message for colliding names (OBJ-39). [`read`] recognizes the rule by this message.
const COLLIDING: &str = "Too many names of an object share a chain of the map";
/// Message for containers that nest too deeply (OBJ-40). [`read`] recognizes the rule by this message.
const TOO_DEEP: &str = "Nested too deeply";
/// Message for text that does not begin a name.
const NAME: &str = "Expecting property name enclosed in double quotes";

impl<'a, B: Build> JsonReader<'a, B> {
    /// Formats the message with line and column, counted from 1, and position, counted from 0 (OBJ-16). Columns count bytes, as positions
    /// do.
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

    /// Parses one value, after which only space may follow.
    fn document(&mut self) -> Result<B::Value, JsonError> {
        let value = self.value()?;
        self.skip_space();
        if self.at < self.text.len() {
            // Reported at the first extra byte, as Python's reader does.
            return self.fail("Extra data");
        }
        Ok(value)
    }

    /// Parses a value. Avoids recursion, because OBJ-40 allows more levels than fit on a small stack.
    fn value(&mut self) -> Result<B::Value, JsonError> {
        let mut open: Vec<OpenContainer<B::Value>> = Vec::new();
        loop {
            self.skip_space();
            // The first byte selects the kind of value. An empty container is complete immediately and never open, so it does not count
            // for OBJ-40.
            let mut done = match self.peek() {
                None => return self.fail(VALUE),
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
                // OBJ-16: an extension of the standard, so that every printed float (OBJ-17) can be read back.
                Some(b'N') => self.literal("NaN", |build| build.float(f64::NAN))?,
                Some(b'I') => self.literal("Infinity", |build| build.float(f64::INFINITY))?,
                // A minus can also begin a number, so the next byte decides.
                Some(b'-') if self.remaining().get(1) == Some(&b'I') => {
                    self.literal("-Infinity", |build| build.float(f64::NEG_INFINITY))?
                }
                // Any other byte must begin a number.
                Some(_) => self.number()?,
            };
            // Adds the value to its container, and closes containers that end here.
            loop {
                // Nothing is open, so this was the outermost value.
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
                    // The next name is parsed here, so a trailing comma is an error, as in the standard.
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
                    _ => return self.fail("Expecting ',' delimiter"),
                }
                self.step(1);
                open.pop();
            }
        }
    }

    /// Creates an object whose closing brace is the next byte.
    fn object(&mut self, pairs: Vec<(B::Value, B::Value)>) -> Result<B::Value, JsonError> {
        match self.build.object(pairs) {
            Some(object) => Ok(object),
            None => self.fail(COLLIDING),
        }
    }

    /// Opens a non-empty container, unless it nests too deeply (OBJ-40).
    fn push(
        &self,
        open: &mut Vec<OpenContainer<B::Value>>,
        fresh: OpenContainer<B::Value>,
    ) -> Result<(), JsonError> {
        if open.len() >= MAX_DEPTH {
            return self.fail(TOO_DEEP);
        }
        open.push(fresh);
        Ok(())
    }

    /// Parses a name and its colon.
    fn key(&mut self) -> Result<B::Value, JsonError> {
        if self.peek() != Some(b'"') {
            return self.fail(NAME);
        }
        let key = self.string()?;
        self.skip_space();
        if self.peek() != Some(b':') {
            return self.fail("Expecting ':' delimiter");
        }
        self.step(1);
        Ok(key)
    }

    /// Parses `word`, which must be next.
    fn literal(
        &mut self,
        word: &str,
        value: impl FnOnce(&mut B) -> B::Value,
    ) -> Result<B::Value, JsonError> {
        if !self.remaining().starts_with(word.as_bytes()) {
            return self.fail(VALUE);
        }
        self.step(word.len());
        Ok(value(&mut self.build))
    }

    /// Parses a number (OBJ-16). An error is reported at its first byte.
    fn number(&mut self) -> Result<B::Value, JsonError> {
        let start = self.at;
        // Reads all bytes that can belong to a number and parses them once, because `1-2` is one wrong number, and not two numbers.
        let text = self.read_number_text();
        let wrong = Err(JsonError {
            what: VALUE,
            at: start,
        });
        // The byte begins no value at all.
        if text.is_empty() {
            return wrong;
        }
        // OBJ-16: an integer that does not fit 64 bits becomes a float.
        if !text.contains(['.', 'e', 'E'])
            && let Ok(value) = text.parse::<i64>()
        {
            return Ok(self.build.int(value, start));
        }
        match text.parse::<f64>() {
            // OBJ-16: a number beyond the largest float is rejected. It would become infinity and print as another text.
            Ok(value) if value.is_finite() => Ok(self.build.float(value)),
            _ => wrong,
        }
    }

    /// Parses a string as a value.
    fn string(&mut self) -> Result<B::Value, JsonError> {
        let start = self.at;
        let text = self.characters()?;
        Ok(self.build.text(&text, start))
    }
}

/// The part of the parser that does not create values.
impl<'a, B> JsonReader<'a, B> {
    /// Returns the error at the next byte.
    const fn fail<T>(&self, what: &'static str) -> Result<T, JsonError> {
        Err(JsonError { what, at: self.at })
    }

    /// Returns the text from the next byte on.
    fn remaining(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Advances by some bytes.
    fn step(&mut self, bytes: usize) {
        self.at = self.at.saturating_add(bytes);
    }

    /// Returns the next byte; `None` at the end of the text.
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Skips the characters that the standard calls space.
    fn skip_space(&mut self) {
        // JSON has only these four. Other space, such as a form feed, is an error.
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.step(1);
        }
    }

    /// Reads the characters that a number can consist of.
    fn read_number_text(&mut self) -> &'a str {
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
