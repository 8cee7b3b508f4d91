//! Hash and equality of values, as used by containers. Both are part of the ABI, because inlined C++ probes the same tables.
//!
//! They differ from structural hash and equality (OBJ-14): an array equals only itself, unless its type has hooks (OBJ-38). Equal keys have
//! equal hashes.

use crate::function::Result;
pub(crate) use crate::object::format::key_hash::combine;
pub use crate::object::format::key_hash::hash_bytes;
use crate::object::reflect::column::{ANY_EQUAL, ANY_HASH};
use crate::object::reflect::key_hooks;
use crate::value::{AnyView, bytes_bytes, index, str_bytes};

/// Hashes a value (OBJ-01). Fails only when the hash hook of a type fails.
///
/// # Errors
///
/// Returns the error that the hash hook of the object's type raises.
#[inline]
pub fn any_hash(value: AnyView<'_>) -> Result<u64> {
    let raw = value.as_raw();
    // None, numbers, pointers, data types and devices: their tags are below that of a C string, and the payload word is their whole
    // value.
    if raw.type_index < index::RAW_STR {
        return Ok(combine(raw.type_index as u64, raw.bits()));
    }
    hash_content(value)
}

/// Continues [`any_hash`] for values beyond the payload word: text and bytes by content, objects by hook or address.
fn hash_content(value: AnyView<'_>) -> Result<u64> {
    let raw = value.as_raw();
    match raw.type_index {
        index::SMALL_STR | index::STR | index::RAW_STR => {
            // OBJ-01: all string forms have one tag, so that a short string finds a key that another library stored on the heap.
            let bytes = str_bytes(&value).unwrap_or_default();
            Ok(combine(index::STR as u64, hash_bytes(bytes)))
        }
        index::SMALL_BYTES | index::BYTES | index::BYTE_ARRAY => {
            let bytes = bytes_bytes(&value).unwrap_or_default();
            Ok(combine(index::BYTES as u64, hash_bytes(bytes)))
        }
        own if own >= index::OBJECT_BEGIN => match ANY_HASH.value(own) {
            // OBJ-01: the result of the hook replaces only the payload; the tag stays part of the hash.
            Some(hook) => Ok(combine(own as u64, key_hooks::hash(hook, value)?)),
            None => Ok(combine(own as u64, raw.bits())),
        },
        own => Ok(combine(own as u64, raw.bits())),
    }
}

/// Returns whether two values are equal (OBJ-02): they have equal words or equal text, or the hook of the type returns true. An int
/// never equals a float or a bool.
#[inline]
pub(crate) fn any_equal(left: AnyView<'_>, right: AnyView<'_>) -> Result<bool> {
    let (a, b) = (left.as_raw(), right.as_raw());
    // An object equals itself without a call of its hook. `aux` holds the length of a short string.
    if a.type_index == b.type_index && a.bits() == b.bits() && a.aux == b.aux {
        return Ok(true);
    }
    // OBJ-02: different words are different keys, also 0.0 and -0.0. A NaN equals itself, because its words are equal.
    if a.type_index < index::RAW_STR && b.type_index < index::RAW_STR {
        return Ok(false);
    }
    equal_content(left, right)
}

/// Continues [`any_equal`] for values beyond the payload word.
fn equal_content(left: AnyView<'_>, right: AnyView<'_>) -> Result<bool> {
    let (a, b) = (left.as_raw(), right.as_raw());
    if let (Some(a), Some(b)) = (str_bytes(&left), str_bytes(&right)) {
        return Ok(a == b);
    }
    if let (Some(a), Some(b)) = (bytes_bytes(&left), bytes_bytes(&right)) {
        return Ok(a == b);
    }
    // OBJ-02: a hook is called only if both types are equal, so the two sides never have hooks that disagree.
    if a.type_index != b.type_index || a.type_index < index::OBJECT_BEGIN {
        return Ok(false);
    }
    match ANY_EQUAL.value(a.type_index) {
        Some(hook) => key_hooks::equal(hook, left, right),
        None => Ok(false),
    }
}
