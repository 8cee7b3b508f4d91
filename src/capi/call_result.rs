//! Results of C functions that can fail or return a text, and C callbacks.

use super::extras::{c_text, put_text};
use crate::rule::Violation;
use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The reason why a call fails.
pub(super) enum CallFailure {
    /// A broken rule; the code is 1.
    Broken(Violation),
    /// Any other failure; the code is 2.
    Other(io::Error),
}

impl From<Violation> for CallFailure {
    fn from(broken: Violation) -> CallFailure {
        CallFailure::Broken(broken)
    }
}

pub(super) fn invalid(why: impl ToString) -> CallFailure {
    CallFailure::Other(io::Error::new(io::ErrorKind::InvalidInput, why.to_string()))
}

/// Runs `body` and stores its text, or its error message.
///
/// # Safety
///
/// `text` is null or a place for a text.
pub(super) unsafe fn answer(
    text: *mut *mut c_char,
    body: impl FnOnce() -> Result<String, CallFailure>,
) -> c_int {
    let (code, message) = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(text)) => (0, text),
        Ok(Err(CallFailure::Broken(broken))) => (1, broken.to_string()),
        Ok(Err(CallFailure::Other(why))) => (2, why.to_string()),
        // A panic must not reach C, so it is reported like any other failure of the call.
        Err(_) => (2, "the call panicked".to_owned()),
    };
    // SAFETY: null or a place for a text, by this contract.
    unsafe { put_text(text, message) };
    code
}

/// Returns the text, with invalid UTF-8 replaced. Null is an empty text.
///
/// # Safety
///
/// `text` is null or a C string.
pub(super) unsafe fn text_of(text: *const c_char) -> String {
    // SAFETY: null or a C string, by this contract.
    unsafe { c_text(text) }.map_or_else(String::new, |text| text.to_string_lossy().into_owned())
}

/// Converts `text` for C. A NUL inside ends it; JSON has none.
pub(super) fn to_c(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or_default()).unwrap_or_default()
}

/// A C callback with its context, which any thread may call.
#[derive(Clone, Copy)]
pub(super) struct CHook<F> {
    pub(super) call: F,
    pub(super) context: *mut c_void,
}

// SAFETY: any thread may call it with its context, by the contract of the functions that take one.
unsafe impl<F> Send for CHook<F> {}
// SAFETY: several threads may call it at once, by the same contract.
unsafe impl<F> Sync for CHook<F> {}
