//! Examines a file without running it, in a browser or in Node. `tvmspec.mjs` in this folder calls it, and `node.mjs` is for a shell.
//!
//! ```sh
//! cargo build --release --manifest-path web/shell/Cargo.toml --target wasm32-unknown-unknown
//! node web/shell/node.mjs verify golden/blob/opencl-0.6.bin
//! ```

use serde_json::{Value, json};
use std::{ptr, slice};
use tvmspec::examine::{self, Subject};
use tvmspec::release::Release;
use tvmspec::rpc::Connection;

/// The answer to a command. The caller frees its text with [`free`].
#[repr(C)]
pub struct Answer {
    /// The exit code of the command line.
    code: u32,
    /// JSON, or the bytes of a unit, or a message for code 2.
    text: *mut u8,
    /// The length of the text in bytes.
    length: usize,
}

/// Reserves `length` bytes for the caller to write. The caller frees them with [`free`]. Returns null if the memory does not suffice.
#[unsafe(no_mangle)]
pub extern "C" fn reserve(length: usize) -> *mut u8 {
    let mut bytes = Vec::new();
    // A file may be larger than the memory of WebAssembly. The page then reports this and continues to work.
    if bytes.try_reserve_exact(length).is_err() {
        return ptr::null_mut();
    }
    bytes.resize(length, 0_u8);
    Box::into_raw(bytes.into_boxed_slice()).cast()
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
/// The commands are those of [`examine::answer`], and five more: `units` lists the runs of bytes of one format, `fields` lists their
/// fields, and `unit N` returns the bytes of one of them. `rpc-decode` reads the file as the client's side of a connection and the side
/// file as the server's. `releases` lists the releases that the specification covers.
///
/// # Safety
///
/// `command`, `name`, `bytes` and `side` must each point to as many bytes as their lengths say, and nothing may write them during the
/// call. `side` may be null for a file without a side file. `answer` must point to memory for an [`Answer`], for example from
/// [`reserve`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn answer(
    command: *const u8,
    command_length: usize,
    name: *const u8,
    name_length: usize,
    bytes: *const u8,
    length: usize,
    side: *const u8,
    side_length: usize,
    answer: *mut Answer,
) {
    // SAFETY: the contract guarantees this many bytes.
    let command = unsafe { slice::from_raw_parts(command, command_length) };
    // SAFETY: the contract guarantees this many bytes.
    let name = unsafe { slice::from_raw_parts(name, name_length) };
    // SAFETY: the contract guarantees this many bytes.
    let bytes = unsafe { slice::from_raw_parts(bytes, length) };
    let side = if side.is_null() {
        None
    } else {
        // SAFETY: the contract guarantees this many bytes where the pointer is not null.
        Some(unsafe { slice::from_raw_parts(side, side_length) })
    };
    let (command, name) = (
        String::from_utf8_lossy(command),
        String::from_utf8_lossy(name),
    );
    let (code, text) = match command.split_once(' ').unwrap_or((&command, "")) {
        ("units", _) => (0, units(&name, bytes, side).to_string().into_bytes()),
        ("fields", _) => fields(&name, bytes, side),
        ("unit", index) => match unit(&name, bytes, side, index) {
            Some(bytes) => (0, bytes),
            None => (2, b"the file has no such unit".to_vec()),
        },
        ("releases", _) => {
            let releases: Vec<String> = Release::all().map(|each| each.to_string()).collect();
            (0, json!(releases).to_string().into_bytes())
        }
        ("rpc-decode", _) => rpc_decode(bytes, side.unwrap_or_default()),
        _ => match examine::answer_of_files(&command, &name, bytes, side) {
            Ok((good, text)) => (u32::from(!good), text.into_bytes()),
            Err(nothing) => (2, nothing.to_string().into_bytes()),
        },
    };
    let text = text.into_boxed_slice();
    let length = text.len();
    let written = Answer {
        code,
        text: Box::into_raw(text).cast(),
        length,
    };
    // SAFETY: the contract guarantees memory for an answer, which may be unaligned.
    unsafe { answer.write_unaligned(written) };
}

/// Lists the units of the file: `[{"name", "format", "offset", "bytes"}]`. The offset is null if the file does not contain the bytes
/// unchanged; `unit N` then returns them. A file whose container is broken has no units.
fn units(name: &str, bytes: &[u8], side: Option<&[u8]>) -> Value {
    let Ok(subject) = Subject::of_files(name, bytes, side, None) else {
        return json!([]);
    };
    let units = subject.units();
    let described = units.iter().map(|unit| {
        json!({
            "name": unit.name,
            "format": unit.title(),
            "offset": unit.offset,
            "bytes": unit.bytes.len(),
        })
    });
    described.collect()
}

/// Lists the fields of every unit, in the form of `dump`. Other than `dump`, this also reads the payload that a device module and its
/// side file form.
fn fields(name: &str, bytes: &[u8], side: Option<&[u8]>) -> (u32, Vec<u8>) {
    let subject = Subject::of_files(name, bytes, side, None)
        .unwrap_or_else(|broken| Subject::damaged(name, bytes, broken));
    let written = match subject.dump() {
        Ok(dump) => serde_json::to_vec(&dump).map_err(|error| error.to_string()),
        Err(nothing) => Err(nothing.to_string()),
    };
    match written {
        Ok(text) => (0, text),
        Err(message) => (2, message.into_bytes()),
    }
}

/// Returns the bytes of unit number `index`.
fn unit(name: &str, bytes: &[u8], side: Option<&[u8]>, index: &str) -> Option<Vec<u8>> {
    let subject = Subject::of_files(name, bytes, side, None).ok()?;
    let units = subject.units();
    let unit = units.get(index.parse::<usize>().ok()?)?;
    Some(unit.bytes.to_vec())
}

/// Returns the exit code and the output of `tvmspec rpc-decode --json`.
fn rpc_decode(client: &[u8], server: &[u8]) -> (u32, Vec<u8>) {
    let connection = Connection::read(client, server, None);
    let whole = connection.client.broken.is_none() && connection.server.broken.is_none();
    match serde_json::to_vec(&connection) {
        Ok(text) => (u32::from(!whole), text),
        Err(error) => (2, error.to_string().into_bytes()),
    }
}
