//! A device API as C sees it: a table of functions.
//!
//! The registry holds pointers. Upstream's pointers lead to a C++ object, whose layout its compiler chooses. The pointers of this
//! crate lead to a [`DeviceTable`], which any language can fill in. `include/tvmspec_device.h` declares it.
//!
//! | file     | content                                                   |
//! |----------|-----------------------------------------------------------|
//! | `mod`    | the structs for C, and the conversion in both directions  |
//! | `from_c` | a table that C filled in, used as a device API            |
//! | `to_c`   | a device API of this crate, as the functions of a table   |

mod from_c;
mod to_c;

use crate::device::DeviceApi;
use crate::value::SmallMap;
use from_c::DeviceOfC;
use std::ffi::{c_char, c_int, c_void};
use std::sync::{Mutex, PoisonError};

/// The first bytes of every table, which tell a table from any other object (DEV-02). In the memory of a little-endian machine they
/// are the text `tvmspDEV`. As a number they are larger than any address that a C++ object of x86-64 can begin with.
pub const MAGIC: u64 = u64::from_le_bytes(*b"tvmspDEV");

/// An answer of [`DeviceTable::attribute`].
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct AttributeAnswer {
    /// The kind of the answer: 0 for None, 1 for `number`, 2 for `text`.
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

/// A copy, with the fields of [`CopyRequest`](crate::device::api::CopyRequest).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CopyBytes {
    /// The source.
    pub from: *mut c_void,
    /// The number of bytes to skip in the source.
    pub from_offset: u64,
    /// The destination.
    pub to: *mut c_void,
    /// The number of bytes to skip in the destination.
    pub to_offset: u64,
    /// The number of bytes to copy.
    pub nbytes: u64,
    /// The device type and id of the source.
    pub from_device: [i32; 2],
    /// The device type and id of the destination.
    pub to_device: [i32; 2],
    /// The code, bits and lanes of the element type.
    pub hint: [u16; 3],
}

/// A device API as a table. Every function gets `context` first and then a device id, and returns 0 for success.
///
/// The functions after `sync` may be null; then the default of [`DeviceApi`] is used.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct DeviceTable {
    /// [`MAGIC`].
    pub magic: u64,
    /// The size in bytes of the table that the caller filled in, so that later versions can add fields.
    pub size: u64,
    /// A pointer that is passed to every function.
    pub context: *mut c_void,
    /// Returns the text of the last failure on this thread; may be null.
    pub last_error: Option<unsafe extern "C" fn(*mut c_void) -> *const c_char>,
    /// Implements [`DeviceApi::set_device`].
    pub set_device: unsafe extern "C" fn(*mut c_void, i32) -> c_int,
    /// Implements [`DeviceApi::attribute`], by the attribute's number in the newest release.
    pub attribute: unsafe extern "C" fn(*mut c_void, i32, i32, *mut AttributeAnswer) -> c_int,
    /// Implements [`DeviceApi::alloc`]; takes the id, the bytes and the alignment.
    pub alloc: unsafe extern "C" fn(*mut c_void, i32, u64, u64, *mut *mut c_void) -> c_int,
    /// Implements [`DeviceApi::free`].
    pub free: unsafe extern "C" fn(*mut c_void, i32, *mut c_void) -> c_int,
    /// Implements [`DeviceApi::copy`].
    pub copy: unsafe extern "C" fn(*mut c_void, *const CopyBytes, *mut c_void) -> c_int,
    /// Implements [`DeviceApi::sync`].
    pub sync: unsafe extern "C" fn(*mut c_void, i32, *mut c_void) -> c_int,
    /// Implements [`DeviceApi::create_stream`].
    pub create_stream: Option<unsafe extern "C" fn(*mut c_void, i32, *mut *mut c_void) -> c_int>,
    /// Implements [`DeviceApi::free_stream`].
    pub free_stream: Option<unsafe extern "C" fn(*mut c_void, i32, *mut c_void) -> c_int>,
    /// Implements [`DeviceApi::sync_streams`]; takes the id, the stream that is waited for, and the stream that waits.
    pub sync_streams:
        Option<unsafe extern "C" fn(*mut c_void, i32, *mut c_void, *mut c_void) -> c_int>,
}

debug_fields!(DeviceTable: magic, size);

// SAFETY: a table's functions may be called with its context from any thread, as every method of `DeviceApi`
// (`tvmspec_device.h`).
unsafe impl Send for DeviceTable {}
// SAFETY: a table's functions may be called with its context from any thread, as every method of `DeviceApi`
// (`tvmspec_device.h`).
unsafe impl Sync for DeviceTable {}

/// The table of a device API of this crate.
#[repr(C)]
struct TableOfApi {
    /// The first field, so that its address, which is also its context, is the address of the whole struct.
    table: DeviceTable,
    /// The API that the functions of `to_c` call.
    api: &'static dyn DeviceApi,
}

/// The tables that this crate created, by address. Their API is called directly, without going through C.
static OURS: Mutex<SmallMap<usize, &'static dyn DeviceApi>> = Mutex::new(SmallMap::new());

/// Returns a table of `api`. The table is never freed, like the API.
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
    // SAFETY: never freed, and no longer written.
    let table = unsafe { &(*made).table };
    let mut ours = OURS.lock().unwrap_or_else(PoisonError::into_inner);
    ours.put(std::ptr::from_ref(table) as usize, api);
    table
}

/// Returns the API of a table.
///
/// # Safety
///
/// `table` is null, or points to at least eight bytes. If these are [`MAGIC`], it points to a whole [`DeviceTable`] that is never
/// freed.
pub unsafe fn to_api(table: *mut DeviceTable) -> Option<&'static dyn DeviceApi> {
    // A table of this crate that comes back is not wrapped again.
    let ours = OURS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = ours.find(&(table as usize)).copied();
    if known.is_some() || table.is_null() {
        return known;
    }
    // SAFETY: at least eight bytes are readable, by the first clause.
    let magic = unsafe { table.cast::<u64>().read_unaligned() };
    if magic != MAGIC || !table.is_aligned() {
        return None;
    }
    // SAFETY: the magic is there, so this is a complete table that is never freed, by the second clause.
    let table: &'static DeviceTable = unsafe { &*table };
    // A shorter table was filled in with an older header, and lacks functions that are called.
    if table.size < size_of::<DeviceTable>() as u64 {
        return None;
    }
    // DEV-02: the result of a factory is kept for the life of the process.
    Some(Box::leak(Box::new(DeviceOfC(table))))
}
