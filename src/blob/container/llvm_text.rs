//! LLVM IR text of host code: the names that it defines and calls, found line by line without a parser.

use super::allowance::Allowance;
use super::symbols::{self, Raw};
use super::{ContainerPart, FileForm};

/// Returns the symbols of host code in LLVM's text form; an empty list if there are more names than BLOB-68 allows.
pub(crate) fn llvm_text(text: &[u8]) -> ContainerPart<'_> {
    let symbols = symbols::classify(
        text.split(|byte| *byte == b'\n').filter_map(named),
        &mut Allowance::for_file_length(text.len()),
    );
    ContainerPart {
        member: String::new(),
        form: FileForm::Unknown,
        machine: None,
        blobs: Vec::new(),
        symbols: symbols.unwrap_or_default(),
        convention: None,
        headers: Vec::new(),
    }
}

/// Returns the global name in a line: a function that the line defines or declares, or a variable.
fn named(line: &[u8]) -> Option<Raw<'_>> {
    let line = std::str::from_utf8(line).ok()?;
    let (before, behind) = line.split_once('@')?;
    let end =
        behind.find(|letter: char| !letter.is_ascii_alphanumeric() && !"_.$-".contains(letter));
    let (name, rest) = behind.split_at_checked(end?)?;
    // Instructions are indented, and a variable has its linkage after its name.
    let (linkage, defined, text) = match before.split(' ').next() {
        Some("define") => (before, true, true),
        Some("declare") => (before, false, true),
        _ if before.is_empty() => (rest, !rest.contains(" external "), false),
        _ => return None,
    };
    let mut words = linkage.split(' ').take(6);
    let is_local = words.any(|word| matches!(word, "internal" | "private"));
    (!is_local).then_some(Raw {
        name,
        address: 0,
        size: 0,
        defined,
        text,
    })
}
