//! Fractions of 16 bits in software, and the bits of fractions.
//!
//! Compilers have `_Float16` and `half` by their version, target and options: the code computes with `float` instead, and rounds each result
//! to what its type has. Of sums, products, quotients and roots that is the number that hardware with the type computes, since a `float` has
//! more than twice the bits.

use super::helper_text::{COUNTS, Converter, F32};
use super::scalar::ScalarType;
use super::writer::{CValue, CWriter, CodePlace};

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

    /// Calls a helper function, which is noted to be written in front of the text. A type that needs none stays as it is.
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
