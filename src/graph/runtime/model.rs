//! A model in three lines: load it, pass inputs, get outputs.

use super::executor::{Executor, ExecutorDevice};
use super::factory::GraphExecutorFactory;
use super::linked_params;
use crate::function::{Error, ErrorKind};
use crate::graph::{GRF_32, GRF_43, Graph};
use crate::module::{Module, load_library};
use crate::object::Tensor;
use crate::rule::{Findings, Kind, Strictness};
use crate::tensor::{Device, Params};
use std::path::Path;
use std::sync::Arc;

/// A graph with its parameters and its library, ready to run.
///
/// ```no_run
/// # fn main() -> tvmspec::Result<()> {
/// # let x = tvmspec::object::Tensor::empty(&[1, 8], tvmspec::tensor::Dtype::FLOAT32)?;
/// use tvmspec::graph::Model;
/// // SAFETY: the library is trusted code.
/// let mut model = unsafe { Model::load("mlp.so") }?;
/// let outputs = model.run(&[("x", &x)])?;
/// # drop(outputs); Ok(())
/// # }
/// ```
///
/// The library is code and runs with the rights of the process: only load libraries that you trust.
pub struct Model {
    executor: Executor,
}

debug_fields!(Model: );

impl Model {
    /// Loads the model in the library at `path`, on the CPU.
    ///
    /// # Errors
    ///
    /// The file is not a library, or has no graph (0.7 to 0.19) at its root; GRF-31 if it lacks functions.
    ///
    /// # Safety
    ///
    /// As for [`crate::module::load`]. The graph of the library calls its functions with the arguments that they were compiled for.
    ///
    /// ```compile_fail,E0133
    /// let model = tvmspec::graph::Model::load("mlp.so");
    /// ```
    pub unsafe fn load(path: impl AsRef<Path>) -> Result<Model, Error> {
        // SAFETY: the caller keeps the requirements of this function, which are the same.
        unsafe { Model::load_on(path, &[Device::CPU]) }
    }

    /// Loads as [`Model::load`] does, on `devices`, of which the first is the fallback (GRF-30).
    ///
    /// # Errors
    ///
    /// As [`Model::load`]; a missing device.
    ///
    /// # Safety
    ///
    /// As for [`Model::load`].
    pub unsafe fn load_on(path: impl AsRef<Path>, devices: &[Device]) -> Result<Model, Error> {
        let path = path.as_ref();
        // SAFETY: the caller keeps the requirements of this function, which are the same.
        let module = unsafe { open(path) }?;
        let Some(factory) = GraphExecutorFactory::from_module(&module) else {
            let message = format!(
                "{} is a `{}` module, no graph; pass its graph and parameters to Model::from_parts",
                path.display(),
                module.kind()
            );
            return Err(GRF_43.rejected(Kind::Type, message).into());
        };
        let executor = factory.create(&module, executor_devices(devices)?)?;
        Ok(Model { executor })
    }

    /// Creates a model from graph JSON, a parameter file and the library with its functions. The parameter file may be empty.
    ///
    /// # Errors
    ///
    /// As [`Model::load_on`]; a graph or parameters that break a rule.
    ///
    /// # Safety
    ///
    /// As for [`Model::load`], of `graph`.
    pub unsafe fn from_parts(
        graph: &str,
        params: &[u8],
        library: impl AsRef<Path>,
        devices: &[Device],
    ) -> Result<Model, Error> {
        let graph = Arc::new(Graph::read(graph, &mut Findings::default())?);
        // SAFETY: the caller keeps the requirements of this function, which are the same.
        let module = unsafe { open(library.as_ref()) }?;
        // GRF-31: imports are also searched, for graphs of every release.
        let kernels = |name: &str| module.function(name, true);
        let mut executor = Executor::new(graph, &kernels, executor_devices(devices)?)?;
        // GRF-43: before the parameter file is loaded, so that a linked parameter in it is rejected and not replaced.
        linked_params::link(&mut executor, &module, None)?;
        if !params.is_empty() {
            let params = Params::open(params)?.value;
            executor.load_params(&params)?;
        }
        Ok(Model { executor })
    }

    /// Sets `inputs`, runs, and returns copies of all outputs on the host. Other inputs keep their values.
    ///
    /// # Errors
    ///
    /// Returns GRF-32 for an unknown input name (the message lists the inputs) and for an input that was never set; GRF-33 for another
    /// type or shape; the error of a function.
    pub fn run(&mut self, inputs: &[(&str, &Tensor)]) -> Result<Vec<Tensor>, Error> {
        for (name, tensor) in inputs {
            // GRF-32: an error here, although upstream's `set_input` ignores an unknown name.
            let index = self.executor.require_input(name)?;
            self.executor.set_input(index, tensor)?;
        }
        // GRF-32: releases run with the present contents of the memory, so a forgotten input gives a wrong result.
        let unset = self.executor.unset_inputs();
        if !unset.is_empty() {
            let message = format!("these inputs were never set: {}", unset.join(", "));
            return Err(GRF_32.rejected(Kind::Missing, message).into());
        }
        self.executor.run()?;
        // GRF-38: a run may return before the kernels of a device are complete.
        self.executor.sync()?;
        (0..self.executor.output_count())
            .map(|index| self.executor.output(index)?.to_host_object())
            .collect()
    }

    /// Returns the executor, for everything else.
    pub fn executor(&mut self) -> &mut Executor {
        &mut self.executor
    }
}

/// Loads a library.
///
/// # Safety
///
/// As for [`crate::module::load`].
unsafe fn open(path: &Path) -> Result<Module, Error> {
    // SAFETY: the caller keeps the requirements of this function, which are the same.
    let loaded = unsafe { load_library(path, Strictness::Lenient) };
    let loaded = loaded.map_err(|error| {
        Error::new(
            ErrorKind::Runtime,
            format!("{}: {}", path.display(), error.message()),
        )
    })?;
    Ok(loaded.module)
}

/// Returns each device with its API.
fn executor_devices(devices: &[Device]) -> Result<Vec<ExecutorDevice>, Error> {
    devices
        .iter()
        .map(|device| ExecutorDevice::new(*device))
        .collect()
}
