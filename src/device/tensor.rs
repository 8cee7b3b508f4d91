//! Tensors in the memory of a device, and copies between them and bytes of the host.

use super::{Device, Dtype, Manager, Result, Space, Stream, TensorRef};
use crate::function::{Error, ErrorKind};
use crate::object::Tensor;
use crate::value::dlpack::DLTensor;

impl Tensor {
    /// Creates a compact tensor of zeros on `device`. The memory is freed when the tensor is dropped.
    ///
    /// ```
    /// use tvmspec::object::Tensor;
    /// use tvmspec::tensor::{Device, Dtype};
    ///
    /// let tensor = Tensor::empty_on(&[2, 3], Dtype::FLOAT32, Device::CPU)?;
    /// assert_eq!((tensor.shape(), tensor.device()), (&[2, 3][..], Device::CPU));
    /// assert_eq!(tensor.to_vec::<f32>()?, [0.0; 6]);
    /// # Ok::<(), tvmspec::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns DEV-04 and DEV-06 for a device that this process does not have; the device's error if it has no memory left. Returns
    /// OBJ-11 on the CPU, as for [`Tensor::empty`].
    pub fn empty_on(shape: &[i64], dtype: Dtype, device: Device) -> Result<Tensor> {
        let tensor = allocate(shape, dtype, device)?;
        if device.kind != Device::CPU.kind {
            // A device may return memory that was never written, and safe code can read the tensor.
            let zeros = vec![0_u8; tensor.nbytes()];
            let host = Space(zeros.as_ptr().cast_mut().cast());
            // SAFETY: the tensor is live, so its extents and strides are readable.
            let to = unsafe { TensorRef::from_dltensor(tensor.dl()) };
            // SAFETY: the tensor owns its memory, and `zeros` has that many bytes; it is only read.
            unsafe { copy_bytes(&to, host, zeros.len(), HostCopy::In) }?;
        }
        Ok(tensor)
    }

    /// Copies the tensor to `device`, and returns when the copy is complete. Also copies if the tensor is already on `device`.
    ///
    /// ```
    /// use tvmspec::object::Tensor;
    /// use tvmspec::tensor::Device;
    ///
    /// let tensor = Tensor::from_slice(&[1.0_f32, 2.0], &[2])?;
    /// let copy = tensor.to_device(Device::CPU)?;
    /// assert_eq!(copy.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), tvmspec::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Tensor::empty_on`], and DEV-17 for a tensor that is not compact. Returns DEV-20 between two types of
    /// devices if neither is the CPU. In that case, use [`Tensor::to_cpu`] first.
    pub fn to_device(&self, device: Device) -> Result<Tensor> {
        let copied = allocate(self.shape(), self.dtype(), device)?;
        // SAFETY: both are live tensors, which own their memory; `copy` compares sizes and strides.
        unsafe { copy(self.dl(), copied.dl()) }?;
        Ok(copied)
    }

    /// Copies the tensor to the CPU, where [`Tensor::to_vec`] and [`Tensor::to_bytes`] read it.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Tensor::to_device`].
    pub fn to_cpu(&self) -> Result<Tensor> {
        self.to_device(Device::CPU)
    }
}

/// Allocates a tensor of `shape`, in elements, in the flat memory of a device. Its contents are undefined. The memory is freed when
/// the tensor is dropped.
pub(crate) fn allocate(shape: &[i64], dtype: Dtype, device: Device) -> Result<Tensor> {
    // Tensors of the host own their memory and need no device API, which a program may have replaced.
    if device.kind == Device::CPU.kind {
        return Tensor::empty(shape, dtype);
    }
    let api = Manager::global().api(device.kind)?;
    let space = api.alloc_scoped(device, shape, dtype, None)?;
    let description = DLTensor {
        data: space.0,
        device,
        ndim: i32::try_from(shape.len()).unwrap_or(i32::MAX),
        dtype,
        shape: shape.as_ptr().cast_mut(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
    // An error of freeing cannot be returned to a caller.
    // SAFETY: `space` was allocated above for this device, and a tensor calls this once, when it is dropped.
    let finish = Box::new(move || drop(unsafe { api.free(device, space) }));
    // SAFETY: `shape` lives for the call, which copies it, and the memory stays until `finish`.
    Ok(unsafe { Tensor::over(description, finish) })
}

/// Copies all elements between two devices, on the current stream of this thread, and waits for the copy.
///
/// # Safety
///
/// Both describe memory that is valid for the call; their extents and strides are readable.
pub(crate) unsafe fn copy(from: &DLTensor, to: &DLTensor) -> Result<()> {
    // SAFETY: the extents and strides of `from` are readable.
    let source = unsafe { TensorRef::from_dltensor(from) };
    // SAFETY: the extents and strides of `to` are readable too.
    let target = unsafe { TensorRef::from_dltensor(to) };
    // The copy runs on a stream of the side that is not the host. This function waits for that side.
    let busy = if source.device.kind == Device::CPU.kind {
        target.device
    } else {
        source.device
    };
    let api = Manager::global().api(busy.kind)?;
    let stream = api.current_stream(busy);
    // Another thread may read or fill either tensor.
    let _copying = crate::object::container::tensor::copying();
    // SAFETY: both describe memory that is valid for the call, at the end of which the copy is done.
    unsafe { Manager::global().copy_tensor(&source, &target, stream) }?;
    // DEV-36: the copy may only be queued, and the memory of the source may be freed at once.
    api.sync(busy, stream)
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
