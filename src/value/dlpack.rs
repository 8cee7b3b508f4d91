//! The DLPack structs, in the layout of DLPack 1.x.

use crate::tensor::{Device, Dtype};
use std::ffi::c_void;

/// A borrowed description of a tensor. 48 bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DLTensor {
    /// Address of the data (a handle for some devices). The first element is `byte_offset` bytes later.
    pub data: *mut c_void,
    /// Device of the data.
    pub device: Device,
    /// Number of dimensions.
    pub ndim: i32,
    /// Type of the elements.
    pub dtype: Dtype,
    /// `ndim` extents; may be null if `ndim` is 0.
    pub shape: *mut i64,
    /// `ndim` strides in elements; null means compact and row-major.
    pub strides: *mut i64,
    /// Bytes from `data` to the first element.
    pub byte_offset: u64,
}

/// An owned tensor in the exchange format of DLPack before 1.0. 64 bytes.
#[derive(Debug)]
#[repr(C)]
pub struct DLManagedTensor {
    /// Description of the elements.
    pub dl_tensor: DLTensor,
    /// Private data of the producer.
    pub manager_ctx: *mut c_void,
    /// Returns the tensor to the producer; may be null.
    pub deleter: Option<unsafe extern "C-unwind" fn(*mut DLManagedTensor)>,
}

/// Version of DLPack of an exchanged tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct DLPackVersion {
    /// Another major version has another layout. Neither upstream's readers nor this one check it.
    pub major: u32,
    /// Readers accept any minor.
    pub minor: u32,
}

/// An owned tensor in the exchange format of DLPack 1.x. 80 bytes.
#[derive(Debug)]
#[repr(C)]
pub struct DLManagedTensorVersioned {
    /// DLPack version of the producer.
    pub version: DLPackVersion,
    /// Private data of the producer.
    pub manager_ctx: *mut c_void,
    /// Returns the tensor to the producer; may be null.
    pub deleter: Option<unsafe extern "C-unwind" fn(*mut DLManagedTensorVersioned)>,
    /// Bit 0 read-only, bit 1 copied, bit 2 sub-byte types padded to bytes.
    pub flags: u64,
    /// Description of the elements.
    pub dl_tensor: DLTensor,
}

const _: () = assert!(size_of::<Dtype>() == 4 && size_of::<Device>() == 8);
#[cfg(target_pointer_width = "64")]
const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<DLTensor>() == 48 && offset_of!(DLTensor, ndim) == 16);
    assert!(offset_of!(DLTensor, dtype) == 20 && offset_of!(DLTensor, byte_offset) == 40);
    assert!(size_of::<DLManagedTensor>() == 64 && offset_of!(DLManagedTensor, deleter) == 56);
    assert!(size_of::<DLManagedTensorVersioned>() == 80);
    assert!(offset_of!(DLManagedTensorVersioned, dl_tensor) == 32);
};

// SAFETY: a description is plain data; reading through its pointers is unsafe.
unsafe impl Send for DLTensor {}
// SAFETY: a description is plain data; reading through its pointers is unsafe.
unsafe impl Sync for DLTensor {}

impl DLTensor {
    /// Returns the extents in elements, the outermost first.
    ///
    /// # Safety
    /// `shape` points to `ndim` extents, or `ndim` is not positive.
    pub unsafe fn shape(&self) -> &[i64] {
        // SAFETY: `ndim` extents, by this contract.
        unsafe { self.list(self.shape) }
    }

    /// Returns the strides, or `None` for a compact tensor.
    ///
    /// # Safety
    /// `strides` is null or points to `ndim` strides.
    pub unsafe fn strides(&self) -> Option<&[i64]> {
        // SAFETY: `ndim` strides, by this contract.
        (!self.strides.is_null()).then(|| unsafe { self.list(self.strides) })
    }

    /// Returns a list of `ndim` numbers.
    ///
    /// # Safety
    /// `ptr` points to `ndim` numbers, or `ndim` is not positive.
    unsafe fn list(&self, ptr: *const i64) -> &[i64] {
        match usize::try_from(self.ndim) {
            // Without dimensions, `shape` may be null or dangling, but a slice needs an aligned address.
            Ok(count) if count > 0 && !ptr.is_null() => {
                // SAFETY: that many numbers, by this contract.
                unsafe { std::slice::from_raw_parts(ptr, count) }
            }
            _ => &[],
        }
    }

    /// Returns the number of elements. Negative extents count as zero.
    ///
    /// # Safety
    /// As for [`DLTensor::shape`].
    pub unsafe fn elements(&self) -> u64 {
        // SAFETY: the contract of `shape` is this one.
        let shape = unsafe { self.shape() };
        // OBJ-12: a producer may state any extents. The product saturates, so that it exceeds every limit instead of wrapping.
        shape.iter().fold(1u64, |product, &extent| {
            product.saturating_mul(u64::try_from(extent).unwrap_or(0))
        })
    }

    /// Returns the size of the elements in bytes, with sub-byte types packed.
    ///
    /// # Safety
    /// As for [`DLTensor::shape`].
    pub unsafe fn bytes(&self) -> u64 {
        // SAFETY: the contract of `elements` is this one.
        let elements = unsafe { self.elements() };
        self.dtype.bytes_of(elements)
    }

    /// Returns whether the elements are compact in row-major order. Extents of 1 and empty tensors may have any strides.
    ///
    /// # Safety
    /// As for [`DLTensor::shape`] and [`DLTensor::strides`].
    pub unsafe fn is_contiguous(&self) -> bool {
        // SAFETY: the contract of `shape` is part of this one.
        let shape = unsafe { self.shape() };
        // SAFETY: the contract of `strides` is part of this one.
        let strides = unsafe { self.strides() };
        let Some(strides) = strides else { return true };
        // OBJ-12: a tensor without elements is compact with any strides.
        if shape.contains(&0) {
            return true;
        }
        let mut expected = 1i64;
        for (&extent, &stride) in shape.iter().zip(strides).rev() {
            if extent == 1 {
                continue;
            }
            if stride != expected {
                return false;
            }
            // The product overflows only for a shape that is too large for any memory. Such a tensor is rejected by its size elsewhere.
            expected = expected.wrapping_mul(extent);
        }
        true
    }
}
