//! The executor under the names that TVM gives it: modules `GraphExecutor` and `GraphExecutorFactory`.

use super::executor::{Executor, GRF_32, GRF_42, GRF_43, GRF_44, Place, Tensor};
pub use super::factory::Factory;
use super::factory::{Parameters, load_factory};
use super::{Graph, debug, linked};
use crate::function::{Error, Function, registry};
use crate::module::{Kind, Module, provide_loader};
use crate::object::Map;
use crate::rule::{Findings, Kind as Broken};
use crate::tensor::{Device, Params};
use crate::value::{Any, AnyView, Bytes, DLDevice, DLTensor, cast, index};
use crate::wire::Cursor;
use std::sync::{Arc, Mutex, PoisonError};

type Result<T = Any> = std::result::Result<T, Error>;

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
        [view, devices @ ..] if devices.len() % 2 == 0 => match cast::<Function>(*view) {
            Ok(lookup) => (Some(lookup), devices),
            Err(_) if view.is_none() => (None, devices),
            Err(_) => (None, rest),
        },
        _ => (None, rest),
    };
    if devices.len() < 2 {
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

struct State {
    executor: Executor,
    stepper: debug::Stepper,
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

impl Kind for GraphExecutor {
    fn kind(&self) -> &str {
        "GraphExecutor"
    }

    fn function(&self, module: &Module, name: &str) -> Result<Option<Function>> {
        let Some(method) =
            base_method(name).or_else(|| if self.debug { debug_method(name) } else { None })
        else {
            return Ok(None);
        };
        let (state, alive) = (Arc::clone(&self.state), module.clone());
        Ok(Some(Function::from_packed(move |args| {
            let _alive = &alive;
            method(
                &mut state.lock().unwrap_or_else(PoisonError::into_inner),
                args,
            )
        })))
    }
}

type Method = fn(&mut State, &[AnyView<'_>]) -> Result;

fn base_method(name: &str) -> Option<Method> {
    Some(match name {
        "set_input" => set_input,
        "set_input_zero_copy" => set_input_zero_copy,
        "set_output_zero_copy" => set_output_zero_copy,
        "get_input" => input,
        "get_output" => output,
        "get_num_inputs" => |state, _| Ok((state.executor.input_count() as i64).into()),
        "get_num_outputs" => |state, _| Ok((state.executor.output_count() as i64).into()),
        "get_input_index" => input_index,
        "get_input_info" => |state, _| info(&state.executor, true),
        "get_output_info" => |state, _| info(&state.executor, false),
        "run" => |state, _| state.executor.run().map(|()| Any::none()),
        "run_from_inputs" => run_from_inputs,
        "load_params" => load_params,
        "share_params" => share_params,
        _ => return None,
    })
}

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
    let [key, tensor, ..] = args else {
        return Err(wrong_count("set_input", 2, args));
    };
    if let Some(index) = which_input(&state.executor, *key)? {
        let tensor = description(tensor)?;
        // SAFETY: an argument describes memory that its caller keeps for the call.
        unsafe { state.executor.set_input_from(index, tensor) }?;
    }
    Ok(Any::none())
}

fn set_input_zero_copy(state: &mut State, args: &[AnyView<'_>]) -> Result {
    let [key, tensor, ..] = args else {
        return Err(wrong_count("set_input_zero_copy", 2, args));
    };
    if let Some(index) = which_input(&state.executor, *key)? {
        let (source, keep) = (description(tensor)?, tensor.to_any());
        // SAFETY: a tensor object is kept; the memory of a bare description, which only `unsafe` code makes, is kept by
        // the caller, as GRF-34 asks.
        unsafe { state.executor.refer_input(index, source, keep) }?;
    }
    Ok(Any::none())
}

fn set_output_zero_copy(state: &mut State, args: &[AnyView<'_>]) -> Result {
    let [key, tensor, ..] = args else {
        return Err(wrong_count("set_output_zero_copy", 2, args));
    };
    let index = which_output_in_place(&state.executor, *key)?;
    let (target, keep) = (description(tensor)?, tensor.to_any());
    // SAFETY: as for an input.
    unsafe { state.executor.refer_output(index, target, keep) }?;
    Ok(Any::none())
}

fn input(state: &mut State, args: &[AnyView<'_>]) -> Result {
    let [key, rest @ ..] = args else {
        return Err(wrong_count("get_input", 1, args));
    };
    let Some(index) = which_input(&state.executor, *key)? else {
        return Ok(Any::none());
    };
    give(state.executor.input(index)?, rest)
}

fn output(state: &mut State, args: &[AnyView<'_>]) -> Result {
    let [key, rest @ ..] = args else {
        return Err(wrong_count("get_output", 1, args));
    };
    let index = which_output(&state.executor, *key)?;
    give(state.executor.output(index)?, rest)
}

/// The tensor itself, or a copy of it in the tensor that was handed in.
fn give(tensor: &Tensor, rest: &[AnyView<'_>]) -> Result {
    match rest.first() {
        None => Ok(tensor.to_object().into()),
        Some(target) => {
            let target = description(target)?;
            // SAFETY: an argument describes memory that its caller keeps for the call.
            unsafe { tensor.copy_into(target) }?;
            Ok(Any::none())
        }
    }
}

fn input_index(state: &mut State, args: &[AnyView<'_>]) -> Result {
    let [name, ..] = args else {
        return Err(wrong_count("get_input_index", 1, args));
    };
    let name = String::try_from(*name)
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
    for pair in args.get(2..).unwrap_or_default().chunks_exact(2) {
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
    let [bytes, ..] = args else {
        return Err(wrong_count("load_params", 1, args));
    };
    let bytes = as_bytes(*bytes)?;
    let (params, _) = Params::detect(&mut Cursor::new(&bytes), &mut Findings::default())?;
    state.executor.load_params(&params)?;
    Ok(Any::none())
}

/// `(other executor's module, parameter file)`: uses the other's memory for every parameter that the file names.
fn share_params(state: &mut State, args: &[AnyView<'_>]) -> Result {
    let [other, bytes, ..] = args else {
        return Err(wrong_count("share_params", 2, args));
    };
    let other = as_module(*other)?;
    let shared = GraphExecutor::of(&other).ok_or_else(|| {
        Error::from(GRF_44.refused(
            Broken::Type,
            format!(
                "parameters are shared with a GraphExecutor, not a {}",
                other.kind()
            ),
        ))
    })?;
    let bytes = as_bytes(*bytes)?;
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

fn debug_method(name: &str) -> Option<Method> {
    Some(match name {
        "execute_node" => |state, args| {
            let [index, ..] = args else {
                return Err(wrong_count("execute_node", 1, args));
            };
            let index = position(*index)?;
            let State { executor, stepper } = state;
            stepper.execute(executor, index).map(|()| Any::none())
        },
        "get_node_output" => |state, args| {
            let [index, output, ..] = args else {
                return Err(wrong_count("get_node_output", 2, args));
            };
            let (index, output) = (position(*index)?, position(*output)?);
            let entry = state.stepper.entry(&state.executor, index, output)?;
            Ok(state.executor.entry(entry).to_host_object()?.into())
        },
        "debug_get_output" => debug_output,
        "get_output_by_layer" => |state, args| {
            let [index, output, ..] = args else {
                return Err(wrong_count("get_output_by_layer", 2, args));
            };
            let (node, index) = (position(*index)?, position(*output)?);
            let entry = state.executor.graph().entry_id(super::EntryRef {
                node,
                index,
                version: 0,
            });
            let entry = entry.ok_or_else(|| {
                let message = format!("there is no output {index} of node {node}");
                Error::from(GRF_44.refused(Broken::Missing, message))
            })?;
            Ok(state.executor.entry(entry).to_object().into())
        },
        "debug_run" => |state, args| {
            let [index, ..] = args else {
                return Err(wrong_count("debug_run", 1, args));
            };
            let node = count(*index)?;
            known_node(&state.executor, node)?;
            let start = std::time::Instant::now();
            state.executor.run_node(node)?;
            state.executor.sync()?;
            Ok(start.elapsed().as_secs_f64().into())
        },
        "run_individual" => individual,
        "run_individual_node" => individual_node,
        "profile_rpc" => |state, _| {
            let times = debug::run_individual(&mut state.executor, 1, 1, 0)?;
            let graph = state.executor.graph();
            let last = times.last().map(Vec::as_slice).unwrap_or_default();
            let calls: Vec<serde_json::Value> = graph
                .nodes
                .iter()
                .zip(last)
                .filter_map(|(node, seconds)| {
                    let call = node.call.as_ref()?;
                    let micros = serde_json::json!({ "microseconds": seconds * 1e6 });
                    Some(serde_json::json!({ "Name": { "string": call.func_name }, "Duration (us)": micros }))
                })
                .collect();
            Ok(serde_json::json!({ "calls": calls }).to_string().into())
        },
        _ => return None,
    })
}

/// `(node name or number[, out])`: runs up to the node and gives its first output.
///
/// Released executors give the *entry* of that number, another one as soon as an earlier node has two outputs.
fn debug_output(state: &mut State, args: &[AnyView<'_>]) -> Result {
    let [key, rest @ ..] = args else {
        return Err(wrong_count("debug_get_output", 1, args));
    };
    let graph = Arc::clone(state.executor.graph());
    let index = match String::try_from(*key) {
        Ok(name) => graph
            .nodes
            .iter()
            .position(|node| node.name == name)
            .ok_or_else(|| {
                Error::from(
                    GRF_44.refused(Broken::Missing, format!("cannot find {name} among nodes")),
                )
            })?,
        Err(_) => position(*key)?,
    };
    let mut stepper = debug::Stepper::default();
    stepper.execute(&mut state.executor, index)?;
    let entry = stepper.entry(&state.executor, index, 0)?;
    give(state.executor.entry(entry), rest)
}

/// `(number, repeat, min_repeat_ms)` returns text, seconds of each node and a comma, as 0.8 does; with the arguments that came
/// later (GRF-42), bytes: the number of nodes, then doubles, node after node, all repetitions.
fn individual(state: &mut State, args: &[AnyView<'_>]) -> Result {
    let [number, repeat, least, rest @ ..] = args else {
        return Err(wrong_count("run_individual", 3, args));
    };
    check_pauses(rest)?;
    let times = debug::run_individual(
        &mut state.executor,
        count(*number)?,
        count(*repeat)?,
        count(*least)? as u64,
    )?;
    if rest.is_empty() {
        let last = times.last().map(Vec::as_slice).unwrap_or_default();
        return Ok(last
            .iter()
            .map(|seconds| format!("{seconds},"))
            .collect::<String>()
            .into());
    }
    let nodes = state.executor.graph().nodes.len();
    let doubles = (0..nodes).flat_map(|node| times.iter().filter_map(move |times| times.get(node)));
    let mut bytes = (nodes as i64).to_le_bytes().to_vec();
    bytes.extend(doubles.flat_map(|seconds| seconds.to_le_bytes()));
    Ok(Bytes::new(bytes).into())
}

/// `(node, number, repeat, min_repeat_ms, ...)`: bytes of `repeat` doubles.
fn individual_node(state: &mut State, args: &[AnyView<'_>]) -> Result {
    let [node, number, repeat, least, rest @ ..] = args else {
        return Err(wrong_count("run_individual_node", 4, args));
    };
    let node = count(*node)?;
    known_node(&state.executor, node)?;
    check_pauses(rest)?;
    let mut bytes = Vec::new();
    let (number, repeat) = (count(*number)?, count(*repeat)?);
    debug::check_counts(number, repeat)?;
    for _ in 0..repeat {
        let seconds = debug::time_node(&mut state.executor, node, number, count(*least)? as u64)?;
        bytes.extend(seconds.to_le_bytes());
    }
    Ok(Bytes::new(bytes).into())
}

fn known_node(executor: &Executor, node: usize) -> Result<()> {
    if node < executor.graph().nodes.len() {
        return Ok(());
    }
    Err(GRF_44
        .refused(Broken::Missing, format!("there is no node {node}"))
        .into())
}

/// What stands behind `min_repeat_ms`: pauses between repetitions, which are not made here, and how many repetitions one
/// follows, which is above 0 (GRF-42).
fn check_pauses(rest: &[AnyView<'_>]) -> Result<()> {
    let Some((repeats, others)) = rest.split_last() else {
        return Ok(());
    };
    for other in others {
        count(*other)?;
    }
    GRF_42.demand(Broken::Type, count(*repeats)? > 0, || {
        "a pause follows at least one repetition".into()
    })?;
    Ok(())
}

/// An index; a negative one is that of nothing.
fn position(view: AnyView<'_>) -> Result<usize> {
    Ok(usize::try_from(i64::try_from(view)?).unwrap_or(usize::MAX))
}

/// A number that is not negative (GRF-42).
fn count(view: AnyView<'_>) -> Result<usize> {
    let number = i64::try_from(view)?;
    match usize::try_from(number) {
        Ok(count) => Ok(count),
        Err(_) => Err(GRF_42
            .refused(Broken::Type, format!("{number} is no number of times"))
            .into()),
    }
}

pub(super) fn wrong_count(name: &str, expected: usize, args: &[AnyView<'_>]) -> Error {
    let message = format!(
        "`{name}` needs {expected} arguments at least, it got {}",
        args.len()
    );
    GRF_44.refused(Broken::Type, message).into()
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
