//! Running a graph.
//!
//! An [`Executor`] holds one pool of memory for every storage id, one description of a tensor for every argument of
//! every call, and calls the functions in the order of the nodes. Nothing is allocated while it runs.

use super::aliases::Aliases;
use super::arguments::Arguments;
pub use super::memory::Tensor;
use super::memory::{Memory, device_error, whole, with_record};
use super::{GRF_30, GRF_31, GRF_32, GRF_34, GRF_35, GRF_36, GRF_43};
use super::{Graph, Plan};
use crate::device::manager::Manager;
use crate::device::{ALIGNMENT, Device, DeviceApi};
use crate::function::{Error, Function};
use crate::object;
use crate::rule::{Kind, Violation};
use crate::tensor::Params;
use crate::value::{Any, DLTensor};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, OnceLock};

/// A device that an executor may use: which one, and how to talk to it.
#[derive(Clone, Copy)]
pub struct Place {
    pub(super) device: Device,
    pub(super) api: &'static dyn DeviceApi,
}

impl Place {
    /// `device`, if its backend is here.
    ///
    /// # Errors
    ///
    /// DEV-04 and DEV-06.
    pub fn of(device: Device) -> Result<Place, Error> {
        let api = Manager::global().api(device.kind).map_err(device_error)?;
        Ok(Place { device, api })
    }

    /// `device`, with the memory and copies of `api`, which need not be known to the manager.
    ///
    /// # Safety
    ///
    /// As for [`manager::register`](crate::device::manager::register), for the type of `device`.
    pub const unsafe fn with(device: Device, api: &'static dyn DeviceApi) -> Place {
        Place { device, api }
    }

    /// Type and index.
    pub const fn device(&self) -> Device {
        self.device
    }
}

/// Finds the function that a node calls.
pub type Kernels<'a> = dyn Fn(&str) -> Result<Option<Function>, Error> + 'a;

/// A graph with memory, ready to run.
pub struct Executor {
    graph: Arc<Graph>,
    places: Vec<Place>,
    pools: Vec<Arc<Memory>>,
    /// The tensor of each entry, in its pool.
    entries: Vec<Tensor>,
    steps: Vec<Step>,
    /// The number of each input by its name.
    inputs: HashMap<String, usize>,
    /// Made when an input first gets memory of its own.
    aliases: OnceLock<Aliases>,
    /// What was handed in by reference: the entry it stands for, kept alive here.
    external: HashMap<usize, Tensor>,
    /// Inputs that the library brings with it.
    linked: HashSet<usize>,
    /// Inputs that a parameter file set.
    params: HashSet<usize>,
    /// The entries of inputs that were ever set, by a copy or by a reference. The others hold whatever was in their memory.
    set: HashSet<usize>,
}

/// How many names an error lists.
const LISTED: usize = 12;

/// What one node does.
pub(super) enum Step {
    /// An input, or `__nop`.
    Nothing,
    /// `__copy`: between devices, by the executor itself.
    Copy { from: usize, to: usize },
    Call {
        function: Function,
        arguments: Arguments,
    },
}

