//! The contract for devices of C, as `include/tvmspec_device.h` declares it.

use super::contract_on;
use crate::device::{Device, Manager};
use std::ffi::{c_char, c_int};

/// Drives device `id` of type `kind` through the contract. Writes the result to `report`, at most `size` bytes including the final
/// NUL. Returns the number of programs that the device failed, or -1 if there is no such device or there are no cases. `report`
/// then contains the reason. A program outside of the source tree needs the feature `embed` for the cases.
///
/// # Safety
///
/// `report` is null or holds `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tvmspec_device_contract(
    kind: c_int,
    id: c_int,
    report: *mut c_char,
    size: usize,
) -> c_int {
    let api = Manager::global().api(kind).map_err(|why| why.to_string());
    let result =
        api.and_then(|api| contract_on(api, Device::new(kind, id)).map_err(|why| why.to_string()));
    let (text, broken) = match result {
        Err(why) => (why, -1),
        Ok(report) => {
            let broken = c_int::try_from(report.broken().count()).unwrap_or(c_int::MAX);
            (report.to_string(), broken)
        }
    };
    if !report.is_null() && size > 0 {
        let length = text.len().min(size - 1);
        // SAFETY: `report` holds `size` bytes, by this function's contract, and `length` is less.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), report.cast(), length) };
        // SAFETY: `length` is less than the `size` bytes that `report` holds.
        let end = unsafe { report.add(length) };
        // SAFETY: one of the `size` bytes that `report` holds.
        unsafe { end.write(0) };
    }
    broken
}
