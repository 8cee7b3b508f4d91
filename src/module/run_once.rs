//! Static initialization that compiled code runs once for each handle.

use super::keyed_lock::KeyedLock;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

/// Implements `TVMBackendRunOnce`: calls `run(data)` unless `handle` is set, and sets it if the call returned 0 (MOD-22).
///
/// Returns the result of `run`, or 0 if it did not need to run.
///
/// # Safety
///
/// `run` must be callable with `data`.
pub unsafe fn run(
    handle: &AtomicPtr<c_void>,
    run: unsafe extern "C" fn(*mut c_void) -> c_int,
    data: *mut c_void,
) -> c_int {
    let done = || !handle.load(Ordering::Acquire).is_null();
    if done() {
        return 0;
    }
    // MOD-22: upstream sets the handle before the call, so that an initializer that calls itself again finds it set. Here it gets 0 as
    // well.
    let Some(_turn) = RUNNING.take(&handle.as_ptr().addr()) else {
        return 0;
    };
    // Checked again after taking the turn: another thread may have run it while this one waited.
    if done() {
        return 0;
    }
    // SAFETY: `run` can be called with `data`, by this contract.
    let code = unsafe { run(data) };
    // MOD-22: after a failure, the handle stays null, and the next caller tries again. Releases set it before the call. After a
    // failure, every later call then returns 0 although nothing was initialized.
    if code == 0 {
        // 1 as in releases. Compiled code only tests whether it is null.
        handle.store(std::ptr::without_provenance_mut(1), Ordering::Release);
    }
    code
}

/// Turns by handle: an initializer may call code that has its own initializer.
static RUNNING: KeyedLock<usize> = KeyedLock::new();
