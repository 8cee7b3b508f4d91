//! LLVM's text of host code: the names that it defines and calls, a line at a time. Not a parser of it.

use super::allowance::Allowance;
use super::symbols::{self, Raw};
use super::{FileForm, Part};

/// The symbols of host code that is LLVM's text; none where the names are more than a file may have (BLOB-68).
pub(crate) fn llvm_text(text: &[u8]) -> Part<'_> {
    let symbols = symbols::classify(
        text.split(|byte| *byte == b'\n').filter_map(named),
        &mut Allowance::of(text.len()),
    );
    Part {
        member: String::new(),
        form: FileForm::Unknown,
        machine: None,
        blobs: Vec::new(),
        symbols: symbols.unwrap_or_default(),
        convention: None,
        headers: Vec::new(),
    }
}

/// What a line names for other files: a function that it defines or declares, a variable.
fn named(line: &[u8]) -> Option<Raw<'_>> {
    let line = std::str::from_utf8(line).ok()?;
    let (before, behind) = line.split_once('@')?;
    let end =
        behind.find(|letter: char| !letter.is_ascii_alphanumeric() && !"_.$-".contains(letter));
    let (name, rest) = behind.split_at_checked(end?)?;
    // Instructions are indented, and a variable has its linkage behind its name.
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
