//! Functions of an executor that the C interface of 0.20 and before lacks, through the Rust interface of this crate.
//!
//! In a runtime of 0.20 and before, Python implements them or nothing does. Their cases are unsupported there.

use super::driver::blob;
use super::forms::{bytes_of, extents, param_file, shown};
use super::kernels;
use crate::conformance::device::counting_device;
use crate::conformance::runtime::case_numbers::{NoNumber, number_of};
use crate::device::simulated::Simulated;
use crate::device::{Device, DeviceApi};
use crate::function::{Error, Function, take_broken};
use crate::graph::executor::{Executor, ExecutorDevice};
use crate::graph::module::GraphExecutor;
use crate::graph::{Graph, Model, debug};
use crate::module::Module;
use crate::object::Tensor;
use crate::rule::Findings;
use crate::tensor::Params;
use crate::value::{Any, AnyView, Bytes, cast, dtype_from_text};
use serde_json::{Map, Value, json};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Returns the function of this name:
///
/// * `create` creates an executor of a graph, a module, whether it is for debugging, and pairs of device type and number, which may
///   include simulated devices
/// * `show` returns a result as JSON text
/// * `save` returns the payload of a module
/// * `lookup` creates a function that finds tensors by storage id, from JSON text
/// * `model` and `dump` take a graph, a module and the arguments in `spec/graph.md` as JSON text, and return JSON text
pub(in crate::conformance) fn function(name: &str) -> Option<Function> {
    Some(match name {
        "create" => Function::from_packed(create),
        "show" => Function::from_packed(|args| {
            let value = args.first().copied().unwrap_or(AnyView::none());
            Ok(shown(value).to_string().into())
        }),
        "save" => Function::from_typed(|module: Module| module.save_to_bytes().map(Bytes::new)),
        "lookup" => Function::from_typed(|text: String| lookup(&text)),
        "model" => Function::from_typed(|graph: String, _: Module, args: String| {
            Ok::<String, Error>(model(&graph, &parsed(&args)?)?.to_string())
        }),
        "dump" => Function::from_typed(|graph: String, module: Module, args: String| {
            Ok::<String, Error>(dump(&graph, &module, &parsed(&args)?)?.to_string())
        }),
        _ => return None,
    })
}

/// Parses JSON that the driver wrote.
fn parsed(text: &str) -> Result<Value, Error> {
    serde_json::from_str(text).map_err(|wrong| Error::new("ValueError", wrong.to_string()))
}

/// Converts a system error about a file of the case.
fn failed(error: std::io::Error) -> Error {
    Error::new("RuntimeError", error.to_string())
}

/// Creates a tensor of the form `{dtype, shape, data}`.
fn tensor(form: &Value) -> Result<Tensor, Error> {
    let dtype = dtype_from_text(form["dtype"].as_str().unwrap_or_default())?;
    let tensor = Tensor::empty(&extents(form)?, dtype)?;
    tensor.fill(&bytes_of(&form["data"], dtype)?)?;
    Ok(tensor)
}

/// Returns the names and forms of an object; empty for any other value.
fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// Returns the rule and the kind of the last error.
pub(super) fn broken() -> Value {
    match take_broken() {
        Some(broken) => json!([broken.rule().id(), broken.kind().name()]),
        None => Value::Null,
    }
}

/// Creates a function of `(library, storage id, template, device)` that finds a tensor of the form by its storage id. It returns
/// `None` unless the number of elements is that of the template.
fn lookup(text: &str) -> Result<Function, Error> {
    let mut known = std::collections::HashMap::new();
    for (id, form) in parsed(text)?.as_object().into_iter().flatten() {
        known.insert(id.clone(), tensor(form)?);
    }
    Ok(Function::from_packed(move |args| {
        let [library, id, template, device] = args else {
            return Err(Error::new("TypeError", "a lookup takes four arguments"));
        };
        cast::<Module>(*library)?;
        let device = cast::<Device>(*device)?;
        let template = cast::<*mut crate::value::DLTensor>(*template)?;
        // SAFETY: the description lives for the call.
        let template = unsafe { &*template };
        let empty = template.data.is_null() && template.byte_offset == 0;
        // The arguments that an executor passes are part of the contract of linked parameters: a library may return another tensor
        // for another template. Every case with such a function has the CPU as its first device, and the template is there.
        let on_cpu = device == Device::CPU && template.device == Device::CPU;
        // SAFETY: its extents are readable for the call.
        let shape = unsafe { template.shape() };
        let id = cast::<i64>(*id)?.to_string();
        let count = |shape: &[i64]| shape.iter().product::<i64>();
        let found = known
            .get(&id)
            .filter(|tensor| empty && on_cpu && count(tensor.shape()) == count(shape));
        Ok(found.map_or(Any::none(), |tensor| tensor.clone().into()))
    }))
}

