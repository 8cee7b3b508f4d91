//! Detection of the form of a text, by words near its ends.

use super::FileForm;
use super::form::find;

/// Returns the form of a text, by words near its ends (BLOB-69). Only the first and the last 64 KiB are searched, so C text with all
/// its words in between is unknown. JSON that does not show its form near the ends is searched completely.
pub(super) fn text(bytes: &[u8]) -> Option<FileForm> {
    let head = bytes.get(..FileForm::WINDOW).unwrap_or(bytes);
    // BLOB-69: a source may start with a long licence, and a graph with long lists.
    let tail = bytes.get(bytes.len().saturating_sub(FileForm::WINDOW)..)?;
    if head.is_empty() || head.contains(&0) {
        return None;
    }
    let ends = [head, tail];
    // BLOB-69: a byte order mark is skipped here; the reader of the form decides whether to reject it.
    let start = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    if let Some(members) = start.trim_ascii_start().strip_prefix(b"{") {
        // The members may be in any order, with lists of any length between them.
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
        "int __tvm_ffi_",
        "int32_t __tvm_ffi_",
    ];
    code.iter().any(|code| has(code)).then_some(FileForm::CText)
}

/// Returns the form of a JSON text, by the names of members in these parts of it.
fn json(parts: &[&[u8]]) -> Option<FileForm> {
    let has = |what: &str| {
        parts
            .iter()
            .any(|part| find(part, what.as_bytes()).is_some())
    };
    // BLOB-69: each of these members occurs in only one form. `nodes` occurs in the first three.
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

/// Returns whether `members` begin with a list of nodes, as a graph does. A truncated graph may show nothing else.
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