impl Executor {
    /// Plans and takes memory for `graph`, and finds every function that it calls.
    ///
    /// The first of `places` is the fallback: entries without a device, or on a device type that is not among them,
    /// live there (GRF-30).
    ///
    /// # Errors
    ///
    /// GRF-31 with the names of all functions that `kernels` does not have; no place at all; a plan that breaks a rule;
    /// memory that is not there.
    pub fn new(
        graph: Arc<Graph>,
        kernels: &Kernels<'_>,
        places: Vec<Place>,
    ) -> Result<Executor, Error> {
        let plan = Plan::of(&graph)?;
        let Some(fallback) = places.first().copied() else {
            return Err(GRF_30
                .refused(Kind::Missing, "an executor needs a device")
                .into());
        };
        let place_of = |kind: Option<i32>| {
            let named = places.iter().find(|place| Some(place.device.kind) == kind);
            *named.unwrap_or(&fallback)
        };
        let pools = plan
            .pools
            .iter()
            .map(|pool| Memory::take(pool, place_of(pool.device)));
        let pools: Vec<Arc<Memory>> = pools.collect::<Result<_, Error>>()?;
        let entries: Vec<Tensor> = graph
            .entries
            .iter()
            .filter_map(|entry| {
                let memory = pools.get(entry.storage_id)?.clone();
                Tensor::new(memory, entry.dtype, &entry.shape)
            })
            .collect();
        let inputs = numbers(&graph);
        let mut executor = Executor {
            graph,
            places,
            pools,
            entries,
            steps: Vec::new(),
            inputs,
            aliases: OnceLock::new(),
            external: HashMap::new(),
            linked: HashSet::new(),
            params: HashSet::new(),
            set: HashSet::new(),
        };
        executor.steps = executor.find_functions(kernels)?;
        Ok(executor)
    }

    /// The graph that runs here.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// The devices, the fallback first.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// Bytes of memory of all pools.
    pub fn planned_bytes(&self) -> u64 {
        self.pools.iter().map(|pool| pool.bytes as u64).sum()
    }

    /// Runs every node, in order (GRF-38).
    ///
    /// # Errors
    ///
    /// What a function raises; a copy that a device refuses.
    pub fn run(&mut self) -> Result<(), Error> {
        self.steps.iter().try_for_each(|step| self.execute(step))
    }

    /// Runs node `index` alone, on whatever its inputs hold.
    ///
    /// # Errors
    ///
    /// As [`Executor::run`].
    pub fn run_node(&mut self, index: usize) -> Result<(), Error> {
        self.steps
            .get(index)
            .map_or(Ok(()), |step| self.execute(step))
    }

    /// How many inputs and parameters there are.
    pub fn input_count(&self) -> usize {
        self.graph.arg_nodes.len()
    }

    /// How many outputs there are.
    pub fn output_count(&self) -> usize {
        self.graph.heads.len()
    }

