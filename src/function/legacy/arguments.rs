//! Arguments: conversion between values of 8 bytes with type codes, and cells.

use crate::function::{Error, ErrorKind, Result};
use crate::value::header::Header;
use crate::value::legacy::{TVMValue, argument_of, code, view_of};
use crate::value::{AnyPayload, AnyView, ByteArray, RawAny, bytes_bytes, index};
use std::ffi::{c_int, c_void};

use super::SPOKEN;

/// Zeroed values after the arguments: generated code of a C host does not check their number, and reads as many as it expects.
const SLACK: usize = 8;

/// Arguments for a callee of the old convention. They borrow from the views.
pub(crate) struct PackedArguments {
    /// The values, followed by some zeroed ones.
    pub(crate) values: Vec<TVMValue>,
    /// Their codes.
    pub(crate) codes: Vec<c_int>,
    /// The byte arrays that handles of bytes refer to; never read here.
    _arrays: Vec<ByteArray>,
}

impl PackedArguments {
    pub(crate) fn of(args: &[AnyView<'_>]) -> Result<PackedArguments> {
        let room = args.len() + SLACK;
        let mut values = vec![TVMValue::ZERO; room];
        let mut codes = vec![code::NULL; room];
        let mut arrays: Vec<ByteArray> = Vec::new();
        for (at, arg) in args.iter().enumerate() {
            (values[at], codes[at]) = match bytes_bytes(arg) {
                Some(bytes) => {
                    // The first allocation is large enough for all, so the addresses stay valid.
                    arrays.reserve_exact(args.len() - arrays.len());
                    let array: *mut ByteArray = arrays.as_mut_ptr().wrapping_add(arrays.len());
                    arrays.push(ByteArray {
                        data: bytes.as_ptr().cast(),
                        size: bytes.len(),
                    });
                    // VAL-19: bytes are passed as the address of a byte array.
                    let v_handle = array.cast();
                    (TVMValue { v_handle }, code::BYTES)
                }
                None => argument(arg)?,
            };
        }
        Ok(PackedArguments {
            values,
            codes,
            _arrays: arrays,
        })
    }
}

/// Converts an argument for a callee of the old convention. Borrows from `view`.
pub(crate) fn argument(view: &AnyView<'_>) -> Result<(TVMValue, c_int)> {
    let raw = view.as_raw();
    let handle = |code| {
        Ok((
            TVMValue {
                v_handle: raw.ptr(),
            },
            code,
        ))
    };
    // MOD-03: any object of this process is a handle for a callee of the old convention. These two have separate codes.
    match raw.type_index {
        index::FUNCTION => handle(code::FUNCTION),
        index::MODULE => handle(code::MODULE),
        index::SMALL_STR => {
            // The characters of a small string are in the cell itself, and end in NUL there.
            let text = std::ptr::from_ref(raw)
                .cast::<u8>()
                .wrapping_add(std::mem::offset_of!(RawAny, payload));
            Ok((TVMValue { v_str: text.cast() }, code::STR))
        }
        index::TENSOR | index::STR | index::BYTES => argument_of(view, SPOKEN).map_err(Error::from),
        other if other >= index::OBJECT_BEGIN => {
            // VAL-22: the callee borrows the handle, with the code of its type.
            if let Some((v_handle, code)) = crate::value::extension::borrowed(view) {
                return Ok((TVMValue { v_handle }, code));
            }
            handle(code::OBJECT)
        }
        _ => argument_of(view, SPOKEN).map_err(Error::from),
    }
}

/// Returns views of `count` arguments from two arrays, which a callee borrows until it returns (FUN-19).
///
/// # Safety
///
/// `values` and `codes` hold `count` entries, or `count` is 0. Each value matches its code and lives for `'a`.
pub(crate) unsafe fn views<'a>(
    values: *const TVMValue,
    codes: *const c_int,
    count: c_int,
) -> Result<Vec<AnyView<'a>>> {
    let count = usize::try_from(count)
        .map_err(|_| Error::new(ErrorKind::Value, "a negative number of arguments"))?;
    // Callers pass null arrays if there are no arguments, but a slice needs a non-null address.
    if count == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: `values` holds `count` entries, by this contract.
    let values = unsafe { std::slice::from_raw_parts(values, count) };
    // SAFETY: `codes` holds `count` entries, by this contract.
    let codes = unsafe { std::slice::from_raw_parts(codes, count) };
    // SAFETY: each value matches its code and lives for `'a`, by this contract.
    let each = values
        .iter()
        .zip(codes)
        .map(|(value, code)| unsafe { view(*value, *code) });
    each.collect()
}

/// Converts an argument from the old convention. Borrows its target.
///
/// # Safety
///
/// `value` matches `code`, and lives for `'a`. Handles are objects of this process.
pub(crate) unsafe fn view<'a>(value: TVMValue, code: c_int) -> Result<AnyView<'a>> {
    // SAFETY: any member may be read as an address, because all eight bytes are written.
    let pointer = || unsafe { value.v_handle };
    let object = |pointer: *mut c_void| match pointer.cast::<Header>() {
        object if !object.is_null() => {
            // SAFETY: handles are objects of this process, which live for `'a`.
            let type_index = unsafe { (*object).type_index };
            let raw = RawAny::of(type_index, AnyPayload { ptr: object.cast() });
            // SAFETY: the cell holds an object of this process with its own type index, which lives for `'a`.
            unsafe { AnyView::from_raw(raw) }
        }
        _ => AnyView::none(),
    };
    Ok(match code {
        code::OBJECT | code::MODULE | code::FUNCTION => object(pointer()),
        // The handle of a tensor is its description, which follows the header.
        code::NDARRAY if !pointer().is_null() => object(
            pointer()
                .cast::<u8>()
                .wrapping_sub(size_of::<Header>())
                .cast(),
        ),
        code::NDARRAY => AnyView::none(),
        code::RVALUE => {
            // SAFETY: the address of an object slot that the callee may empty; the view lives for `'a`.
            unsafe {
                AnyView::from_raw(RawAny::of(index::RVALUE_REF, AnyPayload { ptr: pointer() }))
            }
        }
        // SAFETY: `value` matches `code`, and lives for `'a`.
        _ => unsafe { view_of(value, code) }.map_err(Error::from)?,
    })
}
