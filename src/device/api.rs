//! The device contract: the operations that executors, compiled code and remote calls need (DEV-12 to DEV-24, DEV-36 to DEV-46).

use crate::device::error::reject;
use crate::device::{
    ALIGNMENT, Attribute, AttributeValue, DEV_13, DEV_15, DEV_16, DEV_17, DEV_18, Device, Dtype,
    Result, Space, Stream, TensorRef, WORKSPACE_ALIGNMENT, stream,
};
use crate::rule::Kind;

/// A copy of bytes between two spaces. One of them is on the device that makes the copy (DEV-18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyRequest {
    /// The source.
    pub from: Space,
    /// The number of bytes to skip in the source.
    pub from_offset: usize,
    /// The destination.
    pub to: Space,
    /// The number of bytes to skip in the destination.
    pub to_offset: usize,
    /// The number of bytes to copy.
    pub nbytes: usize,
    /// The device of the source.
    pub from_device: Device,
    /// The device of the destination.
    pub to_device: Device,
    /// The element type, for devices that order bytes by it.
    pub hint: Dtype,
}

impl CopyRequest {
    /// Returns the device on whose streams the copy may be queued: the side that is not host memory (DEV-20). Between two devices
    /// it is the source.
    pub fn device(&self) -> Device {
        of_stream(self.from_device, self.to_device)
    }
}

/// Returns the device whose stream a copy from `from` to `to` is queued on: the side that is not host memory (DEV-20). Between two
/// devices it is `from`.
pub(crate) fn of_stream(from: Device, to: Device) -> Device {
    if from.is_host() { to } else { from }
}

/// The interface of one device type: its memory, its copies and its streams.
///
/// One object serves all devices of its type; `device.id` selects one. Any thread may call any method at any time. Executors and
/// compiled code rely on the rules of memory (DEV-12, DEV-41, DEV-46). [`super::manager::register`], which makes a device known to
/// them, requires these rules. Copies (and kernels) may return before they are complete. Work that was queued on a stream is
/// complete when [`DeviceApi::sync`] of that stream returns.
///
/// Five methods have no default: `set_device`, `attribute`, `alloc`, `free` and `sync`. The default of `copy` rejects every copy, so a
/// device with separate memory also implements `copy`. The other defaults follow their rules.
pub trait DeviceApi: Send + Sync {
    /// Makes `device` the current device of this thread: kernels that this thread launches later run there (DEV-55).
    ///
    /// # Errors
    ///
    /// Returns a RuntimeError for a device that does not exist; otherwise the driver's error.
    fn set_device(&self, device: Device) -> Result<()>;

    /// Returns an attribute of `device`, or [`AttributeValue::None`] if this device does not have the attribute (DEV-08).
    ///
    /// # Errors
    ///
    /// Returns the driver's error. A missing device is not an error for [`Attribute::Exist`], which answers 0 (DEV-07).
    fn attribute(&self, device: Device, attribute: Attribute) -> Result<AttributeValue>;

    /// Allocates `nbytes` of memory on `device`. If spaces are addresses, the address is a multiple of `alignment` (DEV-12).
    ///
    /// Live spaces never overlap (DEV-41). `hint` is the element type.
    ///
    /// # Errors
    ///
    /// A MemoryError if the memory is exhausted; DEV-12 for an alignment that the device cannot provide.
    fn alloc(&self, device: Device, nbytes: usize, alignment: usize, hint: Dtype) -> Result<Space>;

    /// Frees memory. Work that is already queued may still use it. The memory serves no other request before that work is complete
    /// (DEV-46).
    ///
    /// # Errors
    ///
    /// Returns the driver's error. The caller does not use the space again, even after an error.
    ///
    /// # Safety
    ///
    /// `space` came from `alloc` of this device, was not freed yet, and is not used after this call.
    unsafe fn free(&self, device: Device, space: Space) -> Result<()>;

    /// Queues a copy on `stream`, or copies immediately (DEV-18, DEV-36 to DEV-40). The default rejects the copy.
    ///
    /// # Errors
    ///
    /// The default fails with DEV-18. A device rejects a stream of another device type (DEV-38) and returns the driver's errors.
    ///
    /// # Safety
    ///
    /// Both spaces contain the described bytes. Host memory stays valid until the stream was synced. For a copy to the device, it also
    /// stays unchanged until then.
    unsafe fn copy(&self, copy: &CopyRequest, stream: Stream) -> Result<()> {
        let _ = (copy, stream);
        reject(
            DEV_18,
            Kind::Unsupported,
            "Device does not support CopyDataFromTo.",
        )
    }

