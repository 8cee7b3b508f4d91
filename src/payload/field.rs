//! One slot of a payload: its shape, and how it is read and written.

use super::device::{self, KernelCode, Shader};
use super::function_info::{self, DeviceFunction};
use super::vendor::{self, Network};
use super::{Binary, Payload, StackVm, Text, executor, host, relax_vm, relay_vm, stackvm};
use crate::release::Layout;
use crate::rule::{Findings, Kind, Rule, Violation};
use crate::tensor::TensorRecord;
use crate::wire::{Cursor, Writer};
use std::borrow::Cow;

/// A named place in a form.
#[derive(Clone, Copy, Debug)]
pub struct FormSlot {
    /// The field's name in dumps and, for most shapes, in JSON.
    pub name: &'static str,
    /// What is there.
    pub shape: FieldShape,
    /// The rule that puts it there.
    pub rule: Rule,
}

/// What can stand in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldShape {
    /// A string of UTF-8.
    Text,
    /// A version string (PAY-17).
    Version,
    /// A string of base64 (PAY-98).
    Base64,
    /// A format word (PAY-11), with the words that are known (PAY-12).
    Format(&'static [&'static str]),
    /// A string of any bytes: source text or binary; JSON has it under `source` or `data`.
    Code,
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

/// What stood in a slot.
#[derive(Clone, Debug, PartialEq)]
pub enum Field<'a> {
    /// [`FieldShape::Text`], [`FieldShape::Version`], [`FieldShape::Base64`], [`FieldShape::Format`].
    Text(Text<'a>),
    // Two shapes of one value: whether JSON may show it as text is a matter of the slot.
    /// [`FieldShape::Code`], [`FieldShape::Binary`].
    Bytes(Binary<'a>),
    /// [`FieldShape::Int`].
    Int(i32),
    /// [`FieldShape::Names`].
    Names(Vec<Text<'a>>),
    /// [`FieldShape::Functions`], [`FieldShape::SilentFunctions`].
    Functions(Vec<DeviceFunction<'a>>),
    /// [`FieldShape::Kernels`].
    Kernels(Vec<KernelCode<'a>>),
    /// [`FieldShape::Shaders`].
    Shaders(Vec<Shader<'a>>),
    // PAY-34, PAY-40: the counts stand at other places, and the value is the same.
    /// [`FieldShape::Variables`], [`FieldShape::Params`].
    Tensors(Vec<(Text<'a>, TensorRecord<'a>)>),
    /// [`FieldShape::Symbols`].
    Symbols(Vec<(Text<'a>, Vec<Text<'a>>)>),
    /// [`FieldShape::Networks`].
    Networks(Vec<Network<'a>>),
    /// [`FieldShape::Relay`].
    Relay(Box<relay_vm::RelayExecutable<'a>>),
    /// [`FieldShape::Relax`].
    Relax(Box<relax_vm::RelaxExecutable<'a>>),
    /// [`FieldShape::StackVms`].
    StackVms(Vec<(Text<'a>, StackVm<'a>)>),
    /// [`FieldShape::Imports`].
    Imports(Vec<Payload<'a>>),
}

impl FormSlot {
    pub(crate) const fn new(name: &'static str, shape: FieldShape, rule: Rule) -> FormSlot {
        FormSlot { name, shape, rule }
    }

    pub(super) fn read<'a>(
        &self,
        layout: Layout,
        cursor: &mut Cursor<'a>,
        findings: &mut Findings,
    ) -> Result<Field<'a>, Violation> {
        let (name, rule) = (self.name, self.rule);
        Ok(match self.shape {
            FieldShape::Text | FieldShape::Base64 => Field::Text(text(cursor, name, rule)?),
            FieldShape::Version => Field::Text(device::read_version(cursor, name, rule)?),
            FieldShape::Format(known) => {
                Field::Text(device::read_format(cursor, name, rule, known, findings)?)
            }
            // A string for its length (WIRE-04), but not text: code may be binary.
            FieldShape::Code | FieldShape::Binary => {
                Field::Bytes(Cow::Borrowed(cursor.bytes(name, rule)?))
            }
            // PAY-53: the only plain number that a payload has, an `int` of the writer.
            FieldShape::Int => Field::Int(cursor.i32(name, rule)?),
            FieldShape::Names => Field::Names(names(cursor, name, rule)?),
            FieldShape::Functions => {
                Field::Functions(function_info::read(layout, cursor, findings)?)
            }
            FieldShape::SilentFunctions => {
                Field::Functions(function_info::read_silent(layout, cursor, findings)?)
            }
            FieldShape::Kernels => Field::Kernels(device::read_kernels(cursor, name, rule)?),
            FieldShape::Shaders { framed } => {
                Field::Shaders(device::read_shaders(cursor, name, rule, framed, findings)?)
            }
            FieldShape::Variables => Field::Tensors(host::read_variables(cursor, rule, findings)?),
            FieldShape::Symbols => Field::Symbols(host::read_symbols(cursor, rule, findings)?),
            FieldShape::Params => Field::Tensors(executor::read_params(cursor, rule, findings)?),
            FieldShape::Networks { sizes } => {
                Field::Networks(vendor::read_networks(cursor, rule, sizes)?)
            }
            FieldShape::Relay => {
                Field::Relay(Box::new(relay_vm::RelayExecutable::read(cursor, findings)?))
            }
            FieldShape::Relax => Field::Relax(Box::new(relax_vm::RelaxExecutable::read(
                layout, cursor, findings,
            )?)),
            FieldShape::StackVms => Field::StackVms(stackvm::read_functions(cursor)?),
            FieldShape::Imports => Field::Imports(stackvm::read_imports(layout, cursor, findings)?),
        })
    }

    pub(super) fn write(
        &self,
        field: &Field<'_>,
        layout: Layout,
        out: &mut Writer,
    ) -> Result<(), Violation> {
        match (self.shape, field) {
            (
                FieldShape::Text | FieldShape::Version | FieldShape::Base64 | FieldShape::Format(_),
                Field::Text(text),
            ) => out.str(text),
            (FieldShape::Code | FieldShape::Binary, Field::Bytes(bytes)) => out.bytes(bytes),
            (FieldShape::Int, Field::Int(value)) => out.i32(*value),
            (FieldShape::Names, Field::Names(names)) => write_names(names, out),
            (FieldShape::Functions | FieldShape::SilentFunctions, Field::Functions(list)) => {
                return function_info::write(list, layout, out);
            }
            (FieldShape::Kernels, Field::Kernels(list)) => device::write_kernels(list, out),
            (FieldShape::Shaders { framed }, Field::Shaders(list)) => {
                device::write_shaders(list, framed, out);
            }
            (FieldShape::Variables, Field::Tensors(list)) => host::write_variables(list, out),
            (FieldShape::Symbols, Field::Symbols(list)) => host::write_symbols(list, out),
            (FieldShape::Params, Field::Tensors(list)) => executor::write_params(list, out),
            (FieldShape::Networks { sizes }, Field::Networks(list)) => {
                return vendor::write_networks(list, sizes, out);
            }
            (FieldShape::Relay, Field::Relay(executable)) => return executable.write(out),
            (FieldShape::Relax, Field::Relax(executable)) => return executable.write(layout, out),
            (FieldShape::StackVms, Field::StackVms(list)) => stackvm::write_functions(list, out),
            (FieldShape::Imports, Field::Imports(list)) => {
                return stackvm::write_imports(list, layout, out);
            }
            _ => {
                let message = format!("`{}` holds a value of another shape", self.name);
                return Err(self.rule.refused(Kind::Type, message));
            }
        }
        Ok(())
    }
}

/// A string of UTF-8.
pub(super) fn text<'a>(
    cursor: &mut Cursor<'a>,
    field: &str,
    rule: Rule,
) -> Result<Text<'a>, Violation> {
    cursor.str(field, rule).map(Cow::Borrowed)
}

/// A vector of strings.
pub(super) fn names<'a>(
    cursor: &mut Cursor<'a>,
    field: &'static str,
    rule: Rule,
) -> Result<Vec<Text<'a>>, Violation> {
    cursor.vector(8, field, |cursor| text(cursor, field, rule))
}

/// Where each of `names` begins, which were read one behind the other from a vector at `start`.
pub(super) fn places<'n>(
    names: &'n [Text<'_>],
    start: u64,
) -> impl Iterator<Item = (&'n str, u64)> {
    // WIRE-04, WIRE-06: the count, and before each name its length. So no offset is kept for names that break nothing.
    let mut at = start.saturating_add(8);
    names.iter().map(move |name| {
        let here = at;
        at = at.saturating_add(8).saturating_add(name.len() as u64);
        (&**name, here)
    })
}

/// The inverse of [`names`].
pub(super) fn write_names(names: &[Text<'_>], out: &mut Writer) {
    out.vector(names, |out, name| out.str(name));
}
