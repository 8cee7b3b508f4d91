//! The geometry of tensors: their size in bytes, and whether they are contiguous.

use crate::device::{Device, Dtype, Space};
use crate::release::Release;
use crate::tensor::extents_times;
use crate::value::DLTensor;

/// A borrowed tensor on any device.
#[derive(Clone, Copy, Debug)]
pub struct TensorRef<'a> {
    /// The handle of its memory.
    pub data: Space,
    /// The device of the memory.
    pub device: Device,
    /// The element type.
    pub dtype: Dtype,
    /// The extent per axis.
    pub shape: &'a [i64],
    /// The distance per axis, in elements; `None` means contiguous and row-major.
    pub strides: Option<&'a [i64]>,
    /// The number of bytes from the start of `data` to the first element.
    pub byte_offset: u64,
}

impl<'a> TensorRef<'a> {
    /// Creates the reference for a C description.
    ///
    /// # Safety
    ///
    /// `dl` has `ndim` extents, and the same number of strides or no strides. They stay readable and unchanged for `'a`.
    pub(crate) unsafe fn from_dltensor(dl: &'a DLTensor) -> TensorRef<'a> {
        // SAFETY: the extents are readable for `'a`, by this function's contract.
        let shape = unsafe { dl.shape() };
        // SAFETY: the strides are readable for `'a` where there are any, by this function's contract.
        let strides = unsafe { dl.strides() };
        TensorRef {
            data: Space(dl.data),
            device: dl.device,
            dtype: dl.dtype,
            shape,
            strides,
            byte_offset: dl.byte_offset,
        }
    }

    /// Returns the bytes of the elements, by the rule of the newest release.
    pub fn nbytes(&self) -> Option<usize> {
        byte_size(self.shape, self.dtype, Release::LAST)
    }

    /// Returns whether the elements are contiguous, by the rule of the newest release.
    pub fn is_contiguous(&self) -> bool {
        is_contiguous(self.shape, self.strides, Release::LAST)
    }
}

/// Returns the bytes of a tensor in `release`, or `None` for a negative extent or a size that does not fit into a `usize` (DEV-15).
///
/// Up to 0.20, each element is rounded up to whole bytes. From 0.21 on, only the total is rounded up. For example, three `int4` take 3
/// bytes up to 0.20, and 2 bytes later. Releases 0.21 to 0.25 still count a byte for each one-bit `uint` with one lane.
pub fn byte_size(shape: &[i64], dtype: Dtype, release: Release) -> Option<usize> {
    // DEV-15: a size beyond the address space is rejected, so nothing may wrap around before the check.
    let elements = extents_times(1, shape)?;
    let bits = u128::from(dtype.bits) * u128::from(dtype.lanes);
    let is_bool = (dtype.code, dtype.bits, dtype.lanes) == (Dtype::UINT, 1, 1);
    let per_element = release.minor() <= if is_bool { 25 } else { 20 };
    let bytes = if per_element {
        elements.checked_mul(bits.div_ceil(8))?
    } else {
        elements.checked_mul(bits)?.div_ceil(8)
    };
    usize::try_from(bytes).ok()
}

/// Returns whether the elements are contiguous and in row-major order, as `release` decides it (DEV-17).
///
/// Up to 0.10 every stride counts. From 0.11 on axes of extent 1 are skipped, and from 0.25 on a tensor without elements is
/// contiguous.
pub fn is_contiguous(shape: &[i64], strides: Option<&[i64]>, release: Release) -> bool {
    let Some(strides) = strides else {
        return true;
    };
    if strides.len() != shape.len() {
        return false;
    }
    // DEV-17: up to 0.24 the strides of a tensor without elements are checked as those of any other.
    let at = release.minor();
    if at >= 25 && shape.contains(&0) {
        return true;
    }
    // DEV-17: no step is ever made along an axis of extent 1, so its stride is meaningless. Up to 0.10 it counts nevertheless.
    let exempt = at >= 11;
    let mut expected: i64 = 1;
    for (&extent, &stride) in shape.iter().zip(strides).rev() {
        if exempt && extent == 1 {
            continue;
        }
        if stride != expected {
            return false;
        }
        expected = expected.wrapping_mul(extent);
    }
    true
}
