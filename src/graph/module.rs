//! The executor under the names that TVM gives it: modules `GraphExecutor` and `GraphExecutorFactory`.

use super::executor::{Executor, Place, Tensor};
pub use super::factory::Factory;
use super::factory::{Parameters, load_factory};
use super::{GRF_32, GRF_42, GRF_43, GRF_44};
use super::{Graph, debug, debug_methods, linked};
use crate::function::{Error, Function, registry};
use crate::module::{Module, ModuleKind, provide_loader};
use crate::object::Map;
use crate::rule::{Findings, Kind as Broken};
use crate::tensor::{Device, Params};
use crate::value::{Any, AnyView, DLDevice, DLTensor, cast, index};
use crate::wire::Cursor;
use std::sync::{Arc, Mutex, PoisonError};

pub(super) type Result<T = Any> = std::result::Result<T, Error>;

/// The names under which an executor was ever made, and whether they make a debug executor.
const CREATE: [(&str, bool); 4] = [
    ("tvm.graph_executor.create", false),
    ("tvm.graph_runtime.create", false),
    ("tvm.graph_executor_debug.create", true),
    ("tvm.graph_runtime_debug.create", true),
];

/// The same of a factory.
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
    for kind in ["GraphExecutorFactory", "GraphRuntimeFactory"] {
        provide_loader(kind, load_factory);
    }
}

