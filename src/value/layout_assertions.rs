//! Assertions on the layouts of the structs of the C ABI, from `golden/value/struct-layouts.json` for the newest release.
//!
//! The members are private, so no test program can check them. A struct with another layout does not compile.

use super::types::{FieldInfo, MethodInfo, TypeInfo, TypeMetadata};
use super::{ByteArray, DLManagedTensor, DLManagedTensorVersioned, DLTensor, Header};
use std::mem::offset_of;

/// Asserts the size of each struct and the offsets of its members.
macro_rules! layouts {
    ($($name:ident: $size:literal { $($member:ident: $offset:literal),+ })+) => {
        const _: () = {
            $(
                assert!(size_of::<$name>() == $size);
                $(assert!(offset_of!($name, $member) == $offset);)+
            )+
        };
    };
}

layouts! {
    Header: 24 { combined: 0, type_index: 8, padding: 12, deleter: 16 }
    ByteArray: 16 { data: 0, size: 8 }
    FieldInfo: 120 {
        name: 0, doc: 16, metadata: 32, flags: 48, size: 56, alignment: 64,
        offset: 72, getter: 80, setter: 88, default: 96, static_type_index: 112
    }
    MethodInfo: 72 { name: 0, doc: 16, metadata: 32, flags: 48, method: 56 }
    TypeMetadata: 32 { doc: 0, creator: 16, total_size: 24, structural_kind: 28 }
    TypeInfo: 72 {
        type_index: 0, type_depth: 4, type_key: 8, ancestors: 24, key_hash: 32, num_fields: 40,
        num_methods: 44, fields: 48, methods: 56, metadata: 64
    }
    DLTensor: 48 { data: 0, device: 8, ndim: 16, dtype: 20, shape: 24, strides: 32, byte_offset: 40 }
    DLManagedTensor: 64 { dl_tensor: 0, manager_ctx: 48, deleter: 56 }
    DLManagedTensorVersioned: 80 { version: 0, manager_ctx: 8, deleter: 16, flags: 24, dl_tensor: 32 }
}
