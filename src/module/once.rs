//! What compiled code does once: static initialisation behind a handle.

use super::turns::Turns;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

/// `TVMBackendRunOnce`: calls `run(data)` unless `handle` is set already, and sets it when that returned 0 (MOD-22).
///
/// Returns what `run` returned, 0 when it did not need to run.
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
    // MOD-22: upstream sets the handle before the call, so that an initialiser that comes back to its own finds it set.
    let Some(_turn) = TURNS.take(&handle.as_ptr().addr()) else {
        return 0;
    };
    // Once more behind the turn: another thread may have run it while this one waited.
    if done() {
        return 0;
    }
    // SAFETY: `run` can be called with `data`, by this contract.
    let code = unsafe { run(data) };
    // MOD-22: a failure leaves the handle null, and the next caller tries again.
    // Releases set it before the call, so that after a failure every later call returns 0 with nothing initialised.
    if code == 0 {
        // 1, as in releases: compiled code looks only whether it is null.
        handle.store(std::ptr::without_provenance_mut(1), Ordering::Release);
    }
    code
}

/// By handle: an initialiser may call code that has an initialiser of its own.
static TURNS: Turns<usize> = Turns::new();
