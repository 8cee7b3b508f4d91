//! Parameters that are linked into a library (GRF-43). With `link-params` the compiler puts them into its constants, and a graph
//! executor uses them in place.

use super::executor::{Executor, ExecutorDevice, PoolTensor};
use crate::function::{Error, Function};
use crate::module::{Library, Module};
use crate::object::Tensor;
use crate::tensor::Device;
use crate::value::{Any, AnyView, DLTensor, cast, index};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;

/// The function of a library that finds the memory of a storage id.
const LOOKUP: &str = "_lookup_linked_param";

/// Links every input of `executor` that the library or `lookup` knows. Without `lookup`, the library's own function is used.
///
/// `lookup` takes the library, the storage id, a tensor without memory, and a device. It returns a tensor or None (GRF-43).
pub(super) fn link(
    executor: &mut Executor,
    module: &Module,
    lookup: Option<&Function>,
) -> Result<(), Error> {
    let finder = match lookup {
        Some(lookup) => LinkedLookup::OfCaller(lookup),
        None => match own_lookup(module)? {
            Some(own) => own,
            None => return Ok(()),
        },
    };
    let graph = Arc::clone(executor.graph());
    let device = executor.devices().first().map(ExecutorDevice::device);
    let device = device.unwrap_or(Device::CPU);
    // GRF-43: releases look up every storage id, but only those of inputs have a parameter.
    for (input, node) in graph.arg_nodes.iter().enumerate() {
        let entry = graph.node_row_ptr.get(*node);
        let Some(entry) = entry.and_then(|entry| graph.entries.get(*entry)) else {
            continue;
        };
        let storage = entry.storage_id as i64;
        // The shape belongs to the executor, which does not move tensors.
        let mut template = *executor.input(input)?.as_dltensor();
        (template.data, template.byte_offset) = (null_mut(), 0);
        // GRF-43: a lookup fills in a tensor on the host, wherever the entry is.
        template.device = Device::CPU;
        let found = match &finder {
            LinkedLookup::OfCaller(lookup) => {
                // SAFETY: the shape is the executor's; the lookup of a parameter takes shape and type from this and fills in
                // the data, which is null.
                let template = unsafe { AnyView::dltensor(&template) };
                lookup.call_packed(&[module.into(), storage.into(), template, device.into()])?
            }
            LinkedLookup::Own { lookup, .. } => lookup.call_packed(&[storage.into()])?,
        };
        match &finder {
            LinkedLookup::Own {
                lookup,
                compiled: true,
            } if found.type_index() == index::OPAQUE => {
                let data = <*mut c_void>::try_from(&found)?;
                if data.is_null() {
                    continue;
                }
                // GRF-43: a library returns only an address. The graph states the type and shape of the data there.
                let source = DLTensor { data, ..template };
                // SAFETY: the address is that of the library's constant for this storage, with the size that the library's graph
                // states. `lookup` keeps the library (third clause of `module::load`).
                unsafe { link_or_copy(executor, input, source, lookup.clone().into()) }?;
            }
            // GRF-43: None means that the storage id has no parameter, so the input keeps its pool.
            _ if found.is_none() => {}
            _ => {
                let tensor = cast::<Tensor>(found.view())?;
                // SAFETY: a tensor object has readable extents and strides.
                unsafe { PoolTensor::check_compact(tensor.dl(), "a linked parameter") }?;
                // SAFETY: a tensor object owns the memory that it describes, contiguous as just checked, and is kept.
                unsafe { link_or_copy(executor, input, *tensor.dl(), found) }?;
            }
        }
    }
    Ok(())
}

/// The source of linked parameters.
enum LinkedLookup<'f> {
    /// A function of the caller that creates the executor.
    OfCaller(&'f Function),
    /// The library's own function. Its result is used as an address only if it is compiled.
    Own { lookup: Function, compiled: bool },
}

/// Returns the function of that name in `module` or in its imports.
fn own_lookup(module: &Module) -> Result<Option<LinkedLookup<'static>>, Error> {
    for module in module.walk() {
        if let Some(lookup) = module.function(LOOKUP, false)? {
            let foreign = module.implementation().is_none();
            let compiled = foreign || Library::of(&module).is_some();
            return Ok(Some(LinkedLookup::Own { lookup, compiled }));
        }
    }
    Ok(None)
}

/// Uses `source` for an input, or copies it if the devices differ.
///
/// # Safety
///
/// `source` describes memory that stays as long as `keep`, in one piece; its extents are readable.
unsafe fn link_or_copy(
    executor: &mut Executor,
    input: usize,
    source: DLTensor,
    keep: Any,
) -> Result<(), Error> {
    let device = executor.input(input)?.as_dltensor().device;
    if device != source.device {
        // The constants of a library are on the host; another device needs a copy.
        // SAFETY: `keep` lives until the end of this function.
        return unsafe { executor.set_input_from(input, &source) };
    }
    // SAFETY: the caller keeps the requirements of this function, which are the same.
    unsafe { executor.link_input(input, &source, keep) }
}
