//! What a device returns for memory and for queues of work: handles that mean something to it alone.

use super::error::reject;
use super::{DEV_38, Device, Result};
use crate::rule::Kind;
use std::ffi::c_void;

/// A piece of memory on some device: a handle that only the device that returned it can read.
///
/// On the CPU it is an address. On OpenCL and Vulkan it is an object; adding to it means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Space(pub *mut c_void);

// SAFETY: a handle is a number: only `unsafe` methods of a device, which is `Sync`, follow it.
unsafe impl Send for Space {}
// SAFETY: a handle is a number: only `unsafe` methods of a device, which is `Sync`, follow it.
unsafe impl Sync for Space {}

impl Space {
    /// No memory.
    pub const NULL: Space = Space(std::ptr::null_mut());

    /// The address of host memory as a handle of the CPU device.
    pub fn host<T>(data: *const T) -> Space {
        Space(data.cast_mut().cast())
    }

    /// Whether this is no memory.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The handle as a number.
    pub fn address(self) -> usize {
        self.0 as usize
    }
}

/// A queue of work on a device. Work of one stream runs in order; the default stream is null.
///
/// One that is not the default is made by [`DeviceApi::create_stream`](super::DeviceApi::create_stream), or of a handle by code that answers for it: drivers
/// follow the handle.
///
/// ```compile_fail,E0423
/// let made_up = tvmspec::device::Stream(std::ptr::without_provenance_mut(64));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stream {
    /// What the driver returned for it; null for the default stream.
    handle: *mut c_void,
    /// Type of the devices that follow the handle; 0 for the default stream.
    kind: i32,
}

// SAFETY: a device follows the handle, and devices are `Sync`; to everyone else it is a number.
unsafe impl Send for Stream {}
// SAFETY: a device follows the handle, and devices are `Sync`; to everyone else it is a number.
unsafe impl Sync for Stream {}

impl Stream {
    /// The stream that always exists.
    pub const DEFAULT: Stream = Stream {
        handle: std::ptr::null_mut(),
        kind: 0,
    };

    /// The stream of devices of `device`'s type that has this handle; null is the default one.
    ///
    /// # Safety
    ///
    /// The handle is one of a stream of this type of device, which is not freed as long as this is used.
    pub const unsafe fn from_handle(device: Device, handle: *mut c_void) -> Stream {
        // Null is the default stream of every type, so the type is dropped and all of them are equal.
        if handle.is_null() {
            return Stream::DEFAULT;
        }
        let kind = device.kind;
        Stream { handle, kind }
    }

    /// What its driver knows it by.
    pub const fn handle(self) -> *mut c_void {
        self.handle
    }

    /// What the driver of `device` knows it by.
    ///
    /// # Errors
    ///
    /// DEV-38 for a stream of another type of device, whose handle that driver would follow astray.
    pub fn on(self, device: Device) -> Result<*mut c_void> {
        if self.kind != device.kind && !self.handle.is_null() {
            let text = format!(
                "a stream of device type {} is not a stream of a device of type {}",
                self.kind, device.kind
            );
            return reject(DEV_38, Kind::Type, text);
        }
        Ok(self.handle)
    }
}

impl Default for Stream {
    fn default() -> Stream {
        Stream::DEFAULT
    }
}
