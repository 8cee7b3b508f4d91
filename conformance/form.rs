//! Deserialization of arguments, scripts and lists of the suite.

use super::golden::hex_bytes;
use super::op::OpError;
use serde::{Deserialize, Deserializer, de::Error};
use serde_json::Value;
use std::fmt::Display;
use std::str::FromStr;

/// Reads a `T` from its JSON form.
///
/// # Errors
///
/// [`OpError::Unsupported`] with the path of the malformed member. It must not count as an answer about a rule.
pub(super) fn read<'v, T: Deserialize<'v>>(form: &'v Value) -> Result<T, OpError> {
    serde_path_to_error::deserialize(form).map_err(|error| OpError::Unsupported(error.to_string()))
}

/// Reads a value that is written as a text, such as a release.
///
/// # Errors
///
/// The value is not a text, or the text does not parse.
pub(super) fn from_text<'v, D, T>(form: D) -> Result<T, D::Error>
where
    D: Deserializer<'v>,
    T: FromStr<Err: Display>,
{
    let text = String::deserialize(form)?;
    text.parse().map_err(D::Error::custom)
}

/// Reads as [`from_text`] does, for an optional member.
///
/// # Errors
///
/// As [`from_text`].
pub(super) fn from_text_if_any<'v, D, T>(form: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'v>,
    T: FromStr<Err: Display>,
{
    from_text(form).map(Some)
}

/// Reads bytes that are written in hex.
///
/// # Errors
///
/// The value is not a text, or the text is not hex.
pub(super) fn from_hex<'v, D: Deserializer<'v>>(form: D) -> Result<Vec<u8>, D::Error> {
    hex_bytes(&String::deserialize(form)?).map_err(D::Error::custom)
}
