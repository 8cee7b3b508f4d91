//! The C boundary: converts results, errors and panics of a body to a code, and a code back to an error (FUN-01, FUN-07).

use super::{Error, ErrorKind, FUN_31, Result, set_raised, take_raised};
use crate::rule::Kind;
use crate::value::{RawAny, index};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `body` at the C boundary. Stores its value in `result`, or its error or panic in this thread's slot (FUN-07).
///
/// # Safety
/// `result` is null or a writable cell.
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
    // FUN-02: the result is written only after the body has returned, and only if it succeeded.
    match catch_panic(body) {
        Ok(value) => {
            // SAFETY: null, or writable, by this contract; its content need not be a value.
            if let Some(place) = unsafe { result.cast::<MaybeUninit<RawAny>>().as_mut() } {
                // FUN-31: nothing is dropped, because the cell holds no object.
                place.write(value.into_raw());
            }
            0
        }
        Err(error) => fail(error),
    }
}

/// Runs `body` and converts a panic to an error (FUN-07).
#[inline]
pub(crate) fn catch_panic<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Err(from_panic(panic)))
}

/// Stores `error` in the slot of this thread, and returns the code of a failure.
#[cold]
fn fail(error: Error) -> i32 {
    // FUN-01: the error is also set if the frontend has stored it. Frontends of 0.21 to 0.23 expect -2 and an empty slot for such an
    // error. Later C++ callers take the error from the slot for any code.
    set_raised(error);
    -1
}

/// Returns the error of a caught panic: an `InternalError` (FUN-07) with the text of the panic.
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

/// Runs `body` at the C boundary of a function without a result. Returns 0, or -1 with the error raised.
pub(crate) fn guard_code(body: impl FnOnce() -> Result<()>) -> i32 {
    match catch_panic(body) {
        Ok(()) => 0,
        Err(error) => fail(error),
    }
}

/// Returns the error for a failed call's code.
#[cold]
pub(crate) fn take_call_error(code: i32) -> Error {
    // FUN-01: a callee of 0.21 to 0.23. The slot stays unchanged, because its error belongs to another call.
    if code == -2 {
        return Error::new(
            ErrorKind::Frontend,
            "the frontend holds the error of this call",
        );
    }
    // FUN-01: a callee that fails without an error breaks the convention. Its caller fails nevertheless.
    take_raised().unwrap_or_else(|| {
        Error::new(
            ErrorKind::Runtime,
            format!("a call failed with code {code} and left no error"),
        )
    })
}
