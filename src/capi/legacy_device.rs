//! Arrays, streams and device memory of the C interface of 0.8 to 0.20.
//!
//! An array handle is the address of the description inside a tensor object of this crate.

use super::legacy::{guard, put, text};
use crate::device::{Device, DeviceApi, Dtype, Manager, Space, Stream, TensorRef};
use crate::function::Error;
use crate::object::Tensor;
use crate::value::dlpack::{DLManagedTensor, DLTensor};
use crate::value::header::{Header, ObjectRef};
use crate::value::{DLDataType, DLDevice};
use std::ffi::{c_char, c_int, c_void};

/// The tensor that a handle stands for.
///
/// # Safety
///
/// `handle` must be null, or an array of this interface that is alive.
unsafe fn tensor(handle: *mut DLTensor) -> Result<Tensor, Error> {
    let object = object_of(handle)?;
    // SAFETY: an array of this interface that is alive, by this contract; its object stands in front of the description.
    let object = unsafe { ObjectRef::retain(object) };
    let tensor = <Tensor as crate::value::Argument>::try_from_view((&object).into());
    tensor.ok_or_else(|| Error::new("TypeError", "the handle is no array"))
}

fn object_of(handle: *mut DLTensor) -> Result<*mut Header, Error> {
    if handle.is_null() {
        return Err(Error::new("ValueError", "a null array handle"));
    }
    Ok(handle.cast::<u8>().wrapping_sub(size_of::<Header>()).cast())
}

fn handle_of(tensor: Tensor) -> *mut DLTensor {
    let object = tensor.into_object().into_raw();
    object.cast::<u8>().wrapping_add(size_of::<Header>()).cast()
}

/// # Safety
///
/// `dl` must be null, or describe a tensor that lives for `'a`: `ndim` extents, and as many strides or none.
unsafe fn reference<'a>(dl: *const DLTensor) -> Result<TensorRef<'a>, Error> {
    if dl.is_null() {
        return Err(Error::new("ValueError", "a null tensor"));
    }
    // SAFETY: `dl` is not null, so a description that lives for `'a`, by this contract.
    let dl = unsafe { &*dl };
    Ok(TensorRef {
        data: Space(dl.data),
        device: Device::from(dl.device),
        dtype: Dtype::from(dl.dtype),
        // SAFETY: the description has `ndim` extents, by this contract.
        shape: unsafe { dl.shape() },
        // SAFETY: the description has `ndim` strides or none, by this contract.
        strides: unsafe { dl.strides() },
        byte_offset: dl.byte_offset,
    })
}

fn api(device: Device) -> Result<&'static dyn DeviceApi, Error> {
    Ok(Manager::global().api(device.kind)?)
}

/// An array of `ndim` extents on a device. Its contents are not defined.
///
/// # Safety
///
/// `shape` must hold `ndim` extents, `out` be a place for a handle.
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
        let count = usize::try_from(ndim)
            .map_err(|_| Error::new("ValueError", "a negative number of extents"))?;
        let shape = match count {
            0 => &[][..],
            // SAFETY: `shape` holds `ndim` extents, by this contract.
            _ => unsafe { std::slice::from_raw_parts(shape, count) },
        };
        let part =
            |number: c_int| Error::new("ValueError", format!("{number} is no part of a data type"));
        let dtype = DLDataType {
            code: u8::try_from(dtype_code).map_err(|_| part(dtype_code))?,
            bits: u8::try_from(dtype_bits).map_err(|_| part(dtype_bits))?,
            lanes: u16::try_from(dtype_lanes).map_err(|_| part(dtype_lanes))?,
        };
        let device = DLDevice {
            device_type,
            device_id,
        };
        let tensor = if device_type == DLDevice::CPU.device_type {
            Tensor::empty(shape, dtype)?
        } else {
            on_device(shape, dtype, device)?
        };
        // SAFETY: `out` is a place for it, by this contract.
        unsafe { put(out, handle_of(tensor)) }
    })
}

