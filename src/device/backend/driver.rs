//! The interface to one driver library: its devices, memory, copies and streams, as [`Backend`] calls them.

use super::Backend;
use super::spaces::SpaceTable;
use crate::device::error::driver_error;
use crate::device::{Attribute, AttributeValue, Device, Error, Result};
use std::ffi::c_void;

/// The calls of one driver library.
///
/// [`Backend`] builds a device API on these calls. It checks the arguments of callers. It passes only devices that
/// `Driver::open_all` returned, after [`Driver::enter`] on this thread.
pub(crate) trait Driver: Sized + 'static {
    /// A device, with everything that is needed to work on it.
    type Opened: Send + Sync;
    /// The driver's own handle or address of memory.
    type Memory: Copy + Send;
    /// The conversion between the driver's memory and a [`Space`].
    type Spaces: SpaceTable<Self::Memory>;
    /// The error type of the driver's calls.
    type Failure;

    /// The name of the driver in messages: `CUDA`, ...
    const NAME: &'static str;
    /// The name of the driver in the registry and in errors of its calls: `cuda`, ...
    const KEY: &'static str;
    /// The device type, as the device with id 0.
    const DEVICE: Device;
    /// True if the driver has streams in addition to the default one. If not, the defaults of the contract apply (DEV-21).
    const HAS_STREAMS: bool = false;

    /// Returns the one backend of this driver in the process. This loads no library.
    fn backend() -> &'static Backend<Self>;

    /// Returns the number of a failure, and its meaning.
    fn explain(failure: Self::Failure) -> (i64, String);

    /// Loads the library and opens every device, in the driver's order. It is called once.
    fn open_all() -> Result<Vec<Self::Opened>>;

    /// Makes the device the target of this thread's calls, for drivers with a current device per thread.
    fn enter(_: &Self::Opened) -> Result<()> {
        Ok(())
    }

    /// Returns an attribute of a device that exists, as [`DeviceApi::attribute`] does.
    fn attribute(on: &Self::Opened, attribute: Attribute) -> Result<AttributeValue>;

    /// Returns a property, as [`DeviceApi::target_property`] does.
    fn target_property(_: &Self::Opened, _: &str) -> Result<AttributeValue> {
        Ok(AttributeValue::None)
    }

    /// Allocates memory. No driver can allocate 0 bytes, so 0 is treated as 1.
    fn alloc(on: &Self::Opened, nbytes: usize) -> Result<Self::Memory>;

    /// Frees memory after queued work that still uses it (DEV-46).
    ///
    /// # Safety
    ///
    /// The memory came from `alloc`, was not freed, and nothing that is queued later uses it.
    unsafe fn free(on: &Self::Opened, memory: Self::Memory) -> Result<()>;

    /// Rejects a part that exceeds its memory, for drivers that do not check this themselves (DEV-41).
    fn check(_: &SpacePart<Self>) -> Result<()> {
        Ok(())
    }

    /// Queues a copy from the host.
    ///
    /// # Safety
    ///
    /// `from` is valid for the bytes, and unchanged until the stream was synced. The stream is as for [`Driver::sync`].
    unsafe fn upload(
        on: &Self::Opened,
        from: *const c_void,
        to: SpacePart<Self>,
        stream: *mut c_void,
    ) -> Result<()>;

    /// Queues a copy to the host.
    ///
    /// # Safety
    ///
    /// `to` is valid for the bytes until the stream was synced. The stream is as for [`Driver::sync`].
    unsafe fn download(
        on: &Self::Opened,
        from: SpacePart<Self>,
        to: *mut c_void,
        stream: *mut c_void,
    ) -> Result<()>;

    /// Queues a copy within a device. The two parts do not overlap.
    ///
    /// # Safety
    ///
    /// Both parts contain the bytes. The stream is as for [`Driver::sync`].
    unsafe fn copy_within_device(
        on: &Self::Opened,
        from: SpacePart<Self>,
        to: SpacePart<Self>,
        stream: *mut c_void,
    ) -> Result<()>;

    /// Copies from one device to another, through the host unless the driver connects them. This thread has entered the source.
    ///
    /// # Safety
    ///
    /// As for [`Driver::copy_within_device`] and [`Driver::sync`].
    unsafe fn copy_across_devices(
        (source, from): (&Self::Opened, SpacePart<Self>),
        (target, to): (&Self::Opened, SpacePart<Self>),
        stream: *mut c_void,
    ) -> Result<()> {
        // Two devices may not see each other's memory, but the host can copy from and to both.
        let mut bytes = vec![0u8; from.nbytes];
        // SAFETY: `bytes` has that length, and lives until after the sync.
        unsafe { Self::download(source, from, bytes.as_mut_ptr().cast(), stream) }?;
        // If the sync fails, the device may still write to `bytes` or read them, so they are leaked. SAFETY: the caller keeps the
        // requirements of this function, which are the same.
        if let Err(error) = unsafe { Self::sync(source, stream) } {
            std::mem::forget(bytes);
            return Err(error);
        }
        // The calls below act on the device that this thread entered last.
        Self::enter(target)?;
        // SAFETY: `bytes` has that length, and lives unchanged until after the sync, or forever.
        unsafe { Self::upload(target, bytes.as_ptr().cast(), to, stream) }?;
        // SAFETY: the caller keeps the requirements of this function, which are the same.
        unsafe { Self::sync(target, stream) }.inspect_err(|_| std::mem::forget(bytes))
    }

    /// Waits for the work that is queued on a stream. Null is the default stream.
    ///
    /// # Safety
    ///
    /// The stream is null, or it came from `create_stream` and was not freed.
    unsafe fn sync(on: &Self::Opened, stream: *mut c_void) -> Result<()>;

    /// Creates a stream, if the driver has streams.
    fn create_stream(_: &Self::Opened) -> Result<*mut c_void> {
        Ok(std::ptr::null_mut())
    }

    /// Frees a stream.
    ///
    /// # Safety
    ///
    /// The stream came from `create_stream`, was not freed, and is not used any more.
    unsafe fn free_stream(_: &Self::Opened, _: *mut c_void) -> Result<()> {
        Ok(())
    }

    /// Makes work that is queued on `after` from now on wait for the work queued on `before` so far (DEV-38).
    ///
    /// # Safety
    ///
    /// As for [`Driver::sync`], for both streams.
    unsafe fn order(_: &Self::Opened, _before: *mut c_void, _after: *mut c_void) -> Result<()> {
        Ok(())
    }

    /// Creates the error for a failed `call`.
    fn failure(call: impl std::fmt::Display, failure: Self::Failure) -> Error {
        let (code, meaning) = Self::explain(failure);
        driver_error(Self::KEY, call, code, meaning)
    }

    /// Returns `result`, with a failure turned into an error that names the call.
    fn checked<T>(
        call: impl std::fmt::Display,
        result: std::result::Result<T, Self::Failure>,
    ) -> Result<T> {
        result.map_err(|failure| Self::failure(call, failure))
    }
}

/// A range of bytes in a space: one side of a copy, on a device.
pub(crate) struct SpacePart<D: Driver> {
    /// The driver's handle or address of the whole space.
    pub(crate) memory: D::Memory,
    /// The offset of the first byte from the beginning of the space.
    pub(crate) offset: usize,
    /// The number of bytes, at least one: a copy of no bytes does not reach a driver (DEV-39).
    pub(crate) nbytes: usize,
}
