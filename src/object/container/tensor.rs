//! Tensors: a DLPack description in an object, and DLPack in and out.
//!
//! | bytes  | field                                  | rule   |
//! |--------|----------------------------------------|--------|
//! | 24..72 | the description (`DLTensor`)           | OBJ-11 |
//! | 72..   | what owns the data; shape and strides  | OBJ-11 |

use crate::function::{Error, Result};
use crate::object::{OBJ_11, OBJ_12};
use crate::rule::Kind;
use crate::tensor::{Packing, TensorRecord};
use crate::value::dlpack::{DLPackVersion, DLTensor};
use crate::value::header::{Header, Object, ObjectRef, Ref, static_object};
use crate::value::{
    Any, AnyView, Argument, DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned,
    Schema, VAL_10, index,
};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::{PoisonError, RwLock};

/// Orders what safe code reads from the memory of tensors and writes to it. One for all: tensors may share memory.
static COPIES: RwLock<()> = RwLock::new(());

/// While it lives, no safe code reads the memory of tensors or writes to it: for what copies from one tensor to another.
pub(crate) fn copying() -> std::sync::RwLockWriteGuard<'static, ()> {
    COPIES.write().unwrap_or_else(PoisonError::into_inner)
}

/// The fixed part of a tensor.
#[repr(C)]
pub(crate) struct TensorObj {
    header: Header,
    /// The description.
    pub dl: DLTensor,
}

const _: () = assert!(size_of::<TensorObj>() == 72);

static_object!(TensorObj, index::TENSOR);

/// What keeps the data alive.
enum Owner {
    /// Memory of this library.
    Memory(std::alloc::Layout, *mut u8),
    /// A DLPack tensor of a producer.
    Managed(*mut DLManagedTensor),
    /// The same of DLPack 1.x.
    Versioned(*mut DLManagedTensorVersioned),
    /// Another object.
    Object(#[allow(dead_code)] ObjectRef),
    /// A deleter to call.
    Custom(Box<dyn FnOnce()>),
}

#[repr(C)]
struct OwnTensor {
    public: TensorObj,
    owner: Option<Owner>,
    /// Shape and strides. A raw pointer: moving a box would end the description's view of it.
    dims: Option<NonNull<[i64]>>,
}

// SAFETY: `#[repr(C)]` with the header first; only reached through its deleter.
unsafe impl Object for OwnTensor {
    fn type_index() -> i32 {
        index::TENSOR
    }

    fn matches(_: i32) -> bool {
        false
    }
}

impl Drop for OwnTensor {
    fn drop(&mut self) {
        match self.owner.take() {
            Some(Owner::Memory(layout, data)) => {
                // SAFETY: allocated with this layout in `Tensor::empty`.
                unsafe { std::alloc::dealloc(data, layout) }
            }
            Some(Owner::Managed(tensor)) => {
                // SAFETY: a live managed tensor, which belongs to this one by the contract of `from_dlpack`.
                if let Some(delete) = unsafe { (*tensor).deleter } {
                    // SAFETY: the producer's deleter for this tensor, which is called once, because the owner is taken out
                    // above.
                    unsafe { delete(tensor) }
                }
            }
            Some(Owner::Versioned(tensor)) => {
                // SAFETY: a live managed tensor, which belongs to this one by the contract of `from_dlpack_versioned`.
                if let Some(delete) = unsafe { (*tensor).deleter } {
                    // SAFETY: the producer's deleter for this tensor, which is called once, because the owner is taken out
                    // above.
                    unsafe { delete(tensor) }
                }
            }
            Some(Owner::Custom(finish)) => finish(),
            Some(Owner::Object(_)) | None => {}
        }
        if let Some(dims) = self.dims {
            // SAFETY: came from a box in `make`, and ends with the tensor.
            drop(unsafe { Box::from_raw(dims.as_ptr()) });
        }
    }
}

/// A tensor that is owned by counting.
#[derive(Clone)]
#[repr(transparent)]
pub struct Tensor(Ref<TensorObj>);

/// Strides of a compact row-major tensor.
pub(crate) fn compact_strides(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1i64; shape.len()];
    for at in (1..shape.len()).rev() {
        strides[at - 1] = strides[at].wrapping_mul(shape[at]);
    }
    strides
}

