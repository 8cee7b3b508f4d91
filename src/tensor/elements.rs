//! From a record to a tensor in memory: what every consumer of stored data goes through (TEN-35).

use super::packing::{Packing, missing};
use super::{Dtype, TEN_35, TensorRecord};
use crate::rule::{Kind, Violation};

/// The elements of a record, as many bytes as a tensor of its type and shape has in memory.
///
/// There is no other way to one than [`TensorRecord::elements`]: who holds one may copy all of the tensor.
#[derive(Clone, Debug)]
pub struct Elements<'r> {
    /// The type of each, all lanes included.
    dtype: Dtype,
    /// The dimensions of the record.
    shape: &'r [i64],
    /// The first bytes of the record: as many as the tensor takes.
    bytes: &'r [u8],
}

impl Elements<'_> {
    /// The element type.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The dimensions, outermost first.
    pub fn shape(&self) -> &[i64] {
        self.shape
    }

    /// Exactly [`Packing::bytes`] of the type and the shape.
    pub fn bytes(&self) -> &[u8] {
        self.bytes
    }
}

impl TensorRecord<'_> {
    /// The elements as `packing` has them in memory.
    ///
    /// A record of 0.4 on has one lane of each element, and one of 0.4 to 0.6 no byte of an element below eight bits: then
    /// there is no tensor to make. It has a byte of each small element where memory packs them; releases that pack write the
    /// packed bytes first and fill up behind them (TEN-31), so the first bytes are the tensor.
    ///
    /// # Errors
    ///
    /// TEN-35 when fewer bytes are stored than the tensor takes.
    pub fn elements(&self, packing: Packing) -> Result<Elements<'_>, Violation> {
        let (dtype, shape) = (self.dtype(), self.shape());
        let needed = packing.bytes(dtype, shape);
        let length = needed.and_then(|bytes| usize::try_from(bytes).ok());
        // TEN-35: released readers allocate the whole tensor and fill its front; the rest is what was in memory.
        let Some(bytes) = length.and_then(|length| self.data().get(..length)) else {
            // A runtime's error has no field for the rule.
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
