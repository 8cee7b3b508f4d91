//! A model in three lines: load it, hand inputs in, take outputs out.

use super::executor::{Executor, ExecutorDevice};
use super::factory::GraphExecutorFactory;
use super::linked;
use crate::function::{Error, ErrorKind};
use crate::graph::{GRF_32, GRF_43, Graph};
use crate::module::{Module, load_library};
use crate::object::Tensor;
use crate::rule::{Findings, Kind, Strictness};
use crate::tensor::{Device, Params};
use crate::wire::Cursor;
use std::path::Path;
use std::sync::Arc;

/// A graph with its parameters and its library, ready to run.
///
/// ```no_run
/// # fn main() -> Result<(), tvmspec::function::Error> {
/// # let x = tvmspec::object::Tensor::empty(&[1, 8], tvmspec::value::DLDataType { code: 2, bits: 32, lanes: 1 })?;
/// use tvmspec::graph::Model;
/// // SAFETY: the library is trusted code.
/// let mut model = unsafe { Model::load("mlp.so") }?;
/// let outputs = model.run(&[("x", &x)])?;
/// # drop(outputs); Ok(())
/// # }
/// ```
///
/// The library is code and runs with the rights of the process: load only what you trust.
pub struct Model {
    executor: Executor,
}

impl Model {
    /// The model in the library at `path`, on the CPU.
    ///
    /// # Errors
    ///
    /// The library is none, or has no graph (0.7 to 0.19) at its root; GRF-31 if it lacks functions.
    ///
    /// # Safety
    ///
    /// As for [`crate::module::load`]; its graph calls its functions as they were compiled to be called.
    ///
    /// ```compile_fail,E0133
    /// let model = tvmspec::graph::Model::load("mlp.so");
    /// ```
    pub unsafe fn load(path: impl AsRef<Path>) -> Result<Model, Error> {
        // SAFETY: as for this function.
        unsafe { Model::load_on(path, &[Device::CPU]) }
    }

    /// [`Model::load`] on `devices`, the first being the fallback (GRF-30).
    ///
    /// # Errors
    ///
    /// As [`Model::load`]; a device that is not here.
    ///
    /// # Safety
    ///
    /// As for [`Model::load`].
    pub unsafe fn load_on(path: impl AsRef<Path>, devices: &[Device]) -> Result<Model, Error> {
        let path = path.as_ref();
        // SAFETY: as for this function.
        let module = unsafe { open(path) }?;
        let Some(factory) = GraphExecutorFactory::of(&module) else {
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

    /// A model of a graph's JSON, a parameter file (may be empty bytes: no parameters) and the library with its functions.
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
        // SAFETY: as for this function.
        let module = unsafe { open(library.as_ref()) }?;
        // GRF-31: imports are searched as well, without regard to the release of the graph.
        let kernels = |name: &str| module.function(name, true);
        let mut executor = Executor::new(graph, &kernels, executor_devices(devices)?)?;
        // GRF-43: before the parameter file, so that a linked parameter in it is rejected and not replaced.
        linked::link(&mut executor, &module, None)?;
        if !params.is_empty() {
            let (params, _) = Params::detect(&mut Cursor::new(params), &mut Findings::default())?;
            executor.load_params(&params)?;
        }
        Ok(Model { executor })
    }

    /// Sets `inputs`, runs, and returns copies of all outputs on the host. Inputs that are not named keep what they have.
    ///
    /// # Errors
    ///
    /// GRF-32 for a name that is no input (with those that are) and for an input that was never set; GRF-33 for another
    /// type or shape; what a function raises.
    pub fn run(&mut self, inputs: &[(&str, &Tensor)]) -> Result<Vec<Tensor>, Error> {
        for (name, tensor) in inputs {
            // GRF-32: an error here, where `set_input` of the releases passes over an unknown name.
            let index = self.executor.require_input(name)?;
            self.executor.set_input(index, tensor)?;
        }
        // GRF-32: releases run on whatever the memory holds. An input that was forgotten is then a wrong result.
        let unset = self.executor.unset_inputs();
        if !unset.is_empty() {
            let message = format!("these inputs were never set: {}", unset.join(", "));
            return Err(GRF_32.rejected(Kind::Missing, message).into());
        }
        self.executor.run()?;
        // GRF-38: a run may return before the kernels of a device are done.
        self.executor.sync()?;
        (0..self.executor.output_count())
            .map(|index| self.executor.output(index)?.to_host_object())
            .collect()
    }

    /// The executor below, for everything else.
    pub fn executor(&mut self) -> &mut Executor {
        &mut self.executor
    }
}

/// # Safety
///
/// As for [`crate::module::load`].
unsafe fn open(path: &Path) -> Result<Module, Error> {
    // SAFETY: as for this function.
    let loaded = unsafe { load_library(path, Strictness::Lenient) };
    let loaded = loaded.map_err(|error| {
        Error::new(
            ErrorKind::Runtime,
            format!("{}: {}", path.display(), error.message()),
        )
    })?;
    Ok(loaded.module)
}

/// Each device with its backend.
fn executor_devices(devices: &[Device]) -> Result<Vec<ExecutorDevice>, Error> {
    devices
        .iter()
        .map(|device| ExecutorDevice::of(*device))
        .collect()
}
