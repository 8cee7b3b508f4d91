//! Errors: the slot of each thread, and error objects.

use super::enter;
use crate::function::{Error, set_raised, take_raised};
use crate::value::ByteArray;
use crate::value::header::{Header, ObjectRef};
use std::ffi::{CStr, c_char};

/// Moves this thread's error to `out`. Writes null if the thread has no error.
///
/// # Safety
/// `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIErrorMoveFromRaised(out: *mut *mut Header) {
    let error = take_raised().map_or(std::ptr::null_mut(), |error| error.into_object().into_raw());
    // SAFETY: `out` is writable, by this contract.
    unsafe { out.write(error) }
}

/// Raises an error on this thread. The caller keeps its handle.
///
/// # Safety
/// `error` is null or an object.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIErrorSetRaised(error: *mut Header) {
    if error.is_null() {
        // FUN-06: null also replaces the error in the slot, which is then empty.
        drop(take_raised());
        return;
    }
    // FUN-06: an object that is not an error leaves the slot unchanged, because this function returns no code.
    // SAFETY: `error` is not null, so an object, by this contract; its type is checked.
    if let Ok(error) = Error::from_object(unsafe { ObjectRef::retain(error) }) {
        set_raised(error);
    }
}

/// Returns the bytes of a C string, and none for null.
///
/// # Safety
/// `ptr` is null or a C string that lives for `'a`.
unsafe fn text<'a>(ptr: *const c_char) -> &'a [u8] {
    if ptr.is_null() {
        return &[];
    }
    // SAFETY: `ptr` is not null, so a C string, by this contract.
    unsafe { CStr::from_ptr(ptr) }.to_bytes()
}

/// Creates and raises an error.
///
/// # Safety
/// Both are null or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIErrorSetRaisedFromCStr(
    kind: *const c_char,
    message: *const c_char,
) {
    // SAFETY: `kind` is null or a C string, by this contract.
    let kind = unsafe { text(kind) };
    // SAFETY: `message` is null or a C string, by this contract.
    let message = unsafe { text(message) };
    raise(kind, message)
}

fn raise(kind: &[u8], message: &[u8]) {
    set_raised(Error::with_parts(kind, message, b"", None, None));
}

/// Creates and raises an error whose message is joined from parts. Null parts are skipped.
///
/// # Safety
/// `kind` is null or a C string; `parts` holds `count` C strings or nulls.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIErrorSetRaisedFromCStrParts(
    kind: *const c_char,
    parts: *const *const c_char,
    count: i32,
) {
    let mut message = Vec::new();
    for at in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: `parts` holds `count` pointers, by this contract, and `at` is less.
        let part = unsafe { parts.add(at) };
        // SAFETY: one of the `count` pointers that `parts` holds, by this contract.
        let part = unsafe { part.read() };
        // SAFETY: `part` is a C string or null, like all entries of `parts`, by this contract.
        message.extend_from_slice(unsafe { text(part) });
    }
    // SAFETY: `kind` is null or a C string, by this contract.
    raise(unsafe { text(kind) }, &message);
}

/// Creates an error object.
///
/// # Safety
/// All three byte arrays and their bytes are readable; `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIErrorCreate(
    kind: *const ByteArray,
    message: *const ByteArray,
    backtrace: *const ByteArray,
    out: *mut *mut Header,
) -> i32 {
    let none = std::ptr::null_mut();
    // SAFETY: the arrays are readable and `out` is writable, by this contract; there is no cause and no context.
    unsafe { TVMFFIErrorCreateWithCauseAndExtraContext(kind, message, backtrace, none, none, out) }
}

/// Creates an error object with a cause and a context. Both are borrowed and may be null.
///
/// # Safety
/// As for [`TVMFFIErrorCreate`]; cause and context are null or objects.
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
        // FUN-04: new references, because the caller keeps its own.
        let retained = |object: *mut Header| {
            // SAFETY: not null, so an object, as cause and context are by this contract.
            (!object.is_null()).then(|| unsafe { ObjectRef::retain(object) })
        };
        let [kind, message, backtrace] = [kind, message, backtrace].map(|text| {
            // SAFETY: `text` is one of the three byte arrays, which are readable, by this contract.
            let text = unsafe { text.read() };
            // SAFETY: the bytes of the three arrays are readable, by this contract.
            unsafe { text.as_slice() }
        });
        let error = Error::with_parts(kind, message, backtrace, retained(cause), retained(context));
        // SAFETY: `out` is writable, by this contract.
        unsafe { out.write(error.into_object().into_raw()) };
        Ok(())
    })
}
