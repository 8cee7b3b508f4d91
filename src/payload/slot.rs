//! The slots of a form: what is where, by which rule.
//!
//! A form is constant data, so that reading, writing, JSON and the grammar in the specification walk one table. What a slot held in
//! a file is a [`Field`](super::Field).

use crate::rule::Rule;

/// A named place in a form.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FormSlot {
    /// The field's name in dumps and, for most shapes, in JSON.
    pub name: &'static str,
    /// What is there.
    pub shape: FieldShape,
    /// The rule that puts it there.
    pub rule: Rule,
}

/// What can be in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldShape {
    /// A string of UTF-8.
    Text,
    /// A version string (PAY-17).
    Version,
    // Apart from `Text` as it is what tells two forms of a kind apart.
    /// A string of base64 (PAY-98).
    Base64,
    /// A format word (PAY-11), with the words that are known (PAY-12).
    Format(&'static [&'static str]),
    /// A string of any bytes: source text or binary; JSON has it under `source` or `data`.
    Code,
    // Apart from `Code` for JSON alone: source is shown there as it is, an object file or a model never.
    /// A string of any bytes that is never text.
    Binary,
    /// i32.
    Int,
    /// A vector of strings.
    Names,
    /// A function map (PAY-02).
    Functions,
    /// A function map whose functions do not repeat their names: what a form has that no release after 0.23 writes (PAY-09).
    SilentFunctions,
    /// A map from kernel name to code.
    Kernels,
    /// A map from kernel name to shader (PAY-14), with a length in front of each when framed (PAY-15).
    Shaders {
        /// Whether each shader has its length in front.
        framed: bool,
    },
    /// Names, their number again, then that many tensors.
    Variables,
    /// Names of functions, their number again, then the variables of each.
    Symbols,
    // Apart from `Variables` in the bytes alone: the count comes in front of the names, not behind them (PAY-34, PAY-40).
    /// A number, that many names, that many tensors.
    Params,
    /// The compiled networks of ethos-n, with or without buffer sizes.
    Networks {
        /// Whether sizes follow the orders.
        sizes: bool,
    },
    /// A Relay VM executable.
    Relay,
    /// A Relax VM executable.
    Relax,
    /// A map from name to StackVM function.
    StackVms,
    /// A number, then that many kinds with their payloads.
    Imports,
}

impl FormSlot {
    /// A slot called `name`, which `rule` puts into its form.
    pub(crate) const fn new(name: &'static str, shape: FieldShape, rule: Rule) -> FormSlot {
        FormSlot { name, shape, rule }
    }
}
