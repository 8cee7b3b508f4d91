//! The number of bytes that a tensor takes in memory (TEN-35).

use super::Dtype;

/// The way in which a tensor in memory stores elements that are not a whole number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Each element takes whole bytes, in runtimes up to 0.20 and in graphs.
    Each,
    /// The elements follow each other bit by bit, and only their total is rounded up to bytes; from 0.21 on.
    Packed,
}

impl Packing {
    /// Returns the number of bytes of a tensor in memory, with all lanes; `None` for a negative extent, and for a number beyond 64 bits.
    pub fn bytes(self, dtype: Dtype, shape: &[i64]) -> Option<u64> {
        // 128 bits are enough for every product that is valid in bytes, so only a size that is too large returns `None`.
        let bits = u128::from(dtype.bits).saturating_mul(u128::from(dtype.lanes));
        // TEN-35: the unit is bits, because an element of 4 bits does not fill a byte.
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

/// Multiplies `unit` with all extents of `shape`; returns `None` for a negative extent, and for a product beyond 128 bits.
pub(crate) fn extents_times(unit: u128, shape: &[i64]) -> Option<u128> {
    // TEN-27: with an extent of 0 the size is 0, even if the product of other extents overflows.
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

/// Returns the message of TEN-35 for a record that stores `stored` bytes.
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
