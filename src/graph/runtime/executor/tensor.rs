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
use crate::value::{Any, DLTensor, cast};
use std::sync::Arc;

/// The owner of memory that is used in place, and a flag for memory that must not be written.
pub(super) struct MemoryOwner {
    keep: Any,
    read_only: bool,
}

impl MemoryOwner {
    /// Creates an owner from `keep`: a tensor that owns the memory, or another value whose memory is writable.
    pub(super) fn new(keep: Any) -> MemoryOwner {
        let tensor = cast::<object::Tensor>(keep.view());
        let read_only = tensor.is_ok_and(|tensor| tensor.is_read_only());
        MemoryOwner { keep, read_only }
    }

    /// Creates an owner from `keep`, for memory that nothing may write to.
    pub(super) fn constant(keep: Any) -> MemoryOwner {
        MemoryOwner {
            keep,
            read_only: true,
        }
    }

    /// Returns whether nothing may write to the memory.
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
    /// The owner of the memory, if it does not belong to `memory`.
    keep: Option<Any>,
    /// True if the memory is read-only: a linked parameter (GRF-43), or a read-only tensor (OBJ-12).
    read_only: bool,
}

debug_fields!(PoolTensor: shape, dtype);

impl PoolTensor {
    /// Creates a tensor in a pool, or returns `None` if its size exceeds the address space.
    pub(super) fn new(memory: Arc<PoolMemory>, dtype: Dtype, shape: &[i64]) -> Option<PoolTensor> {
        let bytes = usize::try_from(bytes_of(dtype, shape)?).ok()?;
        let shape: Arc<[i64]> = shape.into();
        let view = DLTensor {
            data: memory.space.0,
            device: memory.home.device,
            ndim: shape.len() as i32,
            dtype,
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

    /// Creates a tensor with the memory of `view` and the type and shape of `like`. `owner` keeps the memory alive.
    ///
    /// # Safety
    ///
    /// The memory of `view` stays valid as long as `owner`, and has the size of `like`.
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

    /// Returns whether nothing may write to the tensor.
    pub(super) fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Returns the description of the tensor for compiled code. It is valid as long as the tensor.
    pub fn as_dltensor(&self) -> &DLTensor {
        &self.view
    }

    /// Returns the extents as in the graph, even if calls get one dimension (GRF-39, GRF-47).
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// Returns the element type. Each element takes whole bytes (GRF-51).
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Returns the size in bytes.
    pub fn nbytes(&self) -> usize {
        self.bytes
    }

    /// Returns the same memory as an object that keeps it alive. The next run overwrites its contents (GRF-45). A linked parameter
    /// (GRF-43) is [read-only](object::Tensor::is_read_only), because the library may have it in constant memory.
    pub fn to_object(&self) -> object::Tensor {
        let keep = self.clone();
        let finish = Box::new(move || drop(keep));
        if self.read_only {
            // SAFETY: the clone in `finish` holds the memory, its owner and the extents until the object ends.
            return unsafe { object::Tensor::over_constant(self.view, finish) };
        }
        // SAFETY: the same reason as above.
        unsafe { object::Tensor::over(self.view, finish) }
    }

    /// Copies into `target`, which has the same type and shape (GRF-33).
    ///
    /// # Errors
    ///
    /// Returns GRF-33; OBJ-12 for a read-only tensor; the device's error for a copy.
    pub fn copy_out(&self, target: &object::Tensor) -> Result<(), Error> {
        target.check_writable()?;
        let target = whole_byte_elements(target)?;
        // SAFETY: a tensor object owns the memory that it describes, and lives for the call.
        unsafe { self.copy_into(target) }
    }

    /// Copies as [`PoolTensor::copy_out`] does, to a description.
    ///
    /// # Safety
    ///
    /// `target` describes memory that stays valid for the call; its extents and strides are readable.
    pub(in crate::graph::runtime) unsafe fn copy_into(
        &self,
        target: &DLTensor,
    ) -> Result<(), Error> {
        // SAFETY: the extents of `target` are readable.
        unsafe { self.check_same(target, "the tensor") }?;
        // SAFETY: its strides are readable too.
        unsafe { PoolTensor::check_compact(target, "the tensor") }?;
        // SAFETY: `target` is valid for the call, contiguous, and of the type and shape of this, as just checked.
        unsafe { self.copy_to(target) }
    }

    /// Returns a copy on the host. A bool of a graph (`uint1`, one byte per element) becomes a bool of the newest release, which is
    /// the same byte.
    ///
    /// # Errors
    ///
    /// Returns OBJ-11 if the host has no memory for it; the device's error.
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

    /// Copies the elements to the host: row by row, in the byte order of the device, whole bytes for each (GRF-51).
    ///
    /// # Errors
    ///
    /// Returns the device's error.
    pub fn to_host(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0_u8; self.nbytes()];
        let target = DLTensor {
            data: bytes.as_mut_ptr().cast(),
            device: Device::CPU,
            byte_offset: 0,
            ..self.view
        };
        // SAFETY: `bytes` has room for all bytes of the tensor, and stays for the call, which awaits a side on the host.
        unsafe { self.copy_to(&target) }?;
        Ok(bytes)
    }

    /// Checks that a tensor that is copied in or out is contiguous, because its bytes are copied as one block (GRF-33).
    ///
    /// # Safety
    ///
    /// The extents and strides of `other` are readable.
    pub(in crate::graph::runtime) unsafe fn check_compact(
        other: &DLTensor,
        what: &str,
    ) -> Result<(), Violation> {
        // SAFETY: the caller keeps the requirements of this function, which are the same.
        if unsafe { other.is_contiguous() } {
            Ok(())
        } else {
            let message = format!("{what} does not lie in one piece");
            Err(GRF_33.rejected(Kind::Unsupported, message))
        }
    }

    /// Checks that a tensor that is copied in or out has the type and shape of this tensor (GRF-33).
    ///
    /// # Safety
    ///
    /// The extents of `other` are readable.
    pub(super) unsafe fn check_same(&self, other: &DLTensor, what: &str) -> Result<(), Violation> {
        let dtype = other.dtype;
        // GRF-33: a bool of a graph is `uint1`, and one of newer frontends is a `bool` of 8 bits: the same byte. Releases compare
        // only the size in bytes, so that int32 is accepted for float32.
        let is_bool = |dtype: Dtype| is_flag(dtype) || dtype == bool_of_today();
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

    /// Fills every byte with zero.
    pub(super) fn clear(&self) -> Result<(), Error> {
        let zeros = vec![0_u8; self.nbytes()];
        let source = DLTensor {
            data: zeros.as_ptr().cast_mut().cast(),
            device: Device::CPU,
            byte_offset: 0,
            ..self.view
        };
        // SAFETY: there are as many zeros as this tensor has bytes, and they stay valid for the call.
        unsafe { self.copy_from(&source) }
    }

    /// Copies `source` into this tensor.
    ///
    /// # Safety
    ///
    /// `source` describes memory of the size of this tensor, in one piece, that stays for the call.
    pub(super) unsafe fn copy_from(&self, source: &DLTensor) -> Result<(), Error> {
        // SAFETY: the caller keeps the requirements of this function; this tensor keeps its own memory.
        unsafe { self.copy(source, &self.view) }
    }

    /// Copies this tensor into `target`.
    ///
    /// # Safety
    ///
    /// As for [`PoolTensor::copy_from`], of `target`.
    pub(super) unsafe fn copy_to(&self, target: &DLTensor) -> Result<(), Error> {
        // SAFETY: the caller keeps the requirements of this function; this tensor keeps its own memory.
        unsafe { self.copy(&self.view, target) }
    }

    /// Copies whole tensors of the same type and shape, through the device that is not the host.
    ///
    /// # Safety
    ///
    /// Both describe memory of the size of this tensor, in one piece, that stays for the call.
    unsafe fn copy(&self, from: &DLTensor, to: &DLTensor) -> Result<(), Error> {
        let copy = CopyRequest {
            from: Space(from.data),
            from_offset: from.byte_offset as usize,
            to: Space(to.data),
            to_offset: to.byte_offset as usize,
            nbytes: self.nbytes(),
            from_device: from.device,
            to_device: to.device,
            hint: self.dtype,
        };
        let (api, busy) = self.copier(&copy)?;
        let stream = api.current_stream(busy);
        // Another thread may read or fill the tensor on the other side.
        let _copying = crate::object::container::tensor::copying();
        // SAFETY: both hold `nbytes` contiguously and stay valid for the call. A side on the host is waited for at its end. Two
        // sides on devices are freed after the work that is queued (DEV-46).
        unsafe { api.copy(&copy, stream) }?;
        let host = |device: Device| device.kind == Device::CPU_KIND;
        if host(copy.from_device) != host(copy.to_device) {
            api.sync(busy, stream)?;
        }
        Ok(())
    }

    /// Returns the device that makes a copy: the device that is not the host.
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
        // The API that the executor was created with, which the manager may not know (`ExecutorDevice::with`).
        if home.device.kind == busy.kind {
            return Ok((home.api, busy));
        }
        let api = Manager::global().api(busy.kind)?;
        Ok((api, busy))
    }
}

/// Calls `body` with a description of a record's elements, which are not copied.
pub(in crate::graph::runtime) fn with_record<T>(
    record: &TensorRecord<'_>,
    body: impl FnOnce(&DLTensor) -> Result<T, Error>,
) -> Result<T, Error> {
    // Elements take whole bytes, as in the memory of an executor (`bytes_of`).
    let elements = record.elements(Packing::Each)?;
    let shape = elements.shape();
    body(&DLTensor {
        data: elements.bytes().as_ptr().cast_mut().cast(),
        device: Device::CPU,
        ndim: shape.len() as i32,
        dtype: elements.dtype(),
        shape: shape.as_ptr().cast_mut(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    })
}

/// Returns whether this is the bool type of a graph: `uint1`, with one byte per element.
fn is_flag(dtype: Dtype) -> bool {
    dtype == Dtype::scalar(Dtype::UINT, 1)
}

/// Returns the bool type of the newest release, with the same one byte per element.
fn bool_of_today() -> Dtype {
    Dtype::scalar(Dtype::BOOL, 8)
}

/// Returns a record as an object on the host. A bool of a graph (`uint1`, one byte per element) becomes a bool of the newest
/// release, which is the same byte.
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

/// Returns the description of a tensor. It rejects packed elements, because a graph copies and uses whole bytes for each element.
pub(in crate::graph::runtime) fn whole_byte_elements(
    tensor: &object::Tensor,
) -> Result<&DLTensor, Violation> {
    if tensor.has_whole_bytes() {
        return Ok(tensor.dl());
    }
    let dtype = tensor.dl().dtype;
    let message = format!(
        "the elements of the tensor are {dtype} and may be packed; a graph has whole bytes for each"
    );
    Err(GRF_33.rejected(Kind::Type, message))
}
