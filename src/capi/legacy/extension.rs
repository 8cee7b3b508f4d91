//! Types of extensions, which 0.2 to 0.6 have (VAL-22). What a value of one is, is in [`value`](crate::value).
//!
//! C++ registers a type through two members of the class `ExtTypeVTable`, which `TVM_REGISTER_EXT_TYPE` calls; C has a function for
//! a result's end alone.

use super::{Handle, guard};
use crate::function::{Error, ErrorKind, legacy::failure};
use crate::value::extension::{self, ExtensionClone, ExtensionDestroy, ExtensionPair};
use std::ffi::c_int;
use std::ptr;

/// Destroys a value of an extension that a call returned. A code without a type is rejected (VAL-22), and nothing is destroyed.
///
/// # Safety
///
/// `handle` must be null or one of the type of `type_code`, which the caller owns.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMExtTypeFree(handle: Handle, type_code: c_int) -> c_int {
    guard(|| {
        let pair = extension::pair(type_code).map_err(Error::from)?;
        // VAL-22: null has no end, as `delete` in C++ has none for it.
        if !handle.is_null() {
            // SAFETY: a handle of the pair, which the caller owns, by this contract.
            unsafe { (pair.destroy)(handle) };
        }
        Ok(())
    })
}

/// What C++ describes a type by. A type without `destroy` counts as not registered there, and without `clone` it fails when it is copied.
#[repr(C)]
pub(crate) struct ExtensionTable {
    destroy: Option<ExtensionDestroy>,
    clone: Option<ExtensionClone>,
}

/// `ExtTypeVTable::RegisterInternal(int, ExtTypeVTable const&)`. Null, and a text for `TVMGetLastError`, where upstream throws, and for the
/// code of a Rust type (VAL-22).
///
/// # Safety
///
/// `table` must be a description whose functions take each handle that is passed under `type_code`, from any thread; handles of an
/// earlier one are not used any more.
#[unsafe(export_name = "_ZN3tvm7runtime13ExtTypeVTable16RegisterInternalEiRKS1_")]
pub(crate) unsafe extern "C-unwind" fn register_extension_table(
    type_code: c_int,
    table: *const ExtensionTable,
) -> *const ExtensionPair {
    // SAFETY: a description, by this contract.
    let ExtensionTable { destroy, clone } = unsafe { &*table };
    let (Some(destroy), Some(clone)) = (destroy, clone) else {
        return failed(Error::new(
            ErrorKind::Value,
            "a type of extensions without its functions",
        ));
    };
    // SAFETY: both take each handle of the code, and earlier ones are not used any more, by this contract.
    let pair = unsafe { extension::register_pair(type_code, *clone, *destroy) };
    pair.map_or_else(|broken| failed(broken.into()), ptr::from_ref)
}

/// `ExtTypeVTable::Get(int)`. Null, and a text for `TVMGetLastError`, where upstream throws (VAL-22).
#[unsafe(export_name = "_ZN3tvm7runtime13ExtTypeVTable3GetEi")]
pub(crate) extern "C-unwind" fn extension_table(type_code: c_int) -> *const ExtensionPair {
    let pair = extension::pair(type_code);
    pair.map_or_else(|broken| failed(broken.into()), ptr::from_ref)
}

#[cold]
fn failed(error: Error) -> *const ExtensionPair {
    failure::report(error);
    ptr::null()
}
