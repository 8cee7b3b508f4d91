//! Inspection of files from C, declared in `include/tvmspec.h`. Available with the feature `inspect`.
//!
//! These functions never execute the inspected file. Texts are freed with [`tvmspec_free`](super::extras::tvmspec_free).

use super::extras::{c_text, put_text};
use crate::examine;
use crate::payload::file;
use std::borrow::Cow;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::fs::File;
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The exit codes of the command line.
const GOOD: c_int = 0;
const BAD: c_int = 1;
const FAILED: c_int = 2;

/// Maximum number of bytes that are read from a pipe or a device, which may have no end.
const LONGEST_STREAM: u64 = 1 << 28;

/// Runs `command` on the `length` bytes at `bytes`, and returns JSON of the form in `spec/schema/COMMAND.json`.
///
/// `command` is a command of the command line, without the file: see [`examine::answer`]. `name` appears in names and messages, and is
/// `<memory>` if it is null. No file of that name is read. Libraries that a file needs are not searched for, as with `explain --elsewhere`.
///
/// Returns the exit code of the command line. It is 0 for success, and 1 if a rule is broken or the release does not load the file. It is 2
/// if nothing in the file has rules or the command is invalid; the text is then a message. `*text` is always set unless `text` is null.
///
/// # Safety
///
/// `command` and `name` are null or C strings. `bytes` is null or `length` bytes that are not written during the call. `text` is null or a
/// place for a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tvmspec_examine(
    command: *const c_char,
    name: *const c_char,
    bytes: *const c_void,
    length: usize,
    text: *mut *mut c_char,
) -> c_int {
    // SAFETY: `name` is null or a C string, by this contract.
    let name = unsafe { c_text(name) }.map_or("<memory>".into(), CStr::to_string_lossy);
    let bytes = match length {
        0 => Ok(Cow::Borrowed([].as_slice())),
        _ if bytes.is_null() => Err("the bytes are null, and their length is not 0".to_owned()),
        _ if isize::try_from(length).is_err() => Err("no memory has so many bytes".to_owned()),
        // SAFETY: `bytes` is not null, so `length` bytes that are not written during the call, by this contract.
        _ => Ok(unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), length) }.into()),
    };
    // SAFETY: `command` is null or a C string, and `text` null or a place for a text, by this contract.
    unsafe { run_command(command, &name, bytes, None, text) }
}

/// Like [`tvmspec_examine`], for the file at `path`. The code is 2 if it cannot be read.
///
/// # Safety
///
/// `command` and `path` are null or C strings, `text` is null or a place for a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tvmspec_examine_file(
    command: *const c_char,
    path: *const c_char,
    text: *mut *mut c_char,
) -> c_int {
    // SAFETY: `path` is null or a C string, by this contract.
    let path = unsafe { c_text(path) };
    let name = path.map_or("".into(), CStr::to_string_lossy);
    let bytes = match path {
        None => Err("the path is null".to_owned()),
        Some(path) => read(path).map_err(|error| format!("cannot read {name}: {error}")),
    };
    // PAY-23: a missing side file is reported by the rule.
    let side = file::side_file_of(&name)
        .and_then(|side| CString::new(side).ok())
        .and_then(|side| read(&side).ok());
    // SAFETY: `command` is null or a C string, and `text` null or a place for a text, by this contract.
    unsafe { run_command(command, &name, bytes.map(Cow::Owned), side.as_deref(), text) }
}

fn read(path: &CStr) -> io::Result<Vec<u8>> {
    #[cfg(unix)]
    let path: &OsStr = std::os::unix::ffi::OsStrExt::from_bytes(path.to_bytes());
    #[cfg(not(unix))]
    let path = OsStr::new(path.to_str().map_err(io::Error::other)?);
    let file = File::open(path)?;
    let longest = match file.metadata()? {
        data if data.is_file() => data.len(),
        _ => LONGEST_STREAM,
    };
    let mut bytes = Vec::new();
    // One extra byte reveals a file that grows, or a stream without an end.
    file.take(longest.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > longest {
        let message = "it grows while it is read, or has no end within 256 MiB";
        return Err(io::Error::other(message));
    }
    Ok(bytes)
}

/// Runs `command` and stores its text.
///
/// # Safety
///
/// `command` is null or a C string, `text` is null or a place for a text.
unsafe fn run_command(
    command: *const c_char,
    name: &str,
    bytes: Result<Cow<'_, [u8]>, String>,
    side: Option<&[u8]>,
    text: *mut *mut c_char,
) -> c_int {
    // SAFETY: `command` is null or a C string, by this contract.
    let command = unsafe { c_text(command) }.map_or("".into(), CStr::to_string_lossy);
    let answered = bytes.and_then(|bytes| {
        let answer = || examine::answer_of_files(&command, name, &bytes, side);
        // A panic in a reader must not end the program that inspects the file.
        match catch_unwind(AssertUnwindSafe(answer)) {
            Ok(answered) => answered.map_err(|nothing| nothing.to_string()),
            Err(_) => Err(format!("`{command}` of {name} panicked")),
        }
    });
    let (code, answer) = match answered {
        Ok((true, answer)) => (GOOD, answer),
        Ok((false, answer)) => (BAD, answer),
        Err(message) => (FAILED, message),
    };
    // SAFETY: null or a place for a text, by this contract.
    unsafe { put_text(text, answer) };
    code
}
