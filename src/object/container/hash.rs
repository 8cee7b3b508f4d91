//! Hash and equality of values, as containers use them. Both are part of the ABI: inlined C++ probes the same tables.

use crate::function::Result;
use crate::object::reflect::column::{ANY_EQUAL, ANY_HASH};
use crate::object::reflect::native;
use crate::value::{AnyView, bytes_bytes, index, str_bytes};

/// Mixes `value` into `key`.
#[inline]
pub(crate) const fn combine(key: u64, value: u64) -> u64 {
    key ^ (value
        .wrapping_add(0x9e37_79b9)
        .wrapping_add(key << 6)
        .wrapping_add(key >> 2))
}

/// Hash of bytes: a polynomial over little-endian words, the last one filled up with zeros (OBJ-01).
#[inline]
pub fn hash_bytes(bytes: &[u8]) -> u64 {
    const BASE: u64 = 1_099_511_628_211;
    const MODULUS: u64 = 2_147_483_647;
    let mut hash = 0u64;
    let mut words = bytes.chunks_exact(8);
    for word in words.by_ref() {
        let mut eight = [0; 8];
        eight.copy_from_slice(word);
        hash = hash
            .wrapping_mul(BASE)
            .wrapping_add(u64::from_le_bytes(eight))
            % MODULUS;
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        let word = match bytes.last_chunk::<8>() {
            // The bytes before the rest go.
            Some(last) => u64::from_le_bytes(*last) >> (64 - 8 * rest.len()),
            None => rest
                .iter()
                .rev()
                .fold(0, |word, byte| word << 8 | u64::from(*byte)),
        };
        hash = hash.wrapping_mul(BASE).wrapping_add(word) % MODULUS;
    }
    hash
}

/// Hash of a value (OBJ-01). Fails only when a type's own hash does.
///
/// # Errors
///
/// What the hash of an object's own type raises.
#[inline]
pub fn any_hash(value: AnyView<'_>) -> Result<u64> {
    let raw = value.as_raw();
    if raw.type_index < index::RAW_STR {
        return Ok(combine(raw.type_index as u64, raw.bits()));
    }
    hash_of_more(value)
}

/// [`any_hash`] of what is more than its word.
fn hash_of_more(value: AnyView<'_>) -> Result<u64> {
    let raw = value.as_raw();
    match raw.type_index {
        index::SMALL_STR | index::STR | index::RAW_STR => {
            let bytes = str_bytes(&value).unwrap_or_default();
            Ok(combine(index::STR as u64, hash_bytes(bytes)))
        }
        index::SMALL_BYTES | index::BYTES | index::BYTE_ARRAY => {
            let bytes = bytes_bytes(&value).unwrap_or_default();
            Ok(combine(index::BYTES as u64, hash_bytes(bytes)))
        }
        own if own >= index::OBJECT_BEGIN => match ANY_HASH.value(own) {
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
    if a.type_index == b.type_index && a.bits() == b.bits() && a.aux == b.aux {
        return Ok(true);
    }
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
    if a.type_index != b.type_index || a.type_index < index::OBJECT_BEGIN {
        return Ok(false);
    }
    match ANY_EQUAL.value(a.type_index) {
        Some(hook) => native::equal(hook, left, right),
        None => Ok(false),
    }
}
