//! Linking: the functions of the table and the constants, which a machine needs before it runs.

use super::allocator::VmDevice;
use super::builtin::{self, Builtin};
use super::closure::VmClosure;
use super::code::Callee;
use super::loaded_executable::LoadedExecutable;
use super::storage::allocate_unpooled;
use crate::device::byte_size;
use crate::device::tensor::copy;
use crate::function::{Error, Function, registry};
use crate::module::Module;
use crate::object::{Shape, Tensor};
use crate::payload::relax_vm::{FunctionKind, RelaxConstant};
use crate::release::{Layout, Release};
use crate::rule::Kind;
use crate::tensor::{Device, Dtype, Elements, Packing};
use crate::value::{Any, DLTensor, Str, cast};
use crate::vm::VM_11;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// The origin of a machine's code.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// A module that `module::load` loaded. Its contract covers the behaviour of the code.
    Trusted,
    /// Bytes that safe code read.
    Unknown,
}

/// Returns every entry of the function table as a value, or VM-11 with the names of all missing functions.
pub(super) fn resolve(
    loaded: &Arc<LoadedExecutable>,
    imports: &[Module],
    origin: Origin,
) -> Result<Vec<Any>, Error> {
    let mut missing: BTreeSet<&str> = BTreeSet::new();
    let mut functions = Vec::new();
    let resets = match loaded.layout() {
        // VM-58: 0.16 to 0.20 write into a copy, so that a shared tuple does not change. Their libraries have these layouts.
        Layout::V0_2 | Layout::V0_7 => Origin::Unknown,
        _ => origin,
    };
    for (index, function) in loaded.executable().code().functions.iter().enumerate() {
        let name = &*function.name;
        let value = match function.kind {
            FunctionKind::Vm | FunctionKind::VmTir => {
                VmClosure::of_function(loaded, index, name).into()
            }
            FunctionKind::Packed => match find(name, imports, resets)? {
                Some(found) => found.into(),
                // VM-11: upstream names only the first missing function.
                None => {
                    missing.insert(name);
                    Any::none()
                }
            },
        };
        functions.push(value);
    }
    if missing.is_empty() {
        return Ok(functions);
    }
    let message = format!(
        "{} of the functions that the executable calls are neither in its library nor registered: {}",
        missing.len(),
        missing.into_iter().collect::<Vec<_>>().join(", ")
    );
    Err(VM_11.rejected(Kind::Missing, message).into())
}

/// Finds a function in the imports, in order, and then in the registry (VM-11).
fn find(name: &str, imports: &[Module], resets: Origin) -> Result<Option<Function>, Error> {
    for import in imports {
        // Each import is searched with all its own imports before the next one.
        if let Some(found) = import.function(name, true)? {
            return Ok(Some(found));
        }
    }
    match (name, resets) {
        // SAFETY: the contract of `module::load` covers the behaviour of the file's code: it resets an element of a register or an
        // argument that it does not use again (VM-58).
        (builtin::RESET, Origin::Trusted) => Ok(unsafe { registry::lookup_raw(name.as_bytes()) }),
        (builtin::RESET, Origin::Unknown) => Ok(Some(Function::from_packed(|args| {
            builtin::reset_item_held_alone(args)
        }))),
        _ => Ok(registry::lookup(name)),
    }
}

/// Returns the target of entry `index` of the table, whose value is `value`. A function of this executable is run directly, without
/// its closure.
///
/// `origin` decides how builtins that work on memory in place are called: directly only for trusted code.
pub(super) fn callee(index: usize, value: &Any, origin: Origin) -> Callee {
    let function = value
        .as_object()
        .cloned()
        .and_then(|object| Function::from_object(object).ok());
    match function {
        // Only the closure of a VM function is not a function of the ABI, because `resolve` has rejected missing ones.
        None => Callee::Vm(index),
        Some(function) => match Builtin::from_function(&function) {
            // Safe code may share a heap with another thread if the code's origin is unknown. The registry's function is
            // synchronized.
            Some(Builtin::InPlace { .. }) if origin == Origin::Unknown => Callee::Packed(function),
            Some(builtin) => Callee::Builtin(builtin),
            None => Callee::Packed(function),
        },
    }
}

/// Returns the constant pool as values. Tensors are copied once, to the first device, aligned for kernels (VM-13).
pub(super) fn constants(loaded: &LoadedExecutable, places: &[VmDevice]) -> Result<Vec<Any>, Error> {
    let code = loaded.executable().code();
    let mut scopes: HashMap<usize, &str> = HashMap::new();
    for (constant, scope) in code.memory_scopes.as_deref().unwrap_or_default() {
        // PAY-87 has checked the index, and that each constant has one scope.
        scopes.insert(*constant as usize, scope);
    }
    let first = &places[0];
    code.constants
        .iter()
        .enumerate()
        .map(|(index, constant)| {
            Ok(match constant {
                RelaxConstant::Tensor(record) => {
                    // VM-13: up to 0.22 no constant has a scope, which means the default one.
                    let scope = scopes.get(&index).copied().unwrap_or_default();
                    // TEN-35 is checked before memory is allocated, because a file can state elements that it does not store. The size
                    // is the largest of all releases. A release that packs elements finds its bytes at the start (TEN-31).
                    let elements = record.elements(Packing::Each)?;
                    let dtype = elements.dtype();
                    let tensor = allocate_unpooled(first, elements.shape(), dtype, scope)?;
                    fill(&tensor, &elements)?;
                    tensor
                }
                RelaxConstant::Shape(extents) => Shape::new(extents).into(),
                RelaxConstant::Text(text) => Str::from(&**text).into(),
                RelaxConstant::Int(value) => (*value).into(),
                RelaxConstant::Float(value) => (*value).into(),
                RelaxConstant::Dtype(dtype) => (*dtype).into(),
            })
        })
        .collect()
}

/// Copies `elements` into the whole of `tensor`, which `allocate_unpooled` allocated for their type and shape.
fn fill(tensor: &Any, elements: &Elements<'_>) -> Result<(), Error> {
    let tensor = cast::<Tensor>(tensor.view())?;
    let bytes = elements.bytes();
    let (mut dtype, mut extents) = (tensor.dl().dtype, elements.shape().to_vec());
    if byte_size(&extents, elements.dtype(), Release::LAST) != Some(bytes.len()) {
        // The elements have fewer than eight bits and whole bytes each. A copy by their type would omit most of the bytes.
        dtype = Dtype::scalar(Dtype::UINT, 8);
        extents = vec![bytes.len() as i64];
    }
    let to = DLTensor {
        ndim: extents.len() as i32,
        dtype,
        shape: extents.as_mut_ptr(),
        strides: std::ptr::null_mut(),
        ..*tensor.dl()
    };
    let from = DLTensor {
        data: bytes.as_ptr().cast_mut().cast(),
        device: Device::CPU,
        byte_offset: 0,
        ..to
    };
    // SAFETY: `from` describes `bytes`, whose length matches this shape and type, as was just compared or set. `to` is a tensor of
    // `allocate_unpooled` for the same elements, with room for whole bytes of each, alive in `tensor`.
    unsafe { copy(&from, &to) }
}
