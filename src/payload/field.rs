//! The value in a slot of a payload.

use super::function_info::DeviceFunction;
use super::{Binary, Payload, StackVm, Text, relax_vm, relay_vm};
use crate::tensor::TensorRecord;

/// The code of one kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelCode<'a> {
    /// The function's name.
    pub name: Text<'a>,
    /// Its source text or binary.
    pub code: Binary<'a>,
}

/// A SPIR-V shader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shader<'a> {
    /// The function's name.
    pub name: Text<'a>,
    /// Bit 0: scalar arguments are in a uniform buffer.
    pub flags: u32,
    /// The SPIR-V words, 4 bytes each, as the file stores them.
    pub spirv: Binary<'a>,
}

/// One compiled network of ethos-n.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network<'a> {
    /// The function that runs it.
    pub name: Text<'a>,
    /// The vendor's serialized network.
    pub compiled: Binary<'a>,
    /// The buffer of each input.
    pub inputs: Vec<u32>,
    /// Size of each input in bytes: one for each input in form 0.10, empty in form 0.7.
    pub input_sizes: Vec<u32>,
    /// The buffer of each output.
    pub outputs: Vec<u32>,
    /// Size of each output in bytes: one for each output in form 0.10, empty in form 0.7.
    pub output_sizes: Vec<u32>,
}

/// The value of a slot.
#[derive(Clone, Debug, PartialEq)]
pub enum Field<'a> {
    /// [`FieldShape::Text`](super::FieldShape::Text), [`FieldShape::Version`](super::FieldShape::Version), [`FieldShape::Base64`](super::FieldShape::Base64), [`FieldShape::Format`](super::FieldShape::Format).
    Text(Text<'a>),
    /// [`FieldShape::Code`](super::FieldShape::Code) and [`FieldShape::Binary`](super::FieldShape::Binary) have the same value. The
    /// slot decides whether JSON may show it as text.
    Bytes(Binary<'a>),
    /// [`FieldShape::Int`](super::FieldShape::Int).
    Int(i32),
    /// [`FieldShape::Names`](super::FieldShape::Names).
    Names(Vec<Text<'a>>),
    /// [`FieldShape::Functions`](super::FieldShape::Functions), [`FieldShape::SilentFunctions`](super::FieldShape::SilentFunctions).
    Functions(Vec<DeviceFunction<'a>>),
    /// [`FieldShape::Kernels`](super::FieldShape::Kernels).
    Kernels(Vec<KernelCode<'a>>),
    /// [`FieldShape::Shaders`](super::FieldShape::Shaders).
    Shaders(Vec<Shader<'a>>),
    // PAY-34, PAY-40: the counts are in different places, but the value is the same.
    /// [`FieldShape::Variables`](super::FieldShape::Variables), [`FieldShape::Params`](super::FieldShape::Params).
    Tensors(Vec<(Text<'a>, TensorRecord<'a>)>),
    /// [`FieldShape::Symbols`](super::FieldShape::Symbols).
    Symbols(Vec<(Text<'a>, Vec<Text<'a>>)>),
    /// [`FieldShape::Networks`](super::FieldShape::Networks).
    Networks(Vec<Network<'a>>),
    // Boxed, because an executable is many times larger than other fields, and would enlarge each of them.
    /// [`FieldShape::Relay`](super::FieldShape::Relay).
    Relay(Box<relay_vm::RelayExecutable<'a>>),
    /// [`FieldShape::Relax`](super::FieldShape::Relax).
    Relax(Box<relax_vm::RelaxExecutable<'a>>),
    /// [`FieldShape::StackVms`](super::FieldShape::StackVms).
    StackVms(Vec<(Text<'a>, StackVm<'a>)>),
    /// [`FieldShape::Imports`](super::FieldShape::Imports).
    Imports(Vec<Payload<'a>>),
}
