//! Functions that this library offers beyond the interfaces of TVM, declared in `include/tvmspec.h`, in every build.

#[cfg(any(feature = "inspect", feature = "target"))]
use std::ffi::CStr;
use std::ffi::{CString, c_char, c_int};

/// Returns the version of this library: `0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn tvmspec_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Returns the number of the interface that `include/tvmspec.h` declares. It changes when a function changes or is removed.
#[unsafe(no_mangle)]
pub extern "C" fn tvmspec_abi() -> c_int {
    2
}

/// Returns a text of the caller; `None` for null.
///
/// # Safety
///
/// `text` is null or a C string that outlives the result.
#[cfg(any(feature = "inspect", feature = "target"))]
pub(crate) unsafe fn c_text<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: a C string if it is not null, by this contract.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}

/// Stores `text` in a place of the caller, who frees it with [`tvmspec_free`].
///
/// # Safety
///
/// `place` is null or a place for a text.
#[cfg(any(feature = "inspect", feature = "target"))]
pub(crate) unsafe fn put_text(place: *mut *mut c_char, text: String) {
    // A message may contain a name with a NUL.
    let text = CString::new(text).or_else(|zero| {
        let text = String::from_utf8_lossy(&zero.into_vec()).replace('\0', "\u{fffd}");
        CString::new(text)
    });
    if !place.is_null() {
        // SAFETY: a place for a text, by this contract.
        unsafe { place.write(text.unwrap_or_default().into_raw()) };
    }
}

/// Frees a text of this library. Null is allowed.
///
/// # Safety
///
/// `text` is null or a text that a function of this library stored in its last argument. It is freed only once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tvmspec_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: `text` is a `CString` that one of these functions stored, freed once, by this contract.
        drop(unsafe { CString::from_raw(text) });
    }
}
