//! Functions that compiled code calls: arrays, workspace, workers, and code that runs once.

use super::last_error;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use tvmspec::capi::backend::*;
use tvmspec::capi::legacy::*;
use tvmspec::module::parallel::GroupEnv;
use tvmspec::value::DLTensor;

#[test]
fn an_array_is_made_filled_shared_and_freed() {
    let mut bytes: Vec<u8> = (0..24).collect();
    let mut array = ptr::null_mut();
    let mut managed = ptr::null_mut();
    let mut back = ptr::null_mut();
    let mut other = ptr::null_mut();
    let mut read = [0u8; 24];
    unsafe {
        let shape = [2i64, 3];
        for place in [&mut array, &mut other] {
            assert_eq!(
                TVMArrayAlloc(shape.as_ptr(), 2, 2, 32, 1, 1, 0, place),
                0,
                "{}",
                last_error()
            );
        }
        // Memory of a missing device is not memory of the host.
        let code = TVMArrayAlloc(shape.as_ptr(), 2, 2, 32, 1, 77, 0, &mut back);
        assert!(code == -1 && back.is_null());
        let data = bytes.as_mut_ptr().cast();
        assert_eq!(TVMArrayCopyFromBytes(array, data, 24), 0);
        assert_eq!(TVMArrayCopyFromBytes(array, data, 23), -1);
        let inside = (*array.cast::<DLTensor>()).data.cast::<u8>();
        let inside = inside.wrapping_add((*array.cast::<DLTensor>()).byte_offset as usize);
        assert_eq!(std::slice::from_raw_parts(inside, 24), &bytes[..]);
        assert_eq!(TVMArrayCopyFromTo(array, other, ptr::null_mut()), 0);
        assert_eq!(TVMArrayToDLPack(array, &mut managed), 0);
        assert_eq!(TVMArrayFree(array), 0);
        assert_eq!(TVMArrayFromDLPack(managed, &mut back), 0);
        for array in [other, back] {
            read.fill(0);
            assert_eq!(TVMArrayCopyToBytes(array, read.as_mut_ptr().cast(), 24), 0);
            assert_eq!(read[..], bytes[..]);
            assert_eq!(TVMArrayFree(array), 0);
        }
    }
}

struct Numbers {
    seen: [AtomicU32; 4],
}

unsafe extern "C" fn task(at: c_int, group: *mut GroupEnv, data: *mut c_void) -> c_int {
    let numbers = unsafe { &*data.cast::<Numbers>() };
    numbers.seen[at as usize].fetch_add(1, Ordering::Relaxed);
    let code = unsafe { TVMBackendParallelBarrier(at, group) };
    let count = unsafe { (*group).num_task } as usize;
    let all = numbers.seen[..count]
        .iter()
        .all(|seen| seen.load(Ordering::Relaxed) == 1);
    if code == 0 && all { 0 } else { -1 }
}

unsafe extern "C" fn count_up(data: *mut c_void) -> c_int {
    unsafe { &*data.cast::<AtomicU32>() }.fetch_add(1, Ordering::Relaxed);
    0
}

#[test]
fn compiled_code_has_workspace_workers_and_runs_once() {
    let (mut once, count) = (ptr::null_mut(), AtomicU32::new(0));
    let counter = (&raw const count).cast_mut().cast();
    let numbers = Numbers {
        seen: Default::default(),
    };
    unsafe {
        let first = TVMBackendAllocWorkspace(1, 0, 100, 2, 32);
        let second = TVMBackendAllocWorkspace(1, 0, 100, 2, 32);
        assert!(!first.is_null() && !second.is_null() && first != second);
        first.cast::<u8>().write_bytes(1, 100);
        second.cast::<u8>().write_bytes(2, 100);
        assert!(TVMBackendAllocWorkspace(1, 0, u64::MAX, 2, 32).is_null());
        assert!(TVMBackendAllocWorkspace(77, 0, 64, 2, 32).is_null());
        assert!(last_error().contains("77"), "{}", last_error());
        // The device does not exist, so it has no workspace to free.
        assert_eq!(TVMBackendFreeWorkspace(77, 0, second), -1);
        assert_eq!(second.cast::<[u8; 100]>().read(), [2; 100]);
        assert_eq!(TVMBackendFreeWorkspace(1, 0, second), 0);
        assert_eq!(TVMBackendFreeWorkspace(1, 0, first), 0);
        for _ in 0..2 {
            assert_eq!(TVMBackendRunOnce(&mut once, count_up, counter, 0), 0);
        }
        let data = (&raw const numbers).cast_mut().cast();
        assert_eq!(
            TVMBackendParallelLaunch(task, data, 2),
            0,
            "{}",
            last_error()
        );
    }
    assert_eq!(count.load(Ordering::Relaxed), 1);
}

/// An initialiser that calls back with its own handle, and with another one.
struct ComesBack {
    own: *mut c_void,
    other: *mut c_void,
    calls: u32,
}

unsafe extern "C" fn comes_back(data: *mut c_void) -> c_int {
    let data = data.cast::<ComesBack>();
    unsafe { (*data).calls += 1 };
    let own = unsafe { TVMBackendRunOnce(&raw mut (*data).own, comes_back, data.cast(), 0) };
    let other = unsafe { TVMBackendRunOnce(&raw mut (*data).other, comes_back, data.cast(), 0) };
    own | other
}

#[test]
fn an_initialiser_may_come_back() {
    let (sender, receiver) = std::sync::mpsc::channel();
    // This runs on a separate thread, because an earlier version waited for itself.
    std::thread::spawn(move || {
        let mut data = ComesBack {
            own: ptr::null_mut(),
            other: ptr::null_mut(),
            calls: 0,
        };
        let place = &raw mut data;
        let code = unsafe { TVMBackendRunOnce(&raw mut (*place).own, comes_back, place.cast(), 0) };
        sender.send((code, data.calls, data.own.is_null())).unwrap();
    });
    let within = std::time::Duration::from_secs(20);
    // The initialiser runs once for each handle, and the second call finds both running.
    assert_eq!(receiver.recv_timeout(within).unwrap(), (0, 2, false));
}
