//! Access through reflection: reading and writing fields of objects, and creating empty objects of a type.

use super::column;
use crate::function::{Error, ErrorKind, Function, Result, take_call_error};
use crate::value::header::{Header, ObjectRef};
use crate::value::types::{self, FieldInfo, TypeInfo, flag};
use crate::value::{Any, AnyView, RawAny, cast};
use std::ffi::c_void;
use std::ops::Deref;

/// Returns the value of field `name` of an object. The field may belong to an ancestor of its type.
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
/// Returns an AttributeError if the type has no field of this name, and the error of its getter.
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

/// A field of an object: its reflection data and the object.
#[derive(Clone, Copy)]
pub(crate) struct OwnField<'a> {
    /// The object that has the field. It stays alive while the field is read or written.
    object: &'a ObjectRef,
    /// Name, flags, offset, getter and setter.
    info: &'static FieldInfo,
}

impl Deref for OwnField<'_> {
    type Target = FieldInfo;

    fn deref(&self) -> &FieldInfo {
        self.info
    }
}

/// Returns the fields of an object, those of its ancestors first. Returns no fields if its type has no reflection data.
pub(crate) fn fields_of(object: &ObjectRef) -> impl Iterator<Item = OwnField<'_>> {
    let info = types::info(object.type_index());
    let fields = info.into_iter().flat_map(TypeInfo::all_fields);
    fields.map(move |info| OwnField { object, info })
}

/// Returns the fields of two objects of one type in pairs. Returns no pairs if the types differ, because only objects of one type have
/// the same fields at the same offsets.
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
    /// Returns a field of `info` or its ancestors, for an object of that type; otherwise `None`.
    pub(crate) fn find(
        object: &'a ObjectRef,
        info: &TypeInfo,
        field: impl FnOnce(&TypeInfo) -> Option<&'static FieldInfo>,
    ) -> Option<OwnField<'a>> {
        if !types::is_instance(object.type_index(), info.type_index) {
            return None;
        }
        field(info).map(|info| OwnField { object, info })
    }

    /// Returns the address of the field: its offset after the object's header.
    pub(super) fn address(self) -> *mut c_void {
        address(self.object.as_ptr(), self.info)
    }

    /// Reads the field and returns an owned value.
    pub(crate) fn get(self) -> Result {
        let Some(getter) = self.info.getter else {
            return Err(Error::new(
                ErrorKind::Runtime,
                format!("field `{}` cannot be read", self.name()),
            ));
        };
        let mut out = RawAny::NONE;
        // SAFETY: the object's type has the field, which the getter reads (the contract of `types::push_field`).
        let code = unsafe { getter(self.address(), &mut out) };
        if code != 0 {
            // The getter stored the error on this thread. The code -2 of an older getter says that the frontend has it (FUN-01).
            return Err(take_call_error(code));
        }
        // SAFETY: a getter that returns 0 has written an owned value.
        Ok(unsafe { Any::from_raw(out) })
    }

    /// Writes the field. Nothing else reads it meanwhile, because the object is new, or because the ABI makes its holders responsible.
    pub(crate) fn set(self, value: AnyView<'_>) -> Result<()> {
        let field = self.info;
        // A field without the flag for "writable" may have a setter for constructors. That flag is not checked here.
        if field.setter.is_null() {
            return Err(Error::new(
                ErrorKind::Runtime,
                format!("field `{}` cannot be written", field.name()),
            ));
        }
        if field.flags & flag::SETTER_IS_FUNCTION != 0 {
            // SAFETY: with the flag, the setter is a function object that lives forever (the contract of `types::push_field`).
            let setter = unsafe { ObjectRef::retain(field.setter.cast()) };
            let setter = cast::<Function>(AnyView::from(&setter))?;
            // SAFETY: the setter takes the address of such a field, and this is one.
            let at = unsafe { AnyView::handle(self.address()) };
            setter.call_packed(&[at, value])?;
            return Ok(());
        }
        type Setter = unsafe extern "C-unwind" fn(*mut c_void, *const RawAny) -> i32;
        // SAFETY: without the flag, the setter is a C function of this signature (the contract of `types::push_field`).
        let setter = unsafe { std::mem::transmute::<*mut c_void, Setter>(field.setter) };
        // SAFETY: the object's type has the field, which the setter writes; the value lives for the call.
        let code = unsafe { setter(self.address(), value.as_raw()) };
        if code == 0 {
            Ok(())
        } else {
            Err(take_call_error(code))
        }
    }

    /// Sets the field to its default, or to the result of its default factory. Returns false if there is no default. A factory is called
    /// for each object, so that no two objects share a list or dict as default.
    pub(crate) fn set_default(self) -> Result<bool> {
        if self.flags & flag::HAS_DEFAULT == 0 {
            return Ok(false);
        }
        let default = self.default_value();
        if self.flags & flag::DEFAULT_IS_FACTORY != 0 {
            let made = cast::<Function>(default)?.call_packed(&[])?;
            self.set(made.view())?;
        } else {
            self.set(default)?;
        }
        Ok(true)
    }
}

/// Returns the address of a field of `object`. Offsets count from the header, whose address is the object's.
pub(super) fn address(object: *mut Header, field: &FieldInfo) -> *mut c_void {
    object.wrapping_byte_offset(field.offset as isize).cast()
}

/// Creates an empty object of a type, with its native creator or otherwise its attribute `__ffi_new__`.
pub(crate) fn create(info: &'static TypeInfo) -> Result<ObjectRef> {
    // A C++ type has a creator. A type that a frontend defines has only the attribute.
    if let Some(creator) = info.metadata().and_then(|metadata| metadata.creator) {
        let mut out = std::ptr::null_mut();
        // SAFETY: a creator writes an owned handle (the contract of `types::set_metadata`).
        let code = unsafe { creator(&mut out) };
        if code != 0 {
            return Err(take_call_error(code));
        }
        // SAFETY: null, or the handle that the creator has written.
        if let Some(object) = unsafe { ObjectRef::from_nullable(out) } {
            return Ok(object);
        }
    }
    if let Some(new) = column::NEW.value(info.type_index) {
        let made = cast::<ObjectRef>(cast::<Function>(new)?.call_packed(&[])?.view())?;
        // Any library may register the attribute with a function that creates an object of another type.
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

/// Returns whether [`create`] can try to create an object of the type. The attempt may still fail.
pub(crate) fn can_create(info: &'static TypeInfo) -> bool {
    info.metadata()
        .is_some_and(|metadata| metadata.creator.is_some())
        || column::NEW.value(info.type_index).is_some()
}
