//! JSON strings and their escapes.

use super::{JsonError, JsonReader};
use std::borrow::Cow;

impl<'a, B> JsonReader<'a, B> {
    /// Parses a string and resolves its escapes. Borrows from the text if there are no escapes.
    pub(super) fn characters(&mut self) -> Result<Cow<'a, [u8]>, JsonError> {
        let start = self.at;
        self.step(1);
        let rest = self.remaining();
        // Most strings have no escape, and are borrowed from the text.
        let plain = rest
            .iter()
            .position(|&byte| byte == b'"' || byte == b'\\' || byte < b' ')
            .unwrap_or(rest.len());
        let mut text: Vec<u8> = Vec::new();
        let first = rest.get(..plain).unwrap_or_default();
        self.step(plain);
        if self.peek() == Some(b'"') {
            self.step(1);
            return Ok(first.into());
        }
        text.extend_from_slice(first);
        loop {
            match self.peek() {
                None => {
                    return Err(JsonError {
                        what: "Unterminated string starting at",
                        at: start,
                    });
                }
                Some(b'"') => {
                    self.step(1);
                    return Ok(text.into());
                }
                Some(b'\\') => self.escape(&mut text)?,
                // A string may not contain a line break or any other control character.
                Some(byte) if byte < b' ' => return self.fail("Invalid control character at"),
                Some(byte) => {
                    text.push(byte);
                    self.step(1);
                }
            }
        }
    }

    /// Parses an escape. The printer also escapes `/` (OBJ-17). An unknown escape is reported at the letter after the backslash.
    fn escape(&mut self, text: &mut Vec<u8>) -> Result<(), JsonError> {
        self.step(1);
        // The letter is only peeked at, so that an error is reported at its position.
        let byte = match self.peek() {
            Some(plain @ (b'"' | b'\\' | b'/')) => plain,
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => return self.unicode(text),
            _ => return self.fail("Invalid \\escape"),
        };
        text.push(byte);
        self.step(1);
        Ok(())
    }

    /// Parses `\uXXXX`, or two of them for a UTF-16 surrogate pair. A lone surrogate is not text and is rejected.
    fn unicode(&mut self, text: &mut Vec<u8>) -> Result<(), JsonError> {
        /// Message for a lone surrogate.
        const PAIR: &str = "Invalid surrogate pair of \\uXXXX escapes";
        let start = self.at;
        let first = self.four_digits(start)?;
        // If the second escape makes no pair, the error is reported there. If there is no second escape, the error is at the first.
        let mut wrong = start;
        let mut units = vec![first];
        // A character beyond U+FFFF is written as two escapes, as in UTF-16.
        if (0xd800..0xdc00).contains(&first) && self.remaining().starts_with(b"\\u") {
            self.step(1);
            wrong = self.at.saturating_add(1);
            units.push(self.four_digits(wrong)?);
        }
        let read = char::decode_utf16(units).collect::<Result<String, _>>();
        let read = read.map_err(|_| JsonError {
            what: PAIR,
            at: wrong,
        })?;
        text.extend_from_slice(read.as_bytes());
        Ok(())
    }

    /// Parses the four hexadecimal digits after the `u` at the cursor.
    fn four_digits(&mut self, blame: usize) -> Result<u16, JsonError> {
        // `from_str_radix` accepts a sign, so the digits are checked first.
        let digits = self.remaining().get(1..5);
        let code = digits
            .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u16::from_str_radix(digits, 16).ok());
        let Some(code) = code else {
            return Err(JsonError {
                what: "Invalid \\uXXXX escape",
                at: blame,
            });
        };
        self.step(5);
        Ok(code)
    }
}
