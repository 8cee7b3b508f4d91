//! Conversion of tensors to and from slices and vectors of Rust numbers.

use super::Tensor;
use super::memory::{is_cpu, out_of_reach};
use crate::function::{Error, Result};
use crate::object::OBJ_11;
use crate::rule::Kind;
use crate::tensor::{Scalar, extents_times};
use crate::value::device_to_text;
use std::fmt;

impl Tensor {
    /// Creates a compact row-major CPU tensor of these elements.
    ///
    /// ```
    /// use tvmspec::object::Tensor;
    ///
    /// let tensor = Tensor::from_slice(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])?;
    /// assert_eq!(tensor.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    /// assert_eq!(format!("{tensor:?}"), "Tensor { shape: [2, 3], dtype: float32, device: cpu:0 }");
    ///
    /// let error = tensor.to_vec::<i32>().unwrap_err();
    /// assert_eq!(error.kind(), "TypeError");
    /// assert!(Tensor::from_slice(&[1_u8, 2, 3], &[2, 3]).is_err());
    /// # Ok::<(), tvmspec::function::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns OBJ-11 of kind malformed if the extents do not match the number of elements, and of kind limit if there is not enough
    /// memory.
    pub fn from_slice<T: Scalar>(elements: &[T], shape: &[i64]) -> Result<Tensor> {
        let counted = count_of(shape);
        // Checked before memory is allocated.
        if counted != Some(elements.len()) {
            let message = format!(
                "{} elements for a tensor of shape {shape:?}",
                elements.len()
            );
            return Err(OBJ_11.rejected(Kind::Malformed, message).into());
        }
        let tensor = Tensor::empty(shape, T::DTYPE)?;
        let (from, to) = (elements.as_ptr().cast::<u8>(), tensor.dl().data.cast());
        // SAFETY: that many bytes of elements, all initialised, because no `Scalar` has padding; `empty` allocated whole bytes for as
        // many elements, and nothing else has seen the tensor.
        unsafe { std::ptr::copy_nonoverlapping(from, to, size_of_val(elements)) };
        Ok(tensor)
    }

    /// Returns a copy of the elements of a CPU tensor in row-major order, for any strides. No [`Tensor::fill`] runs at the same time. The
    /// callers of compiled functions order the writes of those functions.
    ///
    /// # Errors
    ///
    /// Returns OBJ-11:
    ///
    /// * a `TypeError` of kind type if the tensor's data type is not [`Scalar::DTYPE`]
    /// * a `RuntimeError` of kind unsupported if the tensor is on another device (copy it to the CPU first)
    /// * a `RuntimeError` of kind missing if the tensor has no memory for its elements
    /// * a `RuntimeError` of kind limit if there is no memory for a copy
    pub fn to_vec<T: Scalar>(&self) -> Result<Vec<T>> {
        let dl = self.dl();
        if dl.dtype != T::DTYPE {
            let message = format!("elements of `{}` are read as `{}`", dl.dtype, T::DTYPE);
            return Err(OBJ_11.rejected(Kind::Type, message).into());
        }
        // Checked before memory is reserved, because the extents of a tensor elsewhere can have any size.
        if !is_cpu(dl.device) {
            return Err(out_of_reach());
        }
        let count = self.count()?;
        if dl.data.is_null() && count > 0 {
            return Err(lacking(count, 0));
        }
        let mut elements = Vec::new();
        if elements.try_reserve_exact(count).is_err() {
            let message = format!("{count} elements have no room in memory");
            return Err(OBJ_11.rejected(Kind::Limit, message).into());
        }
        self.each_element(|bytes| elements.extend(T::first_native(bytes)))?;
        if elements.len() != count {
            return Err(lacking(count, elements.len()));
        }
        Ok(elements)
    }

    /// Returns the number of elements.
    fn count(&self) -> Result<usize> {
        count_of(self.shape()).ok_or_else(|| {
            let message = format!(
                "a tensor of shape {:?} has no count of elements",
                self.shape()
            );
            OBJ_11.rejected(Kind::Limit, message).into()
        })
    }
}

/// Returns the number of elements of `shape`. Returns `None` for a negative extent or a count beyond the address space.
fn count_of(shape: &[i64]) -> Option<usize> {
    usize::try_from(extents_times(1, shape)?).ok()
}

#[cold]
fn lacking(count: usize, there: usize) -> Error {
    let message = format!("a tensor of {count} elements has {there} in memory");
    OBJ_11.rejected(Kind::Missing, message).into()
}

/// Formats only shape, data type and device: there may be many elements, or on another device.
impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dl = self.dl();
        let device = device_to_text(dl.device);
        f.debug_struct("Tensor")
            .field("shape", &format_args!("{:?}", self.shape()))
            .field("dtype", &format_args!("{}", dl.dtype))
            .field("device", &format_args!("{device}"))
            .finish()
    }
}
