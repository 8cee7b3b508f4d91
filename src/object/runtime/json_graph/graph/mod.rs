//! The JSON graph of an object (`ToJSONGraph`, from 0.22 on): nodes after their children, equal plain values and the same
//! objects once (OBJ-18 to OBJ-20). [`encode`] and [`decode`] have the graph as values, [`encode_text`] and [`decode_text`] as JSON.

mod decode;
mod encode;

pub use decode::decode;
pub use encode::encode;

use super::json;
use crate::function::{Error, ErrorKind, Result};
use crate::value::AnyView;
use crate::value::types::{self, TypeInfo};

/// [`encode`] as compact text.
///
/// # Errors
///
/// As [`encode`]; OBJ-17 for metadata, or the result of a `__data_to_json__`, that JSON has no text for, and for a text of more than
/// 2^30 bytes; OBJ-40 where it nests deeper than 10,000.
pub fn encode_text(value: AnyView<'_>, metadata: AnyView<'_>) -> Result<String> {
    // Compact: releases write it without a blank, and texts are compared byte for byte.
    json::stringify(encode(value, metadata)?.view(), 0)
}

/// [`decode`] of text.
///
/// # Errors
///
/// As [`json::parse`] and [`decode`].
pub fn decode_text(text: &[u8]) -> Result {
    decode(json::parse(text)?.view())
}

/// What reflection knows of a type that an object is of.
fn described(type_index: i32) -> Result<&'static TypeInfo> {
    types::info(type_index).ok_or_else(|| {
        Error::new(
            ErrorKind::Internal,
            format!("unknown type index {type_index}"),
        )
    })
}
