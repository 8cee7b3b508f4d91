//! The machine: an executable, the functions that it calls, and devices.

use super::builtin::{self, Builtin};
use super::closure::Closure;
use super::interpret::{Callee, Code, Frame, Observer};
use super::memory::{self, AllocatorKind, Place};
use super::{Fault, Loaded, VM_11, VM_12, VM_14, VM_60, VM_61, VM_62, VM_63};
use crate::device::{Device, byte_size};
use crate::function::{Error, Function, registry};
use crate::module::Module;
use crate::object::{Shape, Tensor, sequence_of};
use crate::payload::relax_vm::{FunctionKind, RelaxConstant};
use crate::release::{Layout, Release};
use crate::rule::Kind;
use crate::tensor::{Dtype, Elements, Packing};
use crate::value::header::Ref;
use crate::value::{Any, AnyView, DLDataType, DLTensor, Str, index};
use std::collections::{BTreeSet, HashMap};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// A machine that runs one executable. Cloning gives another handle of the same machine.
///
/// Calls may come from several threads at once; each has frames of its own. What `set_input` and `invoke_stateful` keep is
/// one set for all.
#[derive(Clone)]
pub struct VirtualMachine(pub(super) Arc<Machine>);

pub(super) struct Machine {
    // Before what it borrows from.
    pub(super) code: Code,
    loaded: Arc<Loaded>,
    places: Vec<Place>,
    _constants: Vec<Any>,
    pub(super) callees: Vec<Callee>,
    /// The function table as values.
    pub(super) functions: Vec<Any>,
    pub(super) frames: Mutex<Vec<Frame>>,
    state: Mutex<State>,
    watchers: RwLock<Watchers>,
    watched: AtomicBool,
    /// Jumps and calls that are left; [`UNLIMITED`] where there is no limit.
    left: AtomicU64,
    _imports: Vec<Module>,
}

/// No limit of jumps and calls.
const UNLIMITED: u64 = u64::MAX;

/// What lives from one call of a module function to the next.
#[derive(Default)]
struct State {
    inputs: HashMap<String, Vec<Any>>,
    outputs: HashMap<String, Any>,
    saved: HashMap<String, Ref<Closure>>,
}

#[derive(Clone, Default)]
struct Watchers {
    observer: Option<Observer>,
    instrument: Option<Function>,
}

/// Where the code of a machine comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// A module that `module::load` loaded: its contract covers what the code does.
    Trusted,
    /// Bytes that safe code read.
    Unknown,
}

impl VirtualMachine {
    /// A machine for the executable that `module` is or imports, on `devices`, with pooled memory.
    ///
    /// The first device holds constants; the host is added behind the others when it is not among them.
    ///
    /// # Errors
    ///
    /// A RuntimeError when no module is an executable, which lists the kinds that there are; what [`VirtualMachine::new`]
    /// rejects: devices without an API (DEV-04), functions that are missing (VM-11) or not run (VM-12).
    pub fn of(module: &Module, devices: &[Device]) -> Result<VirtualMachine, Error> {
        let all = module.walk();
        let found = all
            .iter()
            .find_map(|module| Some((module, super::module::loaded_of(module)?)));
        let Some((executable, loaded)) = found else {
            let kinds: Vec<String> = all.iter().map(Module::kind).collect();
            let message = format!(
                "there is no VM executable among the modules: {}; it has kind relax.VMExecutable (relax.Executable up to 0.19)",
                kinds.join(", ")
            );
            return Err(Error::new("RuntimeError", message));
        };
        let devices = pooled(devices);
        Ok(VirtualMachine::make(
            loaded,
            executable.imports(),
            &devices,
            Origin::Trusted,
        )?)
    }

    /// A machine for `loaded`, whose functions are looked up in `imports`, then in the global registry.
    ///
    /// # Errors
    ///
    /// VM-11 with the names of all functions that are nowhere; what a device says.
    pub fn new(
        loaded: Arc<Loaded>,
        imports: Vec<Module>,
        devices: &[Device],
    ) -> Result<VirtualMachine, Fault> {
        VirtualMachine::make(loaded, imports, &pooled(devices), Origin::Unknown)
    }

