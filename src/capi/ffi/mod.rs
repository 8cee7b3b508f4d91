//! The C interface of tvm-ffi (from 0.21 on). Declared in `include/tvm_ffi_c_api.h`.
//!
//! The chapters define the behaviour of the functions, except backtraces and the symbols of C++, which no chapter needs: [`backtrace`]
//! walks the stack, and `cxx` contains classes and functions by their mangled names. No panic leaves these functions (FUN-07). Those that
//! return a code return 0, or -1 with the error raised on this thread (FUN-01, FUN-06), or the code of a callback (VAL-24).
//! [`TVMFFITypeGetOrAllocIndex`](types::TVMFFITypeGetOrAllocIndex) returns an index.

pub mod allocator;
pub mod backtrace;
#[cfg(all(feature = "cxx", target_arch = "x86_64", target_os = "linux"))]
pub mod cxx;
pub mod env;
pub mod error;
pub mod function;
pub mod module;
pub mod object;
pub mod tensor;
pub mod types;
pub mod value;

use crate::function::{Result, catch_panic, set_raised};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

/// Registers the library's types and functions, once.
#[inline]
pub(crate) fn init() {
    static READY: AtomicBool = AtomicBool::new(false);
    if !READY.load(Ordering::Acquire) {
        static INIT: Once = Once::new();
        INIT.call_once(|| {
            crate::object::init();
            crate::module::builtin::register();
            // After the registrations: a thread that reads true finds every name.
            READY.store(true, Ordering::Release);
        });
    }
}

/// Runs the body of a C function.
#[inline]
fn enter(body: impl FnOnce() -> Result<()>) -> i32 {
    match catch_panic(body) {
        Ok(()) => 0,
        Err(error) => {
            set_raised(error);
            -1
        }
    }
}

/// Like [`enter`], for a body that stores the code of a callback. A code other than 0 is the result, and the error in the slot is then the
/// callback's (VAL-24).
#[inline]
fn enter_with_callback(body: impl FnOnce(&mut i32) -> Result<()>) -> i32 {
    let mut code = 0;
    let entered = enter(|| body(&mut code));
    if code != 0 { code } else { entered }
}
