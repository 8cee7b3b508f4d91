//! Tensors in the memory of an executor, and copies into and out of them.

use super::pool::PoolMemory;
use crate::device::manager::Manager;
use crate::device::{CopyRequest, Device, DeviceApi, Dtype, Space};
use crate::function::Error;
use crate::graph::format::bytes_of;
use crate::graph::{GRF_33, GRF_36};
use crate::object;
use crate::rule::{Kind, Violation};
use crate::tensor::{Packing, TensorRecord};
use crate::value::{Any, DLDataType, DLDevice, DLTensor, cast};
use std::sync::Arc;

/// What keeps memory that is used in place, and what may be done with it.
pub(super) struct MemoryOwner {
    keep: Any,
    read_only: bool,
}

impl MemoryOwner {
    /// `keep`, which is a tensor whose memory it is, or stands for memory that may be written to.
    pub(super) fn of(keep: Any) -> MemoryOwner {
        let tensor = cast::<object::Tensor>(keep.view());
        let read_only = tensor.is_ok_and(|tensor| tensor.is_read_only());
        MemoryOwner { keep, read_only }
    }

    /// `keep`, of memory that nothing may write to.
    pub(super) fn constant(keep: Any) -> MemoryOwner {
        MemoryOwner {
            keep,
            read_only: true,
        }
    }

    /// Whether nothing may write to the memory.
    pub(super) fn is_read_only(&self) -> bool {
        self.read_only
    }
}

/// A tensor in the memory of an executor.
#[derive(Clone)]
pub struct PoolTensor {
    memory: Arc<PoolMemory>,
    pub(super) shape: Arc<[i64]>,
    pub(super) view: DLTensor,
    dtype: Dtype,
    bytes: usize,
    /// What keeps memory that is not of `memory`.
    keep: Option<Any>,
    /// Whether the memory is only read: that of a linked parameter (GRF-43), or of a read-only tensor (OBJ-12).
    read_only: bool,
}

impl PoolTensor {
    /// Nothing where no memory has as many bytes.
    pub(super) fn new(memory: Arc<PoolMemory>, dtype: Dtype, shape: &[i64]) -> Option<PoolTensor> {
        let bytes = usize::try_from(bytes_of(dtype, shape)?).ok()?;
        let shape: Arc<[i64]> = shape.into();
        let view = DLTensor {
            data: memory.space.0,
            device: DLDevice::from(memory.home.device),
            ndim: shape.len() as i32,
            dtype: DLDataType::from(dtype),
            shape: shape.as_ptr().cast_mut(),
            strides: std::ptr::null_mut(),
            byte_offset: 0,
        };
        Some(PoolTensor {
            memory,
            shape,
            view,
            dtype,
            bytes,
            keep: None,
            read_only: false,
        })
    }

    /// `view` seen as `like`, with `owner` as what keeps it.
    ///
    /// # Safety
    ///
    /// The memory of `view` stays as long as `owner`, and is of the size of `like`.
    pub(super) unsafe fn borrowed(
        view: &DLTensor,
        like: &PoolTensor,
        owner: &MemoryOwner,
    ) -> PoolTensor {
        let mut tensor = like.clone();
        tensor.view.data = view.data;
        tensor.view.byte_offset = view.byte_offset;
        tensor.keep = Some(owner.keep.clone());
        tensor.read_only = owner.read_only;
        tensor
    }

    /// Whether nothing may write to it.
    pub(super) fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// The description that compiled code takes. Valid as long as the tensor.
    pub fn as_dltensor(&self) -> &DLTensor {
        &self.view
    }

    /// Extents as in the graph, also where calls get one dimension (GRF-39, GRF-47).
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// Element type; each element takes whole bytes (GRF-51).
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Size in bytes.
    pub fn nbytes(&self) -> usize {
        self.bytes
    }

    /// The same memory as an object that keeps it alive. The next run overwrites what it shows (GRF-45). A linked parameter
    /// (GRF-43) is [read-only](object::Tensor::is_read_only): its memory is the library's, which may have it as a constant.
    pub fn to_object(&self) -> object::Tensor {
        let keep = self.clone();
        let finish = Box::new(move || drop(keep));
        if self.read_only {
            // SAFETY: the clone in `finish` holds the memory, its owner and the extents until the object ends.
            return unsafe { object::Tensor::over_constant(self.view, finish) };
        }
        // SAFETY: the same.
        unsafe { object::Tensor::over(self.view, finish) }
    }

    /// Copies into `target`, which has the same type and shape (GRF-33).
    ///
    /// # Errors
    ///
    /// GRF-33; OBJ-12 for a tensor that is read-only; a copy that a device rejects.
    pub fn copy_out(&self, target: &object::Tensor) -> Result<(), Error> {
        target.check_writable()?;
        let target = whole(target)?;
        // SAFETY: a tensor object owns the memory that it describes, and lives for the call.
        unsafe { self.copy_into(target) }
    }

