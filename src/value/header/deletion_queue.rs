//! Nested deletion of objects. A destructor releases the objects that its object refers to, which may delete them too.
//!
//! Released runtimes recurse here, so a long chain overflows the stack. In this crate, an object that is deleted inside [`NESTED`]
//! nested deletions waits in a queue of its thread (VAL-05).

use super::{DELETE_WEAK, Deleter, Header, dec_weak, inc_weak};
use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;

/// Deletes an object with `body`. If [`NESTED`] deletions are already nested on this thread, the object waits in a queue until the
/// innermost of them is done. A chain of any length thus needs no stack. Used by deleters of objects that refer to others.
///
/// # Safety
/// `body` does the work of a deleter on `object` with `flags`, and VAL-05 allows the call: once for each flag.
#[inline]
pub(crate) unsafe fn end_nested(object: *mut Header, flags: i32, body: Deleter) {
    // A single access to the thread-local: in a shared library each access is a call.
    ENDING.with(|ending| {
        let depth = ending.depth.get();
        if depth >= NESTED {
            // SAFETY: the contract of this function.
            return unsafe { wait(ending, object, flags, body) };
        }
        let level = NestingLevel(&ending.depth, depth);
        ending.depth.set(depth + 1);
        // SAFETY: `body` and `flags` meet this contract.
        unsafe { body(object, flags) };
        if ending.has_queued.get() {
            end_waiting(ending);
        }
        drop(level);
    });
}

/// Puts an object into the queue.
///
/// # Safety
/// As for [`end_nested`].
#[cold]
#[inline(never)]
unsafe fn wait(ending: &Ending, object: *mut Header, flags: i32, body: Deleter) {
    if flags & DELETE_WEAK == 0 {
        // A caller of a deleter without DELETE_WEAK drops the shared weak reference next. This one keeps the memory allocated.
        // SAFETY: that shared reference is still counted.
        unsafe { inc_weak(object) };
    }
    ending
        .queue
        .borrow_mut()
        .push(PendingEnd(object, flags, body));
    ending.has_queued.set(true);
}

/// Deletes an object from the queue.
///
/// # Safety
/// [`wait`] created the argument, and it is used once.
unsafe fn end_one(PendingEnd(object, flags, body): PendingEnd) {
    // SAFETY: the only call of the deleter for these flags.
    unsafe { body(object, flags) };
    if flags & DELETE_WEAK == 0 {
        // SAFETY: the weak reference that `wait` counted.
        unsafe { dec_weak(object) }
    }
}

#[cold]
fn end_waiting(ending: &Ending) {
    loop {
        // The borrow must end here, because the deletion may put other objects into the queue.
        let next = ending.queue.borrow_mut().pop();
        let Some(next) = next else { break };
        // SAFETY: `wait` created the entry, and it is removed once.
        unsafe { end_one(next) }
    }
    // Frees the queue's memory, because no destructor of the thread does.
    drop(ending.queue.take());
    ending.has_queued.set(false);
}

/// Maximum number of nested deletions before further objects wait.
const NESTED: u32 = 64;

/// An object that waits for its deletion, with the flags and the deleter.
struct PendingEnd(*mut Header, i32, Deleter);

/// The deletion state of a thread.
struct Ending {
    /// Number of nested deletions.
    depth: Cell<u32>,
    /// True if objects are waiting.
    has_queued: Cell<bool>,
    /// The waiting objects. Has no destructor, because objects may be deleted until the last destructor of the thread has run.
    queue: ManuallyDrop<RefCell<Vec<PendingEnd>>>,
}

thread_local! {
    static ENDING: Ending = const {
        Ending {
            depth: Cell::new(0),
            has_queued: Cell::new(false),
            queue: ManuallyDrop::new(RefCell::new(Vec::new())),
        }
    };
}

const _: () = assert!(
    !std::mem::needs_drop::<Ending>(),
    "a thread would lose the queue before its last objects end"
);

/// One level of nested deletions, which also ends if a destructor panics.
#[must_use = "the level counts until it is dropped"]
struct NestingLevel<'a>(&'a Cell<u32>, u32);

impl Drop for NestingLevel<'_> {
    fn drop(&mut self) {
        self.0.set(self.1);
    }
}
