//! The C interface of 0.8 to 0.20 (`tvm/runtime/c_runtime_api.h`) and the types of extensions of 0.2 to 0.6. Declared in
//! `include/tvm_c_runtime_api.h`.
//!
//! | functions | behaviour defined in |
//! |---|---|
//! | [`function`]: `TVMFunc*`, `TVMCFuncSetReturn`, `TVMCbArgToReturn` | `function::legacy`, FUN-13 to FUN-24 |
//! | [`error`]: last errors, the frontend's functions | `function::legacy`, `function::frontend` |
//! | [`module`]: `TVMMod*`, `TVMBackendGetFuncFromEnv` | [`module`](crate::module) |
//! | `extension`: `TVMExtTypeFree`, and registration of a type in C++ of 0.2 to 0.6 | [`value`](crate::value), VAL-22 |
//! | [`object`]: `TVMObject*` | [`value`](crate::value) |
//! | [`array`](mod@array): `TVMArray*`, DLPack | [`object::Tensor`](crate::object::Tensor), [`device`](crate::device) |
//! | [`device`]: streams, memory, copies | [`device`](crate::device) |
//!
//! Functions that return an int return 0, or -1 with a text that [`TVMGetLastError`] returns on the same thread. Handles of modules,
//! functions and objects are objects of this crate. Handles of arrays are the addresses of their descriptions, as in every release with
//! this interface.

pub mod array;
pub mod device;
pub mod error;
pub mod extension;
pub mod function;
pub mod module;
pub mod object;

pub use array::*;
pub use device::*;
pub use error::*;
pub use extension::*;
pub use function::*;
pub use module::*;
pub use object::*;

use crate::function::legacy::failure;
use crate::function::{Error, ErrorKind, catch_panic};
use std::ffi::{CStr, c_char, c_int, c_void};

type Handle = *mut c_void;

/// Runs `body` at the boundary. Its error or panic becomes the text of this thread's last failure.
fn guard(body: impl FnOnce() -> Result<(), Error>) -> c_int {
    let outcome = catch_panic(|| {
        // This may be the first call of the process, before any type or global function is registered.
        super::ffi::init();
        body()
    });
    outcome.map_or_else(failure::report, |()| 0)
}

/// Returns the text that a caller passes as `what`.
///
/// # Safety
///
/// `text` is null or a C string.
unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str, Error> {
    if text.is_null() {
        return Err(Error::new(ErrorKind::Value, format!("{what} is null")));
    }
    // SAFETY: `text` is not null, so a C string, by this contract.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str()
        .map_err(|_| Error::new(ErrorKind::Value, format!("{what} is not UTF-8")))
}

/// Writes a result to the place of the caller.
///
/// # Safety
///
/// `place` is null or valid for a write.
unsafe fn write_result<T>(place: *mut T, value: T) -> Result<(), Error> {
    if place.is_null() {
        return Err(Error::new(
            ErrorKind::Value,
            "the place for the result is null",
        ));
    }
    // SAFETY: `place` is not null, so valid for a write, by this contract.
    unsafe { place.write(value) };
    Ok(())
}
