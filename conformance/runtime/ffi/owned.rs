//! Values of the runtime that a driver holds, and cells that it passes.

use super::api::FfiApi;
use crate::conformance::runtime::RawHandle;
use crate::function::ErrorCell;
use crate::rule::Violation;
use crate::value::dlpack::DLTensor;
use crate::value::{AnyPayload, ByteArray, Header, RawAny, index};
use std::fmt;
use std::mem::size_of;
use std::ptr;

/// A view of text or bytes as an argument; `bytes` must stay where it is until the call is over.
pub(in crate::conformance) fn bytes_arg(bytes: &ByteArray) -> RawAny {
    let ptr = ptr::from_ref(bytes).cast_mut().cast();
    RawAny::of(index::BYTE_ARRAY, AnyPayload { ptr })
}

/// A text as an argument, ended by a zero byte.
pub(in crate::conformance) fn text_arg(text: &std::ffi::CStr) -> RawAny {
    let ptr = text.as_ptr().cast_mut().cast();
    RawAny::of(index::RAW_STR, AnyPayload { ptr })
}

/// A bool as an argument.
pub(in crate::conformance) fn bool_arg(truth: bool) -> RawAny {
    let int = i64::from(truth);
    RawAny::of(index::BOOL, AnyPayload { int })
}

/// An integer as an argument.
pub(in crate::conformance) fn int_arg(int: i64) -> RawAny {
    RawAny::of(index::INT, AnyPayload { int })
}

/// What a call raised.
#[derive(Clone, Debug)]
pub(in crate::conformance) struct Raised {
    /// The kind of the error; `Missing` where the runtime lacks the function that was to be called.
    pub(in crate::conformance) kind: String,
    /// Its message, as the runtime words it.
    pub(in crate::conformance) message: String,
    /// The rule that is broken, where the runtime shows it.
    pub(in crate::conformance) broken: Option<Violation>,
}

impl Raised {
    /// Nothing was raised: the interface lacks the function.
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

/// A value that we own.
pub(in crate::conformance) struct OwnedValue {
    /// Whose value it is: its end is counted there.
    pub(in crate::conformance) api: &'static FfiApi,
    /// The cell: tag and payload.
    pub(in crate::conformance) raw: RawAny,
}

impl OwnedValue {
    /// The address of the object, which is who it is.
    pub(in crate::conformance) fn pointer(&self) -> RawHandle {
        // SAFETY: every member of the union is eight plain bytes.
        unsafe { self.raw.payload.ptr }
    }

    /// Where the value in an object lies, behind its header: of what type it is, only the type of the object says.
    pub(in crate::conformance) fn cell<T>(&self) -> *const T {
        let header = size_of::<Header>();
        self.pointer().wrapping_byte_add(header).cast::<T>()
    }

    /// Text or bytes.
    pub(in crate::conformance) fn bytes(&self) -> Option<Vec<u8>> {
        read_bytes(&self.raw)
    }

    /// Its text, where it is a string of UTF-8.
    pub(in crate::conformance) fn text(&self) -> Option<String> {
        String::from_utf8(self.bytes()?).ok()
    }

    /// Kind, message and backtrace of an error.
    pub(in crate::conformance) fn error_texts(&self) -> Option<[String; 3]> {
        if self.raw.type_index != index::ERROR {
            return None;
        }
        // SAFETY: an error has its cell behind the header.
        let cell = unsafe { &*self.cell::<ErrorCell>() };
        // SAFETY: the backtrace of an error that came back from a call does not change.
        let backtrace = unsafe { *cell.backtrace.get() };
        Some([cell.kind, cell.message, backtrace].map(|bytes| {
            // SAFETY: the texts live as long as the error.
            String::from_utf8_lossy(unsafe { bytes.as_slice() }).into_owned()
        }))
    }

    /// The extents of a shape.
    pub(in crate::conformance) fn extents(&self) -> Vec<i64> {
        if self.raw.type_index != index::SHAPE {
            return Vec::new();
        }
        // SAFETY: a shape object has pointer and count behind the header, which live as long as it does.
        let (data, size) = unsafe { *self.cell::<(*const i64, usize)>() };
        match size {
            0 => Vec::new(),
            // SAFETY: so many extents lie at the address of a shape, and live as long as it does.
            _ => unsafe { std::slice::from_raw_parts(data, size) }.to_vec(),
        }
    }

    /// The description of a tensor.
    pub(in crate::conformance) fn dltensor(&self) -> Option<&DLTensor> {
        // SAFETY: a tensor object has its description behind the header.
        (self.raw.type_index == index::TENSOR).then(|| unsafe { &*self.cell::<DLTensor>() })
    }
}

impl Drop for OwnedValue {
    fn drop(&mut self) {
        // Anything below is in the cell itself, and has no reference to end.
        if self.raw.type_index >= index::OBJECT_BEGIN {
            // SAFETY: we own one reference.
            unsafe { self.api.drop_one(self.pointer()) };
        }
    }
}

/// Text or bytes of any tag, copied.
pub(in crate::conformance) fn read_bytes(raw: &RawAny) -> Option<Vec<u8>> {
    let array = match raw.type_index {
        index::SMALL_STR | index::SMALL_BYTES => {
            // SAFETY: the tag says that it holds bytes.
            let bytes = unsafe { raw.payload.bytes };
            // A short text is in the cell itself, its length beside the tag.
            return bytes.get(..raw.aux as usize).map(<[u8]>::to_vec);
        }
        // SAFETY: the tag says that it points to an array of bytes.
        index::BYTE_ARRAY => unsafe { raw.payload.ptr.cast::<ByteArray>() },
        // SAFETY: the tag says that it is an object with an array of bytes behind its header.
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
