//! Tensors as slices and vectors of Rust numbers.

use super::Tensor;
use super::memory::{is_cpu, out_of_reach};
use crate::function::{Error, Result};
use crate::object::OBJ_11;
use crate::rule::Kind;
use crate::tensor::extents_times;
use crate::value::{DLDataType, device_to_text};
use half::{bf16, f16};
use std::fmt;

/// A Rust type that elements of a tensor convert to and from: integers and floats of whole bytes, `bool`, and of the crate `half`
/// [`struct@f16`] and [`bf16`].
///
/// Sealed: elements are copied as bytes, so a type must have no padding, and a value for any bytes of its width.
pub trait Scalar: Copy + sealed::ElementBytes {
    /// The data type of a tensor of these.
    const DTYPE: DLDataType;
}

mod sealed {
    /// Elements as bytes in the order of this machine.
    ///
    /// # Safety
    /// The type has no padding: every byte of a value is initialised.
    pub unsafe trait ElementBytes: Sized {
        /// The element that starts `bytes`; `None` where they are fewer than it takes.
        fn first(bytes: &[u8]) -> Option<Self>;
    }
}

macro_rules! scalars {
    ($($type:ty: $code:literal)*) => {$(
        // SAFETY: an integer, a float, or the 16 bits of one in a transparent struct: no padding.
        unsafe impl sealed::ElementBytes for $type {
            #[inline]
            fn first(bytes: &[u8]) -> Option<$type> {
                bytes.first_chunk().map(|bytes| <$type>::from_ne_bytes(*bytes))
            }
        }

        impl Scalar for $type {
            const DTYPE: DLDataType = DLDataType::scalar($code, (size_of::<$type>() * 8) as u8);
        }
    )*};
}

scalars! { i8: 0 i16: 0 i32: 0 i64: 0 u8: 1 u16: 1 u32: 1 u64: 1 f32: 2 f64: 2 f16: 2 bf16: 4 }

// SAFETY: one byte, which is 0 or 1.
unsafe impl sealed::ElementBytes for bool {
    // Compiled code takes any byte but 0 for true; in a Rust `bool` other bytes than 0 and 1 are undefined.
    fn first(bytes: &[u8]) -> Option<bool> {
        bytes.first().map(|byte| *byte != 0)
    }
}

impl Scalar for bool {
    const DTYPE: DLDataType = DLDataType::scalar(6, 8);
}

impl Tensor {
    /// A compact CPU tensor of these elements, row-major.
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
    /// OBJ-11: of kind malformed where the extents count more or fewer elements than these, of kind limit where there is no memory
    /// for a copy.
    pub fn from_slice<T: Scalar>(elements: &[T], shape: &[i64]) -> Result<Tensor> {
        let counted = count_of(shape);
        // Before memory is taken for them.
        if counted != Some(elements.len()) {
            let message = format!(
                "{} elements for a tensor of shape {shape:?}",
                elements.len()
            );
            return Err(OBJ_11.rejected(Kind::Malformed, message).into());
        }
        let tensor = Tensor::empty(shape, T::DTYPE)?;
        let (from, to) = (elements.as_ptr().cast::<u8>(), tensor.dl().data.cast());
        // SAFETY: so many bytes of elements, all initialised (`ElementBytes`); `empty` made whole bytes for each of as many
        // elements, and no one else has seen the tensor.
        unsafe { std::ptr::copy_nonoverlapping(from, to, size_of_val(elements)) };
        Ok(tensor)
    }

    /// A copy of the elements of a CPU tensor in row-major order, whatever its strides. No [`Tensor::fill`] runs meanwhile;
    /// compiled functions that write to the tensor are ordered by those who call them.
    ///
    /// # Errors
    ///
    /// OBJ-11: a `TypeError`, of kind type, where the tensor is of another data type than [`Scalar::DTYPE`]; a `RuntimeError` of
    /// kind unsupported where it is on another device (copy it to the CPU first), of kind missing where it has no memory for
    /// elements that it counts, and of kind limit where there is no memory for a copy.
    pub fn to_vec<T: Scalar>(&self) -> Result<Vec<T>> {
        let dl = self.dl();
        if dl.dtype != T::DTYPE {
            let message = format!("elements of `{}` are read as `{}`", dl.dtype, T::DTYPE);
            return Err(OBJ_11.rejected(Kind::Type, message).into());
        }
        // Before memory is reserved: the extents of a tensor elsewhere may count anything.
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
        self.each_element(|bytes| elements.extend(T::first(bytes)))?;
        if elements.len() != count {
            return Err(lacking(count, elements.len()));
        }
        Ok(elements)
    }

    /// How many elements the extents count.
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

/// How many elements `shape` counts; `None` for a negative extent, and for more than memory counts.
fn count_of(shape: &[i64]) -> Option<usize> {
    usize::try_from(extents_times(1, shape)?).ok()
}

#[cold]
fn lacking(count: usize, there: usize) -> Error {
    let message = format!("a tensor of {count} elements has {there} in memory");
    OBJ_11.rejected(Kind::Missing, message).into()
}

/// Shape, data type and device; elements may be many, and on another device.
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
