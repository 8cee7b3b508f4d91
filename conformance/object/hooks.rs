//! Keys with hooks of their own: objects that hold a number and are the same key when their last digits are.

use crate::conformance::runtime::number::{self, NoNumber};
use crate::value::header::{DELETE_WEAK, Header};
use crate::value::{AnyPayload, RawAny, index};
use serde_json::Value;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};

/// An object that holds a number.
#[repr(C)]
struct Numbered {
    header: Header,
    number: i64,
}

/// A new object of a type whose index in a runtime is `type_index`, with one reference.
pub(crate) fn numbered(type_index: i32, number: i64) -> *mut Header {
    let header = Header::new(type_index, delete);
    Box::into_raw(Box::new(Numbered { header, number })).cast()
}

/// Frees the object with its last reference (VAL-05): a number has no end of its own.
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

/// The form of tvm-ffi 0.1.9 to 0.1.14: the hash itself is returned.
unsafe extern "C" fn number_hash(key: *const RawAny) -> i64 {
    // SAFETY: the address of a cell that holds a key.
    number_of(unsafe { &*key }) % 10
}

/// The same for equality.
unsafe extern "C" fn number_equal(left: *const RawAny, right: *const RawAny) -> bool {
    // SAFETY: an equality gets the addresses of two cells that hold keys.
    let left = unsafe { number_hash(left) };
    // SAFETY: an equality gets the addresses of two cells that hold keys.
    left == unsafe { number_hash(right) }
}

/// The form from 0.1.15 on: a value is returned, in which an error has a place too.
unsafe extern "C" fn cell_hash(key: *const RawAny) -> RawAny {
    // SAFETY: a hash gets the address of a cell that holds a key.
    let int = unsafe { number_hash(key) };
    RawAny::of(index::INT, AnyPayload { int })
}

/// The same for equality.
unsafe extern "C" fn cell_equal(left: *const RawAny, right: *const RawAny) -> RawAny {
    // SAFETY: an equality gets the addresses of two cells that hold keys.
    let int = i64::from(unsafe { number_equal(left, right) });
    RawAny::of(index::BOOL, AnyPayload { int })
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
pub(super) fn form_and_numbers(value: &Value) -> Result<(&str, Vec<i64>), NoNumber> {
    let form = value.get("form").and_then(Value::as_str);
    let numbers = value.get("numbers").and_then(Value::as_array);
    let numbers = numbers.into_iter().flatten();
    let numbers = numbers.map(number::number_of).collect::<Result<_, _>>()?;
    Ok((form.unwrap_or_default(), numbers))
}
