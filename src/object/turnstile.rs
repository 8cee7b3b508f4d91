//! Who is at a [`List`](super::List), a [`Dict`](super::Dict) or a field of a record: they change in place, and safe code
//! shares them between threads.
//!
//! Their memory is part of the ABI and has no room for a lock, so the locks are found by address. [`alone`] is for work that
//! calls nothing: it waits, and always has its turn. Looking a key up calls the hash and the equality of its type, which may
//! come back to the same dict or wait for another thread; for that a thread stays at the dict ([`Stay`]) without holding a
//! lock. Libraries that change a container through inlined code take no part in this; loading them is `unsafe`.

use super::map::MapObj;
use crate::function::{Error, Result};
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What a thread stays for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// It looks: others look as well, and nothing changes.
    Look,
    /// It changes the dict: no other thread stays, and what it calls meanwhile may only look.
    Change,
}

struct Presence {
    object: usize,
    thread: usize,
    purpose: Purpose,
}

struct Inside {
    present: Vec<Presence>,
    waiting: usize,
}

/// Who stays at objects whose addresses meet here.
struct Turnstile {
    inside: Mutex<Inside>,
    left: Condvar,
}

/// The locks of [`alone`]. All their bytes are zero, so they take no room in the library's file.
static LOCKS: [Mutex<()>; 64] = [const { Mutex::new(()) }; 64];

/// Few, for they are in the file: a lock of these is held only while somebody comes or goes.
static TURNSTILES: [Turnstile; 8] = [const {
    Turnstile {
        inside: Mutex::new(Inside {
            present: Vec::new(),
            waiting: 0,
        }),
        left: Condvar::new(),
    }
}; 8];

/// What stands in `table` for `object`. Objects are at least 16 bytes apart.
fn of_object<T, const COUNT: usize>(table: &'static [T; COUNT], object: usize) -> &'static T {
    &table[(object >> 4 ^ object >> 10) % COUNT]
}

thread_local! {
    /// How many stays the thread has. Its address names the thread among those that live.
    static STAYS: Cell<usize> = const { Cell::new(0) };
}

impl Turnstile {
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs `work` while no other thread's work on `object`, or the field of that address, runs. It must not drop values, call hooks or do other work of this
/// kind: the lock is not reentrant.
#[inline]
pub(super) fn alone<T, R>(object: *const T, work: impl FnOnce() -> R) -> R {
    let _turn = turn(object);
    work()
}

/// While one lives, no other thread has one for the same object.
pub(super) type Turn = MutexGuard<'static, ()>;

/// What [`alone`] holds while it runs its work, for code that holds it as it goes on. As little may be done meanwhile.
#[inline]
pub(super) fn turn<T>(object: *const T) -> Turn {
    let lock = of_object(&LOCKS, object.addr());
    // A panic below the lock comes before the first change (more elements than memory can hold).
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread's stay at a dict, until it is dropped. Bound to the thread.
pub(super) struct Stay {
    object: usize,
    thread: usize,
    purpose: Purpose,
    bound: PhantomData<*const ()>,
}

impl Stay {
    /// Stays at `object`. Waits for other threads only where this thread stays nowhere: those who wait hold nothing up.
    ///
    /// # Errors
    ///
    /// A RuntimeError where the hook of a key changes the dict that it is looked up in, and where waiting could last forever.
    pub(super) fn at(object: *const MapObj, purpose: Purpose) -> Result<Stay> {
        let object = object.addr();
        let (thread, stays) = STAYS.with(|stays| (std::ptr::from_ref(stays).addr(), stays.get()));
        let turnstile = of_object(&TURNSTILES, object);
        let mut inside = turnstile.lock();
        loop {
            let here = inside.present.iter().filter(|other| other.object == object);
            let mut blocked = false;
            for other in here {
                let own = other.thread == thread;
                if own && purpose == Purpose::Change {
                    return Err(changes());
                }
                blocked |= !own && (purpose, other.purpose) != (Purpose::Look, Purpose::Look);
            }
            if !blocked {
                break;
            }
            if stays > 0 {
                return Err(busy());
            }
            inside.waiting += 1;
            inside = turnstile
                .left
                .wait(inside)
                .unwrap_or_else(PoisonError::into_inner);
            inside.waiting -= 1;
        }
        inside.present.push(Presence {
            object,
            thread,
            purpose,
        });
        STAYS.set(stays + 1);
        Ok(Stay {
            object,
            thread,
            purpose,
            bound: PhantomData,
        })
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        let turnstile = of_object(&TURNSTILES, self.object);
        let mut inside = turnstile.lock();
        let own = inside.present.iter().position(|presence| {
            (presence.object, presence.thread, presence.purpose)
                == (self.object, self.thread, self.purpose)
        });
        if let Some(at) = own {
            inside.present.swap_remove(at);
        }
        STAYS.with(|stays| stays.set(stays.get() - 1));
        if inside.waiting > 0 {
            turnstile.left.notify_all();
        }
    }
}

#[cold]
fn changes() -> Error {
    Error::new(
        "RuntimeError",
        "the dict changes while it is looked at: the hash or equality of a key changes the dict that the key is looked up in",
    )
}

#[cold]
fn busy() -> Error {
    Error::new(
        "RuntimeError",
        "the dict is in use by another thread, and the hash or equality of a key does not wait for it",
    )
}
