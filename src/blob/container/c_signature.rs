//! The definitions in the C code of a host, and the calling convention that their parameters show.
//!
//! | parameters | releases |
//! |---|---|
//! | arguments, type codes, count | 0.2 to 0.6 |
//! | these, value and type code of the result, resource handle | 0.7 to 0.20 |
//! | handle of the function, arguments, count, result | 0.21 and later |

use super::c_text::identifier;
use super::form::find;
use super::linkage::is_interface;
use crate::release::Releases;

/// A context or a function that a C text defines.
#[derive(Clone, Copy)]
pub(super) struct TextDefinition<'t> {
    pub(super) name: &'t str,
    /// `None` for a variable.
    pub(super) parameters: Option<&'t [u8]>,
}

/// Longest list of parameters in bytes.
const LONGEST: usize = 4096;

/// Finds the context and the functions in the C code of a host, as its code generator writes them (BLOB-64). Other C is not parsed.
pub(super) fn definitions(text: &[u8]) -> impl Iterator<Item = TextDefinition<'_>> + Clone {
    let marks: [(&[u8], bool); 3] = [
        (b"TVM_DLL int32_t ", true),
        (b"TVM_DLL int ", true),
        (b"void* ", false),
    ];
    let mut rest = text;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let end = rest.iter().position(|byte| *byte == b'\n');
            let line = rest;
            rest = end
                .and_then(|end| rest.get(end.saturating_add(1)..))
                .unwrap_or_default();
            let line = line.strip_prefix(b"extern \"C\" ").unwrap_or(line);
            let marked = marks
                .iter()
                .find_map(|(mark, is_function)| Some((line.strip_prefix(*mark)?, *is_function)));
            if let Some(found) = marked.and_then(|(line, function)| definition(line, function)) {
                return Some(found);
            }
        }
        None
    })
}

/// Parses a definition whose type has been read and whose name comes next; returns `None` for a declaration.
fn definition(text: &[u8], is_function: bool) -> Option<TextDefinition<'_>> {
    let (name, rest) = identifier(text)?;
    let rest = rest.trim_ascii_start();
    if !is_function {
        let parameters = None;
        return rest
            .starts_with(b"=")
            .then_some(TextDefinition { name, parameters });
    }
    let rest = rest.strip_prefix(b"(")?;
    // No parameter of a packed function contains parentheses.
    let near = rest.get(..LONGEST).unwrap_or(rest);
    let end = near.iter().position(|byte| *byte == b')')?;
    let (parameters, body) = rest.split_at_checked(end)?;
    let body = body.strip_prefix(b")")?.trim_ascii_start();
    body.starts_with(b"{").then_some(TextDefinition {
        name,
        parameters: Some(parameters),
    })
}

/// Returns the releases that call a function with these parameters; `None` if it is not a packed function.
pub(super) fn convention(parameters: &[u8]) -> Option<Releases> {
    let mut shape = String::new();
    for parameter in parameters.split(|byte| *byte == b',') {
        let pointer = parameter.contains(&b'*');
        let parameter = parameter.trim_ascii();
        let integer = parameter.starts_with(b"int ") || parameter.starts_with(b"int32_t ");
        shape.push(match (pointer, integer) {
            (true, _) if is_packed_pointer(parameter) => 'p',
            (false, true) => 'n',
            _ => return None,
        });
    }
    // The order of pointers and counts is the same in all code generators; names are made unique and differ.
    match shape.as_str() {
        "ppn" => Some(Releases::between(2, 6)),
        "ppnpp" | "ppnppp" => Some(Releases::between(7, 20)),
        "ppnp" => Some(Releases::from(21)),
        _ => None,
    }
}

/// Returns whether the type of a pointer is one that packed functions use: `void`, `TVMValue`, `TVMFFIAny`, or an integer.
fn is_packed_pointer(parameter: &[u8]) -> bool {
    let parameter = parameter.strip_prefix(b"const ").unwrap_or(parameter);
    let end = parameter.iter().position(|byte| *byte == b'*');
    let kind = end
        .and_then(|end| parameter.get(..end))
        .map(<[u8]>::trim_ascii);
    let kinds: [&[u8]; 5] = [b"void", b"int", b"int32_t", b"TVMValue", b"TVMFFIAny"];
    kind.is_some_and(|kind| kinds.contains(&kind))
}

/// The headers of TVM that some releases lack, and the releases that have them.
const HEADERS: [(&str, Releases); 6] = [
    ("tvm/ffi/c_api.h", Releases::from(21)),
    ("tvm/ffi/extra/c_env_api.h", Releases::from(22)),
    ("tvm/runtime/base.h", Releases::from(21)),
    ("tvm/runtime/c_runtime_api.h", Releases::between(2, 20)),
    ("tvm/runtime/crt/module.h", Releases::between(7, 18)),
    ("tvm/runtime/metadata_types.h", Releases::between(9, 19)),
];

/// Returns the headers of [`HEADERS`] that a C text includes at the beginning of a line, as a code generator does.
pub(super) fn headers(text: &[u8]) -> Vec<(&'static str, Releases)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = find(rest, b"#include") {
        let (before, line) = rest.split_at_checked(at).unwrap_or_default();
        rest = line.get(b"#include".len()..).unwrap_or_default();
        let name = rest.trim_ascii_start().get(1..).unwrap_or_default();
        let of_name = |(header, _): &&(&str, Releases)| {
            let behind = name.strip_prefix(header.as_bytes());
            behind.is_some_and(|behind| behind.starts_with(b"\"") || behind.starts_with(b">"))
        };
        let is_line = before.last().is_none_or(|byte| *byte == b'\n');
        let known = HEADERS.iter().find(of_name).filter(|_| is_line);
        found.extend(known.filter(|header| !found.contains(*header)));
    }
    found
}

/// Finds the functions of a runtime that a C text calls: names before a parenthesis. A function occurs once for each call.
pub(super) fn calls(text: &[u8]) -> impl Iterator<Item = &str> + Clone {
    const FIRST: &[u8] = b"TVM";
    let mut at = 0_usize;
    std::iter::from_fn(move || {
        loop {
            let rest = text.get(at..)?;
            let start = at.saturating_add(find(rest, FIRST)?);
            at = start.saturating_add(FIRST.len());
            let before = start.checked_sub(1).and_then(|before| text.get(before));
            if before.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') {
                continue;
            }
            let Some((name, behind)) = text.get(start..).and_then(identifier) else {
                continue;
            };
            if is_interface(name) && behind.trim_ascii_start().starts_with(b"(") {
                return Some(name);
            }
        }
    })
}
