//! The C boundary: what a body returns, raises or panics with becomes a code, and a code becomes an error again (FUN-01, FUN-07).

use super::{Error, ErrorKind, FUN_31, Result, set_raised, take_raised};
use crate::rule::Kind;
use crate::value::{RawAny, index};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `body` at the C boundary: its value goes to `result`, its error or panic to this thread's slot (FUN-07).
///
/// # Safety
/// `result` is null or a cell, which can be written to.
#[inline]
pub(super) unsafe fn guard(result: *mut RawAny, body: impl FnOnce() -> Result) -> i32 {
    // SAFETY: null or a cell, by this contract.
    if let Some(place) = unsafe { result.as_ref() }
        && place.type_index() >= index::OBJECT_BEGIN
        && let Err(broken) = FUN_31.demand(Kind::Type, false, || {
            "the place of the result holds an object: expected None".to_owned()
        })
    {
        return fail(Error::of_violation(ErrorKind::Internal, broken));
    }
    // FUN-02: the place is written after the body has returned, and not at all where it failed.
    match caught(body) {
        Ok(value) => {
            // SAFETY: null, or can be written to, by this contract; what is there need not be a value.
            if let Some(place) = unsafe { result.cast::<MaybeUninit<RawAny>>().as_mut() } {
                // FUN-31: nothing is dropped there, since the place holds no object.
                place.write(value.into_raw());
            }
            0
        }
        Err(error) => fail(error),
    }
}

/// Runs `body` and makes an error of a panic in it (FUN-07).
#[inline]
pub(crate) fn caught<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Err(from_panic(panic)))
}

/// Puts `error` into the slot of this thread, and returns the code of a failure.
#[cold]
fn fail(error: Error) -> i32 {
    // FUN-01: an error that the frontend holds, too. Frontends of 0.21 to 0.23 expect -2 and an empty slot for it, but later
    // callers in C++ take the error out of the slot whatever the code is.
    set_raised(error);
    -1
}

/// The error of a caught panic, of kind `InternalError` (FUN-07), with the text that the panic has.
#[cold]
#[inline(never)]
fn from_panic(panic: Box<dyn std::any::Any + Send>) -> Error {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a text");
    Error::new(ErrorKind::Internal, format!("panicked: {text}"))
}

/// Runs `body` at the C boundary of a function without a result: 0, or -1 with the error raised.
pub(crate) fn guard_code(body: impl FnOnce() -> Result<()>) -> i32 {
    match caught(body) {
        Ok(()) => 0,
        Err(error) => fail(error),
    }
}

/// The error behind a return code of a call.
#[cold]
pub(crate) fn raised(code: i32) -> Error {
    // FUN-01: a callee of 0.21 to 0.23. The slot is left alone, because what is in it belongs to another call.
    if code == -2 {
        return Error::new(
            ErrorKind::Frontend,
            "the frontend holds the error of this call",
        );
    }
    // FUN-01: a callee that fails and leaves no error breaks the convention; its caller fails all the same.
    take_raised().unwrap_or_else(|| {
        Error::new(
            ErrorKind::Runtime,
            format!("a call failed with code {code} and left no error"),
        )
    })
}
