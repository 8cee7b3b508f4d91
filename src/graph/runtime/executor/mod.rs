//! Running a graph.
//!
//! An [`Executor`] holds one pool of memory for every storage id, one description of a tensor for every argument of
//! every call, and calls the functions in the order of the nodes. Nothing is allocated while it runs.

mod aliases;
mod device;
mod in_place;
mod inputs;
mod op_args;
mod op_exec;
mod pool;
mod tensor;

pub use device::ExecutorDevice;
pub use tensor::PoolTensor;
pub(super) use tensor::{record_to_object, whole, with_record};

use crate::function::{Error, Function};
use crate::graph::{GRF_30, GRF_32, Graph, Plan};
use crate::rule::{Kind, Violation};
use aliases::Aliases;
use op_exec::OpExec;
use pool::PoolMemory;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

/// Finds the function that a node calls, by `func_name` (GRF-31). `None` is a function that is missing.
pub type Kernels<'a> = dyn Fn(&str) -> Result<Option<Function>, Error> + 'a;

/// A graph with memory, ready to run.
pub struct Executor {
    graph: Arc<Graph>,
    devices: Vec<ExecutorDevice>,
    pools: Vec<Arc<PoolMemory>>,
    /// The tensor of each entry, in its pool.
    entries: Vec<PoolTensor>,
    steps: Vec<OpExec>,
    /// The number of each input by its name.
    inputs: HashMap<String, usize>,
    /// Made when an input first gets memory of its own.
    aliases: OnceLock<Aliases>,
    /// Memory of others that calls use in place of that of an entry (GRF-34, GRF-35, GRF-43), kept alive here.
    external: HashMap<usize, PoolTensor>,
    /// Inputs that a parameter file set.
    params: HashSet<usize>,
    /// The entries of inputs that were ever set, by a copy or by a reference. The others hold whatever was in their memory.
    set: HashSet<usize>,
}

impl Executor {
    /// Plans and takes memory for `graph`, and finds every function that it calls.
    ///
    /// The first of `devices` is the fallback: entries without a device, or on a device type that is not among them,
    /// live there (GRF-30).
    ///
    /// # Errors
    ///
    /// GRF-09 to GRF-12 and GRF-15 for a graph that was not read; GRF-30 without a device; GRF-31 with the names of all functions that `kernels` does not have; GRF-36 for a copy of two sizes;
    /// what [`Plan::of`] rejects; GRF-23 and the errors of the device where it has no memory of that size or scope; what `kernels` raises.
    pub fn new(
        graph: Arc<Graph>,
        kernels: &Kernels<'_>,
        devices: Vec<ExecutorDevice>,
    ) -> Result<Executor, Error> {
        // A graph that was read keeps these rules; one that was made member by member may not.
        graph.check_members()?;
        // Before any memory is taken: sizes of a file may be any (GRF-23).
        let plan = Plan::of(&graph)?;
        let Some(fallback) = devices.first().copied() else {
            return Err(GRF_30
                .rejected(Kind::Missing, "an executor needs a device")
                .into());
        };
        // GRF-30: `device_index` is a type of device, and the caller's order says which one of the type. A type that is not there falls
        // back without a message, as in every release.
        let device_of = |kind: Option<i32>| {
            let named = devices
                .iter()
                .find(|device| Some(device.device.kind) == kind);
            *named.unwrap_or(&fallback)
        };
        let pools = plan
            .pools
            .iter()
            .map(|pool| PoolMemory::take(pool, device_of(pool.device)));
        let pools: Vec<Arc<PoolMemory>> = pools.collect::<Result<_, Error>>()?;
        // None is lost: each has a pool (GRF-52), which was rejected above where it is larger than memory (GRF-23).
        let entries: Vec<PoolTensor> = graph
            .entries
            .iter()
            .filter_map(|entry| {
                let memory = pools.get(entry.storage_id)?.clone();
                PoolTensor::new(memory, entry.dtype, &entry.shape)
            })
            .collect();
        // By name once: frontends set every parameter by its name, of which a model may have thousands.
        let inputs = numbers(&graph);
        let mut executor = Executor {
            graph,
            devices,
            pools,
            entries,
            steps: Vec::new(),
            inputs,
            aliases: OnceLock::new(),
            external: HashMap::new(),
            params: HashSet::new(),
            set: HashSet::new(),
        };
        // Behind the entries: the arguments of a call are descriptions of them.
        executor.steps = executor.find_functions(kernels)?;
        Ok(executor)
    }

    /// The graph that runs here.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// The devices, the fallback first.
    pub fn devices(&self) -> &[ExecutorDevice] {
        &self.devices
    }

    /// Bytes of memory of all pools, without what a device rounds them up to.
    pub fn planned_bytes(&self) -> u64 {
        self.pools.iter().map(|pool| pool.bytes as u64).sum()
    }

