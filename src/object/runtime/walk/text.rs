//! Text of plain values: numbers in C's format, and strings with escapes.

use std::fmt::Write;

/// Formats a float with six significant digits, as C's `%g` does.
pub(crate) fn float_short(value: f64) -> String {
    general(value, 6)
}

/// Formats a float with `digits` significant digits (at least 1), as C's `%.<digits>g` does. Special values are `nan`, `-nan`, `inf` and
/// `-inf`.
pub(crate) fn general(value: f64, digits: usize) -> String {
    if value.is_nan() {
        // C prints the sign of a NaN, and graphs that releases have written contain `-nan` (OBJ-36).
        return if value.is_sign_negative() {
            "-nan"
        } else {
            "nan"
        }
        .to_owned();
    }
    if value.is_infinite() {
        return if value < 0.0 { "-inf" } else { "inf" }.to_owned();
    }
    // The exponent after rounding decides: 999999.5 with six digits is 1e+06, although its own exponent is 5.
    let scientific = format!("{:.*e}", digits - 1, value);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| -> String {
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text.to_owned()
        }
    };
    // Like C's `%g`: from 10^digits on and below 0.0001, with an exponent of at least two digits.
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trim(mantissa), exponent.abs());
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    trim(&format!("{value:.decimals$}"))
}

/// Formats a string in double quotes with Python's escapes: control characters as `\xNN`, characters beyond ASCII as `\uNNNN` or
/// `\UNNNNNNNN`.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 2);
    text.push('"');
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            quote_char(&mut text, c);
        }
        // C++ text may be invalid UTF-8. The invalid bytes are shown instead of lost.
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text.push('"');
    text
}

/// Appends a character with its escape: two letters, `\xNN` up to DEL, `\uNNNN` up to U+FFFF, otherwise `\UNNNNNNNN`.
fn quote_char(text: &mut String, c: char) {
    match c {
        '\n' => text.push_str("\\n"),
        '\t' => text.push_str("\\t"),
        '\r' => text.push_str("\\r"),
        '\\' => text.push_str("\\\\"),
        '"' => text.push_str("\\\""),
        ' '..='~' => text.push(c),
        '\0'..='\x7f' => {
            let _ = write!(text, "\\x{:02x}", c as u32);
        }
        '\u{80}'..='\u{ffff}' => {
            let _ = write!(text, "\\u{:04x}", c as u32);
        }
        _ => {
            let _ = write!(text, "\\U{:08x}", c as u32);
        }
    }
}

/// Formats bytes as Python does, in double quotes.
pub(crate) fn quoted_bytes(bytes: &[u8]) -> String {
    let mut text = "b\"".to_owned();
    for &byte in bytes {
        match byte {
            // OBJ-13: in bytes, a quote and a backslash are `\x22` and `\x5c`, unlike in text.
            b'"' | b'\\' => {
                let _ = write!(text, "\\x{byte:02x}");
            }
            b' '..=b'~' => text.push(char::from(byte)),
            _ => {
                let _ = write!(text, "\\x{byte:02x}");
            }
        }
    }
    text.push('"');
    text
}
