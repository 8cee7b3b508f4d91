//! Objects that end inside one another: a destructor releases what its object refers to, which may end in turn.
//!
//! Released runtimes recurse here, and a chain that is long enough ends the process with its stack. Here an object that
//! ends inside [`NESTED`] others waits in a queue of its thread (VAL-05).

use super::{DELETE_WEAK, Deleter, Header, dec_weak, inc_weak};
use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;

/// Ends an object by `body`, now or, below [`NESTED`] others that are ending on this thread, once the last of those has ended:
/// a chain of any length costs no stack. For deleters of objects that refer to others.
///
/// # Safety
/// `body` is a deleter's work on `object` with `flags`, as the header's rules call it (VAL-05): once for each flag.
#[inline]
pub(crate) unsafe fn end_nested(object: *mut Header, flags: i32, body: Deleter) {
    // One look for the thread's own memory: in a shared library that is a call.
    ENDING.with(|ending| {
        let depth = ending.depth.get();
        if depth >= NESTED {
            // SAFETY: this function's contract.
            return unsafe { wait(ending, object, flags, body) };
        }
        let level = NestingLevel(&ending.depth, depth);
        ending.depth.set(depth + 1);
        // SAFETY: `body` and `flags` are what this contract requires.
        unsafe { body(object, flags) };
        if ending.has_queued.get() {
            end_waiting(ending);
        }
        drop(level);
    });
}

/// # Safety
/// As [`end_nested`].
#[cold]
#[inline(never)]
unsafe fn wait(ending: &Ending, object: *mut Header, flags: i32, body: Deleter) {
    if flags & DELETE_WEAK == 0 {
        // Who calls a deleter without DELETE_WEAK drops the shared weak reference next; this one keeps the memory.
        // SAFETY: that shared reference is still counted.
        unsafe { inc_weak(object) };
    }
    ending
        .queue
        .borrow_mut()
        .push(PendingEnd(object, flags, body));
    ending.has_queued.set(true);
}

/// # Safety
/// The argument was made by [`wait`] and is ended once.
unsafe fn end_one(PendingEnd(object, flags, body): PendingEnd) {
    // SAFETY: the one call of the deleter for these flags.
    unsafe { body(object, flags) };
    if flags & DELETE_WEAK == 0 {
        // SAFETY: the weak reference that `wait` counted.
        unsafe { dec_weak(object) }
    }
}

#[cold]
fn end_waiting(ending: &Ending) {
    loop {
        // The borrow ends here: what ends next may put others into the queue.
        let next = ending.queue.borrow_mut().pop();
        let Some(next) = next else { break };
        // SAFETY: what waits was put there by `wait`, and is taken out once.
        unsafe { end_one(next) }
    }
    // With its memory, which no destructor of the thread frees.
    drop(ending.queue.take());
    ending.has_queued.set(false);
}

/// How many objects end inside one another before the rest waits its turn.
const NESTED: u32 = 64;

/// An object whose end waits, and how it ends.
struct PendingEnd(*mut Header, i32, Deleter);

/// The objects that end on a thread.
struct Ending {
    /// How many end inside one another.
    depth: Cell<u32>,
    /// Whether some wait.
    has_queued: Cell<bool>,
    /// Those that wait. Without a destructor, because objects end until the last destructor of the thread has run.
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

/// One level of objects that end inside one another, also when a destructor panics.
#[must_use = "the level counts until it is dropped"]
struct NestingLevel<'a>(&'a Cell<u32>, u32);

impl Drop for NestingLevel<'_> {
    fn drop(&mut self) {
        self.0.set(self.1);
    }
}