impl Tensor {
    fn make(mut dl: DLTensor, dims: Option<(Vec<i64>, Vec<i64>)>, owner: Owner) -> Tensor {
        let dims = dims.map(|(mut shape, strides)| {
            let ndim = shape.len();
            shape.extend(strides);
            dl.ndim = ndim as i32;
            let dims = NonNull::from(Box::leak(shape.into_boxed_slice()));
            if ndim > 0 {
                dl.shape = dims.as_ptr().cast();
                dl.strides = dl.shape.wrapping_add(ndim);
            }
            dims
        });
        unsafe extern "C-unwind" fn nothing(_: *mut Header, _: i32) {}
        let object = Ref::new(OwnTensor {
            public: TensorObj {
                header: Header::new(index::TENSOR, nothing),
                dl,
            },
            owner: Some(owner),
            dims,
        });
        // SAFETY: an own tensor starts with the public part.
        Tensor(unsafe { Ref::from_raw(object.into_object().into_raw()) })
    }

    /// A CPU tensor of the shape, type and data of a record.
    ///
    /// # Errors
    ///
    /// TEN-35 when the record does not store all of the tensor; OBJ-11 when there is no memory for it.
    pub fn from_record(record: &TensorRecord<'_>) -> Result<Tensor> {
        // Code of releases that give each element whole bytes finds them; those that pack find theirs first (TEN-31).
        let elements = record.elements(Packing::Each)?;
        let tensor = Tensor::empty(elements.shape(), elements.dtype().into())?;
        let (bytes, data) = (elements.bytes(), tensor.dl().data.cast::<u8>());
        // SAFETY: `empty` made whole bytes for each element, which are as many as `Packing::Each` counts, and it is not shared
        // yet.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), data, bytes.len()) };
        Ok(tensor)
    }

    /// A CPU tensor of zeros.
    ///
    /// # Errors
    ///
    /// OBJ-11 of kind limit for a negative extent, a size that is too large, and memory that is not there.
    pub fn empty(shape: &[i64], dtype: DLDataType) -> Result<Tensor> {
        let elements = shape.iter().try_fold(1u64, |product, &extent| {
            u64::try_from(extent).ok()?.checked_mul(product)
        });
        let bytes = elements
            .map(|elements| dtype.bytes_of(elements))
            .and_then(|bytes| usize::try_from(bytes).ok());
        // Up to 0.20 every element takes whole bytes: compiled code and graphs of those releases find the room that they
        // expect.
        let element = (u64::from(dtype.bits) * u64::from(dtype.lanes)).div_ceil(8);
        let whole = elements
            .and_then(|elements| elements.checked_mul(element))
            .and_then(|bytes| usize::try_from(bytes).ok());
        let layout = bytes
            .and(whole)
            .and_then(|bytes| std::alloc::Layout::from_size_align(bytes.max(1), 64).ok());
        let refused = |why: &str| {
            let message = format!("a tensor of shape {shape:?} {why}");
            Error::from(OBJ_11.refused(Kind::Limit, message))
        };
        if shape.iter().any(|extent| *extent < 0) {
            return Err(refused("has a negative extent"));
        }
        let layout = layout.ok_or_else(|| refused("is too large"))?;
        // SAFETY: the layout is not empty.
        let data = unsafe { std::alloc::alloc_zeroed(layout) };
        if data.is_null() {
            let bytes = layout.size();
            return Err(refused(&format!(
                "needs {bytes} bytes, and there is no such memory"
            )));
        }
        let dl = DLTensor {
            data: data.cast(),
            device: DLDevice::CPU,
            ndim: shape.len() as i32,
            dtype,
            shape: std::ptr::null_mut(),
            strides: std::ptr::null_mut(),
            byte_offset: 0,
        };
        let dims = (shape.to_vec(), compact_strides(shape));
        Ok(Tensor::make(dl, Some(dims), Owner::Memory(layout, data)))
    }

    /// Whether there are whole bytes for each element, as graphs have it (GRF-33), and not only as many as small elements take
    /// when they are packed. Known of what [`Tensor::empty`] and [`Tensor::over`] made.
    pub(crate) fn has_whole_bytes(&self) -> bool {
        let dtype = self.dl().dtype;
        let bits = u32::from(dtype.bits) * u32::from(dtype.lanes);
        bits.is_multiple_of(8)
            || Ref::<OwnTensor>::made(self.0.as_object())
                .is_some_and(|own| matches!(own.owner, Some(Owner::Memory(..) | Owner::Custom(_))))
    }

    /// A tensor over memory that is borrowed until `finish` runs.
    ///
    /// # Safety
    /// `dl` describes memory that stays until `finish` was called, with whole bytes for each element.
    pub unsafe fn over(dl: DLTensor, finish: Box<dyn FnOnce()>) -> Tensor {
        // SAFETY: a description of memory, by this contract, has as many extents and strides as it says.
        let dims = unsafe { dims_of(&dl) };
        Tensor::make(dl, Some(dims), Owner::Custom(finish))
    }

