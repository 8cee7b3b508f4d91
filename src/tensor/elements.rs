//! Conversion of a record to a tensor in memory, which every consumer of stored data uses (TEN-35).

use super::packing::{Packing, missing};
use super::{Dtype, TEN_35, TensorRecord};
use crate::rule::{Kind, Violation};

/// The elements of a record: exactly the bytes that a tensor of this type and shape has in memory.
///
/// Only [`TensorRecord::elements`] creates this type, so its owner may copy the whole tensor.
#[derive(Clone, Debug)]
pub struct Elements<'r> {
    /// The element type, with all lanes.
    dtype: Dtype,
    /// The dimensions of the record.
    shape: &'r [i64],
    /// The first bytes of the record, as many as the tensor takes.
    bytes: &'r [u8],
}

impl Elements<'_> {
    /// Returns the element type.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Returns the dimensions, outermost first.
    pub fn shape(&self) -> &[i64] {
        self.shape
    }

    /// Returns the bytes of the tensor, exactly [`Packing::bytes`] for its type and shape.
    pub fn bytes(&self) -> &[u8] {
        self.bytes
    }
}

impl TensorRecord<'_> {
    /// Returns the elements as memory with `packing` stores them.
    ///
    /// Some records do not contain the whole tensor. From 0.4 on, a record has only one lane of each element. In 0.4 to 0.6, it has no
    /// byte for an element below eight bits. A record has one byte for each small element, even if memory packs them. Releases that
    /// pack write the packed bytes first and padding after them (TEN-31), so the tensor is in the first bytes.
    ///
    /// # Errors
    ///
    /// Returns TEN-35 if fewer bytes are stored than the tensor takes.
    pub fn elements(&self, packing: Packing) -> Result<Elements<'_>, Violation> {
        let (dtype, shape) = (self.dtype(), self.shape());
        let needed = packing.bytes(dtype, shape);
        let length = needed.and_then(|bytes| usize::try_from(bytes).ok());
        // TEN-35: released readers allocate the whole tensor and fill only its first bytes; the rest is uninitialized memory.
        let Some(bytes) = length.and_then(|length| self.data().get(..length)) else {
            // The message names the rule, because an error of a runtime has no field for it.
            let what = missing(dtype, shape, self.data().len(), needed);
            let message = format!("a stored tensor is not whole (TEN-35): {what}");
            return Err(TEN_35.rejected(Kind::Truncated, message));
        };
        Ok(Elements {
            dtype,
            shape,
            bytes,
        })
    }
}