    /// [`PoolTensor::copy_out`] to a description.
    ///
    /// # Safety
    ///
    /// `target` describes memory that stays for the call; its extents and strides are readable.
    pub(in crate::graph::runtime) unsafe fn copy_into(
        &self,
        target: &DLTensor,
    ) -> Result<(), Error> {
        // SAFETY: the extents of `target` are readable.
        unsafe { self.check_same(target, "the tensor") }?;
        // SAFETY: its strides, too.
        unsafe { PoolTensor::check_compact(target, "the tensor") }?;
        // SAFETY: `target` is there for the call, in one piece, and of the type and shape of this, as just checked.
        unsafe { self.copy_to(target) }
    }

    /// A copy on the host. A bool of a graph (`uint1`, a byte an element) becomes a bool of the newest release, which is that byte.
    ///
    /// # Errors
    ///
    /// OBJ-11 where the host has no memory for it; what the device rejects.
    pub fn to_host_object(&self) -> Result<object::Tensor, Error> {
        let dtype = if is_flag(self.dtype) {
            bool_of_today()
        } else {
            self.view.dtype
        };
        let copy = object::Tensor::empty(self.shape(), dtype)?;
        copy.fill(&self.to_host()?)?;
        Ok(copy)
    }

    /// The elements, copied to the host: row by row, in the byte order of the device, whole bytes for each (GRF-51).
    ///
    /// # Errors
    ///
    /// What the device rejects.
    pub fn to_host(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0_u8; self.nbytes()];
        let target = DLTensor {
            data: bytes.as_mut_ptr().cast(),
            device: DLDevice::CPU,
            byte_offset: 0,
            ..self.view
        };
        // SAFETY: `bytes` has room for all bytes of the tensor, and stays for the call, which awaits a side on the host.
        unsafe { self.copy_to(&target) }?;
        Ok(bytes)
    }

    /// GRF-33: a tensor that is copied in or out lies in one piece; its bytes are copied as they lie.
    ///
    /// # Safety
    ///
    /// The extents and strides of `other` are readable.
    pub(in crate::graph::runtime) unsafe fn check_compact(
        other: &DLTensor,
        what: &str,
    ) -> Result<(), Violation> {
        // SAFETY: as for this function.
        if unsafe { other.is_contiguous() } {
            Ok(())
        } else {
            let message = format!("{what} does not lie in one piece");
            Err(GRF_33.rejected(Kind::Unsupported, message))
        }
    }

    /// GRF-33: a tensor that is copied in or out has the type and shape of what it is copied to.
    ///
    /// # Safety
    ///
    /// The extents of `other` are readable.
    pub(super) unsafe fn check_same(&self, other: &DLTensor, what: &str) -> Result<(), Violation> {
        let dtype = Dtype::from(other.dtype);
        // GRF-33: a bool of a graph is a `uint1`, that of newer frontends a `bool` of 8 bits: the same byte. Releases count bytes and
        // compare nothing else, so that int32 goes into float32.
        let is_bool = |dtype: Dtype| is_flag(dtype) || DLDataType::from(dtype) == bool_of_today();
        let same_type = dtype == self.dtype || (is_bool(dtype) && is_bool(self.dtype));
        // SAFETY: the extents of `other` are readable.
        let shape = unsafe { other.shape() };
        if same_type && shape == &*self.shape {
            return Ok(());
        }
        let message = format!(
            "{what} is {} {:?}, not {dtype} {shape:?}",
            self.dtype, self.shape
        );
        Err(GRF_33.rejected(Kind::Type, message))
    }

    /// Zeros in every byte.
    pub(super) fn clear(&self) -> Result<(), Error> {
        let zeros = vec![0_u8; self.nbytes()];
        let source = DLTensor {
            data: zeros.as_ptr().cast_mut().cast(),
            device: DLDevice::CPU,
            byte_offset: 0,
            ..self.view
        };
        // SAFETY: as many zeros as this tensor has bytes, which stay for the call.
        unsafe { self.copy_from(&source) }
    }

    /// # Safety
    ///
    /// `source` describes memory of the size of this tensor, in one piece, that stays for the call.
    pub(super) unsafe fn copy_from(&self, source: &DLTensor) -> Result<(), Error> {
        // SAFETY: as for this function; this tensor keeps its own memory.
        unsafe { self.copy(source, &self.view) }
    }

    /// # Safety
    ///
    /// As for [`PoolTensor::copy_from`], of `target`.
    pub(super) unsafe fn copy_to(&self, target: &DLTensor) -> Result<(), Error> {
        // SAFETY: as for this function; this tensor keeps its own memory.
        unsafe { self.copy(&self.view, target) }
    }

    /// Copies whole tensors of the same type and shape through the device that is not the host.
    ///
    /// # Safety
    ///
    /// Both describe memory of the size of this tensor, in one piece, that stays for the call.
    unsafe fn copy(&self, from: &DLTensor, to: &DLTensor) -> Result<(), Error> {
        let device = |device: DLDevice| Device {
            kind: device.device_type,
            id: device.device_id,
        };
        let copy = CopyRequest {
            from: Space(from.data),
            from_offset: from.byte_offset as usize,
            to: Space(to.data),
            to_offset: to.byte_offset as usize,
            nbytes: self.nbytes(),
            from_device: device(from.device),
            to_device: device(to.device),
            hint: self.dtype,
        };
        let (api, busy) = self.copier(&copy)?;
        let stream = api.current_stream(busy);
        // The other side may be a tensor that another thread reads or fills.
        let _copying = crate::object::container::tensor::copying();
        // SAFETY: both hold `nbytes` in one piece, and stay for the call, at the end of which a side on the host was awaited;
        // two sides on devices are freed after what is queued (DEV-46).
        unsafe { api.copy(&copy, stream) }?;
        let host = |device: Device| device.kind == Device::CPU_KIND;
        if host(copy.from_device) != host(copy.to_device) {
            api.sync(busy, stream)?;
        }
        Ok(())
    }

    /// Who makes a copy: the device that is not the host.
    fn copier(&self, copy: &CopyRequest) -> Result<(&'static dyn DeviceApi, Device), Error> {
        let busy = match (copy.from_device.kind, copy.to_device.kind) {
            (Device::CPU_KIND, Device::CPU_KIND) => {
                return Ok((crate::device::cpu::cpu(), copy.to_device));
            }
            (Device::CPU_KIND, _) => copy.to_device,
            (_, Device::CPU_KIND) => copy.from_device,
            (from, to) if from == to => copy.to_device,
            (from, to) => {
                let message =
                    format!("cannot copy from device type {from} to {to}: go through the host");
                return Err(GRF_36.rejected(Kind::Unsupported, message).into());
            }
        };
        let home = &self.memory.home;
        // The API that the executor was made with, which the manager need not know (`ExecutorDevice::with`).
        if home.device.kind == busy.kind {
            return Ok((home.api, busy));
        }
        let api = Manager::global().api(busy.kind)?;
        Ok((api, busy))
    }
}

