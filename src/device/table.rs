//! A device API as C sees it: a table of functions.
//!
//! The registry holds pointers. Upstream's point to a C++ object, whose layout its compiler chooses;
//! ours point to a [`DeviceTable`], which any language can fill. `include/tvmspec_device.h` declares it.

use crate::device::{
    Attribute, AttributeValue, CopyRequest, Device, DeviceApi, Dtype, Error, Result, Space, Stream,
};
use crate::value::SmallMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Mutex, PoisonError};

/// What every table starts with, so that a pointer to something else is noticed.
pub const MAGIC: u64 = u64::from_le_bytes(*b"tvmspDEV");

/// An answer to [`DeviceTable::attribute`].
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Answer {
    /// 0 nothing, 1 `number`, 2 `text`.
    pub tag: c_int,
    /// A number.
    pub number: i64,
    /// A text that lives until the next call of the table on this thread.
    pub text: *const c_char,
}

impl Answer {
    const NOTHING: Answer = Answer {
        tag: 0,
        number: 0,
        text: std::ptr::null(),
    };
}

/// A copy, as [`CopyRequest`] has it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CopyBytes {
    /// Source.
    pub from: *mut c_void,
    /// Bytes to skip there.
    pub from_offset: u64,
    /// Destination.
    pub to: *mut c_void,
    /// Bytes to skip there.
    pub to_offset: u64,
    /// Bytes.
    pub nbytes: u64,
    /// Device type and id of the source.
    pub from_device: [i32; 2],
    /// Device type and id of the destination.
    pub to_device: [i32; 2],
    /// Code, bits, lanes of the element type.
    pub hint: [u16; 3],
}

/// A device API as a table. Every function gets `context` first and a device id; 0 is success.
///
/// Functions behind `sync` may be null: then the default of [`DeviceApi`] is taken.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct DeviceTable {
    /// [`MAGIC`].
    pub magic: u64,
    /// Bytes of the table that are filled in, for later fields.
    pub size: u64,
    /// Handed to every function.
    pub context: *mut c_void,
    /// What the last failure on this thread was; may be null.
    pub last_error: Option<unsafe extern "C" fn(*mut c_void) -> *const c_char>,
    /// [`DeviceApi::set_device`].
    pub set_device: unsafe extern "C" fn(*mut c_void, i32) -> c_int,
    /// [`DeviceApi::attribute`], by its number in the newest release.
    pub attribute: unsafe extern "C" fn(*mut c_void, i32, i32, *mut Answer) -> c_int,
    /// [`DeviceApi::alloc`]: id, bytes, alignment.
    pub alloc: unsafe extern "C" fn(*mut c_void, i32, u64, u64, *mut *mut c_void) -> c_int,
    /// [`DeviceApi::free`].
    pub free: unsafe extern "C" fn(*mut c_void, i32, *mut c_void) -> c_int,
    /// [`DeviceApi::copy`].
    pub copy: unsafe extern "C" fn(*mut c_void, *const CopyBytes, *mut c_void) -> c_int,
    /// [`DeviceApi::sync`].
    pub sync: unsafe extern "C" fn(*mut c_void, i32, *mut c_void) -> c_int,
    /// [`DeviceApi::create_stream`].
    pub create_stream: Option<unsafe extern "C" fn(*mut c_void, i32, *mut *mut c_void) -> c_int>,
    /// [`DeviceApi::free_stream`].
    pub free_stream: Option<unsafe extern "C" fn(*mut c_void, i32, *mut c_void) -> c_int>,
    /// [`DeviceApi::sync_streams`]: id, the stream waited for, the stream that waits.
    pub sync_streams:
        Option<unsafe extern "C" fn(*mut c_void, i32, *mut c_void, *mut c_void) -> c_int>,
}

// SAFETY: a table's functions may be called with its context from any thread, as every method of `DeviceApi`
// (`tvmspec_device.h`).
unsafe impl Send for DeviceTable {}
// SAFETY: a table's functions may be called with its context from any thread, as every method of `DeviceApi`
// (`tvmspec_device.h`).
unsafe impl Sync for DeviceTable {}