    /// [`VirtualMachine::new`] with exactly these devices and allocators, at least one, for code of which more or less is known.
    pub(super) fn make(
        loaded: Arc<Loaded>,
        imports: Vec<Module>,
        devices: &[(Device, AllocatorKind)],
        origin: Origin,
    ) -> Result<VirtualMachine, Fault> {
        builtin::provide();
        let places = devices
            .iter()
            .map(|(device, kind)| Place::new(*device, *kind));
        let places: Vec<Place> = places.collect::<Result<_, Fault>>()?;
        let functions = resolve(&loaded, &imports, origin)?;
        let callees = functions
            .iter()
            .enumerate()
            .map(|(index, value)| callee(index, value))
            .collect();
        let constants = constants(&loaded, &places)?;
        let code = Code::decode(&loaded, &constants, &functions)?;
        let machine = Arc::new(Machine {
            code,
            loaded,
            places,
            _constants: constants,
            callees,
            functions,
            frames: Mutex::default(),
            state: Mutex::default(),
            watchers: RwLock::default(),
            watched: AtomicBool::default(),
            left: AtomicU64::new(UNLIMITED),
            _imports: imports,
        });
        builtin::announce(&machine);
        Ok(VirtualMachine(machine))
    }

    /// Names of the functions that can be called, in the order of the table.
    pub fn functions(&self) -> Vec<&str> {
        let functions = self.0.loaded.executable().functions();
        functions.map(|function| &*function.name).collect()
    }

    /// Names of the parameters of `function`.
    ///
    /// # Errors
    ///
    /// VM-61 for an unknown function.
    pub fn parameters(&self, function: &str) -> Result<Vec<&str>, Fault> {
        let index = self.0.index(function)?;
        let code = self.0.loaded.executable().code();
        Ok(code.functions[index]
            .params
            .iter()
            .map(|name| &**name)
            .collect())
    }

    /// Calls the function, or what was saved under that name (VM-64).
    ///
    /// # Errors
    ///
    /// VM-61 for an unknown function; VM-60 for another number of arguments; whatever breaks or is raised on the way, with the
    /// instructions that led there.
    pub fn call(&self, function: &str, args: &[Any]) -> Result<Any, Fault> {
        let views: Vec<AnyView<'_>> = args.iter().map(Any::view).collect();
        self.call_views(function, &views)
    }

    /// [`VirtualMachine::call`] with borrowed arguments.
    pub(crate) fn call_views(&self, function: &str, args: &[AnyView<'_>]) -> Result<Any, Fault> {
        self.0.closure(function)?.call(&self.0, args)
    }

    /// The devices; the first holds constants.
    pub fn devices(&self) -> impl Iterator<Item = Device> {
        self.0.places.iter().map(|place| place.device)
    }

    /// The executable.
    pub fn loaded(&self) -> &Arc<Loaded> {
        &self.0.loaded
    }

    /// From now on `observer` sees every call that starts after this one; `None` ends it.
    pub fn observe(&self, observer: Option<Observer>) {
        self.0.watch(|watchers| watchers.observer = observer);
    }

    /// From now on the machine makes at most `most` jumps and calls of VM functions together, on all threads; `None` ends it.
    ///
    /// A loop has a jump and recursion a call, so that every call of the machine comes to an end: what would be one more is
    /// an error. For code that is not trusted.
    pub fn limit(&self, most: Option<u64>) {
        self.0
            .left
            .store(most.unwrap_or(UNLIMITED), Ordering::Relaxed);
    }

    /// Seconds per call of `function`, one number for each repetition of `how`, measured on the first device.
    ///
    /// # Errors
    ///
    /// As [`VirtualMachine::call`], of the first call that fails; what the device answers to a sync.
    pub fn time(
        &self,
        function: &str,
        args: &[Any],
        how: &crate::device::timer::Evaluator,
    ) -> Result<Vec<f64>, Fault> {
        let place = &self.0.places[0];
        let mut timer = crate::device::timer::DefaultTimer::new(place.api, place.device);
        let mut failed = None;
        let times = how.run(place.api, place.device, &mut timer, || {
            if failed.is_none() {
                failed = self.call(function, args).err();
            }
            Ok(())
        });
        match failed {
            Some(fault) => Err(fault),
            None => Ok(times?),
        }
    }
}

impl std::fmt::Debug for VirtualMachine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "VirtualMachine({})", self.functions().join(", "))
    }
}

