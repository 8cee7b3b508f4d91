//! Tensors: objects with a DLPack description and an owner of the memory.
//!
//! | bytes  | field                                  | rule   |
//! |--------|----------------------------------------|--------|
//! | 24..72 | the description (`DLTensor`)           | OBJ-11 |
//! | 72..   | owner of the data; shape and strides   | OBJ-11 |
//!
//! `memory` reads and writes the bytes, `scalar` converts elements to Rust numbers, and `dlpack` imports and exports tensors.

mod call;
mod dlpack;
mod memory;
mod scalar;

pub(crate) use dlpack::TensorAllocator;
pub(crate) use memory::copying;

use crate::function::{Error, Result};
use crate::object::OBJ_11;
use crate::rule::Kind;
use crate::tensor::{Device, Dtype, Packing, TensorRecord, extents_times};
use crate::value::dlpack::DLTensor;
use crate::value::header::{Header, ObjectRef, Ref, own_object, static_object};
use crate::value::{AnyView, DLManagedTensor, DLManagedTensorVersioned, Schema, index};
use std::ptr::NonNull;

/// A reference to a tensor object. It may be sent to any thread, and dropped on any thread; the memory's owner is released there.
#[derive(Clone)]
#[repr(transparent)]
pub struct Tensor(Ref<TensorObj>);

/// The fixed part of a tensor.
#[repr(C)]
pub(crate) struct TensorObj {
    /// Reference counts, type index and deleter.
    header: Header,
    /// Description of the elements.
    pub dl: DLTensor,
}

const _: () = assert!(size_of::<TensorObj>() == 72);

static_object!(TensorObj, index::TENSOR);

/// The owner that keeps the data alive.
enum DataOwner {
    /// Memory of this library.
    Memory(std::alloc::Layout, *mut u8),
    /// A DLPack tensor from a producer.
    Managed(*mut DLManagedTensor),
    /// A DLPack 1.x tensor from a producer.
    Versioned(*mut DLManagedTensorVersioned),
    /// Another object.
    Object(#[allow(dead_code, reason = "held, and not read")] ObjectRef),
    /// A function to call when the tensor is dropped, on that thread.
    Custom(Box<dyn FnOnce() + Send>),
    /// Like `Custom`, for memory that is only read.
    Constant(Box<dyn FnOnce() + Send>),
}

impl DataOwner {
    /// Returns whether the memory may only be read. A view of a read-only tensor is also read-only.
    fn is_read_only(&self) -> bool {
        match self {
            DataOwner::Memory(..) | DataOwner::Managed(_) | DataOwner::Custom(_) => false,
            DataOwner::Constant(_) => true,
            DataOwner::Versioned(tensor) => {
                // SAFETY: a live managed tensor, by the contract of `from_dlpack_versioned`.
                let flags = unsafe { (**tensor).flags };
                flags & dlpack::READ_ONLY != 0
            }
            DataOwner::Object(source) => {
                Ref::<OwnTensor>::downcast_boxed(source).is_some_and(|own| own.read_only)
            }
        }
    }
}

/// A tensor that this library created. Tensors of other libraries share only [`TensorObj`] with it.
#[repr(C)]
struct OwnTensor {
    /// The part that every library knows.
    public: TensorObj,
    /// The owner that keeps the data alive. Taken out when the tensor is dropped.
    owner: Option<DataOwner>,
    /// Shape and strides. A raw pointer, because moving a box would invalidate the description's pointers into it.
    dims: Option<NonNull<[i64]>>,
    /// True if the producer forbids writing to the memory (OBJ-12).
    read_only: bool,
}

// SAFETY: `#[repr(C)]`, `public` first; the rest is only reached through its deleter.
own_object!(unsafe OwnTensor, index::TENSOR);

impl Drop for OwnTensor {
    fn drop(&mut self) {
        match self.owner.take() {
            Some(DataOwner::Memory(layout, data)) => {
                // SAFETY: allocated with this layout in `Tensor::empty`.
                unsafe { std::alloc::dealloc(data, layout) }
            }
            Some(DataOwner::Managed(tensor)) => {
                // SAFETY: a live managed tensor, which this one owns by the contract of `from_dlpack`.
                if let Some(delete) = unsafe { (*tensor).deleter } {
                    // SAFETY: the producer's deleter for this tensor, which is called once, because the owner is taken out above.
                    unsafe { delete(tensor) }
                }
            }
            Some(DataOwner::Versioned(tensor)) => {
                // SAFETY: a live managed tensor, which this one owns by the contract of `from_dlpack_versioned`.
                if let Some(delete) = unsafe { (*tensor).deleter } {
                    // SAFETY: the producer's deleter for this tensor, which is called once, because the owner is taken out above.
                    unsafe { delete(tensor) }
                }
            }
            Some(DataOwner::Custom(finish) | DataOwner::Constant(finish)) => finish(),
            Some(DataOwner::Object(_)) | None => {}
        }
        if let Some(dims) = self.dims {
            // SAFETY: came from a box in `make`, and is freed once, with the tensor.
            drop(unsafe { Box::from_raw(dims.as_ptr()) });
        }
    }
}

/// Returns the strides of a compact row-major tensor, in elements. The innermost stride is 1, and a scalar has no strides.
pub(crate) fn compact_strides(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1i64; shape.len()];
    for at in (1..shape.len()).rev() {
        // The product may overflow: a description may have any extents, and no memory contains a tensor whose strides do not fit.
        strides[at - 1] = strides[at].wrapping_mul(shape[at]);
    }
    strides
}

