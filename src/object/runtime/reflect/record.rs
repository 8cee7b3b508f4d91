//! Reflection in use: reading and writing the fields of objects, and objects that only reflection knows.

use super::column;
use crate::function::{Error, ErrorKind, Function, Result, guard_code, raised};
use crate::object::container::turnstile::alone;
use crate::value::header::{DELETE_STRONG, DELETE_WEAK, Header, ObjectRef, end_nested};
use crate::value::heap::{allocate_zeroed, release};
use crate::value::types::{self, FieldInfo, Getter, TypeInfo, flag};
use crate::value::{Any, AnyView, Argument, DLDataType, DLDevice, RawAny, cast, index};
use std::ffi::c_void;
use std::ops::Deref;

/// The value of the field `name` of an object, its own or one of its ancestors'.
///
/// ```
/// # use tvmspec::object;
/// # use tvmspec::value::Any;
/// # object::init();
/// let key = Any::from("ffi.reflection.AccessStep");
/// let (kind, step) = (Any::from("kind"), Any::from("key"));
/// let parts = [key.view(), kind.view(), 2i64.into(), step.view(), 7i64.into()];
/// let made = object::construct::make_object(&parts)?;
/// let object = made.as_object().expect("an object");
/// assert_eq!(i64::try_from(&object::field(object, "key")?)?, 7);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// An AttributeError where there is no such field, and what reading it ends with.
pub fn field(object: &ObjectRef, name: &str) -> Result {
    let mut fields = fields_of(object);
    let found = fields.find(|field| field.name() == name);
    let found = found.ok_or_else(|| {
        let key = types::key_of(object.type_index());
        Error::new(
            ErrorKind::Attribute,
            format!("type `{key}` has no field `{name}`"),
        )
    })?;
    found.get()
}

/// A field of an object: what reflection knows of it, and an object that has it.
#[derive(Clone, Copy)]
pub(crate) struct OwnField<'a> {
    object: &'a ObjectRef,
    info: &'static FieldInfo,
}

impl Deref for OwnField<'_> {
    type Target = FieldInfo;

    fn deref(&self) -> &FieldInfo {
        self.info
    }
}

/// The fields of an object, those of its ancestors first.
pub(crate) fn fields_of(object: &ObjectRef) -> impl Iterator<Item = OwnField<'_>> {
    let info = types::info(object.type_index());
    let fields = info.into_iter().flat_map(TypeInfo::all_fields);
    fields.map(move |info| OwnField { object, info })
}

/// The fields of two objects of one type, side by side; none where they are not of one type.
pub(crate) fn fields_of_both<'a>(
    left: &'a ObjectRef,
    right: &'a ObjectRef,
) -> impl Iterator<Item = (OwnField<'a>, OwnField<'a>)> {
    let same = left.type_index() == right.type_index();
    let fields = same.then(|| fields_of(left)).into_iter().flatten();
    fields.map(move |field| {
        let info = field.info;
        (
            field,
            OwnField {
                object: right,
                info,
            },
        )
    })
}

