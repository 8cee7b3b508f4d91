//! The text of the last failure on this thread, which compiled code of both eras stores here.
//!
//! Up to 0.20, a function that fails calls `TVMAPISetLastError` with a text and returns -1, and the caller reads `TVMGetLastError`.
//! From 0.21 on, it raises an error object. The text is stored here because some code serves both eras (parallel launch, workspace),
//! and its callers may be of either era.

use crate::thread_local::with_kept;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};

thread_local! {
    static LAST: RefCell<LastError> = RefCell::default();
}

/// The text, and a flag for a new text (FUN-15).
#[derive(Default)]
struct LastError {
    /// Stays after a success, and after it was taken.
    text: Option<CString>,
    /// True if no caller has taken it since it was set.
    fresh: bool,
}

/// Stores `text` as the last failure of this thread. A NUL inside ends it, as for every C reader.
pub(crate) fn set(text: &str) {
    let upto = text.split('\0').next().unwrap_or_default();
    let text = CString::new(upto).unwrap_or_default();
    with_kept(&LAST, |slot| {
        *slot = LastError {
            text: Some(text.clone()),
            fresh: true,
        }
    });
}

/// Returns the failure that was set since the last `take`. It stays readable through [`pointer()`].
pub(crate) fn take() -> Option<String> {
    with_kept(&LAST, |slot| {
        // FUN-15: only the mark is reset. `TVMGetLastError` continues to return the text.
        let fresh = std::mem::replace(&mut slot.fresh, false);
        let text = slot.text.as_deref().filter(|_| fresh)?;
        Some(text.to_string_lossy().into_owned())
    })
}

/// Returns the last failure for C: never null, and valid until the next [`set`] on this thread.
pub(crate) fn pointer() -> *const c_char {
    const NONE: &CStr = c"";
    // Never null. Before the first failure, upstream returns an empty text up to 0.13 and null from 0.14 on, which callers read as text.
    LAST.try_with(|slot| slot.borrow().text.as_deref().unwrap_or(NONE).as_ptr())
        .unwrap_or(NONE.as_ptr())
}
