//! Calls to compiled functions of 0.2 to 0.20 (MOD-03), in the convention of `function::legacy`.

use super::Module;
use crate::function::legacy::{PackedArguments, failure, last_error, object, take_result};
use crate::function::{Error, ErrorKind, Result};
use crate::value::AnyView;
use crate::value::legacy::{TVMValue, code};
use std::ffi::{c_int, c_void};

/// A compiled function up to 0.20: values, codes, count, result, result code, resource. Up to 0.6 the last three parameters are missing.
pub(crate) type PackedC = unsafe extern "C-unwind" fn(
    args: *const TVMValue,
    codes: *const c_int,
    count: c_int,
    result: *mut TVMValue,
    result_code: *mut c_int,
    resource: *mut c_void,
) -> c_int;

/// Calls `function` with `args`.
///
/// # Safety
///
/// `function` must follow the convention.
pub(crate) unsafe fn call(function: PackedC, args: &[AnyView<'_>]) -> Result {
    let passed = PackedArguments::of(args)?;
    let mut result = TVMValue::ZERO;
    // MOD-03: code of 0.2 to 0.6 has no parameter for a result and writes none, which is None here.
    let mut result_code = code::NULL;
    // FUN-15, FUN-18: clears the text of an earlier failure, which must not be attributed to this call.
    last_error::take();
    let count = c_int::try_from(args.len())
        .map_err(|_| Error::new(ErrorKind::Value, "too many arguments"))?;
    // SAFETY: `function` follows the convention, by this contract; the arrays hold `count` arguments, which live through `args`.
    let returned = unsafe {
        function(
            passed.values.as_ptr(),
            passed.codes.as_ptr(),
            count,
            &raw mut result,
            &raw mut result_code,
            std::ptr::null_mut(),
        )
    };
    if returned != 0 {
        return Err(failure::take_call_error(returned));
    }
    // SAFETY: by the convention the callee wrote the result that its code names, and no longer owns it.
    unsafe { take_result(result, result_code) }
}

/// Returns the module of a handle of that convention.
///
/// # Safety
///
/// `handle` must be null or a live object.
pub(crate) unsafe fn module(handle: *mut c_void) -> Result<Module> {
    // SAFETY: `handle` is null or a live object, by this contract.
    let object = unsafe { object(handle) }?;
    Module::from_object(object)
        .map_err(|_| Error::new(ErrorKind::Type, "the handle is not a module"))
}
