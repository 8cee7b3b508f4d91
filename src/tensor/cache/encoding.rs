//! How a shard has the elements of a tensor (TEN-56, TEN-57).

use crate::tensor::{Dtype, Packing};
use std::borrow::Cow;

/// The format of a tensor in a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheEncoding {
    /// The elements as memory has them.
    Raw,
    /// The upper half of each float32: format `f32-to-bf16`, which says nothing of any other type.
    Bf16,
}

/// The type that [`CacheEncoding::Bf16`] is of.
const F32: Dtype = Dtype::scalar(Dtype::FLOAT, 32);

impl CacheEncoding {
    /// The encoding of a tensor of `dtype` whose record states `format`.
    pub(super) fn of(format: &str, dtype: Dtype) -> CacheEncoding {
        match format {
            "f32-to-bf16" if dtype == F32 => CacheEncoding::Bf16,
            _ => CacheEncoding::Raw,
        }
    }

    /// The word in a record.
    pub const fn name(self) -> &'static str {
        match self {
            CacheEncoding::Raw => "raw",
            CacheEncoding::Bf16 => "f32-to-bf16",
        }
    }

    /// How many bytes a tensor may take, by the count of releases from 0.21 on and of those before; `None` for a shape of no size.
    pub(super) fn sizes(self, dtype: Dtype, shape: &[i64]) -> [Option<u64>; 2] {
        let stored = match self {
            CacheEncoding::Raw => dtype,
            CacheEncoding::Bf16 => Dtype::scalar(Dtype::BFLOAT, 16),
        };
        // TEN-35: a bool of one bit takes a byte in all releases that have caches, but for 0.26 and 0.27.
        [
            Packing::Packed.bytes(stored, shape),
            Packing::Each.bytes(stored, shape),
        ]
    }

    /// The elements of a tensor as memory has them.
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

    /// The bytes that a shard has of elements of `dtype`; the inverse of [`CacheEncoding::decode`] for floats that are bfloat16.
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

/// The bfloat16 of a float32, both as bits: to the nearest, ties to even, as writers do. What is beyond the largest bfloat16,
/// infinities and NaN included, is cut.
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
