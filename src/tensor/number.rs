//! Rust numbers as elements of tensors, and conversion of stored tensors to and from them.

use super::{Dtype, Packing, TEN_01, TensorRecord};
use crate::rule::{Kind, Violation};
use std::borrow::Cow;

/// A Rust type that matches one element of a tensor: integers and floats of whole bytes, and `bool`. With the feature `runtime` also `f16`
/// and `bf16` of the crate `half`.
///
/// Sealed, because elements are copied as bytes: a type has no padding, and is created from any bytes of its width.
pub trait Scalar: Copy + sealed::ElementBytes {
    /// The element type of a tensor of such numbers.
    const DTYPE: Dtype;
}

mod sealed {
    /// Conversion to and from bytes: little-endian in files, in native order in memory. No type has padding, so that every byte of a value
    /// is initialised.
    pub trait ElementBytes: Sized {
        /// Returns the number in `bytes` of a file; `None` for another number of bytes.
        fn from_stored(bytes: &[u8]) -> Option<Self>;

        /// Appends the bytes of the number in a file.
        fn append_to(self, bytes: &mut Vec<u8>);

        /// Returns the first number in `bytes` of memory; `None` if there are too few.
        #[cfg(feature = "runtime")]
        fn first_native(bytes: &[u8]) -> Option<Self>;
    }
}

/// Implements [`Scalar`] for integers and floats, with the code of their element type.
macro_rules! scalars {
    ($($type:ty: $code:expr;)*) => {$(
        impl sealed::ElementBytes for $type {
            fn from_stored(bytes: &[u8]) -> Option<$type> {
                Some(<$type>::from_le_bytes(bytes.try_into().ok()?))
            }

            fn append_to(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }

            #[cfg(feature = "runtime")]
            #[inline]
            fn first_native(bytes: &[u8]) -> Option<$type> {
                bytes.first_chunk().map(|bytes| <$type>::from_ne_bytes(*bytes))
            }
        }

        impl Scalar for $type {
            // The width of the type, because `Tensor::from_slice` copies the bytes of elements into memory of this data type.
            #[expect(clippy::cast_possible_truncation, reason = "at most 64 bits")]
            const DTYPE: Dtype = Dtype::scalar($code, (size_of::<$type>() * 8) as u8);
        }
    )*};
}

scalars! {
    i8: Dtype::INT;
    i16: Dtype::INT;
    i32: Dtype::INT;
    i64: Dtype::INT;
    u8: Dtype::UINT;
    u16: Dtype::UINT;
    u32: Dtype::UINT;
    u64: Dtype::UINT;
    f32: Dtype::FLOAT;
    f64: Dtype::FLOAT;
}

#[cfg(feature = "runtime")]
scalars! {
    half::f16: Dtype::FLOAT;
    half::bf16: Dtype::BFLOAT;
}

impl sealed::ElementBytes for bool {
    // Compiled code treats every byte except 0 as true. In a Rust `bool`, bytes other than 0 and 1 are undefined behaviour.
    fn from_stored(bytes: &[u8]) -> Option<bool> {
        bytes.first().map(|byte| *byte != 0)
    }

    fn append_to(self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(self));
    }

    #[cfg(feature = "runtime")]
    fn first_native(bytes: &[u8]) -> Option<bool> {
        bool::from_stored(bytes)
    }
}

impl Scalar for bool {
    const DTYPE: Dtype = Dtype::scalar(Dtype::BOOL, 8);
}

impl<'a> TensorRecord<'a> {
    /// Returns the elements in row-major order.
    ///
    /// # Errors
    ///
    /// Returns TEN-01, kind type, if the record has another element type; TEN-35 if fewer bytes are stored than the tensor takes.
    pub fn to_vec<T: Scalar>(&self) -> Result<Vec<T>, Violation> {
        self.check_type::<T>()?;
        let elements = self.elements(Packing::Packed)?;
        let numbers = elements.bytes().chunks_exact(size_of::<T>());
        Ok(numbers.filter_map(T::from_stored).collect())
    }

    /// Replaces the elements, in row-major order. Shape and device stay.
    ///
    /// # Errors
    ///
    /// Returns TEN-01, kind type, if the record has another element type; the errors of [`TensorRecord::with_data`] for another number
    /// of elements.
    pub fn with_values<T: Scalar>(self, values: &[T]) -> Result<TensorRecord<'a>, Violation> {
        self.check_type::<T>()?;
        self.with_data(bytes_of(values))
    }

    /// Returns the record with all borrowed bytes copied.
    pub fn into_owned(self) -> TensorRecord<'static> {
        TensorRecord {
            reserved: self.reserved,
            device: self.device,
            dtype: self.dtype,
            shape: self.shape,
            data: Cow::Owned(self.data.into_owned()),
        }
    }

    /// Checks that the elements are numbers of type `T`.
    fn check_type<T: Scalar>(&self) -> Result<(), Violation> {
        if self.dtype() == T::DTYPE {
            return Ok(());
        }
        let message = format!("the elements are {}, and not {}", self.dtype(), T::DTYPE);
        Err(TEN_01.rejected(Kind::Type, message))
    }
}

/// Returns the bytes of `values` in a file.
fn bytes_of<T: Scalar>(values: &[T]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size_of_val(values));
    for value in values {
        value.append_to(&mut bytes);
    }
    bytes
}
