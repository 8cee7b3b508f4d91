//! The locks of objects that change in place: lists, dicts and the fields of records, which safe code shares between threads.
//!
//! The memory of these objects is part of the ABI and has no room for a lock, so the locks are a table that is indexed by address. A thread
//! holds one for a few instructions, in which it calls no hook and drops no value. A lookup in a dict that calls hooks holds none:
//! a `Stay` of `map` keeps other threads away from the dict instead.
//!
//! Upstream has no locks: two threads that change one list of C++ race. Libraries that change a container through inlined code
//! ignore these locks as well, which is one reason why loading a library is `unsafe`.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// A spin lock. Taking it is one atomic read-modify-write operation, and releasing it is a plain store: half of the cost of a mutex, which
/// has to find out on release whether a thread sleeps.
struct ObjectLock {
    is_held: AtomicBool,
    /// Number of stays at the objects of this lock. Written while the lock is held.
    stays: AtomicU32,
}

/// The table of locks. All their bytes are zero, so they take no room in the library's file.
static LOCKS: [ObjectLock; 64] = [const {
    ObjectLock {
        is_held: AtomicBool::new(false),
        stays: AtomicU32::new(0),
    }
}; 64];

/// Number of times that a thread tries a lock before it sleeps.
const SPINS: u32 = if cfg!(miri) { 1 } else { 100 };

/// Time that a thread sleeps between tries: the holder was preempted, or copies a long list.
const PAUSE: Duration = Duration::from_micros(50);

/// Releases a lock when it is dropped.
#[must_use = "the lock is released when the guard is dropped"]
pub(super) struct LockGuard(&'static ObjectLock);

/// Locks `object`, which may also be a field. The lock is not reentrant: its holder calls no hook, drops no value, and locks no other object.
#[inline]
pub(super) fn lock<T>(object: *const T) -> LockGuard {
    // Objects that change in place are at least 64 bytes apart. Two objects with the same lock wait for each other needlessly, and no more.
    let lock = &LOCKS[(object.addr() >> 6) % LOCKS.len()];
    if !lock.try_take() {
        lock.wait();
    }
    LockGuard(lock)
}

/// Runs `work` while `object`, which may also be a field, is locked. The obligations are those of [`lock`].
// Each call has its own `work`, so that inlining duplicates nothing.
#[inline(always)]
pub(crate) fn with_lock<T, R>(object: *const T, work: impl FnOnce() -> R) -> R {
    let _guard = lock(object);
    work()
}

impl ObjectLock {
    /// Takes the lock if it is free. The writes of its last holder are visible then.
    #[inline]
    fn try_take(&self) -> bool {
        let taken =
            self.is_held
                .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        taken.is_ok()
    }

    /// Takes the lock once it is free.
    #[cold]
    #[inline(never)]
    fn wait(&self) {
        let mut spins = 0;
        // A load first: a compare-exchange takes the cache line from the holder even where it fails.
        while self.is_held.load(Ordering::Relaxed) || !self.try_take() {
            if spins < SPINS {
                spins += 1;
                std::hint::spin_loop();
            } else {
                std::thread::sleep(PAUSE);
            }
        }
    }
}

impl LockGuard {
    /// Whether no thread stays at the object, so that a position found before is not used after a change.
    #[inline]
    pub(super) fn has_no_stay(&self) -> bool {
        self.0.stays.load(Ordering::Relaxed) == 0
    }

    /// Adds `change` to the number of stays at the objects of this lock.
    pub(super) fn count_stays(&self, change: i32) {
        let stays = self.0.stays.load(Ordering::Relaxed);
        let stays = stays.wrapping_add_signed(change);
        self.0.stays.store(stays, Ordering::Relaxed);
    }
}

impl Drop for LockGuard {
    // Also when `work` panics, which it does before its first change: for more elements than memory can hold.
    #[inline]
    fn drop(&mut self) {
        self.0.is_held.store(false, Ordering::Release);
    }
}
