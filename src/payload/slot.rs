//! The slots of a form: name, shape and rule of each field.
//!
//! A form is constant data, so that reading, writing, JSON and the grammar in the specification use one table. The value of a slot in a
//! file is a [`Field`](super::Field).

use crate::rule::Rule;

/// A named field of a form.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FormSlot {
    /// The field's name in dumps and, for most shapes, in JSON.
    pub name: &'static str,
    /// The shape of the value.
    pub shape: FieldShape,
    /// The rule that requires the field.
    pub rule: Rule,
}

/// The shape of a slot's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldShape {
    /// A string of UTF-8.
    Text,
    /// A version string (PAY-17).
    Version,
    // Separate from `Text`, because it distinguishes two forms of a kind.
    /// A string of base64 (PAY-98).
    Base64,
    /// A format word (PAY-11), with the known words (PAY-12).
    Format(&'static [&'static str]),
    /// A string of any bytes: source text or binary. In JSON it is under `source` or `data`.
    Code,
    // Separate from `Code` only for JSON, which shows source as text, but never an object file or a model.
    /// A string of any bytes that is never text.
    Binary,
    /// An i32.
    Int,
    /// A vector of strings.
    Names,
    /// A function map (PAY-02).
    Functions,
    /// A function map whose functions do not repeat their names. No release after 0.23 writes this form (PAY-09).
    SilentFunctions,
    /// A map from kernel name to code.
    Kernels,
    /// A map from kernel name to shader (PAY-14), with a length before each shader if framed (PAY-15).
    Shaders {
        /// True if a length comes before each shader.
        framed: bool,
    },
    /// Names, their count again, and as many tensors.
    Variables,
    /// Names of functions, their count again, and the variables of each.
    Symbols,
    /// A count, as many names, and as many tensors. Only the bytes differ from `Variables`, where the count comes after the names
    /// (PAY-34, PAY-40).
    Params,
    /// The compiled networks of ethos-n, with or without buffer sizes.
    Networks {
        /// True if buffer sizes follow each list of buffers.
        sizes: bool,
    },
    /// A Relay VM executable.
    Relay,
    /// A Relax VM executable.
    Relax,
    /// A map from name to StackVM function.
    StackVms,
    /// A count, and as many kinds with their payloads.
    Imports,
}

impl FormSlot {
    /// Creates a slot called `name`, which `rule` requires.
    pub(crate) const fn new(name: &'static str, shape: FieldShape, rule: Rule) -> FormSlot {
        FormSlot { name, shape, rule }
    }
}
