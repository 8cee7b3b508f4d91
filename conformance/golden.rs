//! The golden files, and bytes in hex.

use super::files;

/// Returns the content of a file below `golden/`, by its name with forward slashes.
pub fn golden(name: &str) -> Option<&'static [u8]> {
    files::content(&format!("golden/{name}"))
}

/// Returns the bytes of pairs of hex digits; spaces between them are skipped.
pub(in crate::conformance) fn hex_bytes(hex: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<u8> = hex
        .chars()
        .filter(|letter| !letter.is_whitespace())
        // Digit by digit, because `from_str_radix` also accepts a sign, and `+f` is not a byte.
        .map(|letter| {
            letter
                .to_digit(16)
                .and_then(|digit| u8::try_from(digit).ok())
        })
        .collect::<Option<_>>()
        .ok_or("`hex` has a letter that is not a hex digit")?;
    if !digits.len().is_multiple_of(2) {
        return Err("`hex` has half a byte".to_owned());
    }
    Ok(digits
        .chunks_exact(2)
        .map(|pair| pair[0] * 16 + pair[1])
        .collect())
}