/// Runs a model with `{params, runs: [{name: tensor}]}`, and returns a list:
///
/// * the outputs of each run, or the rule and the kind that it breaks
/// * the inputs that were never set, the bytes of the plan, and whether clearing an unknown input fails
/// * the outputs with all inputs zero, and the number of inputs that are then unset
/// * with `params`, the number of them that are inputs
/// * with `from` and `to`, the first output, with the first input read and the output written in place
///
/// The model consists of the graph and the library. With `load` it is loaded from the library alone, which has the modules of
/// `blob`, and with `linked` also the script's linked parameters. With `bare` it has no device.
fn model(graph: &str, args: &Value) -> Result<Value, Error> {
    let folder = tempfile::tempdir().map_err(failed)?;
    let path = folder.path().join("model.so");
    let blob = blob(args)?;
    let (blob, linked) = (blob.as_deref(), args["linked"] == true);
    kernels::write(&path, kernels::Extras { blob, linked }).map_err(failed)?;
    let params = match &args["params"] {
        Value::Object(params) => param_file(params)?.as_bytes().to_vec(),
        _ => Vec::new(),
    };
    let devices: &[Device] = if args["bare"] == true {
        &[]
    } else {
        &[Device::CPU]
    };
    let made = if args["load"] == true {
        // SAFETY: the library is the one of the kernels that cases call.
        unsafe { Model::load_on(&path, devices) }
    } else {
        // SAFETY: the same reason as above.
        unsafe { Model::from_parts(graph, &params, &path, devices) }
    };
    let Ok(mut model) = made else {
        return Ok(broken());
    };
    let mut results = Vec::new();
    for inputs in args["runs"].as_array().into_iter().flatten() {
        let inputs: Vec<(&str, Tensor)> = members(inputs)
            .map(|(name, form)| Ok((name.as_str(), tensor(form)?)))
            .collect::<Result<_, Error>>()?;
        let inputs: Vec<(&str, &Tensor)> = inputs
            .iter()
            .map(|(name, tensor)| (*name, tensor))
            .collect();
        results.push(match model.run(&inputs) {
            Ok(outputs) => outputs
                .iter()
                .map(|output| shown(Any::from(output.clone()).view()))
                .collect(),
            Err(_) => broken(),
        });
    }
    let executor = model.executor();
    results.push(json!(executor.unset_inputs()));
    results.push(json!(executor.planned_bytes()));
    for index in 0..executor.input_count() {
        executor.clear_input(index)?;
    }
    results.push(json!(executor.clear_input(executor.input_count()).is_err()));
    let unset = executor.unset_inputs().len();
    executor.run()?;
    for index in 0..executor.output_count() {
        let target = executor.output(index)?.to_host_object()?;
        // As float32 these bytes are NaN, which no kernel here returns, so that an output that is not copied is noticed.
        target.fill(&vec![255; target.to_bytes()?.len()])?;
        executor.copy_output(index, &target)?;
        results.push(shown(Any::from(target).view()));
    }
    results.push(json!(unset));
    if !params.is_empty() {
        let params = Params::open(&params)?.value;
        results.push(json!(executor.load_params(&params)?));
    }
    if let (Value::Object(_), Value::Object(_)) = (&args["from"], &args["to"]) {
        let (from, to) = (tensor(&args["from"])?, tensor(&args["to"])?);
        let referred = executor
            .set_input_by_reference(0, &from)
            .and_then(|()| executor.set_output_by_reference(0, &to));
        results.push(match referred.and_then(|()| executor.run()) {
            Ok(()) => shown(Any::from(to).view()),
            Err(_) => broken(),
        });
    }
    Ok(Value::Array(results))
}

