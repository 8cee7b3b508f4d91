//! Storage, and tensors in it.

use super::allocator::{VmAllocator, VmDevice};
use crate::device::{ALIGNMENT, Device, Dtype, Space, byte_size};
use crate::function::Error;
use crate::object::Tensor;
use crate::release::Release;
use crate::rule::Kind;
use crate::tensor::Packing;
use crate::value::header::{HeaderSlot, Ref, dynamic_object, own_object};
use crate::value::{Any, DLTensor, cast, index};
use crate::vm::{VM_31, VM_33};
use std::sync::Arc;

/// A block of memory for tensors (`vm.Storage`). It returns to its allocator with the last tensor.
#[repr(C)]
pub(crate) struct VmStorage {
    header: HeaderSlot,
    space: Space,
    /// The allocated size: rounded up if it is pooled (VM-32). Tensors are checked against it (VM-33).
    nbytes: usize,
    /// True if it returns to the pool. Memory of a scope and of constants does not.
    pooled: bool,
    device: Device,
    /// The allocator that it returns to, kept alive until then.
    allocator: Arc<VmAllocator>,
}

dynamic_object!(VmStorage, "vm.Storage");

impl Drop for VmStorage {
    fn drop(&mut self) {
        self.allocator
            .put_back(self.space, self.nbytes, self.pooled);
    }
}

impl VmStorage {
    /// Allocates memory for `shape` elements of `dtype` in `scope` (VM-31).
    pub(super) fn take(
        place: &VmDevice,
        shape: &[i64],
        dtype: Dtype,
        scope: &str,
    ) -> Result<Ref<VmStorage>, Error> {
        // VM-31: also checked for memory of a scope, whose size the device computes, so that a size that does not fit never reaches the
        // device.
        let nbytes = largest_size(shape, dtype)?;
        let flat = matches!(scope, "" | "global");
        let (space, nbytes) = if flat {
            place.allocator.take(nbytes, dtype)?
        } else {
            let space = place
                // VM-32: pools contain only ordinary memory, because the device lays out the shape of other memory.
                .api
                .alloc_scoped(place.device, shape, dtype, Some(scope))?;
            (space, nbytes)
        };
        Ok(Ref::new(VmStorage {
            header: HeaderSlot::default(),
            space,
            nbytes,
            pooled: flat,
            device: place.device,
            allocator: Arc::clone(&place.allocator),
        }))
    }

    /// Returns whether its memory is the host's.
    pub(super) fn is_on_host(&self) -> bool {
        self.device.is_host()
    }

    /// Creates a tensor that begins `offset` bytes into the storage and keeps it alive (VM-33).
    #[inline]
    pub(super) fn tensor(
        this: &Ref<VmStorage>,
        offset: i64,
        shape: &[i64],
        dtype: Dtype,
    ) -> Result<Any, Error> {
        // VM-33, with the sizes of the newest release. Storage has room for whole bytes of each element (`largest_size`).
        let needed = byte_size(shape, dtype, Release::LAST);
        let start = usize::try_from(offset).ok();
        let end = start
            .zip(needed)
            .and_then(|(start, needed)| start.checked_add(needed));
        let (Some(start), true) = (start, end.is_some_and(|end| end <= this.nbytes)) else {
            return Err(outside_storage_error(offset, shape, dtype, this.nbytes));
        };
        // Compiled kernels require an aligned `data`, and some ignore the offset. If `data` is an address, the offset is added to
        // it. The handle of a buffer, as OpenCL has, cannot be added to.
        let add = this.allocator.api.supports_pointer_arithmetic();
        let (data, byte_offset) = if add {
            (this.space.0.wrapping_byte_add(start), 0)
        } else {
            (this.space.0, start as u64)
        };
        let dl = DLTensor {
            data,
            device: this.device,
            ndim: shape.len() as i32,
            dtype,
            shape: std::ptr::null_mut(),
            strides: std::ptr::null_mut(),
            byte_offset,
        };
        Ok(InStorage::value(this.clone(), dl, shape))
    }

    /// Creates a tensor as [`VmStorage::tensor`] does, for compiled code, which writes whole bytes for each element on the host. If
    /// the storage has enough bytes, the tensor is marked accordingly.
    pub(super) fn tensor_of_code(
        this: &Ref<VmStorage>,
        offset: i64,
        shape: &[i64],
        dtype: Dtype,
    ) -> Result<Any, Error> {
        let value = VmStorage::tensor(this, offset, shape, dtype)?;
        let bits = u32::from(dtype.bits) * u32::from(dtype.lanes);
        if bits.is_multiple_of(8) || !this.is_on_host() {
            return Ok(value);
        }
        let whole = Packing::Each.bytes(dtype, shape);
        let whole = whole.and_then(|bytes| usize::try_from(bytes).ok());
        let start = usize::try_from(offset).ok();
        let end = start
            .zip(whole)
            .and_then(|(start, whole)| start.checked_add(whole));
        match cast::<Tensor>(value.view()) {
            Ok(tensor) if end.is_some_and(|end| end <= this.nbytes) => {
                Ok(in_whole_bytes(this.clone(), *tensor.dl()))
            }
            _ => Ok(value),
        }
    }
}

