//! Which layout is it? Known from the symbol where there is one, else by the bytes. Total: any bytes get an answer.
//!
//! | symbol | layouts that are tried (BLOB-18) |
//! |---|---|
//! | `__tvm_ffi__library_bin`, `__tvm_ffi_library_bin` | none: 0.22, 0.21 |
//! | `__tvm_dev_mblob` | 0.7 and 0.2 |
//! | none | all four |
//!
//! A layout without violations goes before one with some, and of those one without findings; else the first words decide.

use super::{Blob, IMPORT_TREE, LIBRARY};
use crate::release::Layout;
use crate::rule::Findings;

/// The symbols under which a library binary was ever exported, newest first, without a system-library prefix.
pub(crate) const SYMBOLS: [(&str, Layout); 3] = [
    ("__tvm_ffi__library_bin", Layout::V0_22),
    ("__tvm_ffi_library_bin", Layout::V0_21),
    ("__tvm_dev_mblob", Layout::V0_7),
];

/// The symbol under which a blob of `layout` is exported.
pub const fn symbol(layout: Layout) -> &'static str {
    match layout {
        Layout::V0_22 => "__tvm_ffi__library_bin",
        Layout::V0_21 => "__tvm_ffi_library_bin",
        Layout::V0_2 | Layout::V0_7 => "__tvm_dev_mblob",
    }
}

/// The layout of `bytes`, header included (BLOB-18).
///
/// `symbol` is the name under which they were found, with or without a prefix and a leading underscore. The symbols
/// of 0.21 and 0.22 settle the matter. `__tvm_dev_mblob` leaves 0.2 and 0.7. Without a symbol the bytes decide: the layout
/// in which they break no rule.
pub fn detect(bytes: &[u8], symbol: Option<&str>) -> Layout {
    let named = symbol.and_then(|symbol| SYMBOLS.iter().find(|(name, _)| symbol.ends_with(name)));
    match named {
        // BLOB-50: one symbol for 0.2 and 0.7. The later two differ from each other by one underscore.
        Some((_, Layout::V0_7)) => old(bytes),
        Some((_, layout)) => *layout,
        None => unnamed(bytes),
    }
}

/// A blob whose first module is the host library, or whose count is 0, is of 0.7 and needs no further look.
fn old(bytes: &[u8]) -> Layout {
    // BLOB-18: what the keys say, in case that both layouts or neither read.
    let first = old_layout(bytes);
    let library = LIBRARY.as_bytes();
    // BLOB-14: 0.2 has no `_lib`. Behind header, count and the length of the key.
    let starts = bytes.get(24..).is_some_and(|key| key.starts_with(library));
    if starts || matches!(word(bytes, 8), None | Some(0)) {
        return first;
    }
    best(bytes, first, &[Layout::V0_7, Layout::V0_2])
}

/// Without a symbol: the layout of the first words first, then the others, the newest before the older.
fn unnamed(bytes: &[u8]) -> Layout {
    // Behind `nbytes`: the count of `indptr` and its first value, which is 0, or the count of entries and the length
    // of the first key, which is not.
    let first = match (word(bytes, 8), word(bytes, 16)) {
        // BLOB-18: a count of 0 with nothing behind it is a lone host library of 0.7.
        (Some(0), None) => Layout::V0_7,
        (_, Some(0)) => Layout::V0_22,
        _ => old_layout(bytes),
    };
    // BLOB-18: 0.7 before 0.21: without device functions (PAY-03) a blob reads the same in both.
    let rest = [Layout::V0_22, Layout::V0_7, Layout::V0_21, Layout::V0_2];
    best(bytes, first, &rest)
}

/// The layout in which the bytes break the least, `first` or else the earliest of `rest`.
fn best(bytes: &[u8], first: Layout, rest: &[Layout]) -> Layout {
    let mut best = (Fit::Broken, first);
    for layout in std::iter::once(&first).chain(rest) {
        let fit = Fit::of(bytes, *layout);
        // BLOB-18: one without findings ends the search: reading four times costs four times as much.
        if fit == Fit::Clean {
            return *layout;
        }
        // BLOB-18: of layouts that fit equally well the one before stays.
        if fit < best.0 {
            best = (fit, *layout);
        }
    }
    best.1
}

/// How well the bytes fit a layout, the best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    Clean,
    Odd,
    Broken,
}

impl Fit {
    /// Reads `bytes` as `layout`, whole: a blob that begins well may end badly.
    fn of(bytes: &[u8], layout: Layout) -> Fit {
        let mut findings = Findings::default();
        match Blob::read(bytes, layout, &mut findings) {
            Err(_) => Fit::Broken,
            Ok(_) if findings.is_empty() => Fit::Clean,
            Ok(_) => Fit::Odd,
        }
    }
}

/// 0.2 has neither `_lib` nor `_import_tree`; every 0.7 blob with entries has the tree.
fn old_layout(bytes: &[u8]) -> Layout {
    if matches!(word(bytes, 8), None | Some(0))
        || contains_key(bytes, IMPORT_TREE)
        || contains_key(bytes, LIBRARY)
    {
        return Layout::V0_7;
    }
    Layout::V0_2
}

/// Whether `key` is anywhere with its length in front of it.
fn contains_key(bytes: &[u8], key: &str) -> bool {
    let mut framed = (key.len() as u64).to_le_bytes().to_vec();
    // With its length, because a kernel may have the same letters in its source.
    framed.extend_from_slice(key.as_bytes());
    bytes.windows(framed.len()).any(|window| window == framed)
}

/// The little-endian u64 at byte `at`, if it is there.
pub(super) fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..)?.get(..8)?;
    word.try_into().ok().map(u64::from_le_bytes)
}
