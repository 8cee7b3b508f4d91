//! Symbols that C++ consumers of `libtvm_ffi.so` link in addition to the C interface. They are functions by their mangled names, and
//! the type information and vtables of the two classes with inline members.
//!
//! Written for x86-64 System V with libstdc++. In this ABI, a result with a destructor is written through a hidden first argument. No
//! function here takes such a value as an argument. An error leaves as a C++ exception of the class `tvm::ffi::Error`, and Rust frames
//! up to the handler unwind.
//!
//! All functions have the same contract, "as C++ calls it". The caller is C++ code that was compiled with the declaration of the
//! function with that name.
//!
//! * A hidden `out` is an uninitialised place for the result, which the function fills unless it throws.
//! * `this` is a live module.
//! * A reference is the address of a live object of the declared class, which does not change during the call: a cell for `Any`, `String`
//!   and optional values, a handle for object references. A pointer is null or the address of a writable object.
//!
//! | file | content |
//! |---|---|
//! | `classes` | tables of `tvm::ffi::Error` and `tvm::ffi::ModuleObj` |
//! | `values` | functions on values: JSON, graphs, structural comparison, copies, text |
//! | `modules` | the members of `Module` and `ModuleObj` |

mod classes;
mod modules;
mod values;

use crate::function::{Error, Result};
use crate::module::cxx::throwing::{self, Exception};
use crate::value::{AnyView, RawAny, str_bytes};
use std::ffi::c_void;

#[link(name = "stdc++")]
unsafe extern "C-unwind" {
    fn __cxa_allocate_exception(size: usize) -> *mut c_void;
    fn __cxa_throw(
        exception: *mut c_void,
        type_information: *const c_void,
        destroy: unsafe extern "C-unwind" fn(*mut c_void),
    ) -> !;
}

/// Throws an error as a C++ exception.
fn throw(error: Error) -> ! {
    // SAFETY: `__cxa_allocate_exception` returns memory for that many bytes, or aborts the process.
    let memory = unsafe { __cxa_allocate_exception(size_of::<Exception>()) };
    // The exception owns the reference. C++ calls `throwing::destroy` after the last handler, which drops it.
    let exception = Exception {
        table: classes::error_table(),
        error: error.into_object().into_raw(),
    };
    // SAFETY: `memory` has that size, and the alignment of every type.
    unsafe { memory.cast::<Exception>().write(exception) };
    // SAFETY: `memory` holds an exception with the table of its class, and the type information of that class.
    unsafe {
        __cxa_throw(
            memory,
            (&raw const classes::ERROR_INFO).cast(),
            throwing::destroy,
        )
    }
}

fn or_throw<T>(result: Result<T>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => throw(error),
    }
}

/// Writes a result and returns its place, as C++ expects.
///
/// # Safety
/// `place` is an uninitialised place for the result.
unsafe fn returned<T>(place: *mut T, value: T) -> *mut T {
    // SAFETY: `place` is uninitialised and writable, by this contract.
    unsafe { place.write(value) };
    place
}

/// Returns the value of a reference.
///
/// # Safety
/// `cell` is a reference to a cell that lives for `'a`.
unsafe fn view<'a>(cell: *const RawAny) -> AnyView<'a> {
    // SAFETY: `cell` is a reference to a cell, by this contract.
    let cell = unsafe { cell.read() };
    // SAFETY: the cell lives for `'a`, by this contract.
    unsafe { AnyView::from_raw(cell) }
}

/// Returns the text of a string reference.
///
/// # Safety
/// `cell` is a reference to a cell.
unsafe fn text(cell: *const RawAny) -> String {
    // SAFETY: `cell` is a reference to a cell, by this contract, which lives for the call.
    let view: AnyView<'_> = unsafe { view(cell) };
    String::from_utf8_lossy(str_bytes(&view).unwrap_or_default()).into_owned()
}
