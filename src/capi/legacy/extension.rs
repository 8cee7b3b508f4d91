//! Types of extensions, which 0.2 to 0.6 have (VAL-22). Their values are defined in [`value`](crate::value).
//!
//! C++ registers a type through two members of the class `ExtTypeVTable`, which `TVM_REGISTER_EXT_TYPE` calls. C has only a function that
//! destroys a result.

use super::{Handle, guard};
use crate::function::{Error, ErrorKind, legacy::failure};
use crate::value::extension::{self, ExtensionClone, ExtensionDestroy, ExtensionPair};
use std::ffi::c_int;
use std::ptr;

/// Destroys an extension value that a call returned. A code without a type is rejected (VAL-22), and nothing is destroyed.
///
/// # Safety
///
/// `handle` is null or a handle of the type of `type_code`, which the caller owns.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMExtTypeFree(handle: Handle, type_code: c_int) -> c_int {
    guard(|| {
        let pair = extension::pair(type_code).map_err(Error::from)?;
        // VAL-22: null has nothing to destroy, as for `delete` in C++.
        if !handle.is_null() {
            // SAFETY: a handle of the pair, which the caller owns, by this contract.
            unsafe { (pair.destroy)(handle) };
        }
        Ok(())
    })
}

/// The description of a type in C++. Upstream treats a type without `destroy` as unregistered, and one without `clone` fails on a copy.
#[repr(C)]
pub(crate) struct ExtensionTable {
    destroy: Option<ExtensionDestroy>,
    clone: Option<ExtensionClone>,
}

/// Implements `ExtTypeVTable::RegisterInternal(int, ExtTypeVTable const&)`. Returns null and stores a text for `TVMGetLastError` in the
/// cases in which upstream throws, and for the code of a Rust type (VAL-22).
///
/// # Safety
///
/// `table` is a description whose functions accept each handle that is passed under `type_code`, from any thread. Handles of an earlier
/// description are no longer used.
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
    // SAFETY: both accept each handle of the code, and earlier handles are no longer used, by this contract.
    let pair = unsafe { extension::register_pair(type_code, *clone, *destroy) };
    pair.map_or_else(|broken| failed(broken.into()), ptr::from_ref)
}

/// Implements `ExtTypeVTable::Get(int)`. Returns null and stores a text for `TVMGetLastError` in the cases in which upstream throws
/// (VAL-22).
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
