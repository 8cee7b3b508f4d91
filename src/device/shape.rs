//! The little geometry that the contract needs: bytes of a tensor, and whether it lies in one piece.

use crate::device::{Device, Dtype, Space};
use crate::release::Release;
use crate::tensor::extents_times;
use crate::value::DLTensor;

/// A tensor that is borrowed, on any device.
#[derive(Clone, Copy, Debug)]
pub struct TensorRef<'a> {
    /// The handle of its memory.
    pub data: Space,
    /// Where the memory is.
    pub device: Device,
    /// Element type.
    pub dtype: Dtype,
    /// Extent per axis.
    pub shape: &'a [i64],
    /// Distance per axis, in elements; `None` means row-major and in one piece.
    pub strides: Option<&'a [i64]>,
    /// Bytes from the start of `data` to the first element.
    pub byte_offset: u64,
}

impl<'a> TensorRef<'a> {
    /// The tensor of a description.
    ///
    /// # Safety
    ///
    /// `dl` has `ndim` extents, and as many strides or none, which stay readable and unchanged for `'a`.
    pub(crate) unsafe fn of(dl: &'a DLTensor) -> TensorRef<'a> {
        // SAFETY: the extents are readable for `'a`, by this contract.
        let shape = unsafe { dl.shape() };
        // SAFETY: the strides are readable for `'a` where there are any, by this contract.
        let strides = unsafe { dl.strides() };
        TensorRef {
            data: Space(dl.data),
            device: dl.device.into(),
            dtype: Dtype::from(dl.dtype),
            shape,
            strides,
            byte_offset: dl.byte_offset,
        }
    }

    /// Bytes of the elements, by the rule of the newest release.
    pub fn nbytes(&self) -> Option<usize> {
        byte_size(self.shape, self.dtype, Release::LAST)
    }

    /// Whether the elements lie in one piece, by the rule of the newest release.
    pub fn is_contiguous(&self) -> bool {
        is_contiguous(self.shape, self.strides, Release::LAST)
    }
}

/// Bytes of a tensor in `release`; `None` for a negative extent or more than a `usize` holds (DEV-15).
///
/// Up to 0.20 every element is rounded up to bytes, from 0.21 on the whole: three `int4` take 3 bytes, then 2.
/// 0.21 to 0.25 still count a byte for each one-bit `uint` of one lane.
pub fn byte_size(shape: &[i64], dtype: Dtype, release: Release) -> Option<usize> {
    // DEV-15: a size beyond the address space is rejected, so nothing may wrap before that is seen.
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

/// Whether elements lie in one piece and row-major order, as `release` sees it (DEV-17).
///
/// Up to 0.10 every stride counts; from 0.11 on axes of extent 1 are skipped, from 0.25 on a tensor without elements is contiguous.
pub fn is_contiguous(shape: &[i64], strides: Option<&[i64]>, release: Release) -> bool {
    let Some(strides) = strides else {
        return true;
    };
    if strides.len() != shape.len() {
        return false;
    }
    // DEV-17: up to 0.24 a tensor without elements is held to its strides like any other.
    let at = release.minor();
    if at >= 25 && shape.contains(&0) {
        return true;
    }
    // DEV-17: an axis of extent 1 is never stepped along, so that its stride means nothing; up to 0.10 it counts all the same.
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
