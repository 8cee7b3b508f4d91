//! From a record to a tensor in memory: what every consumer of stored data goes through (TEN-35).

use super::{Dtype, TEN_35, TensorRecord};
use crate::rule::{Kind, Violation};

/// How a tensor in memory counts elements that are no whole bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Each element takes whole bytes: runtimes up to 0.20, and graphs.
    Each,
    /// The elements follow each other bit by bit, and all of them take whole bytes: from 0.21 on.
    Packed,
}

impl Packing {
    /// Bytes that a tensor takes in memory, all lanes included; `None` for a negative extent and for more than 64 bits count.
    pub fn bytes(self, dtype: Dtype, shape: &[i64]) -> Option<u64> {
        // 128 bits hold any product that 64 can count in bytes, so that only a size that is too large is `None`.
        let bits = u128::from(dtype.bits).saturating_mul(u128::from(dtype.lanes));
        // TEN-35: bits, because an element of 4 has no whole byte of its own.
        let unit = match self {
            Packing::Each => bits.div_ceil(8),
            Packing::Packed => bits,
        };
        let total = extents_times(unit, shape)?;
        let bytes = match self {
            Packing::Each => total,
            Packing::Packed => total.div_ceil(8),
        };
        u64::try_from(bytes).ok()
    }
}

/// `unit` times all extents of `shape`; `None` for a negative extent, and for a product beyond 128 bits.
pub(crate) fn extents_times(unit: u128, shape: &[i64]) -> Option<u128> {
    // TEN-27: with an extent of 0 the size is 0, whatever the others multiply to on the way there.
    let is_empty = shape.contains(&0);
    shape.iter().try_fold(unit, |total, extent| {
        let extent = u128::try_from(*extent).ok()?;
        if is_empty {
            Some(0)
        } else {
            total.checked_mul(extent)
        }
    })
}

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

/// The message of TEN-35 for a record that stores `stored` bytes.
pub(super) fn missing(dtype: Dtype, shape: &[i64], stored: usize, needed: Option<u64>) -> String {
    let needed = needed.map_or("more than 64 bits count".to_owned(), |bytes| {
        bytes.to_string()
    });
    let why = match dtype.lanes {
        0 | 1 => "an element below eight bits was not stored (TEN-30)".to_owned(),
        lanes => format!("of {lanes} lanes one is stored (TEN-34)"),
    };
    format!("{stored} bytes are stored for a tensor of shape {shape:?} that takes {needed}: {why}")
}
