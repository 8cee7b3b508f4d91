//! Values: conversion of views to owned values, strings, bytes, big integers, data types.

use super::enter;
use crate::object::big_int;
use crate::tensor::Dtype;
use crate::value::{
    Any, AnyView, ByteArray, Bytes, RawAny, Str, dtype_from_text, dtype_to_text, heap_str,
};

/// Converts a view to an owned value.
///
/// # Safety
/// `view` is a valid cell, `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIAnyViewToOwnedAny(
    view: *const RawAny,
    out: *mut RawAny,
) -> i32 {
    // SAFETY: `view` is a valid cell, by this contract.
    let view = unsafe { view.read() };
    // SAFETY: the target of a valid cell lives for the call, by this contract. To own a value does not fail.
    let owned: Any = unsafe { AnyView::from_raw(view) }.to_any();
    // SAFETY: `out` is writable, by this contract.
    unsafe { out.write(owned.into_raw()) };
    0
}

/// Returns the bytes of a byte array.
///
/// # Safety
/// The array and its bytes are readable for `'a`.
unsafe fn bytes<'a>(array: *const ByteArray) -> &'a [u8] {
    // SAFETY: `array` is a readable array, by this contract.
    let array = unsafe { array.read() };
    // SAFETY: the bytes of the array are readable, by this contract.
    unsafe { array.as_slice() }
}

/// Copies bytes into a string value.
///
/// # Safety
/// `input` and its bytes are readable, `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIStringFromByteArray(
    input: *const ByteArray,
    out: *mut RawAny,
) -> i32 {
    // SAFETY: `input` and its bytes are readable, by this contract. Copying a string does not fail.
    let text = Str::new(unsafe { bytes(input) });
    // SAFETY: `out` is writable, by this contract.
    unsafe { out.write(Any::from(text).into_raw()) }
    0
}

/// Copies bytes into a bytes value.
///
/// # Safety
/// As for [`TVMFFIStringFromByteArray`].
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIBytesFromByteArray(
    input: *const ByteArray,
    out: *mut RawAny,
) -> i32 {
    // SAFETY: `input` and its bytes are readable, by the contract of `TVMFFIStringFromByteArray`.
    let copy = Bytes::new(unsafe { bytes(input) });
    // SAFETY: `out` is writable, by that contract.
    unsafe { out.write(Any::from(copy).into_raw()) }
    0
}

/// Creates an integer of any size from little-endian two's complement bytes.
///
/// # Safety
/// As for [`TVMFFIStringFromByteArray`].
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIBigIntFromByteArray(
    input: *const ByteArray,
    out: *mut RawAny,
) -> i32 {
    enter(|| {
        // SAFETY: `out` is writable, by the contract of `TVMFFIStringFromByteArray`.
        unsafe { out.write(RawAny::NONE) };
        // SAFETY: `input` and its bytes are readable, by that contract.
        let value = big_int::from_bytes(unsafe { bytes(input) })?;
        // SAFETY: `out` is writable, by that contract.
        unsafe { out.write(value.into_raw()) };
        Ok(())
    })
}

/// Returns the words of an integer value, which stay in that value.
///
/// # Safety
/// `value` is a valid cell.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIBigIntGetContentByteArray(value: *const RawAny) -> ByteArray {
    // SAFETY: `value` is the address of a valid cell, by this contract.
    let value: &[AnyView<'_>] = unsafe { AnyView::slice(value, 1) };
    match value.first().and_then(big_int::words_of) {
        Some(words) => ByteArray {
            data: words.as_ptr().cast(),
            size: size_of_val(words),
        },
        None => ByteArray::EMPTY,
    }
}

/// Parses a data type.
///
/// # Safety
/// `text` and its bytes are readable, `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIDataTypeFromString(
    text: *const ByteArray,
    out: *mut Dtype,
) -> i32 {
    enter(|| {
        // VAL-17: no type name contains the replacement character for invalid UTF-8, so the parser rejects such bytes.
        // SAFETY: `text` and its bytes are readable, by this contract.
        let text = String::from_utf8_lossy(unsafe { bytes(text) });
        let dtype = dtype_from_text(&text)?;
        // SAFETY: `out` is writable, by this contract.
        unsafe { out.write(dtype) }
        Ok(())
    })
}

/// Formats a data type, always as a heap string.
///
/// # Safety
/// `dtype` is readable, `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIDataTypeToString(
    dtype: *const Dtype,
    out: *mut RawAny,
) -> i32 {
    enter(|| {
        // SAFETY: `dtype` is readable, by this contract.
        let text = dtype_to_text(unsafe { *dtype })?;
        // SAFETY: `out` is writable, by this contract.
        unsafe { out.write(heap_str(text.as_bytes()).into_raw()) }
        Ok(())
    })
}