    /// Waits until everything that was queued on `stream` before is complete (DEV-36).
    ///
    /// # Errors
    ///
    /// Returns DEV-38 for a stream of another device type. A driver's error may also come from work that was queued before.
    fn sync(&self, device: Device, stream: Stream) -> Result<()>;

    /// Returns the number of bytes that a tensor takes in memory of `scope` (DEV-13, DEV-15).
    ///
    /// # Errors
    ///
    /// Returns DEV-13 for a scope that is not flat; DEV-15 for a shape whose size in bytes cannot be computed.
    fn data_size(&self, tensor: &TensorRef<'_>, scope: Option<&str>) -> Result<usize> {
        // DEV-13: a device answers this question since 0.14. Upstream's default rejects the same scopes, with a different text.
        flat_scope(
            scope,
            "Device does not support physical mem computation with specified memory scope",
        )?;
        flat_size(tensor.shape, tensor.dtype)
    }

    /// Returns a named property of a device, for code generators; null unless the device has properties (DEV-08).
    ///
    /// # Errors
    ///
    /// The default never fails. A device returns the driver's error.
    fn target_property(&self, device: Device, name: &str) -> Result<AttributeValue> {
        let _ = (device, name);
        Ok(AttributeValue::None)
    }

    /// Returns whether the driver is installed, even if it has no device. The default is true, for devices without a driver.
    fn has_driver(&self) -> bool {
        true
    }

    /// Allocates memory for a tensor in `scope`. The default knows only the flat scopes: no scope, the empty scope and `global`
    /// (DEV-13). It calls [`DeviceApi::alloc`] with the tensor's size in bytes (DEV-15). The alignment is the size of an element,
    /// but at least 64 (DEV-14).
    ///
    /// # Errors
    ///
    /// Returns DEV-13 for a scope that is not flat; DEV-15 for a shape whose size in bytes cannot be computed; an error of
    /// [`DeviceApi::alloc`].
    fn alloc_scoped(
        &self,
        device: Device,
        shape: &[i64],
        dtype: Dtype,
        scope: Option<&str>,
    ) -> Result<Space> {
        flat_scope(
            scope,
            "Device does not support allocate data space with specified memory scope",
        )?;
        // DEV-14: the bits are divided by eight before they are multiplied by the lanes. An element type of fewer than eight bits
        // therefore has the alignment 64, with any number of lanes.
        let element = usize::from(dtype.bits) / 8 * usize::from(dtype.lanes);
        let alignment = element.max(ALIGNMENT);
        // DEV-15: counted as the newest release does. For three `int4` it asks for two bytes; 0.20 asks for three.
        self.alloc(device, flat_size(shape, dtype)?, alignment, dtype)
    }

    /// Copies a tensor. Checks that both have the same size in bytes (DEV-16) and are contiguous (DEV-17). Then calls
    /// [`DeviceApi::copy`] with both offsets, both devices and the element type of the source (DEV-18).
    ///
    /// # Errors
    ///
    /// Returns DEV-15, DEV-16 or DEV-17; an error of [`DeviceApi::copy`].
    ///
    /// # Safety
    ///
    /// As for [`DeviceApi::copy`]. Both tensors describe memory that exists.
    unsafe fn copy_tensor(
        &self,
        from: &TensorRef<'_>,
        to: &TensorRef<'_>,
        stream: Stream,
    ) -> Result<()> {
        // DEV-16: sizes are checked first, so a copy that breaks both rules reports the size.
        let nbytes = flat_size(from.shape, from.dtype)?;
        let room = flat_size(to.shape, to.dtype)?;
        DEV_16.demand(Kind::Type, nbytes == room, || {
            format!("the size in bytes must match: {nbytes} from, {room} to")
        })?;
        DEV_17.demand(
            Kind::Unsupported,
            from.is_contiguous() && to.is_contiguous(),
            || "CopyDataFromTo only support contiguous array for now".into(),
        )?;
        // A `usize` of 32 bits may be too small for the offset. The largest number is outside of every space (DEV-41).
        let byte_offset = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
        let copy = CopyRequest {
            from: from.data,
            from_offset: byte_offset(from.byte_offset),
            to: to.data,
            to_offset: byte_offset(to.byte_offset),
            nbytes,
            from_device: from.device,
            to_device: to.device,
            hint: from.dtype,
        };
        // SAFETY: both tensors describe valid memory and are contiguous; `nbytes` is the size of both.
        unsafe { self.copy(&copy, stream) }
    }

