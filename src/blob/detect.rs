//! Which layout is it? Told by the symbol where there is one, else by the bytes. Total: any bytes get an answer.

use super::{BLOB_18, Blob, IMPORT_TREE, LIBRARY};
use crate::release::Layout;
use crate::rule::{Findings, Strictness};

/// The symbols under which a library binary was ever exported, newest first, without a system-library prefix.
pub const SYMBOLS: [(&str, Layout); 3] = [
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
/// of 0.21 and 0.22 settle the matter. `__tvm_dev_mblob` leaves 0.2 and 0.7, which differ in whether an entry is
/// `_lib` or `_import_tree`. Without a symbol the bytes decide.
pub fn detect(bytes: &[u8], symbol: Option<&str>) -> Layout {
    // With its rule switched off the symbol says nothing.
    let symbol = symbol.filter(|_| !BLOB_18.is_off());
    let named = symbol.and_then(|symbol| SYMBOLS.iter().find(|(name, _)| symbol.ends_with(name)));
    match named {
        Some((_, Layout::V0_7)) => old_layout(bytes),
        Some((_, layout)) => *layout,
        None => unnamed(bytes),
    }
}

fn unnamed(bytes: &[u8]) -> Layout {
    // Behind `nbytes`: the count of `indptr` and its first value, which is 0, or the count of entries and the length
    // of the first key, which is not.
    match (word(bytes, 8), word(bytes, 16)) {
        (Some(0), None) => Layout::V0_7,
        (_, Some(0)) => Layout::V0_22,
        _ if old_layout(bytes) == Layout::V0_2 => Layout::V0_2,
        _ => by_function_information(bytes),
    }
}

/// 0.7 and 0.21 have the same container; only the function information inside payloads differs. The layout under
/// which the bytes keep every rule is theirs, and where both do, the older one.
fn by_function_information(bytes: &[u8]) -> Layout {
    let reads = |layout| Blob::read(bytes, layout, &mut Findings::new(Strictness::Strict)).is_ok();
    if !reads(Layout::V0_7) && reads(Layout::V0_21) {
        Layout::V0_21
    } else {
        Layout::V0_7
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

/// Whether `key` stands anywhere with its length in front of it.
fn contains_key(bytes: &[u8], key: &str) -> bool {
    let mut framed = (key.len() as u64).to_le_bytes().to_vec();
    framed.extend_from_slice(key.as_bytes());
    bytes.windows(framed.len()).any(|window| window == framed)
}

/// The little-endian u64 at byte `at`, if it is there.
pub(super) fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..)?.get(..8)?;
    word.try_into().ok().map(u64::from_le_bytes)
}
