//! Arrays of tensors and their DLPack form.
//!
//! An array handle is the address of the description in a tensor object of this crate.

use super::device::{TVMDeviceCopyDataFromTo, extents, reference};
use super::{guard, write_result};
use crate::device::Space;
use crate::device::tensor::{HostCopy, allocate, copy_bytes};
use crate::function::{Error, ErrorKind};
use crate::object::Tensor;
use crate::tensor::{Device, Dtype};
use crate::value::dlpack::{DLManagedTensor, DLTensor};
use crate::value::header::{Header, ObjectRef};
use std::ffi::{c_int, c_void};

/// Creates an array of `ndim` extents on a device, with undefined content.
///
/// # Safety
///
/// `shape` holds `ndim` extents, `out` is a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMArrayAlloc(
    shape: *const i64,
    ndim: c_int,
    dtype_code: c_int,
    dtype_bits: c_int,
    dtype_lanes: c_int,
    device_type: c_int,
    device_id: c_int,
    out: *mut *mut DLTensor,
) -> c_int {
    guard(|| {
        // SAFETY: `shape` holds `ndim` extents, by this contract.
        let shape = unsafe { extents(shape, ndim) }?;
        let part = |number: c_int| {
            Error::new(
                ErrorKind::Value,
                format!("{number} is not a part of a data type"),
            )
        };
        let dtype = Dtype {
            // TEN-01: the interface has ints, but a data type has 8 and 16 bits. Releases truncate them and create an array of another
            // type.
            code: u8::try_from(dtype_code).map_err(|_| part(dtype_code))?,
            bits: u8::try_from(dtype_bits).map_err(|_| part(dtype_bits))?,
            lanes: u16::try_from(dtype_lanes).map_err(|_| part(dtype_lanes))?,
        };
        let device = Device {
            kind: device_type,
            id: device_id,
        };
        let tensor = allocate(shape, dtype, device)?;
        // SAFETY: `out` is a place for the handle, by this contract.
        unsafe { write_result(out, handle_of(tensor)) }
    })
}

/// Drops the caller's reference to an array.
///
/// # Safety
///
/// `handle` is an array that the caller owns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMArrayFree(handle: *mut DLTensor) -> c_int {
    guard(|| {
        let object = object_of(handle)?;
        // SAFETY: `handle` is an array that the caller owns, by this contract: its reference moves here.
        drop(unsafe { ObjectRef::from_raw(object) });
        Ok(())
    })
}

/// Copies `nbytes` bytes into an array of exactly that size.
///
/// # Safety
///
/// `handle` is null or an array, `data` holds `nbytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMArrayCopyFromBytes(
    handle: *mut DLTensor,
    data: *mut c_void,
    nbytes: usize,
) -> c_int {
    guard(|| {
        // SAFETY: `handle` is null or an array, by this contract.
        let array = unsafe { reference(handle) }?;
        // SAFETY: the memory of an array is valid, and `data` holds `nbytes` bytes, by this contract.
        unsafe { copy_bytes(&array, Space(data), nbytes, HostCopy::In) }
    })
}

/// Copies the bytes out of an array of exactly `nbytes` bytes.
///
/// # Safety
///
/// `handle` is null or an array, `data` has room for `nbytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMArrayCopyToBytes(
    handle: *mut DLTensor,
    data: *mut c_void,
    nbytes: usize,
) -> c_int {
    guard(|| {
        // SAFETY: `handle` is null or an array, by this contract.
        let array = unsafe { reference(handle) }?;
        // SAFETY: the memory of an array is valid, and `data` has room for `nbytes` bytes, by this contract.
        unsafe { copy_bytes(&array, Space(data), nbytes, HostCopy::Out) }
    })
}

/// Copies an array into another of the same size.
///
/// # Safety
///
/// Both are null or describe tensors with valid memory. `stream` is null or a stream of the device that is not the host, and is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMArrayCopyFromTo(
    from: *mut DLTensor,
    to: *mut DLTensor,
    stream: *mut c_void,
) -> c_int {
    // SAFETY: the two tensors and the stream meet the contract of that function, by this contract.
    unsafe { TVMDeviceCopyDataFromTo(from, to, stream) }
}

/// Takes over a DLPack tensor.
///
/// # Safety
///
/// `from` is a tensor that the caller owns, `out` is a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMArrayFromDLPack(
    from: *mut DLManagedTensor,
    out: *mut *mut DLTensor,
) -> c_int {
    guard(|| {
        // SAFETY: `from` is a live tensor that the caller owns, by this contract.
        // OBJ-12: any alignment and any strides are accepted, as up to 0.8. From 0.9 on releases reject both. The caller keeps a rejected
        // tensor.
        let tensor = unsafe { Tensor::from_dlpack(from, 0, false) }?;
        // SAFETY: `out` is a place for the handle, by this contract.
        unsafe { write_result(out, handle_of(tensor)) }
    })
}

/// Returns an array as a DLPack tensor, which holds a reference to it.
///
/// # Safety
///
/// `from` is null or an array, `out` is a place for the tensor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMArrayToDLPack(
    from: *mut DLTensor,
    out: *mut *mut DLManagedTensor,
) -> c_int {
    guard(|| {
        // SAFETY: `from` is null or an array, by this contract.
        let tensor = unsafe { tensor(from) }?;
        // SAFETY: `out` is a place for the tensor, by this contract.
        unsafe { write_result(out, tensor.to_dlpack()) }
    })
}

/// Deletes a DLPack tensor.
///
/// # Safety
///
/// `tensor` is null or a tensor that the caller owns.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMDLManagedTensorCallDeleter(tensor: *mut DLManagedTensor) {
    // SAFETY: `tensor` is null or a tensor that the caller owns, by this contract.
    if let Some(delete) = unsafe { tensor.as_ref() }.and_then(|tensor| tensor.deleter) {
        // SAFETY: the caller owns `tensor`, by this contract, and passes it to its deleter.
        unsafe { delete(tensor) }
    }
}

/// Returns the tensor of a handle.
///
/// # Safety
///
/// `handle` is null, or a live array of this interface.
unsafe fn tensor(handle: *mut DLTensor) -> Result<Tensor, Error> {
    let object = object_of(handle)?;
    // SAFETY: a live array of this interface, by this contract; its object precedes the description.
    let object = unsafe { ObjectRef::retain(object) };
    let tensor = <Tensor as crate::value::Argument>::try_from_view((&object).into());
    tensor.ok_or_else(|| Error::new(ErrorKind::Type, "the handle is not an array"))
}

fn object_of(handle: *mut DLTensor) -> Result<*mut Header, Error> {
    if handle.is_null() {
        return Err(Error::new(ErrorKind::Value, "a null array handle"));
    }
    // Wraps, because the address is not known to be valid until the type of the object is checked.
    Ok(handle.cast::<u8>().wrapping_sub(size_of::<Header>()).cast())
}

fn handle_of(tensor: Tensor) -> *mut DLTensor {
    let object = tensor.into_object().into_raw();
    object.cast::<u8>().wrapping_add(size_of::<Header>()).cast()
}