impl Tensor {
    /// Creates a tensor with the description `dl`, whose memory `owner` keeps alive. With `dims` (extents and strides), the description
    /// points to copies that the tensor owns. Without `dims`, it points to the arrays of the owner, which live as long.
    fn make(mut dl: DLTensor, dims: Option<(Vec<i64>, Vec<i64>)>, owner: DataOwner) -> Tensor {
        // One block for both, extents first.
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
        let object = Ref::new(OwnTensor {
            public: TensorObj {
                header: Header::placeholder(),
                dl,
            },
            read_only: owner.is_read_only(),
            owner: Some(owner),
            dims,
        });
        // SAFETY: an `OwnTensor` starts with the public part.
        Tensor(unsafe { Ref::from_raw(object.into_object().into_raw()) })
    }

    /// Creates a CPU tensor with the shape, type and data of a record.
    ///
    /// # Errors
    ///
    /// Returns TEN-35 if the record does not store the whole tensor, and OBJ-11 if there is not enough memory.
    pub fn from_record(record: &TensorRecord<'_>) -> Result<Tensor> {
        // Whole bytes for each element are expected by releases that do not pack. Releases that pack read the beginning of the memory
        // (TEN-31).
        let elements = record.elements(Packing::Each)?;
        let tensor = Tensor::empty(elements.shape(), elements.dtype())?;
        let (bytes, data) = (elements.bytes(), tensor.dl().data.cast::<u8>());
        // SAFETY: `empty` allocated whole bytes for each element, as many as `Packing::Each` counts, and the tensor is not shared yet.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), data, bytes.len()) };
        Ok(tensor)
    }

