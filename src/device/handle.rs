//! Handles that a device returns for memory and for queues of work. Only that device can interpret them.

use super::error::reject;
use super::{DEV_38, Device, Result};
use crate::rule::Kind;
use std::ffi::c_void;

/// A piece of memory on a device, as a handle that only that device can interpret.
///
/// On the CPU it is an address. On OpenCL and Vulkan it is an object, to which no offset can be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Space(pub *mut c_void);

// SAFETY: a handle is a number: only `unsafe` methods of a device, which is `Sync`, dereference it.
unsafe impl Send for Space {}
// SAFETY: a handle is a number: only `unsafe` methods of a device, which is `Sync`, dereference it.
unsafe impl Sync for Space {}

impl Space {
    /// The null handle, which is not memory.
    pub const NULL: Space = Space(std::ptr::null_mut());

    /// Returns the address of host memory as a handle of the CPU device.
    pub fn host<T>(data: *const T) -> Space {
        Space(data.cast_mut().cast())
    }

    /// Returns whether this is the null handle.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Returns the handle as a number.
    pub fn address(self) -> usize {
        self.0 as usize
    }
}

/// A queue of work on a device. Work on one stream runs in order; the default stream is null.
///
/// [`DeviceApi::create_stream`](super::DeviceApi::create_stream) creates any other stream. `unsafe` code may also create one from a
/// handle, because drivers dereference the handle.
///
/// ```compile_fail,E0423
/// let made_up = tvmspec::device::Stream(std::ptr::without_provenance_mut(64));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stream {
    /// The driver's handle; null for the default stream.
    handle: *mut c_void,
    /// The type of the devices that the handle belongs to; 0 for the default stream.
    kind: i32,
}

// SAFETY: a device dereferences the handle, and devices are `Sync`; everywhere else it is a number.
unsafe impl Send for Stream {}
// SAFETY: a device dereferences the handle, and devices are `Sync`; everywhere else it is a number.
unsafe impl Sync for Stream {}

impl Stream {
    /// The default stream, which always exists.
    pub const DEFAULT: Stream = Stream {
        handle: std::ptr::null_mut(),
        kind: 0,
    };

    /// Creates the stream with this handle for devices of `device`'s type. Null is the default stream.
    ///
    /// # Safety
    ///
    /// The handle is one of a stream of this device type. That stream is not freed as long as the returned value is used.
    pub const unsafe fn from_handle(device: Device, handle: *mut c_void) -> Stream {
        // Null is the default stream of every type. The type is dropped, so that all default streams are equal.
        if handle.is_null() {
            return Stream::DEFAULT;
        }
        let kind = device.kind;
        Stream { handle, kind }
    }

    /// Returns the driver's handle.
    pub const fn handle(self) -> *mut c_void {
        self.handle
    }

    /// Returns the driver's handle for use on `device`.
    ///
    /// # Errors
    ///
    /// Returns DEV-38 for a stream of another device type, because the driver would dereference a foreign handle.
    pub fn handle_for(self, device: Device) -> Result<*mut c_void> {
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
