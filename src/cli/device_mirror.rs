//! Tensors of the command line on a device other than the CPU.
//!
//! Tensors of files are on the CPU. `call` copies them to the device, passes the copies, and copies them back.

use super::CliError;
use tvmspec::device::{CopyRequest, Device, DeviceApi, Dtype, Manager, Space, Stream};
use tvmspec::object::Tensor;
use tvmspec::value::{AnyView, DLTensor};

/// Device memory with the content of a tensor on the host. Freed when dropped.
pub(crate) struct DeviceMirror {
    /// The backend of the device, which allocates, copies and frees.
    api: &'static dyn DeviceApi,
    device: Device,
    /// The memory on the device, with as many bytes as `host`.
    space: Space,
    /// The tensor on the CPU, which is the source and the destination of copies. It is kept alive here.
    host: Tensor,
    /// The shape, which `dl` points to.
    _shape: Vec<i64>,
    /// The description of the memory, which is passed as an argument.
    dl: DLTensor,
}

impl DeviceMirror {
    /// Copies `host` to `device`.
    pub(crate) fn new(host: &Tensor, device: Device) -> Result<DeviceMirror, CliError> {
        let api = Manager::global()
            .api(device.kind)
            .map_err(CliError::from_library_error)?;
        api.set_device(device)
            .map_err(CliError::from_library_error)?;
        // A copy to which `dl` points. The heap block keeps its address when this value moves.
        let mut shape = host.shape().to_vec();
        let of = host.dl().dtype;
        let dtype = of;
        let space = api
            .alloc_scoped(device, &shape, dtype, None)
            .map_err(CliError::from_library_error)?;
        let dl = DLTensor {
            data: space.0,
            device,
            shape: shape.as_mut_ptr(),
            // Null strides mean a compact tensor in row-major order, as `host` is.
            strides: std::ptr::null_mut(),
            byte_offset: 0,
            ..*host.dl()
        };
        // Created before the copy. If the copy fails, dropping it frees the memory.
        let tensor = DeviceMirror {
            api,
            device,
            space,
            host: host.clone(),
            _shape: shape,
            dl,
        };
        tensor.copy(true)?;
        Ok(tensor)
    }

    /// Returns the tensor as an argument.
    pub(crate) fn view(&self) -> AnyView<'_> {
        // SAFETY: describes memory of the device that this value owns, with a shape that it owns.
        unsafe { AnyView::dltensor(&self.dl) }
    }

    /// Copies the current content of the device memory to the tensor on the host.
    pub(crate) fn fetch(&self) -> Result<(), CliError> {
        self.copy(false)
    }

    /// Copies all bytes in one direction, and waits for the copy.
    fn copy(&self, to_device: bool) -> Result<(), CliError> {
        let dl = self.host.dl();
        let host = CopyRequest {
            from: Space(dl.data),
            from_offset: dl.byte_offset as usize,
            to: self.space,
            to_offset: 0,
            nbytes: self.host.nbytes(),
            from_device: Device::CPU,
            to_device: self.device,
            hint: Dtype::UINT8,
        };
        let copy = if to_device {
            host
        } else {
            CopyRequest {
                from: host.to,
                from_offset: host.to_offset,
                to: host.from,
                to_offset: host.from_offset,
                from_device: host.to_device,
                to_device: host.from_device,
                ..host
            }
        };
        // DEV-37: the copy runs after the work that the function queued on the same stream.
        let stream = Stream::DEFAULT;
        // SAFETY: both sides have the bytes of the tensor, and live beyond the sync.
        unsafe { self.api.copy(&copy, stream) }.map_err(CliError::from_library_error)?;
        self.api
            .sync(self.device, stream)
            .map_err(CliError::from_library_error)
    }
}

/// Returns a tensor of any device as one on the host. A tensor on the CPU is returned unchanged.
pub(crate) fn on_host(tensor: Tensor) -> Result<Tensor, CliError> {
    let dl = tensor.dl();
    let device = dl.device;
    if device.kind == Device::CPU.kind {
        return Ok(tensor);
    }
    let api = Manager::global()
        .api(device.kind)
        .map_err(CliError::from_library_error)?;
    let copy = Tensor::empty(tensor.shape(), dl.dtype).map_err(CliError::from_library_error)?;
    let request = CopyRequest {
        from: Space(dl.data),
        from_offset: dl.byte_offset as usize,
        to: Space(copy.dl().data),
        to_offset: copy.dl().byte_offset as usize,
        nbytes: copy.nbytes(),
        from_device: device,
        to_device: Device::CPU,
        hint: dl.dtype,
    };
    // SAFETY: both tensors have these bytes, and live beyond the sync.
    unsafe { api.copy(&request, Stream::DEFAULT) }.map_err(CliError::from_library_error)?;
    api.sync(device, Stream::DEFAULT)
        .map_err(CliError::from_library_error)?;
    Ok(copy)
}

impl Drop for DeviceMirror {
    fn drop(&mut self) {
        // SAFETY: allocated in `new`, freed once. A failure here changes no result.
        let _ = unsafe { self.api.free(self.device, self.space) };
    }
}