    /// The description.
    pub fn dl(&self) -> &DLTensor {
        &self.0.dl
    }

    /// The extents.
    pub fn shape(&self) -> &[i64] {
        // SAFETY: tensors of this ABI have a readable shape.
        unsafe { self.dl().shape() }
    }

    /// Bytes of the elements, sub-byte types packed.
    pub fn nbytes(&self) -> usize {
        // SAFETY: tensors of this ABI have a readable shape.
        usize::try_from(unsafe { self.dl().bytes() }).unwrap_or(usize::MAX)
    }

    /// A copy of the bytes of a compact CPU tensor. No [`Tensor::fill`] runs meanwhile; compiled functions that write to
    /// the tensor are ordered by those who call them.
    ///
    /// # Errors
    ///
    /// OBJ-11 of kind unsupported for a tensor that is not compact or not on the CPU.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let _reading = COPIES.read().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: nothing in here writes meanwhile (`COPIES`), and compiled functions do so by the contract of loading them.
        Ok(unsafe { self.bytes() }?.to_vec())
    }

    /// The bytes of a compact CPU tensor, where they lie.
    ///
    /// # Errors
    ///
    /// As [`Tensor::to_bytes`].
    ///
    /// # Safety
    /// Nothing writes to the tensor while they are borrowed: not a compiled function, not [`Tensor::fill`], not any other
    /// holder of the tensor or its memory.
    pub unsafe fn bytes(&self) -> Result<&[u8]> {
        let memory = self.memory()?;
        // SAFETY: memory of this tensor, which lives while `self` does; no one writes to it meanwhile, by this contract.
        Ok(unsafe { memory.as_ref() })
    }

    /// Where the bytes of a compact CPU tensor lie.
    fn memory(&self) -> Result<NonNull<[u8]>> {
        let dl = self.dl();
        // SAFETY: tensors of this ABI have readable shapes and strides.
        let compact = unsafe { dl.is_contiguous() };
        if !is_cpu(dl.device) || !compact {
            return Err(OBJ_11
                .refused(
                    Kind::Unsupported,
                    "the bytes of a tensor are only at hand when it is compact and on the CPU",
                )
                .into());
        }
        let count = self.nbytes();
        let Some(data) = NonNull::new(dl.data.cast::<u8>()).filter(|_| count != 0) else {
            return Ok(NonNull::slice_from_raw_parts(NonNull::dangling(), 0));
        };
        // SAFETY: a CPU tensor's data is memory of that many bytes behind the offset.
        let first = unsafe { data.add(dl.byte_offset as usize) };
        Ok(NonNull::slice_from_raw_parts(first, count))
    }

    /// Shows `each` the bytes of every element of a CPU tensor, row-major, whatever its strides. Elements take whole bytes. No
    /// [`Tensor::fill`] runs meanwhile, so `each` must not lead to one.
    pub(super) fn each_element(&self, mut each: impl FnMut(&[u8])) -> Result<()> {
        let dl = self.dl();
        let size = usize::from(dl.dtype.bits / 8) * usize::from(dl.dtype.lanes);
        // SAFETY: tensors of this ABI have readable shapes and strides.
        let strides = match unsafe { dl.is_contiguous() } {
            true => None,
            // SAFETY: tensors of this ABI have readable shapes and strides.
            false => unsafe { dl.strides() },
        };
        let Some(strides) = strides.filter(|_| is_cpu(dl.device)) else {
            let memory = self.memory()?;
            let _reading = COPIES.read().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: memory of this tensor, which lives while `self` does. Nothing in here writes meanwhile (`COPIES`), and
            // compiled functions do so by the contract of loading them.
            let bytes = unsafe { memory.as_ref() };
            bytes.chunks_exact(size).for_each(each);
            return Ok(());
        };
        let shape = self.shape();
        if dl.data.is_null() || shape.iter().any(|extent| *extent <= 0) {
            return Ok(());
        }
        let first = dl.data.cast::<u8>();
        let first = first.wrapping_add(dl.byte_offset as usize);
        let _reading = COPIES.read().unwrap_or_else(PoisonError::into_inner);
        let mut at = vec![0_i64; shape.len()];
        loop {
            let steps = at.iter().zip(strides).fold(0_i64, |steps, (at, stride)| {
                steps.wrapping_add(at.wrapping_mul(*stride))
            });
            let place = first.wrapping_offset((steps as isize).wrapping_mul(size as isize));
            // SAFETY: an element inside the extents of a description of CPU memory, which is that of live memory by the
            // contracts of the makers of tensors; what writes to it is ordered as above.
            each(unsafe { std::slice::from_raw_parts(place, size) });
            let next = (0..at.len()).rev().find(|&axis| at[axis] + 1 < shape[axis]);
            let Some(axis) = next else { return Ok(()) };
            at[axis] += 1;
            at[axis + 1..].fill(0);
        }
    }

    /// Copies `bytes` into a compact CPU tensor of exactly that size. No [`Tensor::to_bytes`] runs meanwhile.
    ///
    /// # Errors
    ///
    /// As [`Tensor::to_bytes`]; OBJ-11 of kind malformed for another number of bytes.
    pub fn fill(&self, bytes: &[u8]) -> Result<()> {
        let room = self.memory()?;
        if room.len() != bytes.len() {
            return Err(OBJ_11
                .refused(
                    Kind::Malformed,
                    format!("{} bytes for a tensor of {}", bytes.len(), room.len()),
                )
                .into());
        }
        let _writing = COPIES.write().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: room for that many bytes, which nothing borrows (`Tensor::bytes`) or copies (`COPIES`).
        unsafe { std::ptr::copy(bytes.as_ptr(), room.as_ptr().cast(), bytes.len()) }
        Ok(())
    }

    /// Takes over a DLPack tensor (OBJ-12).
    ///
    /// # Errors
    ///
    /// A RuntimeError with OBJ-12 for data that are not aligned to `alignment`, or not compact where `contiguous` asks for it;
    /// the tensor stays the caller's.
    ///
    /// # Safety
    /// `from` is a live managed tensor that belongs to the caller; on success it belongs to the result.
    pub unsafe fn from_dlpack(
        from: *mut DLManagedTensor,
        alignment: i64,
        contiguous: bool,
    ) -> Result<Tensor> {
        // SAFETY: a live managed tensor, by this contract.
        let dl = unsafe { (*from).dl_tensor };
        // SAFETY: the description in a live managed tensor has as many extents and strides as it says.
        unsafe { check_import(&dl, alignment, contiguous, 0) }?;
        // SAFETY: the same description.
        let dims = unsafe { dims_if_needed(&dl) };
        Ok(Tensor::make(dl, dims, Owner::Managed(from)))
    }

    /// Takes over a DLPack 1.x tensor (OBJ-12).
    ///
    /// # Errors
    ///
    /// As [`Tensor::from_dlpack`]; OBJ-12 for a tensor that pads elements of less than a byte, too.
    ///
    /// # Safety
    /// As [`Tensor::from_dlpack`].
    pub unsafe fn from_dlpack_versioned(
        from: *mut DLManagedTensorVersioned,
        alignment: i64,
        contiguous: bool,
    ) -> Result<Tensor> {
        // SAFETY: a live managed tensor, by this contract.
        let flags = unsafe { (*from).flags };
        // SAFETY: a live managed tensor, by this contract.
        let dl = unsafe { (*from).dl_tensor };
        // SAFETY: the description in a live managed tensor has as many extents and strides as it says.
        unsafe { check_import(&dl, alignment, contiguous, flags) }?;
        // SAFETY: the same description.
        let dims = unsafe { dims_if_needed(&dl) };
        Ok(Tensor::make(dl, dims, Owner::Versioned(from)))
    }

    /// Gives out a DLPack tensor that holds one reference of this one.
    pub fn to_dlpack(&self) -> *mut DLManagedTensor {
        unsafe extern "C-unwind" fn delete(tensor: *mut DLManagedTensor) {
            // SAFETY: consumers call a deleter once, with the tensor that has it: the box that is made below.
            let tensor = unsafe { Box::from_raw(tensor) };
            // SAFETY: `manager_ctx` is the reference that was given up below, and ends here.
            drop(unsafe { ObjectRef::from_raw(tensor.manager_ctx.cast()) });
        }
        Box::into_raw(Box::new(DLManagedTensor {
            dl_tensor: *self.dl(),
            manager_ctx: self.clone().into_object().into_raw().cast(),
            deleter: Some(delete),
        }))
    }

    /// Gives out a DLPack 1.x tensor that holds one reference of this one.
    pub fn to_dlpack_versioned(&self) -> *mut DLManagedTensorVersioned {
        unsafe extern "C-unwind" fn delete(tensor: *mut DLManagedTensorVersioned) {
            // SAFETY: consumers call a deleter once, with the tensor that has it: the box that is made below.
            let tensor = unsafe { Box::from_raw(tensor) };
            // SAFETY: `manager_ctx` is the reference that was given up below, and ends here.
            drop(unsafe { ObjectRef::from_raw(tensor.manager_ctx.cast()) });
        }
        Box::into_raw(Box::new(DLManagedTensorVersioned {
            version: DLPackVersion { major: 1, minor: 3 },
            manager_ctx: self.clone().into_object().into_raw().cast(),
            deleter: Some(delete),
            flags: 0,
            dl_tensor: *self.dl(),
        }))
    }

    /// A tensor with the description `prototype` that keeps `source` alive.
    ///
    /// # Safety
    /// `prototype` describes memory that `source` keeps alive.
    pub(crate) unsafe fn view_of(source: ObjectRef, prototype: &DLTensor) -> Tensor {
        // SAFETY: a description of memory, by this contract, has as many extents and strides as it says.
        let dims = unsafe { dims_of(prototype) };
        Tensor::make(*prototype, Some(dims), Owner::Object(source))
    }

    /// The object.
    pub fn into_object(self) -> ObjectRef {
        self.0.into_object()
    }

    /// The object, borrowed.
    pub const fn as_object(&self) -> &ObjectRef {
        self.0.as_object()
    }
}

