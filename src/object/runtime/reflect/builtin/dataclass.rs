//! Copy, text, comparison and hash by content, and constructors (OBJ-13 to OBJ-15). Python's dataclasses are built on them.
//!
//! `ffi.MakeFieldSetter` and `ffi.MakeFieldGetter` pass addresses as ints, as in upstream. Python passes the addresses of functions in its
//! extension module that way.

use super::{def, def_packed};
use crate::function::{Error, ErrorKind, Function, take_call_error};
use crate::object::reflect::construct;
use crate::object::reflect::storage::{getter_for, store};
use crate::object::walk::copy;
use crate::object::{recursive, repr};
use crate::value::{Any, RawAny, cast};
use std::ffi::c_void;

/// Registers the functions of this file. Hashes are 64 bits as an int. The four order functions raise a TypeError for values without an
/// order (OBJ-14).
pub(super) fn register() {
    def("ffi._RegisterFFIInit", construct::register_init);
    def(
        "ffi.MakeFieldSetter",
        |field_type: i32, converter: i64, convert: i64| make_setter(field_type, converter, convert),
    );
    def(
        "ffi._PyClassRegisterTypeAttrColumns",
        |type_index: i32, size: i64| construct::register_frontend_type(type_index, size),
    );
    def("ffi.DeepCopy", |value: Any| copy::deep_copy(value.view()));
    def("ffi.ReprPrint", |value: Any| repr::repr(value.view()));
    def("ffi.RecursiveHash", |value: Any| {
        recursive::hash(value.view()).map(|hash| hash as i64)
    });
    // The address of a C function: `TVMFFIFieldInfo` can store one, but no function object.
    def("ffi.MakeFieldGetter", |field_type: i32| {
        getter_for(field_type).map(|getter| getter as usize as i64)
    });
    def("ffi.RecursiveEq", |left: Any, right: Any| {
        recursive::equal(left.view(), right.view())
    });
    macro_rules! orders {
        ($($name:literal $operator:tt)*) => {$(
            def($name, |left: Any, right: Any| {
                Ok::<bool, Error>(recursive::compare(left.view(), right.view())? $operator 0)
            });
        )*};
    }
    orders! { "ffi.RecursiveLt" < "ffi.RecursiveLe" <= "ffi.RecursiveGt" > "ffi.RecursiveGe" >= }
    def_packed("ffi.MakeObjectFromPackedArgs", construct::make_object);
}

/// Returns a setter that lets the frontend convert the value and then stores it.
///
/// `field_type` is the declared type index of the field, `converter` a context for `convert`, and `convert` the address of a `fn(context,
/// value, result) -> code`. The setter takes the address of the field and the value.
fn make_setter(field_type: i32, converter: i64, convert: i64) -> Result<Function, Error> {
    /// Converts a borrowed value into an owned one. Returns 0, or a code with the error raised on this thread.
    type Convert = unsafe extern "C-unwind" fn(*mut c_void, *const RawAny, *mut RawAny) -> i32;
    if convert == 0 {
        return Err(Error::new(
            ErrorKind::Value,
            "the conversion function is null",
        ));
    }
    // Stored as numbers, so that the function can move to another thread. The frontend is responsible for how it uses the context there.
    let (converter, convert) = (converter as usize, convert as usize);
    Ok(Function::from_packed(move |args| {
        let [at, value] = args else {
            return Err(Error::new(
                ErrorKind::Type,
                "a setter takes an address and a value",
            ));
        };
        let at = cast::<*mut c_void>(*at)?;
        let mut converted = RawAny::NONE;
        // SAFETY: the caller that looked up this builtin guarantees (the contract of `registry::lookup_raw`) that this is the address of a
        // function with this signature.
        let convert = unsafe { std::mem::transmute::<usize, Convert>(convert) };
        // SAFETY: as for the function, with its context; the value lives for the call.
        let code = unsafe { convert(converter as *mut c_void, value.as_raw(), &mut converted) };
        if code != 0 {
            return Err(take_call_error(code));
        }
        // SAFETY: a conversion that returns 0 has written an owned value.
        let converted = unsafe { Any::from_raw(converted) };
        // SAFETY: the address of such a field, which `OwnField::set` passes; a setter is only used for that.
        unsafe { store(at, field_type, converted) }?;
        Ok(Any::none())
    }))
}
