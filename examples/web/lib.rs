//! Examines a file without running it, in a browser or in Node. `tvmspec.mjs` in this folder calls it, and `node.mjs` is for a shell.
//!
//! ```sh
//! cargo build --release --manifest-path examples/web/Cargo.toml --target wasm32-unknown-unknown
//! node examples/web/node.mjs verify golden/blob/opencl-0.6.bin
//! ```

use std::{ptr, slice};
use tvmspec::examine;

/// The answer to a command. The caller frees its text with [`free`].
#[repr(C)]
pub struct Answer {
    /// The exit code of the command line.
    code: u32,
    /// JSON, or a message for code 2.
    text: *mut u8,
    /// The length of the text in bytes.
    length: usize,
}

/// Reserves `length` bytes for the caller to write. The caller frees them with [`free`].
#[unsafe(no_mangle)]
pub extern "C" fn reserve(length: usize) -> *mut u8 {
    Box::into_raw(vec![0_u8; length].into_boxed_slice()).cast()
}

/// Frees memory of this module.
///
/// # Safety
///
/// `length` bytes at `start` must come from [`reserve`] or be the text of an [`Answer`], and may be freed only once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(start: *mut u8, length: usize) {
    // SAFETY: by the contract this is a boxed slice of this length.
    drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(start, length)) });
}

/// Runs `command` on the file with this name and these bytes, and writes the result to `answer`.
///
/// # Safety
///
/// `command`, `name` and `bytes` must each point to as many bytes as their lengths say, and nothing may write them during the call.
/// `answer` must point to memory for an [`Answer`], for example from [`reserve`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn answer(
    command: *const u8,
    command_length: usize,
    name: *const u8,
    name_length: usize,
    bytes: *const u8,
    length: usize,
    answer: *mut Answer,
) {
    // SAFETY: the contract guarantees this many bytes.
    let command = unsafe { slice::from_raw_parts(command, command_length) };
    // SAFETY: the contract guarantees this many bytes.
    let name = unsafe { slice::from_raw_parts(name, name_length) };
    // SAFETY: the contract guarantees this many bytes.
    let bytes = unsafe { slice::from_raw_parts(bytes, length) };
    let (command, name) = (
        String::from_utf8_lossy(command),
        String::from_utf8_lossy(name),
    );
    let (code, text) = match examine::answer(&command, &name, bytes) {
        Ok((true, text)) => (0, text),
        Ok((false, text)) => (1, text),
        Err(nothing) => (2, nothing.to_string()),
    };
    let text = text.into_bytes().into_boxed_slice();
    let length = text.len();
    let written = Answer {
        code,
        text: Box::into_raw(text).cast(),
        length,
    };
    // SAFETY: the contract guarantees memory for an answer, which may be unaligned.
    unsafe { answer.write_unaligned(written) };
}
