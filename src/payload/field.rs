//! One slot of a payload: its shape, and how it is read and written.

use super::device::{self, Kernel, Shader};
use super::function_info::{self, Function};
use super::vendor::{self, Network};
use super::{Bytes, Payload, StackVm, Text, executor, host, relax_vm, relay_vm, stackvm};
use crate::release::Layout;
use crate::rule::{Findings, Kind, Rule, Violation};
use crate::tensor::TensorRecord;
use crate::wire::{Cursor, Writer};
use std::borrow::Cow;

/// A named place in a form.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// The field's name in dumps and, unless the shape says otherwise, in JSON.
    pub name: &'static str,
    /// What is there.
    pub shape: Shape,
    /// The rule that puts it there.
    pub rule: Rule,
}

/// What can stand in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
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
    /// [`Shape::Text`], [`Shape::Version`], [`Shape::Base64`], [`Shape::Format`].
    Text(Text<'a>),
    /// [`Shape::Code`], [`Shape::Binary`].
    Bytes(Bytes<'a>),
    /// [`Shape::Int`].
    Int(i32),
    /// [`Shape::Names`].
    Names(Vec<Text<'a>>),
    /// [`Shape::Functions`], [`Shape::SilentFunctions`].
    Functions(Vec<Function<'a>>),
    /// [`Shape::Kernels`].
    Kernels(Vec<Kernel<'a>>),
    /// [`Shape::Shaders`].
    Shaders(Vec<Shader<'a>>),
    /// [`Shape::Variables`], [`Shape::Params`].
    Tensors(Vec<(Text<'a>, TensorRecord<'a>)>),
    /// [`Shape::Symbols`].
    Symbols(Vec<(Text<'a>, Vec<Text<'a>>)>),
    /// [`Shape::Networks`].
    Networks(Vec<Network<'a>>),
    /// [`Shape::Relay`].
    Relay(Box<relay_vm::Executable<'a>>),
    /// [`Shape::Relax`].
    Relax(Box<relax_vm::Executable<'a>>),
    /// [`Shape::StackVms`].
    StackVms(Vec<(Text<'a>, StackVm<'a>)>),
    /// [`Shape::Imports`].
    Imports(Vec<Payload<'a>>),
}

impl Slot {
    pub(crate) const fn new(name: &'static str, shape: Shape, rule: Rule) -> Slot {
        Slot { name, shape, rule }
    }

    pub(super) fn read<'a>(
        &self,
        layout: Layout,
        cursor: &mut Cursor<'a>,
        findings: &mut Findings,
    ) -> Result<Field<'a>, Violation> {
        let (name, rule) = (self.name, self.rule);
        Ok(match self.shape {
            Shape::Text | Shape::Base64 => Field::Text(text(cursor, name, rule)?),
            Shape::Version => Field::Text(device::read_version(cursor, name, rule)?),
            Shape::Format(known) => {
                Field::Text(device::read_format(cursor, name, rule, known, findings)?)
            }
            Shape::Code | Shape::Binary => Field::Bytes(Cow::Borrowed(cursor.bytes(name, rule)?)),
            Shape::Int => Field::Int(cursor.i32(name, rule)?),
            Shape::Names => Field::Names(names(cursor, name, rule)?),
            Shape::Functions => Field::Functions(function_info::read(layout, cursor, findings)?),
            Shape::SilentFunctions => {
                Field::Functions(function_info::read_silent(layout, cursor, findings)?)
            }
            Shape::Kernels => Field::Kernels(device::read_kernels(cursor, name, rule)?),
            Shape::Shaders { framed } => {
                Field::Shaders(device::read_shaders(cursor, name, rule, framed, findings)?)
            }
            Shape::Variables => Field::Tensors(host::read_variables(cursor, rule, findings)?),
            Shape::Symbols => Field::Symbols(host::read_symbols(cursor, rule, findings)?),
            Shape::Params => Field::Tensors(executor::read_params(cursor, rule, findings)?),
            Shape::Networks { sizes } => {
                Field::Networks(vendor::read_networks(cursor, rule, sizes)?)
            }
            Shape::Relay => Field::Relay(Box::new(relay_vm::Executable::read(cursor, findings)?)),
            Shape::Relax => Field::Relax(Box::new(relax_vm::Executable::read(
                layout, cursor, findings,
            )?)),
            Shape::StackVms => Field::StackVms(stackvm::read_functions(cursor)?),
            Shape::Imports => Field::Imports(stackvm::read_imports(layout, cursor, findings)?),
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
                Shape::Text | Shape::Version | Shape::Base64 | Shape::Format(_),
                Field::Text(text),
            ) => out.str(text),
            (Shape::Code | Shape::Binary, Field::Bytes(bytes)) => out.bytes(bytes),
            (Shape::Int, Field::Int(value)) => out.i32(*value),
            (Shape::Names, Field::Names(names)) => write_names(names, out),
            (Shape::Functions | Shape::SilentFunctions, Field::Functions(list)) => {
                return function_info::write(list, layout, out);
            }
            (Shape::Kernels, Field::Kernels(list)) => device::write_kernels(list, out),
            (Shape::Shaders { framed }, Field::Shaders(list)) => {
                device::write_shaders(list, framed, out);
            }
            (Shape::Variables, Field::Tensors(list)) => host::write_variables(list, out),
            (Shape::Symbols, Field::Symbols(list)) => host::write_symbols(list, out),
            (Shape::Params, Field::Tensors(list)) => executor::write_params(list, out),
            (Shape::Networks { sizes }, Field::Networks(list)) => {
                return vendor::write_networks(list, sizes, out);
            }
            (Shape::Relay, Field::Relay(executable)) => return executable.write(out),
            (Shape::Relax, Field::Relax(executable)) => return executable.write(layout, out),
            (Shape::StackVms, Field::StackVms(list)) => stackvm::write_functions(list, out),
            (Shape::Imports, Field::Imports(list)) => {
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
