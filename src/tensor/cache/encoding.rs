//! The encoding of a tensor's elements in a shard (TEN-56, TEN-57).

use crate::tensor::{Dtype, Packing};
use std::borrow::Cow;

/// The format of a tensor in a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheEncoding {
    /// The elements as in memory.
    Raw,
    /// The upper half of each float32: format `f32-to-bf16`, which has no effect on other types.
    Bf16,
}

/// The type that [`CacheEncoding::Bf16`] applies to.
const F32: Dtype = Dtype::scalar(Dtype::FLOAT, 32);

impl CacheEncoding {
    /// Returns the encoding of a tensor of `dtype` whose record states `format`.
    pub(super) fn of(format: &str, dtype: Dtype) -> CacheEncoding {
        match format {
            "f32-to-bf16" if dtype == F32 => CacheEncoding::Bf16,
            _ => CacheEncoding::Raw,
        }
    }

    /// Returns the name of the format in a record.
    pub const fn name(self) -> &'static str {
        match self {
            CacheEncoding::Raw => "raw",
            CacheEncoding::Bf16 => "f32-to-bf16",
        }
    }

    /// Returns the sizes that a tensor may have in bytes, as releases from 0.21 on count them and as earlier ones do. Returns `None`
    /// for a shape without a size.
    pub(super) fn sizes(self, dtype: Dtype, shape: &[i64]) -> [Option<u64>; 2] {
        let stored = match self {
            CacheEncoding::Raw => dtype,
            CacheEncoding::Bf16 => Dtype::scalar(Dtype::BFLOAT, 16),
        };
        // TEN-35: a bool of one bit takes a byte in all releases with caches, except 0.26 and 0.27.
        [
            Packing::Packed.bytes(stored, shape),
            Packing::Each.bytes(stored, shape),
        ]
    }

    /// Decodes the elements of a tensor to their form in memory.
    pub(super) fn decode(self, stored: &[u8]) -> Cow<'_, [u8]> {
        match self {
            CacheEncoding::Raw => Cow::Borrowed(stored),
            CacheEncoding::Bf16 => {
                let halves = stored.chunks_exact(2);
                halves
                    .flat_map(|half| [0, 0].into_iter().chain(half.iter().copied()))
                    .collect()
            }
        }
    }

    /// Encodes elements of `dtype` for a shard: the inverse of [`CacheEncoding::decode`] for floats that are exact in bfloat16.
    pub(super) fn encode(self, dtype: Dtype, elements: &[u8]) -> Cow<'_, [u8]> {
        match self {
            CacheEncoding::Bf16 if dtype == F32 => {
                let (words, _) = elements.as_chunks::<4>();
                let halves = words.iter().map(|word| rounded(u32::from_le_bytes(*word)));
                halves.flat_map(u16::to_le_bytes).collect()
            }
            _ => Cow::Borrowed(elements),
        }
    }
}

/// Rounds a float32 to bfloat16, both as bits: to nearest, ties to even, as writers do. Values beyond the largest bfloat16, with infinities
/// and NaN, are truncated.
fn rounded(bits: u32) -> u16 {
    /// The largest bfloat16 that is finite.
    const LARGEST: f32 = f32::from_bits(0x7f7f_0000);
    let value = f32::from_bits(bits);
    let even = (bits >> 16) & 1;
    let bias = if value < LARGEST && value > -LARGEST {
        even.wrapping_add(0x7fff)
    } else {
        0
    };
    let [_, _, low, high] = bits.wrapping_add(bias).to_le_bytes();
    u16::from_le_bytes([low, high])
}
