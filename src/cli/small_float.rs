//! Values of floats of 8, 6 and 4 bits (TEN-02), each stored in a byte.

use tvmspec::tensor::Dtype;

/// The format of a small float.
struct SmallFloat {
    exponent_bits: u32,
    mantissa_bits: u32,
    bias: i32,
    specials: Specials,
}

/// The bit patterns that are not numbers.
#[derive(PartialEq)]
enum Specials {
    /// The highest exponent: infinity, or NaN if the mantissa is not 0.
    Ieee,
    /// All bits of exponent and mantissa are 1: NaN (`fn`).
    AllOnes,
    /// The pattern of negative zero: NaN (`fnuz`).
    NegativeZero,
    None,
}

impl SmallFloat {
    /// Returns the format of `dtype`; `None` for any other type.
    fn from_dtype(dtype: Dtype) -> Option<SmallFloat> {
        use Specials::{AllOnes, Ieee, NegativeZero, None as Nothing};
        let (exponent_bits, mantissa_bits, bias, specials) =
            match (dtype.code, dtype.bits, dtype.lanes) {
                (7, 8, 1) => (3, 4, 3, Ieee),
                (8, 8, 1) => (4, 3, 7, Ieee),
                (9, 8, 1) => (4, 3, 11, NegativeZero),
                (10, 8, 1) => (4, 3, 7, AllOnes),
                (11, 8, 1) => (4, 3, 8, NegativeZero),
                (12, 8, 1) => (5, 2, 15, Ieee),
                (13, 8, 1) => (5, 2, 16, NegativeZero),
                (15, 6, 1) => (2, 3, 1, Nothing),
                (16, 6, 1) => (3, 2, 3, Nothing),
                // Code 8 with 4 bits is the type of 0.20.
                (8 | 17, 4, 1) => (2, 1, 1, Nothing),
                _ => return None,
            };
        Some(SmallFloat {
            exponent_bits,
            mantissa_bits,
            bias,
            specials,
        })
    }

    fn value(&self, bits: u8) -> f32 {
        let bits = u32::from(bits);
        let all_ones = |count: u32| (1 << count) - 1;
        let magnitude = bits & all_ones(self.exponent_bits + self.mantissa_bits);
        let mantissa = magnitude & all_ones(self.mantissa_bits);
        let exponent = magnitude >> self.mantissa_bits;
        let is_negative = bits >> (self.exponent_bits + self.mantissa_bits) & 1 == 1;
        let is_highest = exponent == all_ones(self.exponent_bits);
        let unsigned = match self.specials {
            Specials::Ieee if is_highest && mantissa == 0 => f32::INFINITY,
            Specials::Ieee if is_highest => f32::NAN,
            Specials::AllOnes if is_highest && mantissa == all_ones(self.mantissa_bits) => f32::NAN,
            Specials::NegativeZero if is_negative && magnitude == 0 => f32::NAN,
            _ => {
                // A subnormal number has exponent 1 and no leading one.
                let leading = u32::from(exponent > 0) << self.mantissa_bits;
                let power =
                    exponent.max(1).cast_signed() - self.bias - self.mantissa_bits.cast_signed();
                (leading + mantissa) as f32 * (power as f32).exp2()
            }
        };
        if is_negative { -unsigned } else { unsigned }
    }
}

/// Returns the value of `bits` as an element of `dtype`; `None` if that is not a small float.
pub(super) fn value(dtype: Dtype, bits: u8) -> Option<f32> {
    // All bits of float8_e8m0fnu are the exponent.
    if (dtype.code, dtype.bits, dtype.lanes) == (14, 8, 1) {
        return Some(match bits {
            u8::MAX => f32::NAN,
            bits => (f32::from(bits) - 127.0).exp2(),
        });
    }
    Some(SmallFloat::from_dtype(dtype)?.value(bits))
}
