//! The C functions for a device implemented in C, in addition to the registry: `include/tvmspec_device.h`.

use std::ffi::c_int;
#[cfg(not(feature = "suite"))]
use std::ffi::{CStr, c_char};

/// Registers the devices of this library as `device_api.<name>`, for C code that calls their tables. Names that were registered before
/// stay. Returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn tvmspec_install_devices() -> c_int {
    // DEV-02: the manager finds the devices of this build without the registry, but C code needs the registry.
    crate::device::install();
    0
}

/// Returns -1 and writes the reason to `report`, at most `size` bytes including the final NUL: only a library with the feature `suite`
/// has the test of a device.
///
/// # Safety
///
/// `report` is null or holds `size` bytes.
#[cfg(not(feature = "suite"))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tvmspec_device_contract(
    _kind: c_int,
    _id: c_int,
    report: *mut c_char,
    size: usize,
) -> c_int {
    const REASON: &CStr =
        c"this library has no test of devices, because it was built without the feature `suite`";
    let text = REASON.to_bytes();
    if !report.is_null() && size > 0 {
        let length = text.len().min(size - 1);
        // SAFETY: `report` holds `size` bytes, by this contract, and `length` is less.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), report.cast(), length) };
        // SAFETY: `length` is less than the `size` bytes that `report` holds.
        let end = unsafe { report.add(length) };
        // SAFETY: one of the `size` bytes that `report` holds.
        unsafe { end.write(0) };
    }
    -1
}
