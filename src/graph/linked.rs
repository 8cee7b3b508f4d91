//! Parameters that a library brings with it (GRF-43): compiled with `link-params`, they lie in its constants, and a graph
//! executor uses them where they are.

use super::executor::Executor;
use crate::function::{Error, Function};
use crate::module::Module;
use crate::value::{Any, AnyView, DLDevice, DLTensor, cast, index};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;

/// What such a library calls the function that finds the memory of a storage id.
const LOOKUP: &str = "_lookup_linked_param";

/// Links every input of `executor` that `lookup` knows, or without one the library itself.
///
/// `lookup` is asked with the library, the storage id, a tensor without memory and a device, and gives a tensor or None.
pub(super) fn link(
    executor: &mut Executor,
    module: &Module,
    lookup: Option<&Function>,
) -> Result<(), Error> {
    let own = match lookup {
        Some(_) => None,
        None => module.function(LOOKUP, true)?,
    };
    if lookup.is_none() && own.is_none() {
        return Ok(());
    }
    let graph = Arc::clone(executor.graph());
    let device = executor.places().first().map(|place| place.device);
    let device = device.map_or(DLDevice::CPU, DLDevice::from);
    for (input, node) in graph.arg_nodes.iter().enumerate() {
        let entry = graph.node_row_ptr.get(*node);
        let Some(entry) = entry.and_then(|entry| graph.entries.get(*entry)) else {
            continue;
        };
        let storage = entry.storage_id as i64;
        // Its shape is the executor's, which moves no tensor while it lives.
        let mut template = *executor.input(input)?.as_dltensor();
        (template.data, template.byte_offset) = (null_mut(), 0);
        template.device = DLDevice::CPU;
        let found = match (lookup, &own) {
            (Some(lookup), _) => lookup.call(&[
                module.into(),
                storage.into(),
                AnyView::dltensor(&template),
                device.into(),
            ])?,
            (None, Some(own)) => own.call(&[storage.into()])?,
            (None, None) => Any::none(),
        };
        if let Some(source) = memory_of(&found, template)? {
            put(executor, input, source, found)?;
        }
    }
    Ok(())
}

/// Where the parameter lies: an address stands for the memory of `template`, a tensor for itself.
fn memory_of(found: &Any, template: DLTensor) -> Result<Option<DLTensor>, Error> {
    match found.type_index() {
        index::NONE => Ok(None),
        index::OPAQUE => {
            let data = <*mut c_void>::try_from(found)?;
            Ok((!data.is_null()).then_some(DLTensor { data, ..template }))
        }
        _ => {
            let tensor = cast::<*mut DLTensor>(found.view())?;
            // SAFETY: a tensor that was just given, and that `found` keeps.
            Ok(unsafe { tensor.as_ref() }.copied())
        }
    }
}

fn put(executor: &mut Executor, input: usize, source: DLTensor, keep: Any) -> Result<(), Error> {
    let device = executor.input(input)?.as_dltensor().device;
    if device != source.device {
        // A library has its constants on the host; another device needs a copy.
        return executor.set_input(input, &source);
    }
    // SAFETY: `keep` is the tensor, or the memory belongs to the library of the executor's functions.
    unsafe { executor.link_input(input, &source, keep) }
}
