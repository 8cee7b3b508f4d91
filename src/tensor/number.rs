//! Conversion of stored tensors to and from Rust numbers.

use super::{Dtype, Packing, Sizing, TEN_01, TensorRecord};
use crate::rule::{Kind, Violation};
use std::borrow::Cow;

/// A Rust type that matches one element of a stored tensor: integers and floats of whole bytes, and `bool`.
pub trait StoredNumber: Copy + sealed::LittleEndian {
    /// The element type of a tensor of such numbers.
    const DTYPE: Dtype;
}

mod sealed {
    /// Conversion to and from the bytes of a file.
    pub trait LittleEndian: Sized {
        /// Returns the number in `bytes`; `None` for another number of bytes.
        fn from_bytes(bytes: &[u8]) -> Option<Self>;

        /// Appends the bytes of the number.
        fn append_to(self, bytes: &mut Vec<u8>);
    }
}

macro_rules! numbers {
    ($($type:ty: $code:expr, $bits:literal;)*) => {$(
        impl sealed::LittleEndian for $type {
            fn from_bytes(bytes: &[u8]) -> Option<$type> {
                Some(<$type>::from_le_bytes(bytes.try_into().ok()?))
            }

            fn append_to(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }
        }

        impl StoredNumber for $type {
            const DTYPE: Dtype = Dtype::scalar($code, $bits);
        }
    )*};
}

numbers! {
    i8: Dtype::INT, 8;
    i16: Dtype::INT, 16;
    i32: Dtype::INT, 32;
    i64: Dtype::INT, 64;
    u8: Dtype::UINT, 8;
    u16: Dtype::UINT, 16;
    u32: Dtype::UINT, 32;
    u64: Dtype::UINT, 64;
    f32: Dtype::FLOAT, 32;
    f64: Dtype::FLOAT, 64;
}

impl sealed::LittleEndian for bool {
    // Compiled code treats every byte except 0 as true.
    fn from_bytes(bytes: &[u8]) -> Option<bool> {
        bytes.first().map(|byte| *byte != 0)
    }

    fn append_to(self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(self));
    }
}

impl StoredNumber for bool {
    const DTYPE: Dtype = Dtype::scalar(Dtype::BOOL, 8);
}

impl<'a> TensorRecord<'a> {
    /// Creates a record of these numbers, row-major.
    ///
    /// ```
    /// use tvmspec::tensor::TensorRecord;
    ///
    /// let record = TensorRecord::from_values(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// assert_eq!(record.dtype().to_string(), "float32");
    /// assert_eq!(record.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
    /// assert_eq!(record.to_vec::<f64>().unwrap_err().rule().id(), "TEN-01");
    /// # Ok::<(), tvmspec::rule::Violation>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`TensorRecord::new`], for extents that do not match the number of values.
    pub fn from_values<T: StoredNumber>(
        values: &[T],
        shape: &[i64],
    ) -> Result<TensorRecord<'static>, Violation> {
        TensorRecord::new(T::DTYPE, shape, bytes_of(values), Sizing::V0_7)
    }

    /// Returns the elements in row-major order.
    ///
    /// # Errors
    ///
    /// Returns TEN-01, kind type, if the record has another element type; TEN-35 if fewer bytes are stored than the tensor takes.
    pub fn to_vec<T: StoredNumber>(&self) -> Result<Vec<T>, Violation> {
        self.check_type::<T>()?;
        let elements = self.elements(Packing::Packed)?;
        let numbers = elements.bytes().chunks_exact(size_of::<T>());
        Ok(numbers.filter_map(T::from_bytes).collect())
    }

    /// Replaces the elements, in row-major order. Shape and device stay.
    ///
    /// # Errors
    ///
    /// Returns TEN-01, kind type, if the record has another element type; the errors of [`TensorRecord::with_data`] for another number
    /// of elements.
    pub fn with_values<T: StoredNumber>(self, values: &[T]) -> Result<TensorRecord<'a>, Violation> {
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
    fn check_type<T: StoredNumber>(&self) -> Result<(), Violation> {
        if self.dtype() == T::DTYPE {
            return Ok(());
        }
        let message = format!("the elements are {}, and not {}", self.dtype(), T::DTYPE);
        Err(TEN_01.rejected(Kind::Type, message))
    }
}

/// Returns the bytes of `values` in a file.
fn bytes_of<T: StoredNumber>(values: &[T]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size_of_val(values));
    for value in values {
        value.append_to(&mut bytes);
    }
    bytes
}