    /// The number of the input or parameter called `name`.
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
            GRF_32.refused(
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
    /// GRF-32 when there is no such input.
    pub fn input(&self, index: usize) -> Result<&Tensor, Violation> {
        Ok(self.entry(self.input_entry(index)?))
    }

    /// Output `index`, as it is in memory now. The next run overwrites it.
    ///
    /// # Errors
    ///
    /// GRF-32 when there is no such output.
    pub fn output(&self, index: usize) -> Result<&Tensor, Violation> {
        Ok(self.entry(self.output_entry(index)?))
    }

    /// Copies `source` into input `index` (GRF-33: same type, same shape).
    ///
    /// # Errors
    ///
    /// GRF-32, GRF-33, and GRF-43 for an input that the library brings with it.
    ///
    /// A tensor owns its memory; a bare description is no input:
    ///
    /// ```compile_fail,E0308
    /// # use tvmspec::graph::executor::Executor;
    /// # use tvmspec::value::DLTensor;
    /// fn set(executor: &mut Executor, made_up: &DLTensor) {
    ///     executor.set_input(0, made_up);
    /// }
    /// ```
    pub fn set_input(&mut self, index: usize, source: &object::Tensor) -> Result<(), Error> {
        let source = whole(source)?;
        // SAFETY: a tensor object owns the memory that it describes, and lives for the call.
        unsafe { self.set_input_from(index, source) }
    }

    /// [`Executor::set_input`] from a description.
    ///
    /// # Safety
    ///
    /// `source` describes memory that stays for the call; its extents and strides are readable.
    pub(super) unsafe fn set_input_from(
        &mut self,
        index: usize,
        source: &DLTensor,
    ) -> Result<(), Error> {
        let entry = self.input_entry(index)?;
        let target = self.entry(entry);
        // SAFETY: the extents of `source` are readable.
        if let Err(broken) = unsafe { target.check_same(source, "") } {
            // Said with the name, which costs a search.
            let named = format!("input `{}`{}", self.input_name(index), broken.message());
            return Err(broken.rule().refused(broken.kind(), named).into());
        }
        GRF_43.demand(Kind::Unsupported, !self.linked.contains(&index), || {
            let name = self.input_name(index);
            format!("`{name}` is linked into the library, and is not written to")
        })?;
        // SAFETY: its strides, too.
        unsafe { Tensor::check_compact(source, "an input") }?;
        // SAFETY: `source` is there for the call, in one piece, and of the type and shape of `target`, as just checked.
        unsafe { target.copy_from(source) }?;
        self.set.insert(entry);
        Ok(())
    }

    /// Fills input `index` with zeros, which counts as setting it. A linked parameter (GRF-43) stays as it is.
    ///
    /// # Errors
    ///
    /// GRF-32 when there is no such input; what the device says.
    pub fn clear_input(&mut self, index: usize) -> Result<(), Error> {
        let entry = self.input_entry(index)?;
        if !self.linked.contains(&index) {
            self.entry(entry).clear()?;
        }
        self.set.insert(entry);
        Ok(())
    }

    /// Lets input `index` be `source`, which the library brings with it (GRF-43). It counts as set, every call uses it, and
    /// nothing writes to it. `keep` lives as long as the executor, and as every tensor that it gives of the input.
    ///
    /// # Safety
    ///
    /// The memory of `source` stays valid as long as `keep`; its extents are readable.
    pub(super) unsafe fn link_input(
        &mut self,
        index: usize,
        source: &DLTensor,
        keep: Any,
    ) -> Result<(), Error> {
        let entry = self.input_entry(index)?;
        let what = format!("linked parameter `{}`", self.input_name(index));
        // SAFETY: the extents of `source` are readable.
        unsafe { self.entry(entry).check_same(source, &what) }?;
        // SAFETY: the memory of `source` stays as long as `keep`, and was just found to be of the entry's type and shape.
        unsafe { self.point_at(entry, source, &keep) };
        if let Some(slot) = self.entries.get_mut(entry) {
            // SAFETY: as for `point_at`.
            *slot = unsafe { Tensor::borrowed(source, slot, keep) };
        }
        self.set.insert(entry);
        self.linked.insert(index);
        Ok(())
    }

    /// Copies output `index` into `target` (GRF-33).
    ///
    /// # Errors
    ///
    /// GRF-32 and GRF-33.
    ///
    /// ```compile_fail,E0308
    /// # use tvmspec::graph::executor::Executor;
    /// # use tvmspec::value::DLTensor;
    /// fn copy(executor: &Executor, made_up: &DLTensor) {
    ///     executor.copy_output(0, made_up);
    /// }
    /// ```
    pub fn copy_output(&self, index: usize, target: &object::Tensor) -> Result<(), Error> {
        self.output(index)?.copy_out(target)
    }

    /// Lets every call that uses input `index` use the memory of `source` instead (GRF-34).
    ///
    /// Nothing is copied, now or in a run. [`Executor::input`] still shows the old memory, as in every release. The executor
    /// keeps `source` until the input is set by reference again.
    ///
    /// # Errors
    ///
    /// GRF-32, GRF-33, GRF-34.
    pub fn set_input_by_reference(
        &mut self,
        index: usize,
        source: &object::Tensor,
    ) -> Result<(), Error> {
        // SAFETY: a tensor object owns the memory that it describes, and is kept.
        unsafe { self.refer_input(index, whole(source)?, source.clone().into()) }
    }

    /// [`Executor::set_input_by_reference`] with a description of memory that `keep` keeps.
    ///
    /// # Safety
    ///
    /// The memory of `source` stays as long as `keep`; its extents and strides are readable.
    pub(super) unsafe fn refer_input(
        &mut self,
        index: usize,
        source: &DLTensor,
        keep: Any,
    ) -> Result<(), Error> {
        let entry = self.input_entry(index)?;
        let what = format!("input `{}`", self.input_name(index));
        // SAFETY: as for this function.
        unsafe { self.redirect(entry, source, &keep, &what) }?;
        self.set.insert(entry);
        Ok(())
    }

    /// Lets every call that writes output `index` write to the memory of `target` instead (GRF-34), which the executor keeps
    /// until the output is set by reference again.
    ///
    /// # Errors
    ///
    /// GRF-32, GRF-33, GRF-34.
    pub fn set_output_by_reference(
        &mut self,
        index: usize,
        target: &object::Tensor,
    ) -> Result<(), Error> {
        // SAFETY: a tensor object owns the memory that it describes, and is kept.
        unsafe { self.refer_output(index, whole(target)?, target.clone().into()) }
    }

    /// [`Executor::set_output_by_reference`] with a description of memory that `keep` keeps.
    ///
    /// # Safety
    ///
    /// As for [`Executor::refer_input`].
    pub(super) unsafe fn refer_output(
        &mut self,
        index: usize,
        target: &DLTensor,
        keep: Any,
    ) -> Result<(), Error> {
        let entry = self.output_entry(index)?;
        // SAFETY: as for this function.
        unsafe { self.redirect(entry, target, &keep, &format!("output {index}")) }
    }

    /// Lets this executor use `other`'s memory for the inputs called `names` (GRF-35): both see one set of parameters.
    ///
    /// Names that either graph does not have are skipped, as `load_params` does.
    ///
    /// # Errors
    ///
    /// GRF-35 where an input of one name is of another type or size in the two.
    pub fn share_inputs<'a>(
        &mut self,
        other: &Executor,
        names: impl Iterator<Item = &'a str>,
    ) -> Result<(), Error> {
        // How many entries each pool is for.
        let mut users = HashMap::<usize, usize>::new();
        for entry in &self.graph.entries {
            *users.entry(entry.storage_id).or_insert(0) += 1;
        }
        for name in names {
            let (Some(here), Some(there)) = (self.input_index(name), other.input_index(name))
            else {
                continue;
            };
            let shared = other.input(there)?.clone();
            let entry = self.input_entry(here)?;
            let what = format!("shared parameter `{name}`");
            // SAFETY: the extents of the other executor's tensor, which `shared` keeps.
            unsafe { self.entry(entry).check_same(&shared.view, &what) }?;
            // The pool must be this parameter's alone, or its neighbours would be overwritten with it.
            let storage = self.graph.entries.get(entry).map(|entry| entry.storage_id);
            let users = storage.and_then(|storage| users.get(&storage));
            let alone = users.is_none_or(|users| *users <= 1);
            GRF_35.demand(Kind::Unsupported, alone, || {
                format!("the memory of `{name}` is shared with other entries of its graph")
            })?;
            let keep = Any::from(shared.to_object());
            // SAFETY: `keep` keeps the other executor's memory, which was just found to be of the entry's type and shape.
            unsafe { self.point_at(entry, &shared.view, &keep) };
            if let Some(slot) = self.entries.get_mut(entry) {
                *slot = shared;
            }
            self.set.insert(entry);
        }
        Ok(())
    }

