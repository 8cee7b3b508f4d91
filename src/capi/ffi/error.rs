//! Errors: the slot of each thread, and error objects.

use super::enter;
use crate::function::{Error, set_raised, take_raised};
use crate::value::ByteArray;
use crate::value::header::{Header, ObjectRef};
use std::ffi::{CStr, c_char};

/// Takes this thread's error, or null.
///
/// # Safety
/// `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIErrorMoveFromRaised(out: *mut *mut Header) {
    let error = take_raised().map_or(std::ptr::null_mut(), |error| error.into_object().into_raw());
    // SAFETY: says the caller.
    unsafe { out.write(error) }
}

/// Leaves an error for the caller of this thread; the handle stays with the caller.
///
/// # Safety
/// `error` is an error object.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIErrorSetRaised(error: *mut Header) {
    if error.is_null() {
        drop(take_raised());
        return;
    }
    // SAFETY: says the caller.
    if let Ok(error) = Error::from_object(unsafe { ObjectRef::retain(error) }) {
        set_raised(error);
    }
}

unsafe fn text<'a>(ptr: *const c_char) -> &'a [u8] {
    if ptr.is_null() {
        return &[];
    }
    // SAFETY: a C string, says the caller.
    unsafe { CStr::from_ptr(ptr) }.to_bytes()
}

/// Makes and leaves an error.
///
/// # Safety
/// Both are C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIErrorSetRaisedFromCStr(
    kind: *const c_char,
    message: *const c_char,
) {
    // SAFETY: says the caller.
    unsafe { raise(text(kind), text(message)) }
}

fn raise(kind: &[u8], message: &[u8]) {
    set_raised(Error::with_parts(kind, message, b"", None, None));
}

/// Makes and leaves an error whose message is joined from parts; null parts are skipped.
///
/// # Safety
/// `parts` holds `count` C strings or nulls.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIErrorSetRaisedFromCStrParts(
    kind: *const c_char,
    parts: *const *const c_char,
    count: i32,
) {
    let mut message = Vec::new();
    for at in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: says the caller.
        message.extend_from_slice(unsafe { text(*parts.add(at)) });
    }
    // SAFETY: says the caller.
    raise(unsafe { text(kind) }, &message);
}

/// Makes an error object.
///
/// # Safety
/// All byte arrays are readable; `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIErrorCreate(
    kind: *const ByteArray,
    message: *const ByteArray,
    backtrace: *const ByteArray,
    out: *mut *mut Header,
) -> i32 {
    let none = std::ptr::null_mut();
    // SAFETY: says the caller.
    unsafe { TVMFFIErrorCreateWithCauseAndExtraContext(kind, message, backtrace, none, none, out) }
}

/// Makes an error object with a cause and a context, both borrowed and possibly null.
///
/// # Safety
/// As [`TVMFFIErrorCreate`].
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIErrorCreateWithCauseAndExtraContext(
    kind: *const ByteArray,
    message: *const ByteArray,
    backtrace: *const ByteArray,
    cause: *mut Header,
    context: *mut Header,
    out: *mut *mut Header,
) -> i32 {
    enter(|| {
        // SAFETY: says the caller.
        unsafe {
            let retained =
                |object: *mut Header| (!object.is_null()).then(|| ObjectRef::retain(object));
            let error = Error::with_parts(
                (*kind).as_slice(),
                (*message).as_slice(),
                (*backtrace).as_slice(),
                retained(cause),
                retained(context),
            );
            out.write(error.into_object().into_raw());
        }
        Ok(())
    })
}
