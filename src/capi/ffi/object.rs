//! References, opaque objects, the version, and handles that are initialised once.

use super::{enter, enter_with_callback};
use crate::function::{Error, ErrorKind};
use crate::module::keyed_lock::KeyedLock;
use crate::object::reflect::opaque;
use crate::value::header::{self, Header};
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

/// `TVMFFIVersion`: the version of the ABI, not of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct TVMFFIVersion {
    /// Major version.
    pub major: u32,
    /// Minor version.
    pub minor: u32,
    /// Patch version.
    pub patch: u32,
}

/// Returns the version of the ABI that this library follows: 0.1.16, which the wheel 0.1.15.post2 reports.
///
/// # Safety
/// `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIGetVersion(out: *mut TVMFFIVersion) {
    let version = TVMFFIVersion {
        major: 0,
        minor: 1,
        patch: 16,
    };
    // SAFETY: `out` is writable, by this contract.
    unsafe { out.write(version) }
}

/// Adds a strong reference. Does nothing for null.
///
/// # Safety
/// `object` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIObjectIncRef(object: *mut Header) -> i32 {
    // SAFETY: `object` is null or alive, by this contract.
    unsafe { header::inc_ref(object) }
    0
}

/// Drops a strong reference. Does nothing for null.
///
/// # Safety
/// `object` is null, or the caller owns a reference.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIObjectDecRef(object: *mut Header) -> i32 {
    // SAFETY: `object` is null, or the caller owns a reference to it, by this contract.
    unsafe { header::dec_ref(object) }
    0
}

/// Wraps a handle of a frontend language.
///
/// # Safety
/// `deleter` may be called with `handle` once; `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIObjectCreateOpaque(
    handle: *mut c_void,
    type_index: i32,
    deleter: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
    out: *mut *mut Header,
) -> i32 {
    enter(|| {
        // SAFETY: `deleter` may be called with `handle` once, by this contract.
        let object = unsafe { opaque::wrap(handle, type_index, deleter) }?;
        // SAFETY: `out` is writable, by this contract.
        unsafe { out.write(object.into_raw()) };
        Ok(())
    })
}

static ONCE: KeyedLock<usize> = KeyedLock::new();

/// Initialises the handle at `handle_addr` unless it exists. Only one initialiser of a handle runs at a time.
///
/// # Safety
/// `handle_addr` is an aligned pointer that, from the first call on, only this function and [`TVMFFIHandleDeinitOnce`] write. `init` may be
/// called with a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIHandleInitOnce(
    handle_addr: *mut *mut c_void,
    init: unsafe extern "C-unwind" fn(*mut *mut c_void) -> i32,
) -> i32 {
    // SAFETY: `handle_addr` is aligned and only the two functions write it, by this contract; both do so atomically.
    let slot = unsafe { AtomicPtr::from_ptr(handle_addr) };
    if !slot.load(Ordering::Acquire).is_null() {
        return 0;
    }
    // MOD-28: the result is the initialiser's code.
    enter_with_callback(|code| {
        // One lock per handle: an initialiser may call code with another initialiser. Upstream has one lock, which deadlocks.
        let Some(_turn) = ONCE.take(&handle_addr.addr()) else {
            let text = "init_func initialises its own handle";
            return Err(Error::new(ErrorKind::Runtime, text));
        };
        if !slot.load(Ordering::Acquire).is_null() {
            return Ok(());
        }
        let mut handle = std::ptr::null_mut();
        // SAFETY: `init` may be called with a place for a pointer, by this contract.
        *code = unsafe { init(&mut handle) };
        if *code != 0 {
            return Ok(());
        }
        if handle.is_null() {
            return Err(Error::new(
                ErrorKind::Runtime,
                "init_func must return a non-NULL handle",
            ));
        }
        slot.store(handle, Ordering::Release);
        Ok(())
    })
}

/// Deinitialises the handle at `handle_addr` if it exists.
///
/// # Safety
/// `handle_addr` is as for [`TVMFFIHandleInitOnce`]; `deinit` may be called once with a handle that its `init` created.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIHandleDeinitOnce(
    handle_addr: *mut *mut c_void,
    deinit: unsafe extern "C-unwind" fn(*mut c_void) -> i32,
) -> i32 {
    // SAFETY: `handle_addr` is aligned and only the two functions write it, by this contract; both do so atomically.
    let slot = unsafe { AtomicPtr::from_ptr(handle_addr) };
    // MOD-28: the result is the callback's code.
    enter_with_callback(|code| {
        let handle = slot.swap(std::ptr::null_mut(), Ordering::AcqRel);
        if !handle.is_null() {
            // SAFETY: `deinit` may be called with the handle once, by this contract, and the swap took the handle out.
            *code = unsafe { deinit(handle) };
        }
        Ok(())
    })
}
