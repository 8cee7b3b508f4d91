//! How deep values may nest before an error, so that no stack overflows.
//!
//! What walks a value recurses, and callbacks, hooks and further visitors may run in between. So besides the levels it is
//! the stack of the thread that bounds it: every level checks what is left of it.

use crate::function::{Error, ErrorKind, Result};
use crate::object::OBJ_41;
use crate::rule::{Kind, Violation};
use std::cell::Cell;

/// How many levels a walk goes down. A bound of this crate: upstream has none, and its stack overflows.
pub(crate) const MAX_DEPTH: usize = 2000;

/// Bytes of stack that stay for what does not go deeper: a callback, a hook, the making of an error. A small stack keeps a
/// quarter.
const RESERVE: usize = 128 * 1024;

/// Whether there is room for level `depth`, counted from 0; a ValueError where there is none.
#[inline]
pub(crate) fn check(depth: usize) -> Result<()> {
    if depth > MAX_DEPTH {
        return Err(too_deep(&format!(
            "the value nests deeper than {MAX_DEPTH}"
        )));
    }
    check_stack()
}

/// [`check`] for who counts its levels itself.
#[inline]
pub(crate) fn check_stack() -> Result<()> {
    if is_short() {
        return Err(too_deep(
            "the value nests too deep for the stack of this thread",
        ));
    }
    Ok(())
}

/// The ValueError for a value that nests too deep. Cold: [`check`] runs once a level and almost never fails.
#[cold]
fn too_deep(message: &str) -> Error {
    Error::new(ErrorKind::Value, message)
}

/// How many objects of a saved graph may lie in each other, on the way in and out (OBJ-41).
const MAX_SAVED: usize = 1_000;

/// Holds `levels` objects of a saved graph, each in the one before, to OBJ-41.
pub(crate) fn check_saved(levels: usize) -> std::result::Result<(), Violation> {
    OBJ_41.demand(Kind::Limit, levels <= MAX_SAVED, || {
        format!("objects nest deeper than {MAX_SAVED}")
    })
}

/// The stack of a thread in bytes: its lowest address, and how many there are.
type StackExtent = (usize, usize);

thread_local! {
    /// Of this thread, after the first check; empty where the system does not know it.
    static STACK: Cell<Option<StackExtent>> = const { Cell::new(None) };
}

/// Whether the stack comes to its end. On a stack that is not the thread's own, such as a coroutine's, that is unknown.
fn is_short() -> bool {
    // The address of a local is close to the stack pointer, and every platform has one.
    let here = 0u8;
    let here = (&raw const here).addr();
    let (lowest, size) = STACK.get().unwrap_or_else(|| {
        let extent = extent(here).unwrap_or_default();
        STACK.set(Some(extent));
        extent
    });
    let left = here.wrapping_sub(lowest);
    // An address outside of the known stack wraps to more than `size`: then nothing is known, and only the levels bound the walk.
    left < size && left < RESERVE.min(size / 4)
}

/// The stack of this thread, as the C library knows it. That of the main thread is as long as its limit, not as what is mapped of
/// it.
#[cfg(all(target_os = "linux", not(miri)))]
fn extent(_: usize) -> Option<StackExtent> {
    use std::ffi::{c_int, c_void};

    /// `pthread_attr_t`: opaque, and of the platform's size, 56 bytes on x86-64 and 64 on AArch64. Twice that is enough.
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
    // SAFETY: takes nothing.
    let thread = unsafe { pthread_self() };
    // SAFETY: the thread runs, and there is room for the attributes, which the call fills in.
    if unsafe { pthread_getattr_np(thread, &raw mut attributes) } != 0 {
        return None;
    }
    // SAFETY: the attributes are filled in, and both results have a place.
    let failed =
        unsafe { pthread_attr_getstack(&raw const attributes, &raw mut lowest, &raw mut size) };
    // SAFETY: the attributes are filled in, and not used any more.
    unsafe { pthread_attr_destroy(&raw mut attributes) };
    (failed == 0).then(|| (lowest.addr(), size))
}

/// Elsewhere a thread is taken to have one more mebibyte than it had used at the first check: half of the usual.
#[cfg(all(not(target_os = "linux"), not(miri)))]
fn extent(here: usize) -> Option<StackExtent> {
    const ASSUMED: usize = 1 << 20;
    Some((here.saturating_sub(ASSUMED), usize::MAX))
}

/// An interpreter has a stack of its own.
#[cfg(miri)]
fn extent(_: usize) -> Option<StackExtent> {
    None
}
