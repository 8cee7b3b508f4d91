//! Weak references of a case and handles of a frontend, as C++ and Python hold them. C++ uses the counts in the header, Python uses a C
//! function.

use super::probe::Alive;
use crate::conformance::runtime::ffi::api::FfiApi;
use crate::conformance::runtime::ffi::owned::{OwnedValue, Raised};
use crate::conformance::runtime::function_of;
use crate::value::header::{Header, dec_weak, inc_weak};
use crate::value::{AnyPayload, RawAny, index};
use std::ffi::c_void;

/// A weak reference that is dropped through the header, because no C function exists for that (VAL-05).
pub(super) struct WeakReference(*mut Header);

impl WeakReference {
    /// Takes a weak reference to an object. Returns `None` for any other value.
    pub(super) fn from_value(value: &OwnedValue) -> Option<WeakReference> {
        if value.raw.type_index < index::OBJECT_BEGIN {
            return None;
        }
        let object: *mut Header = value.pointer().cast();
        // SAFETY: `value` holds the object.
        unsafe { inc_weak(object) };
        Some(WeakReference(object))
    }

    /// Returns the number of strong references.
    pub(super) fn strong(&self) -> u32 {
        // SAFETY: the header is valid as long as this weak reference exists.
        unsafe { &*self.0 }.strong_count()
    }
}

impl Drop for WeakReference {
    fn drop(&mut self) {
        // SAFETY: `from_value` took this reference, and it is not used after this call.
        unsafe { dec_weak(self.0) };
    }
}

/// Counts one handle fewer as alive. The runtime calls this at the end of an opaque object, on any thread.
unsafe extern "C" fn finish(handle: *mut c_void) {
    // SAFETY: `opaque` made the handle, and it is finished once.
    let alive = unsafe { Box::from_raw(handle.cast::<Alive>()) };
    alive.count_dropped();
}

/// Creates an object around a handle, which counts as alive until it is finished.
pub(super) fn opaque(
    api: &'static FfiApi,
    type_index: i32,
    alive: &Alive,
) -> Result<OwnedValue, Raised> {
    type Finish = unsafe extern "C" fn(*mut c_void);
    type Create = unsafe extern "C" fn(*mut c_void, i32, Finish, *mut *mut c_void) -> i32;
    // SAFETY: the C header declares this type for the name.
    let create: Option<Create> = unsafe { function_of(api.runtime, "TVMFFIObjectCreateOpaque") };
    let create = create.ok_or_else(|| Raised::missing("TVMFFIObjectCreateOpaque"))?;
    alive.count_created();
    let handle: *mut c_void = Box::into_raw(Box::new(alive.clone())).cast();
    let mut ptr = std::ptr::null_mut();
    // SAFETY: the handle is for `finish`, and `ptr` is a place for the object.
    if let Err(raised) = api.check(unsafe { create(handle, type_index, finish, &mut ptr) }) {
        // SAFETY: the runtime did not take the handle.
        unsafe { finish(handle) };
        return Err(raised);
    }
    Ok(OwnedValue {
        api,
        raw: RawAny::of(type_index, AnyPayload { ptr }),
    })
}

/// Makes `stream` the current stream of a device, or returns the current one.
pub(super) fn stream(
    api: &'static FfiApi,
    [device_type, device_id]: [i32; 2],
    stream: Option<usize>,
) -> Result<i64, Raised> {
    type Set = unsafe extern "C" fn(i32, i32, *mut c_void, *mut *mut c_void) -> i32;
    type Current = unsafe extern "C" fn(i32, i32) -> *mut c_void;
    let Some(stream) = stream else {
        // SAFETY: the C header declares this type for the name.
        let current: Option<Current> = unsafe { function_of(api.runtime, "TVMFFIEnvGetStream") };
        let current = current.ok_or_else(|| Raised::missing("TVMFFIEnvGetStream"))?;
        // SAFETY: the function only looks up a number.
        return Ok(unsafe { current(device_type, device_id) } as i64);
    };
    // SAFETY: the C header declares this type for the name.
    let set: Option<Set> = unsafe { function_of(api.runtime, "TVMFFIEnvSetStream") };
    let set = set.ok_or_else(|| Raised::missing("TVMFFIEnvSetStream"))?;
    let mut before = std::ptr::null_mut();
    let stream = stream as *mut c_void;
    // SAFETY: no case uses the stream, and `before` is a place for the previous one.
    api.check(unsafe { set(device_type, device_id, stream, &mut before) })?;
    Ok(before as i64)
}
