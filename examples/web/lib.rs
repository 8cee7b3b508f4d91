//! What can be learned of a file without running it, in a browser or in Node: `tvmspec.mjs` beside this file calls it, and `node.mjs` from a shell.
//!
//! ```sh
//! cargo build --release --manifest-path examples/web/Cargo.toml --target wasm32-unknown-unknown
//! node examples/web/node.mjs verify golden/blob/opencl-0.6.bin
//! ```

use std::{ptr, slice};
use tvmspec::examine;

/// An answer, which the caller frees with [`free`].
#[repr(C)]
pub struct Answer {
    /// The command line's exit code.
    code: u32,
    /// JSON, or for code 2 a message.
    text: *mut u8,
    /// How many bytes the text has.
    length: usize,
}

/// Memory for `length` bytes that the caller writes, and frees with [`free`].
#[unsafe(no_mangle)]
pub extern "C" fn reserve(length: usize) -> *mut u8 {
    Box::into_raw(vec![0_u8; length].into_boxed_slice()).cast()
}

/// # Safety
///
/// `length` bytes at `start` came from [`reserve`] or are the text of an [`Answer`], and are freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(start: *mut u8, length: usize) {
    // SAFETY: a boxed slice of this length, by this contract.
    drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(start, length)) });
}

/// Says what `command` says about the file of this name, and writes it to `answer`.
///
/// # Safety
///
/// Three times as many bytes as the lengths state, which nothing writes during the call, and memory for an answer, from [`reserve`].
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
    // SAFETY: as many bytes, by this contract.
    let command = unsafe { slice::from_raw_parts(command, command_length) };
    // SAFETY: as many bytes, by this contract.
    let name = unsafe { slice::from_raw_parts(name, name_length) };
    // SAFETY: as many bytes, by this contract.
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
    // SAFETY: memory for an answer, by this contract; nothing aligns it.
    unsafe { answer.write_unaligned(written) };
}
