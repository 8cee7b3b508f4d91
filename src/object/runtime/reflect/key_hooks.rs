//! Hooks of types for the keys of containers: either a function object or a bare C function over cells.
//!
//! A bare function returns its result in one of two forms (OBJ-38). Both use the registers of a 16-byte result, so it is called with that
//! return type. A number of up to 8 bytes is in the first register, and a cell in both. That holds for the C conventions of x86-64 System V
//! and of AArch64. On other platforms a cell is returned through memory, and only that form is supported.

use super::column::ANY_EQUAL;
use crate::function::{Error, ErrorKind, Function, Result};
use crate::value::{Any, AnyView, RawAny, index};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

/// The type with which a hash hook is called: the 16 bytes of a cell cover the results of both forms.
type HashHook = unsafe extern "C-unwind" fn(*const RawAny) -> RawAny;
/// The type with which an equality hook is called, like [`HashHook`].
type EqualHook = unsafe extern "C-unwind" fn(*const RawAny, *const RawAny) -> RawAny;

/// Returns the hash of `value` by its type's `__any_hash__`, called in the form that the hook uses (OBJ-38).
pub(crate) fn hash(hook: AnyView<'_>, value: AnyView<'_>) -> Result<u64> {
    let Some(bare) = c_hook_address(hook)? else {
        return hash_in(&function(hook)?.call_packed(&[value])?);
    };
    let cell: *const RawAny = value.as_raw();
    // SAFETY: the type registered the address as its hash, which takes the address of a cell in both forms (OBJ-38).
    let hook: HashHook = unsafe { std::mem::transmute::<*mut c_void, HashHook>(bare) };
    // SAFETY: a hook of either form takes the address of a cell (OBJ-38), and this one lives for the call.
    let answer = unsafe { hook(cell) };
    // The first register: a whole hash, or the tag of a cell with its zero padding.
    let word = u64::from(answer.type_index.cast_unsigned()) | u64::from(answer.aux) << 32;
    // OBJ-38: 1 and 67 can be hashes of the older form or first words of cells. No other word is a cell.
    let is_tag = word == index::INT as u64 || word == index::ERROR as u64;
    if !is_tag || answers_bare(value) {
        return Ok(word);
    }
    // SAFETY: a hook of this form returns an owned cell.
    let answer = raise_error_object(unsafe { Any::from_raw(answer) })?;
    hash_in(&answer)
}

/// Compares two values with their type's `__any_equal__`, called in the form that the hook uses (OBJ-38).
pub(crate) fn equal(hook: AnyView<'_>, left: AnyView<'_>, right: AnyView<'_>) -> Result<bool> {
    let Some(bare) = c_hook_address(hook)? else {
        return equality_in(&function(hook)?.call_packed(&[left, right])?);
    };
    // SAFETY: the type registered the address as its equality.
    let answer = unsafe { ask_equal(bare, left, right) };
    if let Some(equal) = bare_bool(&answer) {
        return Ok(equal);
    }
    // SAFETY: a hook of this form returns an owned cell.
    let answer = raise_error_object(unsafe { Any::from_raw(answer) })?;
    equality_in(&answer)
}

/// Returns whether the hooks of this value's type come from tvm-ffi 0.1.9 to 0.1.14. The equality hook reveals it: the lowest byte of the
/// register is 0 or 1 for a C++ bool, but for a cell it is the tag of a bool or of an error. Called only when a hash looks like the tag of
/// a cell. For hooks from 0.1.15 on, this stops once the answer is known for the type.
fn answers_bare(value: AnyView<'_>) -> bool {
    // Only the answer "cells" is cached. The hooks of a type do not change, so the answer is needed once per type (`CELLS`).
    let known = usize::try_from(value.type_index()).ok();
    let known = known.and_then(|index| Some((CELLS.get(index / 64)?, 1u64 << (index % 64))));
    if known.is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0) {
        return false;
    }
    let equality = ANY_EQUAL.value(value.type_index());
    let Some(Ok(Some(equality))) = equality.map(c_hook_address) else {
        // An equality that is a function object can come from either version. The form of current headers is assumed.
        return false;
    };
    // SAFETY: the type registered the address as its equality.
    let answer = unsafe { ask_equal(equality, value, value) };
    if bare_bool(&answer).is_some() {
        return true;
    }
    // SAFETY: the answer is an owned cell, possibly with an error in it.
    drop(unsafe { Any::from_raw(answer) });
    if let Some((word, bit)) = known {
        word.fetch_or(bit, Ordering::Relaxed);
    }
    false
}