/// Returns a tensor with elements of less than a byte, marked to have whole bytes for each, as kernels of the host write them.
fn in_whole_bytes(storage: Ref<VmStorage>, dl: DLTensor) -> Any {
    let keep = Box::new(move || drop(storage));
    // SAFETY: the description is that of a tensor that lives during this call; the memory is that of `storage`, which has whole bytes for
    // each element and stays until then.
    unsafe { Tensor::over(dl, keep) }.into()
}

/// Allocates a tensor on `place`, not from the pool, for data that lives as long as the machine.
pub(super) fn allocate_unpooled(
    place: &VmDevice,
    shape: &[i64],
    dtype: Dtype,
    scope: &str,
) -> Result<Any, Error> {
    let whole = largest_size(shape, dtype)?;
    // VM-32: the pool would round it up to pages and reuse it.
    let flat = matches!(scope, "" | "global");
    let space = if flat {
        place.api.alloc(place.device, whole, ALIGNMENT, dtype)?
    } else {
        place
            .api
            .alloc_scoped(place.device, shape, dtype, Some(scope))?
    };
    let storage = Ref::new(VmStorage {
        header: HeaderSlot::default(),
        space,
        nbytes: whole,
        pooled: false,
        device: place.device,
        allocator: Arc::clone(&place.allocator),
    });
    VmStorage::tensor(&storage, 0, shape, dtype)
}

/// Returns the largest number of bytes that any release may write to a tensor. Compiled code of TVM up to 0.20 uses whole bytes for
/// each element. Code of 0.21 to 0.25 does so for each `uint1` (DEV-15).
fn largest_size(shape: &[i64], dtype: Dtype) -> Result<usize, Error> {
    let bytes = Packing::Each.bytes(dtype, shape);
    let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
    bytes.ok_or_else(|| {
        let message = format!("storage of shape {shape:?} has no size");
        VM_31.rejected(Kind::Limit, message).into()
    })
}

/// Creates the error of VM-33 for a tensor that is not inside its storage.
#[cold]
fn outside_storage_error(offset: i64, shape: &[i64], dtype: Dtype, nbytes: usize) -> Error {
    let message = format!(
        "a tensor of shape {shape:?} and {} at byte {offset} does not lie inside its storage of {nbytes} bytes",
        dtype
    );
    VM_33.rejected(Kind::Limit, message).into()
}

/// A tensor in storage. It is one allocation, with up to four extents and strides inline.
#[repr(C)]
struct InStorage {
    header: HeaderSlot,
    /// The description, at the offset where every reader of a tensor object expects it (OBJ-11).
    dl: DLTensor,
    /// The storage, whose memory returns to its allocator with the last tensor in it (VM-33).
    _storage: Ref<VmStorage>,
    /// The extents, then the strides, of a tensor of up to [`INLINE`] dimensions.
    inline: [i64; 2 * INLINE],
    /// The extents and strides of a tensor with more dimensions.
    _more: Option<Box<[i64]>>,
}

/// The number of extents that need no second allocation, which is enough for most tensors.
const INLINE: usize = 4;

// OBJ-11: every reader of the ABI expects the description directly after the header.
const _: () = assert!(std::mem::offset_of!(InStorage, dl) == 24);

// SAFETY: `#[repr(C)]`, header and description first; only its own deleter accesses the rest.
own_object!(unsafe InStorage, index::TENSOR);

impl InStorage {
    /// Creates a tensor of `shape` with the description `dl`, and sets its extents and strides: compact, row-major.
    fn value(storage: Ref<VmStorage>, dl: DLTensor, shape: &[i64]) -> Any {
        let count = shape.len();
        // Models create tensors in every call, and most of the cost is the allocation, so one allocation is made instead of two.
        let more = (count > INLINE).then(|| vec![0; 2 * count].into());
        let tensor = Ref::new(InStorage {
            header: HeaderSlot::default(),
            dl,
            _storage: storage,
            inline: [0; 2 * INLINE],
            _more: more,
        });
        // SAFETY: just made by `Ref::new`, and not shared yet: this reference is the only one.
        let own = unsafe { &mut *tensor.as_ptr() };
        let room: &mut [i64] = match &mut own._more {
            Some(more) => more,
            None => &mut own.inline,
        };
        let (dims, strides) = room.split_at_mut(count);
        dims.copy_from_slice(shape);
        let mut stride = 1i64;
        for (own, extent) in strides[..count].iter_mut().zip(shape).rev() {
            *own = stride;
            // The product overflows only if another extent is 0 (VM-31), and then there is no element to reach.
            stride = stride.wrapping_mul(*extent);
        }
        // Neither the object nor its box moves.
        let first = room.as_mut_ptr();
        (own.dl.shape, own.dl.strides) = (first, first.wrapping_add(count));
        tensor.into()
    }
}
