//! DLPack import and export: tensors of other libraries as objects, and objects as DLPack tensors (OBJ-12).

use super::{DataOwner, Tensor, compact_strides};
use crate::function::{Error, ErrorKind, Result};
use crate::object::OBJ_12;
use crate::rule::Kind;
use crate::tensor::Device;
use crate::value::dlpack::{DLPackVersion, DLTensor};
use crate::value::header::ObjectRef;
use crate::value::{DLManagedTensor, DLManagedTensorVersioned};
use std::ffi::c_void;

/// Flag of a DLPack 1.x tensor: its memory must not be written.
pub(super) const READ_ONLY: u64 = 1;
/// Flag of a DLPack 1.x tensor: each sub-byte element is padded to a byte.
const PADDED: u64 = 4;

impl Tensor {
    /// Creates a tensor over memory that is borrowed until `finish` runs. `finish` runs once, on the thread that drops the last reference.
    ///
    /// # Safety
    /// * `dl.shape` points to `dl.ndim` readable extents, and `dl.strides` to as many strides or is null. Both are copied, and need not
    ///   stay valid.
    /// * Until `finish` is called, `dl.data` and `dl.byte_offset` lead to memory of `dl.device` that contains every element within the
    ///   extents and strides, with whole bytes for each. On the CPU all of it is initialised. It needs no alignment here, because bytes
    ///   are copied. A caller that passes the tensor to compiled code aligns it as that code expects (64 bytes).
    /// * Until then safe code may read and write the memory on any thread. No Rust reference to it is used meanwhile, and the caller orders
    ///   other code that reads or writes it.
    pub unsafe fn over(dl: DLTensor, finish: Box<dyn FnOnce() + Send>) -> Tensor {
        // SAFETY: `dl` has as many extents and strides as it counts, by the first clause of this contract.
        let dims = unsafe { dims_of(&dl) };
        Tensor::make(dl, Some(dims), DataOwner::Custom(finish))
    }

    /// Like [`Tensor::over`], for constant memory: the tensor [is read-only](Tensor::is_read_only).
    ///
    /// # Safety
    /// As for [`Tensor::over`], except that safe code only reads the memory.
    pub unsafe fn over_constant(dl: DLTensor, finish: Box<dyn FnOnce() + Send>) -> Tensor {
        // SAFETY: `dl` has as many extents and strides as it counts, by the first clause of `over`.
        let dims = unsafe { dims_of(&dl) };
        Tensor::make(dl, Some(dims), DataOwner::Constant(finish))
    }

    /// Imports a DLPack tensor (OBJ-12). `alignment` is in bytes; 0 accepts any. `contiguous` rejects strides that are not compact.
    ///
    /// # Errors
    ///
    /// Returns a RuntimeError with OBJ-12. Its kind is unsupported for unaligned data, or for strides that are not compact if `contiguous`
    /// is set. Its kind is malformed for a description without extents. After an error the caller still owns the tensor.
    ///
    /// # Safety
    /// * `from` points to a managed tensor that the caller owns. On success the result owns it, and calls its deleter once, on the thread
    ///   that drops the last reference. On an error the caller still owns it.
    /// * Its description stays true until the deleter is called: `shape` points to `ndim` extents, and `strides` to as many or is null.
    ///   `data` with `byte_offset` points to memory of the device that holds every element that they reach, initialised on the CPU.
    /// * Until then safe code may read the memory on any thread, and write to it. No Rust reference to it is used meanwhile, and the caller
    ///   orders other code that reads or writes it.
    pub unsafe fn from_dlpack(
        from: *mut DLManagedTensor,
        alignment: i64,
        contiguous: bool,
    ) -> Result<Tensor> {
        // SAFETY: `from` points to a managed tensor, by the first clause of this contract.
        let dl = unsafe { (*from).dl_tensor };
        // SAFETY: the description has as many extents and strides as it counts, by the second clause.
        unsafe { check_import(&dl, alignment, contiguous, 0) }?;
        // SAFETY: the same description.
        let dims = unsafe { dims_if_needed(&dl) };
        Ok(Tensor::make(dl, dims, DataOwner::Managed(from)))
    }