/// # Safety
/// `shape` of the description points to `ndim` extents, and `strides` to as many strides or to nothing.
unsafe fn dims_of(dl: &DLTensor) -> (Vec<i64>, Vec<i64>) {
    // SAFETY: as many extents as the description says, by this contract.
    let shape = unsafe { dl.shape() }.to_vec();
    // SAFETY: as many strides as the description says, or none, by this contract.
    let strides = unsafe { dl.strides() };
    let strides = strides.map_or_else(|| compact_strides(&shape), <[i64]>::to_vec);
    (shape, strides)
}

/// Shape and strides of our own where the producer left the strides out.
///
/// # Safety
/// As [`dims_of`].
unsafe fn dims_if_needed(dl: &DLTensor) -> Option<(Vec<i64>, Vec<i64>)> {
    // SAFETY: the contract of `dims_of` is this one.
    (dl.strides.is_null() && dl.ndim > 0).then(|| unsafe { dims_of(dl) })
}

/// Device types whose data pointers are addresses.
fn is_addressable(device: DLDevice) -> bool {
    matches!(device.device_type, 1 | 2 | 3 | 10 | 11 | 13)
}

/// Device types that the CPU can read.
pub(crate) fn is_cpu(device: DLDevice) -> bool {
    matches!(device.device_type, 1 | 3 | 11 | 13)
}

