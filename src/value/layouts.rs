//! The structs of the C ABI lie as the newest release lays them. Their members are private, so this test is inside.

fn newest_layout() -> serde_json::Value {
    let text = include_str!("../../golden/value/struct-layouts.json");
    let table: serde_json::Value = serde_json::from_str(text).unwrap();
    table["layouts"].as_array().unwrap().last().unwrap().clone()
}

/// Compares the structs of this crate, member by member, with the newest layout of the table.
macro_rules! laid_out {
    ($structs:ident: $($ours:ty as $theirs:literal { $($member:ident $(as $name:literal)?),+ })+) => {$(
        let theirs = &$structs[$theirs];
        assert_eq!(theirs["size"], size_of::<$ours>(), $theirs);
        let ours: Vec<(&str, usize)> =
            vec![$((laid_out!(@name $member $($name)?), std::mem::offset_of!($ours, $member))),+];
        let fields = theirs["fields"].as_object().unwrap();
        assert_eq!(ours.len(), fields.len(), $theirs);
        for (name, offset) in ours {
            assert_eq!(fields[name][0], offset, "{} {name}", $theirs);
        }
    )+};
    (@name $member:ident $name:literal) => { $name };
    (@name $member:ident) => { stringify!($member) };
}

#[test]
fn structs_lie_as_the_newest_release_lays_them() {
    use super::types::{FieldInfo, MethodInfo, TypeInfo, TypeMetadata};
    use super::{ByteArray, DLManagedTensor, DLManagedTensorVersioned, DLTensor, Header};
    let newest = &newest_layout()["structs"];
    laid_out! { newest:
        Header as "TVMFFIObject" { combined as "combined_ref_count", type_index, padding, deleter }
        ByteArray as "TVMFFIByteArray" { data, size }
        FieldInfo as "TVMFFIFieldInfo" {
            name, doc, metadata, flags, size, alignment, offset, getter, setter,
            default as "default_value_or_factory", static_type_index as "field_static_type_index"
        }
        MethodInfo as "TVMFFIMethodInfo" { name, doc, metadata, flags, method }
        TypeMetadata as "TVMFFITypeMetadata" {
            doc, creator, total_size, structural_kind as "structural_eq_hash_kind"
        }
        TypeInfo as "TVMFFITypeInfo" {
            type_index, type_depth, type_key, ancestors as "type_ancestors", key_hash as "type_key_hash",
            num_fields, num_methods, fields, methods, metadata
        }
        DLTensor as "TVMFFIDLTensor" { data, device, ndim, dtype, shape, strides, byte_offset }
        DLManagedTensor as "TVMFFIDLManagedTensor" { dl_tensor, manager_ctx, deleter }
        DLManagedTensorVersioned as "TVMFFIDLManagedTensorVersioned" {
            version, manager_ctx, deleter, flags, dl_tensor
        }
    }
}
