//! What a slot of a payload holds.

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
    /// The SPIR-V words, 4 bytes each, as they are in the file.
    pub spirv: Binary<'a>,
}

/// One compiled network of ethos-n.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network<'a> {
    /// The function that runs it.
    pub name: Text<'a>,
    /// The vendor's serialized network.
    pub compiled: Binary<'a>,
    /// Which buffer each input goes to.
    pub inputs: Vec<u32>,
    /// Bytes of each input; as many as inputs in form 0.10, none in form 0.7.
    pub input_sizes: Vec<u32>,
    /// Which buffer each output comes from.
    pub outputs: Vec<u32>,
    /// Bytes of each output; as many as outputs in form 0.10, none in form 0.7.
    pub output_sizes: Vec<u32>,
}

/// What stood in a slot.
#[derive(Clone, Debug, PartialEq)]
pub enum Field<'a> {
    /// [`FieldShape::Text`](super::FieldShape::Text), [`FieldShape::Version`](super::FieldShape::Version), [`FieldShape::Base64`](super::FieldShape::Base64), [`FieldShape::Format`](super::FieldShape::Format).
    Text(Text<'a>),
    // Two shapes of one value: whether JSON may show it as text is a matter of the slot.
    /// [`FieldShape::Code`](super::FieldShape::Code), [`FieldShape::Binary`](super::FieldShape::Binary).
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
    // PAY-34, PAY-40: the counts are at other places, and the value is the same.
    /// [`FieldShape::Variables`](super::FieldShape::Variables), [`FieldShape::Params`](super::FieldShape::Params).
    Tensors(Vec<(Text<'a>, TensorRecord<'a>)>),
    /// [`FieldShape::Symbols`](super::FieldShape::Symbols).
    Symbols(Vec<(Text<'a>, Vec<Text<'a>>)>),
    /// [`FieldShape::Networks`](super::FieldShape::Networks).
    Networks(Vec<Network<'a>>),
    // Boxed: an executable is many times as large as any other field, and every field would take as much.
    /// [`FieldShape::Relay`](super::FieldShape::Relay).
    Relay(Box<relay_vm::RelayExecutable<'a>>),
    /// [`FieldShape::Relax`](super::FieldShape::Relax).
    Relax(Box<relax_vm::RelaxExecutable<'a>>),
    /// [`FieldShape::StackVms`](super::FieldShape::StackVms).
    StackVms(Vec<(Text<'a>, StackVm<'a>)>),
    /// [`FieldShape::Imports`](super::FieldShape::Imports).
    Imports(Vec<Payload<'a>>),
}
