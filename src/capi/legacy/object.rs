//! Objects: type indices and keys, references, and the byte array of results.

use super::{Handle, guard, text, write_result};
use crate::function::{Error, ErrorKind};
use crate::value::header::{Header, dec_ref, inc_ref};
use crate::value::types;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr;

/// Returns the index of an object's type.
///
/// # Safety
///
/// `object` is the handle of an object, `out` is a place for the index.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMObjectGetTypeIndex(object: Handle, out: *mut c_uint) -> c_int {
    guard(|| {
        if object.is_null() {
            return Err(Error::new(ErrorKind::Value, "a null handle"));
        }
        // SAFETY: `object` is not null, so the handle of an object, by this contract.
        let type_index = unsafe { (*object.cast::<Header>()).type_index };
        // SAFETY: `out` is a place for the index, by this contract.
        unsafe { write_result(out, type_index.unsigned_abs()) }
    })
}

/// Returns the index of a type key.
///
/// # Safety
///
/// `key` is a C string, `out` is a place for the index.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMObjectTypeKey2Index(key: *const c_char, out: *mut c_uint) -> c_int {
    guard(|| {
        // SAFETY: `key` is a C string, by this contract.
        let key = unsafe { text(key, "the type key") }?;
        let found = types::index_of(key).ok_or_else(|| {
            Error::new(
                ErrorKind::Value,
                format!("Cannot find type {key}: it is not registered"),
            )
        })?;
        // SAFETY: `out` is a place for the index, by this contract.
        unsafe { write_result(out, found.unsigned_abs()) }
    })
}

/// Returns the key of a type index, in memory from C's `malloc` that the caller frees.
///
/// # Safety
///
/// `out` is a place for the text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMObjectTypeIndex2Key(
    type_index: c_uint,
    out: *mut *mut c_char,
) -> c_int {
    guard(|| {
        let known = c_int::try_from(type_index).ok().and_then(types::info);
        let known = known.ok_or_else(|| {
            Error::new(
                ErrorKind::Value,
                format!("type index {type_index} is not registered"),
            )
        })?;
        // SAFETY: `out` is a place for the text, by this contract.
        unsafe { write_result(out, c_copy(known.key().as_bytes())) }
    })
}

/// Returns whether `child` is `parent` or derives from it.
///
/// # Safety
///
/// `out` is a place for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMObjectDerivedFrom(child: u32, parent: u32, out: *mut c_int) -> c_int {
    guard(|| {
        let both = (c_int::try_from(child), c_int::try_from(parent));
        // VAL-16: an index beyond the table derives only from itself. In 0.8 it fails a check, unless the parent's index is as high.
        let derived = matches!(both, (Ok(child), Ok(parent)) if types::is_instance(child, parent));
        // SAFETY: `out` is a place for the answer, by this contract.
        unsafe { write_result(out, c_int::from(derived)) }
    })
}

/// Adds a reference to an object.
///
/// # Safety
///
/// `object` is null or the handle of an object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMObjectRetain(object: Handle) -> c_int {
    // SAFETY: `object` is null or the handle of an object, by this contract.
    unsafe { inc_ref(object.cast()) };
    0
}

/// Drops the caller's reference to an object.
///
/// # Safety
///
/// `object` is null or a handle that the caller owns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMObjectFree(object: Handle) -> c_int {
    guard(|| {
        // Guarded, unlike `TVMObjectRetain`: the last reference runs the deleter, whose panic must not reach C.
        // SAFETY: `object` is null or a handle that the caller owns, by this contract.
        unsafe { dec_ref(object.cast()) };
        Ok(())
    })
}

/// A byte array in the form of this interface.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct TVMByteArray {
    /// First byte.
    pub data: *const c_char,
    /// Number of bytes.
    pub size: usize,
}

/// Does nothing. The byte arrays in results of [`TVMFuncCall`](super::TVMFuncCall) belong to the thread (FUN-16), and no other byte
/// arrays exist.
#[unsafe(no_mangle)]
pub extern "C" fn TVMByteArrayFree(_array: *mut TVMByteArray) -> c_int {
    0
}

unsafe extern "C" {
    fn malloc(size: usize) -> *mut c_void;
}

/// Returns a copy with a final NUL, from C's allocator.
fn c_copy(bytes: &[u8]) -> *mut c_char {
    // SAFETY: `malloc` allocates any size that is not 0, or returns null.
    let copy = unsafe { malloc(bytes.len() + 1) }.cast::<u8>();
    if !copy.is_null() {
        // SAFETY: the block is new and holds one byte more than `bytes`.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), copy, bytes.len()) };
        // SAFETY: the block holds one byte more than `bytes`.
        let end = unsafe { copy.add(bytes.len()) };
        // SAFETY: the last byte of the block.
        unsafe { end.write(0) };
    }
    copy.cast()
}