/// A table that stands for a device API of this crate.
#[repr(C)]
struct OfApi {
    table: DeviceTable,
    api: &'static dyn DeviceApi,
}

/// Tables that we made, by address: their API is found without going through C.
static OURS: Mutex<SmallMap<usize, &'static dyn DeviceApi>> = Mutex::new(SmallMap::new());

/// The table of `api`. It lives for ever, as APIs do.
pub fn of_api(api: &'static dyn DeviceApi) -> &'static DeviceTable {
    let made = Box::into_raw(Box::new(OfApi {
        table: DeviceTable {
            magic: MAGIC,
            size: size_of::<DeviceTable>() as u64,
            context: std::ptr::null_mut(),
            last_error: Some(out::last_error),
            set_device: out::set_device,
            attribute: out::attribute,
            alloc: out::alloc,
            free: out::free,
            copy: out::copy,
            sync: out::sync,
            create_stream: Some(out::create_stream),
            free_stream: Some(out::free_stream),
            sync_streams: Some(out::sync_streams),
        },
        api,
    }));
    // SAFETY: just made, and not shared yet.
    unsafe { (*made).table.context = made.cast() };
    // SAFETY: never freed, and not written any more.
    let table = unsafe { &(*made).table };
    let mut ours = OURS.lock().unwrap_or_else(PoisonError::into_inner);
    ours.put(std::ptr::from_ref(table) as usize, api);
    table
}

/// The API behind a table.
///
/// # Safety
///
/// `table` is null, or points to eight bytes at least, and to a whole [`DeviceTable`] that lives for ever if they are
/// [`MAGIC`].
pub unsafe fn to_api(table: *mut DeviceTable) -> Option<&'static dyn DeviceApi> {
    let ours = OURS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = ours.find(&(table as usize)).copied();
    if known.is_some() || table.is_null() {
        return known;
    }
    // SAFETY: eight bytes at least stand there.
    let magic = unsafe { table.cast::<u64>().read_unaligned() };
    if magic != MAGIC || !table.is_aligned() {
        return None;
    }
    // SAFETY: behind the magic stands a whole table that lives for ever.
    let table: &'static DeviceTable = unsafe { &*table };
    if table.size < size_of::<DeviceTable>() as u64 {
        return None;
    }
    Some(Box::leak(Box::new(FromC(table))))
}

/// A device API that a caller filled in as a table.
struct FromC(&'static DeviceTable);

impl FromC {
    fn checked(&self, call: &'static str, code: c_int) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        let meaning = self.0.last_error.map(|last_error| {
            // SAFETY: the table's own function with its own context.
            let text = unsafe { last_error(self.0.context) };
            if text.is_null() {
                return String::new();
            }
            // SAFETY: `last_error` of a table returns null or a text that ends (`tvmspec_device.h`).
            unsafe { CStr::from_ptr(text) }
                .to_string_lossy()
                .into_owned()
        });
        Err(Error::driver(
            "a device of C",
            call,
            code.into(),
            meaning.unwrap_or_default(),
        ))
    }
}

impl DeviceApi for FromC {
    fn set_device(&self, device: Device) -> Result<()> {
        // SAFETY: the table's own function with its own context.
        let code = unsafe { (self.0.set_device)(self.0.context, device.id) };
        self.checked("set_device", code)
    }