/// Every entry of the function table as a value, or VM-11 with all names that are nowhere.
fn resolve(loaded: &Arc<Loaded>, imports: &[Module], origin: Origin) -> Result<Vec<Any>, Fault> {
    let mut missing: BTreeSet<&str> = BTreeSet::new();
    let mut functions = Vec::new();
    let resets = match loaded.layout() {
        // 0.16 to 0.20 leave a shared tuple as it is (VM-58).
        Layout::V0_2 | Layout::V0_7 => Origin::Unknown,
        _ => origin,
    };
    for (index, function) in loaded.executable().code().functions.iter().enumerate() {
        let name = &*function.name;
        let value = match function.kind {
            FunctionKind::Vm => Closure::of_function(loaded, index, name).into(),
            FunctionKind::Packed => match find(name, imports, resets)? {
                Some(found) => found.into(),
                None => {
                    missing.insert(name);
                    Any::none()
                }
            },
            FunctionKind::VmTir => {
                let message = format!(
                    "function `{name}` was compiled to work on the registers of a machine (exec_mode \"compiled\"): export the model with exec_mode \"bytecode\""
                );
                return Err(VM_12.refused(Kind::Unsupported, message).into());
            }
        };
        functions.push(value);
    }
    if missing.is_empty() {
        return Ok(functions);
    }
    let message = format!(
        "{} of the functions that the executable calls are neither in its library nor registered: {}",
        missing.len(),
        missing.into_iter().collect::<Vec<_>>().join(", ")
    );
    Err(VM_11.refused(Kind::Missing, message).into())
}

/// These devices with pooled memory, and the host behind them when it is not among them.
fn pooled(devices: &[Device]) -> Vec<(Device, AllocatorKind)> {
    let mut pooled: Vec<_> = devices
        .iter()
        .map(|device| (*device, AllocatorKind::Pooled))
        .collect();
    if !devices.iter().any(|device| device.kind == Device::CPU.kind) {
        pooled.push((Device::CPU, AllocatorKind::Pooled));
    }
    pooled
}

/// VM-11: the imports in order, then the registry.
fn find(name: &str, imports: &[Module], resets: Origin) -> Result<Option<Function>, Fault> {
    for import in imports {
        if let Some(found) = import.function(name, true)? {
            return Ok(Some(found));
        }
    }
    match (name, resets) {
        // SAFETY: the contract of `module::load` covers what the code of its file does: it resets an element of a register or an
        // argument that is not looked at again (VM-58).
        (builtin::RESET, Origin::Trusted) => Ok(unsafe { registry::lookup_raw(name.as_bytes()) }),
        (builtin::RESET, Origin::Unknown) => Ok(Some(Function::from_packed(|args| {
            Ok(builtin::reset_item_held_alone(args)?)
        }))),
        _ => Ok(registry::lookup(name)),
    }
}

fn callee(index: usize, value: &Any) -> Callee {
    let function = value
        .as_object()
        .cloned()
        .and_then(|object| Function::from_object(object).ok());
    match function {
        None => Callee::Vm(index),
        Some(function) => match Builtin::of(&function) {
            Some(builtin) => Callee::Builtin(builtin),
            None => Callee::Packed(function),
        },
    }
}

