//! The texts of helper functions: bits of fractions, and what counts bits.
//!
//! They are in the text itself, since a kernel has no library to take them from, and compilers differ in their own names for them. Only those
//! that the text calls are written.

/// Functions between a fraction and its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Converter {
    F16,
    Bf16,
    F32,
    F64,
}

impl Converter {
    /// What the names of its functions begin with, behind `tvmspec_`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Converter::F16 => "f16",
            Converter::Bf16 => "bf16",
            Converter::F32 => "f32",
            Converter::F64 => "f64",
        }
    }

    /// Its functions: `value` of bits, `bits` of a value, and `round` for types of 16 bits.
    pub(super) fn text(self) -> &'static str {
        match self {
            Converter::F16 => F16,
            Converter::Bf16 => BF16,
            Converter::F32 => F32,
            Converter::F64 => F64,
        }
    }
}

/// Functions that count bits, which C has not.
pub(super) const COUNTS: &str = "\
TVMSPEC_OWN int32_t tvmspec_popcount(uint64_t bits) {
  int32_t count = 0;
  for (; bits != 0; bits &= bits - 1) count += 1;
  return count;
}
TVMSPEC_OWN int32_t tvmspec_clz(uint64_t bits, int32_t width) {
  for (; bits != 0; bits >>= 1) width -= 1;
  return width;
}
";

/// The bits of a fraction of C, and back.
macro_rules! bits_of {
    ($name:literal, $fraction:literal, $bits:literal) => {
        concat!(
            "TVMSPEC_OWN ",
            $bits,
            " tvmspec_",
            $name,
            "_bits(",
            $fraction,
            " value) {\n",
            "  union { ",
            $fraction,
            " value; ",
            $bits,
            " bits; } both;\n",
            "  both.value = value;\n  return both.bits;\n}\n",
            "TVMSPEC_OWN ",
            $fraction,
            " tvmspec_",
            $name,
            "_value(",
            $bits,
            " bits) {\n",
            "  union { ",
            $fraction,
            " value; ",
            $bits,
            " bits; } both;\n",
            "  both.bits = bits;\n  return both.value;\n}\n",
        )
    };
}

// By a union: a cast of the address breaks the aliasing rules of C, and OpenCL C has no `memcpy`.
pub(super) const F32: &str = bits_of!("f32", "float", "uint32_t");
const F64: &str = bits_of!("f64", "double", "uint64_t");

/// 1 bit of sign, 5 of exponent, 10 behind the first: the exponent of a `float` is 112 more. Below 2 to the power of -14 the unit stays
/// 2 to the power of -24, which is the last bit of a `float` between 0.5 and 1.
const F16: &str = "\
TVMSPEC_OWN float tvmspec_f16_value(uint16_t bits) {
  uint32_t sign = (uint32_t)(bits & 0x8000U) << 16;
  uint32_t rest = bits & 0x7fffU;
  if (rest >= 0x7c00U) return tvmspec_f32_value(sign | 0x7f800000U | (rest & 0x3ffU) << 13);
  if (rest >= 0x400U) return tvmspec_f32_value(sign | ((rest << 13) + 0x38000000U));
  return (sign ? -5.9604644775390625e-8f : 5.9604644775390625e-8f) * (float)rest;
}
TVMSPEC_OWN uint16_t tvmspec_f16_bits(float value) {
  uint32_t bits = tvmspec_f32_bits(value);
  uint32_t sign = bits >> 16 & 0x8000U;
  bits &= 0x7fffffffU;
  if (bits > 0x7f800000U) return (uint16_t)(sign | 0x7e00U | (bits >> 13 & 0x3ffU));
  if (bits >= 0x477ff000U) return (uint16_t)(sign | 0x7c00U);
  if (bits < 0x38800000U) return (uint16_t)(sign | (tvmspec_f32_bits(tvmspec_f32_value(bits) + 0.5f) - 0x3f000000U));
  bits += 0xfffU + (bits >> 13 & 1U);
  return (uint16_t)(sign | (bits - 0x38000000U) >> 13);
}
TVMSPEC_OWN float tvmspec_f16_round(float value) { return tvmspec_f16_value(tvmspec_f16_bits(value)); }
";

/// The upper half of a `float`.
const BF16: &str = "\
TVMSPEC_OWN float tvmspec_bf16_value(uint16_t bits) { return tvmspec_f32_value((uint32_t)bits << 16); }
TVMSPEC_OWN uint16_t tvmspec_bf16_bits(float value) {
  uint32_t bits = tvmspec_f32_bits(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return (uint16_t)(bits >> 16 | 0x40U);
  return (uint16_t)((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}
TVMSPEC_OWN float tvmspec_bf16_round(float value) { return tvmspec_bf16_value(tvmspec_bf16_bits(value)); }
";
