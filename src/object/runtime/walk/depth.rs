//! Limits on the nesting of values, so that no stack overflows.
//!
//! Walks over values recurse, and callbacks, hooks and further visitors may run between two levels. A limit on levels is therefore not
//! enough: every level also checks the remaining stack of the thread.

use crate::function::{Error, ErrorKind, Result};
use crate::object::OBJ_41;
use crate::rule::{Kind, Violation};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum number of levels of a walk. A limit of this crate: upstream has none, and its stack overflows.
pub(crate) const MAX_DEPTH: usize = 2000;

/// Bytes of stack that are reserved for code that does not recurse further: a callback, a hook, the creation of an error. On a small stack,
/// a quarter of it is reserved.
const RESERVE: usize = 128 * 1024;

/// Checks that there is room for level `depth`, counted from 0. Returns a ValueError otherwise.
#[inline]
pub(crate) fn check(depth: usize) -> Result<()> {
    if depth > MAX_DEPTH {
        return Err(too_deep(&format!(
            "the value nests deeper than {MAX_DEPTH}"
        )));
    }
    check_stack()
}

/// The number of objects around the current value of a walk. Counted here instead of passed on, because a hook may run between two levels.
/// Atomic, because visitors and the callbacks of hooks may be shared.
#[derive(Default)]
pub(super) struct Levels(AtomicUsize);

impl Levels {
    /// Runs `body` one level deeper.
    pub(super) fn deeper<T>(&self, body: impl FnOnce() -> Result<T>) -> Result<T> {
        let levels = self.0.fetch_add(1, Ordering::Relaxed);
        let result = check(levels).and_then(|()| body());
        self.0.fetch_sub(1, Ordering::Relaxed);
        result
    }
}

/// Like [`check`], for callers that count their levels themselves.
#[inline]
pub(crate) fn check_stack() -> Result<()> {
    if is_short() {
        return Err(too_deep(
            "the value nests too deep for the stack of this thread",
        ));
    }
    Ok(())
}

/// Returns the ValueError for a value that nests too deeply. Cold: [`check`] runs once per level and almost never fails.
#[cold]
fn too_deep(message: &str) -> Error {
    Error::new(ErrorKind::Value, message)
}

/// Maximum number of nested objects in a saved graph, for reading and writing (OBJ-41).
const MAX_SAVED: usize = 1_000;

/// Checks `levels` nested objects of a saved graph against OBJ-41.
pub(crate) fn check_saved(levels: usize) -> std::result::Result<(), Violation> {
    OBJ_41.demand(Kind::Limit, levels <= MAX_SAVED, || {
        format!("objects nest deeper than {MAX_SAVED}")
    })
}

/// The stack of a thread: its lowest address and its size in bytes.
type StackExtent = (usize, usize);

thread_local! {
    /// The stack of this thread, after the first check. Empty if the system does not know it.
    static STACK: Cell<Option<StackExtent>> = const { Cell::new(None) };
}

/// Returns whether the stack is almost used up. On a stack that does not belong to the thread, such as a coroutine's, this is unknown.
fn is_short() -> bool {
    // The address of a local variable is close to the stack pointer and available on every platform.
    let here = 0u8;
    let here = (&raw const here).addr();
    let (lowest, size) = STACK.get().unwrap_or_else(|| {
        let extent = extent(here).unwrap_or_default();
        STACK.set(Some(extent));
        extent
    });
    let left = here.wrapping_sub(lowest);
    // An address outside the known stack wraps to more than `size`. Then nothing is known, and only the levels bound the walk.
    left < size && left < RESERVE.min(size / 4)
}

/// Returns the stack of this thread, as the C library knows it. The size of the main thread's stack is its limit, not its mapped part.
#[cfg(all(target_os = "linux", not(miri)))]
fn extent(_: usize) -> Option<StackExtent> {
    use std::ffi::{c_int, c_void};

    /// `pthread_attr_t`: opaque, with 56 bytes on x86-64 and 64 on AArch64. Twice that is enough.
    #[repr(C, align(16))]
    struct ThreadAttributes([u8; 128]);

    unsafe extern "C" {
        fn pthread_self() -> usize;
        fn pthread_getattr_np(thread: usize, out: *mut ThreadAttributes) -> c_int;
        fn pthread_attr_getstack(
            attributes: *const ThreadAttributes,
            lowest: *mut *mut c_void,
            size: *mut usize,
        ) -> c_int;
        fn pthread_attr_destroy(attributes: *mut ThreadAttributes) -> c_int;
    }

    let mut attributes = ThreadAttributes([0; 128]);
    let (mut lowest, mut size) = (std::ptr::null_mut(), 0);
    // SAFETY: takes no arguments.
    let thread = unsafe { pthread_self() };
    // SAFETY: the thread is running, and there is room for the attributes, which the call fills in.
    if unsafe { pthread_getattr_np(thread, &raw mut attributes) } != 0 {
        return None;
    }
    // SAFETY: the attributes are filled in, and both results are writable.
    let failed =
        unsafe { pthread_attr_getstack(&raw const attributes, &raw mut lowest, &raw mut size) };
    // SAFETY: the attributes are filled in, and are not used any more.
    unsafe { pthread_attr_destroy(&raw mut attributes) };
    (failed == 0).then(|| (lowest.addr(), size))
}

/// Assumes on other systems that a thread has one more mebibyte than it had used at the first check: half of the usual size.
#[cfg(all(not(target_os = "linux"), not(miri)))]
fn extent(here: usize) -> Option<StackExtent> {
    const ASSUMED: usize = 1 << 20;
    Some((here.saturating_sub(ASSUMED), usize::MAX))
}

/// Returns `None`: an interpreter has its own stack.
#[cfg(miri)]
fn extent(_: usize) -> Option<StackExtent> {
    None
}
