//! Tensors in the memory of a device, and copies between them and bytes of the host.

use super::{Device, Dtype, Manager, Result, Space, Stream, TensorRef};
use crate::function::{Error, ErrorKind};
use crate::object::Tensor;
use crate::value::dlpack::DLTensor;

/// Allocates a tensor of `shape`, in elements, in the flat memory of a device. Its contents are undefined. The memory is freed when
/// the tensor is dropped.
pub(crate) fn allocate(
    shape: &[i64],
    dtype: Dtype,
    place: Device,
) -> std::result::Result<Tensor, Error> {
    let device = place;
    // Tensors of the host own their memory and need no device API, which a program may have replaced.
    if device.kind == Device::CPU.kind {
        return Tensor::empty(shape, dtype);
    }
    let api = Manager::global().api(device.kind)?;
    let space = api.alloc_scoped(device, shape, dtype, None)?;
    let description = DLTensor {
        data: space.0,
        device: place,
        ndim: i32::try_from(shape.len()).unwrap_or(i32::MAX),
        dtype,
        shape: shape.as_ptr().cast_mut(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
    // An error of freeing cannot be returned to a caller.
    // SAFETY: `space` was allocated above for this device, and a tensor calls this once, when it ends.
    let finish = Box::new(move || drop(unsafe { api.free(device, space) }));
    // SAFETY: `shape` lives for the call, which copies it, and the memory stays until `finish`.
    Ok(unsafe { Tensor::over(description, finish) })
}

/// The direction of a copy of host bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostCopy {
    /// From the host into the tensor.
    In,
    /// From the tensor to the host.
    Out,
}

/// Copies between a tensor and `nbytes` bytes of the host, and returns when the copy is complete.
///
/// # Safety
///
/// The memory of `tensor` is valid. `host` has `nbytes` bytes, which are writable for [`HostCopy::Out`].
pub(crate) unsafe fn copy_bytes(
    tensor: &TensorRef<'_>,
    host: Space,
    nbytes: usize,
    way: HostCopy,
) -> std::result::Result<(), Error> {
    if tensor.nbytes() != Some(nbytes) {
        let size = tensor.nbytes().unwrap_or(0);
        let message = format!(
            "TVMArrayCopy: the array has {size} bytes, {nbytes} are to be copied: the size in bytes must exactly match"
        );
        return Err(Error::new(ErrorKind::Value, message));
    }
    let bytes = TensorRef {
        data: host,
        device: Device::CPU,
        strides: None,
        byte_offset: 0,
        ..*tensor
    };
    let (from, to) = match way {
        HostCopy::In => (&bytes, tensor),
        HostCopy::Out => (tensor, &bytes),
    };
    // SAFETY: `host` has `nbytes` bytes and the memory of `tensor` is there, by this function's contract; both have the size just
    // compared.
    unsafe { Manager::global().copy_tensor(from, to, Stream::DEFAULT) }?;
    // DEV-36: the copy may only be queued, and the caller reads or reuses its bytes when this returns.
    sync(tensor.device)
}

/// Waits for the default stream of a device. All numbers of the host mean the same device.
fn sync(device: Device) -> Result<()> {
    let device = if device.kind == Device::CPU.kind {
        Device::CPU
    } else {
        device
    };
    Manager::global()
        .api(device.kind)?
        .sync(device, Stream::DEFAULT)
}
