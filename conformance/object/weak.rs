//! Weak references of a case and handles of a frontend, as C++ and Python hold them: by the counts in a header, and by a C
//! function.

use super::probe::Alive;
use crate::conformance::runtime::ffi::api::FfiApi;
use crate::conformance::runtime::ffi::owned::{OwnedValue, Raised};
use crate::conformance::runtime::function_of;
use crate::value::header::{Header, dec_weak, inc_weak};
use crate::value::{AnyPayload, RawAny, index};
use std::ffi::c_void;

/// A weak reference, dropped by hand as no C function does it (VAL-05).
pub(super) struct WeakReference(*mut Header);

impl WeakReference {
    /// `None` for what is no object.
    pub(super) fn of(value: &OwnedValue) -> Option<WeakReference> {
        if value.raw.type_index < index::OBJECT_BEGIN {
            return None;
        }
        let object: *mut Header = value.pointer().cast();
        // SAFETY: `value` holds the object.
        unsafe { inc_weak(object) };
        Some(WeakReference(object))
    }

    /// How many strong references there are.
    pub(super) fn strong(&self) -> u32 {
        // SAFETY: the header stays while a weak reference does.
        unsafe { &*self.0 }.strong_count()
    }
}

impl Drop for WeakReference {
    fn drop(&mut self) {
        // SAFETY: the reference of `of`, which is gone afterwards.
        unsafe { dec_weak(self.0) };
    }
}

/// What the runtime calls at the end of an opaque object, on whichever thread: one fewer is alive.
unsafe extern "C" fn finish(handle: *mut c_void) {
    // SAFETY: `opaque` made the handle, which is finished once.
    let alive = unsafe { Box::from_raw(handle.cast::<Alive>()) };
    alive.less();
}

/// An object around a handle that counts as alive until it is finished.
pub(super) fn opaque(
    api: &'static FfiApi,
    type_index: i32,
    alive: &Alive,
) -> Result<OwnedValue, Raised> {
    type Finish = unsafe extern "C" fn(*mut c_void);
    type Create = unsafe extern "C" fn(*mut c_void, i32, Finish, *mut *mut c_void) -> i32;
    // SAFETY: the type that the C header declares for the name.
    let create: Option<Create> = unsafe { function_of(api.runtime, "TVMFFIObjectCreateOpaque") };
    let create = create.ok_or_else(|| Raised::missing("TVMFFIObjectCreateOpaque"))?;
    alive.more();
    let handle: *mut c_void = Box::into_raw(Box::new(alive.clone())).cast();
    let mut ptr = std::ptr::null_mut();
    // SAFETY: the handle is for `finish`, and there is a place for the object.
    if let Err(raised) = api.check(unsafe { create(handle, type_index, finish, &mut ptr) }) {
        // SAFETY: the handle was not taken.
        unsafe { finish(handle) };
        return Err(raised);
    }
    Ok(OwnedValue {
        api,
        raw: RawAny::of(type_index, AnyPayload { ptr }),
    })
}

/// Makes `stream` the current one of a device, or shows which is.
pub(super) fn stream(
    api: &'static FfiApi,
    [device_type, device_id]: [i32; 2],
    stream: Option<usize>,
) -> Result<i64, Raised> {
    type Set = unsafe extern "C" fn(i32, i32, *mut c_void, *mut *mut c_void) -> i32;
    type Current = unsafe extern "C" fn(i32, i32) -> *mut c_void;
    let Some(stream) = stream else {
        // SAFETY: the type that the C header declares for the name.
        let current: Option<Current> = unsafe { function_of(api.runtime, "TVMFFIEnvGetStream") };
        let current = current.ok_or_else(|| Raised::missing("TVMFFIEnvGetStream"))?;
        // SAFETY: it looks a number up.
        return Ok(unsafe { current(device_type, device_id) } as i64);
    };
    // SAFETY: the type that the C header declares for the name.
    let set: Option<Set> = unsafe { function_of(api.runtime, "TVMFFIEnvSetStream") };
    let set = set.ok_or_else(|| Raised::missing("TVMFFIEnvSetStream"))?;
    let mut before = std::ptr::null_mut();
    let stream = stream as *mut c_void;
    // SAFETY: no case uses the stream, and there is a place for the one before.
    api.check(unsafe { set(device_type, device_id, stream, &mut before) })?;
    Ok(before as i64)
}
