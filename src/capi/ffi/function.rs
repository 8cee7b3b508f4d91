//! Functions and the global registry.

use super::enter;
use crate::function::registry::{self, Details};
use crate::function::{Function, FunctionObj, SafeCall};
use crate::value::header::{Header, ObjectRef};
use crate::value::types::MethodInfo;
use crate::value::{AnyView, ByteArray, RawAny, cast};
use std::ffi::c_void;

/// Makes a function of a C callback.
///
/// # Safety
/// `call` follows the convention for `context` until `deleter` was called.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIFunctionCreate(
    context: *mut c_void,
    call: SafeCall,
    deleter: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
    out: *mut *mut Header,
) -> i32 {
    enter(|| {
        // SAFETY: says the caller.
        unsafe {
            let function = Function::from_c(context, call, deleter);
            out.write(function.into_object().into_raw());
        }
        Ok(())
    })
}

/// Calls a function.
///
/// # Safety
/// `function` is one; arguments and result follow the convention.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIFunctionCall(
    function: *mut FunctionObj,
    args: *const RawAny,
    count: i32,
    result: *mut RawAny,
) -> i32 {
    // SAFETY: says the caller.
    unsafe { ((*function).safe_call)(function.cast(), args, count, result) }
}

/// The function of a name: an owned handle, or null when there is none.
///
/// # Safety
/// `name` is readable, `out` writable.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIFunctionGetGlobal(
    name: *const ByteArray,
    out: *mut *mut Header,
) -> i32 {
    super::init();
    // SAFETY: says the caller. The lookup neither fails nor panics.
    unsafe {
        let found = registry::lookup_raw((*name).as_slice());
        let handle = found.map_or(std::ptr::null_mut(), |function| {
            function.into_object().into_raw()
        });
        out.write(handle);
    }
    0
}

/// Registers a function under a name.
///
/// # Safety
/// `name` is readable; `function` is a function.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIFunctionSetGlobal(
    name: *const ByteArray,
    function: *mut Header,
    allow_override: i32,
) -> i32 {
    enter(|| {
        super::init();
        // SAFETY: says the caller.
        let (name, object) = unsafe { ((*name).as_slice(), ObjectRef::retain(function)) };
        let function = cast::<Function>(AnyView::from(&object))?;
        let details = Details {
            flags: crate::value::types::flag::STATIC_METHOD,
            ..Details::default()
        };
        // SAFETY: a function of C under the name of a device returns a device table, which `tvmspec_device.h` asks for.
        unsafe { registry::register_with(name, function, allow_override != 0, details) }
    })
}

/// Registers a function with documentation and metadata.
///
/// # Safety
/// `info` is readable, with a function in it.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIFunctionSetGlobalFromMethodInfo(
    info: *const MethodInfo,
    allow_override: i32,
) -> i32 {
    enter(|| {
        super::init();
        // SAFETY: says the caller.
        let (info, method) = unsafe { (&*info, AnyView::from_raw((*info).method)) };
        let function = cast::<Function>(method)?;
        // SAFETY: says the caller of the strings.
        let (name, doc, metadata) = unsafe {
            (
                info.name.as_slice(),
                info.doc.as_slice(),
                info.metadata.as_slice(),
            )
        };
        let details = Details {
            doc: String::from_utf8_lossy(doc).into_owned(),
            metadata: String::from_utf8_lossy(metadata).into_owned(),
            flags: info.flags,
        };
        // SAFETY: a function of C under the name of a device returns a device table, which `tvmspec_device.h` asks for.
        unsafe { registry::register_with(name, function, allow_override != 0, details) }
    })
}
