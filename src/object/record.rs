//! Reflection in use: describing Rust types, reading and writing fields, and objects that only reflection knows.

use super::column;
use crate::function::{Code, Error, Function, Result, TypedFn, guard_code, raised, signature_json};
use crate::value::header::{
    DELETE_STRONG, DELETE_WEAK, FRESH, Header, Object, ObjectRef, Ref, end_nested,
};
use crate::value::heap::{allocate_zeroed, release};
use crate::value::types::{self, FieldInfo, MethodInfo, TypeInfo, TypeMetadata, flag};
use crate::value::{Any, AnyView, Argument, ByteArray, DLDataType, DLDevice, RawAny, cast, index};
use std::ffi::c_void;
use std::sync::atomic::AtomicU64;

/// Describes a Rust type to reflection.
pub(crate) struct Describe {
    type_index: i32,
}

impl Describe {
    /// An abstract type of another size.
    pub(crate) fn opaque(type_index: i32, size: usize, structural_kind: i32) -> Describe {
        let describe = Describe { type_index };
        describe.metadata(size, structural_kind, None);
        describe.attr(&column::TYPE_FINAL, Any::from(true));
        describe
    }

    /// A type that can be made empty and copied.
    pub(crate) fn whole<T: Object + Clone + Default>(structural_kind: i32) -> Describe {
        unsafe extern "C-unwind" fn create<T: Object + Default>(out: *mut *mut Header) -> i32 {
            let object = Ref::new(T::default()).into_object();
            // SAFETY: the caller gave a place for the handle.
            unsafe { out.write(object.into_raw()) }
            0
        }
        let describe = Describe {
            type_index: T::type_index(),
        };
        describe.metadata(size_of::<T>(), structural_kind, Some(create::<T>));
        describe
            .attr(&column::TYPE_FINAL, Any::from(true))
            .attr(
                &column::NEW,
                Function::named(None, || Ref::new(T::default()).into_object()).into(),
            )
            .copyable::<T>();
        describe
    }

    /// Adds the attribute that copies an object.
    pub(crate) fn copyable<T: Object + Clone>(&self) -> &Describe {
        let copy = Function::named(None, |source: Ref<T>| {
            Ref::new((*source).clone()).into_object()
        });
        self.attr(&column::SHALLOW_COPY, copy.into())
    }

    fn metadata(
        &self,
        size: usize,
        structural_kind: i32,
        creator: Option<unsafe extern "C-unwind" fn(*mut *mut Header) -> i32>,
    ) {
        let metadata = TypeMetadata {
            doc: ByteArray::EMPTY,
            creator,
            total_size: size as i32,
            structural_kind,
        };
        let _ = types::set_metadata(self.type_index, metadata);
    }

    /// Sets an attribute.
    pub(crate) fn attr(&self, column: &column::Attribute, value: Any) -> &Describe {
        let _ = types::set_attr(self.type_index, column.name(), value);
        self
    }

    /// Adds a field of Rust type `F`.
    pub(crate) fn field<F: Argument + Clone>(
        &self,
        name: &str,
        doc: &str,
        offset: usize,
        static_type_index: i32,
        flags: i64,
        schema: &str,
    ) -> &Describe
    where
        Any: From<F>,
    {
        let metadata = schema_json(schema);
        let field = FieldInfo {
            name: ByteArray::of(name.as_bytes()),
            doc: ByteArray::of(doc.as_bytes()),
            metadata: ByteArray::of(metadata.as_bytes()),
            flags,
            size: size_of::<F>() as i64,
            alignment: align_of::<F>() as i64,
            offset: offset as i64,
            getter: Some(read_field::<F>),
            setter: write_field::<F> as *mut c_void,
            default: RawAny::NONE,
            static_type_index,
        };
        let _ = types::push_field(self.type_index, field);
        self
    }

    /// Adds a method, or a static method.
    pub(crate) fn method<P: 'static, F: TypedFn<P>>(
        &self,
        name: &'static str,
        doc: &str,
        is_static: bool,
        body: F,
    ) -> &Describe {
        self.push_method(name, doc, is_static, Code::of(body))
    }

    fn push_method(&self, name: &'static str, doc: &str, is_static: bool, code: Code) -> &Describe {
        let metadata = signature_json(&code.signature.typed());
        let function = Function::plain(Some(name), code);
        let method = MethodInfo {
            name: ByteArray::of(name.as_bytes()),
            doc: ByteArray::of(doc.as_bytes()),
            metadata: ByteArray::of(metadata.as_bytes()),
            flags: if is_static { flag::STATIC_METHOD } else { 0 },
            method: Any::from(function).into_raw(),
        };
        let _ = types::push_method(self.type_index, method);
        self
    }
}

/// `{"type_schema":"<schema as JSON text>"}`.
fn schema_json(schema: &str) -> String {
    format!(
        "{{\"type_schema\":\"{}\"}}",
        schema.replace('\\', "\\\\").replace('"', "\\\"")
    )
}

