//! Objects of a frontend language: a handle and its deleter (`ffi.OpaquePyObject`). A Python value without an equivalent in this ABI passes
//! through functions and containers in such an object, and comes back as the same value.
//!
//! | bytes | field |
//! |---|---|
//! | 24..32 | the handle, which C++ and Python read |
//! | 32..40 | the deleter, which only this library knows |

use crate::function::{Error, ErrorKind, Result};
use crate::value::header::{HeaderSlot, ObjectRef, Ref, own_object};
use crate::value::index;
use std::ffi::c_void;

/// The memory of an opaque object.
#[repr(C)]
struct OpaqueObj {
    header: HeaderSlot,
    /// The frontend's handle of its value. For Python, the address of the object.
    handle: *mut c_void,
    /// Called with the handle when the object is freed; `None` for a handle that needs no release.
    finish: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
}

// Objects of this index from another library have another deleter.
// SAFETY: `#[repr(C)]`, header and handle first; only its own deleter accesses the rest.
own_object!(unsafe OpaqueObj, index::OPAQUE_PY);

impl Drop for OpaqueObj {
    fn drop(&mut self) {
        if let Some(finish) = self.finish {
            // SAFETY: called once, with the handle that came with it (the contract of `wrap`).
            unsafe { finish(self.handle) }
        }
    }
}

/// Wraps `handle`. `finish` is called with it when the last reference is dropped, on that thread.
///
/// # Safety
/// `finish` may be called once with `handle`, from any thread.
pub(crate) unsafe fn wrap(
    handle: *mut c_void,
    type_index: i32,
    finish: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
) -> Result<ObjectRef> {
    // VAL-14: the only index reserved for values of frontends is the one of Python. The text is upstream's.
    if type_index != index::OPAQUE_PY {
        return Err(Error::new(
            ErrorKind::Runtime,
            "Only kTVMFFIOpaquePyObject is supported for now",
        ));
    }
    Ok(Ref::new(OpaqueObj {
        header: HeaderSlot::default(),
        handle,
        finish,
    })
    .into_object())
}