/// # Safety
/// As [`dims_of`].
unsafe fn check_import(dl: &DLTensor, alignment: i64, contiguous: bool, flags: u64) -> Result<()> {
    let refuse = |kept: bool, message: &dyn Fn() -> String| -> Result<()> {
        OBJ_12
            .demand(Kind::Unsupported, kept, message)
            .map_err(|broken| Error::said("RuntimeError", broken))
    };
    refuse(flags & 4 == 0, &|| {
        "Subbyte type padding is not supported: the tensor pads its sub-byte elements to bytes"
            .into()
    })?;
    if alignment > 0 && is_addressable(dl.device) {
        let address = (dl.data as usize).wrapping_add(dl.byte_offset as usize);
        refuse(address.is_multiple_of(alignment as usize), &|| {
            format!("FromDLPack: Data is not aligned to {alignment} bytes.")
        })?;
    }
    // SAFETY: the contract of `is_contiguous` is that of `dims_of`.
    let compact = unsafe { dl.is_contiguous() };
    refuse(!contiguous || compact, &|| {
        "FromDLPack: Tensor is not contiguous.".into()
    })
}

impl From<Tensor> for Any {
    fn from(tensor: Tensor) -> Any {
        tensor.0.into()
    }
}

impl<'a> From<&'a Tensor> for AnyView<'a> {
    fn from(tensor: &'a Tensor) -> AnyView<'a> {
        AnyView::from(tensor.as_object())
    }
}

crate::value::try_from_any!(Tensor);

impl Argument for Tensor {
    const RULE: crate::rule::Rule = VAL_10;

    fn schema() -> Schema {
        Schema::plain("ffi.Tensor")
    }

    fn try_from_view(view: AnyView<'_>) -> Option<Tensor> {
        Ref::try_from_view(view).map(Tensor)
    }
}

/// The signature of an environment's allocator: prototype, result, context for errors, and how to report one.
pub(crate) type Allocator = unsafe extern "C-unwind" fn(
    *mut DLTensor,
    *mut *mut DLManagedTensorVersioned,
    *mut c_void,
    unsafe extern "C-unwind" fn(*mut c_void, *const std::ffi::c_char, *const std::ffi::c_char),
) -> i32;
