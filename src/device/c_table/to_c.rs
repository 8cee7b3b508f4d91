//! A device API of this crate, as the functions of a table.

use super::{AttributeAnswer, CopyBytes, TableOfApi};
use crate::device::error::text;
use crate::device::{
    Attribute, AttributeValue, CopyRequest, Device, DeviceApi, Dtype, Error, Result, Space, Stream,
};
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    /// The text that this thread returned last, of an attribute or of a failure. C may read it until the next call.
    static TEXT: RefCell<CString> = RefCell::default();
}

/// Keeps `text` for C and returns its address, which is valid until the next text of this thread. A NUL would end the text early,
/// so it is replaced by a space.
fn keep(text: &str) -> *const c_char {
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    TEXT.with_borrow_mut(|kept| {
        *kept = text;
        kept.as_ptr()
    })
}

/// Runs `body` with the API of `context`. A failure or a panic becomes -1 and a text.
fn call_api(
    context: *mut c_void,
    body: impl FnOnce(&'static dyn DeviceApi) -> Result<()>,
) -> c_int {
    // SAFETY: C passes the context of the table, which `of_api` put there and which is never freed.
    let api = unsafe { &*context.cast::<TableOfApi>() }.api;
    // FUN-07: no panic may unwind into C.
    match catch_unwind(AssertUnwindSafe(|| body(api))) {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => failed(error),
        Err(panic) => panicked(panic),
    }
}

#[cold]
#[inline(never)]
fn failed(error: Error) -> c_int {
    keep(&text(&error));
    -1
}

#[cold]
#[inline(never)]
fn panicked(_: Box<dyn std::any::Any + Send>) -> c_int {
    keep("the device panicked");
    -1
}

/// Returns a device for the API. All devices of a table have one type, which the API knows, so only the id matters.
fn device(id: i32) -> Device {
    Device::ext_dev(id)
}

/// Creates a stream from the pointer that C passed.
///
/// # Safety
///
/// The requirements of [`Stream::from_handle`] hold, for a stream of the device that the table describes.
unsafe fn stream_of_table(stream: *mut c_void) -> Stream {
    // The type is that of `device`, so that `Stream::on` accepts the pair.
    const OF_TABLE: Device = Device::ext_dev(0);
    // SAFETY: the caller keeps the requirements of this function; all devices of a table have one type.
    unsafe { Stream::from_handle(OF_TABLE, stream) }
}

/// Implements [`DeviceTable::last_error`](super::DeviceTable::last_error). It is called directly after a failure, whose text is the
/// last one kept.
pub(super) unsafe extern "C" fn last_error(_: *mut c_void) -> *const c_char {
    TEXT.with_borrow(|text| text.as_ptr())
}

/// Implements [`DeviceApi::set_device`] for the device of this index.
pub(super) unsafe extern "C" fn set_device(context: *mut c_void, id: i32) -> c_int {
    call_api(context, |api| api.set_device(device(id)))
}

/// Implements [`DeviceApi::attribute`]; a number that no release has gets no answer (DEV-08).
pub(super) unsafe extern "C" fn attribute(
    context: *mut c_void,
    id: i32,
    number: i32,
    answer: *mut AttributeAnswer,
) -> c_int {
    call_api(context, |api| {
        let value = match Attribute::from_number(number) {
            Some(attribute) => api.attribute(device(id), attribute)?,
            None => AttributeValue::None,
        };
        let written = match value {
            AttributeValue::None => AttributeAnswer::NOTHING,
            AttributeValue::Int(number) => AttributeAnswer {
                tag: 1,
                number,
                ..AttributeAnswer::NOTHING
            },
            AttributeValue::Text(text) => AttributeAnswer {
                tag: 2,
                text: keep(&text),
                ..AttributeAnswer::NOTHING
            },
        };
        // SAFETY: C passes an out pointer for the answer.
        unsafe { answer.write(written) };
        Ok(())
    })
}

/// Implements [`DeviceApi::alloc`] for bytes, because a table cannot take a hint.
pub(super) unsafe extern "C" fn alloc(
    context: *mut c_void,
    id: i32,
    nbytes: u64,
    alignment: u64,
    space: *mut *mut c_void,
) -> c_int {
    call_api(context, |api| {
        let allocated = api.alloc(
            device(id),
            nbytes as usize,
            alignment as usize,
            Dtype::UINT8,
        )?;
        // SAFETY: C passes an out pointer for the handle.
        unsafe { space.write(allocated.0) };
        Ok(())
    })
}

/// Implements [`DeviceApi::free`].
pub(super) unsafe extern "C" fn free(context: *mut c_void, id: i32, space: *mut c_void) -> c_int {
    // SAFETY: C passes a space of this table's `alloc`, frees it once, and does not use it afterwards.
    call_api(context, |api| unsafe { api.free(device(id), Space(space)) })
}

/// Implements [`DeviceApi::copy`]. A stream has no type in C, so it gets that of the device that makes the copy.
pub(super) unsafe extern "C" fn copy(
    context: *mut c_void,
    copy: *const CopyBytes,
    stream: *mut c_void,
) -> c_int {
    call_api(context, |api| {
        // SAFETY: C passes a copy that stays for the call.
        let bytes = unsafe { &*copy };
        let [code, bits, lanes] = bytes.hint;
        let copy = CopyRequest {
            from: Space(bytes.from),
            from_offset: bytes.from_offset as usize,
            to: Space(bytes.to),
            to_offset: bytes.to_offset as usize,
            nbytes: bytes.nbytes as usize,
            from_device: Device::new(bytes.from_device[0], bytes.from_device[1]),
            to_device: Device::new(bytes.to_device[0], bytes.to_device[1]),
            hint: Dtype {
                code: code as u8,
                bits: bits as u8,
                lanes,
            },
        };
        // SAFETY: C passes null or a stream of this table that is not freed; here the type of the table's device is known.
        let stream = unsafe { Stream::from_handle(copy.device(), stream) };
        // SAFETY: C passes spaces that hold the bytes, and keeps the host side until a sync.
        unsafe { api.copy(&copy, stream) }
    })
}

/// Implements [`DeviceApi::sync`].
pub(super) unsafe extern "C" fn sync(context: *mut c_void, id: i32, stream: *mut c_void) -> c_int {
    // SAFETY: C passes null or a stream of this table that is not freed.
    let stream = unsafe { stream_of_table(stream) };
    call_api(context, |api| api.sync(device(id), stream))
}

/// Implements [`DeviceApi::create_stream`] and stores the handle, null for the default stream.
pub(super) unsafe extern "C" fn create_stream(
    context: *mut c_void,
    id: i32,
    stream: *mut *mut c_void,
) -> c_int {
    call_api(context, |api| {
        let created = api.create_stream(device(id))?;
        // SAFETY: C passes an out pointer for the handle.
        unsafe { stream.write(created.handle()) };
        Ok(())
    })
}

/// Implements [`DeviceApi::free_stream`].
pub(super) unsafe extern "C" fn free_stream(
    context: *mut c_void,
    id: i32,
    stream: *mut c_void,
) -> c_int {
    // SAFETY: C passes null or a stream of this table that is not freed.
    let stream = unsafe { stream_of_table(stream) };
    // SAFETY: C frees a stream once, and does not use it afterwards.
    call_api(context, |api| unsafe {
        api.free_stream(device(id), stream)
    })
}

/// Implements [`DeviceApi::sync_streams`].
pub(super) unsafe extern "C" fn sync_streams(
    context: *mut c_void,
    id: i32,
    before: *mut c_void,
    after: *mut c_void,
) -> c_int {
    // SAFETY: C passes null or a stream of this table that is not freed.
    let before = unsafe { stream_of_table(before) };
    // SAFETY: C passes null or a stream of this table that is not freed.
    let after = unsafe { stream_of_table(after) };
    call_api(context, |api| api.sync_streams(device(id), before, after))
}
