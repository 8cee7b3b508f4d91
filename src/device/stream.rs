//! The current stream of each device, per thread.
//!
//! Since 0.22, one table per thread contains the streams of all devices. Before, each device had its own table. Compiled code reads it
//! through `TVMFFIEnvGetStream`.

use crate::device::{Device, Result, Stream};
use crate::thread_local::with_kept;
use crate::value::SmallMap;
use std::cell::RefCell;

thread_local! {
    /// The streams of this thread by type and index. A missing entry is the default stream. There are few, so a linear search is
    /// fast enough.
    static CURRENT: RefCell<SmallMap<(i32, i32), Stream>> = const { RefCell::new(SmallMap::new()) };
}

/// Returns the stream that this thread set for `device`, or the default stream if it never set one (DEV-22).
pub fn current(device: Device) -> Stream {
    // DEV-22: up to 0.21 each backend stored the current stream itself; CUDA stored one for all its devices.
    with_kept(&CURRENT, |table| {
        table.find(&key(device)).copied().unwrap_or_default()
    })
}

/// Sets the stream of `device` for this thread and returns the previous one (DEV-22, DEV-23).
///
/// # Errors
///
/// Returns DEV-38 for a stream of another type of device.
pub fn set(device: Device, stream: Stream) -> Result<Stream> {
    // DEV-38: checked here rather than at each launch. A stream of the table is passed to the driver, which dereferences its
    // handle.
    stream.handle_for(device)?;
    let before = with_kept(&CURRENT, |table| table.put(key(device), stream));
    Ok(before.unwrap_or_default())
}

fn key(device: Device) -> (i32, i32) {
    (device.kind, device.id)
}

thread_local! {
    /// The current device of each type on this thread. The driver's own current device is set as well (`Driver::enter`).
    static DEVICE: RefCell<SmallMap<i32, i32>> = const { RefCell::new(SmallMap::new()) };
}

/// Returns the id of this thread's current device of type `kind`, or 0 if it never set one (DEV-55).
pub(crate) fn current_device(kind: i32) -> i32 {
    with_kept(&DEVICE, |table| table.find(&kind).copied().unwrap_or(0))
}

/// Makes `device` the current device of its type for this thread.
pub(crate) fn set_current_device(device: Device) {
    with_kept(&DEVICE, |table| table.put(device.kind, device.id));
}
