//! Keys with hooks of their own: objects that hold a number and are the same key when their last digits are.

use super::ops::{finish, value_of};
use crate::conformance::op::{Answer, Refusal};
use crate::function::{Error, Function};
use crate::object::Dict;
use crate::value::header::{DELETE_WEAK, Header, ObjectRef};
use crate::value::{Any, AnyView, Payload, RawAny, index, types};
use serde_json::{Value, json};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};

/// An object that holds a number.
#[repr(C)]
struct Numbered {
    header: Header,
    number: i64,
}

/// A new object of a type that a runtime gave `type_index`, with one reference.
pub(crate) fn numbered(type_index: i32, number: i64) -> *mut Header {
    let header = Header::new(type_index, delete);
    Box::into_raw(Box::new(Numbered { header, number })).cast()
}

unsafe extern "C-unwind" fn delete(object: *mut Header, flags: i32) {
    if flags & DELETE_WEAK != 0 {
        // SAFETY: made by `numbered`; this is the last that happens to it.
        drop(unsafe { Box::from_raw(object.cast::<Numbered>()) });
    }
}

/// The number of a key.
pub(crate) fn number_of(key: &RawAny) -> i64 {
    // SAFETY: keys of these cases are made by `numbered`.
    unsafe { (*key.ptr().cast::<Numbered>()).number }
}

unsafe extern "C" fn number_hash(key: *const RawAny) -> i64 {
    // SAFETY: the address of a cell that holds a key.
    number_of(unsafe { &*key }) % 10
}

unsafe extern "C" fn number_equal(left: *const RawAny, right: *const RawAny) -> bool {
    // SAFETY: an equality gets the addresses of two cells that hold keys.
    let left = unsafe { number_hash(left) };
    // SAFETY: an equality gets the addresses of two cells that hold keys.
    left == unsafe { number_hash(right) }
}

unsafe extern "C" fn cell_hash(key: *const RawAny) -> RawAny {
    // SAFETY: a hash gets the address of a cell that holds a key.
    let int = unsafe { number_hash(key) };
    RawAny::of(index::INT, Payload { int })
}

unsafe extern "C" fn cell_equal(left: *const RawAny, right: *const RawAny) -> RawAny {
    // SAFETY: an equality gets the addresses of two cells that hold keys.
    let int = i64::from(unsafe { number_equal(left, right) });
    RawAny::of(index::BOOL, Payload { int })
}

/// The hash and the equality of keys in the form that a case names: `number` of tvm-ffi 0.1.9 to 0.1.14, `cell` from
/// 0.1.15 on. `None` for function objects.
pub(crate) fn bare(form: &str) -> Option<[*mut c_void; 2]> {
    match form {
        "number" => Some([number_hash as *mut c_void, number_equal as *mut c_void]),
        "cell" => Some([cell_hash as *mut c_void, cell_equal as *mut c_void]),
        _ => None,
    }
}

/// A name for the type of a case's keys that no type has yet.
pub(crate) fn fresh_key() -> String {
    static RUN: AtomicU32 = AtomicU32::new(0);
    format!("case.hooked{}", RUN.fetch_add(1, Ordering::Relaxed))
}

/// Form and numbers of a case.
pub(crate) fn asked(value: &Value) -> (&str, Vec<i64>) {
    let form = value.get("form").and_then(Value::as_str);
    let numbers = value.get("numbers").and_then(Value::as_array);
    let numbers = numbers.into_iter().flatten().filter_map(Value::as_i64);
    (form.unwrap_or_default(), numbers.collect())
}

/// `object.hooked`.
pub(super) fn hooked(args: &Value) -> Result<Answer, Refusal> {
    let (form, numbers) = asked(value_of(args)?);
    let type_index = types::register(&fresh_key(), index::OBJECT)?;
    let hooks = match bare(form) {
        // SAFETY: C functions of this file, of the convention of the attributes that they become below.
        Some(hooks) => hooks.map(|hook| unsafe { Any::handle(hook) }),
        None => functions().map(Any::from),
    };
    for (name, hook) in ["__any_hash__", "__any_equal__"].into_iter().zip(hooks) {
        // SAFETY: a function object, or a C function of that attribute's convention.
        unsafe { types::set_any_attr(type_index, name, hook) }?;
    }
    let dict = Dict::new();
    for (at, number) in (0i64..).zip(&numbers) {
        // SAFETY: it was just made, and its reference is ours.
        let key = unsafe { ObjectRef::from_nullable(numbered(type_index, *number)) };
        finish(dict.set(Any::from(key), at).map(Value::from))?;
    }
    let mut found = Vec::new();
    for digit in 0..10 {
        // SAFETY: `numbered` has just made it, and its reference is ours.
        let key = unsafe { ObjectRef::from_nullable(numbered(type_index, digit)) };
        let key = Any::from(key);
        match dict.get(key.view()) {
            Ok(None) => {}
            Ok(Some(value)) => found.push(json!([digit, value.as_raw().int()])),
            Err(error) => return finish(Err(error)),
        }
    }
    finish(Ok(json!({"pairs": dict.len(), "found": found})))
}

fn functions() -> [Function; 2] {
    let digit = |key: &AnyView<'_>| number_of(key.as_raw()) % 10;
    [
        Function::named(None, move |key: AnyView<'_>| Ok::<i64, Error>(digit(&key))),
        Function::named(None, move |left: AnyView<'_>, right: AnyView<'_>| {
            Ok::<bool, Error>(digit(&left) == digit(&right))
        }),
    ]
}
