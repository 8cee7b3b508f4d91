//! Conversion of values of 0.20 to those of 0.21, and back.

use super::{drop_object, fail, functions};
use crate::conformance::runtime::RawHandle;
use crate::value::legacy::{TVMValue, code};
use crate::value::{AnyPayload, ByteArray, RawAny, index};
use std::cell::{Cell, RefCell};
use std::ffi::{CString, c_int};
use std::ptr;

/// The size of an object's header.
pub(super) const HEADER: usize = 16;

/// The type index of a tensor, which 0.22 assigned to another type.
const TENSOR_OBJECT: i32 = 72;

thread_local! {
    /// The text of the last result, which remains until the next.
    static TEXT: RefCell<CString> = RefCell::default();
    /// The bytes of the last result.
    static BYTES: RefCell<(Vec<u8>, Box<Cell<ByteArray>>)> =
        RefCell::new((Vec::new(), Box::new(Cell::new(ByteArray::of(&[])))));
}

/// Converts a value to a view of 0.21.
///
/// # Safety
///
/// The value has the type of its code.
pub(super) unsafe fn view((value, type_code): (TVMValue, c_int)) -> RawAny {
    // SAFETY: any eight bytes are an integer.
    let int = unsafe { value.v_int64 };
    let of = |type_index: i32| RawAny::of(type_index, AnyPayload { int });
    let ptr = int as usize as RawHandle;
    match type_code {
        code::INT => of(index::INT),
        code::FLOAT => of(index::FLOAT),
        code::HANDLE if int != 0 => of(index::OPAQUE),
        code::DATA_TYPE => of(index::DATA_TYPE),
        code::DEVICE => of(index::DEVICE),
        code::DLTENSOR => of(index::DLTENSOR_PTR),
        code::BOOL => of(index::BOOL),
        code::STR => of(index::RAW_STR),
        code::BYTES => of(index::BYTE_ARRAY),
        code::MODULE => of(index::MODULE),
        code::FUNCTION => of(index::FUNCTION),
        code::NDARRAY => {
            let ptr = ptr.wrapping_byte_sub(HEADER);
            RawAny::of(TENSOR_OBJECT, AnyPayload { ptr })
        }
        code::OBJECT => {
            // SAFETY: an object of 0.21 begins with its type index, and is alive by this function's contract.
            let type_index = unsafe { ptr.cast::<i32>().read() };
            of(type_index)
        }
        _ => RawAny::NONE,
    }
}

/// Returns the content of a string or bytes object.
///
/// # Safety
///
/// `object` is a live string or bytes object.
pub(super) unsafe fn content<'a>(object: RawHandle) -> &'a [u8] {
    let content: *const ByteArray = object.wrapping_byte_add(HEADER).cast();
    // SAFETY: such an object has its bytes after its header, by this function's contract.
    let content = unsafe { &*content };
    // SAFETY: the bytes live as long as the object.
    unsafe { content.as_slice() }
}

/// Converts a value of 0.21 to the form that 0.20 passes to a callback.
///
/// # Safety
///
/// The value lives as long as the result is used.
pub(super) unsafe fn to_legacy_argument(any: &RawAny) -> (TVMValue, c_int) {
    let v_int64 = any.int();
    let type_code = match any.type_index() {
        index::NONE => code::NULL,
        index::INT => code::INT,
        index::BOOL => code::BOOL,
        index::FLOAT => code::FLOAT,
        index::OPAQUE => code::HANDLE,
        index::DATA_TYPE => code::DATA_TYPE,
        index::DEVICE => code::DEVICE,
        index::DLTENSOR_PTR => code::DLTENSOR,
        index::RAW_STR => code::STR,
        index::BYTE_ARRAY => code::BYTES,
        index::FUNCTION => code::FUNCTION,
        index::MODULE => code::MODULE,
        index::STR => {
            // SAFETY: a living string, by this function's contract.
            let text = unsafe { content(any.ptr()) };
            let v_str = text.as_ptr().cast();
            return (TVMValue { v_str }, code::STR);
        }
        index::BYTES => {
            let v_handle = any.ptr().wrapping_byte_add(HEADER);
            return (TVMValue { v_handle }, code::BYTES);
        }
        TENSOR_OBJECT => {
            let v_handle = any.ptr().wrapping_byte_add(HEADER);
            return (TVMValue { v_handle }, code::NDARRAY);
        }
        _ => code::OBJECT,
    };
    (TVMValue { v_int64 }, type_code)
}

/// Converts an owned result of 0.21 to a result of 0.20. Texts and bytes remain valid until the next one.
pub(super) fn to_legacy_result(any: RawAny) -> Result<(TVMValue, c_int), c_int> {
    Ok(match any.type_index() {
        index::STR => {
            // SAFETY: a result is alive.
            let text = unsafe { content(any.ptr()) }.to_vec();
            drop_object(any.ptr());
            returned_text(text)
        }
        index::DATA_TYPE => {
            let mut text = ptr::null_mut();
            let dtype = any.dtype();
            // SAFETY: a data type, and an out pointer for a string.
            let code = unsafe { (functions().dtype_text)(&raw const dtype, &raw mut text) };
            if code != 0 {
                return Err(fail());
            }
            return to_legacy_result(RawAny::of(index::STR, AnyPayload { ptr: text }));
        }
        index::BYTES => {
            // SAFETY: a result is alive.
            let bytes = unsafe { content(any.ptr()) }.to_vec();
            drop_object(any.ptr());
            BYTES.with_borrow_mut(|(held, array)| {
                *held = bytes;
                array.set(ByteArray::of(held));
                let v_handle = array.as_ptr().cast();
                (TVMValue { v_handle }, code::BYTES)
            })
        }
        // SAFETY: a result is alive until its owner frees it.
        _ => unsafe { to_legacy_argument(&any) },
    })
}

fn returned_text(text: Vec<u8>) -> (TVMValue, c_int) {
    TEXT.with_borrow_mut(|held| {
        *held = without_nul(text);
        let v_str = held.as_ptr();
        (
            TVMValue {
                v_str: v_str.cast(),
            },
            code::STR,
        )
    })
}

/// Returns a C string of the bytes without their NULs.
pub(super) fn without_nul(mut text: Vec<u8>) -> CString {
    text.retain(|byte| *byte != 0);
    CString::new(text).unwrap_or_default()
}
