//! Streams, memory and copies of devices.

use super::{guard, text, write_result};
use crate::device::api::of_stream;
use crate::device::{Device, DeviceApi, Dtype, Manager, Space, Stream, TensorRef};
use crate::function::{Error, ErrorKind, Result};
use crate::value::dlpack::DLTensor;
use std::ffi::{c_char, c_int, c_void};

/// Creates a stream of a device.
///
/// # Safety
///
/// `out` is a place for the stream.
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
        unsafe { write_result(out, stream.handle()) }
    })
}

/// Frees a stream.
///
/// # Safety
///
/// `stream` comes from [`TVMStreamCreate`] for this device, is freed once, and is not in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMStreamFree(
    device_type: c_int,
    device_id: c_int,
    stream: *mut c_void,
) -> c_int {
    let device = Device::new(device_type, device_id);
    // SAFETY: `stream` comes from `TVMStreamCreate` for this device, by this contract.
    // DEV-38: the handle does not contain its device, so the caller's device is used, and is checked against the API below.
    let stream = unsafe { Stream::from_handle(device, stream) };
    // SAFETY: `stream` is freed once and not in use, by this contract.
    with_device_api(device, |api| unsafe { api.free_stream(device, stream) })
}

/// Sets this thread's stream for a device.
///
/// # Safety
///
/// `stream` is null or a stream of that device, and is not freed while it is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMSetStream(
    device_type: c_int,
    device_id: c_int,
    stream: *mut c_void,
) -> c_int {
    let device = Device::new(device_type, device_id);
    // SAFETY: `stream` is null or a stream of that device that is not freed, by this contract.
    let stream = unsafe { Stream::from_handle(device, stream) };
    // DEV-22: sets the table of the thread, also for releases whose backends stored the stream themselves.
    with_device_api(device, |api| api.set_stream(device, stream))
}

/// Waits for all work that is queued on a stream.
///
/// # Safety
///
/// `stream` is null or a stream of that device that is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMSynchronize(
    device_type: c_int,
    device_id: c_int,
    stream: *mut c_void,
) -> c_int {
    let device = Device::new(device_type, device_id);
    // SAFETY: `stream` is null or a stream of that device that is not freed, by this contract.
    let stream = unsafe { Stream::from_handle(device, stream) };
    with_device_api(device, |api| api.sync(device, stream))
}

/// Makes later work on `after` wait for the work that is queued on `before` now.
///
/// # Safety
///
/// Both are null or streams of that device that are not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMStreamStreamSynchronize(
    device_type: c_int,
    device_id: c_int,
    before: *mut c_void,
    after: *mut c_void,
) -> c_int {
    let device = Device::new(device_type, device_id);
    // SAFETY: `before` is null or a stream of that device that is not freed, by this contract.
    let before = unsafe { Stream::from_handle(device, before) };
    // SAFETY: `after` is null or a stream of that device that is not freed, by this contract.
    let after = unsafe { Stream::from_handle(device, after) };
    with_device_api(device, |api| api.sync_streams(device, before, after))
}

/// Allocates memory of a device.
///
/// # Safety
///
/// `out` is a place for the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMDeviceAllocDataSpace(
    device: Device,
    nbytes: usize,
    alignment: usize,
    hint: Dtype,
    out: *mut *mut c_void,
) -> c_int {
    guard(|| {
        let space = api(device)?.alloc(device, nbytes, alignment, hint)?;
        // SAFETY: `out` is a place for the handle, by this contract.
        unsafe { write_result(out, space.0) }
    })
}

/// Allocates memory of a device for a tensor, in a memory scope. A null scope means flat memory.
///
/// # Safety
///
/// `shape` holds `ndim` extents, `scope` is null or a C string, `out` is a place for the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMDeviceAllocDataSpaceWithScope(
    device: Device,
    ndim: c_int,
    shape: *const i64,
    dtype: Dtype,
    scope: *const c_char,
    out: *mut *mut c_void,
) -> c_int {
    guard(|| {
        // SAFETY: `shape` holds `ndim` extents, by this contract.
        let shape = unsafe { extents(shape, ndim) }?;
        let scope = if scope.is_null() {
            // DEV-13: null and "global" mean flat memory. The device interprets any other scope.
            None
        } else {
            // SAFETY: `scope` is not null, so a C string, by this contract.
            Some(unsafe { text(scope, "the scope") }?)
        };
        let space = api(device)?.alloc_scoped(device, shape, dtype, scope)?;
        // SAFETY: `out` is a place for the handle, by this contract.
        unsafe { write_result(out, space.0) }
    })
}

/// Frees memory of a device.
///
/// # Safety
///
/// `space` comes from one of the two functions above, for this device, is freed once, and is not in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMDeviceFreeDataSpace(device: Device, space: *mut c_void) -> c_int {
    // SAFETY: `space` is memory of this device, freed once and not in use, by this contract.
    with_device_api(device, |api| unsafe { api.free(device, Space(space)) })
}

/// Copies between tensors of this process. One of them is on the host, or both are on one type of device.
///
/// # Safety
///
/// Both are null or describe tensors with valid memory. `stream` is null or a stream of the device that is not the host, and is not freed.
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
        // DEV-38: the stream belongs to the side that is not the host, because that side makes the copy (DEV-19).
        let device = of_stream(from.device, to.device);
        // SAFETY: `stream` is null or a stream of the device that is not the host, and not freed, by this contract.
        let stream = unsafe { Stream::from_handle(device, stream) };
        // SAFETY: the memory of both tensors is valid, by this contract.
        unsafe { Manager::global().copy_tensor(&from, &to, stream) }
    })
}

/// Returns the extents of a shape.
///
/// # Safety
///
/// `shape` holds `ndim` extents, for `'a`.
pub(super) unsafe fn extents<'a>(shape: *const i64, ndim: c_int) -> Result<&'a [i64]> {
    let count = usize::try_from(ndim)
        .map_err(|_| Error::new(ErrorKind::Value, "a negative number of extents"))?;
    // A scalar has no extents, so its shape may be null, but a slice needs a non-null address.
    if count == 0 {
        return Ok(&[]);
    }
    // SAFETY: `shape` holds `ndim` extents for `'a`, by this contract.
    Ok(unsafe { std::slice::from_raw_parts(shape, count) })
}

/// Returns a tensor in the form that devices accept.
///
/// # Safety
///
/// `dl` is null, or describes a tensor that lives for `'a`: `ndim` extents, and as many strides or none.
pub(super) unsafe fn reference<'a>(dl: *const DLTensor) -> Result<TensorRef<'a>> {
    if dl.is_null() {
        return Err(Error::new(ErrorKind::Value, "a null tensor"));
    }
    // SAFETY: `dl` is not null, so a description that lives for `'a`, by this contract.
    let dl = unsafe { &*dl };
    // SAFETY: the description has `ndim` extents, and as many strides or none, by this contract.
    Ok(unsafe { TensorRef::from_dltensor(dl) })
}

/// Calls the API of a device at the boundary.
fn with_device_api(
    device: Device,
    body: impl FnOnce(&'static dyn DeviceApi) -> crate::device::Result<()>,
) -> c_int {
    guard(|| body(api(device)?))
}

fn api(device: Device) -> Result<&'static dyn DeviceApi> {
    Manager::global().api(device.kind)
}
