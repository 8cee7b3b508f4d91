//! The type table: keys, indices, inheritance, and the reflection data of each type.
//!
//! Entries have the layout of the C ABI and live forever, so readers take no lock. Writers take one.
//!
//! | file | content | rules |
//! |---|---|---|
//! | `table` | types by index and by key | VAL-14 |
//! | `allocate` | new types and their indices | VAL-14, VAL-15 |
//! | `rust_type` | indices of Rust types, which casts rely on | VAL-16 |
//! | `layout_owner` | types whose objects have the memory of a Rust type | VAL-16 |
//! | `info` | the structs that describe a type in the C ABI | VAL-15 |
//! | `reflection` | registration of fields, methods, metadata and attributes | VAL-15 |
//! | `column` | one attribute of all types | VAL-15 |

mod allocate;
mod column;
mod info;
mod layout_owner;
mod reflection;
mod rust_type;
mod table;

pub use allocate::register;
pub(crate) use allocate::{NewType, get_or_alloc};
pub use column::Column;
pub(crate) use info::Getter;
pub use info::{FieldInfo, MethodInfo, TypeInfo, TypeMetadata, flag};
pub(crate) use layout_owner::lay_out_elsewhere;
pub use reflection::{column, set_attr};
pub(crate) use reflection::{push_field, push_method, set_any_attr, set_metadata};
pub use rust_type::{DynamicType, ObjectIndex};
pub(crate) use table::leak_bytes;

use table::{fill, published, writer};

/// Returns the entry of `type_index`.
#[inline]
pub fn info(type_index: i32) -> Option<&'static TypeInfo> {
    fill();
    published(type_index).map(|entry| &entry.info)
}

/// Returns the key of `type_index`, or `(unregistered type)`.
pub fn key_of(type_index: i32) -> &'static str {
    // Not an error: messages show the type of a value, and a cell from C may have any index.
    info(type_index).map_or("(unregistered type)", TypeInfo::key)
}

/// Returns the index of `key`.
pub fn index_of(key: &str) -> Option<i32> {
    index_of_bytes(key.as_bytes())
}

fn index_of_bytes(key: &[u8]) -> Option<i32> {
    let writer = writer();
    writer.index_of(key).ok().map(|at| writer.keys[at].1)
}

/// Returns all keys, in ascending order of their indices.
pub fn keys() -> Vec<&'static str> {
    let mut indices: Vec<i32> = writer().keys.iter().map(|(_, at)| *at).collect();
    indices.sort_unstable();
    indices.into_iter().map(key_of).collect()
}

/// Returns whether an object of type `type_index` is also an instance of type `ancestor` (VAL-16).
#[inline]
pub fn is_instance(type_index: i32, ancestor: i32) -> bool {
    type_index == ancestor || is_derived(type_index, ancestor)
}

fn is_derived(type_index: i32, ancestor: i32) -> bool {
    let (Some(own), Some(target)) = (info(type_index), info(ancestor)) else {
        return false;
    };
    // VAL-16: decided by depth. The order of indices means nothing outside the slots of the ancestor.
    own.ancestors()
        .get(target.type_depth as usize)
        .is_some_and(|found| found.type_index == ancestor)
}

/// Hashes a type key: MurmurHash64A with the seed of libstdc++, on which structural hashes depend.
pub fn key_hash(key: &[u8]) -> u64 {
    const MUL: u64 = 0xc6a4_a793_5bd1_e995;
    const SEED: u64 = 0xc70f_6907;
    let shift_mix = |word: u64| word ^ (word >> 47);
    let mut hash = SEED ^ (key.len() as u64).wrapping_mul(MUL);
    let mut words = key.chunks_exact(8);
    for word in words.by_ref() {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(word);
        let data = shift_mix(u64::from_le_bytes(bytes).wrapping_mul(MUL)).wrapping_mul(MUL);
        hash = (hash ^ data).wrapping_mul(MUL);
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        let mut bytes = [0; 8];
        bytes[..rest.len()].copy_from_slice(rest);
        // The rest is not mixed like whole words. libstdc++ omits that step, and structural hashes must match C++.
        hash = (hash ^ u64::from_le_bytes(bytes)).wrapping_mul(MUL);
    }
    shift_mix(shift_mix(hash).wrapping_mul(MUL))
}
