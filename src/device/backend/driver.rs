//! What one driver library does: its devices, memory, copies and streams, as [`Backend`] calls them.

use super::Backend;
use super::spaces::SpaceTable;
use crate::device::error::driver_error;
use crate::device::{Attribute, AttributeValue, Device, Error, Result};
use std::ffi::c_void;

/// The calls of one driver library.
///
/// [`Backend`] makes a device API of it: it checks what callers hand in, and calls with devices that `Driver::open_all`
/// returned, after [`Driver::enter`] on this thread.
pub(crate) trait Driver: Sized + 'static {
    /// A device with what is needed to work on it.
    type Opened: Send + Sync;
    /// What the driver knows memory by.
    type Memory: Copy + Send;
    /// How memory becomes a [`Space`].
    type Spaces: SpaceTable<Self::Memory>;
    /// What its calls fail with.
    type Failure;

    /// Its name in messages: `CUDA`, ...
    const NAME: &'static str;
    /// Its name in the registry and in errors of its calls: `cuda`, ...
    const KEY: &'static str;
    /// The device type, as id 0 of it.
    const DEVICE: Device;
    /// Whether there are streams besides the default one. Without, the contract's defaults hold (DEV-21).
    const HAS_STREAMS: bool = false;

    /// The one backend of this driver in the process. Nothing is loaded by naming it.
    fn backend() -> &'static Backend<Self>;

    /// The number of a failure, and what it means.
    fn explain(failure: Self::Failure) -> (i64, String);

    /// Loads the library and opens every device, in the order of the driver. Called once.
    fn open_all() -> Result<Vec<Self::Opened>>;

    /// Makes a device the one that this thread's calls are for, where the driver keeps one per thread.
    fn enter(_: &Self::Opened) -> Result<()> {
        Ok(())
    }

    /// As [`DeviceApi::attribute`], for a device that exists.
    fn attribute(on: &Self::Opened, attribute: Attribute) -> Result<AttributeValue>;

    /// As [`DeviceApi::target_property`].
    fn target_property(_: &Self::Opened, _: &str) -> Result<AttributeValue> {
        Ok(AttributeValue::None)
    }

    /// Takes memory. No driver has memory of no bytes: 0 is as 1.
    fn alloc(on: &Self::Opened, nbytes: usize) -> Result<Self::Memory>;

    /// Frees memory, after work that is queued and still uses it (DEV-46).
    ///
    /// # Safety
    ///
    /// The memory is of `alloc`, was not freed, and is not used by anything that is queued later.
    unsafe fn free(on: &Self::Opened, memory: Self::Memory) -> Result<()>;

    /// Rejects a part of memory that ends behind it, where the driver does not look (DEV-41).
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

    /// Queues a copy within a device, of parts that do not overlap.
    ///
    /// # Safety
    ///
    /// Both parts hold the bytes. The stream is as for [`Driver::sync`].
    unsafe fn within(
        on: &Self::Opened,
        from: SpacePart<Self>,
        to: SpacePart<Self>,
        stream: *mut c_void,
    ) -> Result<()>;

    /// Copies from one device to another: through the host, unless the driver connects them. This thread has entered the
    /// source.
    ///
    /// # Safety
    ///
    /// As for [`Driver::within`] and [`Driver::sync`].
    unsafe fn across(
        (source, from): (&Self::Opened, SpacePart<Self>),
        (target, to): (&Self::Opened, SpacePart<Self>),
        stream: *mut c_void,
    ) -> Result<()> {
        // Two devices need not see each other's memory; the host can copy with either.
        let mut bytes = vec![0u8; from.nbytes];
        // SAFETY: `bytes` holds as many, and lives beyond the sync.
        unsafe { Self::download(source, from, bytes.as_mut_ptr().cast(), stream) }?;
        // A device that does not come to an end of its work may still write to the bytes, or read them: they stay.
        // SAFETY: as for this function.
        if let Err(error) = unsafe { Self::sync(source, stream) } {
            std::mem::forget(bytes);
            return Err(error);
        }
        // The calls below are for the device that this thread entered last.
        Self::enter(target)?;
        // SAFETY: `bytes` holds as many, and lives unchanged beyond the sync, or for good.
        unsafe { Self::upload(target, bytes.as_ptr().cast(), to, stream) }?;
        // SAFETY: as for this function.
        unsafe { Self::sync(target, stream) }.inspect_err(|_| std::mem::forget(bytes))
    }

    /// Waits for what is queued on a stream; null is the default one.
    ///
    /// # Safety
    ///
    /// The stream is null, or of `create_stream` and not freed.
    unsafe fn sync(on: &Self::Opened, stream: *mut c_void) -> Result<()>;

    /// Creates a stream, where there are any.
    fn create_stream(_: &Self::Opened) -> Result<*mut c_void> {
        Ok(std::ptr::null_mut())
    }

    /// Frees a stream.
    ///
    /// # Safety
    ///
    /// The stream is of `create_stream`, was not freed, and is not used any more.
    unsafe fn free_stream(_: &Self::Opened, _: *mut c_void) -> Result<()> {
        Ok(())
    }

    /// Work queued on `after` from now on waits for what is queued on `before` now (DEV-38).
    ///
    /// # Safety
    ///
    /// As for [`Driver::sync`], of both.
    unsafe fn order(_: &Self::Opened, _before: *mut c_void, _after: *mut c_void) -> Result<()> {
        Ok(())
    }

    /// A failure of `call`.
    fn failure(call: impl std::fmt::Display, failure: Self::Failure) -> Error {
        let (code, meaning) = Self::explain(failure);
        driver_error(Self::KEY, call, code, meaning)
    }

    /// `result`, or an error that names the call.
    fn checked<T>(
        call: impl std::fmt::Display,
        result: std::result::Result<T, Self::Failure>,
    ) -> Result<T> {
        result.map_err(|failure| Self::failure(call, failure))
    }
}

/// Bytes of a space: one side of a copy, on a device.
pub(crate) struct SpacePart<D: Driver> {
    /// What the driver knows the whole space by.
    pub(crate) memory: D::Memory,
    /// Bytes from its beginning to the first one.
    pub(crate) offset: usize,
    /// How many, one at least: a copy of no bytes does not reach a driver (DEV-39).
    pub(crate) nbytes: usize,
}