/// Hands `body` the description of a record's elements, which stay where they are.
pub(in crate::graph::runtime) fn with_record<T>(
    record: &TensorRecord<'_>,
    body: impl FnOnce(&DLTensor) -> Result<T, Error>,
) -> Result<T, Error> {
    // As the memory of an executor counts them (`bytes_of`): whole bytes for each.
    let elements = record.elements(Packing::Each)?;
    let shape = elements.shape();
    body(&DLTensor {
        data: elements.bytes().as_ptr().cast_mut().cast(),
        device: DLDevice::CPU,
        ndim: shape.len() as i32,
        dtype: DLDataType::from(elements.dtype()),
        shape: shape.as_ptr().cast_mut(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    })
}

/// Whether this is the type of a bool of a graph: `uint1`, of which each element takes a byte.
fn is_flag(dtype: Dtype) -> bool {
    dtype == Dtype::scalar(Dtype::UINT, 1)
}

/// The type of a bool now, of which each element is that byte.
fn bool_of_today() -> DLDataType {
    DLDataType {
        code: Dtype::BOOL,
        bits: 8,
        lanes: 1,
    }
}

/// A record as an object on the host. A bool of a graph (`uint1`, a byte an element) becomes a bool of the newest release, which is that
/// byte.
pub(in crate::graph::runtime) fn record_to_object(
    record: &TensorRecord<'_>,
) -> Result<object::Tensor, Error> {
    if !is_flag(record.dtype()) {
        return object::Tensor::from_record(record);
    }
    let elements = record.elements(Packing::Each)?;
    let tensor = object::Tensor::empty(elements.shape(), bool_of_today())?;
    tensor.fill(elements.bytes())?;
    Ok(tensor)
}

/// The description of a tensor that has the whole bytes for each element that a graph copies and its kernels use.
pub(in crate::graph::runtime) fn whole(tensor: &object::Tensor) -> Result<&DLTensor, Violation> {
    if tensor.has_whole_bytes() {
        return Ok(tensor.dl());
    }
    let dtype = Dtype::from(tensor.dl().dtype);
    let message = format!(
        "the elements of the tensor are {dtype} and may be packed; a graph has whole bytes for each"
    );
    Err(GRF_33.rejected(Kind::Type, message))
}
