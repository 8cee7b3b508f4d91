//! The cell of 16 bytes in the form of the C ABI, without ownership.
//!
//! | bytes  | field                                                   | rule            |
//! |--------|---------------------------------------------------------|-----------------|
//! | 0..4   | type index, i32                                         | VAL-01          |
//! | 4..8   | length of a small string, zero for everything else      | VAL-02, VAL-03  |
//! | 8..16  | payload: integer, float, pointer, dtype, device, bytes  | VAL-02          |

use super::index;
use crate::tensor::{Device, Dtype};
use std::ffi::c_void;

/// The eight payload bytes. The type index selects the member.
#[derive(Clone, Copy)]
#[repr(C)]
pub union AnyPayload {
    /// Integers and bools.
    pub int: i64,
    /// Floats.
    pub float: f64,
    /// Opaque pointers, C strings, DLTensors, objects.
    pub ptr: *mut c_void,
    /// All eight bytes as one word, which equality and hashing use.
    pub bits: u64,
    /// A data type; the upper four bytes are zero. Written into an initialized payload, so that no byte is uninitialized.
    pub(crate) dtype: Dtype,
    /// A device.
    pub device: Device,
    /// The characters of a small string. Unused bytes are zero.
    pub bytes: [u8; 8],
}

/// Prints no content, because only the separate tag shows which member is valid.
impl std::fmt::Debug for AnyPayload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AnyPayload(..)")
    }
}

/// A value cell in the form of the C ABI (`TVMFFIAny`), without ownership.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct RawAny {
    /// The tag, see [`index`].
    pub(crate) type_index: i32,
    /// Length of a small string, otherwise zero.
    pub(crate) aux: u32,
    /// The value itself, or the address of the object.
    pub(crate) payload: AnyPayload,
}

debug_fields!(RawAny: type_index, aux);

const _: () = assert!(size_of::<RawAny>() == 16 && align_of::<RawAny>() == 8);
const _: () = assert!(std::mem::offset_of!(RawAny, payload) == 8);

// SAFETY: a cell is plain data, and following its pointers is unsafe. Safe code follows them only through `Any`, which owns an object that
// any thread may read (the contract of `Object`), and through `AnyView`, which stays on its thread.
unsafe impl Send for RawAny {}
// SAFETY: a cell is plain data, and following its pointers is unsafe. Safe code follows them only through `Any`, which owns an object that
// any thread may read (the contract of `Object`), and through `AnyView`, which stays on its thread.
unsafe impl Sync for RawAny {}

impl RawAny {
    /// None.
    pub const NONE: RawAny = RawAny::of(index::NONE, AnyPayload { bits: 0 });

    /// Creates a cell with tag `type_index` and auxiliary word zero.
    pub const fn of(type_index: i32, payload: AnyPayload) -> RawAny {
        RawAny {
            type_index,
            aux: 0,
            payload,
        }
    }

    /// Creates a cell from the result of [`RawAny::words`].
    #[inline]
    pub(crate) const fn of_words(head: u64, payload: *mut c_void) -> RawAny {
        let mut cell = RawAny::of(index::NONE, AnyPayload { ptr: payload });
        // SAFETY: the first eight bytes of a cell are aligned as a word, and any bytes are a tag and an auxiliary word.
        unsafe { (&raw mut cell).cast::<u64>().write(head) };
        cell
    }

    /// Returns the first eight bytes as they are in memory, and the payload, which keeps its provenance as a pointer.
    ///
    /// If the two halves of the first word were read apart, the compiler would join them again wherever a cell is copied.
    #[inline]
    pub(crate) const fn words(self) -> (u64, *mut c_void) {
        // SAFETY: the first eight bytes of a cell are aligned as a word, and initialized.
        let head = unsafe { (&raw const self).cast::<u64>().read() };
        (head, self.ptr())
    }

    /// Returns the tag, see [`index`].
    #[inline]
    pub const fn type_index(&self) -> i32 {
        self.type_index
    }

    /// Returns the payload as one word.
    #[inline]
    pub const fn bits(&self) -> u64 {
        // SAFETY: every member of the union is eight plain bytes, and constructors fill all of them.
        unsafe { self.payload.bits }
    }

    /// Returns the payload as an integer.
    #[inline]
    pub const fn int(&self) -> i64 {
        // SAFETY: as in `bits`.
        unsafe { self.payload.int }
    }

    /// Returns the payload as a float.
    #[inline]
    pub const fn float(&self) -> f64 {
        // SAFETY: as in `bits`.
        unsafe { self.payload.float }
    }

    /// Returns the payload as a pointer.
    #[inline]
    pub const fn ptr(&self) -> *mut c_void {
        // SAFETY: as in `bits`. A pointer that was created from integer bits is never dereferenced, because its tag is not that of a
        // pointer.
        unsafe { self.payload.ptr }
    }

    /// Returns the payload as a data type.
    #[inline]
    pub const fn dtype(&self) -> Dtype {
        // SAFETY: as in `bits`.
        unsafe { self.payload.dtype }
    }

    /// Returns the payload as a device.
    #[inline]
    pub const fn device(&self) -> Device {
        // SAFETY: as in `bits`.
        unsafe { self.payload.device }
    }

    /// Returns whether the payload is a counted object.
    #[inline]
    pub const fn is_object(&self) -> bool {
        // Checked by range, because another library may register types with indices unknown here (VAL-14).
        self.type_index >= index::OBJECT_BEGIN
    }

    pub(super) const fn from_int(value: i64) -> RawAny {
        RawAny::of(index::INT, AnyPayload { int: value })
    }

    pub(super) fn from_bool(value: bool) -> RawAny {
        // VAL-02: all eight bytes are set, to 0 or 1, because equality and hash use the whole word.
        RawAny::of(index::BOOL, AnyPayload { int: value.into() })
    }

    pub(super) const fn from_float(value: f64) -> RawAny {
        RawAny::of(index::FLOAT, AnyPayload { float: value })
    }

    pub(super) const fn from_handle(value: *mut c_void) -> RawAny {
        // VAL-08: null stays an opaque pointer, which is not None.
        RawAny::of(index::OPAQUE, AnyPayload { ptr: value })
    }

    pub(super) fn from_dtype(value: Dtype) -> RawAny {
        // VAL-02: equality and hash use all eight bytes, so the four bytes after the type are zero.
        let mut payload = RawAny::NONE.payload;
        payload.dtype = value;
        RawAny::of(index::DATA_TYPE, payload)
    }

    pub(super) const fn from_device(value: Device) -> RawAny {
        RawAny::of(index::DEVICE, AnyPayload { device: value })
    }
}
