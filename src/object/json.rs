//! JSON text to values and back (OBJ-16, OBJ-17), with what the tvm-ffi reader accepts beyond the standard: `NaN`,
//! `Infinity`, `-Infinity`, and numbers such as `01`, `1.`, `.5` and `+1`.

use super::text::general;
use super::{Array, Map, OBJ_16, OBJ_17, OBJ_39, OBJ_40, depth, pairs_of, sequence_of};
use crate::function::{Error, Result};
use crate::rule::{Kind, Violation};
use crate::value::{Any, AnyView, Str, index, str_bytes, types};

/// How deep arrays and objects may nest (OBJ-40). The reference has no limit and overflows its stack.
pub const MAX_DEPTH: usize = 10_000;

/// The most spaces that a level is indented by.
pub(crate) const MAX_INDENT: usize = 1024;
/// The longest text that is written, in bytes. Depth times indent makes small values long.
pub(crate) const MAX_TEXT: usize = 1 << 30;

/// The value of JSON text: None, bool, int, float, string, array, map. A repeated key keeps its last value.
pub fn parse(text: &[u8]) -> Result {
    read(text).map_err(|broken| match broken.kind() {
        Kind::Malformed => Error::said("ValueError", broken),
        _ => broken.into(),
    })
}

/// [`parse`], with the rule that is broken.
pub(super) fn read(text: &[u8]) -> std::result::Result<Any, Violation> {
    let mut reader = Reader { text, at: 0 };
    reader.document().map_err(|wrong| {
        let message = reader.describe(&wrong);
        match wrong.what {
            COLLIDING => OBJ_39.broken(Kind::Limit, wrong.at as u64, message),
            TOO_DEEP => OBJ_40.broken(Kind::Limit, wrong.at as u64, message),
            _ => OBJ_16.broken(Kind::Malformed, wrong.at as u64, message),
        }
    })
}

