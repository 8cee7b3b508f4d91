//! The contract: what a device does for executors, compiled code and remote calls (DEV-12 to DEV-24, DEV-36 to DEV-46).

use crate::device::error::reject;
use crate::device::{
    ALIGNMENT, Attribute, AttributeValue, DEV_13, DEV_15, DEV_16, DEV_17, DEV_18, Device, Dtype,
    Result, Space, Stream, TensorRef, WORKSPACE_ALIGNMENT, stream,
};
use crate::rule::Kind;

/// A copy of bytes between two spaces, one of them on the device that makes it (DEV-18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyRequest {
    /// Source.
    pub from: Space,
    /// Bytes to skip in the source.
    pub from_offset: usize,
    /// Destination.
    pub to: Space,
    /// Bytes to skip in the destination.
    pub to_offset: usize,
    /// How many bytes.
    pub nbytes: usize,
    /// Where the source is.
    pub from_device: Device,
    /// Where the destination is.
    pub to_device: Device,
    /// Element type, for devices that order bytes by it.
    pub hint: Dtype,
}

impl CopyRequest {
    /// The device on whose streams the copy may be queued: the one that is not host memory (DEV-20), and the source between two
    /// of a kind.
    pub fn device(&self) -> Device {
        of_stream(self.from_device, self.to_device)
    }
}

/// The device whose stream a copy from `from` to `to` is queued on: the one that is not host memory (DEV-20), and `from`
/// between two of a kind.
pub(crate) fn of_stream(from: Device, to: Device) -> Device {
    if from.is_host() { to } else { from }
}

/// A kind of device: its memory, its copies, its streams.
///
/// One object serves all devices of its type; `device.id` is which. Every method may be called from any
/// thread at any time. The rules of memory (DEV-12, DEV-41, DEV-46) are what executors and compiled code rely on:
/// [`super::manager::register`], which makes a device known to them, requires them. Copies (and kernels) may return before they are done; what was queued on a stream is done when
/// [`DeviceApi::sync`] of that stream returns.
///
/// Six methods have no default; the rest behaves as its rules unless a device knows better.
pub trait DeviceApi: Send + Sync {
    /// Makes `device` the current one of this thread: kernels that this thread launches later run there (DEV-55).
    ///
    /// # Errors
    ///
    /// A RuntimeError for a device that is not there; what the driver answers.
    fn set_device(&self, device: Device) -> Result<()>;

    /// Answers a question about `device`; [`AttributeValue::None`] for a question that this device does not know (DEV-08).
    ///
    /// # Errors
    ///
    /// What the driver answers. A device that is not there is [`Attribute::Exist`] answered with 0, and no error (DEV-07).
    fn attribute(&self, device: Device, attribute: Attribute) -> Result<AttributeValue>;

    /// `nbytes` of memory on `device`, at least aligned to `alignment` where addresses mean something (DEV-12).
    ///
    /// Spaces that are alive never overlap (DEV-41). `hint` is the element type.
    ///
    /// # Errors
    ///
    /// A MemoryError where there is not as much memory; DEV-12 for an alignment that the device
    /// does not have.
    fn alloc(&self, device: Device, nbytes: usize, alignment: usize, hint: Dtype) -> Result<Space>;

    /// Frees memory. Work that is already queued may still use it; it serves no other request before that is done (DEV-46).
    ///
    /// # Errors
    ///
    /// What the driver answers. The space is not used again, freed or not.
    ///
    /// # Safety
    ///
    /// `space` came from `alloc` of this device, was not freed yet, and is not used after this call.
    unsafe fn free(&self, device: Device, space: Space) -> Result<()>;

    /// Queues a copy on `stream`, or does it (DEV-18, DEV-36 to DEV-40). The default rejects it.
    ///
    /// # Errors
    ///
    /// DEV-18 from the default. Else what the device rejects: a stream of another type of device (DEV-38), a failed call of the
    /// driver.
    ///
    /// # Safety
    ///
    /// Both spaces hold the named bytes. A host side stays valid and, on the way to the device, unchanged until the stream
    /// was synced.
    unsafe fn copy(&self, copy: &CopyRequest, stream: Stream) -> Result<()> {
        let _ = (copy, stream);
        reject(
            DEV_18,
            Kind::Unsupported,
            "Device does not support CopyDataFromTo.",
        )
    }

    /// Returns when everything queued on `stream` before is done (DEV-36).
    ///
    /// # Errors
    ///
    /// DEV-38 for a stream of another type of device; what the driver answers, for work that was queued before as well.
    fn sync(&self, device: Device, stream: Stream) -> Result<()>;

    /// Bytes that a tensor takes in memory of `scope` (DEV-13, DEV-15).
    ///
    /// # Errors
    ///
    /// DEV-13 for a scope that is not flat; DEV-15 for a shape without a size in bytes.
    fn data_size(&self, tensor: &TensorRef<'_>, scope: Option<&str>) -> Result<usize> {
        // DEV-13: a device is asked for this since 0.14; upstream's default rejects the same scopes, in a text of its own.
        flat_scope(
            scope,
            "Device does not support physical mem computation with specified memory scope",
        )?;
        flat_size(tensor.shape, tensor.dtype)
    }

    /// A named property of a device, for code generators; null unless the device has properties (DEV-08).
    ///
    /// # Errors
    ///
    /// None from the default; what the driver answers.
    fn target_property(&self, device: Device, name: &str) -> Result<AttributeValue> {
        let _ = (device, name);
        Ok(AttributeValue::None)
    }

    /// Whether the driver is on this machine, whatever devices it has; a device without one always is.
    fn has_driver(&self) -> bool {
        true
    }

