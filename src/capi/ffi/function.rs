//! Functions and the global registry.

use super::enter;
use crate::function::registry::{self, Details};
use crate::function::{Error, ErrorKind, Function, FunctionObj, SafeCall};
use crate::value::header::{Header, ObjectRef};
use crate::value::types::MethodInfo;
use crate::value::{AnyView, ByteArray, RawAny, cast};
use std::ffi::c_void;

/// Creates a function from a C callback.
///
/// # Safety
/// `call` follows the convention for `context` until `deleter` is called; `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIFunctionCreate(
    context: *mut c_void,
    call: SafeCall,
    deleter: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
    out: *mut *mut Header,
) -> i32 {
    enter(|| {
        // SAFETY: `call` follows the convention for `context` until `deleter` is called, by this contract.
        let function = unsafe { Function::from_c(context, call, deleter) };
        // SAFETY: `out` is writable, by this contract.
        unsafe { out.write(function.into_object().into_raw()) };
        Ok(())
    })
}

/// Calls a function.
///
/// # Safety
/// `function` is a function; arguments and result follow the convention.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIFunctionCall(
    function: *mut FunctionObj,
    args: *const RawAny,
    count: i32,
    result: *mut RawAny,
) -> i32 {
    // FUN-03: never the pointer for C++, which throws exceptions. No exception may leave this function (FUN-07).
    // SAFETY: `function` is a function, by this contract.
    let call = unsafe { (*function).safe_call };
    // SAFETY: `args`, `count` and `result` follow the convention, by this contract.
    unsafe { call(function.cast(), args, count, result) }
}

/// Looks up a function by name. Writes an owned handle, or null if the function does not exist.
///
/// # Safety
/// `name` and its bytes are readable, `out` is writable. A caller of the function passes the arguments that it expects.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIFunctionGetGlobal(
    name: *const ByteArray,
    out: *mut *mut Header,
) -> i32 {
    // A lookup may be the first call of the process, before this library has registered anything.
    super::init();
    // SAFETY: `name` is readable, by this contract.
    let name = unsafe { &*name };
    // SAFETY: the bytes of `name` are readable, by this contract.
    let name = unsafe { name.as_slice() };
    // FUN-10: also finds functions that safe Rust does not, because a C caller is responsible for its arguments.
    // SAFETY: a caller of the function passes the arguments that it expects, by this contract. The lookup neither fails nor panics.
    let found = unsafe { registry::lookup_raw(name) };
    let handle = found.map_or(std::ptr::null_mut(), |function| {
        function.into_object().into_raw()
    });
    // SAFETY: `out` is writable, by this contract.
    unsafe { out.write(handle) };
    0
}

/// Registers a function under a name.
///
/// # Safety
/// `name` and its bytes are readable; `function` is null or an object. Under the name of a device, `device_api.*`, it returns a device
/// table (`tvmspec_device.h`).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIFunctionSetGlobal(
    name: *const ByteArray,
    function: *mut Header,
    allow_override: i32,
) -> i32 {
    enter(|| {
        super::init();
        // SAFETY: `name` is readable, by this contract.
        let name = unsafe { &*name };
        // SAFETY: the bytes of `name` are readable, by this contract.
        let name = unsafe { name.as_slice() };
        if function.is_null() {
            return Err(Error::new(ErrorKind::Type, "the function is null")); // FUN-33
        }
        // SAFETY: `function` is an object, by this contract; its type is checked.
        let object = unsafe { ObjectRef::retain(function) };
        let function = cast::<Function>(AnyView::from(&object))?;
        let details = Details {
            flags: crate::value::types::flag::STATIC_METHOD,
            ..Details::default()
        };
        // SAFETY: under the name of a device the function returns a device table, by this contract.
        unsafe { registry::register_with(name, function, allow_override != 0, details) }
    })
}

/// Registers a function with documentation and metadata.
///
/// # Safety
/// `info` and the strings in it are readable, and `method` in it is a valid view. Under the name of a device, `device_api.*`, it
/// returns a device table (`tvmspec_device.h`).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIFunctionSetGlobalFromMethodInfo(
    info: *const MethodInfo,
    allow_override: i32,
) -> i32 {
    enter(|| {
        super::init();
        // SAFETY: `info` is readable, by this contract.
        let info = unsafe { &*info };
        // SAFETY: `info.method` is a valid view, by this contract; its type is checked.
        let method = unsafe { AnyView::from_raw(info.method) };
        let function = cast::<Function>(method)?;
        // SAFETY: the strings in `info` are readable, by this contract.
        let name = unsafe { info.name.as_slice() };
        // SAFETY: the strings in `info` are readable, by this contract.
        let doc = unsafe { info.doc.as_slice() };
        // SAFETY: the strings in `info` are readable, by this contract.
        let metadata = unsafe { info.metadata.as_slice() };
        let details = Details {
            doc: String::from_utf8_lossy(doc).into_owned(),
            metadata: String::from_utf8_lossy(metadata).into_owned(),
            flags: info.flags,
        };
        // SAFETY: under the name of a device the function returns a device table, by this contract.
        unsafe { registry::register_with(name, function, allow_override != 0, details) }
    })
}
