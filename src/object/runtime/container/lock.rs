//! The locks of objects that change in place: lists, dicts and the fields of records. Safe code shares these objects between threads.
//!
//! The memory of these objects is part of the ABI and has no room for a lock, so the locks are in a table indexed by address. A thread
//! owns a lock for a few instructions, during which it calls no hook and drops no value. A dict lookup that calls hooks owns no lock.
//! It registers a `Stay` of `map` instead, which excludes other threads from the dict.
//!
//! Upstream has no locks: two threads that change one C++ list race. Libraries that change a container through inlined code also ignore
//! these locks. This is one reason why loading a library is `unsafe`.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// A spin lock. An acquire is one atomic read-modify-write operation, and a release is a plain store. A mutex costs twice as much, because
/// its release must check for sleeping threads.
struct ObjectLock {
    is_held: AtomicBool,
    /// Number of stays at the objects of this lock. Written only while the lock is held.
    stays: AtomicU32,
}

/// The table of locks. With a single lock, unrelated objects would wait for each other. With 64, threads collide rarely, and the table
/// still fits into 512 bytes. All bytes are zero, so the table takes no space in the library's file.
static LOCKS: [ObjectLock; 64] = [const {
    ObjectLock {
        is_held: AtomicBool::new(false),
        stays: AtomicU32::new(0),
    }
}; 64];

/// Number of attempts before a thread sleeps.
const SPINS: u32 = if cfg!(miri) { 1 } else { 100 };

/// Sleep time between attempts. The holder was preempted, or copies a long list.
const PAUSE: Duration = Duration::from_micros(50);

/// A held lock, released on drop.
#[must_use = "the lock is released when the guard is dropped"]
pub(super) struct LockGuard(&'static ObjectLock);

/// Locks `object`, which may also be a field. The lock is not reentrant: its holder must not call a hook, drop a value, or lock another
/// object.
#[inline]
pub(super) fn lock<T>(object: *const T) -> LockGuard {
    // Objects that change in place are at least 64 bytes apart. If two objects share a lock, their threads wait needlessly, without further
    // harm.
    let lock = &LOCKS[(object.addr() >> 6) % LOCKS.len()];
    if !lock.try_take() {
        lock.wait();
    }
    LockGuard(lock)
}

/// Runs `work` while `object`, which may also be a field, is locked. `work` must obey the restrictions of [`lock`].
// Each call has its own `work`, so that inlining duplicates nothing.
#[inline(always)]
pub(crate) fn with_lock<T, R>(object: *const T, work: impl FnOnce() -> R) -> R {
    let _guard = lock(object);
    work()
}

impl ObjectLock {
    /// Takes the lock if it is free. The writes of its last holder are then visible.
    #[inline]
    fn try_take(&self) -> bool {
        let taken =
            self.is_held
                .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        taken.is_ok()
    }

    /// Waits until the lock is free and takes it.
    #[cold]
    #[inline(never)]
    fn wait(&self) {
        let mut spins = 0;
        // Loads first: a compare-exchange takes the cache line from the holder even if it fails.
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
    /// Returns whether no thread stays at the object. A change is then safe: no thread uses a position that it found before.
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
    // Also runs when `work` panics. `work` panics only before its first change, when it needs more elements than memory can hold.
    #[inline]
    fn drop(&mut self) {
        self.0.is_held.store(false, Ordering::Release);
    }
}
