//! The functions of the tvm-ffi interface that compiled code of 0.22 on calls to find its way (`c_env_api.h`).
//!
//! What they do is in chapter [`module`](crate::module).

use super::enter;
use crate::function::{Error, ErrorKind};
use crate::module::{Module, context, system};
use crate::release::Release;
use crate::value::header::Header;
use std::ffi::{CStr, c_char, c_int, c_void};

/// # Safety
///
/// `name` must be null or a C string.
unsafe fn text<'a>(name: *const c_char) -> Result<&'a str, Error> {
    if name.is_null() {
        return Err(Error::new(ErrorKind::Value, "the name is null"));
    }
    // SAFETY: `name` is not null, so a C string, by this contract.
    let name = unsafe { CStr::from_ptr(name) };
    name.to_str()
        .map_err(|_| Error::new(ErrorKind::Value, "the name is not UTF-8"))
}

/// The function that compiled code of the library with `context` means by `name` (MOD-13). The handle is borrowed.
///
/// # Safety
///
/// `context` must be what a loader wrote into the library's context symbol, `name` a C string, `out` a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIEnvModLookupFromImports(
    context: *mut c_void,
    name: *const c_char,
    out: *mut *mut Header,
) -> c_int {
    enter(|| {
        // SAFETY: `context` is what a loader wrote into the library's context symbol, by this contract.
        let module = unsafe { Module::from_context(context) };
        // SAFETY: `name` is a C string, by this contract.
        let name = unsafe { text(name) }?;
        let module = module.ok_or_else(|| {
            Error::new(
                ErrorKind::Runtime,
                "this library has no module to look through",
            )
        })?;
        // SAFETY: only compiled code of a loaded library has `context`, and the contract of `module::load` covers its calls.
        let function = unsafe { module.environment(name, Release::LAST) }?;
        // MOD-13: the handle is borrowed, and compiled code frees none: the module holds the function.
        module.keep_alive(&function);
        // SAFETY: `out` is a place for a handle, by this contract.
        unsafe { out.write(function.as_object().as_ptr()) };
        Ok(())
    })
}

/// From now on libraries with a data symbol `name` get `address` written there (MOD-05).
///
/// # Safety
///
/// `name` must be a C string, `address` stay valid and be what libraries expect in their symbol of that name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIEnvModRegisterContextSymbol(
    name: *const c_char,
    address: *mut c_void,
) -> c_int {
    enter(|| {
        // SAFETY: `name` is a C string, by this contract.
        let name = unsafe { text(name) }?;
        // SAFETY: `address` stays valid and is what libraries expect in that symbol, by this contract.
        unsafe { context::register(name, address) };
        Ok(())
    })
}

/// Puts a statically linked symbol into the system library (MOD-16).
///
/// # Safety
///
/// `name` must be a C string, `address` stay valid for the life of the process and be what compiled code defines under that name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIEnvModRegisterSystemLibSymbol(
    name: *const c_char,
    address: *mut c_void,
) -> c_int {
    enter(|| {
        // SAFETY: `name` is a C string, by this contract.
        let name = unsafe { text(name) }?;
        // SAFETY: `address` stays valid for the life of the process and is what `name` says, by this contract.
        unsafe { system::register_or_warn(name, address) };
        Ok(())
    })
}