/// `(graph_json, module, [lookup_linked_param,] type0, id0, type1, id1, ...)` (GRF-43).
fn create(name: &str, args: &[AnyView<'_>], debug: bool) -> Result {
    let few = || {
        let count = args.len();
        GRF_43.refused(
            Broken::Type,
            format!(
                "The expected number of arguments for {name} is at least 4, but it has {count}"
            ),
        )
    };
    let [json, module, rest @ ..] = args else {
        return Err(few().into());
    };
    // A function in third place finds linked parameters, instead of the library's own.
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
    let json = String::try_from(*json)?;
    let executor = executor(&json, &as_module(*module)?, lookup.as_ref(), devices)?;
    Ok(Module::new(GraphExecutor::new(executor, debug)).into())
}

/// `(graph_json, module, module_name, name0, tensor0, name1, ...)`.
fn create_factory(args: &[AnyView<'_>]) -> Result {
    let [json, module, name, params @ ..] = args else {
        return Err(GRF_43
            .refused(
                Broken::Type,
                "needs at least 3 arguments: graph, module, name",
            )
            .into());
    };
    GRF_43.demand(Broken::Type, params.len().is_multiple_of(2), || {
        "parameters come in pairs of name and tensor".into()
    })?;
    let mut owned = Vec::new();
    for pair in params.chunks_exact(2) {
        let tensor = cast::<crate::object::Tensor>(pair[1])?;
        owned.push((String::try_from(pair[0])?, tensor));
    }
    let factory = Factory {
        graph_json: String::try_from(*json)?,
        name: String::try_from(*name)?,
        params: Parameters::Tensors(owned),
    };
    let made = Module::new(factory);
    made.import(as_module(*module)?)?;
    Ok(made.into())
}

fn executor(
    json: &str,
    module: &Module,
    lookup: Option<&Function>,
    devices: &[AnyView<'_>],
) -> Result<Executor> {
    let graph = Graph::read(json, &mut Findings::default())?;
    // A kernel may live in an import of the library.
    let mut executor = Executor::new(
        Arc::new(graph),
        &|name| module.function(name, true),
        places(devices)?,
    )?;
    linked::link(&mut executor, module, lookup)?;
    Ok(executor)
}

/// Devices as values of their own, as a factory is given them, or as pairs of type and index.
pub(super) fn places(mut devices: &[AnyView<'_>]) -> Result<Vec<Place>> {
    let mut places = Vec::new();
    while let [first, rest @ ..] = devices {
        let (kind, id);
        (kind, id, devices) = match rest {
            _ if first.type_index() == index::DEVICE => {
                let device = cast::<DLDevice>(*first)?;
                (device.device_type, device.device_id, rest)
            }
            [second, rest @ ..] => (i32::try_from(*first)?, i32::try_from(*second)?, rest),
            [] => {
                return Err(GRF_43
                    .refused(Broken::Type, "devices come in pairs of type and index")
                    .into());
            }
        };
        places.push(Place::of(Device { kind, id })?);
    }
    Ok(places)
}

fn as_module(view: AnyView<'_>) -> Result<Module> {
    let object = view.as_object().cloned();
    object
        .and_then(|object| Module::from_object(object).ok())
        .ok_or_else(|| {
            GRF_43
                .refused(
                    Broken::Type,
                    "the argument in the module's place is no module",
                )
                .into()
        })
}

/// An executor as a module.
pub(crate) struct GraphExecutor {
    state: Arc<Mutex<State>>,
    debug: bool,
}

pub(super) struct State {
    pub(super) executor: Executor,
    pub(super) stepper: debug::Stepper,
}

impl GraphExecutor {
    /// The module of `executor`; a debug executor has more functions.
    pub(crate) fn new(executor: Executor, debug: bool) -> GraphExecutor {
        let state = State {
            executor,
            stepper: debug::Stepper::default(),
        };
        GraphExecutor {
            state: Arc::new(Mutex::new(state)),
            debug,
        }
    }

    /// The executor that `module` is, if it is one.
    pub(crate) fn of(module: &Module) -> Option<&GraphExecutor> {
        let kind: &dyn std::any::Any = module.implementation()?;
        kind.downcast_ref()
    }
}

impl ModuleKind for GraphExecutor {
    fn kind(&self) -> &str {
        "GraphExecutor"
    }

    fn function(&self, module: &Module, name: &str) -> Result<Option<Function>> {
        let debug = self.debug.then_some(&debug_methods::METHODS[..]);
        let mut methods = METHODS.iter().chain(debug.unwrap_or_default());
        let Some(method) = methods.find(|method| method.0 == name) else {
            return Ok(None);
        };
        let (state, alive) = (Arc::clone(&self.state), module.clone());
        Ok(Some(Function::from_packed(move |args| {
            let _alive = &alive;
            let (name, least, body) = *method;
            enough(name, least, args)?;
            body(
                &mut state.lock().unwrap_or_else(PoisonError::into_inner),
                args,
            )
        })))
    }
}

/// A function of the module: its name, how many arguments it has at least, and what it does.
pub(super) type Method = (
    &'static str,
    usize,
    fn(&mut State, &[AnyView<'_>]) -> Result,
);

const METHODS: [Method; 14] = [
    ("set_input", 2, set_input),
    ("set_input_zero_copy", 2, set_input_zero_copy),
    ("set_output_zero_copy", 2, set_output_zero_copy),
    ("get_input", 1, input),
    ("get_output", 1, output),
    ("get_num_inputs", 0, |state, _| {
        Ok((state.executor.input_count() as i64).into())
    }),
    ("get_num_outputs", 0, |state, _| {
        Ok((state.executor.output_count() as i64).into())
    }),
    ("get_input_index", 1, input_index),
    ("get_input_info", 0, |state, _| info(&state.executor, true)),
    ("get_output_info", 0, |state, _| {
        info(&state.executor, false)
    }),
    ("run", 0, |state, _| {
        state.executor.run().map(|()| Any::none())
    }),
    ("run_from_inputs", 2, run_from_inputs),
    ("load_params", 1, load_params),
    ("share_params", 2, share_params),
];

/// Input by number or by name. A name that the graph does not have is `None`: released executors then do nothing, and
/// frontends rely on it when they set all parameters that they have (GRF-44).
fn which_input(executor: &Executor, key: AnyView<'_>) -> Result<Option<usize>> {
    if let Ok(name) = String::try_from(key) {
        return Ok(executor.input_index(&name));
    }
    // A number that is none is refused where it is used (GRF-32).
    position(key).map(Some)
}

/// Output by number, or by the name of its node (0.12): the last of the outputs of that node.
fn which_output(executor: &Executor, key: AnyView<'_>) -> Result<usize> {
    named_output(executor, key, |name, node, _| name == node)
}

/// Output by number, by `<node>:<number of the output>` (0.10), or by the name of its node (0.8 and 0.9).
fn which_output_in_place(executor: &Executor, key: AnyView<'_>) -> Result<usize> {
    named_output(executor, key, |name, node, at| {
        name == node || name == format!("{node}:{at}")
    })
}

fn named_output(
    executor: &Executor,
    key: AnyView<'_>,
    is: impl Fn(&str, &str, usize) -> bool,
) -> Result<usize> {
    let Ok(name) = String::try_from(key) else {
        return position(key);
    };
    let graph = executor.graph();
    let mut heads = graph.heads.iter().enumerate().rev();
    let found = heads.find(|(at, head)| {
        let node = graph.nodes.get(head.node).map_or("", |node| &node.name);
        is(&name, node, *at)
    });
    let found = found.map(|(at, _)| at);
    found.ok_or_else(|| {
        GRF_32
            .refused(Broken::Missing, format!("Invalid output node:{name}"))
            .into()
    })
}

fn set_input(state: &mut State, args: &[AnyView<'_>]) -> Result {
    let (key, tensor) = (args[0], &args[1]);
    if let Some(index) = which_input(&state.executor, key)? {
        let tensor = description(tensor)?;
        // SAFETY: an argument describes memory that its caller keeps for the call.
        unsafe { state.executor.set_input_from(index, tensor) }?;
    }
    Ok(Any::none())
}

fn set_input_zero_copy(state: &mut State, args: &[AnyView<'_>]) -> Result {
    let (key, tensor) = (args[0], &args[1]);
    if let Some(index) = which_input(&state.executor, key)? {
        let (source, keep) = (description(tensor)?, tensor.to_any());
        // SAFETY: a tensor object is kept; the memory of a bare description, which only `unsafe` code makes, is kept by
        // the caller, as GRF-34 asks.
        unsafe { state.executor.refer_input(index, source, keep) }?;
    }
    Ok(Any::none())
}

fn set_output_zero_copy(state: &mut State, args: &[AnyView<'_>]) -> Result {
    let (key, tensor) = (args[0], &args[1]);
    let index = which_output_in_place(&state.executor, key)?;
    let (target, keep) = (description(tensor)?, tensor.to_any());
    // SAFETY: as for an input.
    unsafe { state.executor.refer_output(index, target, keep) }?;
    Ok(Any::none())
}

fn input(state: &mut State, args: &[AnyView<'_>]) -> Result {
    let (key, rest) = (args[0], &args[1..]);
    let Some(index) = which_input(&state.executor, key)? else {
        return Ok(Any::none());
    };
    give(state.executor.input(index)?, rest)
}

fn output(state: &mut State, args: &[AnyView<'_>]) -> Result {
    let (key, rest) = (args[0], &args[1..]);
    let index = which_output(&state.executor, key)?;
    give(state.executor.output(index)?, rest)
}

/// The tensor itself, or a copy of it in the tensor that was handed in.
pub(super) fn give(tensor: &Tensor, rest: &[AnyView<'_>]) -> Result {
    match rest {
        [] => Ok(tensor.to_object().into()),
        [target, ..] => {
            let target = description(target)?;
            // SAFETY: an argument describes memory that its caller keeps for the call.
            unsafe { tensor.copy_into(target) }?;
            Ok(Any::none())
        }
    }
}

fn input_index(state: &mut State, args: &[AnyView<'_>]) -> Result {
    let name = String::try_from(args[0])
        .map_err(|_| Error::from(GRF_44.refused(Broken::Type, "Input key is not a string")))?;
    Ok(state
        .executor
        .input_index(&name)
        .map_or(-1, |index| index as i64)
        .into())
}

/// `{"shape": {name: shape}, "dtype": {name: text}}`, without the inputs that a parameter file set.
fn info(executor: &Executor, inputs: bool) -> Result {
    let graph = executor.graph();
    let (mut shapes, mut dtypes) = (Map::new(), Map::new());
    let mut add = |name: &str, tensor: &Tensor| -> Result<()> {
        shapes.set_untrusted(name, crate::object::Shape::new(tensor.shape()))?;
        dtypes.set_untrusted(name, super::json::dtype_text(tensor.dtype()))
    };
    if inputs {
        for (index, (_, name)) in graph.inputs().enumerate() {
            if executor.is_param(index) {
                continue;
            }
            add(name, executor.input(index)?)?;
        }
    } else {
        for (index, head) in graph.heads.iter().enumerate() {
            let node = graph.nodes.get(head.node).map_or("", |node| &node.name);
            let name = if head.index == 0 {
                node.to_owned()
            } else {
                format!("{node}:{}", head.index)
            };
            add(&name, executor.output(index)?)?;
        }
    }
    let mut both = Map::new();
    both.set("shape", shapes)?;
    both.set("dtype", dtypes)?;
    Ok(both.into())
}

/// `(host device type, host device id, name0, tensor0, ...)`: sets, runs, and returns host copies of the outputs.
fn run_from_inputs(state: &mut State, args: &[AnyView<'_>]) -> Result {
    GRF_44.demand(Broken::Type, args.len().is_multiple_of(2), || {
        "Number of arguments to run_from_inputs must be an even number of key-value pairs".into()
    })?;
    for pair in args[2..].chunks_exact(2) {
        let name = String::try_from(pair[0])?;
        let index = state.executor.input_index(&name).ok_or_else(|| {
            Error::from(
                GRF_32.refused(Broken::Missing, format!("{name} is not a valid input name")),
            )
        })?;
        let tensor = description(&pair[1])?;
        // SAFETY: an argument describes memory that its caller keeps for the call.
        unsafe { state.executor.set_input_from(index, tensor) }?;
    }
    state.executor.run()?;
    let mut outputs = Vec::new();
    for index in 0..state.executor.output_count() {
        outputs.push(Any::from(state.executor.output(index)?.to_host_object()?));
    }
    Ok(crate::object::Array::new(outputs).into())
}

/// Sets every parameter of a parameter file that is an input of the graph; others are skipped, as from 0.7 on.
fn load_params(state: &mut State, args: &[AnyView<'_>]) -> Result {
    let bytes = as_bytes(args[0])?;
    let (params, _) = Params::detect(&mut Cursor::new(&bytes), &mut Findings::default())?;
    state.executor.load_params(&params)?;
    Ok(Any::none())
}

/// `(other executor's module, parameter file)`: uses the other's memory for every parameter that the file names.
fn share_params(state: &mut State, args: &[AnyView<'_>]) -> Result {
    let other = as_module(args[0])?;
    let shared = GraphExecutor::of(&other).ok_or_else(|| {
        Error::from(GRF_44.refused(
            Broken::Type,
            format!(
                "parameters are shared with a GraphExecutor, not a {}",
                other.kind()
            ),
        ))
    })?;
    let bytes = as_bytes(args[1])?;
    let (params, _) = Params::detect(&mut Cursor::new(&bytes), &mut Findings::default())?;
    let other = shared.state.try_lock().map_err(|_| {
        Error::from(GRF_44.refused(
            Broken::Cycle,
            "an executor cannot share parameters with itself",
        ))
    })?;
    state
        .executor
        .share_inputs(&other.executor, params.iter().map(|(name, _)| name))?;
    Ok(Any::none())
}

/// An index; a negative one is that of nothing.
pub(super) fn position(view: AnyView<'_>) -> Result<usize> {
    Ok(usize::try_from(i64::try_from(view)?).unwrap_or(usize::MAX))
}

/// A number that is not negative (GRF-42).
pub(super) fn count(view: AnyView<'_>) -> Result<usize> {
    let number = i64::try_from(view)?;
    match usize::try_from(number) {
        Ok(count) => Ok(count),
        Err(_) => Err(GRF_42
            .refused(Broken::Type, format!("{number} is no number of times"))
            .into()),
    }
}

/// GRF-44: nothing is made up for arguments that are not there.
pub(super) fn enough(name: &str, least: usize, args: &[AnyView<'_>]) -> Result<()> {
    let count = args.len();
    GRF_44.demand(Broken::Type, count >= least, || {
        format!("`{name}` needs {least} arguments at least, it got {count}")
    })?;
    Ok(())
}

fn as_bytes(view: AnyView<'_>) -> Result<Vec<u8>> {
    match cast::<Vec<u8>>(view) {
        Ok(bytes) => Ok(bytes),
        // Frontends up to 0.20 pass parameter files as strings, too.
        Err(_) => Ok(cast::<crate::value::Str>(view)?.as_bytes().to_vec()),
    }
}

/// The description of a tensor argument, with whole bytes for each element (GRF-33).
fn description<'a>(view: &'a AnyView<'_>) -> Result<&'a DLTensor> {
    if let Ok(tensor) = cast::<crate::object::Tensor>(*view) {
        super::memory::whole(&tensor)?;
    }
    let tensor = cast::<*mut DLTensor>(*view)?;
    // SAFETY: an argument of this type points to a description that lives as long as the view.
    Ok(unsafe { &*tensor })
}
