//! Arguments: values of 8 bytes and their type codes, from and to the cells of this crate.

use crate::function::{Error, ErrorKind, Result};
use crate::value::header::Header;
use crate::value::legacy::{TVMValue, argument_of, code, view_of};
use crate::value::{AnyPayload, AnyView, ByteArray, RawAny, bytes_bytes, index};
use std::ffi::{c_int, c_void};

use super::SPOKEN;

/// Zeroed values behind the arguments: code of a C host does not count them, and reads the ones it expects.
const SLACK: usize = 8;

/// Arguments as a callee of the old convention expects them. They borrow from what they were made of.
pub(crate) struct PackedArguments {
    /// The values, with some zeroed ones behind them.
    pub(crate) values: Vec<TVMValue>,
    /// Their codes.
    pub(crate) codes: Vec<c_int>,
    /// What the handles of bytes point to; never read here.
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
                    // Never grows beyond what the first one reserves, so that addresses in it stay.
                    arrays.reserve_exact(args.len() - arrays.len());
                    let array: *mut ByteArray = arrays.as_mut_ptr().wrapping_add(arrays.len());
                    arrays.push(ByteArray {
                        data: bytes.as_ptr().cast(),
                        size: bytes.len(),
                    });
                    // VAL-19: bytes are passed as the address of a length and a pointer.
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

/// An argument for a callee of the old convention; borrows from `view`.
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
    // MOD-03: any object of this process is a handle to a callee of the old convention; these two have codes of their own.
    match raw.type_index {
        index::FUNCTION => handle(code::FUNCTION),
        index::MODULE => handle(code::MODULE),
        index::SMALL_STR => {
            // The characters of a small string lie in the cell itself and end in NUL there.
            let text = std::ptr::from_ref(raw)
                .cast::<u8>()
                .wrapping_add(std::mem::offset_of!(RawAny, payload));
            Ok((TVMValue { v_str: text.cast() }, code::STR))
        }
        index::TENSOR | index::STR | index::BYTES => argument_of(view, SPOKEN).map_err(Error::from),
        other if other >= index::OBJECT_BEGIN => {
            // VAL-22: the callee borrows the handle, under the code of its type.
            if let Some((v_handle, code)) = crate::value::extension::borrowed(view) {
                return Ok((TVMValue { v_handle }, code));
            }
            handle(code::OBJECT)
        }
        _ => argument_of(view, SPOKEN).map_err(Error::from),
    }
}

/// The views of `count` arguments that arrived in two arrays, which a callee borrows until it returns (FUN-19).
///
/// # Safety
///
/// `values` and `codes` must hold `count` of them, or `count` be 0; each value is what its code says, and lives for `'a`.
pub(crate) unsafe fn views<'a>(
    values: *const TVMValue,
    codes: *const c_int,
    count: c_int,
) -> Result<Vec<AnyView<'a>>> {
    let count = usize::try_from(count)
        .map_err(|_| Error::new(ErrorKind::Value, "a negative number of arguments"))?;
    // Callers pass null arrays where they have no argument, which no slice may begin at.
    if count == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: `values` holds `count` of them, by this contract.
    let values = unsafe { std::slice::from_raw_parts(values, count) };
    // SAFETY: `codes` holds `count` of them, by this contract.
    let codes = unsafe { std::slice::from_raw_parts(codes, count) };
    // SAFETY: each value is what its code says and lives for `'a`, by this contract.
    let each = values
        .iter()
        .zip(codes)
        .map(|(value, code)| unsafe { view(*value, *code) });
    each.collect()
}

/// An argument that arrived in the old convention; borrows what it points to.
///
/// # Safety
///
/// `value` is what `code` says, and lives for `'a`; handles are objects of this process.
pub(crate) unsafe fn view<'a>(value: TVMValue, code: c_int) -> Result<AnyView<'a>> {
    // SAFETY: any member may be read as an address: all eight bytes are written.
    let pointer = || unsafe { value.v_handle };
    let object = |pointer: *mut c_void| match pointer.cast::<Header>() {
        object if !object.is_null() => {
            // SAFETY: handles are objects of this process, which live for `'a`.
            let type_index = unsafe { (*object).type_index };
            let raw = RawAny::of(type_index, AnyPayload { ptr: object.cast() });
            // SAFETY: the cell holds an object of this process, which lives for `'a`, under its own type.
            unsafe { AnyView::from_raw(raw) }
        }
        _ => AnyView::none(),
    };
    Ok(match code {
        code::OBJECT | code::MODULE | code::FUNCTION => object(pointer()),
        // The handle of a tensor is its description, which comes behind the header.
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
        // SAFETY: `value` is what `code` says, and lives for `'a`.
        _ => unsafe { view_of(value, code) }.map_err(Error::from)?,
    })
}
