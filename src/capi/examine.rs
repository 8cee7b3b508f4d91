//! Looking into files from C, declared in `include/tvmspec.h`. There with the feature `inspect`.
//!
//! Nothing here executes the file that it looks at. Texts are freed with [`tvmspec_free`](super::extras::tvmspec_free).

use crate::examine;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The command line's exit codes.
const GOOD: c_int = 0;
const BAD: c_int = 1;
const FAILED: c_int = 2;

/// Says what is to be said about a file, as JSON of the form that `spec/schema/COMMAND.json` describes.
///
/// `command` is the command line's, without the file: `inspect [--code] [--layout L]`, `verify [--strict] [--layout L]`, `explain
/// [--release R] [--layout L]`, `dump [--layout L]`. The file is the `length` bytes at `bytes`, or, where that is null, the one at the
/// path `name`. Libraries that a file needs are not looked for, as with `explain --elsewhere`.
///
/// Returns the exit code of the command line: 0, 1 where a rule is broken or the release does not load the file, 2 where the file
/// cannot be read, nothing in it has rules, or the command is invalid; then the text is a message. `text` is always set.
///
/// # Safety
///
/// `command` and `name` must be C strings, `bytes` null or `length` bytes that are not written to during the call, `text` a place for a
/// text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tvmspec_examine(
    command: *const c_char,
    name: *const c_char,
    bytes: *const c_void,
    length: usize,
    text: *mut *mut c_char,
) -> c_int {
    // SAFETY: `command` is a C string, by this contract.
    let command = unsafe { CStr::from_ptr(command) }.to_string_lossy();
    // SAFETY: `name` is a C string, by this contract.
    let name = unsafe { CStr::from_ptr(name) };
    let read;
    let bytes = if bytes.is_null() {
        read = name.to_str().map_or_else(
            |error| Err(error.to_string()),
            |path| std::fs::read(path).map_err(|error| format!("cannot read {path}: {error}")),
        );
        read.as_deref().map_err(String::clone)
    } else {
        // SAFETY: `bytes` is not null, so `length` bytes that are not written to during the call, by this contract.
        Ok(unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), length) })
    };
    let name = name.to_string_lossy();
    let said = bytes.and_then(|bytes| {
        let say = || examine::answer(&command, &name, bytes);
        match catch_unwind(AssertUnwindSafe(say)) {
            Ok(said) => said.map_err(|nothing| nothing.to_string()),
            Err(_) => Err(format!("`{command}` of {name} panicked")),
        }
    });
    let (code, said) = match said {
        Ok((true, said)) => (GOOD, said),
        Ok((false, said)) => (BAD, said),
        Err(message) => (FAILED, message),
    };
    // A message may quote a name of the file.
    let said = CString::new(said.replace('\0', "\u{fffd}")).unwrap_or_default();
    // SAFETY: `text` is a place for a text, by this contract.
    unsafe { text.write(said.into_raw()) };
    code
}
