//! What no C function of 0.20 and before can be asked about an executor: ours, through the Rust interface.

use super::forms::shown;
use crate::device::simulated::Simulated;
use crate::device::{Device, DeviceApi};
use crate::function::{Error, Function};
use crate::graph::Graph;
use crate::graph::executor::{Executor, Place};
use crate::graph::module::GraphExecutor;
use crate::module::Module;
use crate::rule::Findings;
use crate::value::{Any, AnyView, Bytes, cast};
use std::sync::{Arc, OnceLock};

/// `create` makes an executor of a graph, a module, whether it is for debugging, and pairs of device type and number, among
/// them a device that is simulated. `show` is a result as JSON text, `save` the payload of a module.
pub(in crate::conformance) fn function(name: &str) -> Option<Function> {
    Some(match name {
        "create" => Function::from_packed(create),
        "show" => Function::from_packed(|args| {
            let value = args.first().copied().unwrap_or(AnyView::none());
            Ok(shown(value).to_string().into())
        }),
        "save" => Function::from_typed(|module: Module| module.save_to_bytes().map(Bytes::new)),
        _ => return None,
    })
}

fn create(args: &[AnyView<'_>]) -> Result<Any, Error> {
    let [graph, module, debug, devices @ ..] = args else {
        return Err(Error::new(
            "TypeError",
            "a graph, a module, and whether to debug",
        ));
    };
    let graph = Graph::read(&cast::<String>(*graph)?, &mut Findings::default())?;
    let module = cast::<Module>(*module)?;
    let mut places = Vec::new();
    for pair in devices.chunks_exact(2) {
        places.push(place(cast(pair[0])?, cast(pair[1])?)?);
    }
    let kernel = |name: &str| module.function(name, true);
    let executor = Executor::new(Arc::new(graph), &kernel, places)?;
    Ok(Module::new(GraphExecutor::new(executor, cast(*debug)?)).into())
}

/// A place of a case: the CPU, or a simulated device for `ext_dev`, which is one for the process.
fn place(kind: i32, id: i32) -> Result<Place, Error> {
    static SIMULATED: OnceLock<&'static Simulated> = OnceLock::new();
    if kind == Device::ext_dev(0).kind {
        let api: &'static Simulated =
            SIMULATED.get_or_init(|| Box::leak(Box::new(Simulated::new(1))));
        let api: &'static dyn DeviceApi = api;
        // SAFETY: its memory keeps the rules, and is not the host's, as of no device of this type.
        return Ok(unsafe { Place::with(Device { kind, id }, api) });
    }
    Place::of(Device { kind, id })
}
