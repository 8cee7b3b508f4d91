//! `run`: a model of the graph executor or of the Relax VM, with all its inputs at once.

use crate::arguments::to_any;
use crate::errors;
use crate::function::load;
use crate::tensor::{Tensor, to_tensor};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use tvmspec::function::Error;
use tvmspec::graph::executor::ExecutorDevice;
use tvmspec::graph::module::GraphExecutorFactory;
use tvmspec::module::Module;
use tvmspec::object::{self, sequence_of};
use tvmspec::tensor::Device;
use tvmspec::value::{Any, cast, device_from_text};
use tvmspec::vm::VirtualMachine;

/// Loads a model, runs it, and returns its outputs. `inputs` has an array for each name.
#[pyfunction]
pub(crate) fn run(
    py: Python<'_>,
    path: PathBuf,
    inputs: &Bound<'_, PyDict>,
    function: &str,
    device: &str,
) -> PyResult<Vec<Tensor>> {
    let module = load(py, path)?.0;
    let device = device_from_text(device).map_err(|broken| errors::broken(py, &broken))?;
    let device = Device::from(device);
    if let Some(factory) = GraphExecutorFactory::from_module(&module) {
        return run_graph(py, factory, &module, inputs, device);
    }
    run_machine(py, &module, inputs, function, device)
}

fn run_graph(
    py: Python<'_>,
    factory: &GraphExecutorFactory,
    module: &Module,
    inputs: &Bound<'_, PyDict>,
    device: Device,
) -> PyResult<Vec<Tensor>> {
    let fail = |error: Error| errors::raised(py, &error);
    let place = ExecutorDevice::new(device).map_err(fail)?;
    let mut executor = factory.create(module, vec![place]).map_err(fail)?;
    for (name, array) in inputs {
        let name: String = name.extract()?;
        let index = executor.require_input(&name);
        let index = index.map_err(|broken| errors::broken(py, &broken))?;
        let tensor = tensor_of(&name, &array)?;
        executor.set_input(index, &tensor).map_err(fail)?;
    }
    let missing = executor.unset_inputs();
    if !missing.is_empty() {
        return Err(PyValueError::new_err(format!(
            "missing inputs: {}",
            missing.join(", ")
        )));
    }
    // The executor belongs to this thread, so that the lock is kept.
    executor
        .run()
        .and_then(|()| executor.sync())
        .map_err(fail)?;
    let outputs = (0..executor.output_count()).map(|index| {
        let output = executor.output(index);
        let output = output.map_err(|broken| errors::broken(py, &broken))?;
        output.to_host_object().map(Tensor).map_err(fail)
    });
    outputs.collect()
}

fn run_machine(
    py: Python<'_>,
    module: &Module,
    inputs: &Bound<'_, PyDict>,
    function: &str,
    device: Device,
) -> PyResult<Vec<Tensor>> {
    let fail = |error: Error| errors::raised(py, &error);
    let machine = VirtualMachine::from_module(module, &[device]).map_err(fail)?;
    let names = machine.parameters(function).map_err(fail)?;
    let mut values = Vec::with_capacity(names.len());
    for name in &names {
        let Some(array) = inputs.get_item(name)? else {
            return Err(PyValueError::new_err(format!(
                "missing input `{name}`: `{function}` has {}",
                names.join(", ")
            )));
        };
        // A list is a tuple of arrays.
        values.push(to_any(&array, false)?);
    }
    for name in inputs.keys() {
        let name: String = name.extract()?;
        if !names.contains(&&*name) {
            return Err(PyValueError::new_err(format!(
                "`{function}` has no parameter `{name}`: it has {}",
                names.join(", ")
            )));
        }
    }
    let result = machine.call(function, &values[..]).map_err(fail)?;
    let mut outputs = Vec::new();
    leaves(&result, &mut outputs);
    Ok(outputs)
}

fn tensor_of(name: &str, array: &Bound<'_, PyAny>) -> PyResult<object::Tensor> {
    let tensor = to_tensor(array)?;
    tensor.ok_or_else(|| PyTypeError::new_err(format!("input `{name}` is not an array")))
}

/// Collects the tensors of a result, in order.
fn leaves(value: &Any, outputs: &mut Vec<Tensor>) {
    if let Some(items) = sequence_of(value.view()) {
        items.iter().for_each(|item| leaves(item, outputs));
    } else if let Ok(tensor) = cast::<object::Tensor>(value.view()) {
        outputs.push(Tensor(tensor));
    }
}
