//! Locks whose values stay usable after a panic.

use std::sync::{LockResult, Mutex, MutexGuard, PoisonError};

/// Locks `mutex`, even if a thread that held it panicked.
///
/// A panic is no reason to fail all later calls of a process. Whoever uses this must leave the value consistent at every point where it
/// may panic.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    unpoisoned(mutex.lock())
}

/// Returns the guard of an `RwLock` or of a wait, as [`lock`] does for a mutex.
pub(crate) fn unpoisoned<G>(guard: LockResult<G>) -> G {
    guard.unwrap_or_else(PoisonError::into_inner)
}