    /// Creates a compact tensor of zeros on the CPU, aligned to 64 bytes, as compiled code expects. [`Tensor::empty_on`] creates one on
    /// another device, and [`Tensor::from_slice`] one with given elements.
    ///
    /// # Errors
    ///
    /// Returns OBJ-11 of kind limit for a negative extent, for a size beyond the address space, and if there is not enough memory.
    pub fn empty(shape: &[i64], dtype: Dtype) -> Result<Tensor> {
        let elements = extents_times(1, shape).and_then(|elements| u64::try_from(elements).ok());
        let bytes = elements
            .map(|elements| dtype.bytes_of(elements))
            .and_then(|bytes| usize::try_from(bytes).ok());
        // Up to 0.20 every element takes whole bytes. The allocation is large enough for compiled code and graphs of those releases.
        let element = (u64::from(dtype.bits) * u64::from(dtype.lanes)).div_ceil(8);
        let whole = elements
            .and_then(|elements| elements.checked_mul(element))
            .and_then(|bytes| usize::try_from(bytes).ok());
        let layout = bytes
            .and(whole)
            .and_then(|bytes| std::alloc::Layout::from_size_align(bytes.max(1), 64).ok());
        let rejected = |why: &str| {
            let message = format!("a tensor of shape {shape:?} {why}");
            Error::from(OBJ_11.rejected(Kind::Limit, message))
        };
        // Reported separately from a size that is too large, although neither has a layout.
        if shape.iter().any(|extent| *extent < 0) {
            return Err(rejected("has a negative extent"));
        }
        let layout = layout.ok_or_else(|| rejected("is too large"))?;
        // SAFETY: the layout is not empty.
        let data = unsafe { std::alloc::alloc_zeroed(layout) };
        if data.is_null() {
            let bytes = layout.size();
            return Err(rejected(&format!(
                "needs {bytes} bytes, and there is no memory for them"
            )));
        }
        let dl = DLTensor {
            data: data.cast(),
            device: Device::CPU,
            ndim: shape.len() as i32,
            dtype,
            shape: std::ptr::null_mut(),
            strides: std::ptr::null_mut(),
            byte_offset: 0,
        };
        let dims = (shape.to_vec(), compact_strides(shape));
        Ok(Tensor::make(
            dl,
            Some(dims),
            DataOwner::Memory(layout, data),
        ))
    }

    /// Returns whether the memory has whole bytes for each element, as graphs expect (GRF-33), and not just enough for packed elements.
    /// Known only for tensors from [`Tensor::empty`] and [`Tensor::over`].
    pub(crate) fn has_whole_bytes(&self) -> bool {
        let dtype = self.dl().dtype;
        let bits = u32::from(dtype.bits) * u32::from(dtype.lanes);
        bits.is_multiple_of(8)
            || Ref::<OwnTensor>::downcast_boxed(self.0.as_object()).is_some_and(|own| {
                matches!(
                    own.owner,
                    Some(DataOwner::Memory(..) | DataOwner::Custom(_) | DataOwner::Constant(_))
                )
            })
    }

    /// Returns whether the memory must not be written. This holds if bit 0 of the flags of a DLPack 1.x tensor is set (OBJ-12), and for a
    /// parameter that is linked into a library (GRF-43). A view of such a tensor inherits it. [`Tensor::fill`] and copies into the tensor
    /// fail. Known only for tensors that this library created. DLPack before 1.0 has no flags.
    pub fn is_read_only(&self) -> bool {
        Ref::<OwnTensor>::downcast_boxed(self.as_object()).is_some_and(|own| own.read_only)
    }

    /// Returns the description: device, type, extents, strides in elements and `byte_offset`. Its addresses are valid while the tensor
    /// lives. The caller orders reads and writes through them.
    pub fn dl(&self) -> &DLTensor {
        &self.0.dl
    }

    /// Returns the element type.
    pub fn dtype(&self) -> Dtype {
        self.dl().dtype
    }

    /// Returns the device of the memory.
    pub fn device(&self) -> Device {
        self.dl().device
    }

    /// Returns the extents, the outermost first. A scalar has none.
    pub fn shape(&self) -> &[i64] {
        // SAFETY: tensors of this ABI have a readable shape.
        unsafe { self.dl().shape() }
    }

    /// Returns the size of the elements in bytes, with sub-byte elements packed. Negative extents count as 0 (OBJ-11).
    pub fn nbytes(&self) -> usize {
        // SAFETY: tensors of this ABI have a readable shape.
        usize::try_from(unsafe { self.dl().bytes() }).unwrap_or(usize::MAX)
    }

    /// Returns the object with this handle's reference.
    pub fn into_object(self) -> ObjectRef {
        self.0.into_object()
    }

    /// Borrows the object.
    pub const fn as_object(&self) -> &ObjectRef {
        self.0.as_object()
    }
}

impl<'a> From<&'a Tensor> for AnyView<'a> {
    fn from(tensor: &'a Tensor) -> AnyView<'a> {
        AnyView::from(tensor.as_object())
    }
}

crate::value::handle_value!(Tensor, TensorObj, Schema::plain("ffi.Tensor"));
