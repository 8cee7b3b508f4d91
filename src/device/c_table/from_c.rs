//! A table that C filled in, used as a device API.

use super::{AttributeAnswer, CopyBytes, DeviceTable};
use crate::device::error::driver_error;
use crate::device::{
    Attribute, AttributeValue, CopyRequest, Device, DeviceApi, Dtype, Result, Space, Stream,
};
use std::ffi::{CStr, c_int};

/// A device API that a C caller filled in as a table. A function fails if it returns a number other than 0 (DEV-02).
pub(super) struct DeviceOfC(pub(super) &'static DeviceTable);

impl DeviceOfC {
    /// Turns the code of `call` into a result. An error contains the name of the call, the number and the text of `last_error`
    /// (DEV-02).
    fn checked(&self, call: &'static str, code: c_int) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        let meaning = self.0.last_error.map(|last_error| {
            // SAFETY: the function of the table, called with its context.
            let text = unsafe { last_error(self.0.context) };
            if text.is_null() {
                return String::new();
            }
            // SAFETY: `last_error` of a table returns null or a NUL-terminated string (`tvmspec_device.h`).
            unsafe { CStr::from_ptr(text) }
                .to_string_lossy()
                .into_owned()
        });
        Err(driver_error(
            "a device of C",
            call,
            code.into(),
            meaning.unwrap_or_default(),
        ))
    }
}

impl DeviceApi for DeviceOfC {
    fn set_device(&self, device: Device) -> Result<()> {
        // SAFETY: the function of the table, called with its context.
        let code = unsafe { (self.0.set_device)(self.0.context, device.id) };
        self.checked("set_device", code)
    }

    fn attribute(&self, device: Device, attribute: Attribute) -> Result<AttributeValue> {
        let mut answer = AttributeAnswer::NOTHING;
        // SAFETY: the function of the table, called with its context, and an out pointer for the answer.
        let code = unsafe {
            (self.0.attribute)(
                self.0.context,
                device.id,
                attribute.number(),
                &raw mut answer,
            )
        };
        self.checked("attribute", code)?;
        match answer.tag {
            1 => Ok(AttributeValue::Int(answer.number)),
            2 if !answer.text.is_null() => {
                // SAFETY: the text of an answer is NUL-terminated, and stays until the next call of the table on this thread.
                AttributeValue::text(unsafe { CStr::from_ptr(answer.text) }.to_string_lossy())
            }
            // DEV-08: an unknown tag, or a null text, counts as no answer.
            _ => Ok(AttributeValue::None),
        }
    }

    fn alloc(&self, device: Device, nbytes: usize, alignment: usize, _: Dtype) -> Result<Space> {
        // A table cannot take the hint of an allocation.
        let mut space = std::ptr::null_mut();
        // SAFETY: the function of the table, called with its context, and an out pointer for the handle.
        let code = unsafe {
            (self.0.alloc)(
                self.0.context,
                device.id,
                nbytes as u64,
                alignment as u64,
                &raw mut space,
            )
        };
        self.checked("alloc", code)?;
        Ok(Space(space))
    }

    unsafe fn free(&self, device: Device, space: Space) -> Result<()> {
        // SAFETY: a space of this table, which the caller frees once and does not use afterwards (`DeviceApi::free`).
        let code = unsafe { (self.0.free)(self.0.context, device.id, space.0) };
        self.checked("free", code)
    }

    unsafe fn copy(&self, copy: &CopyRequest, stream: Stream) -> Result<()> {
        let bytes = CopyBytes {
            from: copy.from.0,
            from_offset: copy.from_offset as u64,
            to: copy.to.0,
            to_offset: copy.to_offset as u64,
            nbytes: copy.nbytes as u64,
            from_device: [copy.from_device.kind, copy.from_device.id],
            to_device: [copy.to_device.kind, copy.to_device.id],
            hint: [
                copy.hint.code.into(),
                copy.hint.bits.into(),
                copy.hint.lanes,
            ],
        };
        let stream = stream.handle_for(copy.device())?;
        // SAFETY: both spaces hold the bytes, and the host side stays until a sync (`DeviceApi::copy`); the stream is of the type
        // of device that makes the copy, and not freed (`Stream::from_handle`).
        let code = unsafe { (self.0.copy)(self.0.context, &raw const bytes, stream) };
        self.checked("copy", code)
    }

    fn sync(&self, device: Device, stream: Stream) -> Result<()> {
        let stream = stream.handle_for(device)?;
        // SAFETY: the function of the table, called with its context, and a stream of its type that is not freed.
        let code = unsafe { (self.0.sync)(self.0.context, device.id, stream) };
        self.checked("sync", code)
    }

    fn create_stream(&self, device: Device) -> Result<Stream> {
        // DEV-21: a table without this function has no streams, and null is the default one.
        let mut stream = std::ptr::null_mut();
        if let Some(create) = self.0.create_stream {
            // SAFETY: the function of the table, called with its context, and an out pointer for the handle.
            let code = unsafe { create(self.0.context, device.id, &raw mut stream) };
            self.checked("create_stream", code)?;
        }
        // SAFETY: the table created the stream for this device. The caller that frees it must not use it afterwards.
        Ok(unsafe { Stream::from_handle(device, stream) })
    }

    unsafe fn free_stream(&self, device: Device, stream: Stream) -> Result<()> {
        // DEV-21: without streams, freeing one does nothing.
        let Some(free) = self.0.free_stream else {
            return Ok(());
        };
        let stream = stream.handle_for(device)?;
        // SAFETY: a stream of this table, which the caller frees once and does not use afterwards (`DeviceApi::free_stream`).
        let code = unsafe { free(self.0.context, device.id, stream) };
        self.checked("free_stream", code)
    }

    fn sync_streams(&self, device: Device, before: Stream, after: Stream) -> Result<()> {
        // DEV-21: without streams, ordering two does nothing.
        let Some(order) = self.0.sync_streams else {
            return Ok(());
        };
        let (before, after) = (before.handle_for(device)?, after.handle_for(device)?);
        // SAFETY: the function of the table, called with its context, and streams of its type that are not freed.
        let code = unsafe { order(self.0.context, device.id, before, after) };
        self.checked("sync_streams", code)
    }
}