/// What is wrong, and where.
struct Wrong {
    what: &'static str,
    at: usize,
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

/// A container on the way.
enum Open {
    Array(Vec<Any>),
    Object(Vec<(Any, Any)>, Any),
}

const VALUE: &str = "Expecting value";
const COLLIDING: &str = "Too many names of an object share a chain of the map";
const TOO_DEEP: &str = "Nested too deeply";
const NAME: &str = "Expecting property name enclosed in double quotes";

impl Reader<'_> {
    fn describe(&self, wrong: &Wrong) -> String {
        let before = &self.text[..wrong.at.min(self.text.len())];
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        let start = before
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |at| at + 1);
        format!(
            "{}: line {line} column {} (char {})",
            wrong.what,
            wrong.at - start + 1,
            wrong.at
        )
    }

    const fn wrong<T>(&self, what: &'static str) -> std::result::Result<T, Wrong> {
        Err(Wrong { what, at: self.at })
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn document(&mut self) -> std::result::Result<Any, Wrong> {
        let value = self.value()?;
        self.skip_space();
        if self.at < self.text.len() {
            return self.wrong("Extra data");
        }
        Ok(value)
    }

    fn value(&mut self) -> std::result::Result<Any, Wrong> {
        let mut open: Vec<Open> = Vec::new();
        loop {
            self.skip_space();
            let mut done = match self.peek() {
                None => return self.wrong(VALUE),
                Some(b'{') => {
                    self.at += 1;
                    self.skip_space();
                    if self.peek() == Some(b'}') {
                        self.at += 1;
                        Any::from(Map::new())
                    } else {
                        let key = self.key()?;
                        self.push(&mut open, Open::Object(Vec::new(), key))?;
                        continue;
                    }
                }
                Some(b'[') => {
                    self.at += 1;
                    self.skip_space();
                    if self.peek() == Some(b']') {
                        self.at += 1;
                        Any::from(Array::new(Vec::new()))
                    } else {
                        self.push(&mut open, Open::Array(Vec::new()))?;
                        continue;
                    }
                }
                Some(b'"') => self.string()?,
                Some(b't') => self.literal("true", Any::from(true))?,
                Some(b'f') => self.literal("false", Any::from(false))?,
                Some(b'n') => self.literal("null", Any::none())?,
                Some(b'N') => self.literal("NaN", Any::from(f64::NAN))?,
                Some(b'I') => self.literal("Infinity", Any::from(f64::INFINITY))?,
                Some(b'-') if self.text.get(self.at + 1) == Some(&b'I') => {
                    self.literal("-Infinity", Any::from(f64::NEG_INFINITY))?
                }
                Some(_) => self.number()?,
            };
            // Hand the value to what is open around it, as long as that ends.
            loop {
                let Some(around) = open.last_mut() else {
                    return Ok(done);
                };
                match around {
                    Open::Array(items) => items.push(done),
                    Open::Object(pairs, key) => pairs.push((std::mem::take(key), done)),
                }
                self.skip_space();
                match (self.peek(), around) {
                    (Some(b','), Open::Array(_)) => {
                        self.at += 1;
                        break;
                    }
                    (Some(b','), Open::Object(_, key)) => {
                        self.at += 1;
                        self.skip_space();
                        *key = self.key()?;
                        break;
                    }
                    (Some(b']'), Open::Array(items)) => {
                        done = Any::from(Array::new(std::mem::take(items)));
                    }
                    (Some(b'}'), Open::Object(pairs, _)) => {
                        done = self.map(std::mem::take(pairs))?
                    }
                    _ => return self.wrong("Expecting ',' delimiter"),
                }
                self.at += 1;
                open.pop();
            }
        }
    }

    fn map(&self, pairs: Vec<(Any, Any)>) -> std::result::Result<Any, Wrong> {
        match Map::from_untrusted(pairs) {
            Ok(map) => Ok(Any::from(map)),
            // Text hashes and compares without an error, so it is the chain that is too long.
            Err(_) => self.wrong(COLLIDING),
        }
    }

    fn push(&self, open: &mut Vec<Open>, fresh: Open) -> std::result::Result<(), Wrong> {
        if open.len() >= MAX_DEPTH {
            return self.wrong(TOO_DEEP);
        }
        open.push(fresh);
        Ok(())
    }

    fn key(&mut self) -> std::result::Result<Any, Wrong> {
        if self.peek() != Some(b'"') {
            return self.wrong(NAME);
        }
        let key = self.string()?;
        self.skip_space();
        if self.peek() != Some(b':') {
            return self.wrong("Expecting ':' delimiter");
        }
        self.at += 1;
        Ok(key)
    }

    fn literal(&mut self, word: &str, value: Any) -> std::result::Result<Any, Wrong> {
        if !self.text[self.at..].starts_with(word.as_bytes()) {
            return self.wrong(VALUE);
        }
        self.at += word.len();
        Ok(value)
    }

    fn number(&mut self) -> std::result::Result<Any, Wrong> {
        let start = self.at;
        while matches!(
            self.peek(),
            Some(b'0'..=b'9' | b'e' | b'E' | b'+' | b'-' | b'.')
        ) {
            self.at += 1;
        }
        let text = std::str::from_utf8(&self.text[start..self.at]).unwrap_or_default();
        let wrong = Err(Wrong {
            what: VALUE,
            at: start,
        });
        if text.is_empty() {
            return wrong;
        }
        if !text.contains(['.', 'e', 'E'])
            && let Ok(value) = text.parse::<i64>()
        {
            return Ok(Any::from(value));
        }
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Any::from(value)),
            _ => wrong,
        }
    }

    fn string(&mut self) -> std::result::Result<Any, Wrong> {
        let start = self.at;
        self.at += 1;
        let plain = self.text[self.at..]
            .iter()
            .position(|&byte| byte == b'"' || byte == b'\\' || byte < b' ')
            .unwrap_or(self.text.len() - self.at);
        let mut text: Vec<u8> = Vec::new();
        let first = &self.text[self.at..self.at + plain];
        self.at += plain;
        if self.peek() == Some(b'"') {
            self.at += 1;
            return Ok(Any::from(Str::new(first)));
        }
        text.extend_from_slice(first);
        loop {
            match self.peek() {
                None => {
                    return Err(Wrong {
                        what: "Unterminated string starting at",
                        at: start,
                    });
                }
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Any::from(Str::new(&text)));
                }
                Some(b'\\') => self.escape(&mut text)?,
                Some(byte) if byte < b' ' => return self.wrong("Invalid control character at"),
                Some(byte) => {
                    text.push(byte);
                    self.at += 1;
                }
            }
        }
    }

    fn escape(&mut self, text: &mut Vec<u8>) -> std::result::Result<(), Wrong> {
        self.at += 1;
        let byte = match self.peek() {
            Some(plain @ (b'"' | b'\\' | b'/')) => plain,
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => return self.unicode(text),
            _ => return self.wrong("Invalid \\escape"),
        };
        text.push(byte);
        self.at += 1;
        Ok(())
    }

    fn unicode(&mut self, text: &mut Vec<u8>) -> std::result::Result<(), Wrong> {
        const PAIR: &str = "Invalid surrogate pair of \\uXXXX escapes";
        let start = self.at;
        let first = self.four_digits(start)?;
        let code = match first {
            0xd800..0xdc00 => {
                let second_at = self.at + 1;
                if !self.text[self.at..].starts_with(b"\\u") {
                    return Err(Wrong {
                        what: PAIR,
                        at: start,
                    });
                }
                self.at = second_at;
                let second = self.four_digits(second_at + 1)?;
                if !(0xdc00..0xe000).contains(&second) {
                    return Err(Wrong {
                        what: PAIR,
                        at: second_at + 1,
                    });
                }
                0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)
            }
            code => code,
        };
        match char::from_u32(code) {
            Some(c) => text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            None => {
                return Err(Wrong {
                    what: PAIR,
                    at: start,
                });
            }
        }
        Ok(())
    }

    /// Four hexadecimal digits after the `u` at the cursor.
    fn four_digits(&mut self, blame: usize) -> std::result::Result<u32, Wrong> {
        let digits = self.text.get(self.at + 1..self.at + 5);
        let code = digits
            .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let Some(code) = code else {
            return Err(Wrong {
                what: "Invalid \\uXXXX escape",
                at: blame,
            });
        };
        self.at += 5;
        Ok(code)
    }
}