    fn attribute(&self, device: Device, attribute: Attribute) -> Result<AttributeValue> {
        let mut answer = Answer::NOTHING;
        // SAFETY: the table's own function with its own context, and a place for the answer.
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
                // SAFETY: the text of an answer ends, and stays until the next call of the table on this thread.
                AttributeValue::text(unsafe { CStr::from_ptr(answer.text) }.to_string_lossy())
            }
            _ => Ok(AttributeValue::None),
        }
    }

    fn alloc(&self, device: Device, nbytes: usize, alignment: usize, _: Dtype) -> Result<Space> {
        let mut space = std::ptr::null_mut();
        // SAFETY: the table's own function with its own context, and a place for the handle.
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
        // SAFETY: `space` came from this table, was not freed, and it is not used afterwards.
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
        // SAFETY: both spaces hold the bytes, and the side of the host stays until a sync.
        let code = unsafe { (self.0.copy)(self.0.context, &raw const bytes, stream.handle()) };
        self.checked("copy", code)
    }

    fn sync(&self, device: Device, stream: Stream) -> Result<()> {
        let stream = stream.on(device)?;
        // SAFETY: the table's own function with its own context, and a stream of its type that is not freed.
        let code = unsafe { (self.0.sync)(self.0.context, device.id, stream) };
        self.checked("sync", code)
    }

    fn create_stream(&self, device: Device) -> Result<Stream> {
        let mut stream = std::ptr::null_mut();
        if let Some(create) = self.0.create_stream {
            // SAFETY: the table's own function with its own context, and a place for the handle.
            let code = unsafe { create(self.0.context, device.id, &raw mut stream) };
            self.checked("create_stream", code)?;
        }
        // SAFETY: the table made it for this device; who frees it answers for its end.
        Ok(unsafe { Stream::from_handle(device, stream) })
    }

    unsafe fn free_stream(&self, device: Device, stream: Stream) -> Result<()> {
        let Some(free) = self.0.free_stream else {
            return Ok(());
        };
        let stream = stream.on(device)?;
        // SAFETY: the stream came from this table, is not freed yet, and not used afterwards.
        let code = unsafe { free(self.0.context, device.id, stream) };
        self.checked("free_stream", code)
    }

    fn sync_streams(&self, device: Device, before: Stream, after: Stream) -> Result<()> {
        let Some(order) = self.0.sync_streams else {
            return Ok(());
        };
        let (before, after) = (before.on(device)?, after.on(device)?);
        // SAFETY: the table's own function with its own context, and streams of its type that are not freed.
        let code = unsafe { order(self.0.context, device.id, before, after) };
        self.checked("sync_streams", code)
    }
}

/// The other direction: a device API of this crate behind C functions.
mod out {
    use super::{
        Answer, Attribute, AttributeValue, CopyBytes, CopyRequest, Device, Dtype, OfApi, Result,
        Space, Stream,
    };
    use std::cell::RefCell;
    use std::ffi::{CString, c_char, c_int, c_void};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    thread_local! {
        static TEXT: RefCell<CString> = RefCell::default();
    }

    fn keep(text: &str) -> *const c_char {
        let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
        TEXT.with_borrow_mut(|kept| {
            *kept = text;
            kept.as_ptr()
        })
    }

