//! How the fields of an object lie in memory: records, whose fields only reflection knows, and the C functions that read and write one
//! field by its declared type.

use super::record::{address, fields_of};
use crate::function::{Error, ErrorKind, Result, guard_code};
use crate::object::container::lock::with_lock;
use crate::value::header::{DELETE_STRONG, DELETE_WEAK, Header, ObjectRef, end_nested};
use crate::value::heap::{release, try_allocate_zeroed};
use crate::value::types::{self, FieldInfo, Getter, TypeInfo};
use crate::value::{Any, AnyView, Argument, DLDataType, DLDevice, RawAny, cast, index};
use std::ffi::c_void;

/// How a field lies in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FieldStorage {
    /// Bytes that refer to nothing: a number, a bool, a data type, a device, a pointer.
    Plain,
    /// A value of any type, 16 bytes.
    Cell,
    /// A reference of an object, 8 bytes; null where it is absent.
    Object,
}

/// How a field lies in memory, by its declared type index and, where that is not fixed, its size. Upstream's C++ tells these apart in the
/// same way.
fn storage(field: &FieldInfo) -> FieldStorage {
    match field.static_type_index {
        // A field without a fixed type is a cell, or a bare reference when it is only that wide.
        index::ANY | index::NONE if field.size == 8 => FieldStorage::Object,
        index::ANY | index::NONE => FieldStorage::Cell,
        own if own >= index::OBJECT_BEGIN => FieldStorage::Object,
        _ => FieldStorage::Plain,
    }
}

/// A zeroed object of `size` bytes whose fields only reflection knows: cells are None, references absent, numbers 0. A size below that of a
/// header is that of a header.
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
    // SAFETY: a fresh object, whose only reference this is; all-zero cells are None and all-zero references are absent.
    Ok(unsafe { ObjectRef::from_raw(object) })
}

/// # Safety
/// As a deleter is called; `object` was made by [`allocate_record`] with room for the fields of its type.
unsafe extern "C-unwind" fn delete_record(object: *mut Header, flags: i32) {
    // SAFETY: deleters are called as VAL-05 says, which is the contract of `end_record`.
    unsafe { end_nested(object, flags, end_record) }
}

/// The work of [`delete_record`].
///
/// # Safety
/// As a deleter is called (VAL-05).
unsafe extern "C-unwind" fn end_record(object: *mut Header, flags: i32) {
    if flags & DELETE_STRONG != 0 {
        // SAFETY: the header is readable until the memory goes.
        let type_index = unsafe { (*object).type_index };
        // As the type describes itself now: a field that was registered after the object was made is zero in it, and ends as nothing.
        let info = types::info(type_index);
        for field in info.into_iter().flat_map(TypeInfo::all_fields) {
            let at = address(object, field);
            match storage(field) {
                // SAFETY: the field is a cell, says its description; the last reference has gone, so each is dropped once.
                FieldStorage::Cell => unsafe { std::ptr::drop_in_place(at.cast::<Any>()) },
                // SAFETY: the field is a reference, says its description; each is dropped once.
                FieldStorage::Object => unsafe {
                    std::ptr::drop_in_place(at.cast::<Option<ObjectRef>>())
                },
                FieldStorage::Plain => {}
            }
        }
    }
    if flags & DELETE_WEAK != 0 {
        // SAFETY: made by `allocate_record`, and nothing refers to it.
        unsafe { release(object.cast()) }
    }
}