    /// Memory for a tensor in `scope`. Only the flat scopes (none, empty, `global`) are known to the default (DEV-13);
    /// it calls [`DeviceApi::alloc`] with the bytes of the tensor (DEV-15) at the alignment of its elements, 64 at least
    /// (DEV-14).
    ///
    /// # Errors
    ///
    /// DEV-13 for a scope that is not flat; DEV-15 for a shape without a size in bytes; what [`DeviceApi::alloc`] returns.
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
        // DEV-14: bits are divided before lanes count, so that an element of fewer than eight bits has the alignment 64 whatever its lanes.
        let element = usize::from(dtype.bits) / 8 * usize::from(dtype.lanes);
        let alignment = element.max(ALIGNMENT);
        // DEV-15: in the count of the newest release: of three `int4` a device is asked for two bytes, and in 0.20 for three.
        self.alloc(device, flat_size(shape, dtype)?, alignment, dtype)
    }

    /// Copies a tensor: equal sizes in bytes (DEV-16), both in one piece (DEV-17), then [`DeviceApi::copy`] with both
    /// offsets, both devices and the source's element type (DEV-18).
    ///
    /// # Errors
    ///
    /// DEV-15, DEV-16, DEV-17; what [`DeviceApi::copy`] returns.
    ///
    /// # Safety
    ///
    /// As for [`DeviceApi::copy`]; both tensors describe memory that is there.
    unsafe fn copy_tensor(
        &self,
        from: &TensorRef<'_>,
        to: &TensorRef<'_>,
        stream: Stream,
    ) -> Result<()> {
        // DEV-16: sizes first: of a copy that breaks both rules the size is reported.
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
        // With a `usize` of 32 bits an offset may not fit; the largest number is outside of every space (DEV-41).
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
        // SAFETY: both tensors describe memory that is there and lie in one piece; `nbytes` is the size of both.
        unsafe { self.copy(&copy, stream) }
    }

    /// A new stream. The default has none and returns the default stream (DEV-21); up to 0.7 it failed.
    ///
    /// # Errors
    ///
    /// None from the default; what the driver answers.
    fn create_stream(&self, device: Device) -> Result<Stream> {
        let _ = device;
        Ok(Stream::DEFAULT)
    }

    /// Frees a stream.
    ///
    /// # Errors
    ///
    /// None from the default; DEV-38 for a stream of another type of device; what the driver answers.
    ///
    /// # Safety
    ///
    /// `stream` came from `create_stream` of this device, was not freed yet, and is not used after this call: no thread has it
    /// as its current one.
    unsafe fn free_stream(&self, device: Device, stream: Stream) -> Result<()> {
        let _ = (device, stream);
        Ok(())
    }

    /// Work queued on `after` from now on waits for what is queued on `before` now (DEV-38). Device ids may differ,
    /// types may not.
    ///
    /// # Errors
    ///
    /// None from the default; DEV-38 for a stream of another type of device; what the driver answers.
    fn sync_streams(&self, device: Device, before: Stream, after: Stream) -> Result<()> {
        let _ = (device, before, after);
        Ok(())
    }

    /// Sets this thread's stream for `device` (DEV-22).
    ///
    /// # Errors
    ///
    /// DEV-38 for a stream of another type of device.
    fn set_stream(&self, device: Device, stream: Stream) -> Result<()> {
        stream::set(device, stream).map(drop)
    }

    /// This thread's stream for `device`.
    fn current_stream(&self, device: Device) -> Stream {
        // DEV-22: from 0.16 to 0.21 upstream's default is null, whatever stream the thread has set.
        stream::current(device)
    }

    /// Temporary memory: small, short-lived, of this thread alone, freed in about reverse order.
    /// The default is plain memory of byte elements at the alignment of workspace (DEV-24).
    ///
    /// # Errors
    ///
    /// As [`DeviceApi::alloc`]; DEV-25 where a pool cannot round the size up to whole pages.
    fn alloc_workspace(&self, device: Device, nbytes: usize, hint: Dtype) -> Result<Space> {
        // DEV-24: the hint goes on as it is; a pool asks for bytes in its place (DEV-25).
        self.alloc(device, nbytes, WORKSPACE_ALIGNMENT, hint)
    }

    /// Frees workspace, on the thread that took it.
    ///
    /// # Errors
    ///
    /// As [`DeviceApi::free`]; DEV-31 from a pool that did not hand the space out.
    ///
    /// # Safety
    ///
    /// `space` came from `alloc_workspace` of this device on this thread, and is not used after this call.
    unsafe fn free_workspace(&self, device: Device, space: Space) -> Result<()> {
        // SAFETY: the default `alloc_workspace` took it from `alloc`, and the caller does not use it after this call.
        unsafe { self.free(device, space) }
    }

    /// Whether workspace comes from a pool with the reuse order of DEV-25 to DEV-35. Our addition: upstream has no
    /// method for that, and the contract needs to know what to expect.
    fn pools_workspace(&self) -> bool {
        false
    }

    /// Whether host code may add to a [`Space`] of this device: true where it is an address. Upstream has the question since 0.18.
    fn supports_pointer_arithmetic(&self) -> bool {
        false
    }
}

/// Accepts the flat scopes alone (DEV-13). `rejection` is upstream's text, which differs between an allocation and a size.
fn flat_scope(scope: Option<&str>, rejection: &str) -> Result<()> {
    // DEV-13: the empty scope is plain memory since 0.14; 0.8 rejects it.
    let scope = scope.unwrap_or_default();
    DEV_13.demand(Kind::Unsupported, matches!(scope, "" | "global"), || {
        format!("{rejection}: {scope}")
    })?;
    Ok(())
}

/// Bytes of a tensor as the newest release counts them; DEV-15 where there is no such number.
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
