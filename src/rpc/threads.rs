//! Threads of servers, which a system that is short of memory may not have.

use std::hint::black_box;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

/// The stack of a thread that nothing else is known of: what the standard library has where `RUST_MIN_STACK` is not set.
pub const STACK: usize = 2 << 20;

/// What is to be free besides the stack of one more thread: for what it allocates before its first line, and for what the others do meanwhile.
///
/// Blocks above 32 MiB come from the system and go back to it at once in every version of glibc; from the size of smaller ones it learns which to
/// keep, and what it keeps says nothing about room for a stack.
const SPARE: usize = 33 << 20;

/// How many threads of this module run, and how many did at the same time at most.
static RUNNING: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

/// One of the threads that run, until it is dropped.
struct RunningThread;

impl RunningThread {
    /// Lets one more run, where there is memory for it.
    ///
    /// The system keeps the stacks of threads that have ended for the next ones: as many threads as there once were need no room.
    fn admit(stack: usize) -> io::Result<RunningThread> {
        let count = RUNNING.fetch_add(1, Ordering::SeqCst).saturating_add(1);
        // From here on: its drop takes the thread off the count, also where there is no memory for it.
        let admitted = RunningThread;
        if count > MOST.load(Ordering::SeqCst) {
            let mut spare = Vec::<u8>::new();
            spare
                .try_reserve_exact(stack.saturating_add(SPARE))
                .map_err(|_| io::ErrorKind::OutOfMemory)?;
            // An allocation that nothing reads is none to a compiler.
            black_box(&spare);
            MOST.fetch_max(count, Ordering::SeqCst);
        }
        Ok(admitted)
    }
}

impl Drop for RunningThread {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A thread with this stack, where the process has memory for more than it.
///
/// The standard library returns an error where there is none for the stack; where what remains is too little for the rest, a failed allocation
/// ends the process, and with it every session.
///
/// # Errors
///
/// [`io::ErrorKind::OutOfMemory`]; [`io::Error`] of starting a thread.
pub fn spawn<T: Send + 'static>(
    stack: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let admitted = RunningThread::admit(stack)?;
    Builder::new().stack_size(stack).spawn(move || {
        let _admitted = admitted;
        work()
    })
}

/// [`spawn`], with [`STACK`] and in a scope.
pub(in crate::rpc) fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    let admitted = RunningThread::admit(STACK)?;
    Builder::new()
        .stack_size(STACK)
        .spawn_scoped(scope, move || {
            let _admitted = admitted;
            work()
        })
}

/// Why a connection is closed that the system has no thread for.
pub(in crate::rpc) fn none(why: &io::Error) -> String {
    format!("there is no thread for it: {why}")
}