    /// Imports a DLPack 1.x tensor (OBJ-12). The tensor keeps its flag for read-only memory ([`Tensor::is_read_only`]).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Tensor::from_dlpack`], and OBJ-12 of kind unsupported for a tensor that pads sub-byte elements.
    ///
    /// # Safety
    /// * `from` points to a managed tensor that the caller owns. On success the result owns it, and calls its deleter once, on the thread
    ///   that drops the last reference. On an error the caller still owns it.
    /// * Its description stays true until the deleter is called: `shape` points to `ndim` extents, and `strides` to as many or is null.
    ///   `data` with `byte_offset` points to memory of the device that holds every element that they reach, initialised on the CPU.
    /// * Until then safe code may read the memory on any thread, and write to it if bit 0 of its flags is not set. No Rust reference to it
    ///   is used meanwhile, and the caller orders other code that reads or writes it.
    pub unsafe fn from_dlpack_versioned(
        from: *mut DLManagedTensorVersioned,
        alignment: i64,
        contiguous: bool,
    ) -> Result<Tensor> {
        // SAFETY: `from` points to a managed tensor, by the first clause of this contract.
        let flags = unsafe { (*from).flags };
        // SAFETY: the same managed tensor.
        let dl = unsafe { (*from).dl_tensor };
        // SAFETY: the description has as many extents and strides as it counts, by the second clause.
        unsafe { check_import(&dl, alignment, contiguous, flags) }?;
        // SAFETY: the same description.
        let dims = unsafe { dims_if_needed(&dl) };
        Ok(Tensor::make(dl, dims, DataOwner::Versioned(from)))
    }

    /// Exports a DLPack tensor that holds one reference to this one until its deleter is called: once, on any thread. It points to this
    /// tensor's extents and strides. DLPack before 1.0 has no flags, so a consumer does not learn whether the memory [is
    /// read-only](Tensor::is_read_only).
    pub fn to_dlpack(&self) -> *mut DLManagedTensor {
        unsafe extern "C-unwind" fn delete(tensor: *mut DLManagedTensor) {
            // SAFETY: consumers call a deleter once, with its own tensor, which is the box created below.
            let tensor = unsafe { Box::from_raw(tensor) };
            // SAFETY: `manager_ctx` is the reference that `into_raw` below stores in it; it is dropped here.
            drop(unsafe { ObjectRef::from_raw(tensor.manager_ctx.cast()) });
        }
        Box::into_raw(Box::new(DLManagedTensor {
            // Extents and strides are not copied, because the reference in `manager_ctx` keeps them alive.
            dl_tensor: *self.dl(),
            manager_ctx: self.clone().into_object().into_raw().cast(),
            deleter: Some(delete),
        }))
    }

    /// Exports a DLPack 1.x tensor, version 1.3, as [`Tensor::to_dlpack`] does. Bit 0 of its flags says whether the memory [is
    /// read-only](Tensor::is_read_only).
    pub fn to_dlpack_versioned(&self) -> *mut DLManagedTensorVersioned {
        unsafe extern "C-unwind" fn delete(tensor: *mut DLManagedTensorVersioned) {
            // SAFETY: consumers call a deleter once, with its own tensor, which is the box created below.
            let tensor = unsafe { Box::from_raw(tensor) };
            // SAFETY: `manager_ctx` is the reference that `into_raw` below stores in it; it is dropped here.
            drop(unsafe { ObjectRef::from_raw(tensor.manager_ctx.cast()) });
        }
        Box::into_raw(Box::new(DLManagedTensorVersioned {
            version: DLPackVersion { major: 1, minor: 3 },
            manager_ctx: self.clone().into_object().into_raw().cast(),
            deleter: Some(delete),
            flags: if self.is_read_only() { READ_ONLY } else { 0 },
            dl_tensor: *self.dl(),
        }))
    }