/// Types whose hooks are known to return cells, one bit for each index below 4096. For larger indices the hook is called each time.
static CELLS: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];

/// Returns the result of an equality of tvm-ffi 0.1.9 to 0.1.14; `None` for a cell.
fn bare_bool(answer: &RawAny) -> Option<bool> {
    // If a register returns a C++ bool, only the lowest byte is defined. The tags of a bool and an error are 2 and 67.
    let low = answer.type_index & 0xff;
    matches!(low, 0 | 1).then_some(low != 0)
}

/// Calls a bare equality and returns its two registers unchanged: a bool in the lowest byte, or a cell.
///
/// # Safety
///
/// `hook` is the address that a type registered as its `__any_equal__`.
unsafe fn ask_equal(hook: *mut c_void, left: AnyView<'_>, right: AnyView<'_>) -> RawAny {
    let cells: [*const RawAny; 2] = [left.as_raw(), right.as_raw()];
    // SAFETY: the address is a type's equality, by this contract, and such a hook takes two cells in both forms (OBJ-38).
    let hook = unsafe { std::mem::transmute::<*mut c_void, EqualHook>(hook) };
    // SAFETY: a hook of either form takes the addresses of two cells (OBJ-38), and these live for the call.
    unsafe { hook(cells[0], cells[1]) }
}

/// Returns the address of a hook that is a C function; `None` for a function object.
fn c_hook_address(hook: AnyView<'_>) -> Result<Option<*mut c_void>> {
    match hook.type_index() {
        index::FUNCTION => Ok(None),
        index::OPAQUE if !hook.as_raw().ptr().is_null() => Ok(Some(hook.as_raw().ptr())),
        other => Err(wrong("a hook of keys is not a function", other)),
    }
}

/// Turns an error object into the error of the call. Bare functions of the newer form have no other way to fail (OBJ-38).
pub(crate) fn raise_error_object(answer: Any) -> Result {
    if answer.type_index() != index::ERROR {
        return Ok(answer);
    }
    match answer.into_object().map(Error::from_object) {
        Ok(Ok(error)) => Err(error),
        _ => Err(Error::new(
            ErrorKind::Internal,
            "an error that is not an error",
        )),
    }
}

/// Returns the function in a hook.
pub(crate) fn function(hook: AnyView<'_>) -> Result<Function> {
    Ok(crate::value::cast::<Function>(hook)?)
}

/// Returns the hash that a hook returned, without any conversion (OBJ-38). A bool is rejected.
fn hash_in(answer: &Any) -> Result<u64> {
    match answer.type_index() {
        index::INT => Ok(answer.as_raw().int() as u64),
        other => Err(wrong("the hash of a key is not an int", other)),
    }
}

/// Returns the result of an equality, without any conversion (OBJ-38). An int is rejected.
fn equality_in(answer: &Any) -> Result<bool> {
    match answer.type_index() {
        index::BOOL => Ok(answer.as_raw().int() != 0),
        other => Err(wrong("the equality of two keys is not a bool", other)),
    }
}

/// Returns the error for a key hook, or a result of one, that OBJ-38 does not allow. It is an InternalError, because upstream checks
/// both by assertions.
#[cold]
fn wrong(what: &str, type_index: i32) -> Error {
    let key = crate::value::types::key_of(type_index);
    Error::new(ErrorKind::Internal, format!("{what} but a `{key}`"))
}
