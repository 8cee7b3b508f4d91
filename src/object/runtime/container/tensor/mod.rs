//! Tensors: a DLPack description in an object, and what owns its memory.
//!
//! | bytes  | field                                  | rule   |
//! |--------|----------------------------------------|--------|
//! | 24..72 | the description (`DLTensor`)           | OBJ-11 |
//! | 72..   | what owns the data; shape and strides  | OBJ-11 |
//!
//! `memory` has its bytes, copied out and in; `scalar` its elements as Rust numbers; `dlpack` imports and exports it.

mod dlpack;
mod memory;
mod scalar;

pub(crate) use dlpack::TensorAllocator;
#[cfg(any(feature = "graph", feature = "vm"))]
pub(crate) use memory::copying;
pub use scalar::Scalar;

use crate::function::{Error, Result};
use crate::object::OBJ_11;
use crate::rule::Kind;
use crate::tensor::{Packing, TensorRecord, extents_times};
use crate::value::dlpack::DLTensor;
use crate::value::header::{Header, Object, ObjectRef, Ref, static_object};
use crate::value::types::ObjectIndex;
use crate::value::{
    Any, AnyView, Argument, DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned,
    Schema, VAL_10, index,
};
use std::ptr::NonNull;

/// A reference of a tensor object. It may be sent to any thread, and may end on any: what owns the memory is released there.
#[derive(Clone)]
#[repr(transparent)]
pub struct Tensor(Ref<TensorObj>);

/// The fixed part of a tensor.
#[repr(C)]
pub(crate) struct TensorObj {
    /// Counts, index and deleter.
    header: Header,
    /// What and where the elements are.
    pub dl: DLTensor,
}

const _: () = assert!(size_of::<TensorObj>() == 72);

static_object!(TensorObj, index::TENSOR);

/// What keeps the data alive.
enum DataOwner {
    /// Memory of this library.
    Memory(std::alloc::Layout, *mut u8),
    /// A DLPack tensor of a producer.
    Managed(*mut DLManagedTensor),
    /// The same of DLPack 1.x.
    Versioned(*mut DLManagedTensorVersioned),
    /// Another object.
    Object(#[allow(dead_code, reason = "held, and not read")] ObjectRef),
    /// A function to call, on whichever thread the tensor ends.
    Custom(Box<dyn FnOnce() + Send>),
    /// The same for memory that is only read.
    #[cfg(feature = "graph")]
    Constant(Box<dyn FnOnce() + Send>),
}

impl DataOwner {
    /// Whether the memory may be read alone. A view of a read-only tensor is read-only too.
    fn is_read_only(&self) -> bool {
        match self {
            DataOwner::Memory(..) | DataOwner::Managed(_) | DataOwner::Custom(_) => false,
            #[cfg(feature = "graph")]
            DataOwner::Constant(_) => true,
            DataOwner::Versioned(tensor) => {
                // SAFETY: a live managed tensor, by the contract of `from_dlpack_versioned`.
                let flags = unsafe { (**tensor).flags };
                flags & dlpack::READ_ONLY != 0
            }
            DataOwner::Object(source) => {
                Ref::<OwnTensor>::made(source).is_some_and(|own| own.read_only)
            }
        }
    }
}

/// A tensor that this library made: what other libraries make has [`TensorObj`] alone in common with it.
#[repr(C)]
struct OwnTensor {
    /// What every library knows of a tensor.
    public: TensorObj,
    /// What keeps the data alive; taken out when the tensor ends.
    owner: Option<DataOwner>,
    /// Shape and strides. A raw pointer: moving a box would end the description's view of it.
    dims: Option<NonNull<[i64]>>,
    /// Whether the producer forbids writing to the memory (OBJ-12).
    read_only: bool,
}

// SAFETY: `#[repr(C)]` with the header first; only reached through its deleter.
unsafe impl Object for OwnTensor {
    fn type_index() -> ObjectIndex {
        ObjectIndex::fixed(index::TENSOR)
    }

