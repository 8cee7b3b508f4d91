//! A table of C functions that all return one number, and the device of a table.

use crate::conformance::behaviour::Failure;
use crate::device::DeviceApi;
use crate::device::c_table::{self, AttributeAnswer, CopyBytes, DeviceTable};
use std::ffi::{c_char, c_int, c_void};

/// The code that a failing function returns.
pub(super) const FAILED: c_int = 7;

/// Returns a text for every failure.
unsafe extern "C" fn last_error_text(_: *mut c_void) -> *const c_char {
    c"out of luck".as_ptr()
}

/// Implements `last_error` for a table that fails without a text.
pub(super) unsafe extern "C" fn last_error_null(_: *mut c_void) -> *const c_char {
    std::ptr::null()
}

/// Returns the code in the context, like all functions below.
unsafe extern "C" fn set_device(code: *mut c_void, _: i32) -> c_int {
    context_code(code)
}

/// Answers with each tag that exists, with a null text, and with nothing, by the number of the attribute (DEV-08).
unsafe extern "C" fn attribute(
    code: *mut c_void,
    _: i32,
    number: i32,
    answer: *mut AttributeAnswer,
) -> c_int {
    let text = if number == 2 {
        c"five".as_ptr()
    } else {
        std::ptr::null()
    };
    let tag = [0, 1, 2, 2, 3].get(number as usize).copied().unwrap_or(0);
    if tag != 0 {
        let number = 5;
        // SAFETY: the caller has an out pointer for the answer.
        unsafe { answer.write(AttributeAnswer { tag, number, text }) };
    }
    context_code(code)
}

/// Does not write the handle. A caller that reads it after a failure reads the old value.
unsafe extern "C" fn alloc(
    code: *mut c_void,
    _: i32,
    _: u64,
    _: u64,
    _: *mut *mut c_void,
) -> c_int {
    context_code(code)
}

/// Implements every function that takes a handle: freeing, syncing, setting.
unsafe extern "C" fn handle(code: *mut c_void, _: i32, _: *mut c_void) -> c_int {
    context_code(code)
}

/// Copies nothing.
unsafe extern "C" fn copy(code: *mut c_void, _: *const CopyBytes, _: *mut c_void) -> c_int {
    context_code(code)
}

/// Creates no stream, and does not write the handle.
unsafe extern "C" fn create(code: *mut c_void, _: i32, _: *mut *mut c_void) -> c_int {
    context_code(code)
}

/// Orders nothing.
unsafe extern "C" fn order(code: *mut c_void, _: i32, _: *mut c_void, _: *mut c_void) -> c_int {
    context_code(code)
}

/// Returns the context of the table as the code of its functions.
fn context_code(code: *mut c_void) -> c_int {
    code.addr() as c_int
}

/// Creates a table of these functions, all of which return `code`.
pub(super) fn returning(code: c_int) -> DeviceTable {
    DeviceTable {
        magic: c_table::MAGIC,
        size: size_of::<DeviceTable>() as u64,
        context: std::ptr::without_provenance_mut(code as usize),
        last_error: Some(last_error_text),
        set_device,
        attribute,
        alloc,
        free: handle,
        copy,
        sync: handle,
        create_stream: Some(create),
        free_stream: Some(handle),
        sync_streams: Some(order),
    }
}

/// Returns the device of a table that is never freed.
pub(super) fn device_from_table(table: DeviceTable) -> Result<&'static dyn DeviceApi, Failure> {
    // SAFETY: a complete table that is never freed, as `to_api` requires.
    let api = unsafe { c_table::to_api(Box::leak(Box::new(table))) };
    api.ok_or_else(|| Failure::Broken("a whole table is not a device".into()))
}

/// Returns `device` as C would pass it: a table at an address that this crate does not know.
pub(super) fn as_a_table(device: &'static dyn DeviceApi) -> &'static dyn DeviceApi {
    let copied: &'static mut DeviceTable = Box::leak(Box::new(*c_table::of_api(device)));
    // SAFETY: a complete table that is never freed, as `to_api` requires.
    unsafe { c_table::to_api(copied) }.unwrap_or(device)
}
