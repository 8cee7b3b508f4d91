//! The memory of object fields: records, whose fields only reflection knows, and the C functions that read and write one field by its
//! declared type.

use super::field_access::{address, fields_of};
use crate::function::{Error, ErrorKind, Result, guard_code};
use crate::object::container::lock::with_lock;
use crate::tensor::{Device, Dtype};
use crate::value::header::{DELETE_STRONG, DELETE_WEAK, Header, ObjectRef, end_nested};
use crate::value::heap::{release, try_allocate_zeroed};
use crate::value::types::{self, FieldInfo, Getter, TypeInfo};
use crate::value::{Any, AnyView, Argument, RawAny, cast, index};
use std::ffi::c_void;

/// The storage form of a field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FieldStorage {
    /// Bytes without references: a number, a bool, a data type, a device, a pointer.
    Plain,
    /// A value of any type, 16 bytes.
    Cell,
    /// A reference to an object, 8 bytes; null if absent.
    Object,
}

/// Returns the storage form of a field. It depends on the declared type index and, if that is not fixed, on the size. Upstream's C++
/// decides in the same way.
fn storage(field: &FieldInfo) -> FieldStorage {
    match field.static_type_index {
        // A field without a fixed type is a cell, or a bare reference if it has only 8 bytes.
        index::ANY | index::NONE if field.size == 8 => FieldStorage::Object,
        index::ANY | index::NONE => FieldStorage::Cell,
        own if own >= index::OBJECT_BEGIN => FieldStorage::Object,
        _ => FieldStorage::Plain,
    }
}

/// Creates a zeroed object of `size` bytes whose fields only reflection knows: cells are None, references absent, numbers 0. The size is at
/// least that of a header.
pub(crate) fn allocate_record(type_index: i32, size: usize) -> Result<ObjectRef> {
    let Some(object) = try_allocate_zeroed(size.max(size_of::<Header>())) else {
        return Err(Error::new(
            ErrorKind::Memory,
            format!(
                "no memory for a record of {size} bytes of type `{}`",
                types::key_of(type_index)
            ),
        ));
    };
    let object = object.cast::<Header>();
    let header = Header {
        padding: 0,
        ..Header::new(type_index, delete_record)
    };
    // SAFETY: the block holds a header.
    unsafe { object.write(header) }
    // SAFETY: a fresh object and its only reference; all-zero cells are None and all-zero references are absent.
    Ok(unsafe { ObjectRef::from_raw(object) })
}

/// Deletes a record.
///
/// # Safety
/// The call follows VAL-05; `object` comes from [`allocate_record`] with room for the fields of its type.
unsafe extern "C-unwind" fn delete_record(object: *mut Header, flags: i32) {
    // SAFETY: deleters are called as VAL-05 says, which is the contract of `end_record`.
    unsafe { end_nested(object, flags, end_record) }
}

/// Does the work of [`delete_record`].
///
/// # Safety
/// The call follows VAL-05.
unsafe extern "C-unwind" fn end_record(object: *mut Header, flags: i32) {
    if flags & DELETE_STRONG != 0 {
        // SAFETY: the header is readable until the memory is freed.
        let type_index = unsafe { (*object).type_index };
        // Uses the current description of the type: a field that was registered after the object was created is zero, and its drop does
        // nothing.
        let info = types::info(type_index);
        for field in info.into_iter().flat_map(TypeInfo::all_fields) {
            let at = address(object, field);
            match storage(field) {
                // SAFETY: the description says that the field is a cell; the last reference is gone, so each cell is dropped once.
                FieldStorage::Cell => unsafe { std::ptr::drop_in_place(at.cast::<Any>()) },
                // SAFETY: the description says that the field is a reference; each is dropped once.
                FieldStorage::Object => unsafe {
                    std::ptr::drop_in_place(at.cast::<Option<ObjectRef>>())
                },
                FieldStorage::Plain => {}
            }
        }
    }
    if flags & DELETE_WEAK != 0 {
        // SAFETY: allocated by `allocate_record`, and nothing refers to it.
        unsafe { release(object.cast()) }
    }
}

