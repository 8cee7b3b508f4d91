//! The number of bytes that the elements of a record take.

use super::{Dtype, TEN_29, TEN_30, TEN_31};
use crate::release::{ParseError, Release};
use crate::rule::Rule;
use std::fmt;
use std::str::FromStr;
/// The way in which a family of releases counts the bytes of a tensor. The bytes do not show which family wrote them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sizing {
    /// 0.2 and 0.3: number of elements times `ceil(bits * lanes / 8)` (TEN-29).
    V0_2,
    /// 0.4 to 0.6: number of elements times `floor(bits / 8)`; lanes do not count (TEN-30).
    V0_4,
    /// 0.7 and later: number of elements times `ceil(bits / 8)`; lanes do not count (TEN-31).
    V0_7,
}

impl Sizing {
    /// Every family, oldest first.
    pub const ALL: [Sizing; 3] = [Sizing::V0_2, Sizing::V0_4, Sizing::V0_7];

    /// Returns the first release of the family: `0.2`, `0.4` or `0.7`.
    pub const fn name(self) -> &'static str {
        match self {
            Sizing::V0_2 => "0.2",
            Sizing::V0_4 => "0.4",
            Sizing::V0_7 => "0.7",
        }
    }

    /// Returns the family of `release`.
    pub const fn of(release: Release) -> Sizing {
        match release.minor() {
            ..=3 => Sizing::V0_2,
            4..=6 => Sizing::V0_4,
            7.. => Sizing::V0_7,
        }
    }

    /// Returns the rule that defines the count.
    pub const fn rule(self) -> Rule {
        match self {
            Sizing::V0_2 => TEN_29,
            Sizing::V0_4 => TEN_30,
            Sizing::V0_7 => TEN_31,
        }
    }

    /// Returns the number of bytes of one element in a record.
    pub(crate) fn element_bytes(self, dtype: Dtype) -> u64 {
        let (bits, lanes) = (u64::from(dtype.bits), u64::from(dtype.lanes));
        match self {
            Sizing::V0_2 => bits.saturating_mul(lanes).div_ceil(8),
            // TEN-30: rounded down, so that a bool of one bit takes no byte. The readers of the same releases count as in TEN-31, and
            // reject the tensors that their own writers created.
            Sizing::V0_4 => bits / 8,
            // TEN-31: an int4 takes one byte, although memory packs two into one from 0.21 on.
            Sizing::V0_7 => bits.div_ceil(8),
        }
    }

    /// Returns the number of bytes of a tensor; `None` if it does not fit into an i64 (TEN-27), or a dimension is negative.
    pub fn data_bytes(self, dtype: Dtype, shape: &[i64]) -> Option<u64> {
        let mut total = self.element_bytes(dtype);
        // TEN-27: a tensor without elements has no bytes, even if its other dimensions are large.
        let empty = shape.contains(&0);
        for &dim in shape {
            let dim = u64::try_from(dim).ok()?;
            // Released readers multiply from the left, and may overflow before they reach a zero.
            total = if empty { 0 } else { total.checked_mul(dim)? };
        }
        (i64::try_from(total).is_ok()).then_some(total)
    }
}

impl fmt::Display for Sizing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Parses a release (`0.8`) and returns its family.
impl FromStr for Sizing {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        text.parse().map(Sizing::of)
    }
}
