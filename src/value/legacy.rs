//! The value model of 0.2 to 0.20: eight bytes and a separate type code.
//!
//! Only pure conversions are here. Values that need an object of the old ABI (a tensor handle, a module handle) stay pointers. The chapter
//! `module` and the C interface define their targets.

use super::dlpack::DLTensor;
use super::{AnyView, RawAny, VAL_19, c_str, index};
use crate::release::Release;
use crate::rule::{Kind, Violation};
use crate::tensor::{Device, Dtype};
use std::ffi::{CStr, c_char, c_void};

/// Eight bytes (`TVMValue`), interpreted according to their type code.
#[derive(Clone, Copy)]
#[repr(C)]
pub union TVMValue {
    /// Integers, and bools from 0.18 on.
    pub v_int64: i64,
    /// Floats.
    pub v_float64: f64,
    /// Every pointer.
    pub v_handle: *mut c_void,
    /// C strings.
    pub v_str: *const c_char,
    /// Data types; the upper four bytes are unused.
    pub v_type: Dtype,
    /// Devices.
    pub v_device: Device,
}

/// Prints no content, because only the separate type code shows which member is valid.
impl std::fmt::Debug for TVMValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TVMValue(..)")
    }
}

const _: () = assert!(size_of::<TVMValue>() == 8);

impl TVMValue {
    /// All bytes zero.
    pub const ZERO: TVMValue = TVMValue { v_int64: 0 };
}

/// The type codes (`TVMArgTypeCode`).
pub mod code {
    /// Signed integer.
    pub const INT: i32 = 0;
    /// Never used.
    pub const UINT: i32 = 1;
    /// Float.
    pub const FLOAT: i32 = 2;
    /// Opaque pointer.
    pub const HANDLE: i32 = 3;
    /// Null; the value bytes may have any content.
    pub const NULL: i32 = 4;
    /// Data type.
    pub const DATA_TYPE: i32 = 5;
    /// Device (context up to 0.7).
    pub const DEVICE: i32 = 6;
    /// Borrowed tensor description.
    pub const DLTENSOR: i32 = 7;
    /// Object (node up to 0.5).
    pub const OBJECT: i32 = 8;
    /// Module.
    pub const MODULE: i32 = 9;
    /// Function.
    pub const FUNCTION: i32 = 10;
    /// C string.
    pub const STR: i32 = 11;
    /// Byte array.
    pub const BYTES: i32 = 12;
    /// Owned tensor, as the address of its description (from 0.4).
    pub const NDARRAY: i32 = 13;
    /// Address of an object slot that the callee may empty (from 0.7).
    pub const RVALUE: i32 = 14;
    /// Bool (from 0.18). Before, the first extension type.
    pub const BOOL: i32 = 15;
}

/// Returns the name of a type code in messages of `release`.
#[cfg(feature = "suite")]
pub fn code_name(code: i32, release: Release) -> String {
    let early = release < Release::of(7);
    let name = match code {
        code::INT => "int",
        code::UINT => "uint",
        code::FLOAT => "float",
        code::HANDLE => "handle",
        code::NULL => "NULL",
        code::DATA_TYPE if early => "TVMType",
        code::DATA_TYPE => "DLDataType",
        code::DEVICE if release < Release::of(8) => "TVMContext",
        code::DEVICE => "DLDevice",
        code::DLTENSOR => "ArrayHandle",
        code::OBJECT if release < Release::of(6) => "NodeHandle",
        code::OBJECT if early => "ObjectCell",
        code::OBJECT => "Object",
        code::MODULE => "ModuleHandle",
        code::FUNCTION => "FunctionHandle",
        code::STR => "str",
        code::BYTES => "bytes",
        // VAL-19: a code is unknown before its first release: 13 up to 0.3, 14 up to 0.6, 15 up to 0.17.
        code::NDARRAY if release >= Release::of(4) => "NDArrayContainer",
        code::RVALUE if !early => "ObjectRValueRefArg",
        code::BOOL if release >= Release::of(18) => "bool",
        _ => return format!("unknown type_code={code}"),
    };
    name.to_owned()
}