    /// Sets every parameter that is an input of the graph; others are skipped, as from 0.7 on (GRF-37). Returns how many
    /// were set.
    ///
    /// # Errors
    ///
    /// GRF-33 for a parameter of another type or shape than its input; GRF-43 for one that is linked; what a device rejects.
    /// Those before it are set.
    pub fn load_params(&mut self, params: &Params<'_>) -> Result<usize, Error> {
        let mut set = 0;
        for (name, record) in params.iter() {
            let Some(index) = self.input_index(name) else {
                continue;
            };
            // SAFETY: the description is of the record's bytes, which stay for the call.
            with_record(record, |tensor| unsafe {
                self.set_input_from(index, tensor)
            })?;
            self.params.insert(index);
            set += 1;
        }
        Ok(set)
    }

    /// Whether input `index` came with a parameter file.
    pub fn is_param(&self, index: usize) -> bool {
        self.params.contains(&index)
    }

    /// The inputs that were never set. What they hold is arbitrary.
    pub fn unset_inputs(&self) -> Vec<&str> {
        let inputs = self.graph.inputs();
        let is_set = |node: usize| {
            let entry = self.graph.entry_of(node, 0);
            entry.is_some_and(|entry| self.set.contains(&entry))
        };
        inputs
            .filter(|(node, _)| !is_set(*node))
            .map(|(_, name)| name)
            .collect()
    }