/// The constant pool as values; tensors are copied once, to the first device, aligned as kernels want them (VM-13).
fn constants(loaded: &Loaded, places: &[Place]) -> Result<Vec<Any>, Fault> {
    let code = loaded.executable().code();
    let mut scopes: HashMap<usize, &str> = HashMap::new();
    for (constant, scope) in code.memory_scopes.as_deref().unwrap_or_default() {
        scopes.insert(*constant as usize, scope);
    }
    let first = &places[0];
    code.constants
        .iter()
        .enumerate()
        .map(|(index, constant)| {
            Ok(match constant {
                RelaxConstant::Tensor(record) => {
                    let scope = scopes.get(&index).copied().unwrap_or_default();
                    // Before memory is taken: lanes that are not stored cost a file nothing.
                    // As many bytes as any release has for them: those that pack find theirs first (TEN-31).
                    let elements = record.elements(Packing::Each)?;
                    let dtype = DLDataType::from(elements.dtype());
                    let tensor = memory::lasting(first, elements.shape(), dtype, scope)?;
                    fill(&tensor, &elements)?;
                    tensor
                }
                RelaxConstant::Shape(extents) => Shape::new(extents).into(),
                RelaxConstant::Text(text) => Str::from(&**text).into(),
                RelaxConstant::Int(value) => (*value).into(),
                RelaxConstant::Float(value) => (*value).into(),
                RelaxConstant::Dtype(dtype) => DLDataType::from(*dtype).into(),
            })
        })
        .collect()
}

/// Copies `elements` into the whole of `tensor`, which `lasting` made for their type and shape.
fn fill(tensor: &Any, elements: &Elements<'_>) -> Result<(), Fault> {
    let tensor = crate::value::cast::<Tensor>(tensor.view())?;
    let bytes = elements.bytes();
    let (mut dtype, mut extents) = (tensor.dl().dtype, elements.shape().to_vec());
    if byte_size(&extents, elements.dtype(), Release::LAST) != Some(bytes.len()) {
        // Elements below eight bits, with room for whole bytes of each: a copy by their type would leave out most of them.
        dtype = DLDataType::from(Dtype::scalar(Dtype::UINT, 8));
        extents = vec![bytes.len() as i64];
    }
    let to = DLTensor {
        ndim: extents.len() as i32,
        dtype,
        shape: extents.as_mut_ptr(),
        strides: std::ptr::null_mut(),
        ..*tensor.dl()
    };
    let from = DLTensor {
        data: bytes.as_ptr().cast_mut().cast(),
        device: crate::value::DLDevice::CPU,
        byte_offset: 0,
        ..to
    };
    // SAFETY: `from` describes `bytes`, which are as many as `memory::copy` reads for this shape and type, as was just
    // compared or set; `to` is a tensor of `lasting` for the same elements, with room for whole bytes of each, alive in `tensor`.
    unsafe { memory::copy(&from, &to) }
}

impl Drop for Machine {
    fn drop(&mut self) {
        builtin::forget(self);
    }
}

impl Machine {
    pub(super) fn loaded(&self) -> &Arc<Loaded> {
        &self.loaded
    }

    /// Counts a jump or a call of a VM function against [`VirtualMachine::limit`].
    #[inline]
    pub(super) fn spend(&self) -> Result<(), Fault> {
        if self.left.load(Ordering::Relaxed) == UNLIMITED {
            return Ok(());
        }
        self.spend_one()
    }

