//! Stays: a thread at a dict while the hooks of its keys run.
//!
//! Looking a key up calls the hash and the equality of its type, which may come back to the same dict or wait for another thread, so no lock is
//! held meanwhile. A thread registers a [`Stay`] instead. Where no thread stays, a change that calls no hook happens under the
//! [lock](crate::object::container::lock) alone.

use crate::function::{Error, ErrorKind, Result};
use crate::object::container::lock::lock;
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The purpose for which a thread has entered a dict.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// It looks: others look as well, and nothing changes.
    Look,
    /// It changes the dict: no other thread stays, and functions that it calls meanwhile may only look.
    Change,
}

/// One stay: who, where, and what for.
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
    /// In no order: few at a time, because only keys of types with hooks need one.
    present: Vec<Presence>,
    /// Number of threads that wait for a stay to end. With none, the end of a stay needs no system call.
    waiting: usize,
}

/// Locked while a stay begins or ends, and never for longer.
static ALL: Mutex<Stays> = Mutex::new(Stays {
    present: Vec::new(),
    waiting: 0,
});
/// Notified when a stay ends.
static LEFT: Condvar = Condvar::new();

thread_local! {
    /// Number of stays of the thread. Its address identifies the thread among those that live.
    static STAYS: Cell<usize> = const { Cell::new(0) };
}

/// A thread's stay at a dict, until it is dropped. Bound to the thread.
#[must_use = "the stay ends when it is dropped"]
pub(super) struct Stay {
    presence: Presence,
    /// Neither sent nor shared: the count of stays is the thread's.
    bound: PhantomData<*const ()>,
}

impl Stay {
    /// Stays at `object`. Waits for other threads only where this thread stays nowhere: those who wait hold nothing up.
    ///
    /// # Errors
    ///
    /// A RuntimeError where the hook of a key changes the dict that it is looked up in, and where waiting could last forever.
    pub(super) fn at<T>(object: *const T, purpose: Purpose) -> Result<Stay> {
        // An address names a thread more cheaply than `ThreadId`; no other thread has it while this one stays, being bound to it.
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
                // Own stays never block looking: the hook of a key may look into the dict that its key is looked up in (OBJ-02).
                let own = other.thread == thread;
                if own && purpose == Purpose::Change {
                    return Err(changes());
                }
                blocked |= !own && (purpose, other.purpose) != (Purpose::Look, Purpose::Look);
            }
            if !blocked {
                break;
            }
            // Two threads, each at one dict and waiting for that of the other, would wait for ever: so only a thread without a stay waits.
            if stays > 0 {
                return Err(busy());
            }
            all.waiting += 1;
            all = LEFT.wait(all).unwrap_or_else(PoisonError::into_inner);
            all.waiting -= 1;
        }
        all.present.push(presence);
        drop(all);
        STAYS.set(stays + 1);
        // After the list: what happens under the lock alone in between is over before this thread has looked at anything.
        lock(object).count_stays(1);
        Ok(Stay {
            presence,
            bound: PhantomData,
        })
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        // Before the list: this thread looks at nothing any more, so a change under the lock alone may go on.
        lock(std::ptr::without_provenance::<()>(self.presence.object)).count_stays(-1);
        let mut all = all_stays();
        // A thread may stay at a dict several times for the same purpose; which of them goes makes no difference.
        if let Some(at) = all.present.iter().position(|other| *other == self.presence) {
            all.present.swap_remove(at);
        }
        STAYS.with(|stays| stays.set(stays.get() - 1));
        if all.waiting > 0 {
            LEFT.notify_all();
        }
    }
}

/// The list of stays. A panic in here would leave it whole, so that poison means nothing.
fn all_stays() -> MutexGuard<'static, Stays> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The error of a hook that changes the dict that its key is looked up in: upstream goes on in memory that is freed (OBJ-02).
#[cold]
fn changes() -> Error {
    Error::new(
        ErrorKind::Runtime,
        "the dict changes while it is looked at: the hash or equality of a key changes the dict that the key is looked up in",
    )
}

/// The error of a hook that needs a dict where another thread is (OBJ-02).
#[cold]
fn busy() -> Error {
    Error::new(
        ErrorKind::Runtime,
        "the dict is in use by another thread, and the hash or equality of a key does not wait for it",
    )
}