    /// Waits for every device.
    ///
    /// # Errors
    ///
    /// What the first device that fails answers.
    pub fn sync(&self) -> Result<(), Error> {
        for place in &self.places {
            place
                .api
                .sync(place.device, place.api.current_stream(place.device))
                .map_err(device_error)?;
        }
        Ok(())
    }

    /// Entry `id`, as it is in memory now.
    pub fn entry(&self, id: usize) -> &Tensor {
        &self.entries[id]
    }

    fn input_name(&self, index: usize) -> &str {
        self.graph.inputs().nth(index).map_or("", |(_, name)| name)
    }

    fn input_entry(&self, index: usize) -> Result<usize, Violation> {
        let node = self.graph.arg_nodes.get(index);
        node.and_then(|node| self.graph.entry_of(*node, 0))
            .ok_or_else(|| {
                GRF_32.refused(
                    Kind::Missing,
                    format!(
                        "there is no input {index}; there are {}",
                        self.input_count()
                    ),
                )
            })
    }

    fn output_entry(&self, index: usize) -> Result<usize, Violation> {
        self.graph
            .heads
            .get(index)
            .and_then(|head| self.graph.entry_id(*head))
            .ok_or_else(|| {
                GRF_32.refused(
                    Kind::Missing,
                    format!(
                        "there is no output {index}; there are {}",
                        self.output_count()
                    ),
                )
            })
    }

    fn find_functions(&self, kernels: &Kernels<'_>) -> Result<Vec<Step>, Error> {
        let mut missing = BTreeSet::new();
        let mut steps = Vec::with_capacity(self.graph.nodes.len());
        for (index, node) in self.graph.nodes.iter().enumerate() {
            let Some(call) = &node.call else {
                steps.push(Step::Nothing);
                continue;
            };
            let first = self.graph.node_row_ptr[index];
            let inputs = node
                .inputs
                .iter()
                .filter_map(|input| self.graph.entry_id(*input));
            let used: Vec<usize> = inputs.chain(first..first + call.num_outputs).collect();
            match (call.func_name.as_str(), used.as_slice()) {
                ("__nop", _) => steps.push(Step::Nothing),
                ("__copy", [from, to])
                    if self.entries[*from].nbytes() == self.entries[*to].nbytes() =>
                {
                    steps.push(Step::Copy {
                        from: *from,
                        to: *to,
                    });
                }
                ("__copy", _) => {
                    let sizes: Vec<usize> =
                        used.iter().map(|id| self.entries[*id].nbytes()).collect();
                    let message = format!(
                        "node {index} (`{}`) copies one entry to another of the same size; its arguments have {sizes:?} bytes",
                        node.name
                    );
                    return Err(GRF_36.refused(Kind::Malformed, message).into());
                }
                (name, _) => match kernels(name)? {
                    Some(function) => {
                        let arguments = Arguments::new(
                            used.iter().map(|id| (*id, &self.entries[*id])),
                            call.flatten_data,
                        );
                        steps.push(Step::Call {
                            function,
                            arguments,
                        });
                    }
                    None => {
                        missing.insert(name);
                    }
                },
            }
        }
        GRF_31.demand(Kind::Missing, missing.is_empty(), || {
            let missing: Vec<&str> = missing.iter().copied().collect();
            format!("no such function in module: {}", missing.join(", "))
        })?;
        Ok(steps)
    }

