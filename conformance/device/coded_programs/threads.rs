//! Programs with two threads: concurrent lookups, and the pool of a thread that ends.

use super::super::program_devices::{PooledRecorder, recorder};
use super::DEVICE;
use crate::conformance::behaviour::{Outcome, demand, expect};
use crate::device::manager::{ApiFactory, Manager};
use crate::device::{Device, DeviceApi};
use serde_json::json;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// Runs `device/lookup-that-is-overtaken` (DEV-02). A nested lookup stands for another thread that looks up at the same time.
pub(super) fn overtaken() -> Outcome {
    let calls = Arc::new(AtomicUsize::new(0));
    let looked = AtomicBool::new(false);
    let shared = calls.clone();
    let manager = Arc::new_cyclic(|manager: &Weak<Manager>| {
        let manager = manager.clone();
        Manager::with_lookup(Box::new(move |_| -> Option<ApiFactory> {
            let calls = shared.clone();
            // Only the first lookup asks again, because otherwise it would never end.
            if !looked.swap(true, Ordering::Relaxed) {
                manager.upgrade()?.find(8).ok()?;
            }
            Some(Box::new(move || {
                calls.fetch_add(1, Ordering::Relaxed);
                Ok(recorder() as &dyn DeviceApi)
            }))
        }))
    });
    let first = manager.api(8)?;
    demand(std::ptr::addr_eq(first, manager.api(8)?), || {
        "the device is another one at the second look".into()
    })?;
    let called = calls.load(Ordering::Relaxed);
    expect(called, 1, "calls of the factory")
}

/// Runs `device/pool-is-freed-with-its-thread` (DEV-33).
pub(super) fn thread_end() -> Outcome {
    let pool = PooledRecorder::new();
    let block = json!(["alloc", 0, 4096, 64, "uint8"]);
    let freed = json!(["free", 0]);
    let here = pool.pools.alloc(DEVICE, 64)?;
    let there = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let space = pool.pools.alloc(DEVICE, 64)?;
            pool.pools.free(DEVICE, space)?;
            Ok::<_, crate::device::Error>(space)
        });
        thread.join()
    });
    demand(
        there.is_ok_and(|there| there.is_ok_and(|there| there != here)),
        || "two threads share a block".into(),
    )?;
    // A scope may end before its threads have run their destructors. `join` of an ordinary thread returns after them.
    for _ in 0..200 {
        if pool.recorder.peek().contains(&freed) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let expected = vec![block.clone(), block.clone(), freed.clone()];
    expect(pool.recorder.take_log(), expected, "calls")?;
    // Another device id has another pool.
    pool.pools.free(DEVICE, here)?;
    pool.pools.alloc(Device::ext_dev(1), 64)?;
    let expected = vec![json!(["alloc", 1, 4096, 64, "uint8"])];
    expect(
        pool.recorder.take_log(),
        expected,
        "calls for another device",
    )?;
    // Dropping the pools frees their free blocks.
    let PooledRecorder { recorder, pools } = pool;
    drop(pools);
    expect(recorder.take_log(), vec![freed.clone()], "the end")
}
