//! What a function of C answers where a call fails or leaves a text, and callbacks of C.

use super::extras::{c_text, put_text};
use crate::rule::Violation;
use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Why a call fails.
pub(super) enum CallFailure {
    /// A rule is broken: 1.
    Broken(Violation),
    /// Anything else: 2.
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

/// Runs `body` and leaves its text, or its message.
///
/// # Safety
///
/// `text` must be null or a place for a text.
pub(super) unsafe fn answer(
    text: *mut *mut c_char,
    body: impl FnOnce() -> Result<String, CallFailure>,
) -> c_int {
    let (code, message) = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(text)) => (0, text),
        Ok(Err(CallFailure::Broken(broken))) => (1, broken.to_string()),
        Ok(Err(CallFailure::Other(why))) => (2, why.to_string()),
        // A panic that reaches C ends the process, so that it is a failure of the call as any other.
        Err(_) => (2, "the call panicked".to_owned()),
    };
    // SAFETY: null or a place for a text, by this contract.
    unsafe { put_text(text, message) };
    code
}

/// The text, with what is not UTF-8 replaced; empty where it is null.
///
/// # Safety
///
/// `text` must be null or a C string.
pub(super) unsafe fn text_of(text: *const c_char) -> String {
    // SAFETY: null or a C string, by this contract.
    unsafe { c_text(text) }.map_or_else(String::new, |text| text.to_string_lossy().into_owned())
}

/// `text` for C: a NUL inside ends it, and JSON has none.
pub(super) fn to_c(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or_default()).unwrap_or_default()
}

/// A callback of C with its context, which any thread may call.
#[derive(Clone, Copy)]
pub(super) struct CHook<F> {
    pub(super) call: F,
    pub(super) context: *mut c_void,
}

// SAFETY: any thread may call it with its context, by the contract of the functions that take one.
unsafe impl<F> Send for CHook<F> {}
// SAFETY: several threads may call it at once, by the same contract.
unsafe impl<F> Sync for CHook<F> {}
