//! Who is at a [`List`](crate::object::List), a [`Dict`](crate::object::Dict) or a field of a record: they change in place, and safe code
//! shares them between threads.
//!
//! Their memory is part of the ABI and has no room for a lock, so the locks are found by address. [`alone`] is for work that
//! calls nothing: it waits, and always has its turn. Looking a key up calls the hash and the equality of its type, which may
//! come back to the same dict or wait for another thread; for that a thread stays at the dict ([`Stay`]) without holding a
//! lock. Where no thread stays ([`Turn::is_free`]), a change that calls no hook happens under the lock alone.
//! Libraries that change a container through inlined code take no part in this; loading them is `unsafe`. Upstream has no locks here: two
//! threads that change one list or dict of C++ are a race.
//!
//! | what | is held | may call hooks | waits |
//! |---|---|---|---|
//! | [`alone`], [`turn`] | a lock, for a few instructions | no | always |
//! | [`Stay`] | a place in a list of who is there | yes | only where this thread stays nowhere; else it fails |

use crate::function::{Error, ErrorKind, Result};
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What a thread stays for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// It looks: others look as well, and nothing changes.
    Look,
    /// It changes the dict: no other thread stays, and what it calls meanwhile may only look.
    Change,
}

/// One stay: who, where, and what for.
struct Presence {
    /// Address of the dict.
    object: usize,
    /// Address of the thread's [`STAYS`].
    thread: usize,
    /// Whether it only looks.
    purpose: Purpose,
}

/// What the lock of a turnstile guards.
struct Occupancy {
    /// The stays, in no order: few at a time.
    present: Vec<Presence>,
    /// How many threads wait for one of them to leave, so that leaving wakes no one in vain.
    waiting: usize,
}

/// Who stays at objects whose addresses meet here.
struct Turnstile {
    /// Held while a thread comes or goes, never while it stays.
    inside: Mutex<Occupancy>,
    /// Notified when a thread leaves.
    left: Condvar,
}

/// A lock that costs two atomic operations where no thread waits: the standard library's also looks, both times, whether the
/// thread is panicking.
struct Lock {
    /// [`FREE`], [`HELD`] or [`AWAITED`].
    state: AtomicU32,
    /// How many stays there are at the objects of this lock. Written under the lock.
    stays: AtomicU32,
}

/// No one holds the lock. Zero, so that the table of locks takes no room in the file.
const FREE: u32 = 0;
/// Held, and no other thread sleeps until it is free.
const HELD: u32 = 1;
/// Held, and others wait for it.
const AWAITED: u32 = 2;
/// How often a thread looks again before it sleeps: what runs under a lock is short.
const LOOKS: u32 = if cfg!(miri) { 1 } else { 100 };

/// The locks of [`alone`]. All their bytes are zero, so they take no room in the library's file.
static LOCKS: [Lock; 64] = [const {
    Lock {
        state: AtomicU32::new(FREE),
        stays: AtomicU32::new(0),
    }
}; 64];

/// Those who sleep until any of [`LOCKS`] is free.
static ASLEEP: Mutex<()> = Mutex::new(());
/// Notified when any of them is free: who wakes looks at the own lock again.
static FREED: Condvar = Condvar::new();

impl Lock {
    /// The lock, once it is free.
    #[inline]
    fn take(&'static self) -> Turn {
        if self.try_take().is_err() {
            self.wait();
        }
        Turn(self)
    }

    /// Takes the lock if it is free; what its last holder wrote is visible then.
    #[inline]
    fn try_take(&self) -> std::result::Result<u32, u32> {
        self.state
            .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
    }

