//! Structural equality and hash by name, and the key type that uses them.

use super::def;
use super::path::dynamic_object;
use crate::function::{Error, Function, Result};
use crate::object::column;
use crate::object::record::Describe;
use crate::object::structural;
use crate::value::header::{Header, Object, Ref};
use crate::value::heap::delete_plain;
use crate::value::{Any, AnyView, RawAny, cast, index};
use std::ffi::c_void;
use std::mem::offset_of;

/// A value with its structural hash, for use as a map key.
#[repr(C)]
struct Key {
    header: Header,
    key: Any,
    hash: i64,
}

const _: () = assert!(size_of::<Key>() == 48);

dynamic_object!(Key, "ffi.StructuralKey");

fn blank() -> Header {
    Header::new(index::OBJECT, delete_plain)
}

impl Default for Key {
    fn default() -> Key {
        Key {
            header: blank(),
            key: Any::none(),
            hash: 0,
        }
    }
}

impl Clone for Key {
    fn clone(&self) -> Key {
        Key {
            header: blank(),
            key: self.key.clone(),
            hash: self.hash,
        }
    }
}

fn key_of(value: Any) -> Result<Ref<Key>> {
    let hash = structural::hash(value.view(), false, false)? as i64;
    Ok(Ref::new(Key {
        header: blank(),
        key: value,
        hash,
    }))
}

fn same_key(left: AnyView<'_>, right: AnyView<'_>) -> Result<bool> {
    let (left, right) = (cast::<Ref<Key>>(left)?, cast::<Ref<Key>>(right)?);
    Ok(left.as_ptr() == right.as_ptr()
        || (left.hash == right.hash
            && structural::equal(left.key.view(), right.key.view(), false, false)?))
}

unsafe extern "C-unwind" fn hash_hook(value: *const RawAny) -> RawAny {
    // SAFETY: the caller passes the address of a cell.
    let value = unsafe { AnyView::from_raw(*value) };
    match cast::<Ref<Key>>(value) {
        Ok(key) => Any::from(key.hash).into_raw(),
        Err(broken) => Any::from(Error::from(broken)).into_raw(),
    }
}

unsafe extern "C-unwind" fn equal_hook(left: *const RawAny, right: *const RawAny) -> RawAny {
    // SAFETY: the caller passes addresses of cells.
    let (left, right) = unsafe { (AnyView::from_raw(*left), AnyView::from_raw(*right)) };
    match same_key(left, right) {
        Ok(same) => Any::from(same).into_raw(),
        Err(error) => Any::from(error).into_raw(),
    }
}

pub(super) fn register() {
    def(
        "ffi.StructuralEqual",
        |left: Any, right: Any, map_free_vars: bool, skip: bool| {
            structural::equal(left.view(), right.view(), map_free_vars, skip)
        },
    );
    def(
        "ffi.GetFirstStructuralMismatch",
        |left: Any, right: Any, map_free_vars: bool, skip: bool| {
            structural::first_mismatch(left.view(), right.view(), map_free_vars, skip)
                .map(structural::mismatch_value)
        },
    );
    def(
        "ffi.StructuralHash",
        |value: Any, map_free_vars: bool, skip: bool| {
            structural::hash(value.view(), map_free_vars, skip).map(|hash| hash as i64)
        },
    );
    def("ffi.StructuralKey", key_of);
    def("ffi.StructuralKeyEqual", |left: Any, right: Any| {
        same_key(left.view(), right.view())
    });
    Describe::whole::<Key>(0)
        .field::<Any>(
            "key",
            "",
            offset_of!(Key, key),
            index::ANY,
            0,
            "{\"type\":\"Any\"}",
        )
        .field::<i64>(
            "hash_i64",
            "",
            offset_of!(Key, hash),
            index::INT,
            0,
            "{\"type\":\"int\"}",
        )
        .method(
            "__ffi_init__",
            "Constructor that takes any key and computes its structural hash",
            true,
            key_of,
        )
        .attr(&column::INIT, Function::named(None, key_of).into())
        .attr(&column::ANY_HASH, Any::from(hash_hook as *mut c_void))
        .attr(&column::ANY_EQUAL, Any::from(equal_hook as *mut c_void));
}