/// A tensor over memory of a device, which goes back when the tensor ends.
fn on_device(shape: &[i64], dtype: DLDataType, place: DLDevice) -> Result<Tensor, Error> {
    let device = Device::from(place);
    let api = api(device)?;
    let space = api.alloc_scoped(device, shape, Dtype::from(dtype), None)?;
    let dl = DLTensor {
        data: space.0,
        device: place,
        ndim: i32::try_from(shape.len()).unwrap_or(i32::MAX),
        dtype,
        shape: shape.as_ptr().cast_mut(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
    // An error of freeing has no caller to go to.
    // SAFETY: allocated above for this device, and freed once, when the tensor ends.
    let finish = Box::new(move || drop(unsafe { api.free(device, space) }));
    // SAFETY: the shape is copied, and the memory stays until `finish`.
    Ok(unsafe { Tensor::over(dl, finish) })
}

/// Drops the caller's reference of an array.
///
/// # Safety
///
/// `handle` must be an array that the caller owns.
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
/// `handle` must be null or an array, `data` hold `nbytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMArrayCopyFromBytes(
    handle: *mut DLTensor,
    data: *mut c_void,
    nbytes: usize,
) -> c_int {
    // SAFETY: `handle` is null or an array and `data` holds `nbytes` bytes, by this contract; they are only read.
    guard(|| unsafe { copy_bytes(handle, data, nbytes, true) })
}

/// Copies an array of exactly `nbytes` bytes out.
///
/// # Safety
///
/// `handle` must be null or an array, `data` have room for `nbytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMArrayCopyToBytes(
    handle: *mut DLTensor,
    data: *mut c_void,
    nbytes: usize,
) -> c_int {
    // SAFETY: `handle` is null or an array and `data` has room for `nbytes` bytes, by this contract.
    guard(|| unsafe { copy_bytes(handle, data, nbytes, false) })
}

/// Copies between an array and `nbytes` bytes of the host, in the direction that `into` says.
///
/// # Safety
///
/// `handle` must be null or an array, `data` hold `nbytes` bytes, for writing unless they go `into` the array.
unsafe fn copy_bytes(
    handle: *mut DLTensor,
    data: *mut c_void,
    nbytes: usize,
    into: bool,
) -> Result<(), Error> {
    // SAFETY: `handle` is null or an array, by this contract.
    let array = unsafe { reference(handle) }?;
    if array.nbytes() != Some(nbytes) {
        let size = array.nbytes().unwrap_or(0);
        let message = format!(
            "TVMArrayCopy: the array has {size} bytes, {nbytes} are to be copied: the size in bytes must exactly match"
        );
        return Err(Error::new("ValueError", message));
    }
    let bytes = TensorRef {
        data: Space(data),
        device: Device::CPU,
        strides: None,
        byte_offset: 0,
        ..array
    };
    let (from, to) = if into {
        (&bytes, &array)
    } else {
        (&array, &bytes)
    };
    let device = if array.device.kind == Device::CPU.kind {
        Device::CPU
    } else {
        array.device
    };
    let api = api(device)?;
    // SAFETY: `data` holds `nbytes` bytes, by this contract, and the array is found to hold as many.
    unsafe { Manager::global().copy_tensor(from, to, Stream::DEFAULT) }?;
    Ok(api.sync(device, Stream::DEFAULT)?)
}

/// Copies an array into another of the same size.
///
/// # Safety
///
/// Both must be null or describe tensors whose memory is there; `stream` must be null, or one of the device that is not the
/// host, and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMArrayCopyFromTo(
    from: *mut DLTensor,
    to: *mut DLTensor,
    stream: *mut c_void,
) -> c_int {
    // SAFETY: the two tensors and the stream are what that function asks for, by this contract.
    unsafe { TVMDeviceCopyDataFromTo(from, to, stream) }
}

