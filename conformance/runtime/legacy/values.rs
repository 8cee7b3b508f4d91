//! Values of the C interface of 0.7 to 0.20 that a driver owns or passes.

use super::LegacyApi;
use crate::conformance::reply::Reply;
use crate::conformance::runtime::RawHandle;
use crate::conformance::runtime::ffi::unsupported;
use crate::value::legacy::{TVMValue, code};
use crate::value::{ByteArray, DLTensor};
use std::ffi::{CStr, c_int};
use std::ptr;

/// The result of a call, or a handle. It is owned, and freed when it is dropped.
pub(in crate::conformance) struct LegacyValue {
    /// The eight bytes.
    pub(in crate::conformance) value: TVMValue,
    /// The type code of the bytes.
    pub(in crate::conformance) code: c_int,
    /// A copy of the text or the bytes, which the runtime keeps only until the next call (FUN-16).
    pub(super) borrowed: Vec<u8>,
    /// The runtime of the handle, which frees it.
    pub(super) api: &'static LegacyApi,
}

impl LegacyValue {
    /// Returns the handle, for codes of handles.
    pub(in crate::conformance) fn handle(&self) -> RawHandle {
        // SAFETY: the eight bytes are the handle.
        unsafe { self.value.v_handle }
    }

    /// Returns the eight bytes as an integer.
    pub(in crate::conformance) fn int(&self) -> i64 {
        // SAFETY: any eight bytes are an integer.
        unsafe { self.value.v_int64 }
    }

    /// Returns the value as an argument, valid as long as this value.
    pub(in crate::conformance) fn arg(&self) -> LegacyArg {
        (self.value, self.code)
    }

    /// Returns its text or bytes.
    pub(in crate::conformance) fn bytes(&self) -> Option<&[u8]> {
        matches!(self.code, code::STR | code::BYTES).then_some(&*self.borrowed)
    }

    /// Returns the text of a result; unsupported if it is not a text.
    pub(in crate::conformance) fn text(&self) -> Result<String, Reply> {
        let bytes = self.bytes().ok_or_else(|| {
            unsupported(format!(
                "a result has the type code {}, not text",
                self.code
            ))
        })?;
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }

    /// Returns the description of a tensor, if it is one.
    pub(in crate::conformance) fn tensor(&self) -> Option<&DLTensor> {
        let tensor = matches!(self.code, code::NDARRAY | code::DLTENSOR).then(|| self.handle())?;
        // SAFETY: the code says that it is the description of a tensor, which lives while this does.
        unsafe { tensor.cast::<DLTensor>().as_ref() }
    }
}

impl Drop for LegacyValue {
    fn drop(&mut self) {
        let free = match self.code {
            code::FUNCTION => self.api.functions.free,
            code::MODULE => self.api.free_module,
            code::OBJECT => self.api.free_object,
            code::NDARRAY => self.api.free_array,
            // Any other code is the value itself, or belongs to the thread (FUN-16).
            _ => return,
        };
        // SAFETY: we own one reference.
        unsafe { free(self.handle()) };
    }
}

/// An argument, borrowed.
pub(in crate::conformance) type LegacyArg = (TVMValue, c_int);

/// Returns an integer as an argument.
pub(in crate::conformance) fn int_arg(v_int64: i64) -> LegacyArg {
    (TVMValue { v_int64 }, code::INT)
}

/// Returns None as an argument.
pub(in crate::conformance) fn null_arg() -> LegacyArg {
    (TVMValue { v_int64: 0 }, code::NULL)
}

/// Returns a text as an argument, which ends with a NUL.
pub(in crate::conformance) fn text_arg(text: &CStr) -> LegacyArg {
    let v_str = text.as_ptr();
    (TVMValue { v_str }, code::STR)
}

/// Returns bytes as an argument; they and `bytes` must not move until the call has ended.
pub(in crate::conformance) fn bytes_arg(bytes: &ByteArray) -> LegacyArg {
    let v_handle = ptr::from_ref(bytes).cast_mut().cast();
    (TVMValue { v_handle }, code::BYTES)
}

/// Returns the bytes of a text or a byte array.
///
/// # Safety
///
/// The value has the type of its code.
pub(in crate::conformance) unsafe fn bytes_of(
    value: TVMValue,
    type_code: c_int,
) -> Option<Vec<u8>> {
    match type_code {
        code::STR => {
            // SAFETY: the code says that it is a NUL-terminated string, by this function's contract.
            let text = unsafe { value.v_str };
            // SAFETY: the runtime returns a NUL-terminated string.
            Some(unsafe { CStr::from_ptr(text.cast()) }.to_bytes().to_vec())
        }
        code::BYTES => {
            // SAFETY: the code says that it is the address of a byte array, by this function's contract.
            let array = unsafe { value.v_handle }.cast::<ByteArray>();
            // SAFETY: the array lives as long as the value.
            let array = unsafe { &*array };
            // SAFETY: its bytes live as long as the value.
            Some(unsafe { array.as_slice() }.to_vec())
        }
        _ => None,
    }
}
