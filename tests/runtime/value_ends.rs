//! How chains of objects end: on little stack, and with nothing left (VAL-05).
#![cfg(feature = "runtime")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use tvmspec::object::{Array, List};
use tvmspec::value::Any;

/// Counts the bytes that each thread has allocated and not freed.
struct Counted;

thread_local! {
    static LIVE: Cell<i64> = const { Cell::new(0) };
}

fn add(bytes: i64) {
    let _ = LIVE.try_with(|live| live.set(live.get() + bytes));
}

// SAFETY: `System` allocates; this only counts.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as i64);
        // SAFETY: the contract of this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        add(-(layout.size() as i64));
        // SAFETY: the contract of this function.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

/// `levels` sequences inside one another, an array in a list in an array.
fn chain(levels: usize) -> Any {
    (0..levels).fold(Any::from(7i64), |inner, level| match level % 2 {
        0 => Array::new(vec![inner]).into(),
        _ => List::new(vec![inner]).into(),
    })
}

#[test]
fn a_long_chain_ends_on_little_stack() {
    let thread = std::thread::Builder::new().stack_size(256 << 10);
    let ended = thread.spawn(|| drop(chain(200_000))).unwrap().join();
    assert!(ended.is_ok());
}

#[test]
fn the_memory_of_a_chain_is_freed_at_every_depth() {
    tvmspec::object::init();
    // Small objects that ended wait for the next of their size, and the queue keeps its room.
    const KEPT: i64 = 32 << 10;
    drop(chain(500));
    for levels in [1, 2, 63, 64, 65, 66, 67, 96, 128, 129, 500] {
        let before = LIVE.get();
        (0..2000).for_each(|_| drop(chain(levels)));
        let left = LIVE.get() - before;
        assert!(
            left <= KEPT,
            "2,000 times {levels} levels leave {left} bytes"
        );
    }
}

#[test]
fn a_wide_object_below_the_deepest_level_ends_with_all_its_elements() {
    tvmspec::object::init();
    let wide = |levels| {
        let elements: Vec<Any> = (0..20).map(|_| chain(3)).collect();
        (0..levels).fold(Any::from(Array::new(elements)), |inner, _| {
            Array::new(vec![inner]).into()
        })
    };
    drop(wide(80));
    for levels in [60, 61, 62, 63, 64, 65, 80] {
        let before = LIVE.get();
        (0..200).for_each(|_| drop(wide(levels)));
        let left = LIVE.get() - before;
        assert!(
            left <= 32 << 10,
            "200 times {levels} levels leave {left} bytes"
        );
    }
}
