//! Conversion between JSON text and values (OBJ-16, OBJ-17). Like the tvm-ffi reader, it accepts more than the standard: `NaN`, `Infinity`,
//! `-Infinity`, and numbers such as `01`, `1.`, `.5` and `+1`.

use crate::function::{Error, ErrorKind, Result};
use crate::object::format::text::{Build, MAX_DEPTH, read};
use crate::object::walk::depth;
use crate::object::walk::text::general;
use crate::object::{Array, Map, OBJ_17, OBJ_40, pairs_of, sequence_of};
use crate::rule::Kind;
use crate::value::{Any, AnyView, Str, index, str_bytes, types};

/// Maximum indentation of a level, in spaces.
pub(crate) const MAX_INDENT: usize = 1024;
/// Maximum size of a written text, in bytes. The product of depth and indentation can make small values long.
pub(crate) const MAX_TEXT: usize = 1 << 30;

/// Parses JSON text into a value: None, bool, int, float, string, array or map. A repeated key keeps its last value.
///
/// # Errors
///
/// Returns a ValueError with OBJ-16 at the byte where the text stops being JSON. Returns OBJ-40 if it nests deeper than 10,000, and OBJ-39
/// for keys that would share a chain of more than 256.
pub fn parse(text: &[u8]) -> Result {
    read(text, Values).map_err(|broken| match broken.kind() {
        Kind::Malformed => Error::of_violation(ErrorKind::Value, broken),
        // A limit of this crate (OBJ-39, OBJ-40). Upstream raises no error here, so there is no kind to match.
        _ => broken.into(),
    })
}

/// A builder of values in this process.
struct Values;

impl Build for Values {
    type Value = Any;

    fn null(&mut self) -> Any {
        Any::none()
    }

    fn truth(&mut self, value: bool) -> Any {
        value.into()
    }

    fn int(&mut self, value: i64, _: usize) -> Any {
        value.into()
    }

    fn float(&mut self, value: f64) -> Any {
        value.into()
    }

    fn text(&mut self, bytes: &[u8], _: usize) -> Any {
        Str::new(bytes).into()
    }

    fn array(&mut self, items: Vec<Any>) -> Any {
        Array::new(items).into()
    }

    fn empty_object(&mut self) -> Any {
        Map::new().into()
    }

    fn object(&mut self, pairs: Vec<(Any, Any)>) -> Option<Any> {
        // Text hashes and compares without errors, so the cause is a chain that is too long.
        Map::from_untrusted(pairs).ok().map(Any::from)
    }
}

/// Returns the JSON text of a value: None, bool, int, float, string, array, list or map. An `indent` of 0 is compact. A negative one breaks
/// lines, but does not indent them.
pub(crate) fn stringify(value: AnyView<'_>, indent: i64) -> Result<String> {
    // OBJ-17: upstream compares with 0 only, so a negative indent also breaks lines.
    let has_lines = indent != 0;
    let indent = match usize::try_from(indent.max(0)) {
        // Upstream has no limit, so each level of a small value could cost any number of bytes.
        Ok(indent) if indent <= MAX_INDENT => indent,
        _ => {
            let message = format!("an indent of {indent} spaces is more than {MAX_INDENT}");
            return Err(too_much(message));
        }
    };
    let mut writer = JsonWriter {
        text: Vec::new(),
        has_lines,
        indent,
        level: 0,
        open: Vec::new(),
    };
    writer.value(value)?;
    // A value without lines, such as a single string, has not been measured yet.
    writer.hold_length(0)?;
    // JSON is UTF-8, so invalid bytes of a string are replaced.
    Ok(String::from_utf8(writer.text)
        .unwrap_or_else(|bytes| String::from_utf8_lossy(bytes.as_bytes()).into_owned()))
}

/// Returns a float as JSON, always with a fraction or an exponent.
pub fn float_text(value: f64) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value < 0.0 { "-Infinity" } else { "Infinity" }.into();
    }
    // OBJ-17: a whole number below 2^53 is written with its digits and `.0`. Other numbers get 17 digits, which read back as the same
    // float.
    if value.abs() < (1u64 << 53) as f64 && value.fract() == 0.0 {
        return format!("{value:.1}");
    }
    general(value, 17)
}