/// A copy of a record that shares what the fields refer to. `source` was made by [`allocate_record`] with that type and size.
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
                // SAFETY: the field is a cell, says its description, and `source` is alive.
                let value = with_lock(from, || unsafe { &*from.cast::<Any>() }.clone());
                // SAFETY: the copy has the same field, which is still zero.
                unsafe { to.cast::<Any>().write(value) }
            }
            FieldStorage::Object => {
                let value = with_lock(from, || {
                    // SAFETY: the field is a reference, says its description, and `source` is alive.
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

/// Getter of a field of type `F`, in the form of `TVMFFIFieldInfo`: writes an owned value to `out`, and returns 0.
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
    // SAFETY: the address of an `F`, by this contract; nothing writes it while this thread is alone with it.
    let value = with_lock(field, || unsafe { &*field.cast::<F>() }.clone());
    // SAFETY: writable, by this contract.
    unsafe { out.write(Any::from(value).into_raw()) }
    0
}

/// Setter of a field of type `F`, in the form of `TVMFFIFieldInfo`: converts the value, and puts it in the place of the old one. Returns 0,
/// or -1 with a TypeError raised for a value that does not convert; the field is as it was then.
///
/// # Safety
/// `field` is the address of an `F` that is only read and written in here, `value` that of a cell.
pub(super) unsafe extern "C-unwind" fn write_field<F: Argument>(
    field: *mut c_void,
    value: *const RawAny,
) -> i32 {
    guard_code(|| {
        // SAFETY: the address of a cell, by this contract.
        let value = unsafe { value.read() };
        // SAFETY: what the caller passes lives for the call.
        let value = cast::<F>(unsafe { AnyView::from_raw(value) })?;
        // SAFETY: the address of an `F`, by this contract, which this thread is alone with. The old value ends after that: its end
        // may come back to the field.
        drop(with_lock(field, || unsafe {
            field.cast::<F>().replace(value)
        }));
        Ok(())
    })
}

/// # Safety
/// As [`read_field`] for a reference, possibly absent.
unsafe extern "C-unwind" fn read_object(field: *mut c_void, out: *mut RawAny) -> i32 {
    let value = with_lock(field, || {
        // SAFETY: the address of a reference, by this contract; nothing writes it while this thread is alone with it.
        unsafe { &*field.cast::<Option<ObjectRef>>() }.clone()
    });
    // SAFETY: writable, by this contract.
    unsafe { out.write(Any::from(value).into_raw()) }
    0
}

/// # Safety
/// As [`read_field`] for a byte that is zero or not.
unsafe extern "C-unwind" fn read_bool(field: *mut c_void, out: *mut RawAny) -> i32 {
    // SAFETY: the address of a byte, by this contract.
    let value = with_lock(field, || unsafe { field.cast::<u8>().read() }) != 0;
    // SAFETY: writable, by this contract.
    unsafe { out.write(Any::from(value).into_raw()) }
    0
}

/// # Safety
/// As [`read_field`] for a pointer that its receiver may use.
unsafe extern "C-unwind" fn read_pointer(field: *mut c_void, out: *mut RawAny) -> i32 {
    // SAFETY: the address of a pointer, by this contract.
    let value = with_lock(field, || unsafe { field.cast::<*mut c_void>().read() });
    // SAFETY: may be used by its receiver, by this contract.
    let value = unsafe { Any::handle(value) };
    // SAFETY: writable, by this contract.
    unsafe { out.write(value.into_raw()) }
    0
}

/// The C function that reads fields declared with a type index, for `ffi.MakeFieldGetter`.
pub(crate) fn getter_for(field_type: i32) -> Result<Getter> {
    Ok(match field_type {
        index::INT => read_field::<i64>,
        index::FLOAT => read_field::<f64>,
        // One byte, as in C++: it may hold anything but 0 for true, which a Rust `bool` must not.
        index::BOOL => read_bool,
        index::OPAQUE => read_pointer,
        index::DATA_TYPE => read_field::<DLDataType>,
        index::DEVICE => read_field::<DLDevice>,
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

/// Writes an already converted value to a field of a record; the old value ends afterwards.
///
/// # Safety
/// `at` is the address of an initialised field stored as `field_type` says, and only read and written in here.
pub(crate) unsafe fn store(at: *mut c_void, field_type: i32, value: Any) -> Result<()> {
    /// Replaces the field at `at`; the old value ends when the new one is in place.
    ///
    /// # Safety
    /// `at` is an initialised field of type `T` that is only read and written in here.
    unsafe fn put<T: Argument>(at: *mut c_void, value: Any) -> Result<()> {
        let value = cast::<T>(value.view())?;
        // SAFETY: such a field, by this contract, which this thread is alone with.
        drop(with_lock(at, || unsafe { at.cast::<T>().replace(value) }));
        Ok(())
    }
    /// # Safety
    /// `at` is the address of a byte, as for [`read_bool`].
    unsafe fn put_bool(at: *mut c_void, value: Any) -> Result<()> {
        let value = cast::<bool>(value.view())?;
        // Written as a byte: what C++ left there may be no `bool` of Rust's, which `replace` would read.
        // SAFETY: the address of a byte, by this contract, which this thread is alone with.
        with_lock(at, || unsafe { at.cast::<u8>().write(u8::from(value)) });
        Ok(())
    }
    let put: unsafe fn(*mut c_void, Any) -> Result<()> = match field_type {
        index::INT => put::<i64>,
        index::FLOAT => put::<f64>,
        index::BOOL => put_bool,
        index::OPAQUE => put::<*mut c_void>,
        index::DATA_TYPE => put::<DLDataType>,
        index::DEVICE => put::<DLDevice>,
        index::ANY | index::NONE => put::<Any>,
        own if own >= index::OBJECT_BEGIN => put::<Option<ObjectRef>>,
        other => {
            return Err(Error::new(
                ErrorKind::Value,
                format!("Unsupported field type index for setter: {other}"),
            ));
        }
    };
    // SAFETY: the function is for what `field_type` says, and that is what is stored, by this contract.
    unsafe { put(at, value) }
}
