//! Values: owning a view, strings, bytes, big integers, data types.

use super::enter;
use crate::object::big_int;
use crate::value::{
    Any, AnyView, ByteArray, Bytes, DLDataType, RawAny, Str, dtype_from_text, dtype_to_text,
    heap_str,
};

/// Makes an owned value of a view.
///
/// # Safety
/// `view` is a valid cell, `out` writable.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIAnyViewToOwnedAny(
    view: *const RawAny,
    out: *mut RawAny,
) -> i32 {
    // SAFETY: says the caller. Owning a value does not fail.
    unsafe {
        let owned: Any = AnyView::from_raw(*view).to_any();
        out.write(owned.into_raw());
    }
    0
}

/// Copies bytes into a string value.
///
/// # Safety
/// `input` is readable, `out` writable.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIStringFromByteArray(
    input: *const ByteArray,
    out: *mut RawAny,
) -> i32 {
    // SAFETY: says the caller. Copying a string does not fail.
    unsafe { out.write(Any::from(Str::new((*input).as_slice())).into_raw()) }
    0
}

/// Copies bytes into a bytes value.
///
/// # Safety
/// As [`TVMFFIStringFromByteArray`].
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIBytesFromByteArray(
    input: *const ByteArray,
    out: *mut RawAny,
) -> i32 {
    // SAFETY: says the caller.
    unsafe { out.write(Any::from(Bytes::new((*input).as_slice())).into_raw()) }
    0
}

/// Makes an integer of any size from little-endian two's complement bytes.
///
/// # Safety
/// As [`TVMFFIStringFromByteArray`].
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIBigIntFromByteArray(
    input: *const ByteArray,
    out: *mut RawAny,
) -> i32 {
    enter(|| {
        // SAFETY: says the caller.
        unsafe {
            out.write(RawAny::NONE);
            out.write(big_int::from_bytes((*input).as_slice())?.into_raw());
        }
        Ok(())
    })
}

/// The words of an integer value, which they live in.
///
/// # Safety
/// `value` is a valid cell.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIBigIntGetContentByteArray(value: *const RawAny) -> ByteArray {
    // SAFETY: a valid cell where it lies, by this contract.
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
/// `text` is readable, `out` writable.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIDataTypeFromString(
    text: *const ByteArray,
    out: *mut DLDataType,
) -> i32 {
    enter(|| {
        // SAFETY: says the caller.
        let text = String::from_utf8_lossy(unsafe { (*text).as_slice() });
        let dtype = dtype_from_text(&text)?;
        // SAFETY: says the caller.
        unsafe { out.write(dtype) }
        Ok(())
    })
}

/// Prints a data type, always into a heap string.
///
/// # Safety
/// `dtype` is readable, `out` writable.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIDataTypeToString(
    dtype: *const DLDataType,
    out: *mut RawAny,
) -> i32 {
    enter(|| {
        // SAFETY: says the caller.
        let text = dtype_to_text(unsafe { *dtype })?;
        // SAFETY: says the caller.
        unsafe { out.write(heap_str(text.as_bytes()).into_raw()) }
        Ok(())
    })
}