/// Writes a string as JSON. Escapes `/` and DEL, and copies characters beyond ASCII.
pub(crate) fn string_text(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &byte in bytes {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            // OBJ-17: JSON does not require escapes for `/` and DEL, but every release writes them.
            b'/' => out.extend_from_slice(b"\\/"),
            8 => out.extend_from_slice(b"\\b"),
            12 => out.extend_from_slice(b"\\f"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            // Works on bytes: UTF-8 bytes beyond ASCII are above 127 and are copied.
            0..32 | 127 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

/// Returns the ValueError with OBJ-17 of kind limit, for an indent or a text that is too long.
#[cold]
fn too_much(message: String) -> Error {
    Error::of_violation(ErrorKind::Value, OBJ_17.rejected(Kind::Limit, message))
}

/// Returns the ValueError with OBJ-17 of kind unsupported, for a value without JSON.
#[cold]
fn unsupported(message: impl Into<String>) -> Error {
    let violation = OBJ_17.rejected(Kind::Unsupported, message.into());
    Error::of_violation(ErrorKind::Value, violation)
}

/// A writer of JSON text.
struct JsonWriter {
    /// The text so far. Bytes, because a C++ string may be invalid UTF-8.
    text: Vec<u8>,
    /// True if each part of a container has its own line.
    has_lines: bool,
    /// Spaces for each level, up to [`MAX_INDENT`].
    indent: usize,
    /// Current indentation, in spaces.
    level: usize,
    /// Addresses of the open containers.
    open: Vec<usize>,
}

impl JsonWriter {
    /// Writes any value.
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
            // OBJ-17: a list has a JSON text, but a dict does not.
            index::ARRAY | index::LIST | index::MAP => self.container(value)?,
            own => {
                let message = format!("Unsupported type: `{}`", types::key_of(own));
                return Err(unsupported(message));
            }
        }
        Ok(())
    }

    /// Writes an array, a list or a map, and indents its parts by one level.
    fn container(&mut self, value: AnyView<'_>) -> Result<()> {
        let at = value.as_raw().ptr() as usize;
        // OBJ-17: only a list can contain itself, directly or indirectly. Without this check its text would be infinite.
        if self.open.contains(&at) {
            return Err(unsupported("Cycle detected: List contains itself"));
        }
        // OBJ-40: the outermost container counts as one.
        if self.open.len() >= MAX_DEPTH {
            let message = format!("the value nests deeper than {MAX_DEPTH}");
            return Err(OBJ_40.rejected(Kind::Limit, message).into());
        }
        depth::check_stack()?;
        // Contains only open values, so a value that occurs twice without nesting is written twice.
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
                    let message = format!("Expect key to be string, got `{own}`");
                    return Err(unsupported(message));
                };
                string_text(name, &mut self.text);
                self.text
                    .extend_from_slice(if self.has_lines { b": " } else { b":" });
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

    /// Writes a comma, except before the first part of a container, and starts a new line.
    fn separate(&mut self, count: usize) -> Result<()> {
        if count > 0 {
            self.text.push(b',');
        }
        self.line()
    }

    /// Checks that the text stays within its limit after `more` bytes.
    fn hold_length(&self, more: usize) -> Result<()> {
        if self.text.len() + more <= MAX_TEXT {
            return Ok(());
        }
        Err(too_much(format!(
            "the text is longer than {MAX_TEXT} bytes"
        )))
    }

    /// Starts an indented new line in a text with lines. Checks the length in every text.
    fn line(&mut self) -> Result<()> {
        // Before the line is written, because the indentation may be most of the text.
        self.hold_length(self.level)?;
        if self.has_lines {
            self.text.push(b'\n');
            self.text.extend(std::iter::repeat_n(b' ', self.level));
        }
        Ok(())
    }
}
