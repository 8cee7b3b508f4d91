//! Keys with their own hash and equality: objects that hold a number. Two are the same key if the last digits are equal.

use crate::conformance::runtime::case_numbers::{self, NoNumber};
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

/// Creates an object of the type with index `type_index` in a runtime. It has one reference.
pub(crate) fn numbered(type_index: i32, number: i64) -> *mut Header {
    let header = Header::new(type_index, delete);
    Box::into_raw(Box::new(Numbered { header, number })).cast()
}

/// Frees the memory of the object after its last reference (VAL-05). A number needs no destructor.
unsafe extern "C-unwind" fn delete(object: *mut Header, flags: i32) {
    if flags & DELETE_WEAK != 0 {
        // SAFETY: `numbered` made the object, and it is not used after this call.
        drop(unsafe { Box::from_raw(object.cast::<Numbered>()) });
    }
}

/// Returns the number of a key.
pub(crate) fn number_of(key: &RawAny) -> i64 {
    // SAFETY: `numbered` makes all keys of these cases.
    unsafe { (*key.ptr().cast::<Numbered>()).number }
}

/// Hashes a key in the form of tvm-ffi 0.1.9 to 0.1.14, which returns the hash itself.
unsafe extern "C" fn number_hash(key: *const RawAny) -> i64 {
    // SAFETY: `key` is the address of a cell that holds a key.
    number_of(unsafe { &*key }) % 10
}

/// Compares two keys in the form of tvm-ffi 0.1.9 to 0.1.14.
unsafe extern "C" fn number_equal(left: *const RawAny, right: *const RawAny) -> bool {
    // SAFETY: an equality function gets the addresses of two cells that hold keys.
    let left = unsafe { number_hash(left) };
    // SAFETY: an equality function gets the addresses of two cells that hold keys.
    left == unsafe { number_hash(right) }
}

/// Hashes a key in the form since 0.1.15. This form returns a cell, which can also hold an error.
unsafe extern "C" fn cell_hash(key: *const RawAny) -> RawAny {
    // SAFETY: a hash function gets the address of a cell that holds a key.
    let int = unsafe { number_hash(key) };
    RawAny::of(index::INT, AnyPayload { int })
}

/// Compares two keys in the form since 0.1.15.
unsafe extern "C" fn cell_equal(left: *const RawAny, right: *const RawAny) -> RawAny {
    // SAFETY: an equality function gets the addresses of two cells that hold keys.
    let int = i64::from(unsafe { number_equal(left, right) });
    RawAny::of(index::BOOL, AnyPayload { int })
}

/// Returns the hash and equality functions in the form that a case names: `number` for tvm-ffi 0.1.9 to 0.1.14, `cell` since 0.1.15.
/// Returns `None` for function objects.
pub(crate) fn bare(form: &str) -> Option<[*mut c_void; 2]> {
    match form {
        "number" => Some([number_hash as *mut c_void, number_equal as *mut c_void]),
        "cell" => Some([cell_hash as *mut c_void, cell_equal as *mut c_void]),
        _ => None,
    }
}

/// Returns a type key that no type has yet.
pub(crate) fn fresh_key() -> String {
    static RUN: AtomicU32 = AtomicU32::new(0);
    format!("case.hooked{}", RUN.fetch_add(1, Ordering::Relaxed))
}

/// Returns the form and the numbers of a case.
pub(super) fn form_and_numbers(value: &Value) -> Result<(&str, Vec<i64>), NoNumber> {
    let form = value.get("form").and_then(Value::as_str);
    let numbers = value.get("numbers").and_then(Value::as_array);
    let numbers = numbers.into_iter().flatten();
    let numbers = numbers
        .map(case_numbers::number_of)
        .collect::<Result<_, _>>()?;
    Ok((form.unwrap_or_default(), numbers))
}
