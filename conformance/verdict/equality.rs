//! Equality of two values, and the first place where they differ.

use super::AnswerMismatch;
use crate::conformance::sanitized_text::sanitize;
use serde_json::Value;

/// Returns whether two values are equal. Object keys may come in any order. Integers are compared exactly, a float and an integer
/// by their number, and two floats by their bits.
pub fn values_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .zip(other)
                    .all(|(one, other)| values_equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(key, one)| other.get(key).is_some_and(|other| values_equal(one, other)))
        }
        (Value::Number(a), Value::Number(b)) => match (a.is_f64(), b.is_f64()) {
            (false, false) => a == b,
            // By bits, because 0.0 and -0.0 are equal as numbers, and a reader that loses the sign would pass.
            (true, true) => a.as_f64().map(f64::to_bits) == b.as_f64().map(f64::to_bits),
            // JSON has one kind of number, so a testee may write 1 for 1.0.
            _ => a.as_f64() == b.as_f64(),
        },
        _ => one == other,
    }
}

/// Returns the first place where two values differ, or `None` if they are equal.
pub(super) fn difference(expected: &Value, actual: &Value, bytes: bool) -> Option<AnswerMismatch> {
    if values_equal(expected, actual) {
        return None;
    }
    // Compared as bytes if both are base64, because the first different letter does not show the offset.
    if bytes && let Some(mismatch) = byte_difference(expected, actual) {
        return Some(mismatch);
    }
    let mut path = String::new();
    let (expected, actual) = first_difference(expected, actual, &mut path);
    let place = if path.is_empty() {
        String::new()
    } else {
        format!("{path} = ")
    };
    // The place may contain a key that the testee invented.
    Some(AnswerMismatch {
        expected: sanitize(&format!("{place}{expected}")),
        actual: sanitize(&format!("{place}{actual}")),
        offset: None,
    })
}

/// Returns the first byte at which two base64 texts differ, or `None` if either is not base64.
fn byte_difference(expected: &Value, actual: &Value) -> Option<AnswerMismatch> {
    use base64::prelude::{BASE64_STANDARD, Engine as _};
    let bytes = |value: &Value| BASE64_STANDARD.decode(value.as_str()?).ok();
    let (expected, actual) = (bytes(expected)?, bytes(actual)?);
    let common = expected
        .iter()
        .zip(&actual)
        .take_while(|(one, other)| one == other)
        .count();
    let say = |bytes: &[u8]| match bytes.get(common) {
        Some(byte) => format!("{} bytes, byte {common:#x} is {byte:02x}", bytes.len()),
        None => format!("{} bytes", bytes.len()),
    };
    Some(AnswerMismatch {
        expected: say(&expected),
        actual: say(&actual),
        offset: Some(common as u64),
    })
}

/// Returns both values in short at the first place where they differ, depth first. `path` leads to that place.
fn first_difference(expected: &Value, actual: &Value, path: &mut String) -> (String, String) {
    match (expected, actual) {
        (Value::Array(one), Value::Array(other)) => {
            let differs = one
                .iter()
                .zip(other)
                .position(|(one, other)| !values_equal(one, other));
            if let Some(index) = differs {
                path.push_str(&format!("[{index}]"));
                return first_difference(&one[index], &other[index], path);
            }
            (
                format!("{} elements", one.len()),
                format!("{} elements", other.len()),
            )
        }
        (Value::Object(one), Value::Object(other)) => {
            // After the expected members come those that the testee adds: a surplus member is a difference.
            let keys = one
                .keys()
                .chain(other.keys().filter(|key| !one.contains_key(*key)));
            for key in keys {
                let dot = if path.is_empty() { "" } else { "." };
                match (one.get(key), other.get(key)) {
                    (Some(one), Some(other)) if !values_equal(one, other) => {
                        path.push_str(&format!("{dot}{key}"));
                        return first_difference(one, other, path);
                    }
                    (Some(_), Some(_)) => {}
                    (one, other) => {
                        path.push_str(&format!("{dot}{key}"));
                        let say = |side: Option<&Value>| side.map_or("nothing".to_owned(), short);
                        return (say(one), say(other));
                    }
                }
            }
            (short(expected), short(actual))
        }
        _ => (short(expected), short(actual)),
    }
}

/// Returns a value as JSON, shortened.
pub fn short(value: &Value) -> String {
    const LONGEST: usize = 200;
    let text = value.to_string();
    // Cut at the beginning of a character, because a slice inside one panics.
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}... ({} bytes of JSON)", &text[..end], text.len()),
        None => text,
    }
}
