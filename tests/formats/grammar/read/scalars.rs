//! Fields with one value: numbers and texts.

use super::super::text::Literal;
use super::{Read, Reader, Value};

impl Reader<'_, '_> {
    pub(super) fn plain(&mut self, name: &str, is: Option<&Literal>) -> Read {
        let start = self.at;
        let (width, signed) = match name {
            "u8" | "bool" => (1, false),
            "u16" => (2, false),
            "u32" => (4, false),
            "u64" => (8, false),
            "i32" => (4, true),
            "i64" => (8, true),
            "f64" => {
                let bits = self.number(8, false)? as u64;
                self.leaf(start, Value::Float(f64::from_bits(bits)));
                return Ok(());
            }
            _ => return self.text(name, is),
        };
        let number = self.number(width, signed)?;
        if name == "bool" && number > 1 {
            return self.fault("a bool is 0 or 1");
        }
        if let Some(Literal::Number(wanted)) = is
            && *wanted != number
        {
            self.at = start;
            return self.fault(format!("{number:#x} is not {wanted:#x}"));
        }
        self.known.insert(self.path.clone(), number);
        self.leaf(start, Value::Number(number));
        Ok(())
    }

    /// Reads a length and that many bytes.
    fn text(&mut self, name: &str, is: Option<&Literal>) -> Read {
        let start = self.at;
        let length = self.number(8, false)?;
        let length = self.fitting(length, start)?;
        self.leaf(start, Value::Count(length, "bytes"));
        let content = self.at..self.at + length;
        self.at = content.end;
        let bytes = &self.bytes[content.clone()];
        let text = std::str::from_utf8(bytes);
        let all =
            |wanted: fn(u8) -> bool| !bytes.is_empty() && bytes.iter().all(|byte| wanted(*byte));
        let holds = match name {
            "bytes" => true,
            "string" => text.is_ok(),
            "word" => all(|byte| byte.is_ascii_graphic()),
            "digits" => all(|byte| byte.is_ascii_digit() || byte == b'.'),
            "base64" => {
                let body = text.unwrap_or("!").trim_end_matches('=').as_bytes();
                let digits = body
                    .iter()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(byte));
                digits && bytes.len().is_multiple_of(4) && bytes.len() - body.len() <= 2
            }
            "decimal" | "release" => {
                let number = match name {
                    "decimal" => text.ok().and_then(decimal),
                    _ => text.ok().and_then(release),
                };
                if let Some(number) = number {
                    self.known.insert(self.path.clone(), number);
                }
                number.is_some()
            }
            other => panic!("no type `{other}`"),
        };
        let is_it = match is {
            Some(Literal::Text(wanted)) => bytes == wanted.as_bytes(),
            Some(Literal::Number(_)) => panic!("a text is no number"),
            None => true,
        };
        if !holds || !is_it {
            self.at = content.start;
            return self.fault(format!(
                "`{}` is no {name}, or another than wanted",
                bytes.escape_ascii()
            ));
        }
        self.texts.insert(self.path.clone(), content.clone());
        if !content.is_empty() {
            self.leaf(content.start, Value::Run);
        }
        Ok(())
    }
}

/// Parses a number in the only decimal form that is written.
fn decimal(text: &str) -> Option<i128> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(i128::from(number))
}

/// Parses the number after `0.`, up to the next dot.
fn release(text: &str) -> Option<i128> {
    let minor = text.strip_prefix("0.")?.split('.').next()?;
    minor.parse::<u8>().ok().map(i128::from)
}