    // Tensors of other libraries have the same index and another memory behind the public part.
    fn matches(_: i32) -> bool {
        false
    }
}

impl Drop for OwnTensor {
    fn drop(&mut self) {
        match self.owner.take() {
            Some(DataOwner::Memory(layout, data)) => {
                // SAFETY: allocated with this layout in `Tensor::empty`.
                unsafe { std::alloc::dealloc(data, layout) }
            }
            Some(DataOwner::Managed(tensor)) => {
                // SAFETY: a live managed tensor, which belongs to this one by the contract of `from_dlpack`.
                if let Some(delete) = unsafe { (*tensor).deleter } {
                    // SAFETY: the producer's deleter for this tensor, which is called once, because the owner is taken out
                    // above.
                    unsafe { delete(tensor) }
                }
            }
            Some(DataOwner::Versioned(tensor)) => {
                // SAFETY: a live managed tensor, which belongs to this one by the contract of `from_dlpack_versioned`.
                if let Some(delete) = unsafe { (*tensor).deleter } {
                    // SAFETY: the producer's deleter for this tensor, which is called once, because the owner is taken out
                    // above.
                    unsafe { delete(tensor) }
                }
            }
            Some(DataOwner::Custom(finish)) => finish(),
            #[cfg(feature = "graph")]
            Some(DataOwner::Constant(finish)) => finish(),
            Some(DataOwner::Object(_)) | None => {}
        }
        if let Some(dims) = self.dims {
            // SAFETY: came from a box in `make`, and ends with the tensor.
            drop(unsafe { Box::from_raw(dims.as_ptr()) });
        }
    }
}

/// Strides of a compact row-major tensor of these extents, in elements; 1 for the innermost, none for a scalar.
pub(crate) fn compact_strides(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1i64; shape.len()];
    for at in (1..shape.len()).rev() {
        // Wrapping: extents of a description may be anything, and no memory holds a tensor whose strides do not fit.
        strides[at - 1] = strides[at].wrapping_mul(shape[at]);
    }
    strides
}

impl Tensor {
    /// A tensor of the description `dl`, whose memory `owner` keeps alive. With `dims`, extents and strides, the description points
    /// to copies that the tensor owns; without, to those of the owner, which live as long.
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
        // Only until `Ref::new` writes the deleter of the type.
        unsafe extern "C-unwind" fn nothing(_: *mut Header, _: i32) {}
        let object = Ref::new(OwnTensor {
            public: TensorObj {
                header: Header::new(index::TENSOR, nothing),
                dl,
            },
            read_only: owner.is_read_only(),
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

    /// A compact tensor of zeros on the CPU, at a multiple of 64 bytes: that is the alignment that compiled code expects.
    ///
    /// # Errors
    ///
    /// OBJ-11 of kind limit for a negative extent, for a size that does not fit the address space, and where there is no memory.
    pub fn empty(shape: &[i64], dtype: DLDataType) -> Result<Tensor> {
        let elements = extents_times(1, shape).and_then(|elements| u64::try_from(elements).ok());
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
        let rejected = |why: &str| {
            let message = format!("a tensor of shape {shape:?} {why}");
            Error::from(OBJ_11.rejected(Kind::Limit, message))
        };
        // Apart from a size that is too large, though neither has a layout.
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
            device: DLDevice::CPU,
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

    /// Whether there are whole bytes for each element, as graphs have it (GRF-33), and not only as many as small elements take
    /// when they are packed. Known of what [`Tensor::empty`] and [`Tensor::over`] made.
    pub(crate) fn has_whole_bytes(&self) -> bool {
        let dtype = self.dl().dtype;
        let bits = u32::from(dtype.bits) * u32::from(dtype.lanes);
        bits.is_multiple_of(8)
            || Ref::<OwnTensor>::made(self.0.as_object()).is_some_and(|own| match own.owner {
                Some(DataOwner::Memory(..) | DataOwner::Custom(_)) => true,
                #[cfg(feature = "graph")]
                Some(DataOwner::Constant(_)) => true,
                _ => false,
            })
    }

    /// Whether the producer of the memory forbids writing to it: bit 0 of the flags of a DLPack 1.x tensor (OBJ-12), or a
    /// parameter that is linked into a library (GRF-43). A view of such a tensor inherits it. [`Tensor::fill`] and the copies into
    /// a tensor reject it. Known of tensors that this library made; DLPack before 1.0 has no flags.
    pub fn is_read_only(&self) -> bool {
        Ref::<OwnTensor>::made(self.as_object()).is_some_and(|own| own.read_only)
    }

    /// The description: device, type, extents, strides in elements and `byte_offset`. Its addresses are valid while the tensor
    /// lives; what reads or writes through them is ordered by the caller.
    pub fn dl(&self) -> &DLTensor {
        &self.0.dl
    }

    /// The extents, the outermost first; empty for a scalar.
    pub fn shape(&self) -> &[i64] {
        // SAFETY: tensors of this ABI have a readable shape.
        unsafe { self.dl().shape() }
    }

    /// Size of the elements in bytes, elements of less than a byte packed; negative extents count as 0 (OBJ-11).
    pub fn nbytes(&self) -> usize {
        // SAFETY: tensors of this ABI have a readable shape.
        usize::try_from(unsafe { self.dl().bytes() }).unwrap_or(usize::MAX)
    }

    /// The object, with the reference that this handle held.
    pub fn into_object(self) -> ObjectRef {
        self.0.into_object()
    }

    /// The object, borrowed.
    pub const fn as_object(&self) -> &ObjectRef {
        self.0.as_object()
    }
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
