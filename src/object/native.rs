//! Hooks of types: either a function object, or a bare C function over cells.

use crate::function::{Error, Function, Result};
use crate::value::{Any, AnyView, RawAny, index};

type Hook1 = unsafe extern "C-unwind" fn(*const RawAny) -> RawAny;
type Hook2 = unsafe extern "C-unwind" fn(*const RawAny, *const RawAny) -> RawAny;

/// Calls a hook with one or two values. A bare C function gets addresses of cells and answers with a cell that holds the
/// result or an error object.
pub(crate) fn call(hook: AnyView<'_>, args: &[AnyView<'_>]) -> Result {
    if hook.type_index() == index::FUNCTION {
        return function(hook)?.call(args);
    }
    if hook.type_index() != index::OPAQUE {
        return Err(Error::new(
            "TypeError",
            "a type attribute is neither a function nor a C function",
        ));
    }
    let address = hook.as_raw().ptr();
    let answer = match args {
        [one] => {
            // SAFETY: the attribute promises this signature; the cell lives for the call.
            unsafe { std::mem::transmute::<*mut std::ffi::c_void, Hook1>(address)(one.as_raw()) }
        }
        [one, two] => {
            // SAFETY: as above.
            unsafe {
                std::mem::transmute::<*mut std::ffi::c_void, Hook2>(address)(
                    one.as_raw(),
                    two.as_raw(),
                )
            }
        }
        _ => {
            return Err(Error::new(
                "InternalError",
                "a hook takes one or two values",
            ));
        }
    };
    // SAFETY: the answer is owned by us.
    settle(unsafe { Any::from_raw(answer) })
}

/// An error object in an answer is the error of the call.
pub(crate) fn settle(answer: Any) -> Result {
    if answer.type_index() != index::ERROR {
        return Ok(answer);
    }
    match answer.into_object().map(Error::from_object) {
        Ok(Ok(error)) => Err(error),
        _ => Err(Error::new("InternalError", "an error that is not an error")),
    }
}

/// The function in a hook.
pub(crate) fn function(hook: AnyView<'_>) -> Result<Function> {
    Ok(crate::value::cast::<Function>(hook)?)
}

/// The integer or bool that a hook must answer.
pub(crate) fn expect_int(answer: &Any) -> Result<i64> {
    Ok(crate::value::cast::<i64>(answer.view())?)
}
