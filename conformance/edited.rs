//! Inputs that are a golden file with an edit.

use super::golden::{golden, hex_bytes};
use serde_json::{Map, Value};

/// What an input may be, in the words of an error.
pub(in crate::conformance) const INPUTS: &str =
    "`input` is not one of file, hex, value, value_file; beside `file` may be `put` and `cut`";

/// `{"file": .., "put": [[offset, hex], ..], "cut": length}`: a golden file with some bytes replaced, or its beginning. One file
/// serves many cases, each of which breaks one thing in it.
pub(super) fn bytes(input: &Map<String, Value>) -> Result<Vec<u8>, String> {
    // An edit with a misspelled key, passed over, would put the file as it is under the name of a broken one.
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
            _ => return Err("`put` has what is not an offset and hex digits".to_owned()),
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
        // A cut that leaves all is a slip: the case would put the whole file where it is about a beginning.
        let length = length.filter(|length| *length < bytes.len());
        bytes.truncate(length.ok_or_else(|| format!("`cut` leaves all of golden/{name}"))?);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(input: Value) -> Result<Vec<u8>, String> {
        bytes(input.as_object().unwrap())
    }

    #[test]
    fn bytes_are_replaced_and_cut_off() {
        let name = "blob/library-alone-0.8.bin";
        let whole = golden(name).unwrap();
        let put = read(json!({"file": name, "put": [[1, "ab cd"], [15, "ef"]]})).unwrap();
        assert_eq!(put.len(), whole.len());
        assert_eq!(put[..3], [whole[0], 0xab, 0xcd]);
        assert_eq!(put[15], 0xef);
        let cut = read(json!({"file": name, "put": [[1, "ab"]], "cut": 2})).unwrap();
        assert_eq!(cut, [whole[0], 0xab]);
    }

    #[test]
    fn an_edit_changes_what_is_there() {
        let name = "blob/library-alone-0.8.bin";
        for (input, why) in [
            (
                json!({"file": name, "put": [[15, "abcd"]]}),
                "writes outside",
            ),
            (json!({"file": name, "put": [[-1, "ab"]]}), "writes outside"),
            (
                json!({"file": name, "put": [["1", 2]]}),
                "not an offset and hex digits",
            ),
            (json!({"file": name, "put": 1}), "not a list"),
            (json!({"file": name, "cut": 16}), "leaves all"),
            (json!({"file": name, "hex": "00"}), "is not one of"),
            (json!({"hex": "00", "cut": 0}), "is not one of"),
            (json!({"file": "blob/none.bin", "cut": 0}), "no file"),
        ] {
            let problem = read(input).unwrap_err();
            assert!(problem.contains(why), "{problem}");
        }
    }
}