    #[cold]
    fn spend_one(&self) -> Result<(), Fault> {
        // Where another thread just ended the limit, one less than all there is is no limit either.
        let take = |left: u64| left.checked_sub(1);
        let taken = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        match taken {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::new(
                "RuntimeError",
                "the machine has made as many jumps and calls as it may",
            )
            .into()),
        }
    }

    /// The name of entry `index` of the function table.
    pub(super) fn name(&self, index: usize) -> &str {
        &self.loaded.executable().code().functions[index].name
    }

    /// The machine as the operand `%vm`.
    pub(super) fn handle(&self) -> AnyView<'_> {
        // SAFETY: functions that take `%vm` take it as the machine, which this is.
        unsafe { AnyView::handle(std::ptr::from_ref(self).cast_mut().cast::<c_void>()) }
    }

    /// Device `index`; -1 is the host, which is the last one (VM-14).
    pub(super) fn place(&self, index: i64) -> Result<&Place, Fault> {
        let count = self.places.len();
        let found = match index {
            -1 => self.places.last(),
            index => usize::try_from(index)
                .ok()
                .and_then(|index| self.places.get(index)),
        };
        found.ok_or_else(|| {
            let message = format!("the machine has no device {index}, it has {count}");
            VM_14.refused(Kind::Missing, message).into()
        })
    }

    /// The host's place, where shape heaps are.
    pub(super) fn host(&self) -> Result<&Place, Fault> {
        let host = self
            .places
            .iter()
            .rev()
            .find(|place| place.device.kind == Device::CPU.kind);
        host.ok_or_else(|| {
            VM_14
                .refused(
                    Kind::Missing,
                    "the machine has no host device: give it the CPU behind the others",
                )
                .into()
        })
    }

    #[cold]
    pub(super) fn wrong_count(&self, function: usize, given: &[AnyView<'_>]) -> Fault {
        let function = &self.loaded.executable().code().functions[function];
        let names: Vec<&str> = function.params.iter().map(|name| &**name).collect();
        let message = format!(
            "function `{}` takes {} arguments ({}), {} were given",
            function.name,
            function.num_args,
            names.join(", "),
            given.len()
        );
        VM_60.refused(Kind::Type, message).into()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Index of the function `name` (VM-61).
    pub(super) fn index(&self, name: &str) -> Result<usize, Fault> {
        let code = self.loaded.executable().code();
        let index = self
            .loaded
            .function(name)
            .filter(|index| code.functions[*index].kind != FunctionKind::Packed);
        index.ok_or_else(|| {
            let known: Vec<&str> = self
                .loaded
                .executable()
                .functions()
                .map(|function| &*function.name)
                .collect();
            let message = format!("Unknown function: {name}; there are {}", known.join(", "));
            VM_61.refused(Kind::Missing, message).into()
        })
    }

    /// The closure of `name`: what was saved under it, else the function (VM-64).
    pub(super) fn closure(&self, name: &str) -> Result<Ref<Closure>, Fault> {
        let saved = self.state().saved.get(name).cloned();
        if let Some(saved) = saved {
            return Ok(saved);
        }
        let index = self.index(name)?;
        let value = self.functions[index].as_object().cloned();
        value
            .and_then(|object| object.downcast::<Closure>().ok())
            .ok_or_else(|| {
                VM_61
                    .refused(Kind::Missing, format!("Unknown function: {name}"))
                    .into()
            })
    }

    /// Keeps arguments for [`Machine::invoke_stateful`] (VM-62).
    pub(super) fn set_input(&self, name: &str, args: &[AnyView<'_>]) -> Result<(), Fault> {
        let index = self.index(name)?;
        if args.len() as i64 != self.loaded.executable().code().functions[index].num_args {
            return Err(self.wrong_count(index, args));
        }
        let first = self.place(0)?;
        let kept: Result<Vec<Any>, Fault> = args.iter().map(|arg| on_device(*arg, first)).collect();
        self.state().inputs.insert(name.to_owned(), kept?);
        Ok(())
    }

    /// Runs `name` on what was set and keeps the result (VM-62).
    pub(super) fn invoke_stateful(&self, name: &str) -> Result<(), Fault> {
        let index = self.index(name)?;
        let inputs = self.state().inputs.get(name).cloned();
        let Some(inputs) = inputs else {
            let message =
                format!("No inputs set for stateful call of {name}; use `set_input` first.");
            return Err(VM_62.refused(Kind::Missing, message).into());
        };
        let views: Vec<AnyView<'_>> = inputs.iter().map(Any::view).collect();
        let output = self.run(index, &views)?;
        self.state().outputs.insert(name.to_owned(), output);
        Ok(())
    }

    /// The kept result of `name`, or a part of it: each of `path` is an index into a tuple (VM-63).
    pub(super) fn output(&self, name: &str, path: &[AnyView<'_>]) -> Result<Any, Fault> {
        let Some(mut value) = self.state().outputs.get(name).cloned() else {
            let message = format!(
                "No output saved for call of \"{name}\"; use `invoke_stateful` to call it first."
            );
            return Err(VM_63.refused(Kind::Missing, message).into());
        };
        for step in path {
            let at = crate::value::cast::<i64>(*step)?;
            let next = sequence_of(value.view())
                .and_then(|items| items.get(usize::try_from(at).ok()?).cloned());
            value = next.ok_or_else(|| {
                VM_63.refused(
                    Kind::Missing,
                    format!("the output of `{name}` has no element {at} there"),
                )
            })?;
        }
        Ok(value)
    }

    /// Binds arguments to `name` and keeps that as `save_as` (VM-65).
    pub(super) fn save(
        &self,
        name: &str,
        save_as: &str,
        returns: bool,
        args: &[AnyView<'_>],
    ) -> Result<(), Fault> {
        let closure = self.closure(name)?;
        let first = self.place(0)?;
        let last: Result<Vec<Any>, Fault> = args.iter().map(|arg| on_device(*arg, first)).collect();
        let bound = closure.bind(save_as, last?, returns);
        self.state().saved.insert(save_as.to_owned(), bound);
        Ok(())
    }

    /// Sets or ends the instrument: a function that is called around every call, before and after.
    pub(super) fn set_instrument(&self, instrument: Option<Function>) {
        self.watch(|watchers| watchers.instrument = instrument);
    }

    fn watch(&self, change: impl FnOnce(&mut Watchers)) {
        let mut watchers = self
            .watchers
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        change(&mut watchers);
        let any = watchers.observer.is_some() || watchers.instrument.is_some();
        self.watched
            .store(any, std::sync::atomic::Ordering::Release);
    }

    pub(super) fn is_watched(&self) -> bool {
        self.watched.load(std::sync::atomic::Ordering::Acquire)
    }

    pub(super) fn watchers(&self) -> (Option<Observer>, Option<Function>) {
        let watchers = self
            .watchers
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        (watchers.observer, watchers.instrument)
    }
}

/// `value` with every tensor on the device of `place`: those elsewhere and borrowed ones are copied, through tuples.
fn on_device(value: AnyView<'_>, place: &Place) -> Result<Any, Fault> {
    if let Some(items) = sequence_of(value) {
        let items: Result<Vec<Any>, Fault> = items
            .iter()
            .map(|item| on_device(item.view(), place))
            .collect();
        return Ok(items?.into_iter().collect::<crate::object::Array>().into());
    }
    if !matches!(value.type_index(), index::TENSOR | index::DLTENSOR_PTR) {
        return Ok(value.to_any());
    }
    let from = crate::value::cast::<*mut DLTensor>(value)?;
    // SAFETY: an argument of this type points to a description that lives as long as the view.
    let from = unsafe { &*from };
    if value.type_index() == index::TENSOR && Device::from(from.device) == place.device {
        return Ok(value.to_any());
    }
    // SAFETY: an argument describes memory that its caller keeps for the call.
    unsafe { copied(from, place) }
}

/// A copy of `from` on the device of `place`.
///
/// # Safety
///
/// `from` describes memory that stays for the call; its extents and strides are readable.
pub(super) unsafe fn copied(from: &DLTensor, place: &Place) -> Result<Any, Fault> {
    // SAFETY: as for this function.
    unsafe { copied_to_scope(from, place, "") }
}

/// [`copied`] to memory of `scope`.
///
/// # Safety
///
/// As for [`copied`].
pub(super) unsafe fn copied_to_scope(
    from: &DLTensor,
    place: &Place,
    scope: &str,
) -> Result<Any, Fault> {
    // SAFETY: the extents of `from` are readable.
    let shape = unsafe { from.shape() };
    let tensor = memory::lasting(place, shape, from.dtype, scope)?;
    let to = crate::value::cast::<Tensor>(tensor.view())?;
    // SAFETY: `from` stays for the call, the fresh tensor owns its memory; `copy` compares sizes and strides.
    unsafe { memory::copy(from, to.dl()) }?;
    Ok(tensor)
}