impl<'a> OwnField<'a> {
    /// A field of `info` or its ancestors, of an object that is of that type; `None` where it is not.
    pub(crate) fn of(
        object: &'a ObjectRef,
        info: &TypeInfo,
        field: impl FnOnce(&TypeInfo) -> Option<&'static FieldInfo>,
    ) -> Option<OwnField<'a>> {
        if !types::is_instance(object.type_index(), info.type_index) {
            return None;
        }
        field(info).map(|info| OwnField { object, info })
    }

    fn address(self) -> *mut c_void {
        address(self.object.as_ptr(), self.info)
    }

    /// Reads it.
    ///
    /// # Errors
    ///
    /// A RuntimeError for a field without a getter; what the getter fails with.
    pub(crate) fn get(self) -> Result {
        let Some(getter) = self.info.getter else {
            return Err(Error::new(
                ErrorKind::Runtime,
                format!("field `{}` cannot be read", self.name()),
            ));
        };
        let mut out = RawAny::NONE;
        // SAFETY: the object is of a type that has the field, which the getter reads (the contract of `types::push_field`).
        let code = unsafe { getter(self.address(), &mut out) };
        if code != 0 {
            return Err(raised(code));
        }
        // SAFETY: a getter that answers 0 has written an owned value.
        Ok(unsafe { Any::from_raw(out) })
    }

    /// Writes it. Nothing else reads the field meanwhile: the object is new, or the ABI leaves that to its holders.
    ///
    /// # Errors
    ///
    /// A RuntimeError for a field without a setter; what the setter fails with, such as a TypeError for another type.
    pub(crate) fn set(self, value: AnyView<'_>) -> Result<()> {
        let field = self.info;
        if field.setter.is_null() {
            return Err(Error::new(
                ErrorKind::Runtime,
                format!("field `{}` cannot be written", field.name()),
            ));
        }
        if field.flags & flag::SETTER_IS_FUNCTION != 0 {
            // SAFETY: with the flag the setter is a function object that lives for ever (the contract of `types::push_field`).
            let setter = unsafe { ObjectRef::retain(field.setter.cast()) };
            let setter = cast::<Function>(AnyView::from(&setter))?;
            // SAFETY: the setter takes the address of such a field, and this is one.
            let at = unsafe { AnyView::handle(self.address()) };
            setter.call(&[at, value])?;
            return Ok(());
        }
        type Setter = unsafe extern "C-unwind" fn(*mut c_void, *const RawAny) -> i32;
        // SAFETY: without the flag the setter is a C function of this signature (the contract of `types::push_field`).
        let setter = unsafe { std::mem::transmute::<*mut c_void, Setter>(field.setter) };
        // SAFETY: the object is of a type that has the field, which the setter writes; the value lives for the call.
        let code = unsafe { setter(self.address(), value.as_raw()) };
        if code == 0 { Ok(()) } else { Err(raised(code)) }
    }

    /// Sets it to its default, or to what the factory of its default returns; false when it has none.
    ///
    /// # Errors
    ///
    /// As [`OwnField::set`]; what the factory fails with.
    pub(crate) fn set_default(self) -> Result<bool> {
        if self.flags & flag::HAS_DEFAULT == 0 {
            return Ok(false);
        }
        let default = self.default_value();
        if self.flags & flag::DEFAULT_IS_FACTORY != 0 {
            let made = cast::<Function>(default)?.call(&[])?;
            self.set(made.view())?;
        } else {
            self.set(default)?;
        }
        Ok(true)
    }
}

fn address(object: *mut Header, field: &FieldInfo) -> *mut c_void {
    object.wrapping_byte_offset(field.offset as isize).cast()
}

/// An empty object of a type: by its native creator, else by its attribute `__ffi_new__`.
///
/// # Errors
///
/// A RuntimeError for a type that has neither; a TypeError where `__ffi_new__` returns an object of another type; what either fails
/// with.
pub(crate) fn create(info: &'static TypeInfo) -> Result<ObjectRef> {
    if let Some(creator) = info.metadata().and_then(|metadata| metadata.creator) {
        let mut out = std::ptr::null_mut();
        // SAFETY: a creator writes an owned handle (the contract of `types::set_metadata`).
        let code = unsafe { creator(&mut out) };
        if code != 0 {
            return Err(raised(code));
        }
        // SAFETY: null, or the handle that the creator has written.
        if let Some(object) = unsafe { ObjectRef::from_nullable(out) } {
            return Ok(object);
        }
    }
    if let Some(new) = column::NEW.value(info.type_index) {
        let made = cast::<ObjectRef>(cast::<Function>(new)?.call(&[])?.view())?;
        // Any library may register the attribute, with a function that makes something else.
        if !types::is_instance(made.type_index(), info.type_index) {
            return Err(Error::new(
                ErrorKind::Type,
                format!(
                    "__ffi_new__ of type `{}` made an object of type `{}`",
                    info.key(),
                    types::key_of(made.type_index())
                ),
            ));
        }
        return Ok(made);
    }
    Err(Error::new(
        ErrorKind::Runtime,
        format!(
            "Type `{}` does not support reflection creation (no native creator or __ffi_new__ type attr)",
            info.key()
        ),
    ))
}

/// Whether [`create`] has a chance.
pub(crate) fn can_create(info: &'static TypeInfo) -> bool {
    info.metadata()
        .is_some_and(|metadata| metadata.creator.is_some())
        || column::NEW.value(info.type_index).is_some()
}

