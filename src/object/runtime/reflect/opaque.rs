//! Objects of a frontend language: a handle and what ends it.

use crate::function::{Error, ErrorKind, Result};
use crate::value::header::{Header, Object, ObjectRef, Ref};
use crate::value::index;
use std::ffi::c_void;

#[repr(C)]
struct OpaqueObj {
    header: Header,
    handle: *mut c_void,
    finish: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
}

// SAFETY: `#[repr(C)]` with the header first.
unsafe impl Object for OpaqueObj {
    fn type_index() -> i32 {
        index::OPAQUE_PY
    }

    fn matches(_: i32) -> bool {
        false
    }
}

impl Drop for OpaqueObj {
    fn drop(&mut self) {
        if let Some(finish) = self.finish {
            // SAFETY: called once, with the handle that came with it (the contract of `wrap`).
            unsafe { finish(self.handle) }
        }
    }
}

/// Wraps `handle`; `finish` is called with it when the last reference goes. Only the type index of frontend objects is
/// allowed.
///
/// # Safety
/// `finish` may be called once with `handle`, from any thread.
pub(crate) unsafe fn wrap(
    handle: *mut c_void,
    type_index: i32,
    finish: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
) -> Result<ObjectRef> {
    if type_index != index::OPAQUE_PY {
        return Err(Error::new(
            ErrorKind::Runtime,
            "Only kTVMFFIOpaquePyObject is supported for now",
        ));
    }
    unsafe extern "C-unwind" fn nothing(_: *mut Header, _: i32) {}
    Ok(Ref::new(OpaqueObj {
        header: Header::new(type_index, nothing),
        handle,
        finish,
    })
    .into_object())
}
