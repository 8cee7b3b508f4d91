//! Threads of servers, which a system that is short of memory may not have.

use std::hint::black_box;
use std::io;
use std::thread::Builder;

/// What is to be free besides the stack: for what the thread allocates before its first line, and for what the others do meanwhile.
///
/// Freed, glibc keeps it at the end of its heap, where the next small allocations come from, also those of threads that get no heap of their own.
/// That is wanted: a stack is refused with an error, a small allocation is not. The stacks of threads that ended are kept for the next ones, so
/// that more than this would never be free again.
const SPARE: usize = 8 << 20;

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
