//! Tests that count or watch allocations. This test program has its own allocator.

#[cfg(feature = "frontend")]
mod first_call;
mod inflation;
#[cfg(all(feature = "rpc", feature = "target"))]
mod streams;
#[path = "../support/mod.rs"]
mod support;
#[cfg(all(unix, feature = "rpc", feature = "runtime"))]
mod transport;
#[cfg(feature = "inspect")]
mod unpacking;
#[cfg(feature = "runtime")]
mod value_destruction;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Global allocator that counts the bytes of each thread and calls a hook before it allocates.
struct Watched;

thread_local! {
    /// Bytes that this thread has allocated and not freed.
    static LIVE: Cell<i64> = const { Cell::new(0) };
    /// The highest value of `LIVE` since it was last set.
    static PEAK: Cell<i64> = const { Cell::new(0) };
    /// Function that is called once before the next allocation, as a measuring allocator might.
    static HOOK: Cell<Option<fn()>> = const { Cell::new(None) };
}

fn add(bytes: i64) {
    let _ = LIVE.try_with(|live| {
        live.set(live.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(live.get())));
    });
}

/// Runs `work` and returns its result, with the peak number of bytes that this thread allocated in addition to those before the
/// call.
fn peak_of<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = LIVE.get();
    PEAK.set(before);
    let result = work();
    (usize::try_from(PEAK.get() - before).unwrap(), result)
}

// SAFETY: `System` allocates; the counters and the hook touch none of its blocks.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if let Ok(Some(hook)) = HOOK.try_with(|hook| hook.take()) {
            hook();
            HOOK.set(Some(hook));
        }
        add(layout.size() as i64);
        // SAFETY: the contract of this function requires it.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        add(-(layout.size() as i64));
        // SAFETY: the contract of this function requires it.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;
