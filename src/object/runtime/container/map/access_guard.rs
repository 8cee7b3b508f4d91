//! Stays: registrations of a thread at a dict while the hooks of its keys run.
//!
//! A key lookup calls the hash and equality hooks of the key's type. These may use the same dict or wait for another thread, so no lock may
//! be held meanwhile. Instead, a thread registers a [`Stay`]. If no thread stays at the dict, a change that calls no hook needs only the
//! [lock](crate::object::container::lock).

use crate::function::{Error, ErrorKind, Result};
use crate::object::container::lock::lock;
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The purpose for which a thread has entered a dict.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The thread reads. Other threads may also read, and nothing changes.
    Look,
    /// The thread changes the dict. No other thread may have a stay, and functions that this thread calls meanwhile may only read.
    Change,
}

/// One registered stay: the dict, the thread and the purpose.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Presence {
    /// Address of the dict.
    object: usize,
    /// Address of the thread's [`STAYS`].
    thread: usize,
    purpose: Purpose,
}

/// All stays of the process.
struct Stays {
    /// Unordered. There are only a few at a time, because only keys whose types have hooks need a stay.
    present: Vec<Presence>,
    /// Number of threads that wait for a stay to end. If it is 0, the end of a stay needs no system call.
    waiting: usize,
}

/// Locked only while a stay begins or ends.
static ALL: Mutex<Stays> = Mutex::new(Stays {
    present: Vec::new(),
    waiting: 0,
});
/// Notified when a stay ends.
static LEFT: Condvar = Condvar::new();

thread_local! {
    /// Number of stays of the thread. Its address identifies the thread among live threads.
    static STAYS: Cell<usize> = const { Cell::new(0) };
}

/// A thread's stay at a dict, which ends on drop. Bound to the thread.
#[must_use = "the stay ends when it is dropped"]
pub(super) struct Stay {
    presence: Presence,
    /// Makes the type neither `Send` nor `Sync`, because the count of stays belongs to the thread.
    bound: PhantomData<*const ()>,
}

impl Stay {
    /// Begins a stay at `object`. Waits for other threads only if this thread has no stay, so that a waiting thread blocks no other.
    ///
    /// # Errors
    ///
    /// Returns a RuntimeError if the hook of a key changes the dict in which the key is looked up, or if waiting could last forever.
    pub(super) fn begin<T>(object: *const T, purpose: Purpose) -> Result<Stay> {
        // An address identifies a thread more cheaply than `ThreadId`. It is unique, because the stay is bound to the thread that owns the
        // address.
        let (thread, stays) = STAYS.with(|stays| (std::ptr::from_ref(stays).addr(), stays.get()));
        let presence = Presence {
            object: object.addr(),
            thread,
            purpose,
        };
        let mut all = all_stays();
        loop {
            let mut blocked = false;
            let same = |other: &&Presence| other.object == presence.object;
            for other in all.present.iter().filter(same) {
                // A thread's own stays never block reading: a key's hook may read the dict in which the key is looked up (OBJ-02).
                let own = other.thread == thread;
                if own && purpose == Purpose::Change {
                    return Err(reentrant_change_error());
                }
                blocked |= !own && (purpose, other.purpose) != (Purpose::Look, Purpose::Look);
            }
            if !blocked {
                break;
            }
            // Two threads that each stay at one dict and wait for the other's dict would deadlock. So only a thread without a stay waits.
            if stays > 0 {
                return Err(busy_dict_error());
            }
            all.waiting += 1;
            all = LEFT.wait(all).unwrap_or_else(PoisonError::into_inner);
            all.waiting -= 1;
        }
        all.present.push(presence);
        drop(all);
        STAYS.set(stays + 1);
        // After the registration: changes under the lock alone finish before this thread reads anything.
        lock(object).count_stays(1);
        Ok(Stay {
            presence,
            bound: PhantomData,
        })
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        // Before the list changes: this thread no longer reads anything, so changes under the lock alone may continue.
        lock(std::ptr::without_provenance::<()>(self.presence.object)).count_stays(-1);
        let mut all = all_stays();
        // A thread may stay at a dict several times for the same purpose; it does not matter which entry is removed.
        if let Some(at) = all.present.iter().position(|other| *other == self.presence) {
            all.present.swap_remove(at);
        }
        STAYS.with(|stays| stays.set(stays.get() - 1));
        if all.waiting > 0 {
            LEFT.notify_all();
        }
    }
}

/// Locks the list of stays. A panic under this lock would leave the list consistent, so poison is ignored.
fn all_stays() -> MutexGuard<'static, Stays> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the error for a hook that changes the dict in which its key is looked up. Upstream continues with freed memory (OBJ-02).
#[cold]
fn reentrant_change_error() -> Error {
    Error::new(
        ErrorKind::Runtime,
        "the dict changes while it is looked at: the hash or equality of a key changes the dict that the key is looked up in",
    )
}

/// Returns the error for a hook that needs a dict that another thread is using (OBJ-02).
#[cold]
fn busy_dict_error() -> Error {
    Error::new(
        ErrorKind::Runtime,
        "the dict is in use by another thread, and the hash or equality of a key does not wait for it",
    )
}
