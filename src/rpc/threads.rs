//! Threads of servers, which are refused when memory is short.

use std::hint::black_box;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

/// The default stack size in bytes. The standard library uses the same size if `RUST_MIN_STACK` is not set.
pub const STACK: usize = 2 << 20;

/// Memory in bytes that must be free in addition to the stack of a new thread. The thread allocates before its first line, and other
/// threads allocate meanwhile.
///
/// Every version of glibc takes blocks above 32 MiB from the system and returns them at once. It may keep smaller blocks after they are
/// freed, and a kept block does not show that there is room for a stack.
const SPARE: usize = 33 << 20;

/// Number of threads of this module that run now, and the highest number so far.
static RUNNING: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

/// One running thread, counted until it is dropped.
struct RunningThread;

impl RunningThread {
    /// Counts a new thread. Returns an error if there is too little memory for it.
    ///
    /// The system keeps the stacks of threads that have ended for the next ones. Memory is therefore checked only when more threads run
    /// than ever before.
    fn register_thread(stack: usize) -> io::Result<RunningThread> {
        let count = RUNNING.fetch_add(1, Ordering::SeqCst).saturating_add(1);
        // Created before the check, so that its drop corrects the count also if the check fails.
        let admitted = RunningThread;
        if count > MOST.load(Ordering::SeqCst) {
            let mut spare = Vec::<u8>::new();
            spare
                .try_reserve_exact(stack.saturating_add(SPARE))
                .map_err(|_| io::ErrorKind::OutOfMemory)?;
            // Keeps the compiler from removing an allocation that nothing reads.
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

/// Starts a thread with this stack, if the process has more memory than the stack takes.
///
/// The standard library returns an error only if there is no memory for the stack itself. If too little remains afterwards, the next failed
/// allocation ends the process, and every session with it.
///
/// # Errors
///
/// Returns [`io::ErrorKind::OutOfMemory`]; [`io::Error`] of starting a thread.
pub fn spawn<T: Send + 'static>(
    stack: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let admitted = RunningThread::register_thread(stack)?;
    Builder::new().stack_size(stack).spawn(move || {
        let _admitted = admitted;
        work()
    })
}

/// Starts a thread like [`spawn`], with [`STACK`] and in a scope.
pub(in crate::rpc) fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    let admitted = RunningThread::register_thread(STACK)?;
    Builder::new()
        .stack_size(STACK)
        .spawn_scoped(scope, move || {
            let _admitted = admitted;
            work()
        })
}

/// Explains why a connection is closed: the system has no thread for it.
pub(in crate::rpc) fn no_thread_message(why: &io::Error) -> String {
    format!("there is no thread for it: {why}")
}
