//! Which form a text has, by words near its ends.

use super::FileForm;
use super::form::find;

/// BLOB-69: text, by words that are near its ends.
/// Only the first and the last 64 KiB are looked at, but for JSON that names its form nowhere there: C whose words are all between
/// them is unknown.
pub(super) fn text(bytes: &[u8]) -> Option<FileForm> {
    let head = bytes.get(..FileForm::WINDOW).unwrap_or(bytes);
    // BLOB-69: a source may have a long licence in front, and a graph its lists.
    let tail = bytes.get(bytes.len().saturating_sub(FileForm::WINDOW)..)?;
    if head.is_empty() || head.contains(&0) {
        return None;
    }
    let ends = [head, tail];
    // BLOB-69: what a byte order mark is in front of is for the reader of the form to reject.
    let start = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    if let Some(members) = start.trim_ascii_start().strip_prefix(b"{") {
        // The members may be in any order, and between them lists of any length.
        return json(&ends)
            .or_else(|| json(&[bytes]))
            .or_else(|| is_begun_graph(members).then_some(FileForm::GraphJson));
    }
    let has = |what: &str| {
        ends.iter()
            .any(|part| find(part, what.as_bytes()).is_some())
    };
    let code = [
        "#include",
        "#ifdef",
        "#define",
        "extern ",
        "const unsigned char",
        "const char",
    ];
    code.iter().any(|code| has(code)).then_some(FileForm::CText)
}

/// What a JSON text is by the members that are named in these parts of it.
fn json(parts: &[&[u8]]) -> Option<FileForm> {
    let has = |what: &str| {
        parts
            .iter()
            .any(|part| find(part, what.as_bytes()).is_some())
    };
    // BLOB-69: members that only one of the forms has. `nodes` is in all three.
    if has("\"arg_nodes\"") {
        Some(FileForm::GraphJson)
    } else if has("\"root_index\"") {
        Some(FileForm::FfiJson)
    } else if has("\"type_key\"") && has("\"root\"") {
        Some(FileForm::ObjectJson)
    } else if has("\"dataPath\"") && has("\"records\"") {
        Some(FileForm::TensorCache)
    } else {
        None
    }
}

/// Whether `members` begin as those of a graph do: nothing but a list of nodes is known of one that is cut off there.
fn is_begun_graph(members: &[u8]) -> bool {
    // The nodes of saved objects have types.
    if find(members, b"\"type_key\"").is_some() {
        return false;
    }
    let members = members.trim_ascii_start();
    let list = members
        .strip_prefix(b"\"nodes\"")
        .map(<[u8]>::trim_ascii_start);
    let list = list
        .and_then(|list| list.strip_prefix(b":"))
        .map(<[u8]>::trim_ascii_start);
    list.is_some_and(|list| list.is_empty() || list.starts_with(b"["))
}
