//! Calls of 0.2 to 0.20. A function is a handle, and arguments are values of 8 bytes with an array of type codes. An error is a text on
//! the thread.
//!
//! | content | module | rules |
//! |---|---|---|
//! | arguments, in both directions | [`arguments`] | FUN-19, VAL-19 |
//! | calls, results, and the data that stays on the thread after them | [`result`] | FUN-13, FUN-16, FUN-24 |
//! | functions of C callbacks | [`callback`] | FUN-17 to FUN-20 |
//! | failures of calls | [`failure`], [`last_error`] | FUN-14, FUN-15, FUN-18 |
//!
//! The registry of FUN-21 to FUN-23 is [`registry`](super::registry), and the error object of a frontend is in
//! [`frontend`](super::frontend) (FUN-25).
//!
//! Handles are objects of this crate. The handle of a function, a module or an object is the address of the object. The handle of a tensor
//! is the address of the description inside it.

mod arguments;
pub(crate) mod callback;
pub(crate) mod failure;
pub(crate) mod last_error;
mod result;

pub(crate) use arguments::{PackedArguments, argument, views};
pub(crate) use result::{call, global_names, take_result};
#[cfg(feature = "suite")]
pub(crate) use {arguments::view, result::pass_result};

use super::{Error, Function, Result};
use crate::function::ErrorKind;
use crate::release::Release;
use crate::value::header::ObjectRef;
use std::ffi::c_void;

/// The release whose codes and texts are produced: the last one with this convention.
pub(crate) const SPOKEN: Release = Release::of(20);

/// Returns the function of a handle.
///
/// # Safety
///
/// `handle` is null or a live object.
pub(crate) unsafe fn function(handle: *mut c_void) -> Result<Function> {
    // SAFETY: `handle` is null or a live object, by this contract.
    let object = unsafe { object(handle) }?;
    // Releases call any handle. Handles of this crate are objects, so the type can be checked.
    Function::from_object(object)
        .map_err(|_| Error::new(ErrorKind::Type, "the handle is not a function"))
}

/// Returns the object of a handle, with a new reference.
///
/// # Safety
///
/// `handle` is null or a live object.
pub(crate) unsafe fn object(handle: *mut c_void) -> Result<ObjectRef> {
    // Releases dereference a null handle, which crashes the process.
    if handle.is_null() {
        return Err(Error::new(ErrorKind::Value, "a null handle"));
    }
    // SAFETY: not null, so a live object, by this contract.
    Ok(unsafe { ObjectRef::retain(handle.cast()) })
}
