//! The registry of 0.21 with the functions of 0.20.

use super::values::{content, view};
use super::{call_ffi_function, called_global, fail, functions};
use crate::conformance::runtime::RawHandle;
use crate::value::legacy::{TVMValue, code};
use crate::value::{AnyPayload, ByteArray, RawAny, index};
use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr;

/// Converts a C string to the form of tvm-ffi names.
///
/// # Safety
///
/// `name` is a C string, and lives for the call.
unsafe fn name_of(name: *const c_char) -> ByteArray {
    // SAFETY: the contract of this function requires it.
    ByteArray::of(unsafe { CStr::from_ptr(name) }.to_bytes())
}

pub(super) unsafe extern "C" fn register(
    name: *const c_char,
    function: RawHandle,
    over: c_int,
) -> c_int {
    // SAFETY: a name, by the contract of `TVMFuncRegisterGlobal`.
    let name = unsafe { name_of(name) };
    // SAFETY: a name and a function.
    match unsafe { (functions().set)(&raw const name, function, over) } {
        0 => 0,
        _ => fail(),
    }
}

/// The names in 0.21 of the registry functions that cases need.
const RENAMED: [(&str, &str); 5] = [
    ("runtime.ArrayGetItem", "ffi.ArrayGetItem"),
    ("runtime.ArraySize", "ffi.ArraySize"),
    ("runtime.Map", "ffi.Map"),
    ("runtime.MapItems", "tvmspec.MapItems"),
    ("runtime.ShapeTuple", "ffi.Shape"),
];

pub(super) unsafe extern "C" fn find(name: *const c_char, out: *mut RawHandle) -> c_int {
    // SAFETY: a name, by the contract of `TVMFuncGetGlobal`.
    let text = unsafe { CStr::from_ptr(name) }.to_bytes();
    let renamed = RENAMED
        .iter()
        .find(|(of_0_20, _)| of_0_20.as_bytes() == text);
    let name = renamed.map_or(text, |(_, name)| name.as_bytes());
    if name == b"tvmspec.MapItems" {
        // SAFETY: `map_items` needs nothing, and `out` is an out pointer.
        return unsafe { (functions().create)(ptr::null_mut(), map_items, Some(end_nothing), out) };
    }
    // SAFETY: a name and an out pointer.
    match unsafe { (functions().find)(&ByteArray::of(name), out) } {
        0 => 0,
        _ => fail(),
    }
}

/// Does nothing when a function without a context is freed, because 0.21 always calls it.
unsafe extern "C" fn end_nothing(_: RawHandle) {}

/// Returns the keys and values of a map, as one array.
unsafe extern "C" fn map_items(
    _: RawHandle,
    args: *const RawAny,
    _: c_int,
    out: *mut RawAny,
) -> c_int {
    // SAFETY: one argument, the map.
    let map = unsafe { *args };
    let items = || {
        let count = called_global("ffi.MapSize", &[map])?.int();
        let iterator = called_global("ffi.MapForwardIterFunctor", &[map])?;
        let at = |what: i64| {
            call_ffi_function(
                iterator.ptr(),
                &[RawAny::of(index::INT, AnyPayload { int: what })],
            )
        };
        let mut items = Vec::new();
        for pair in 0..count {
            // The iterator takes a command: 0 for the key, 1 for the value, 2 to advance.
            items.extend([at(0)?, at(1)?]);
            if pair + 1 < count {
                at(2)?;
            }
        }
        called_global("ffi.Array", &items)
    };
    match items() {
        Ok(array) => {
            // SAFETY: the cell of the call.
            unsafe { out.write(array) };
            0
        }
        Err(code) => code,
    }
}

/// Returns the names, which remain valid for the life of the process.
pub(super) unsafe extern "C" fn names(count: *mut c_int, list: *mut *const *const c_char) -> c_int {
    let names = || {
        let names = called_global("ffi.FunctionListGlobalNamesFunctor", &[])?;
        let at = |int: i64| {
            call_ffi_function(names.ptr(), &[RawAny::of(index::INT, AnyPayload { int })])
        };
        let texts = (0..at(-1)?.int()).map(|number| {
            let name = at(number)?;
            // SAFETY: a name is a string, which is kept.
            let text = unsafe { content(name.ptr()) };
            let text = CString::new(text).unwrap_or_default();
            Ok(text.into_raw().cast_const())
        });
        texts.collect::<Result<Vec<*const c_char>, c_int>>()
    };
    match names() {
        Ok(names) => {
            let names = names.leak();
            // SAFETY: a valid out pointer.
            unsafe { count.write(c_int::try_from(names.len()).unwrap_or(c_int::MAX)) };
            // SAFETY: a valid out pointer.
            unsafe { list.write(names.as_ptr()) };
            0
        }
        Err(code) => code,
    }
}

pub(super) unsafe extern "C" fn remove(name: *const c_char) -> c_int {
    let v_str = name.cast();
    // SAFETY: a NUL-terminated string, by the contract of `TVMFuncRemoveGlobal`.
    let name = unsafe { view((TVMValue { v_str }, code::STR)) };
    called_global("ffi.FunctionRemoveGlobal", &[name]).map_or_else(|code| code, |_| 0)
}
