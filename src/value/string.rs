//! Strings and bytes: up to 7 bytes are inside the cell, longer ones in an object followed by the characters.
//!
//! | heap bytes | field                    | rule   |
//! |------------|--------------------------|--------|
//! | 0..24      | header, type 65 or 66    | VAL-04 |
//! | 24..32     | address of the data      | VAL-06 |
//! | 32..40     | length in bytes          | VAL-06 |
//! | 40..       | data, then one NUL       | VAL-06 |

use super::heap::{allocate, delete_plain};
use super::{Any, AnyPayload, AnyView, Header, RawAny, index};
use std::ffi::c_char;

/// Maximum length of a string inside the cell.
pub(crate) const SMALL_MAX: usize = 7;

/// Borrowed bytes in the form of the C ABI (`TVMFFIByteArray`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ByteArray {
    /// First byte; may be null if `size` is 0.
    pub(crate) data: *const u8,
    /// Number of bytes.
    pub(crate) size: usize,
}

// SAFETY: plain data; reading through it is unsafe.
unsafe impl Send for ByteArray {}
// SAFETY: plain data; reading through it is unsafe.
unsafe impl Sync for ByteArray {}

impl ByteArray {
    /// Describes `bytes` without their lifetime.
    pub const fn of(bytes: &[u8]) -> ByteArray {
        ByteArray {
            data: bytes.as_ptr(),
            size: bytes.len(),
        }
    }

    /// No bytes.
    pub const EMPTY: ByteArray = ByteArray {
        data: c"".as_ptr().cast(),
        size: 0,
    };

    /// Returns the bytes. They need no NUL at the end.
    ///
    /// # Safety
    /// `data` points to `size` bytes that live for `'a`, or `size` is 0.
    pub const unsafe fn as_slice<'a>(&self) -> &'a [u8] {
        // C passes null for no bytes, but a slice needs a non-null address.
        if self.data.is_null() {
            return &[];
        }
        // SAFETY: `size` bytes that live for `'a`, by this contract.
        unsafe { std::slice::from_raw_parts(self.data, self.size) }
    }
}

/// The fixed part of a heap string or heap bytes.
#[repr(C)]
pub(crate) struct BytesObj {
    header: Header,
    /// The data, usually directly after the object.
    pub(crate) cell: ByteArray,
}

const _: () = assert!(size_of::<BytesObj>() == 40);
const _: () = assert!(std::mem::offset_of!(BytesObj, cell) == 24);

/// Creates an owned cell: small if the bytes fit, otherwise on the heap.
fn make(bytes: &[u8], small: i32, heap: i32) -> Any {
    if bytes.len() > SMALL_MAX {
        return make_heap(bytes, heap);
    }
    // VAL-02: the bytes after the characters are zero, which also ends the text for C (VAL-03).
    let mut payload = [0u8; 8];
    payload[..bytes.len()].copy_from_slice(bytes);
    let raw = RawAny {
        type_index: small,
        aux: bytes.len() as u32,
        payload: AnyPayload { bytes: payload },
    };
    // SAFETY: a small string has no references.
    unsafe { Any::from_raw(raw) }
}

/// Creates a heap string of any length.
pub(crate) fn heap_str(text: &[u8]) -> Any {
    make_heap(text, index::STR)
}

/// Creates a heap string (`type_index` is [`index::STR`]) or bytes ([`index::BYTES`]) of any length.
fn make_heap(bytes: &[u8], type_index: i32) -> Any {
    let head = size_of::<BytesObj>();
    let object = allocate(head + bytes.len() + 1);
    // SAFETY: the block holds the head and then the bytes.
    let data = unsafe { object.add(head) };
    // SAFETY: there is room for the bytes, in a new block.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), data, bytes.len()) };
    // SAFETY: the block holds one byte more.
    let end = unsafe { data.add(bytes.len()) };
    // VAL-06: a final NUL that does not count.
    // SAFETY: as for its address.
    unsafe { end.write(0) };
    let size = bytes.len();
    let own = BytesObj {
        header: Header::new(type_index, delete_plain),
        cell: ByteArray { data, size },
    };
    // SAFETY: the block holds the head.
    unsafe { object.cast::<BytesObj>().write(own) };
    let ptr = object.cast();
    // SAFETY: a complete object, whose only reference moves into the cell; `delete_plain` frees the memory from `allocate`.
    unsafe { Any::from_raw(RawAny::of(type_index, AnyPayload { ptr })) }
}

/// Returns the bytes of a cell that is a string (with `small` and `heap` for strings) or bytes.
fn bytes_of(raw: &RawAny, small: i32, heap: i32) -> Option<&[u8]> {
    if raw.type_index == small {
        // A cell that another library wrote may claim more than fits (VAL-03).
        let length = (raw.aux as usize).min(SMALL_MAX);
        // SAFETY: the payload of a small string is its characters, inside the cell that `raw` borrows.
        return Some(unsafe { &raw.payload.bytes[..length] });
    }
    if raw.type_index == heap {
        // SAFETY: a heap string starts with `BytesObj` and lives while the cell does.
        let object = unsafe { &*raw.ptr().cast::<BytesObj>() };
        // SAFETY: its bytes live while it does, and do not change.
        return Some(unsafe { object.cell.as_slice() });
    }
    None
}