    fn execute(&self, step: &Step) -> Result<(), Error> {
        match step {
            Step::Nothing => Ok(()),
            Step::Copy { from, to } => {
                let (from, to) = (self.current(*from), self.current(*to));
                // The one that is not on the host knows how.
                if to.view.device.device_type == Device::CPU_KIND {
                    // SAFETY: both are entries, whose memory this keeps; `find_functions` found them to be of one size.
                    unsafe { from.copy_to(&to.view) }
                } else {
                    // SAFETY: both are entries, whose memory this keeps; `find_functions` found them to be of one size.
                    unsafe { to.copy_from(&from.view) }
                }
            }
            Step::Call {
                function,
                arguments,
            } => function.call(arguments.views()).map(drop),
        }
    }

    /// What entry `id` is for a run: the memory handed in by reference, where there is one.
    fn current(&self, id: usize) -> &Tensor {
        self.external.get(&id).unwrap_or(&self.entries[id])
    }

    /// # Safety
    ///
    /// As for [`Executor::refer_input`].
    unsafe fn redirect(
        &mut self,
        entry: usize,
        to: &DLTensor,
        keep: &Any,
        what: &str,
    ) -> Result<(), Error> {
        let inside = self.entry(entry);
        // SAFETY: the extents of `to` are readable.
        unsafe { inside.check_same(to, what) }?;
        GRF_34.demand(Kind::Malformed, inside.view.device == to.device, || {
            format!(
                "{what} is on device {:?}, the tensor handed in on {:?}",
                inside.view.device, to.device
            )
        })?;
        // SAFETY: the extents and strides of `to` are readable.
        let in_one_piece = unsafe { to.is_contiguous() };
        let first = to.data.wrapping_byte_add(to.byte_offset as usize);
        let in_place = in_one_piece && first.addr().is_multiple_of(ALIGNMENT);
        GRF_34.demand(Kind::Malformed, in_place, || {
            format!(
                "{what} must be in one piece and aligned to {ALIGNMENT} bytes to be used in place"
            )
        })?;
        // SAFETY: the memory of `to` stays as long as `keep`, and was found to be of the entry's type and shape.
        unsafe { self.point_at(entry, to, keep) };
        Ok(())
    }

    /// Every argument that stands for `entry`, or for what `__nop` makes of it, gets the address of `to`.
    ///
    /// # Safety
    ///
    /// The memory of `to` stays as long as `keep`, and holds a tensor of the entry's type and shape.
    unsafe fn point_at(&mut self, entry: usize, to: &DLTensor, keep: &Any) {
        let aliases = self
            .aliases
            .get_or_init(|| Aliases::new(&self.graph, &self.entries, &self.steps));
        let same = aliases.of(entry);
        for id in &*same {
            // SAFETY: the entries of `same` are of one size with `entry`.
            let tensor = unsafe { Tensor::borrowed(to, &self.entries[*id], keep.clone()) };
            self.external.insert(*id, tensor);
        }
        for step in aliases.users(&same) {
            if let Some(Step::Call { arguments, .. }) = self.steps.get_mut(step) {
                // SAFETY: `external` now keeps the memory of `to`, which is of the size of each of these entries.
                unsafe { arguments.point_at(|id| same.contains(&id), to) };
            }
        }
    }
}

/// The number of each input by its name. Of several inputs with one name the last one counts, as from 0.6 on (GRF-11); calls
/// have no numbers.
fn numbers(graph: &Graph) -> HashMap<String, usize> {
    let inputs = graph.inputs().enumerate();
    inputs
        .map(|(number, (_, name))| (name.to_owned(), number))
        .collect()
}