/// Returns the content of the debug dump of a run; arguments: `{inputs, devices}`. It has the name of its folder, the nodes of the
/// graph, the names and phases of the trace, and the tensors. It also states whether the times ascend and end within the call, and
/// which nodes took time.
fn dump(graph: &str, module: &Module, args: &Value) -> Result<Value, Error> {
    let graph = Arc::new(Graph::read(graph, &mut Findings::default())?);
    let kernel = |name: &str| module.function(name, true);
    let mut places = Vec::new();
    for pair in args["devices"].as_array().unwrap_or(&vec![json!([1, 0])]) {
        let number = |at: usize| {
            let wrong =
                |_: NoNumber| Error::new("TypeError", format!("case states no device \"{pair}\""));
            number_of(&pair[at]).map_err(wrong)
        };
        places.push(executor_device(number(0)?, number(1)?)?);
    }
    let mut executor = Executor::new(graph, &kernel, places)?;
    for (name, form) in members(&args["inputs"]) {
        let index = executor.require_input(name)?;
        executor.set_input(index, &tensor(form)?)?;
    }
    let start = Instant::now();
    let dump = debug::dump(&mut executor)?;
    let micros = start.elapsed().as_secs_f64() * 1e6;
    let [graph, trace, tensors] = dump.files.map(|(_, bytes)| bytes);
    let trace = parsed(&String::from_utf8_lossy(&trace))?;
    let events = trace["traceEvents"].as_array().cloned().unwrap_or_default();
    let times: Option<Vec<f64>> = events.iter().map(|event| event["ts"].as_f64()).collect();
    let times = times.unwrap_or_default();
    let took: Vec<bool> = times
        .chunks(2)
        .map(|pair| pair.first() < pair.last())
        .collect();
    let named: Vec<String> = events
        .iter()
        .map(|event| {
            let text = |key: &str| event[key].as_str().unwrap_or("?").to_owned();
            format!(
                "{} {} {} {}",
                text("name"),
                text("ph"),
                event["tid"],
                event["pid"]
            )
        })
        .collect();
    let mut dumped = parsed(&String::from_utf8_lossy(&graph))?;
    let nodes = dumped["nodes"].take();
    let mut whole = executor.graph().to_json();
    whole["nodes"].take();
    let params = Params::open(&tensors)?.value;
    let mut tensors = Map::new();
    for (name, record) in params.iter() {
        tensors.insert(
            name.to_owned(),
            shown(Any::from(Tensor::from_record(record)?).view()),
        );
    }
    Ok(json!({
        "folder": dump.folder,
        "nodes": nodes,
        "rest": dumped == whole,
        "trace": named,
        "unit": trace["displayTimeUnit"],
        "in order": times.is_sorted() && times.last().is_some_and(|end| *end <= micros),
        "took": took,
        "tensors": tensors,
    }))
}

/// Creates an executor on devices that the C interface cannot name (GRF-30, GRF-43).
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
        places.push(executor_device(cast(pair[0])?, cast(pair[1])?)?);
    }
    let kernel = |name: &str| module.function(name, true);
    let executor = Executor::new(Arc::new(graph), &kernel, places)?;
    Ok(Module::new(GraphExecutor::new(executor, cast(*debug)?)).into())
}

/// Returns a device of a case: the CPU, or a simulated device for `ext_dev`, one per process.
fn executor_device(kind: i32, id: i32) -> Result<ExecutorDevice, Error> {
    static SIMULATED: OnceLock<&'static Simulated> = OnceLock::new();
    if kind == Device::ext_dev(0).kind {
        let api: &'static Simulated =
            SIMULATED.get_or_init(|| Box::leak(Box::new(Simulated::new(1))));
        let api: &'static dyn DeviceApi = api;
        // SAFETY: its memory keeps the rules and is not host memory, like that of every device of this type.
        return Ok(unsafe { ExecutorDevice::with_api(Device { kind, id }, api) });
    }
    if kind == counting_device::KIND {
        counting_device::device()?;
    }
    ExecutorDevice::new(Device { kind, id })
}