/// Takes over a DLPack tensor.
///
/// # Safety
///
/// `from` must be a tensor that the caller owns, `out` a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMArrayFromDLPack(
    from: *mut DLManagedTensor,
    out: *mut *mut DLTensor,
) -> c_int {
    guard(|| {
        // SAFETY: `from` is a live tensor that belongs to the caller, by this contract.
        let tensor = unsafe { Tensor::from_dlpack(from, 0, false) }?;
        // SAFETY: `out` is a place for it, by this contract.
        unsafe { put(out, handle_of(tensor)) }
    })
}

/// Gives an array out as a DLPack tensor, which holds a reference of it.
///
/// # Safety
///
/// `from` must be null or an array, `out` a place for the tensor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMArrayToDLPack(
    from: *mut DLTensor,
    out: *mut *mut DLManagedTensor,
) -> c_int {
    guard(|| {
        // SAFETY: `from` is null or an array, by this contract.
        let tensor = unsafe { tensor(from) }?;
        // SAFETY: `out` is a place for the tensor, by this contract.
        unsafe { put(out, tensor.to_dlpack()) }
    })
}

/// Ends a DLPack tensor.
///
/// # Safety
///
/// `tensor` must be null or a tensor that the caller owns.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMDLManagedTensorCallDeleter(tensor: *mut DLManagedTensor) {
    // SAFETY: `tensor` is null or a tensor that the caller owns, by this contract.
    if let Some(delete) = unsafe { tensor.as_ref() }.and_then(|tensor| tensor.deleter) {
        // SAFETY: the caller owns `tensor`, by this contract, and hands it to its deleter.
        unsafe { delete(tensor) }
    }
}

/// A new stream of a device.
///
/// # Safety
///
/// `out` must be a place for the stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMStreamCreate(
    device_type: c_int,
    device_id: c_int,
    out: *mut *mut c_void,
) -> c_int {
    guard(|| {
        let device = Device::new(device_type, device_id);
        let stream = api(device)?.create_stream(device)?;
        // SAFETY: `out` is a place for the stream, by this contract.
        unsafe { put(out, stream.handle()) }
    })
}

/// Frees a stream.
///
/// # Safety
///
/// `stream` must come from [`TVMStreamCreate`] for this device, be freed once, and not be in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMStreamFree(
    device_type: c_int,
    device_id: c_int,
    stream: *mut c_void,
) -> c_int {
    guard(|| {
        let device = Device::new(device_type, device_id);
        let api = api(device)?;
        // SAFETY: `stream` comes from `TVMStreamCreate` for this device, by this contract.
        let stream = unsafe { Stream::from_handle(device, stream) };
        // SAFETY: `stream` is freed once and not in use, by this contract.
        Ok(unsafe { api.free_stream(device, stream) }?)
    })
}

/// Sets this thread's stream for a device.
///
/// # Safety
///
/// `stream` must be null or one of that device, and not be freed while it is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMSetStream(
    device_type: c_int,
    device_id: c_int,
    stream: *mut c_void,
) -> c_int {
    guard(|| {
        let device = Device::new(device_type, device_id);
        // SAFETY: `stream` is null or a stream of that device that is not freed, by this contract.
        let stream = unsafe { Stream::from_handle(device, stream) };
        Ok(api(device)?.set_stream(device, stream)?)
    })
}

/// Waits for everything queued on a stream.
///
/// # Safety
///
/// `stream` must be null or one of that device that is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMSynchronize(
    device_type: c_int,
    device_id: c_int,
    stream: *mut c_void,
) -> c_int {
    guard(|| {
        let device = Device::new(device_type, device_id);
        // SAFETY: `stream` is null or a stream of that device that is not freed, by this contract.
        let stream = unsafe { Stream::from_handle(device, stream) };
        Ok(api(device)?.sync(device, stream)?)
    })
}

