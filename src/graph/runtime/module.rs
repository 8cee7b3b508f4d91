//! The executor under upstream's names: modules `GraphExecutor` and `GraphExecutorFactory`.

pub(crate) use super::executor_module::GraphExecutor;
pub use super::factory::GraphExecutorFactory;

use super::arguments::{as_module, executor_devices};
use super::executor::Executor;
use super::factory::{ModelParams, load_factory};
use super::linked_params;
use crate::function::{self, Function, registry};
use crate::graph::{GRF_43, Graph};
use crate::module::{Module, provide_loader};
use crate::rule::{Findings, Kind};
use crate::value::{AnyView, cast};
use std::sync::Arc;

/// The names of all functions that create an executor in any release, and `true` for a debug executor.
const CREATE: [(&str, bool); 4] = [
    ("tvm.graph_executor.create", false),
    ("tvm.graph_runtime.create", false),
    ("tvm.graph_executor_debug.create", true),
    ("tvm.graph_runtime_debug.create", true),
];

/// The names of all functions that ever created a factory.
const CREATE_FACTORY: [&str; 2] = [
    "tvm.graph_executor_factory.create",
    "tvm.graph_runtime_factory.create",
];

/// Provides the global functions and the loaders of this chapter.
pub(crate) fn provide() {
    for (name, debug) in CREATE {
        let create = Function::from_packed(move |args| create(name, args, debug));
        registry::provide(name, create);
    }
    for name in CREATE_FACTORY {
        registry::provide(name, Function::from_packed(create_factory));
    }
    // PAY-40: 0.7 uses the second name for the same payload.
    for kind in ["GraphExecutorFactory", "GraphRuntimeFactory"] {
        provide_loader(kind, load_factory);
    }
}

/// Creates an executor (GRF-43); arguments: `(graph_json, module, [lookup_linked_param,] type0, id0, type1, id1, ...)`.
fn create(name: &str, args: &[AnyView<'_>], debug: bool) -> function::Result {
    let few = || {
        let count = args.len();
        GRF_43.rejected(
            Kind::Type,
            format!(
                "The expected number of arguments for {name} is at least 4, but it has {count}"
            ),
        )
    };
    let [json, module, rest @ ..] = args else {
        return Err(few().into());
    };
    // GRF-43: from 0.8 on a function in third place finds linked parameters, instead of the library's own. None means no function.
    let (lookup, devices) = match rest {
        [view, devices @ ..] => match cast::<Function>(*view) {
            Ok(lookup) => (Some(lookup), devices),
            Err(_) if view.is_none() => (None, devices),
            Err(_) => (None, rest),
        },
        _ => (None, rest),
    };
    if devices.is_empty() {
        return Err(few().into());
    }
    // GRF-43: 0.2 to 0.4 take one device, which their callers also pass as a pair.
    let json = String::try_from(*json)?;
    let executor = executor(&json, &as_module(*module)?, lookup.as_ref(), devices)?;
    Ok(Module::new(GraphExecutor::new(executor, debug)).into())
}

/// Creates a factory; arguments: `(graph_json, module, module_name, name0, tensor0, name1, ...)`.
fn create_factory(args: &[AnyView<'_>]) -> function::Result {
    let [json, module, name, params @ ..] = args else {
        return Err(GRF_43
            .rejected(
                Kind::Type,
                "needs at least 3 arguments: graph, module, name",
            )
            .into());
    };
    GRF_43.demand(Kind::Type, params.len().is_multiple_of(2), || {
        "parameters come in pairs of name and tensor".into()
    })?;
    let mut owned = Vec::new();
    for pair in params.chunks_exact(2) {
        // A reference, not a copy: if the caller writes to the tensor later, later executors start with that.
        let tensor = cast::<crate::object::Tensor>(pair[1])?;
        owned.push((String::try_from(pair[0])?, tensor));
    }
    let factory = GraphExecutorFactory {
        graph_json: String::try_from(*json)?,
        name: String::try_from(*name)?,
        params: ModelParams::Tensors(owned),
    };
    let made = Module::new(factory);
    // GRF-49: the functions of the factory look for kernels there.
    made.import(as_module(*module)?)?;
    Ok(made.into())
}

/// Creates an executor of graph JSON, with the parameters that `lookup` or the library links into it (GRF-43).
fn executor(
    json: &str,
    module: &Module,
    lookup: Option<&Function>,
    devices: &[AnyView<'_>],
) -> function::Result<Executor> {
    let graph = Graph::read(json, &mut Findings::default())?;
    // GRF-31: from 0.6 on a kernel may be in an import of the library.
    let mut executor = Executor::new(
        Arc::new(graph),
        &|name| module.function(name, true),
        executor_devices(devices)?,
    )?;
    linked_params::link(&mut executor, module, lookup)?;
    Ok(executor)
}
