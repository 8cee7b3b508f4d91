//! `run`: a model of the graph executor or of the Relax VM, with all its inputs at once.

use crate::arguments::to_any;
use crate::errors::{self, CallbackScope, Failure};
use crate::function::open;
use crate::tensor::Tensor;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tvmspec::function::Error;
use tvmspec::graph::Graph;
use tvmspec::graph::executor::{Executor, ExecutorDevice};
use tvmspec::graph::module::GraphExecutorFactory;
use tvmspec::module::Module;
use tvmspec::object::{self, sequence_of};
use tvmspec::rule::Findings;
use tvmspec::tensor::{Device, Params};
use tvmspec::value::{Any, cast, device_from_text, dtype_to_text};
use tvmspec::vm::VirtualMachine;

/// Loads a model, runs it, and returns its outputs. `inputs` has an array for each name. With `graph`, `path` is the library of its
/// functions, and `params` the file of its parameters. The first device is the fallback.
#[pyfunction]
#[pyo3(signature = (path, inputs, function, devices, graph = None, params = None))]
pub(crate) fn run(
    py: Python<'_>,
    path: PathBuf,
    inputs: &Bound<'_, PyDict>,
    function: &str,
    devices: Vec<String>,
    graph: Option<PathBuf>,
    params: Option<PathBuf>,
) -> PyResult<Vec<Tensor>> {
    let devices: Result<Vec<Device>, _> =
        devices.iter().map(|text| device_from_text(text)).collect();
    let devices = devices.map_err(|broken| errors::violation_error(py, &broken))?;
    let mut values = Vec::with_capacity(inputs.len());
    for (name, value) in inputs {
        // Changes of copies are not written back, because inputs are only read.
        values.push((name.extract()?, to_any(&value, &mut Vec::new())?));
    }
    let model = Model {
        path,
        inputs: Inputs(values),
        function: function.to_owned(),
        devices,
        graph,
        params,
    };
    let _scope = CallbackScope::enter();
    let outputs = py.detach(move || model.run());
    let outputs = outputs.map_err(|failure| failure.into_exception(py))?;
    Ok(outputs.into_iter().map(Tensor).collect())
}

/// The values of the inputs by name.
struct Inputs(Vec<(String, Any)>);

// SAFETY: the values are used and dropped in the same thread, only without the interpreter's lock.
unsafe impl Send for Inputs {}

/// A model and its inputs, which run without the interpreter's lock.
struct Model {
    path: PathBuf,
    inputs: Inputs,
    /// The function to call, for an executable of the VM.
    function: String,
    devices: Vec<Device>,
    graph: Option<PathBuf>,
    params: Option<PathBuf>,
}

impl Model {
    fn run(self) -> Result<Vec<object::Tensor>, Failure> {
        let module = open(&self.path)?;
        if let Some(graph) = &self.graph {
            let executor =
                executor_of_parts(&module, graph, self.params.as_deref(), &self.devices)?;
            return run_graph(executor, self.inputs);
        }
        if let Some(factory) = GraphExecutorFactory::from_module(&module) {
            let executor = factory.create(&module, executor_devices(&self.devices)?)?;
            return run_graph(executor, self.inputs);
        }
        run_machine(&module, self.inputs, &self.function, &self.devices)
    }
}

fn executor_devices(devices: &[Device]) -> Result<Vec<ExecutorDevice>, Error> {
    devices.iter().copied().map(ExecutorDevice::new).collect()
}

/// Creates the executor of a graph in a separate file. `module` has its functions.
fn executor_of_parts(
    module: &Module,
    graph: &Path,
    params: Option<&Path>,
    devices: &[Device],
) -> Result<Executor, Failure> {
    let read =
        |path: &Path| fs::read(path).map_err(|failure| Failure::File(path.to_owned(), failure));
    let graph = Graph::read_bytes(&read(graph)?, &mut Findings::default())?;
    let kernels = |name: &str| module.function(name, true);
    let mut executor = Executor::new(Arc::new(graph), &kernels, executor_devices(devices)?)?;
    if let Some(params) = params {
        let bytes = read(params)?;
        executor.load_params(&Params::open(&bytes)?.value)?;
    }
    Ok(executor)
}

fn run_graph(mut executor: Executor, inputs: Inputs) -> Result<Vec<object::Tensor>, Failure> {
    for (name, value) in &inputs.0 {
        let index = executor.require_input(name)?;
        let tensor = cast::<object::Tensor>(value.view());
        let tensor =
            tensor.map_err(|_| Failure::Argument(format!("input `{name}` is not an array")))?;
        executor.set_input(index, &tensor)?;
    }
    let missing = executor.unset_inputs();
    if !missing.is_empty() {
        let missing = missing.join(", ");
        return Err(Failure::Argument(format!("missing inputs: {missing}")));
    }
    executor.run()?;
    executor.sync()?;
    let outputs =
        (0..executor.output_count()).map(|index| Ok(executor.output(index)?.to_host_object()?));
    outputs.collect()
}

fn run_machine(
    module: &Module,
    inputs: Inputs,
    function: &str,
    devices: &[Device],
) -> Result<Vec<object::Tensor>, Failure> {
    let machine = VirtualMachine::from_module(module, devices)?;
    let names = machine.parameters(function)?;
    let mut inputs = inputs.0;
    check_types(&machine, function, &inputs)?;
    let mut values = Vec::with_capacity(names.len());
    for name in &names {
        let Some(at) = inputs.iter().position(|(given, _)| given == *name) else {
            return Err(Failure::Argument(format!(
                "missing input `{name}`: `{function}` has {}",
                names.join(", ")
            )));
        };
        // A list is a tuple of arrays.
        values.push(inputs.swap_remove(at).1);
    }
    if let Some((name, _)) = inputs.first() {
        return Err(Failure::Argument(format!(
            "`{function}` has no parameter `{name}`: it has {}",
            names.join(", ")
        )));
    }
    let result = machine.call(function, &values[..])?;
    let mut outputs = Vec::new();
    collect_outputs(&result, &mut outputs)?;
    Ok(outputs)
}

/// Compares the type of each input with the type that the function expects (VM-40), because the message of the function uses the terms of
/// the compiler.
fn check_types(
    machine: &VirtualMachine,
    function: &str,
    inputs: &[(String, Any)],
) -> Result<(), Failure> {
    for (name, expected) in machine.parameter_types(function)? {
        let input = inputs.iter().find(|(given, _)| *given == name);
        let found = input.and_then(|(_, value)| cast::<object::Tensor>(value.view()).ok());
        // The type of a bool differs between eras.
        let differs = |found: &object::Tensor| {
            found.dtype() != expected && expected.bits > 1 && found.dtype().bits > 1
        };
        if let Some(found) = found.filter(differs) {
            let (found, expected) = (dtype_to_text(found.dtype())?, dtype_to_text(expected)?);
            return Err(Failure::Argument(format!(
                "input `{name}` of `{function}`: expected {expected}, found {found}; pass array.astype(\"{expected}\") [VM-40]"
            )));
        }
    }
    Ok(())
}

/// Appends the tensors of a result in order, each on the CPU.
fn collect_outputs(value: &Any, outputs: &mut Vec<object::Tensor>) -> Result<(), Error> {
    if let Some(items) = sequence_of(value.view()) {
        return items
            .iter()
            .try_for_each(|item| collect_outputs(item, outputs));
    }
    if let Ok(tensor) = cast::<object::Tensor>(value.view()) {
        let is_on_host = tensor.device().kind == Device::CPU.kind;
        outputs.push(if is_on_host { tensor } else { tensor.to_cpu()? });
    }
    Ok(())
}