unsafe extern "C-unwind" fn read_field<F: Argument + Clone>(
    field: *mut c_void,
    out: *mut RawAny,
) -> i32
where
    Any: From<F>,
{
    // SAFETY: the address is that of a field of this type, `out` is writable.
    unsafe { out.write(Any::from((*field.cast::<F>()).clone()).into_raw()) }
    0
}

unsafe extern "C-unwind" fn write_field<F: Argument>(
    field: *mut c_void,
    value: *const RawAny,
) -> i32 {
    guard_code(|| {
        // SAFETY: the value is a valid cell.
        let value = cast::<F>(unsafe { AnyView::from_raw(*value) })?;
        // SAFETY: the address is that of an initialised field of this type.
        unsafe { *field.cast::<F>() = value }
        Ok(())
    })
}

/// Reads a field of an object.
pub fn get_field(object: &ObjectRef, field: &FieldInfo) -> Result {
    let Some(getter) = field.getter else {
        return Err(Error::new(
            "RuntimeError",
            format!("field `{}` cannot be read", field.name()),
        ));
    };
    let mut out = RawAny::NONE;
    // SAFETY: the field is one of the object's type; the getter writes an owned value.
    let code = unsafe { getter(address(object, field), &mut out) };
    if code != 0 {
        return Err(raised(code));
    }
    // SAFETY: the getter answered with an owned value.
    Ok(unsafe { Any::from_raw(out) })
}

fn address(object: &ObjectRef, field: &FieldInfo) -> *mut c_void {
    object
        .as_ptr()
        .cast::<u8>()
        .wrapping_offset(field.offset as isize)
        .cast()
}

/// Writes a field of an object.
pub fn set_field(object: &ObjectRef, field: &FieldInfo, value: AnyView<'_>) -> Result<()> {
    let at = address(object, field);
    if field.setter.is_null() {
        return Err(Error::new(
            "RuntimeError",
            format!("field `{}` cannot be written", field.name()),
        ));
    }
    if field.flags & flag::SETTER_IS_FUNCTION != 0 {
        // SAFETY: the flag says that the setter is a function object, which lives for ever.
        let setter = unsafe { ObjectRef::retain(field.setter.cast()) };
        let setter = cast::<Function>(AnyView::from(&setter))?;
        setter.call(&[AnyView::handle(at), value])?;
        return Ok(());
    }
    type Setter = unsafe extern "C-unwind" fn(*mut c_void, *const RawAny) -> i32;
    // SAFETY: without the flag the setter is a C function of this signature, for fields of this type.
    let code =
        unsafe { std::mem::transmute::<*mut c_void, Setter>(field.setter)(at, value.as_raw()) };
    if code == 0 { Ok(()) } else { Err(raised(code)) }
}

/// Sets a field to its default; false when it has none.
pub fn set_default(object: &ObjectRef, field: &FieldInfo) -> Result<bool> {
    if field.flags & flag::HAS_DEFAULT == 0 {
        return Ok(false);
    }
    // SAFETY: defaults are retained for ever.
    let default = unsafe { AnyView::from_raw(field.default) };
    if field.flags & flag::DEFAULT_IS_FACTORY != 0 {
        let made = cast::<Function>(default)?.call(&[])?;
        set_field(object, field, made.view())?;
    } else {
        set_field(object, field, default)?;
    }
    Ok(true)
}

/// An empty object of a type, by its own maker.
pub fn create(info: &'static TypeInfo) -> Result<ObjectRef> {
    if let Some(creator) = info.metadata().and_then(|metadata| metadata.creator) {
        let mut out = std::ptr::null_mut();
        // SAFETY: the creator writes an owned handle.
        let code = unsafe { creator(&mut out) };
        if code != 0 {
            return Err(raised(code));
        }
        // SAFETY: as above.
        if let Some(object) = unsafe { ObjectRef::from_nullable(out) } {
            return Ok(object);
        }
    }
    if let Some(new) = column::NEW.value(info.type_index) {
        return Ok(cast::<ObjectRef>(cast::<Function>(new)?.call(&[])?.view())?);
    }
    Err(Error::new(
        "RuntimeError",
        format!(
            "Type `{}` does not support reflection creation (no native creator or __ffi_new__ type attr)",
            info.key()
        ),
    ))
}

/// Whether [`create`] has a chance.
pub fn can_create(info: &'static TypeInfo) -> bool {
    info.metadata()
        .is_some_and(|metadata| metadata.creator.is_some())
        || column::NEW.value(info.type_index).is_some()
}

/// How a field lies in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Storage {
    Plain,
    Cell,
    Object,
}

fn storage(field: &FieldInfo) -> Storage {
    match field.static_type_index {
        // A field without a fixed type is a cell, or a bare reference when it is only that wide.
        index::ANY | index::NONE if field.size == 8 => Storage::Object,
        index::ANY | index::NONE => Storage::Cell,
        own if own >= index::OBJECT_BEGIN => Storage::Object,
        _ => Storage::Plain,
    }
}

