//! The C interface of 0.8 to 0.20 as a C program uses it, called from Rust and without a library, so that Miri can run it.
#![cfg(feature = "runtime")]
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "sequences of calls as a C program makes them, with handles from the calls before"
)]

mod compiled;
mod functions;
mod types;

use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use tvmspec::capi::legacy::*;
use tvmspec::function::{Error, Function, registry};
use tvmspec::value::legacy::{TVMValue, code};
use tvmspec::value::{Any, AnyView};

fn call(function: *mut c_void, mut value: TVMValue, mut of: c_int) -> (c_int, TVMValue, c_int) {
    let (mut result, mut result_code) = (TVMValue::ZERO, code::NULL);
    let done = unsafe {
        TVMFuncCall(
            function,
            &mut value,
            &mut of,
            1,
            &mut result,
            &mut result_code,
        )
    };
    (done, result, result_code)
}

fn last_error() -> String {
    unsafe { CStr::from_ptr(TVMGetLastError()) }
        .to_string_lossy()
        .into_owned()
}

/// Registers `body` under `name` and returns it as a function of the old interface.
fn registered(
    name: &CStr,
    body: impl Fn(&[AnyView<'_>]) -> Result<Any, Error> + Send + Sync + 'static,
) -> *mut c_void {
    let function = Function::from_packed(body);
    registry::register(name.to_str().unwrap(), function, true).unwrap();
    let mut found = ptr::null_mut();
    assert_eq!(unsafe { TVMFuncGetGlobal(name.as_ptr(), &mut found) }, 0);
    found
}
