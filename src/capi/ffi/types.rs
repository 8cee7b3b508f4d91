//! The type table and reflection.

use super::enter;
use crate::function::{Error, ErrorKind};
use crate::rule::Kind;
use crate::value::types::{
    self, Column, FieldInfo, MethodInfo, NewType, TypeInfo, TypeMetadata, flag,
};
use crate::value::{Any, AnyView, ByteArray, RawAny};

/// Returns a key as text.
///
/// # Safety
/// The array and its bytes are readable for `'a`.
unsafe fn utf8<'a>(array: *const ByteArray) -> crate::function::Result<&'a str> {
    // SAFETY: `array` is a readable array, by this contract.
    let array = unsafe { array.read() };
    // SAFETY: the bytes of the array are readable, by this contract.
    std::str::from_utf8(unsafe { array.as_slice() })
        .map_err(|_| Error::new(ErrorKind::Value, "a key that is not UTF-8"))
}

/// Returns the index of a key.
///
/// # Safety
/// `key` and its bytes are readable, `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFITypeKeyToIndex(key: *const ByteArray, out: *mut i32) -> i32 {
    enter(|| {
        super::init();
        // SAFETY: `key` and its bytes are readable, by this contract.
        let key = unsafe { utf8(key) }?;
        let found = types::index_of(key)
            .ok_or_else(|| Error::new(ErrorKind::Internal, format!("Cannot find type `{key}`")))?;
        // SAFETY: `out` is writable, by this contract.
        unsafe { out.write(found) }
        Ok(())
    })
}

/// Returns the index of a type, and allocates one for a new key. Parent -2 only looks up the key, and returns -2 if it is unknown. A type
/// that does not fit its parent is rejected with -1 and the error raised on this thread (VAL-15).
///
/// # Safety
/// `key` and its bytes are readable.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFITypeGetOrAllocIndex(
    key: *const ByteArray,
    static_index: i32,
    depth: i32,
    child_slots: i32,
    can_overflow: i32,
    parent: i32,
) -> i32 {
    let mut index = -1;
    // On an error the code -1 equals the initial value of `index`.
    enter(|| {
        super::init();
        // SAFETY: `key` and its bytes are readable, by this contract.
        let key = unsafe { utf8(key) }?;
        index = match parent {
            -2 => types::index_of(key).unwrap_or(-2),
            _ => {
                let at = types::get_or_alloc(NewType {
                    key,
                    static_index,
                    depth: Some(depth),
                    child_slots,
                    can_overflow: can_overflow != 0,
                    parent,
                })?;
                // The caller defines the layout of its objects, so no Rust type may use a key that a library has registered.
                types::lay_out_elsewhere(at);
                at
            }
        };
        Ok(())
    });
    index
}

/// Returns the description of a type, which is valid forever. Ends the process for an unknown index, as the ABI requires.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn TVMFFIGetTypeInfo(type_index: i32) -> *const TypeInfo {
    unsafe extern "C" {
        safe fn exit(code: i32) -> !;
    }
    super::init();
    match types::info(type_index) {
        Some(info) => info,
        // Callers do not check for null.
        None => {
            eprintln!("Cannot find type info for type_index={type_index}");
            exit(-1)
        }
    }
}

/// Keeps the value of a registered cell alive forever.
///
/// # Safety
/// `cell` is a valid view.
unsafe fn retain(cell: RawAny) -> RawAny {
    // SAFETY: `cell` is a valid view, by this contract.
    unsafe { AnyView::from_raw(cell) }.to_any().into_raw()
}

