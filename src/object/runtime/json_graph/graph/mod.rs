//! The JSON graph of an object (`ToJSONGraph`, from 0.22 on). Nodes follow their children, and equal plain values and shared objects occur
//! once (OBJ-18 to OBJ-20). [`encode`] and [`decode`] use the graph as values, [`encode_text`] and [`decode_text`] as JSON text.

mod decode;
mod encode;

pub use decode::decode;
pub use encode::encode;

use super::json;
use crate::function::{Error, ErrorKind, Result};
use crate::value::AnyView;
use crate::value::types::{self, TypeInfo};

/// Like [`encode`], as compact text.
///
/// # Errors
///
/// Returns the errors of [`encode`]. Returns OBJ-17 if metadata or the result of a `__data_to_json__` has no JSON text, or if the text
/// exceeds 2^30 bytes. Returns OBJ-40 if it nests deeper than 10,000.
pub fn encode_text(value: AnyView<'_>, metadata: AnyView<'_>) -> Result<String> {
    // Compact: releases write no blanks, and texts are compared byte for byte.
    json::stringify(encode(value, metadata)?.view(), 0)
}

/// Like [`decode`], from text.
///
/// # Errors
///
/// Returns the errors of [`json::parse`] and [`decode`].
pub fn decode_text(text: &[u8]) -> Result {
    decode(json::parse(text)?.view())
}

/// Returns the reflection data of an object's type.
fn reflected_type(type_index: i32) -> Result<&'static TypeInfo> {
    types::info(type_index).ok_or_else(|| {
        Error::new(
            ErrorKind::Internal,
            format!("unknown type index {type_index}"),
        )
    })
}
