//! The type table and reflection.

use super::enter;
use crate::function::Error;
use crate::value::types::{
    self, Column, FieldInfo, MethodInfo, NewType, TypeInfo, TypeMetadata, flag,
};
use crate::value::{AnyView, ByteArray, RawAny};

fn utf8(array: &ByteArray) -> crate::function::Result<&str> {
    // SAFETY: callers of this interface pass readable byte arrays.
    std::str::from_utf8(unsafe { array.as_slice() })
        .map_err(|_| Error::new("ValueError", "a key that is not UTF-8"))
}

/// The index of a key.
///
/// # Safety
/// `key` is readable, `out` writable.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFITypeKeyToIndex(key: *const ByteArray, out: *mut i32) -> i32 {
    enter(|| {
        super::init();
        // SAFETY: says the caller.
        let key = utf8(unsafe { &*key })?;
        let found = types::index_of(key)
            .ok_or_else(|| Error::new("InternalError", format!("Cannot find type `{key}`")))?;
        // SAFETY: says the caller.
        unsafe { out.write(found) }
        Ok(())
    })
}

/// The index of a type, given out if it is new; parent -2 only asks, and -2 is the answer when there is none. A type that
/// does not fit its parent is refused with -1 and the error raised on this thread (VAL-15).
///
/// # Safety
/// `key` is readable.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFITypeGetOrAllocIndex(
    key: *const ByteArray,
    static_index: i32,
    depth: i32,
    child_slots: i32,
    can_overflow: i32,
    parent: i32,
) -> i32 {
    let mut given = -1;
    // A code of -1 is the answer that was there before.
    enter(|| {
        super::init();
        // SAFETY: says the caller.
        let key = utf8(unsafe { &*key })?;
        given = match parent {
            -2 => types::index_of(key).unwrap_or(-2),
            _ => types::get_or_alloc(NewType {
                key,
                static_index,
                depth: Some(depth),
                child_slots,
                can_overflow: can_overflow != 0,
                parent,
            })?,
        };
        Ok(())
    });
    given
}

/// What is known of a type; valid for ever. Ends the process for an unknown index, as the ABI says.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn TVMFFIGetTypeInfo(type_index: i32) -> *const TypeInfo {
    unsafe extern "C" {
        safe fn exit(code: i32) -> !;
    }
    super::init();
    match types::info(type_index) {
        Some(info) => info,
        // Nobody looks whether this is null.
        None => {
            eprintln!("Cannot find type info for type_index={type_index}");
            exit(-1)
        }
    }
}

/// Keeps what a registered cell holds alive for ever.
unsafe fn retain(cell: RawAny) -> RawAny {
    // SAFETY: a valid view, says the caller.
    unsafe { AnyView::from_raw(cell) }.to_any().into_raw()
}

/// Adds a field.
///
/// # Safety
/// `info` is readable; its functions stay.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFITypeRegisterField(
    type_index: i32,
    info: *const FieldInfo,
) -> i32 {
    enter(|| {
        super::init();
        // SAFETY: says the caller.
        let mut field = unsafe { *info };
        if field.flags & flag::HAS_DEFAULT != 0 {
            // SAFETY: a valid view.
            field.default = unsafe { retain(field.default) };
        } else {
            field.default = RawAny::NONE;
        }
        if field.flags & flag::SETTER_IS_FUNCTION != 0 {
            // SAFETY: a function object, which is kept for ever.
            unsafe { crate::value::header::inc_ref(field.setter.cast()) }
        }
        // SAFETY: strings, getter, setter and field are what this contract says; default and setter are kept for ever.
        Ok(unsafe { types::push_field(type_index, field) }?)
    })
}

/// Adds a method.
///
/// # Safety
/// `info` is readable.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFITypeRegisterMethod(
    type_index: i32,
    info: *const MethodInfo,
) -> i32 {
    enter(|| {
        super::init();
        // SAFETY: says the caller.
        let mut method = unsafe { *info };
        // SAFETY: a valid view.
        method.method = unsafe { retain(method.method) };
        // SAFETY: the strings are readable, by this contract; the function is kept for ever.
        Ok(unsafe { types::push_method(type_index, method) }?)
    })
}

/// Sets what a type says of itself, once.
///
/// # Safety
/// `metadata` is readable.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFITypeRegisterMetadata(
    type_index: i32,
    metadata: *const TypeMetadata,
) -> i32 {
    enter(|| {
        super::init();
        // SAFETY: readable, by this contract.
        let metadata = unsafe { metadata.read() };
        // SAFETY: documentation, maker and size are what this contract says.
        unsafe { types::set_metadata(type_index, metadata) }
            .map_err(|broken| Error::new("RuntimeError", broken.message()))
    })
}

/// Sets an attribute of a type, once; index 0 only makes the column.
///
/// # Safety
/// `name` and `value` are readable.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFITypeRegisterAttr(
    type_index: i32,
    name: *const ByteArray,
    value: *const RawAny,
) -> i32 {
    enter(|| {
        super::init();
        // SAFETY: says the caller.
        let name = utf8(unsafe { &*name })?;
        // SAFETY: the address of a cell, by this contract.
        let value = unsafe { value.read() };
        // SAFETY: a valid view, by this contract.
        let value = unsafe { AnyView::from_raw(value) }.to_any();
        // SAFETY: a pointer is a function of the attribute's convention, by this contract.
        unsafe { types::set_any_attr(type_index, name, value) }
            .map_err(|broken| Error::new("RuntimeError", broken.message()))
    })
}

/// The column of an attribute, or null, also for a name that is not UTF-8. Its address never changes.
///
/// # Safety
/// `name` is readable.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIGetTypeAttrColumn(name: *const ByteArray) -> *const Column {
    super::init();
    // SAFETY: says the caller.
    let name = unsafe { (*name).as_slice() };
    let column = std::str::from_utf8(name).ok().and_then(types::column);
    column.map_or(std::ptr::null(), |column| column)
}
