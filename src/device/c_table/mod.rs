//! A device API as C sees it: a table of functions.
//!
//! The registry holds pointers. Upstream's point to a C++ object, whose layout its compiler chooses;
//! ours point to a [`DeviceTable`], which any language can fill. `include/tvmspec_device.h` declares it.
//!
//! | file     | what                                                 |
//! |----------|------------------------------------------------------|
//! | `mod`    | the structs of C, and from one side to the other     |
//! | `from_c` | a table that C filled in, as a device API            |
//! | `to_c`   | a device API of this crate, as the functions of a table |

mod from_c;
mod to_c;

use crate::device::DeviceApi;
use crate::value::SmallMap;
use from_c::DeviceOfC;
use std::ffi::{c_char, c_int, c_void};
use std::sync::{Mutex, PoisonError};

/// What every table starts with, so that a pointer to something else is noticed (DEV-02): in memory the text `tvmspDEV` on a
/// little-endian machine, which is above any address that a C++ object of x86-64 can begin with.
pub const MAGIC: u64 = u64::from_le_bytes(*b"tvmspDEV");

/// An answer to [`DeviceTable::attribute`].
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct AttributeAnswer {
    /// 0 nothing, 1 `number`, 2 `text`.
    pub tag: c_int,
    /// A number.
    pub number: i64,
    /// A text that lives until the next call of the table on this thread.
    pub text: *const c_char,
}

impl AttributeAnswer {
    const NOTHING: AttributeAnswer = AttributeAnswer {
        tag: 0,
        number: 0,
        text: std::ptr::null(),
    };
}

/// A copy, as [`CopyRequest`](crate::device::api::CopyRequest) has it.
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
    pub attribute: unsafe extern "C" fn(*mut c_void, i32, i32, *mut AttributeAnswer) -> c_int,
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

/// A table of a device API of this crate.
#[repr(C)]
struct TableOfApi {
    /// First, so that the address of the table, which is its context, is that of the whole.
    table: DeviceTable,
    /// The API that the functions of `to_c` call.
    api: &'static dyn DeviceApi,
}

/// Tables that we made, by address: their API is found without going through C.
static OURS: Mutex<SmallMap<usize, &'static dyn DeviceApi>> = Mutex::new(SmallMap::new());

/// The table of `api`. It lives for ever, as APIs do.
pub fn of_api(api: &'static dyn DeviceApi) -> &'static DeviceTable {
    let made = Box::into_raw(Box::new(TableOfApi {
        table: DeviceTable {
            magic: MAGIC,
            size: size_of::<DeviceTable>() as u64,
            context: std::ptr::null_mut(),
            last_error: Some(to_c::last_error),
            set_device: to_c::set_device,
            attribute: to_c::attribute,
            alloc: to_c::alloc,
            free: to_c::free,
            copy: to_c::copy,
            sync: to_c::sync,
            create_stream: Some(to_c::create_stream),
            free_stream: Some(to_c::free_stream),
            sync_streams: Some(to_c::sync_streams),
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
    // A table of this crate that comes back is not wrapped a second time.
    let ours = OURS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = ours.find(&(table as usize)).copied();
    if known.is_some() || table.is_null() {
        return known;
    }
    // SAFETY: eight bytes at least are there, by the first clause.
    let magic = unsafe { table.cast::<u64>().read_unaligned() };
    if magic != MAGIC || !table.is_aligned() {
        return None;
    }
    // SAFETY: behind the magic is a whole table that lives for ever, by the second clause.
    let table: &'static DeviceTable = unsafe { &*table };
    // A shorter table was filled in by an older header, and lacks functions that are called.
    if table.size < size_of::<DeviceTable>() as u64 {
        return None;
    }
    // DEV-02: what a factory returned is kept for the life of the process.
    Some(Box::leak(Box::new(DeviceOfC(table))))
}