    /// Creates a stream. The default has no streams and returns the default stream (DEV-21); up to 0.7 it failed.
    ///
    /// # Errors
    ///
    /// The default never fails. A device returns the driver's error.
    fn create_stream(&self, device: Device) -> Result<Stream> {
        let _ = device;
        Ok(Stream::DEFAULT)
    }

    /// Frees a stream.
    ///
    /// # Errors
    ///
    /// The default does nothing and never fails, for devices without streams. A device with streams rejects one of another device type
    /// (DEV-38) and returns the driver's errors.
    ///
    /// # Safety
    ///
    /// `stream` came from `create_stream` of this device, was not freed yet, and is not used after this call. It is not the current
    /// stream of any thread.
    unsafe fn free_stream(&self, device: Device, stream: Stream) -> Result<()> {
        let _ = (device, stream);
        Ok(())
    }

    /// Makes work that is queued on `after` from now on wait for the work queued on `before` so far (DEV-38). The device ids may
    /// differ, the device types may not.
    ///
    /// # Errors
    ///
    /// The default does nothing and never fails, for devices without streams. A device with streams rejects one of another device type
    /// (DEV-38) and returns the driver's errors.
    fn sync_streams(&self, device: Device, before: Stream, after: Stream) -> Result<()> {
        let _ = (device, before, after);
        Ok(())
    }

    /// Sets the current stream of this thread for `device` (DEV-22).
    ///
    /// # Errors
    ///
    /// Returns DEV-38 for a stream of another device type.
    fn set_stream(&self, device: Device, stream: Stream) -> Result<()> {
        stream::set(device, stream).map(drop)
    }

    /// Returns the current stream of this thread for `device`.
    fn current_stream(&self, device: Device) -> Stream {
        // DEV-22: from 0.16 to 0.21 upstream's default is null, regardless of the stream that the thread has set.
        stream::current(device)
    }

    /// Allocates temporary memory. It is small and short-lived, only this thread uses it, and spaces are freed in roughly reverse
    /// order. The default is [`DeviceApi::alloc`] with the alignment of workspace and `hint` unchanged (DEV-24).
    ///
    /// # Errors
    ///
    /// As [`DeviceApi::alloc`]; DEV-25 if a pool cannot round the size up to whole pages.
    fn alloc_workspace(&self, device: Device, nbytes: usize, hint: Dtype) -> Result<Space> {
        // DEV-24: the hint is passed on unchanged. A pool asks for bytes instead (DEV-25).
        self.alloc(device, nbytes, WORKSPACE_ALIGNMENT, hint)
    }

    /// Frees workspace, on the thread that allocated it.
    ///
    /// # Errors
    ///
    /// As [`DeviceApi::free`]; DEV-31 from a pool that did not allocate the space.
    ///
    /// # Safety
    ///
    /// `space` came from `alloc_workspace` of this device on this thread, and is not used after this call.
    unsafe fn free_workspace(&self, device: Device, space: Space) -> Result<()> {
        // SAFETY: the default `alloc_workspace` took it from `alloc`, and the caller does not use it after this call.
        unsafe { self.free(device, space) }
    }

    /// Returns whether workspace comes from a pool with the reuse order of DEV-25 to DEV-35. Upstream has no such method. The
    /// conformance cases need it to choose the expected result. The default is false.
    fn pools_workspace(&self) -> bool {
        false
    }

    /// Returns whether host code may add an offset to a [`Space`] of this device, because it is an address. Upstream has this
    /// method since 0.18.
    fn supports_pointer_arithmetic(&self) -> bool {
        false
    }
}

/// Accepts only the flat scopes (DEV-13). `rejection` is upstream's text; an allocation and a size have different ones.
fn flat_scope(scope: Option<&str>, rejection: &str) -> Result<()> {
    // DEV-13: the empty scope is ordinary memory since 0.14; 0.8 rejects it.
    let scope = scope.unwrap_or_default();
    DEV_13.demand(Kind::Unsupported, matches!(scope, "" | "global"), || {
        format!("{rejection}: {scope}")
    })?;
    Ok(())
}

/// Returns the size in bytes as the newest release counts it; fails with DEV-15 if it cannot be computed.
fn flat_size(shape: &[i64], dtype: Dtype) -> Result<usize> {
    let Some(nbytes) = super::byte_size(shape, dtype, crate::release::Release::LAST) else {
        return reject(
            DEV_15,
            Kind::Limit,
            format!("a tensor of shape {shape:?} has no size in bytes"),
        );
    };
    Ok(nbytes)
}
