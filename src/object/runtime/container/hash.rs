//! Hash and equality of values, as containers use them. Both are part of the ABI: inlined C++ probes the same tables.
//!
//! They are not those by contents (OBJ-14): an array is the same key as itself alone, unless its type has hooks (OBJ-38). Equal keys
//! have equal hashes.

use crate::function::Result;
pub(crate) use crate::object::format::key_hash::combine;
pub use crate::object::format::key_hash::hash_bytes;
use crate::object::reflect::column::{ANY_EQUAL, ANY_HASH};
use crate::object::reflect::native;
use crate::value::{AnyView, bytes_bytes, index, str_bytes};

/// Hash of a value (OBJ-01). Fails only when a type's own hash does.
///
/// # Errors
///
/// What the hash of an object's own type raises.
#[inline]
pub fn any_hash(value: AnyView<'_>) -> Result<u64> {
    let raw = value.as_raw();
    // None, numbers, pointers, data types and devices: tags below that of a C string have their payload in the word.
    if raw.type_index < index::RAW_STR {
        return Ok(combine(raw.type_index as u64, raw.bits()));
    }
    hash_of_more(value)
}

/// [`any_hash`] of what is more than its word: text and bytes by their content, objects by their hook or their address.
fn hash_of_more(value: AnyView<'_>) -> Result<u64> {
    let raw = value.as_raw();
    match raw.type_index {
        index::SMALL_STR | index::STR | index::RAW_STR => {
            // OBJ-01: one tag for all forms, so that a short string finds the key that another library put on the heap.
            let bytes = str_bytes(&value).unwrap_or_default();
            Ok(combine(index::STR as u64, hash_bytes(bytes)))
        }
        index::SMALL_BYTES | index::BYTES | index::BYTE_ARRAY => {
            let bytes = bytes_bytes(&value).unwrap_or_default();
            Ok(combine(index::BYTES as u64, hash_bytes(bytes)))
        }
        own if own >= index::OBJECT_BEGIN => match ANY_HASH.value(own) {
            // OBJ-01: the result of the hook takes the place of the payload alone; the tag stays in the hash.
            Some(hook) => Ok(combine(own as u64, native::hash(hook, value)?)),
            None => Ok(combine(own as u64, raw.bits())),
        },
        own => Ok(combine(own as u64, raw.bits())),
    }
}

/// Equality of values (OBJ-02): the same words, the same string, or what the type's own hook says. An int is never
/// equal to a float or a bool.
#[inline]
pub(crate) fn any_equal(left: AnyView<'_>, right: AnyView<'_>) -> Result<bool> {
    let (a, b) = (left.as_raw(), right.as_raw());
    // The same object equals itself without its hook being called. `aux` holds the length of a short string.
    if a.type_index == b.type_index && a.bits() == b.bits() && a.aux == b.aux {
        return Ok(true);
    }
    // OBJ-02: other words are other keys: 0.0 and -0.0 too, while a NaN has the same words as itself.
    if a.type_index < index::RAW_STR && b.type_index < index::RAW_STR {
        return Ok(false);
    }
    equal_in_more(left, right)
}

/// [`any_equal`] of what is more than its word.
fn equal_in_more(left: AnyView<'_>, right: AnyView<'_>) -> Result<bool> {
    let (a, b) = (left.as_raw(), right.as_raw());
    if let (Some(a), Some(b)) = (str_bytes(&left), str_bytes(&right)) {
        return Ok(a == b);
    }
    if let (Some(a), Some(b)) = (bytes_bytes(&left), bytes_bytes(&right)) {
        return Ok(a == b);
    }
    // OBJ-02: a hook is called for a common type only, so the two sides never have hooks that disagree.
    if a.type_index != b.type_index || a.type_index < index::OBJECT_BEGIN {
        return Ok(false);
    }
    match ANY_EQUAL.value(a.type_index) {
        Some(hook) => native::equal(hook, left, right),
        None => Ok(false),
    }
}
