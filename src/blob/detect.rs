//! Detection of the layout: by the symbol if there is one, otherwise by the bytes. Every input gets a result.
//!
//! | symbol | layouts that are tried (BLOB-18) |
//! |---|---|
//! | `__tvm_ffi__library_bin`, `__tvm_ffi_library_bin` | none: 0.22, 0.21 |
//! | `__tvm_dev_mblob` | 0.7 and 0.2 |
//! | none | all four |
//!
//! A layout without violations wins over one with violations. Among those without violations, one without findings wins. Otherwise the
//! first words decide.

use super::{Blob, IMPORT_TREE, LIBRARY};
use crate::release::Layout;

/// The symbols under which releases export a library binary, newest first, without a system-library prefix.
pub(crate) const SYMBOLS: [(&str, Layout); 3] = [
    ("__tvm_ffi__library_bin", Layout::V0_22),
    ("__tvm_ffi_library_bin", Layout::V0_21),
    ("__tvm_dev_mblob", Layout::V0_7),
];

/// Returns the symbol under which a blob of `layout` is exported.
pub const fn symbol(layout: Layout) -> &'static str {
    match layout {
        Layout::V0_22 => "__tvm_ffi__library_bin",
        Layout::V0_21 => "__tvm_ffi_library_bin",
        Layout::V0_2 | Layout::V0_7 => "__tvm_dev_mblob",
    }
}

/// Returns the layout of `bytes`, header included (BLOB-18).
///
/// `symbol` is the name under which the bytes were found, with or without a prefix and a leading underscore. The symbols of 0.21 and 0.22
/// each belong to one layout. `__tvm_dev_mblob` belongs to 0.2 and 0.7. Without a symbol, the result is the layout in which the bytes break
/// no rule.
pub fn detect(bytes: &[u8], symbol: Option<&str>) -> Layout {
    let named = symbol.and_then(|symbol| SYMBOLS.iter().find(|(name, _)| symbol.ends_with(name)));
    match named {
        // BLOB-50: 0.2 and 0.7 share one symbol. The symbols of 0.21 and 0.22 differ from each other by one underscore.
        Some((_, Layout::V0_7)) => choose_old_layout(bytes),
        Some((_, layout)) => *layout,
        None => choose_any_layout(bytes),
    }
}

/// Chooses between 0.2 and 0.7. Without a trial, chooses 0.7 if the first module is the host library or the count is 0.
fn choose_old_layout(bytes: &[u8]) -> Layout {
    // BLOB-18: the keys decide if both layouts can be read, or neither.
    let first = old_layout(bytes);
    let library = LIBRARY.as_bytes();
    // BLOB-14: 0.2 has no `_lib`. The first key starts at byte 24, after the header, the count and the length of the key.
    let starts = bytes.get(24..).is_some_and(|key| key.starts_with(library));
    if starts || matches!(word(bytes, 8), None | Some(0)) {
        return first;
    }
    choose_best_fit(bytes, first, &[Layout::V0_7, Layout::V0_2])
}

/// Chooses among all layouts: tries the one that the first words suggest, then the others.
fn choose_any_layout(bytes: &[u8]) -> Layout {
    // After `nbytes`, layout 0.22 has the length of `indptr` and its first value, which is 0. The other layouts have the count of entries
    // and the length of the first key, which is not 0.
    let first = match (word(bytes, 8), word(bytes, 16)) {
        // BLOB-18: a count of 0 at the end of the blob is a host library of 0.7 without imports.
        (Some(0), None) => Layout::V0_7,
        (_, Some(0)) => Layout::V0_22,
        _ => old_layout(bytes),
    };
    // BLOB-18: 0.7 comes before 0.21, because a blob without device functions (PAY-03) reads the same in both.
    let rest = [Layout::V0_22, Layout::V0_7, Layout::V0_21, Layout::V0_2];
    choose_best_fit(bytes, first, &rest)
}

/// Returns the layout that fits the bytes best. Among equals, `first` wins, then the earliest of `rest`.
fn choose_best_fit(bytes: &[u8], first: Layout, rest: &[Layout]) -> Layout {
    let mut best = (Fit::Broken, first);
    for layout in std::iter::once(&first).chain(rest) {
        let fit = Fit::of(bytes, *layout);
        // BLOB-18: a layout without findings ends the search, because each trial reads the whole blob.
        if fit == Fit::Clean {
            return *layout;
        }
        // BLOB-18: of layouts that fit equally well, the earlier one stays.
        if fit < best.0 {
            best = (fit, *layout);
        }
    }
    best.1
}

/// The result of reading bytes as a layout. The variants are ordered from best to worst.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    Clean,
    Odd,
    Broken,
}

impl Fit {
    /// Reads all of `bytes` as `layout`, because a blob may be broken near its end.
    fn of(bytes: &[u8], layout: Layout) -> Fit {
        match Blob::read(bytes, layout) {
            Err(_) => Fit::Broken,
            Ok(read) if read.findings.is_empty() => Fit::Clean,
            Ok(_) => Fit::Odd,
        }
    }
}

/// Chooses 0.2 or 0.7 by the keys: 0.2 has neither `_lib` nor `_import_tree`; every 0.7 blob with entries has the tree.
fn old_layout(bytes: &[u8]) -> Layout {
    if matches!(word(bytes, 8), None | Some(0))
        || contains_key(bytes, IMPORT_TREE)
        || contains_key(bytes, LIBRARY)
    {
        return Layout::V0_7;
    }
    Layout::V0_2
}

/// Returns whether `bytes` contain `key` after its length.
fn contains_key(bytes: &[u8], key: &str) -> bool {
    let mut framed = (key.len() as u64).to_le_bytes().to_vec();
    // The length is part of the pattern, because a kernel may contain the same letters in its source.
    framed.extend_from_slice(key.as_bytes());
    bytes.windows(framed.len()).any(|window| window == framed)
}

/// Returns the little-endian u64 at byte `at`, or `None` if the bytes end before it does.
pub(super) fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..)?.get(..8)?;
    word.try_into().ok().map(u64::from_le_bytes)
}