/// Copies a record; both share the objects that the fields refer to. `source` comes from [`allocate_record`] with that type and size.
pub(crate) fn copy_record(source: &ObjectRef, type_index: i32, size: usize) -> Result<ObjectRef> {
    if source.type_index() != type_index {
        return Err(Error::new(
            ErrorKind::Type,
            format!(
                "a copy of `{}` is asked of an object of type `{}`",
                types::key_of(type_index),
                types::key_of(source.type_index())
            ),
        ));
    }
    let copy = allocate_record(type_index, size)?;
    for field in fields_of(source) {
        let (from, to) = (field.address(), address(copy.as_ptr(), &field));
        match storage(&field) {
            FieldStorage::Cell => {
                // SAFETY: the description says that the field is a cell, and `source` is alive.
                let value = with_lock(from, || unsafe { &*from.cast::<Any>() }.clone());
                // SAFETY: the copy has the same field, which is still zero.
                unsafe { to.cast::<Any>().write(value) }
            }
            FieldStorage::Object => {
                let value = with_lock(from, || {
                    // SAFETY: the description says that the field is a reference, and `source` is alive.
                    unsafe { &*from.cast::<Option<ObjectRef>>() }.clone()
                });
                // SAFETY: the copy has the same field, which is still zero.
                unsafe { to.cast::<Option<ObjectRef>>().write(value) }
            }
            FieldStorage::Plain => {
                let (from, to) = (from.cast::<u8>(), to.cast::<u8>());
                // SAFETY: both objects have the field, of `size` bytes.
                with_lock(from, || unsafe {
                    std::ptr::copy_nonoverlapping(from, to, field.size as usize);
                });
            }
        }
    }
    Ok(copy)
}

/// Reads a field of type `F`, as a getter of `TVMFFIFieldInfo`: writes an owned value to `out` and returns 0.
///
/// # Safety
/// `field` is the address of an `F`, `out` is writable.
pub(super) unsafe extern "C-unwind" fn read_field<F: Argument + Clone>(
    field: *mut c_void,
    out: *mut RawAny,
) -> i32
where
    Any: From<F>,
{
    // SAFETY: the address of an `F`, by this contract; nothing writes it while this thread holds the lock.
    let value = with_lock(field, || unsafe { &*field.cast::<F>() }.clone());
    // SAFETY: writable, by this contract.
    unsafe { out.write(Any::from(value).into_raw()) }
    0
}

/// Writes a field of type `F`, as a setter of `TVMFFIFieldInfo`: converts the value, replaces the old one and returns 0. If the value does
/// not convert, returns -1 with a raised TypeError and leaves the field unchanged.
///
/// # Safety
/// `field` is the address of an `F` that is read and written only by these functions. `value` is the address of a cell.
pub(super) unsafe extern "C-unwind" fn write_field<F: Argument>(
    field: *mut c_void,
    value: *const RawAny,
) -> i32 {
    guard_code(|| {
        // SAFETY: the address of a cell, by this contract.
        let value = unsafe { value.read() };
        // SAFETY: the caller's value lives for the call.
        let value = cast::<F>(unsafe { AnyView::from_raw(value) })?;
        // SAFETY: the address of an `F`, by this contract, to which the lock gives exclusive access. The old value is dropped after the
        // lock is released, because its destructor may use the field.
        drop(with_lock(field, || unsafe {
            field.cast::<F>().replace(value)
        }));
        Ok(())
    })
}

/// Reads a field that is an object reference, as its getter.
///
/// # Safety
/// As for [`read_field`] with a reference, possibly absent.
unsafe extern "C-unwind" fn read_object(field: *mut c_void, out: *mut RawAny) -> i32 {
    let value = with_lock(field, || {
        // SAFETY: the address of a reference, by this contract; nothing writes it while this thread holds the lock.
        unsafe { &*field.cast::<Option<ObjectRef>>() }.clone()
    });
    // SAFETY: writable, by this contract.
    unsafe { out.write(Any::from(value).into_raw()) }
    0
}

