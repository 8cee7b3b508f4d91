//! The C interface of tvm-ffi as a C program uses it, called from Rust and without a library, so that Miri can run it.
#![cfg(feature = "runtime")]
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "sequences of calls as a C program makes them, with handles from the calls before"
)]

mod functions;
mod types;
mod values;

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use tvmspec::capi::ffi::error::*;
use tvmspec::function::Error;
use tvmspec::value::header::ObjectRef;
use tvmspec::value::{Any, RawAny};

/// The numbers of freed contexts: of callbacks, and of opaque objects.
static ENDED: [AtomicU32; 2] = [AtomicU32::new(0), AtomicU32::new(0)];

unsafe extern "C-unwind" fn ended(context: *mut c_void) {
    let context = unsafe { Box::from_raw(context.cast::<(usize, i64)>()) };
    ENDED[context.0].fetch_add(1, Ordering::Relaxed);
}

fn context(which: usize, number: i64) -> *mut c_void {
    Box::into_raw(Box::new((which, number))).cast()
}

fn own(raw: RawAny) -> Any {
    unsafe { Any::from_raw(raw) }
}

/// Takes the error of this thread.
fn raised() -> Error {
    let mut error = ptr::null_mut();
    unsafe { TVMFFIErrorMoveFromRaised(&mut error) };
    assert!(!error.is_null(), "nothing was raised");
    Error::from_object(unsafe { ObjectRef::from_raw(error) })
        .ok()
        .unwrap()
}
