//! What is computed of numbers: arithmetic that wraps, bits, functions of C's library, and those that it lacks.

use super::library::{MATH, function};
use super::scalar::ScalarType;
use super::writer::{CValue, CWriter, CodePlace};
use crate::release::Release;
use crate::rule::Violation;

impl CWriter<'_> {
    /// TGT-91: a result of the type of its operands, which wraps. C computes numbers of 8 and 16 bits as `int`, and leaves open what
    /// an `int` beyond its end is.
    pub(super) fn arithmetic(
        &mut self,
        a: &str,
        operator: &str,
        b: &str,
        dtype: ScalarType,
    ) -> String {
        let wraps = matches!(operator, "+" | "-" | "*");
        let text = match dtype {
            ScalarType::Int(32 | 64) if wraps => {
                let unsigned = dtype.unsigned().unwrap_or(dtype).c_name();
                let name = dtype.c_name();
                return format!("(({name})(({unsigned}){a} {operator} ({unsigned}){b}))");
            }
            // 65535 times itself is no `int`.
            ScalarType::UInt(16) if operator == "*" => format!("((uint32_t){a} * {b})"),
            _ => format!("({a} {operator} {b})"),
        };
        self.cut(text, dtype)
    }

    /// A number with each bit the other one.
    pub(super) fn complement(&mut self, a: &str, dtype: ScalarType) -> String {
        match dtype {
            // Of one bit the other is left, and not 254 of them.
            ScalarType::Bool => format!("(!{a})"),
            _ => self.cut(format!("(~{a})"), dtype),
        }
    }

    /// A shift by so many bits, of which `amount` is known where it is a constant. TGT-91: one by as many bits as the type has, or by more,
    /// is by the rest.
    pub(super) fn shift(
        &mut self,
        a: &CValue,
        operator: &str,
        (b, amount): (&str, Option<i64>),
        dtype: ScalarType,
    ) -> String {
        let bits = i64::from(dtype.bits().unwrap_or(64));
        let b = match amount {
            Some(amount) if (0..bits).contains(&amount) => b.to_owned(),
            _ => format!("({b} & {})", bits.saturating_sub(1)),
        };
        // C leaves open what a number below 0 is behind a shift to the left.
        let wider = match dtype {
            ScalarType::Int(64) => "(uint64_t)",
            ScalarType::Int(_) | ScalarType::UInt(8 | 16) => "(uint32_t)",
            _ => "",
        };
        match (operator, dtype) {
            ("<<", ScalarType::Int(_)) => {
                format!("(({})({wider}{} << {b}))", dtype.c_name(), a.text)
            }
            ("<<", _) => self.cut(format!("({wider}{} << {b})", a.text), dtype),
            _ => self.cut(format!("({} {operator} {b})", a.text), dtype),
        }
    }

    /// An operator of numbers by its name without the prefix of its release, called with arguments of which the first is the one of that
    /// number; `None` for any other.
    pub(super) fn operator_of_numbers(
        &mut self,
        at: usize,
        name: &str,
        (args, first): (&[usize], usize),
        dtype: ScalarType,
    ) -> Result<Option<String>, Violation> {
        let text = match (name, args) {
            ("bitwise_and", [a, b]) => self.infix((*a, "&", *b), dtype)?,
            ("bitwise_or", [a, b]) => self.infix((*a, "|", *b), dtype)?,
            ("bitwise_xor", [a, b]) => self.infix((*a, "^", *b), dtype)?,
            ("bitwise_not", [a]) => {
                let a = self.argument(first, *a)?.text;
                self.complement(&a, dtype)
            }
            ("shift_left" | "shift_right", [a, b]) => {
                let operator = if name == "shift_left" { "<<" } else { ">>" };
                let a = self.argument(first, *a)?;
                let amount = self.constant(*b)?;
                let b = self.argument(first.saturating_add(1), *b)?.text;
                self.shift(&a, operator, (&b, amount), dtype)
            }
            // A `uint64` that no `int64` holds comes as two halves where the number of an `IntImm` has a sign.
            ("large_uint_imm", [low, high]) => {
                let low = self.argument(first, *low)?.text;
                let high = self.argument(first.saturating_add(1), *high)?.text;
                format!("((uint64_t){high} << 32 | (uint64_t){low})")
            }
            ("isnan" | "isinf" | "isfinite", [x]) => {
                let x = self.fraction_argument(first, *x)?.text;
                // C's macros are any number other than 0 where they hold; a truth value is 0 or 1.
                format!("({name}({x}) != 0)")
            }
            ("popcount" | "clz", [x]) => {
                let x = self.argument(first, *x)?;
                let (ScalarType::Int(bits) | ScalarType::UInt(bits)) = x.dtype else {
                    return Err(self.unsupported(at, &format!(" of `{name}` of this type")));
                };
                self.counts = true;
                // As many bits as the type has: a number below 0 has no more ones than those.
                let unsigned = ScalarType::UInt(bits).c_name();
                let text = match name {
                    "clz" => format!("tvmspec_clz(({unsigned}){}, {bits})", x.text),
                    _ => format!("tvmspec_popcount(({unsigned}){})", x.text),
                };
                format!("(({}){text})", dtype.c_name())
            }
            ("rsqrt", [x]) => {
                let root = self.named("sqrt", dtype);
                let x = self.fraction_argument(first, *x)?.text;
                self.cut(format!("(1 / {root}({x}))"), dtype)
            }
            ("sigmoid", [x]) => {
                let power = self.named("exp", dtype);
                let x = self.fraction_argument(first, *x)?.text;
                self.cut(format!("(1 / (1 + {power}(-{x})))"), dtype)
            }
            ("exp10", [x]) => {
                let x = self.fraction_argument(first, *x)?.text;
                // OpenCL C has `exp10`; C has it by an extension of GNU alone.
                let text = match (self.place, dtype) {
                    (CodePlace::Kernel, _) => format!("exp10({x})"),
                    (_, ScalarType::Float(64)) => {
                        format!("{}(10.0, {x})", self.of_library("pow"))
                    }
                    _ => format!("{}(10.0f, {x})", self.of_library("powf")),
                };
                self.cut(text, dtype)
            }
            // What is called by name is C's `round`, and is none of these.
            ("round", [x]) if first == 0 => {
                let x = self.fraction_argument(first, *x)?.text;
                // TGT-93: a half goes away from 0 up to 0.23, and from 0.24 on to the even one of both.
                let function = match self.graph.release < Release::of(24) {
                    true => self.named("round", dtype),
                    false => self.named("nearbyint", dtype),
                };
                self.cut(format!("{function}({x})"), dtype)
            }
            _ => return Ok(None),
        };
        Ok(Some(text))
    }

    /// An operator that is a function of C's library; `None` for any other.
    pub(super) fn operator_of_library(
        &mut self,
        at: usize,
        name: &str,
        args: &[usize],
        dtype: ScalarType,
    ) -> Result<Option<String>, Violation> {
        let is_fraction = matches!(dtype, ScalarType::Float(_) | ScalarType::BFloat);
        match MATH.iter().find(|(known, _)| *known == name) {
            // The next number of 16 bits is another than the next of 32.
            Some(("nextafter", _)) if dtype.is_half() => Ok(None),
            Some((known, _)) if is_fraction => {
                let name = match dtype {
                    ScalarType::Float(64) => (*known).to_owned(),
                    _ => format!("{known}f"),
                };
                let text = self.library(at, &name, (args, 0))?;
                Ok(Some(self.cut(text, dtype)))
            }
            _ => Ok(None),
        }
    }

    /// A function of C's library, called with arguments of which the first is the one of that number.
    pub(super) fn library(
        &mut self,
        at: usize,
        name: &str,
        (args, first): (&[usize], usize),
    ) -> Result<String, Violation> {
        let Some((stem, arity)) = function(name) else {
            return Err(self.unsupported(at, &format!(" `{name}` as what is called")));
        };
        if args.len() != arity {
            let count = args.len();
            return Err(self.unsupported(at, &format!(" of `{name}` with {count} arguments")));
        }
        let mut arguments = Vec::with_capacity(arity);
        for (index, arg) in args.iter().enumerate() {
            let value = self.argument(index.saturating_add(first), *arg)?.text;
            arguments.push(match (stem, index) {
                // The power of 2 is an `int`, whatever the module has it in.
                ("ldexp", 1) => format!("(int)({value})"),
                _ => value,
            });
        }
        let arguments = arguments.join(", ");
        let written = match (self.place, stem) {
            // OpenCL has one name for all widths, and another for this one.
            (CodePlace::Kernel, "nearbyint") => "rint",
            (CodePlace::Kernel, _) => stem,
            _ => name,
        };
        Ok(format!("{}({arguments})", self.of_library(written)))
    }

    /// The name of a function of C's library for numbers of a type.
    fn named(&mut self, stem: &str, dtype: ScalarType) -> String {
        self.of_library(match (self.place, dtype) {
            (CodePlace::Kernel, _) if stem == "nearbyint" => "rint".to_owned(),
            (CodePlace::Kernel, _) | (_, ScalarType::Float(64)) => stem.to_owned(),
            _ => format!("{stem}f"),
        })
    }

    /// An operator between two arguments of a call: releases have bits as calls, as nodes, or both.
    fn infix(
        &mut self,
        (a, operator, b): (usize, &str, usize),
        dtype: ScalarType,
    ) -> Result<String, Violation> {
        let a = self.argument(0, a)?.text;
        let b = self.argument(1, b)?.text;
        Ok(self.arithmetic(&a, operator, &b, dtype))
    }

    /// An argument that is a number with a fraction.
    fn fraction_argument(&mut self, index: usize, at: usize) -> Result<CValue, Violation> {
        let value = self.argument(index, at)?;
        match value.dtype {
            ScalarType::Float(_) | ScalarType::BFloat => Ok(value),
            _ => Err(self.unsupported(at, " as a number with a fraction")),
        }
    }
}