/// Adds a field.
///
/// # Safety
/// `info` and the strings in it are readable. A default, and a setter that is a function object, are valid. Every object of the type has
/// the described field, which its getter reads and its setter writes, forever.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFITypeRegisterField(
    type_index: i32,
    info: *const FieldInfo,
) -> i32 {
    enter(|| {
        super::init();
        // SAFETY: `info` is readable, by this contract.
        let mut field = unsafe { info.read() };
        if field.flags & flag::HAS_DEFAULT != 0 {
            // SAFETY: a default that the flag announces is valid, by this contract.
            field.default = unsafe { retain(field.default) };
        } else {
            field.default = RawAny::NONE;
        }
        if field.flags & flag::SETTER_IS_FUNCTION != 0 {
            // SAFETY: a setter that is a function object is valid, by this contract; this reference keeps it alive forever.
            unsafe { crate::value::header::inc_ref(field.setter.cast()) }
        }
        // SAFETY: the strings are readable and every object has the field, by this contract; default and setter are kept forever.
        let pushed = unsafe { types::push_field(type_index, field) };
        if pushed.is_err() {
            // SAFETY: this reference was counted above, and the table did not keep it.
            drop(unsafe { Any::from_raw(field.default) });
            if field.flags & flag::SETTER_IS_FUNCTION != 0 {
                // SAFETY: the setter that was counted above, which the table has not kept.
                unsafe { crate::value::header::dec_ref(field.setter.cast()) }
            }
        }
        // tvm-ffi 0.1.11 and later raise this kind here.
        pushed.map_err(|broken| Error::of_violation(ErrorKind::Internal, broken))
    })
}

/// Adds a method.
///
/// # Safety
/// `info` and the strings in it are readable, and the function in it is a valid view.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFITypeRegisterMethod(
    type_index: i32,
    info: *const MethodInfo,
) -> i32 {
    enter(|| {
        super::init();
        // SAFETY: `info` is readable, by this contract.
        let mut method = unsafe { info.read() };
        // SAFETY: the function in `info` is a valid view, by this contract.
        method.method = unsafe { retain(method.method) };
        // SAFETY: the strings in `info` are readable, by this contract; the function is kept forever.
        let pushed = unsafe { types::push_method(type_index, method) };
        pushed.map_err(|broken| {
            // SAFETY: the cell that was counted above, which the table has not kept.
            drop(unsafe { Any::from_raw(method.method) });
            Error::of_violation(ErrorKind::Internal, broken)
        })
    })
}

/// Sets the metadata of a type, once.
///
/// # Safety
/// `metadata` and the documentation in it are readable. Its creator creates objects of the type, which have at least the stated size.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFITypeRegisterMetadata(
    type_index: i32,
    metadata: *const TypeMetadata,
) -> i32 {
    enter(|| {
        super::init();
        // SAFETY: `metadata` is readable, by this contract.
        let metadata = unsafe { metadata.read() };
        // SAFETY: the documentation is readable, and the maker makes objects of the type of that size, by this contract.
        unsafe { types::set_metadata(type_index, metadata) }.map_err(|broken| {
            let kind = match broken.kind() {
                Kind::UnknownKind => ErrorKind::Internal,
                _ => ErrorKind::Runtime,
            };
            Error::of_violation(kind, broken)
        })
    })
}

/// Sets an attribute of a type, once. Index 0 only creates the column.
///
/// # Safety
/// `name` and its bytes are readable, `value` is a valid view. A pointer in it is a C function with the attribute's convention, forever.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFITypeRegisterAttr(
    type_index: i32,
    name: *const ByteArray,
    value: *const RawAny,
) -> i32 {
    enter(|| {
        super::init();
        // SAFETY: `name` and its bytes are readable, by this contract.
        let name = unsafe { utf8(name) }?;
        // SAFETY: `value` is the address of a valid view, by this contract.
        let value = unsafe { value.read() };
        // SAFETY: `value` is a valid view, by this contract.
        let value = unsafe { AnyView::from_raw(value) }.to_any();
        // SAFETY: a pointer in `value` is a C function with the attribute's convention, by this contract.
        unsafe { types::set_any_attr(type_index, name, value) }
            .map_err(|broken| Error::of_violation(ErrorKind::Runtime, broken))
    })
}

/// Returns the column of an attribute. Returns null if the column does not exist or the name is not UTF-8. The address of a column
/// never changes.
///
/// # Safety
/// `name` and its bytes are readable.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIGetTypeAttrColumn(name: *const ByteArray) -> *const Column {
    super::init();
    // SAFETY: `name` and its bytes are readable, by this contract.
    let name = unsafe { utf8(name) };
    let column = name.ok().and_then(types::column);
    column.map_or(std::ptr::null(), |column| column)
}
