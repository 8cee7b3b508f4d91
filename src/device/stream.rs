//! The current stream of each device, per thread.
//!
//! Since 0.22 a device does not keep its own: one table for all, in the thread. Compiled code reads it through
//! `TVMFFIEnvGetStream`.

use crate::device::{Device, Result, Stream};
use crate::thread_local::with_kept;
use crate::value::SmallMap;
use std::cell::RefCell;

thread_local! {
    /// This thread's streams by type and index; what is not there is the default stream. Few: a search is as fast as a table.
    static CURRENT: RefCell<SmallMap<(i32, i32), Stream>> = const { RefCell::new(SmallMap::new()) };
}

/// The stream that this thread set for `device`; the default stream if it never set one (DEV-22).
pub fn current(device: Device) -> Stream {
    // DEV-22: up to 0.21 each backend kept the current stream itself, and CUDA one for all its devices.
    with_kept(&CURRENT, |table| {
        table.find(&key(device)).copied().unwrap_or_default()
    })
}

/// Sets the stream of `device` for this thread and returns the one before (DEV-22, DEV-23).
///
/// # Errors
///
/// DEV-38 for a stream of another type of device.
pub fn set(device: Device, stream: Stream) -> Result<Stream> {
    // DEV-38: here and not at each launch: what is in the table is passed to the driver, which follows its handle.
    stream.on(device)?;
    let before = with_kept(&CURRENT, |table| table.put(key(device), stream));
    Ok(before.unwrap_or_default())
}

fn key(device: Device) -> (i32, i32) {
    (device.kind, device.id)
}

thread_local! {
    /// This thread's current device of each type. What drivers keep themselves is set beside it (`Driver::enter`).
    static DEVICE: RefCell<SmallMap<i32, i32>> = const { RefCell::new(SmallMap::new()) };
}

/// The id of the device of type `kind` that this thread made current; 0 if it never did (DEV-55).
pub(crate) fn current_device(kind: i32) -> i32 {
    with_kept(&DEVICE, |table| table.find(&kind).copied().unwrap_or(0))
}

/// Makes `device` the current one of its type for this thread.
pub(crate) fn set_current_device(device: Device) {
    with_kept(&DEVICE, |table| table.put(device.kind, device.id));
}
