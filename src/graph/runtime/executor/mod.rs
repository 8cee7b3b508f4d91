//! The graph executor.
//!
//! An [`Executor`] has one pool of memory for every storage id, and one tensor description for every argument of every call. It calls
//! the functions in the order of the nodes. A run allocates no memory.

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
pub(super) use tensor::{record_to_object, whole_byte_elements, with_record};

use crate::function::{Error, Function};
use crate::graph::{GRF_30, GRF_32, Graph, Plan};
use crate::rule::{Kind, Violation};
use aliases::Aliases;
use op_exec::OpExec;
use pool::PoolMemory;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

/// Finds the function that a node calls, by `func_name` (GRF-31). `None` means that the function is missing.
pub type Kernels<'a> = dyn Fn(&str) -> Result<Option<Function>, Error> + 'a;

/// A graph with memory, ready to run.
pub struct Executor {
    graph: Arc<Graph>,
    devices: Vec<ExecutorDevice>,
    pools: Vec<Arc<PoolMemory>>,
    /// The tensor of each entry, in its pool.
    entries: Vec<PoolTensor>,
    steps: Vec<OpExec>,
    /// The number of each input, by its name.
    inputs: HashMap<String, usize>,
    /// The aliases, built when an input first gets separate memory.
    aliases: OnceLock<Aliases>,
    /// The foreign memory that calls use instead of an entry's pool (GRF-34, GRF-35, GRF-43), kept alive here.
    external: HashMap<usize, PoolTensor>,
    /// The inputs that a parameter file set.
    params: HashSet<usize>,
    /// The entries of inputs that were set, by a copy or by a reference. The memory of the others has arbitrary contents.
    set: HashSet<usize>,
}

debug_fields!(Executor: devices);

impl Executor {
    /// Plans and allocates memory for `graph`, and finds every function that it calls.
    ///
    /// The first of `devices` is the fallback. Entries without a device are placed on it, and so are entries of a device type that is
    /// not in `devices` (GRF-30).
    ///
    /// # Errors
    ///
    /// Returns GRF-09 to GRF-12 and GRF-15 for an inconsistent graph that was built member by member. Returns GRF-30 without a device,
    /// GRF-31 with the names of all functions that `kernels` does not have, and GRF-36 for a copy between different sizes. Returns
    /// GRF-23 and the errors of the device if it has no memory of that size or scope. Also returns the errors of [`Plan::from_graph`] and of
    /// `kernels`.
    pub fn new(
        graph: Arc<Graph>,
        kernels: &Kernels<'_>,
        devices: Vec<ExecutorDevice>,
    ) -> Result<Executor, Error> {
        // A graph that was read obeys these rules, but a graph that was built member by member may break them.
        graph.check_members()?;
        // GRF-23: planned before any memory is allocated, because a file may state any size.
        let plan = Plan::from_graph(&graph)?;
        let Some(fallback) = devices.first().copied() else {
            return Err(GRF_30
                .rejected(Kind::Missing, "an executor needs a device")
                .into());
        };
        // GRF-30: `device_index` is a device type, and the caller's order selects the device of that type. A missing type falls
        // back silently, as in every release.
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
        // No entry is lost: each has a pool (GRF-52), and a pool larger than memory was rejected above (GRF-23).
        let entries: Vec<PoolTensor> = graph
            .entries
            .iter()
            .filter_map(|entry| {
                let memory = pools.get(entry.storage_id)?.clone();
                PoolTensor::new(memory, entry.dtype, &entry.shape)
            })
            .collect();
        // The map is built once, because frontends set every parameter by name, and a model may have thousands.
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
        // The entries must exist first, because the arguments of a call describe them.
        executor.steps = executor.find_functions(kernels)?;
        Ok(executor)
    }

    /// Returns the graph.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// Returns the devices, the fallback first.
    pub fn devices(&self) -> &[ExecutorDevice] {
        &self.devices
    }

