//! Values of the runtime that a driver owns, and cells that it passes.

use super::api::FfiApi;
use crate::conformance::runtime::RawHandle;
use crate::function::ErrorCell;
use crate::rule::Violation;
use crate::value::dlpack::DLTensor;
use crate::value::{AnyPayload, ByteArray, Header, RawAny, index};
use std::fmt;
use std::mem::size_of;
use std::ptr;

/// Returns a view of text or bytes as an argument; `bytes` must not move until the call has ended.
pub(in crate::conformance) fn bytes_arg(bytes: &ByteArray) -> RawAny {
    let ptr = ptr::from_ref(bytes).cast_mut().cast();
    RawAny::of(index::BYTE_ARRAY, AnyPayload { ptr })
}

/// Returns a text as an argument, which ends with a NUL.
pub(in crate::conformance) fn text_arg(text: &std::ffi::CStr) -> RawAny {
    let ptr = text.as_ptr().cast_mut().cast();
    RawAny::of(index::RAW_STR, AnyPayload { ptr })
}

/// Returns a bool as an argument.
pub(in crate::conformance) fn bool_arg(truth: bool) -> RawAny {
    let int = i64::from(truth);
    RawAny::of(index::BOOL, AnyPayload { int })
}

/// Returns an integer as an argument.
pub(in crate::conformance) fn int_arg(int: i64) -> RawAny {
    RawAny::of(index::INT, AnyPayload { int })
}

/// The error of a call.
#[derive(Clone, Debug)]
pub(in crate::conformance) struct Raised {
    /// The kind of the error; `Missing` if the runtime lacks the called function.
    pub(in crate::conformance) kind: String,
    /// The runtime's message.
    pub(in crate::conformance) message: String,
    /// The broken rule, if the runtime states it.
    pub(in crate::conformance) broken: Option<Violation>,
}

impl Raised {
    /// Creates the error for a function that the interface lacks.
    pub(in crate::conformance) fn missing(what: &str) -> Raised {
        Raised {
            kind: "Missing".to_owned(),
            message: format!("this runtime has no {what}"),
            broken: None,
        }
    }
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)
    }
}

/// An owned value of a runtime.
pub(in crate::conformance) struct OwnedValue {
    /// The runtime of the value, where its reference is counted.
    pub(in crate::conformance) api: &'static FfiApi,
    /// The cell: tag and payload.
    pub(in crate::conformance) raw: RawAny,
}

impl OwnedValue {
    /// Returns the address of the object, which is its identity.
    pub(in crate::conformance) fn pointer(&self) -> RawHandle {
        // SAFETY: every member of the union is eight plain bytes.
        unsafe { self.raw.payload.ptr }
    }

    /// Returns the address of the content after the object's header. Only the type of the object tells the type of the content.
    pub(in crate::conformance) fn cell<T>(&self) -> *const T {
        let header = size_of::<Header>();
        self.pointer().wrapping_byte_add(header).cast::<T>()
    }

    /// Returns its text or bytes.
    pub(in crate::conformance) fn bytes(&self) -> Option<Vec<u8>> {
        read_bytes(&self.raw)
    }

    /// Returns its text, if it is a UTF-8 string.
    pub(in crate::conformance) fn text(&self) -> Option<String> {
        String::from_utf8(self.bytes()?).ok()
    }

    /// Returns the kind, message and backtrace of an error.
    pub(in crate::conformance) fn error_texts(&self) -> Option<[String; 3]> {
        if self.raw.type_index != index::ERROR {
            return None;
        }
        // SAFETY: an error has its cell after the header.
        let cell = unsafe { &*self.cell::<ErrorCell>() };
        // SAFETY: the backtrace of an error that came back from a call does not change.
        let backtrace = unsafe { *cell.backtrace.get() };
        Some([cell.kind, cell.message, backtrace].map(|bytes| {
            // SAFETY: the texts live as long as the error.
            String::from_utf8_lossy(unsafe { bytes.as_slice() }).into_owned()
        }))
    }

    /// Returns the extents of a shape.
    pub(in crate::conformance) fn extents(&self) -> Vec<i64> {
        if self.raw.type_index != index::SHAPE {
            return Vec::new();
        }
        // SAFETY: a shape object has pointer and count after the header, which live as long as it does.
        let (data, size) = unsafe { *self.cell::<(*const i64, usize)>() };
        match size {
            0 => Vec::new(),
            // SAFETY: a shape has that many extents at its address, and they live as long as it does.
            _ => unsafe { std::slice::from_raw_parts(data, size) }.to_vec(),
        }
    }

    /// Returns the description of a tensor.
    pub(in crate::conformance) fn dltensor(&self) -> Option<&DLTensor> {
        // SAFETY: a tensor object has its description after the header.
        (self.raw.type_index == index::TENSOR).then(|| unsafe { &*self.cell::<DLTensor>() })
    }
}

impl Drop for OwnedValue {
    fn drop(&mut self) {
        // A value with a lower type index is stored in the cell itself, and has no reference.
        if self.raw.type_index >= index::OBJECT_BEGIN {
            // SAFETY: we own one reference.
            unsafe { self.api.drop_one(self.pointer()) };
        }
    }
}

/// Copies text or bytes of any tag.
pub(in crate::conformance) fn read_bytes(raw: &RawAny) -> Option<Vec<u8>> {
    let array = match raw.type_index {
        index::SMALL_STR | index::SMALL_BYTES => {
            // SAFETY: the tag says that it holds bytes.
            let bytes = unsafe { raw.payload.bytes };
            // A short text is stored in the cell, with its length next to the tag.
            return bytes.get(..raw.aux as usize).map(<[u8]>::to_vec);
        }
        // SAFETY: the tag says that it points to an array of bytes.
        index::BYTE_ARRAY => unsafe { raw.payload.ptr.cast::<ByteArray>() },
        // SAFETY: the tag says that it is an object with an array of bytes after its header.
        index::STR | index::BYTES => unsafe { raw.payload.ptr }
            .wrapping_byte_add(size_of::<Header>())
            .cast::<ByteArray>(),
        _ => return None,
    };
    // SAFETY: the tag says that an array of bytes is there; it lives while the value does.
    let array = unsafe { &*array };
    // SAFETY: the bytes live while the value does.
    Some(unsafe { array.as_slice() }.to_vec())
}