    /// Runs `body` with the API behind `context`; a failure or panic becomes -1 and a text.
    fn with(
        context: *mut c_void,
        body: impl FnOnce(&'static dyn super::DeviceApi) -> Result<()>,
    ) -> c_int {
        // SAFETY: C hands in the context of the table, which `of_api` put there and which lives for ever.
        let api = unsafe { &*context.cast::<OfApi>() }.api;
        match catch_unwind(AssertUnwindSafe(|| body(api))) {
            Ok(Ok(())) => 0,
            Ok(Err(error)) => failed(error),
            Err(panic) => panicked(panic),
        }
    }

    #[cold]
    #[inline(never)]
    fn failed(error: super::Error) -> c_int {
        keep(&error.to_string());
        -1
    }

    #[cold]
    #[inline(never)]
    fn panicked(_: Box<dyn std::any::Any + Send>) -> c_int {
        keep("the device panicked");
        -1
    }

    /// Devices of a table are of one type, and the API knows which; only the id counts here.
    fn device(id: i32) -> Device {
        Device::ext_dev(id)
    }

    /// # Safety
    ///
    /// As for [`Stream::from_handle`], with a stream of the device that the table is of.
    unsafe fn given(stream: *mut c_void) -> Stream {
        const OF_TABLE: Device = Device::ext_dev(0);
        // SAFETY: as for this function; devices of a table are of one type.
        unsafe { Stream::from_handle(OF_TABLE, stream) }
    }

    pub(super) unsafe extern "C" fn last_error(_: *mut c_void) -> *const c_char {
        TEXT.with_borrow(|text| text.as_ptr())
    }

    pub(super) unsafe extern "C" fn set_device(context: *mut c_void, id: i32) -> c_int {
        with(context, |api| api.set_device(device(id)))
    }

    pub(super) unsafe extern "C" fn attribute(
        context: *mut c_void,
        id: i32,
        number: i32,
        answer: *mut Answer,
    ) -> c_int {
        with(context, |api| {
            let given = match Attribute::from_number(number) {
                Some(attribute) => api.attribute(device(id), attribute)?,
                None => AttributeValue::None,
            };
            let given = match given {
                AttributeValue::None => Answer::NOTHING,
                AttributeValue::Int(number) => Answer {
                    tag: 1,
                    number,
                    ..Answer::NOTHING
                },
                AttributeValue::Text(text) => Answer {
                    tag: 2,
                    text: keep(&text),
                    ..Answer::NOTHING
                },
            };
            // SAFETY: C hands in a place for the answer.
            unsafe { answer.write(given) };
            Ok(())
        })
    }

    pub(super) unsafe extern "C" fn alloc(
        context: *mut c_void,
        id: i32,
        nbytes: u64,
        alignment: u64,
        space: *mut *mut c_void,
    ) -> c_int {
        with(context, |api| {
            let given = api.alloc(
                device(id),
                nbytes as usize,
                alignment as usize,
                Dtype::UINT8,
            )?;
            // SAFETY: C hands in a place for the handle.
            unsafe { space.write(given.0) };
            Ok(())
        })
    }

    pub(super) unsafe extern "C" fn free(
        context: *mut c_void,
        id: i32,
        space: *mut c_void,
    ) -> c_int {
        // SAFETY: C hands in a space of this table's `alloc` that was not freed and is not used afterwards.
        with(context, |api| unsafe { api.free(device(id), Space(space)) })
    }

    pub(super) unsafe extern "C" fn copy(
        context: *mut c_void,
        copy: *const CopyBytes,
        stream: *mut c_void,
    ) -> c_int {
        with(context, |api| {
            // SAFETY: C hands in a copy that stays for the call.
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
            // SAFETY: C hands in null or a stream of this table that is not freed.
            let stream = unsafe { given(stream) };
            // SAFETY: C hands in spaces that hold the bytes, and keeps the side of the host until a sync.
            unsafe { api.copy(&copy, stream) }
        })
    }

    pub(super) unsafe extern "C" fn sync(
        context: *mut c_void,
        id: i32,
        stream: *mut c_void,
    ) -> c_int {
        // SAFETY: C hands in null or a stream of this table that is not freed.
        let stream = unsafe { given(stream) };
        with(context, |api| api.sync(device(id), stream))
    }

    pub(super) unsafe extern "C" fn create_stream(
        context: *mut c_void,
        id: i32,
        stream: *mut *mut c_void,
    ) -> c_int {
        with(context, |api| {
            let given = api.create_stream(device(id))?;
            // SAFETY: C hands in a place for the handle.
            unsafe { stream.write(given.handle()) };
            Ok(())
        })
    }

    pub(super) unsafe extern "C" fn free_stream(
        context: *mut c_void,
        id: i32,
        stream: *mut c_void,
    ) -> c_int {
        // SAFETY: C hands in null or a stream of this table that is not freed.
        let stream = unsafe { given(stream) };
        // SAFETY: nor is it used afterwards.
        with(context, |api| unsafe {
            api.free_stream(device(id), stream)
        })
    }

    pub(super) unsafe extern "C" fn sync_streams(
        context: *mut c_void,
        id: i32,
        before: *mut c_void,
        after: *mut c_void,
    ) -> c_int {
        // SAFETY: C hands in null or a stream of this table that is not freed.
        let before = unsafe { given(before) };
        // SAFETY: C hands in null or a stream of this table that is not freed.
        let after = unsafe { given(after) };
        with(context, |api| api.sync_streams(device(id), before, after))
    }
}