    /// Takes the lock after waiting for it: for a moment by looking again, then asleep.
    #[cold]
    #[inline(never)]
    fn wait(&self) {
        for _ in 0..LOOKS {
            std::hint::spin_loop();
            // A load first: a compare and exchange takes the cache line from the holder, even where it fails.
            if self.state.load(Ordering::Relaxed) == FREE && self.try_take().is_ok() {
                return;
            }
        }
        let mut asleep = ASLEEP.lock().unwrap_or_else(PoisonError::into_inner);
        // A holder that finds the mark needs `ASLEEP` before it wakes anyone, so it cannot come between this and the wait.
        // One that slept takes it as awaited: others may sleep still, and it cannot know.
        while self.state.swap(AWAITED, Ordering::Acquire) != FREE {
            asleep = FREED.wait(asleep).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Wakes all who sleep, for the holder that found its lock awaited.
    #[cold]
    #[inline(never)]
    fn wake() {
        // Taken and left again: from then on each of them sleeps, and hears what comes next.
        drop(ASLEEP.lock().unwrap_or_else(PoisonError::into_inner));
        FREED.notify_all();
    }
}

/// Few, for they are in the file: a lock of these is held only while a thread comes or goes.
static TURNSTILES: [Turnstile; 8] = [const {
    Turnstile {
        inside: Mutex::new(Occupancy {
            present: Vec::new(),
            waiting: 0,
        }),
        left: Condvar::new(),
    }
}; 8];

/// The entry of `table` for `object`. Objects that change in place are at least 64 bytes apart; what comes nearer, as
/// fields do, shares.
#[inline]
fn of_object<T, const COUNT: usize>(table: &'static [T; COUNT], object: usize) -> &'static T {
    // Two objects that share a lock wait for each other needlessly, and no more: no work under a lock takes another.
    &table[(object >> 6) % COUNT]
}

thread_local! {
    /// How many stays the thread has. Its address names the thread among those that live.
    static STAYS: Cell<usize> = const { Cell::new(0) };
}

impl Turnstile {
    /// The list of who is there. A panic in here would leave it whole, so that poison means nothing.
    fn lock(&self) -> MutexGuard<'_, Occupancy> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs `work` while no other thread's work on `object`, or the field of that address, runs. It must not drop values, call
/// hooks or do other work of this kind: the lock is not reentrant. There is one of these for each `work` anyway, so it is
/// always inlined.
#[inline(always)]
pub(crate) fn alone<T, R>(object: *const T, work: impl FnOnce() -> R) -> R {
    let _turn = turn(object);
    work()
}

/// While one lives, no other thread has one for the same object.
#[must_use = "the turn ends when it is dropped"]
pub(super) struct Turn(&'static Lock);

impl Turn {
    /// Whether no thread stays at the object, so that nothing found before is still to be used.
    #[inline]
    pub(super) fn is_free(&self) -> bool {
        self.0.stays.load(Ordering::Relaxed) == 0
    }
}

impl Drop for Turn {
    // A panic below the lock comes before the first change (more elements than memory can hold).
    #[inline]
    fn drop(&mut self) {
        if self.0.state.swap(FREE, Ordering::Release) == AWAITED {
            Lock::wake();
        }
    }
}

/// What [`alone`] holds while it runs its work, for code that holds it as it goes on. As little may be done meanwhile.
#[inline]
pub(super) fn turn<T>(object: *const T) -> Turn {
    of_object(&LOCKS, object.addr()).take()
}

/// A thread's stay at a dict, until it is dropped. Bound to the thread.
#[must_use = "the stay ends when it is dropped"]
pub(super) struct Stay {
    /// Address of the dict.
    object: usize,
    /// Address of the thread's [`STAYS`].
    thread: usize,
    /// What the stay is for.
    purpose: Purpose,
    /// Neither sent nor shared: the count of stays is the thread's.
    bound: PhantomData<*const ()>,
}

impl Stay {
    /// Stays at `object`. Waits for other threads only where this thread stays nowhere: those who wait hold nothing up.
    pub(super) fn at<T>(object: *const T, purpose: Purpose) -> Result<Stay> {
        let object = object.addr();
        // An address names a thread more cheaply than `ThreadId`; no other thread has it while this one stays, being bound to it.
        let (thread, stays) = STAYS.with(|stays| (std::ptr::from_ref(stays).addr(), stays.get()));
        let turnstile = of_object(&TURNSTILES, object);
        let mut inside = turnstile.lock();
        loop {
            let here = inside.present.iter().filter(|other| other.object == object);
            let mut blocked = false;
            for other in here {
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
        drop(inside);
        STAYS.set(stays + 1);
        // After the list: what happens under the lock alone in between is over before this thread has looked at anything.
        count_stay(object, 1);
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
        // Before the list: this thread looks at nothing any more, so a change under the lock alone may go on.
        count_stay(self.object, u32::MAX);
        let turnstile = of_object(&TURNSTILES, self.object);
        let mut inside = turnstile.lock();
        // A thread may stay at a dict several times for the same; which of them goes makes no difference.
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

/// Adds `more` to the stays at the objects of a lock: 1, or -1 in two's complement.
fn count_stay(object: usize, more: u32) {
    let turn = of_object(&LOCKS, object).take();
    let stays = turn.0.stays.load(Ordering::Relaxed);
    turn.0
        .stays
        .store(stays.wrapping_add(more), Ordering::Relaxed);
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