    /// Runs every node, in order (GRF-38). What kernels of a device queue may still run when this returns: [`Executor::sync`] waits.
    ///
    /// # Errors
    ///
    /// What a function raises; a copy that a device rejects.
    pub fn run(&mut self) -> Result<(), Error> {
        // GRF-38: an error ends the run; what ran before it has written its outputs.
        self.steps.iter().try_for_each(|step| self.execute(step))
    }

    /// Runs node `index` alone, on whatever its inputs hold. Nothing is run where the graph has no node `index`.
    ///
    /// # Errors
    ///
    /// As [`Executor::run`].
    pub fn run_node(&mut self, index: usize) -> Result<(), Error> {
        self.steps
            .get(index)
            .map_or(Ok(()), |step| self.execute(step))
    }

    /// How many inputs and parameters there are: the length of `arg_nodes` (GRF-11).
    pub fn input_count(&self) -> usize {
        self.graph.arg_nodes.len()
    }

    /// How many outputs there are: the length of `heads`.
    pub fn output_count(&self) -> usize {
        self.graph.heads.len()
    }

    /// The number of the input or parameter called `name`; of several with one name that of the last (GRF-11).
    pub fn input_index(&self, name: &str) -> Option<usize> {
        self.inputs.get(name).copied()
    }

    /// The number of the input called `name`, or a violation of GRF-32 that lists what there is.
    ///
    /// # Errors
    ///
    /// GRF-32.
    pub fn require_input(&self, name: &str) -> Result<usize, Violation> {
        self.input_index(name).ok_or_else(|| {
            let names = self.graph.inputs().map(|(_, name)| name);
            let known: Vec<&str> = names.take(LISTED).collect();
            GRF_32.rejected(
                Kind::Missing,
                format!(
                    "the graph has no input `{name}`; it has {}: {}",
                    self.input_count(),
                    known.join(", ")
                ),
            )
        })
    }

    /// Input `index`, as it is in memory now.
    ///
    /// # Errors
    ///
    /// GRF-32 for an unknown input.
    pub fn input(&self, index: usize) -> Result<&PoolTensor, Violation> {
        Ok(&self.entries[self.input_entry(index)?])
    }

    /// Output `index`, as it is in memory now. The next run overwrites it.
    ///
    /// # Errors
    ///
    /// GRF-32 for an unknown output.
    pub fn output(&self, index: usize) -> Result<&PoolTensor, Violation> {
        Ok(&self.entries[self.output_entry(index)?])
    }

    /// Waits for every device.
    ///
    /// # Errors
    ///
    /// What the first device that fails answers.
    pub fn sync(&self) -> Result<(), Error> {
        // GRF-30: entries may lie on any of them, and a copy between two is queued on one.
        for device in &self.devices {
            device
                .api
                .sync(device.device, device.api.current_stream(device.device))?;
        }
        Ok(())
    }

    /// Entry `id`, as it is in memory now; nothing where the graph has fewer entries.
    pub fn entry(&self, id: usize) -> Option<&PoolTensor> {
        self.entries.get(id)
    }

    /// The name of input `index`, for a message; empty where there is none.
    fn input_name(&self, index: usize) -> &str {
        self.graph.inputs().nth(index).map_or("", |(_, name)| name)
    }

    /// The entry of input `index` (GRF-32): a node of `arg_nodes` has one output (GRF-06).
    fn input_entry(&self, index: usize) -> Result<usize, Violation> {
        // GRF-11: inputs are numbered by their places in `arg_nodes`, and not by their nodes.
        let node = self.graph.arg_nodes.get(index);
        node.and_then(|node| self.graph.entry_of(*node, 0))
            .ok_or_else(|| {
                GRF_32.rejected(
                    Kind::Missing,
                    format!(
                        "there is no input {index}; there are {}",
                        self.input_count()
                    ),
                )
            })
    }

    /// The entry of output `index` (GRF-32).
    fn output_entry(&self, index: usize) -> Result<usize, Violation> {
        self.graph
            .heads
            .get(index)
            .and_then(|head| self.graph.entry_id(*head))
            .ok_or_else(|| {
                GRF_32.rejected(
                    Kind::Missing,
                    format!(
                        "there is no output {index}; there are {}",
                        self.output_count()
                    ),
                )
            })
    }
}

/// How many names an error lists.
/// A model may have thousands of parameters.
const LISTED: usize = 12;

/// The number of each input by its name. Of several inputs with one name the last one counts, as from 0.6 on (GRF-11); calls
/// have no numbers.
fn numbers(graph: &Graph) -> HashMap<String, usize> {
    let inputs = graph.inputs().enumerate();
    inputs
        .map(|(number, (_, name))| (name.to_owned(), number))
        .collect()
}