/// Reads a field that is a bool, as its getter.
///
/// # Safety
/// As for [`read_field`] with a byte that is zero or not.
unsafe extern "C-unwind" fn read_bool(field: *mut c_void, out: *mut RawAny) -> i32 {
    // SAFETY: the address of a byte, by this contract.
    let value = with_lock(field, || unsafe { field.cast::<u8>().read() }) != 0;
    // SAFETY: writable, by this contract.
    unsafe { out.write(Any::from(value).into_raw()) }
    0
}

/// Reads a field that is a pointer, as its getter.
///
/// # Safety
/// As for [`read_field`] with a pointer that its receiver may use.
unsafe extern "C-unwind" fn read_pointer(field: *mut c_void, out: *mut RawAny) -> i32 {
    // SAFETY: the address of a pointer, by this contract.
    let value = with_lock(field, || unsafe { field.cast::<*mut c_void>().read() });
    // SAFETY: its receiver may use it, by this contract.
    let value = unsafe { Any::handle(value) };
    // SAFETY: writable, by this contract.
    unsafe { out.write(value.into_raw()) }
    0
}

/// Returns the C function that reads fields declared with a type index, for `ffi.MakeFieldGetter`.
pub(crate) fn getter_for(field_type: i32) -> Result<Getter> {
    Ok(match field_type {
        index::INT => read_field::<i64>,
        index::FLOAT => read_field::<f64>,
        // One byte, as in C++: any byte except 0 means true, which would be invalid for a Rust `bool`.
        index::BOOL => read_bool,
        index::OPAQUE => read_pointer,
        index::DATA_TYPE => read_field::<Dtype>,
        index::DEVICE => read_field::<Device>,
        index::ANY | index::NONE => read_field::<Any>,
        own if own >= index::OBJECT_BEGIN => read_object,
        other => {
            return Err(Error::new(
                ErrorKind::Value,
                format!("Unsupported field type index for getter: {other}"),
            ));
        }
    })
}

/// Writes a converted value to a field of a record. The old value is dropped afterwards.
///
/// # Safety
/// `at` is the address of an initialised field stored as `field_type` says, which is read and written only by these functions.
pub(crate) unsafe fn store(at: *mut c_void, field_type: i32, value: Any) -> Result<()> {
    /// Replaces the field at `at`. The old value is dropped when the new one is in place.
    ///
    /// # Safety
    /// `at` is an initialised field of type `T` that is read and written only by these functions.
    unsafe fn put<T: Argument>(at: *mut c_void, value: Any) -> Result<()> {
        let value = cast::<T>(value.view())?;
        // SAFETY: such a field, by this contract, to which the lock gives exclusive access.
        drop(with_lock(at, || unsafe { at.cast::<T>().replace(value) }));
        Ok(())
    }
    /// Writes a bool.
    ///
    /// # Safety
    /// `at` is the address of a byte, as for [`read_bool`].
    unsafe fn put_bool(at: *mut c_void, value: Any) -> Result<()> {
        let value = cast::<bool>(value.view())?;
        // Written as a byte: the old C++ byte may not be a valid Rust `bool`, which `replace` would read.
        // SAFETY: the address of a byte, by this contract, to which the lock gives exclusive access.
        with_lock(at, || unsafe { at.cast::<u8>().write(u8::from(value)) });
        Ok(())
    }
    let put: unsafe fn(*mut c_void, Any) -> Result<()> = match field_type {
        index::INT => put::<i64>,
        index::FLOAT => put::<f64>,
        index::BOOL => put_bool,
        index::OPAQUE => put::<*mut c_void>,
        index::DATA_TYPE => put::<Dtype>,
        index::DEVICE => put::<Device>,
        index::ANY | index::NONE => put::<Any>,
        own if own >= index::OBJECT_BEGIN => put::<Option<ObjectRef>>,
        other => {
            return Err(Error::new(
                ErrorKind::Value,
                format!("Unsupported field type index for setter: {other}"),
            ));
        }
    };
    // SAFETY: by this contract, the function matches `field_type`, the type of the stored value.
    unsafe { put(at, value) }
}