/// How a field lies in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FieldStorage {
    Plain,
    Cell,
    Object,
}

fn storage(field: &FieldInfo) -> FieldStorage {
    match field.static_type_index {
        // A field without a fixed type is a cell, or a bare reference when it is only that wide.
        index::ANY | index::NONE if field.size == 8 => FieldStorage::Object,
        index::ANY | index::NONE => FieldStorage::Cell,
        own if own >= index::OBJECT_BEGIN => FieldStorage::Object,
        _ => FieldStorage::Plain,
    }
}

/// A zeroed object of `size` bytes whose fields only reflection knows.
pub(crate) fn allocate_record(type_index: i32, size: usize) -> ObjectRef {
    let object = allocate_zeroed(size.max(size_of::<Header>())).cast::<Header>();
    let header = Header {
        padding: 0,
        ..Header::new(type_index, delete_record)
    };
    // SAFETY: the block holds a header.
    unsafe { object.write(header) }
    // SAFETY: a fresh object, whose only reference this is; all-zero cells are None and all-zero references are absent.
    unsafe { ObjectRef::from_raw(object) }
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
    let copy = allocate_record(type_index, size);
    for field in fields_of(source) {
        let (from, to) = (field.address(), address(copy.as_ptr(), field.info));
        match storage(&field) {
            FieldStorage::Cell => {
                // SAFETY: the field is a cell, says its description, and `source` is alive.
                let value = alone(from, || unsafe { &*from.cast::<Any>() }.clone());
                // SAFETY: the copy has the same field, which is still zero.
                unsafe { to.cast::<Any>().write(value) }
            }
            FieldStorage::Object => {
                let value = alone(from, || {
                    // SAFETY: the field is a reference, says its description, and `source` is alive.
                    unsafe { &*from.cast::<Option<ObjectRef>>() }.clone()
                });
                // SAFETY: the copy has the same field, which is still zero.
                unsafe { to.cast::<Option<ObjectRef>>().write(value) }
            }
            FieldStorage::Plain => {
                let (from, to) = (from.cast::<u8>(), to.cast::<u8>());
                // SAFETY: both objects have the field, of `size` bytes.
                alone(from, || unsafe {
                    std::ptr::copy_nonoverlapping(from, to, field.size as usize);
                });
            }
        }
    }
    Ok(copy)
}

/// Reads a field of type `F`.
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
    let value = alone(field, || unsafe { &*field.cast::<F>() }.clone());
    // SAFETY: writable, by this contract.
    unsafe { out.write(Any::from(value).into_raw()) }
    0
}

/// Writes a field of type `F`.
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
        drop(alone(field, || unsafe { field.cast::<F>().replace(value) }));
        Ok(())
    })
}

/// # Safety
/// As [`read_field`] for a reference, possibly absent.
unsafe extern "C-unwind" fn read_object(field: *mut c_void, out: *mut RawAny) -> i32 {
    let value = alone(field, || {
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
    let value = alone(field, || unsafe { field.cast::<u8>().read() }) != 0;
    // SAFETY: writable, by this contract.
    unsafe { out.write(Any::from(value).into_raw()) }
    0
}

/// # Safety
/// As [`read_field`] for a pointer that its receiver may use.
unsafe extern "C-unwind" fn read_pointer(field: *mut c_void, out: *mut RawAny) -> i32 {
    // SAFETY: the address of a pointer, by this contract.
    let value = alone(field, || unsafe { field.cast::<*mut c_void>().read() });
    // SAFETY: may be used by its receiver, by this contract.
    let value = unsafe { Any::handle(value) };
    // SAFETY: writable, by this contract.
    unsafe { out.write(value.into_raw()) }
    0
}

/// The C function that reads fields declared with a type index.
pub(crate) fn getter_for(field_type: i32) -> Result<Getter> {
    Ok(match field_type {
        index::INT => read_field::<i64>,
        index::FLOAT => read_field::<f64>,
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

/// Writes an already converted value to a field of a record.
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
        drop(alone(at, || unsafe { at.cast::<T>().replace(value) }));
        Ok(())
    }
    let put: unsafe fn(*mut c_void, Any) -> Result<()> = match field_type {
        index::INT => put::<i64>,
        index::FLOAT => put::<f64>,
        index::BOOL => put::<bool>,
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
