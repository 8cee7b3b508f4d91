//! Threads of servers, which a system that is short of memory may not have.

use std::hint::black_box;
use std::io;
use std::thread::Builder;

/// What is to be free besides the stack: for what the thread allocates before its first line, and for what the others do meanwhile.
///
/// Blocks above 32 MiB come from the system and go back to it at once, in every version of glibc; from the size of smaller ones it learns which
/// to keep, and what it keeps says nothing about room for a stack.
const SPARE: usize = 33 << 20;

/// A builder of a thread with this stack, where the process has memory for more than it.
///
/// The standard library returns an error where there is none for the stack; where what remains is too little for the rest, a failed allocation
/// ends the process, and with it every session.
///
/// # Errors
///
/// [`io::ErrorKind::OutOfMemory`].
pub fn builder(stack: usize) -> io::Result<Builder> {
    let mut spare = Vec::<u8>::new();
    spare
        .try_reserve_exact(stack.saturating_add(SPARE))
        .map_err(|_| io::ErrorKind::OutOfMemory)?;
    // An allocation that nothing reads is none to a compiler.
    black_box(&spare);
    Ok(Builder::new().stack_size(stack))
}

/// The stack of a thread that nothing else is known of: what the standard library has where `RUST_MIN_STACK` is not set.
pub const STACK: usize = 2 << 20;

/// Why a connection is closed that the system has no thread for.
pub(in crate::rpc) fn none(why: &io::Error) -> String {
    format!("there is no thread for it: {why}")
}