/// A zeroed object of `size` bytes whose fields only reflection knows.
pub(crate) fn allocate_record(type_index: i32, size: usize) -> ObjectRef {
    let object = allocate_zeroed(size.max(size_of::<Header>())).cast::<Header>();
    // SAFETY: the block holds a header; all-zero cells are None and all-zero references are absent.
    unsafe {
        object.write(Header {
            combined: AtomicU64::new(FRESH),
            type_index,
            padding: 0,
            deleter: Some(delete_record),
        });
        ObjectRef::from_raw(object)
    }
}

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
        for field in types::info(type_index)
            .into_iter()
            .flat_map(TypeInfo::all_fields)
        {
            let at = object.cast::<u8>().wrapping_offset(field.offset as isize);
            // SAFETY: the field lies in the object and is stored as its description says; each is dropped once.
            unsafe {
                match storage(field) {
                    Storage::Cell => std::ptr::drop_in_place(at.cast::<Any>()),
                    Storage::Object => std::ptr::drop_in_place(at.cast::<Option<ObjectRef>>()),
                    Storage::Plain => {}
                }
            }
        }
    }
    if flags & DELETE_WEAK != 0 {
        // SAFETY: made by `allocate_record`, and nobody refers to it.
        unsafe { release(object.cast()) }
    }
}

/// A copy of a record that shares what the fields refer to.
pub(crate) fn copy_record(source: &ObjectRef, type_index: i32, size: usize) -> ObjectRef {
    let copy = allocate_record(type_index, size);
    for field in types::info(type_index)
        .into_iter()
        .flat_map(TypeInfo::all_fields)
    {
        let from = address(source, field).cast::<u8>();
        let to = address(&copy, field).cast::<u8>();
        // SAFETY: both objects have the field, stored as its description says; the copy's is still zero.
        unsafe {
            match storage(field) {
                Storage::Cell => to.cast::<Any>().write((*from.cast::<Any>()).clone()),
                Storage::Object => to
                    .cast::<Option<ObjectRef>>()
                    .write((*from.cast::<Option<ObjectRef>>()).clone()),
                Storage::Plain => std::ptr::copy_nonoverlapping(from, to, field.size as usize),
            }
        }
    }
    copy
}

unsafe extern "C-unwind" fn read_object(field: *mut c_void, out: *mut RawAny) -> i32 {
    // SAFETY: the address is that of a reference, possibly absent.
    unsafe {
        let value = (*field.cast::<Option<ObjectRef>>()).clone();
        out.write(Any::from(value).into_raw());
    }
    0
}

unsafe extern "C-unwind" fn read_bool(field: *mut c_void, out: *mut RawAny) -> i32 {
    // SAFETY: the address is that of a bool.
    unsafe { out.write(Any::from(*field.cast::<u8>() != 0).into_raw()) }
    0
}

unsafe extern "C-unwind" fn read_pointer(field: *mut c_void, out: *mut RawAny) -> i32 {
    // SAFETY: the address is that of a pointer.
    unsafe { out.write(Any::from(*field.cast::<*mut c_void>()).into_raw()) }
    0
}

/// The C function that reads fields declared with a type index.
pub(crate) fn getter_for(
    field_type: i32,
) -> Result<unsafe extern "C-unwind" fn(*mut c_void, *mut RawAny) -> i32> {
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
                "ValueError",
                format!("Unsupported field type index for getter: {other}"),
            ));
        }
    })
}

/// Writes an already converted value to a field of a record.
pub(crate) fn store(at: *mut c_void, field_type: i32, value: Any) -> Result<()> {
    /// Replaces the field at `at`.
    ///
    /// # Safety
    /// `at` is an initialised field of type `T`.
    unsafe fn replace<T>(at: *mut c_void, value: T) {
        // SAFETY: says the caller.
        unsafe { *at.cast::<T>() = value }
    }
    let view = value.view();
    // SAFETY: the address is that of an initialised field stored as its type index says.
    unsafe {
        match field_type {
            index::INT => replace::<i64>(at, cast(view)?),
            index::FLOAT => replace::<f64>(at, cast(view)?),
            index::BOOL => replace::<bool>(at, cast(view)?),
            index::OPAQUE => replace::<*mut c_void>(at, cast(view)?),
            index::DATA_TYPE => replace::<DLDataType>(at, cast(view)?),
            index::DEVICE => replace::<DLDevice>(at, cast(view)?),
            index::ANY | index::NONE => replace::<Any>(at, value),
            own if own >= index::OBJECT_BEGIN => {
                replace::<Option<ObjectRef>>(at, cast(view)?);
            }
            other => {
                return Err(Error::new(
                    "ValueError",
                    format!("Unsupported field type index for setter: {other}"),
                ));
            }
        }
    }
    Ok(())
}