/// JSON text of a value. `indent` of 0 is compact. Only None, bool, int, float, string, array, list and map have one.
///
/// # Errors
///
/// A ValueError for any other value, for one that contains itself, for an `indent` above [`MAX_INDENT`] and for a text beyond
/// [`MAX_TEXT`] (OBJ-17).
pub(crate) fn stringify(value: AnyView<'_>, indent: i64) -> Result<String> {
    // What is negative is compact too, as in every release.
    let indent = match usize::try_from(indent.max(0)) {
        Ok(indent) if indent <= MAX_INDENT => indent,
        _ => {
            let message = format!("an indent of {indent} spaces is more than {MAX_INDENT}");
            return Err(too_much(message));
        }
    };
    let mut writer = Writer {
        text: Vec::new(),
        indent,
        level: 0,
        open: Vec::new(),
    };
    writer.value(value)?;
    Ok(String::from_utf8(writer.text)
        .unwrap_or_else(|bytes| String::from_utf8_lossy(bytes.as_bytes()).into_owned()))
}

/// A float as JSON: always with a fraction or an exponent.
pub fn float_text(value: f64) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value < 0.0 { "-Infinity" } else { "Infinity" }.into();
    }
    if value.abs() < (1u64 << 53) as f64 && value.fract() == 0.0 {
        return format!("{value:.1}");
    }
    general(value, 17)
}

/// A string as JSON, `/` and DEL escaped, what is beyond ASCII as it is.
pub(crate) fn string_text(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &byte in bytes {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'/' => out.extend_from_slice(b"\\/"),
            8 => out.extend_from_slice(b"\\b"),
            12 => out.extend_from_slice(b"\\f"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..32 | 127 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

#[cold]
fn too_much(message: String) -> Error {
    Error::said("ValueError", OBJ_17.refused(Kind::Limit, message))
}

struct Writer {
    text: Vec<u8>,
    indent: usize,
    level: usize,
    /// Addresses of the containers on the way.
    open: Vec<usize>,
}

impl Writer {
    fn value(&mut self, value: AnyView<'_>) -> Result<()> {
        let raw = value.as_raw();
        match raw.type_index {
            index::NONE => self.text.extend_from_slice(b"null"),
            index::BOOL => {
                let text: &[u8] = if raw.int() != 0 { b"true" } else { b"false" };
                self.text.extend_from_slice(text);
            }
            index::INT => self
                .text
                .extend_from_slice(raw.int().to_string().as_bytes()),
            index::FLOAT => self
                .text
                .extend_from_slice(float_text(raw.float()).as_bytes()),
            index::SMALL_STR | index::STR => {
                string_text(str_bytes(&value).unwrap_or_default(), &mut self.text);
            }
            index::ARRAY | index::LIST | index::MAP => self.container(value)?,
            own => {
                let message = format!("Unsupported type: `{}`", types::key_of(own));
                let said = OBJ_17.refused(Kind::Unsupported, message);
                return Err(Error::said("ValueError", said));
            }
        }
        Ok(())
    }

    fn container(&mut self, value: AnyView<'_>) -> Result<()> {
        let at = value.as_raw().ptr() as usize;
        if self.open.contains(&at) {
            return Err(Error::new(
                "ValueError",
                "Cycle detected: List contains itself",
            ));
        }
        if self.open.len() >= MAX_DEPTH {
            let message = format!("the value nests deeper than {MAX_DEPTH}");
            return Err(OBJ_40.refused(Kind::Limit, message).into());
        }
        depth::check_stack()?;
        self.open.push(at);
        self.level += self.indent;
        if let Some(items) = sequence_of(value) {
            self.text.push(b'[');
            for (count, item) in items.iter().enumerate() {
                self.separate(count)?;
                self.value(item.view())?;
            }
        } else {
            self.text.push(b'{');
            for (count, (key, item)) in pairs_of(value).iter().flatten().enumerate() {
                self.separate(count)?;
                let view = key.view();
                let Some(name) = str_bytes(&view) else {
                    let own = types::key_of(key.type_index());
                    return Err(Error::new(
                        "ValueError",
                        format!("Expect key to be string, got `{own}`"),
                    ));
                };
                string_text(name, &mut self.text);
                self.text
                    .extend_from_slice(if self.indent == 0 { b":" } else { b": " });
                self.value(item.view())?;
            }
        }
        self.level -= self.indent;
        self.open.pop();
        self.line()?;
        let close = if value.type_index() == index::MAP {
            b'}'
        } else {
            b']'
        };
        self.text.push(close);
        Ok(())
    }

    fn separate(&mut self, count: usize) -> Result<()> {
        if count > 0 {
            self.text.push(b',');
        }
        self.line()
    }

    fn line(&mut self) -> Result<()> {
        if self.text.len() + self.level > MAX_TEXT {
            return Err(too_much(format!(
                "the text is longer than {MAX_TEXT} bytes"
            )));
        }
        if self.indent > 0 {
            self.text.push(b'\n');
            self.text.extend(std::iter::repeat_n(b' ', self.level));
        }
        Ok(())
    }
}