    /// Creates a tensor with the description `prototype` that keeps `source` alive.
    ///
    /// # Safety
    /// As for [`Tensor::over`], with a description of memory that `source` keeps alive.
    pub(crate) unsafe fn view_of(source: ObjectRef, prototype: &DLTensor) -> Tensor {
        // SAFETY: `prototype` has as many extents and strides as it counts, by this contract.
        let dims = unsafe { dims_of(prototype) };
        Tensor::make(*prototype, Some(dims), DataOwner::Object(source))
    }
}

/// Returns copies of the extents and strides. Without strides, computes compact ones.
///
/// # Safety
/// `shape` of the description points to `ndim` extents, and `strides` to as many strides or is null.
unsafe fn dims_of(dl: &DLTensor) -> (Vec<i64>, Vec<i64>) {
    // SAFETY: as many extents as the description says, by this contract.
    let shape = unsafe { dl.shape() }.to_vec();
    // SAFETY: as many strides as the description says, or none, by this contract.
    let strides = unsafe { dl.strides() };
    let strides = strides.map_or_else(|| compact_strides(&shape), <[i64]>::to_vec);
    (shape, strides)
}

/// Returns extents and strides if the producer left out the strides. Null strides mean compact ones (OBJ-12), but readers of a tensor of
/// this ABI expect strides.
///
/// # Safety
/// As [`dims_of`].
unsafe fn dims_if_needed(dl: &DLTensor) -> Option<(Vec<i64>, Vec<i64>)> {
    // SAFETY: the contract of `dims_of` is this one.
    (dl.strides.is_null() && dl.ndim > 0).then(|| unsafe { dims_of(dl) })
}

/// Returns whether data pointers of a device are addresses: CPU, CUDA, pinned memory of CUDA, ROCm, pinned memory of ROCm, managed memory
/// of CUDA.
fn is_addressable(device: Device) -> bool {
    matches!(device.kind, 1 | 2 | 3 | 10 | 11 | 13)
}

/// Checks an import against OBJ-12.
///
/// # Safety
/// As [`dims_of`].
unsafe fn check_import(dl: &DLTensor, alignment: i64, contiguous: bool, flags: u64) -> Result<()> {
    // Without extents, this library could check nothing and a consumer could read nothing.
    let described = dl.ndim == 0 || (dl.ndim > 0 && !dl.shape.is_null());
    OBJ_12
        .demand(Kind::Malformed, described, || {
            format!("a tensor of {} dimensions has no extents", dl.ndim)
        })
        .map_err(|broken| Error::of_violation(ErrorKind::Runtime, broken))?;
    let reject = |kept: bool, message: &dyn Fn() -> String| -> Result<()> {
        OBJ_12
            .demand(Kind::Unsupported, kept, message)
            .map_err(|broken| Error::of_violation(ErrorKind::Runtime, broken))
    };
    reject(flags & PADDED == 0, &|| {
        "Subbyte type padding is not supported: the tensor pads its sub-byte elements to bytes"
            .into()
    })?;
    // OBJ-12: on other devices `data` is a handle, whose number does not show the alignment.
    if alignment > 0 && is_addressable(dl.device) {
        // The first element must be aligned. It is at `byte_offset` after `data`.
        let address = (dl.data as usize).wrapping_add(dl.byte_offset as usize);
        reject(address.is_multiple_of(alignment as usize), &|| {
            format!("FromDLPack: Data is not aligned to {alignment} bytes.")
        })?;
    }
    // SAFETY: the contract of `is_contiguous` is that of `dims_of`.
    let compact = unsafe { dl.is_contiguous() };
    reject(!contiguous || compact, &|| {
        "FromDLPack: Tensor is not contiguous.".into()
    })
}

/// The signature of an environment's tensor allocator: prototype, result, error context, and error callback.
pub(crate) type TensorAllocator = unsafe extern "C-unwind" fn(
    *mut DLTensor,
    *mut *mut DLManagedTensorVersioned,
    *mut c_void,
    unsafe extern "C-unwind" fn(*mut c_void, *const std::ffi::c_char, *const std::ffi::c_char),
) -> i32;