/// Converts an argument of the old convention to a view.
///
/// # Safety
/// `value` matches `code`, and its target lives for `'a`.
pub(crate) unsafe fn view_of<'a>(value: TVMValue, code: i32) -> Result<AnyView<'a>, Violation> {
    // SAFETY: `value` matches `code`, so the corresponding member was written: an integer here.
    let int = || unsafe { value.v_int64 };
    // SAFETY: as for `int`, for a `code` of a pointer.
    let pointer = || unsafe { value.v_handle };
    Ok(match code {
        code::INT => AnyView::from(int()),
        // SAFETY: as for `int`.
        code::FLOAT => AnyView::from(unsafe { value.v_float64 }),
        // VAL-19: bools have this code from 0.18 on. Before, they are passed as ints, and stay ints.
        code::BOOL => AnyView::from(int() != 0),
        // SAFETY: a pointer that matches its code, by this contract.
        code::HANDLE => unsafe { AnyView::handle(pointer()) },
        // VAL-20: in 0.8 a null result leaves the value bytes unwritten, so they are ignored.
        code::NULL => AnyView::none(),
        // SAFETY: as for `int`.
        code::DATA_TYPE => AnyView::from(unsafe { value.v_type }),
        // SAFETY: as for `int`.
        code::DEVICE => AnyView::from(unsafe { value.v_device }),
        // SAFETY: null or a description that lives for `'a`, by this contract.
        code::DLTENSOR => match unsafe { pointer().cast::<DLTensor>().as_ref() } {
            // SAFETY: its memory is valid for `'a`, by this contract.
            Some(tensor) => unsafe { AnyView::dltensor(tensor) },
            // VAL-19: a null description has no equivalent here.
            None => AnyView::none(),
        },
        // SAFETY: a C string that lives for `'a`, by this contract.
        code::STR => AnyView::c_str(unsafe { CStr::from_ptr(pointer().cast()) }),
        code::BYTES => {
            let ptr = pointer();
            let cell = RawAny::of(index::BYTE_ARRAY, super::AnyPayload { ptr });
            // SAFETY: a byte array that lives for `'a`, by this contract.
            unsafe { AnyView::from_raw(cell) }
        }
        code::OBJECT | code::MODULE | code::FUNCTION | code::NDARRAY | code::RVALUE => {
            return Err(VAL_19.rejected(
                Kind::Unsupported,
                format!("type code {code} has no value outside its own object world"),
            ));
        }
        other => {
            // SAFETY: null or a handle of the extension's type that lives for `'a`, by this contract.
            if let Some(extension) = unsafe { super::extension::argument(other, pointer()) } {
                return Ok(extension);
            }
            return Err(
                VAL_19.rejected(Kind::UnknownKind, format!("no value has type code {other}"))
            );
        }
    })
}

/// Converts a value to an argument of the old convention, for a callee of `release`.
///
/// Strings must end in NUL. Heap strings and small strings of this crate do. The result borrows from `view`.
pub(crate) fn argument_of(
    view: &AnyView<'_>,
    release: Release,
) -> Result<(TVMValue, i32), Violation> {
    let raw = view.as_raw();
    Ok(match raw.type_index {
        index::NONE => (TVMValue::ZERO, code::NULL),
        index::INT => (TVMValue { v_int64: raw.int() }, code::INT),
        index::BOOL => {
            // VAL-19: the separate code exists from 0.18 on. Before, a bool is an int.
            let code = if release >= Release::of(18) {
                code::BOOL
            } else {
                code::INT
            };
            (TVMValue { v_int64: raw.int() }, code)
        }
        index::FLOAT => (
            TVMValue {
                v_float64: raw.float(),
            },
            code::FLOAT,
        ),
        index::OPAQUE => (
            TVMValue {
                v_handle: raw.ptr(),
            },
            code::HANDLE,
        ),
        // Copied as a whole word: `v_type` has only four of the eight bytes, and the others would be uninitialized (VAL-02 requires zeros).
        index::DATA_TYPE => (TVMValue { v_int64: raw.int() }, code::DATA_TYPE),
        index::DEVICE => (TVMValue { v_int64: raw.int() }, code::DEVICE),
        index::DLTENSOR_PTR => (
            TVMValue {
                v_handle: raw.ptr(),
            },
            code::DLTENSOR,
        ),
        // A tensor object is its header followed by the description, which the old convention borrows.
        index::TENSOR => (
            TVMValue {
                v_handle: raw
                    .ptr()
                    .cast::<u8>()
                    .wrapping_add(size_of::<super::Header>())
                    .cast(),
            },
            code::DLTENSOR,
        ),
        index::RAW_STR | index::STR | index::SMALL_STR => {
            // The convention has no length, so for the callee a text ends at its first NUL.
            let v_str = c_str(view).unwrap_or(c"".as_ptr());
            (TVMValue { v_str }, code::STR)
        }
        // The part of heap bytes after their header is a byte array.
        index::BYTE_ARRAY | index::BYTES => {
            let v_handle = match raw.type_index {
                index::BYTE_ARRAY => raw.ptr(),
                _ => raw.ptr().wrapping_byte_add(size_of::<super::Header>()),
            };
            (TVMValue { v_handle }, code::BYTES)
        }
        other => {
            // VAL-22: the callee borrows the handle, with the code of its type.
            if let Some((v_handle, code)) = super::extension::borrowed(view) {
                return Ok((TVMValue { v_handle }, code));
            }
            return Err(VAL_19.rejected(
                Kind::Unsupported,
                format!(
                    "a value of type `{}` has no type code before 0.21",
                    super::types::key_of(other)
                ),
            ));
        }
    })
}
