//! What this library offers beyond the interfaces of TVM, declared in `include/tvmspec.h`, in every build.

use std::ffi::{CString, c_char, c_int};

/// The version of this library: `0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn tvmspec_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// The number of this interface: of what `include/tvmspec.h` declares. A function that changes or goes makes it another.
#[unsafe(no_mangle)]
pub extern "C" fn tvmspec_abi() -> c_int {
    2
}

/// Frees a text of this library. Null is allowed.
///
/// # Safety
///
/// `text` must be null or come from `tvmspec_examine` or `tvmspec_examine_file`, once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tvmspec_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: `text` is a `CString` that one of these returned, freed once, by this contract.
        drop(unsafe { CString::from_raw(text) });
    }
}
