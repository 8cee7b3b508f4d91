//! Fractions of 16 bits in software, and the bits of fractions.
//!
//! Compilers have `_Float16` and `half` by their version, target and options: the code computes with `float` instead, and rounds each result
//! to what its type has. Of sums, products, quotients and roots that is the number that hardware with the type computes, since a `float` has
//! more than twice the bits.

use super::operators::COUNTS;
use super::scalar::ScalarType;
use super::writer::{CValue, CWriter, CodePlace};

/// Functions between a fraction and its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Converter {
    F16,
    Bf16,
    F32,
    F64,
}

impl Converter {
    fn name(self) -> &'static str {
        match self {
            Converter::F16 => "f16",
            Converter::Bf16 => "bf16",
            Converter::F32 => "f32",
            Converter::F64 => "f64",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Converter::F16 => F16,
            Converter::Bf16 => BF16,
            Converter::F32 => F32,
            Converter::F64 => F64,
        }
    }
}

impl CWriter<'_> {
    /// What is read from memory, as a number to compute with.
    pub(super) fn loaded(&mut self, place: String, dtype: ScalarType) -> String {
        match dtype.is_half() {
            true => self.convert("value", &place, dtype),
            false => place,
        }
    }

    /// A number that was computed with, as memory has it.
    pub(super) fn stored(&mut self, value: &str, dtype: ScalarType) -> String {
        match dtype.is_half() {
            true => self.convert("bits", value, dtype),
            false => value.to_owned(),
        }
    }

    /// What C computed with more bits than the type has, as a number of the type.
    pub(super) fn cut(&mut self, text: String, dtype: ScalarType) -> String {
        if dtype.is_half() {
            return self.convert("round", &text, dtype);
        }
        if dtype.is_promoted() {
            return format!("(({}){text})", dtype.c_name());
        }
        text
    }

    /// The bits of a value as those of another type; `None` where it has another number of them.
    pub(super) fn reinterpreted(&mut self, value: &CValue, to: ScalarType) -> Option<String> {
        if value.dtype.bits()? != to.bits()? {
            return None;
        }
        let bits = match value.dtype.converter() {
            Some(_) => self.convert("bits", &value.text, value.dtype),
            None => value.text.clone(),
        };
        Some(match to.converter() {
            Some(_) => self.convert("value", &bits, to),
            None => format!("(({}){bits})", to.c_name()),
        })
    }

    fn convert(&mut self, what: &str, text: &str, dtype: ScalarType) -> String {
        let Some(converter) = dtype.converter() else {
            return text.to_owned();
        };
        self.converters.insert(converter);
        format!("tvmspec_{}_{what}({text})", converter.name())
    }

    /// The functions that the text calls, in front of it.
    pub(super) fn conversions(&self) -> String {
        if self.converters.is_empty() && !self.counts {
            return String::new();
        }
        // What is seen by no other file; kernels of OpenCL C 1.0 have no `static`.
        let linkage = match self.place {
            CodePlace::Kernel => "#define TVMSPEC_OWN\n",
            CodePlace::Host(_) => "#define TVMSPEC_OWN static\n",
        };
        let texts = self.converters.iter().filter(|one| **one != Converter::F32);
        let texts: String = texts.map(|converter| converter.text()).collect();
        let counts = if self.counts { COUNTS } else { "" };
        let first = match self.converters.is_empty() {
            true => "",
            // The others are written with it.
            false => F32,
        };
        [linkage, first, &texts, counts].concat()
    }
}

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

const F32: &str = bits_of!("f32", "float", "uint32_t");
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
