//! What this library offers beyond the interfaces of TVM, declared in `include/tvmspec.h`, in every build.

use std::ffi::{CString, c_char};

/// The version of this library: `0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn tvmspec_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Frees a text of this library. Null is allowed.
///
/// # Safety
///
/// `text` must come from `tvmspec_inspect` or `tvmspec_verify`, once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tvmspec_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: `text` is a `CString` that `tvmspec_inspect` or `tvmspec_verify` returned, freed once, by this contract.
        drop(unsafe { CString::from_raw(text) });
    }
}
