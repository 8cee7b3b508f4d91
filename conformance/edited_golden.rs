//! Inputs that are an edited golden file.

use super::golden::{golden, hex_bytes};
use serde_json::{Map, Value};

/// The possible forms of an input, for error messages.
pub(in crate::conformance) const INPUTS: &str =
    "`input` is not one of file, hex, value, value_file; beside `file` may be `put` and `cut`";

/// Reads `{"file": .., "put": [[offset, hex], ..], "cut": length}`: a golden file with some bytes replaced, or its beginning. One
/// file serves many cases, each of which breaks one thing in it.
pub(super) fn read_edited_bytes(input: &Map<String, Value>) -> Result<Vec<u8>, String> {
    // If a misspelled key were ignored, the case would use the unedited file.
    if input
        .keys()
        .any(|key| !["file", "put", "cut"].contains(&key.as_str()))
    {
        return Err(INPUTS.to_owned());
    }
    let name = input.get("file").and_then(Value::as_str).ok_or(INPUTS)?;
    let mut bytes = golden(name)
        .ok_or_else(|| format!("there is no file golden/{name}"))?
        .to_vec();
    let edits = match input.get("put") {
        None => &Vec::new(),
        Some(edits) => edits.as_array().ok_or("`put` is not a list")?,
    };
    for edit in edits {
        let (at, hex) = match edit.as_array().map(Vec::as_slice) {
            Some([at, Value::String(hex)]) => (at.as_u64(), hex),
            _ => {
                return Err(
                    "an entry of `put` is not a pair of an offset and hex digits".to_owned(),
                );
            }
        };
        let new = hex_bytes(hex)?;
        at.and_then(|at| usize::try_from(at).ok())
            .and_then(|at| bytes.get_mut(at..at.checked_add(new.len())?))
            .ok_or_else(|| format!("`put` writes outside of golden/{name}"))?
            .copy_from_slice(&new);
    }
    if let Some(length) = input.get("cut") {
        let length = length
            .as_u64()
            .and_then(|length| usize::try_from(length).ok());
        // A cut that keeps the whole file is a mistake, because the case is about a truncated one.
        let length = length.filter(|length| *length < bytes.len());
        bytes.truncate(length.ok_or_else(|| format!("`cut` leaves all of golden/{name}"))?);
    }
    Ok(bytes)
}