/// What is queued on `after` from now on waits for what is queued on `before` now.
///
/// # Safety
///
/// Both must be null or streams of that device that are not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMStreamStreamSynchronize(
    device_type: c_int,
    device_id: c_int,
    before: *mut c_void,
    after: *mut c_void,
) -> c_int {
    guard(|| {
        let device = Device::new(device_type, device_id);
        // SAFETY: `before` is null or a stream of that device that is not freed, by this contract.
        let before = unsafe { Stream::from_handle(device, before) };
        // SAFETY: `after` is null or a stream of that device that is not freed, by this contract.
        let after = unsafe { Stream::from_handle(device, after) };
        Ok(api(device)?.sync_streams(device, before, after)?)
    })
}

/// Memory of a device.
///
/// # Safety
///
/// `out` must be a place for the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMDeviceAllocDataSpace(
    device: DLDevice,
    nbytes: usize,
    alignment: usize,
    hint: DLDataType,
    out: *mut *mut c_void,
) -> c_int {
    guard(|| {
        let device = Device::from(device);
        let space = api(device)?.alloc(device, nbytes, alignment, Dtype::from(hint))?;
        // SAFETY: `out` is a place for the handle, by this contract.
        unsafe { put(out, space.0) }
    })
}

/// Memory of a device for a tensor, in a memory scope; null is the flat one.
///
/// # Safety
///
/// `shape` must hold `ndim` extents, `scope` be null or a C string, `out` a place for the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMDeviceAllocDataSpaceWithScope(
    device: DLDevice,
    ndim: c_int,
    shape: *const i64,
    dtype: DLDataType,
    scope: *const c_char,
    out: *mut *mut c_void,
) -> c_int {
    guard(|| {
        let count = usize::try_from(ndim)
            .map_err(|_| Error::new("ValueError", "a negative number of extents"))?;
        let shape = match count {
            0 => &[][..],
            // SAFETY: `shape` holds `ndim` extents, by this contract.
            _ => unsafe { std::slice::from_raw_parts(shape, count) },
        };
        let scope = match scope.is_null() {
            true => None,
            // SAFETY: `scope` is not null, so a C string, by this contract.
            false => Some(unsafe { text(scope, "the scope") }?),
        };
        let device = Device::from(device);
        let space = api(device)?.alloc_scoped(device, shape, Dtype::from(dtype), scope)?;
        // SAFETY: `out` is a place for the handle, by this contract.
        unsafe { put(out, space.0) }
    })
}

/// Frees memory of a device.
///
/// # Safety
///
/// `space` must come from one of the two above, for this device, be freed once, and not be in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMDeviceFreeDataSpace(device: DLDevice, space: *mut c_void) -> c_int {
    guard(|| {
        let device = Device::from(device);
        let api = api(device)?;
        // SAFETY: `space` is memory of this device, freed once and not in use, by this contract.
        Ok(unsafe { api.free(device, Space(space)) }?)
    })
}

/// Copies between tensors of this process, one of them on the host or both on one type of device.
///
/// # Safety
///
/// Both must be null or describe tensors whose memory is there; `stream` must be null, or one of the device that is not the
/// host, and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMDeviceCopyDataFromTo(
    from: *mut DLTensor,
    to: *mut DLTensor,
    stream: *mut c_void,
) -> c_int {
    guard(|| {
        // SAFETY: `from` is null or describes a tensor, by this contract.
        let from = unsafe { reference(from) }?;
        // SAFETY: `to` is null or describes a tensor, by this contract.
        let to = unsafe { reference(to) }?;
        let busy = if from.device.is_host() {
            to.device
        } else {
            from.device
        };
        // SAFETY: `stream` is null or one of the device that is not the host, and not freed, by this contract.
        let stream = unsafe { Stream::from_handle(busy, stream) };
        // SAFETY: the memory of both tensors is there, by this contract.
        Ok(unsafe { Manager::global().copy_tensor(&from, &to, stream) }?)
    })
}
