//! The functions of the tvm-ffi interface that compiled code from 0.22 on uses to look up functions and symbols (`c_env_api.h`).
//!
//! The chapter [`module`](crate::module) defines their behaviour.

use super::enter;
use crate::function::{Error, ErrorKind};
use crate::module::{Module, context, system};
use crate::release::Release;
use crate::value::header::Header;
use std::ffi::{CStr, c_char, c_int, c_void};

/// Returns a name as text.
///
/// # Safety
///
/// `name` is null or a C string.
unsafe fn text<'a>(name: *const c_char) -> Result<&'a str, Error> {
    if name.is_null() {
        return Err(Error::new(ErrorKind::Value, "the name is null"));
    }
    // SAFETY: `name` is not null, so a C string, by this contract.
    let name = unsafe { CStr::from_ptr(name) };
    name.to_str()
        .map_err(|_| Error::new(ErrorKind::Value, "the name is not UTF-8"))
}

/// Looks up the function `name` for compiled code of the library with `context` (MOD-13). The handle is borrowed.
///
/// # Safety
///
/// `context` is the value that a loader wrote into the library's context symbol, `name` is a C string, `out` is a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIEnvModLookupFromImports(
    context: *mut c_void,
    name: *const c_char,
    out: *mut *mut Header,
) -> c_int {
    enter(|| {
        // SAFETY: a loader wrote `context` into the library's context symbol, by this contract.
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
        // MOD-13: the handle is borrowed and compiled code never frees it, so the module keeps the function alive.
        module.keep_alive(&function);
        // SAFETY: `out` is a place for a handle, by this contract.
        unsafe { out.write(function.as_object().as_ptr()) };
        Ok(())
    })
}

/// Registers an address that is written into the data symbol `name` of libraries loaded from now on (MOD-05).
///
/// # Safety
///
/// `name` is a C string. `address` stays valid and has the type that libraries expect in their symbol of that name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIEnvModRegisterContextSymbol(
    name: *const c_char,
    address: *mut c_void,
) -> c_int {
    enter(|| {
        // SAFETY: `name` is a C string, by this contract.
        let name = unsafe { text(name) }?;
        // SAFETY: `address` stays valid and matches the libraries' symbol, by this contract.
        unsafe { context::register(name, address) };
        Ok(())
    })
}

/// Adds a statically linked symbol to the system library (MOD-16).
///
/// # Safety
///
/// `name` is a C string. `address` stays valid for the life of the process and has the type that compiled code defines for that name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIEnvModRegisterSystemLibSymbol(
    name: *const c_char,
    address: *mut c_void,
) -> c_int {
    enter(|| {
        // SAFETY: `name` is a C string, by this contract.
        let name = unsafe { text(name) }?;
        // SAFETY: `address` stays valid for the life of the process and matches `name`, by this contract.
        unsafe { system::register_or_warn(name, address) };
        Ok(())
    })
}