    /// Returns the bytes of all pools, before a device rounds them up.
    pub fn planned_bytes(&self) -> u64 {
        self.pools.iter().map(|pool| pool.bytes as u64).sum()
    }

    /// Runs every node, in order (GRF-38). Queued kernels of a device may still run when this returns; [`Executor::sync`] waits for
    /// them.
    ///
    /// # Errors
    ///
    /// Returns the error of a function; the error of a device for a copy.
    pub fn run(&mut self) -> Result<(), Error> {
        // GRF-38: an error ends the run. Earlier nodes have written their outputs.
        self.steps.iter().try_for_each(|step| self.execute(step))
    }

    /// Runs only node `index`, with the present contents of its inputs. Does nothing if the graph has no node `index`.
    ///
    /// # Errors
    ///
    /// As [`Executor::run`].
    pub fn run_node(&mut self, index: usize) -> Result<(), Error> {
        self.steps
            .get(index)
            .map_or(Ok(()), |step| self.execute(step))
    }

    /// Returns the number of inputs and parameters, which is the length of `arg_nodes` (GRF-11).
    pub fn input_count(&self) -> usize {
        self.graph.arg_nodes.len()
    }

    /// Returns the number of outputs, which is the length of `heads`.
    pub fn output_count(&self) -> usize {
        self.graph.heads.len()
    }

    /// Returns the number of the input or parameter called `name`. If several have the name, the last one counts (GRF-11).
    pub fn input_index(&self, name: &str) -> Option<usize> {
        self.inputs.get(name).copied()
    }

    /// Returns the number of the input called `name`, or a violation of GRF-32 that lists the inputs.
    ///
    /// # Errors
    ///
    /// Returns GRF-32.
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

    /// Returns input `index`, as it is in memory now.
    ///
    /// # Errors
    ///
    /// Returns GRF-32 for an unknown input.
    pub fn input(&self, index: usize) -> Result<&PoolTensor, Violation> {
        Ok(&self.entries[self.input_entry(index)?])
    }

    /// Returns output `index`, as it is in memory now. The next run overwrites it.
    ///
    /// # Errors
    ///
    /// Returns GRF-32 for an unknown output.
    pub fn output(&self, index: usize) -> Result<&PoolTensor, Violation> {
        Ok(&self.entries[self.output_entry(index)?])
    }

    /// Waits for every device.
    ///
    /// # Errors
    ///
    /// Returns the error of the first device that fails.
    pub fn sync(&self) -> Result<(), Error> {
        // GRF-30: entries may be on any device, and a copy between two devices is queued on one of them.
        for device in &self.devices {
            device
                .api
                .sync(device.device, device.api.current_stream(device.device))?;
        }
        Ok(())
    }

    /// Returns entry `id`, as it is in memory now, or `None` if there is no such entry.
    pub fn entry(&self, id: usize) -> Option<&PoolTensor> {
        self.entries.get(id)
    }

    /// Returns the name of input `index` for a message; empty if there is no such input.
    fn input_name(&self, index: usize) -> &str {
        self.graph.inputs().nth(index).map_or("", |(_, name)| name)
    }

    /// Returns the entry of input `index` (GRF-32). A node of `arg_nodes` has one output (GRF-06).
    fn input_entry(&self, index: usize) -> Result<usize, Violation> {
        // GRF-11: the position in `arg_nodes` numbers an input, not its node.
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

    /// Returns the entry of output `index` (GRF-32).
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

/// The number of names that an error lists, because a model may have thousands of parameters.
const LISTED: usize = 12;

/// Returns the number of each input by its name. If several inputs have one name, the last one counts, as from 0.6 on (GRF-11).
/// Calls have no numbers.
fn numbers(graph: &Graph) -> HashMap<String, usize> {
    let inputs = graph.inputs().enumerate();
    inputs
        .map(|(number, (_, name))| (name.to_owned(), number))
        .collect()
}
