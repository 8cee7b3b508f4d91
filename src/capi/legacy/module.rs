//! Modules: loading, imports, lookup. The chapter [`crate::module`] defines their behaviour.

use super::{Handle, TVMObjectFree, guard, text, write_result};
use crate::function::legacy::SPOKEN;
use crate::function::{Error, ErrorKind};
use crate::module::{self, Module, legacy};
use std::ffi::{c_char, c_int};
use std::ptr;

/// Loads a module from a file in `format`. An empty `format` means the format that the extension states (MOD-32).
///
/// # Safety
///
/// Both texts are C strings, `out` is a place for a handle, and the file contains code that keeps the contract of [`module::load`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMModLoadFromFile(
    file_name: *const c_char,
    format: *const c_char,
    out: *mut Handle,
) -> c_int {
    guard(|| {
        // SAFETY: `file_name` is a C string, by this contract.
        let path = unsafe { text(file_name, "the file name") }?;
        // SAFETY: `format` is a C string, by this contract.
        let format = unsafe { text(format, "the format") }?;
        // SAFETY: the file keeps the contract of `module::load`, by this contract.
        let module = unsafe { module::load_as(path, format) }?;
        // SAFETY: `out` is a place for a handle, by this contract.
        unsafe { write_result(out, module.into_object().into_raw().cast()) }
    })
}

/// Adds `dependency` to the imports of `module`.
///
/// # Safety
///
/// Both are handles of modules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMModImport(module: Handle, dependency: Handle) -> c_int {
    guard(|| {
        // SAFETY: `module` is the handle of a module, by this contract.
        let module = unsafe { legacy::module(module) }?;
        // SAFETY: `dependency` is the handle of a module, by this contract.
        let dependency = unsafe { legacy::module(dependency) }?;
        module.import(dependency)
    })
}

/// Looks up the function `name` of a module. Writes a null handle if it does not exist.
///
/// # Safety
///
/// `module` is the handle of a module, `name` is a C string, `out` is a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMModGetFunction(
    module: Handle,
    name: *const c_char,
    query_imports: c_int,
    out: *mut Handle,
) -> c_int {
    guard(|| {
        // SAFETY: `module` is the handle of a module, by this contract.
        let module = unsafe { legacy::module(module) }?;
        // SAFETY: `name` is a C string, by this contract.
        let name = unsafe { text(name, "the name") }?;
        let function = module.function(name, query_imports != 0)?;
        let handle = function.map_or(ptr::null_mut(), |function| {
            function.into_object().into_raw()
        });
        // SAFETY: `out` is a place for the handle, by this contract.
        unsafe { write_result(out, handle.cast()) }
    })
}

/// Drops the caller's reference to a module.
///
/// # Safety
///
/// `module` is a handle that the caller owns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMModFree(module: Handle) -> c_int {
    // SAFETY: `module` is a handle that the caller owns, by this contract.
    unsafe { TVMObjectFree(module) }
}

/// Looks up the function `name` for compiled code of `module`. The handle is borrowed: the module keeps it (MOD-13).
///
/// # Safety
///
/// `module` is the value that a loader wrote into the library's context, `name` is a C string, `out` is a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMBackendGetFuncFromEnv(
    module: Handle,
    name: *const c_char,
    out: *mut Handle,
) -> c_int {
    guard(|| {
        // SAFETY: a loader wrote `module` into the library's context, by this contract.
        let module = unsafe { Module::from_context_or_handle(module) };
        // SAFETY: `name` is a C string, by this contract.
        let name = unsafe { text(name, "the name") }?;
        let module = module.ok_or_else(|| {
            Error::new(
                ErrorKind::Runtime,
                "this library has no module to look through",
            )
        })?;
        // SAFETY: only compiled code of a loaded library has `module`, and the contract of `module::load` covers its calls.
        let function = unsafe { module.environment(name, SPOKEN) }?;
        // MOD-13: the handle is borrowed and compiled code never frees it, so the module keeps the function alive.
        module.keep_alive(&function);
        // SAFETY: `out` is a place for the handle, by this contract.
        unsafe { write_result(out, function.as_object().as_ptr().cast()) }
    })
}