/// Returns the characters of a string value: small, heap or borrowed C string. Bytes are not a string (VAL-12).
pub fn str_bytes<'a>(view: &'a AnyView<'_>) -> Option<&'a [u8]> {
    let raw = view.as_raw();
    if raw.type_index == index::RAW_STR {
        // SAFETY: a C string that lives while the view does (the contract of `AnyView::from_raw`).
        return Some(unsafe { std::ffi::CStr::from_ptr(raw.ptr().cast()) }.to_bytes());
    }
    bytes_of(raw, index::SMALL_STR, index::STR)
}

/// Returns the address of the characters of a string value, which end in a NUL. The slice of the characters does not include the NUL.
pub(crate) fn c_str(view: &AnyView<'_>) -> Option<*const c_char> {
    let raw = view.as_raw();
    Some(match raw.type_index {
        index::RAW_STR => raw.ptr().cast_const().cast(),
        index::SMALL_STR => (&raw const raw.payload).cast(),
        // SAFETY: a heap string starts with `BytesObj` and lives while the cell does.
        index::STR => unsafe { (*raw.ptr().cast::<BytesObj>()).cell.data.cast() },
        _ => return None,
    })
}

/// Returns the contents of a bytes value: small, heap or borrowed byte array.
pub fn bytes_bytes<'a>(view: &'a AnyView<'_>) -> Option<&'a [u8]> {
    let raw = view.as_raw();
    if raw.type_index == index::BYTE_ARRAY {
        // SAFETY: a byte array that lives while the view does (the contract of `AnyView::from_raw`).
        let array = unsafe { &*raw.ptr().cast::<ByteArray>() };
        // SAFETY: its bytes live as long (the contract of `AnyView::from_raw`).
        return Some(unsafe { array.as_slice() });
    }
    bytes_of(raw, index::SMALL_BYTES, index::BYTES)
}

macro_rules! owned_bytes {
    ($name:ident, $small:path, $heap:path, $doc:literal) => {
        #[doc = $doc]
        #[derive(Clone)]
        #[repr(transparent)]
        pub struct $name(Any);

        impl $name {
            /// Copies `bytes`.
            #[inline]
            pub fn new(bytes: impl AsRef<[u8]>) -> $name {
                $name(make(bytes.as_ref(), $small, $heap))
            }

            /// Returns the bytes, from the cell or the heap.
            #[inline]
            pub fn as_bytes(&self) -> &[u8] {
                bytes_of(self.0.as_raw(), $small, $heap).unwrap_or_default()
            }

            /// Borrows the value.
            #[inline]
            pub const fn as_any(&self) -> &Any {
                &self.0
            }

            /// Converts the value to this type, or returns it unchanged.
            ///
            /// # Errors
            ///
            /// Returns the value itself if it has another type.
            #[inline]
            pub fn from_any(value: Any) -> Result<$name, Any> {
                match value.type_index() {
                    $small | $heap => Ok($name(value)),
                    _ => Err(value),
                }
            }
        }

        impl From<$name> for Any {
            #[inline]
            fn from(value: $name) -> Any {
                value.0
            }
        }

        impl<'a> From<&'a $name> for AnyView<'a> {
            #[inline]
            fn from(value: &'a $name) -> AnyView<'a> {
                value.0.view()
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &$name) -> bool {
                self.as_bytes() == other.as_bytes()
            }
        }

        impl Eq for $name {}

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "\"{}\"", self.as_bytes().escape_ascii())
            }
        }
    };
}

owned_bytes!(
    Str,
    index::SMALL_STR,
    index::STR,
    "An owned string. UTF-8 by convention; the ABI does not check."
);
owned_bytes!(
    Bytes,
    index::SMALL_BYTES,
    index::BYTES,
    "Owned bytes, any content."
);

impl Str {
    /// Returns the text. Invalid UTF-8 is replaced.
    pub fn to_text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(self.as_bytes())
    }
}

impl std::fmt::Display for Str {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.to_text())
    }
}

impl From<&str> for Str {
    #[inline]
    fn from(text: &str) -> Str {
        Str::new(text)
    }
}

impl From<String> for Str {
    #[inline]
    fn from(text: String) -> Str {
        Str::new(text)
    }
}

impl From<&str> for Any {
    #[inline]
    fn from(text: &str) -> Any {
        Str::new(text).into()
    }
}

impl From<String> for Any {
    #[inline]
    fn from(text: String) -> Any {
        Str::new(text).into()
    }
}
