//! The machine: an executable, the functions that it calls, and devices.

use super::allocator::{AllocatorKind, VmDevice};
use super::bools;
use super::builtin;
use super::closure::VmClosure;
use super::code::{Callee, DecodedCode};
use super::compiled::compiled_functions;
use super::error::VmResult;
use super::frame::VmFrame;
use super::link::{Origin, callee, constants, resolve};
use super::loaded_executable::LoadedExecutable;
use super::machine_interface::CallingMachine;
use super::observer::Observer;
use crate::device::Device;
use crate::device::timer::{DefaultTimer, Evaluator};
use crate::function::{Error, ErrorKind, Function, IntoArgs};
use crate::module::Module;
use crate::payload::relax_vm::FunctionKind;
use crate::rule::Kind;
use crate::value::header::Ref;
use crate::value::{Any, AnyView};
use crate::vm::{VM_14, VM_60, VM_61};
use std::collections::HashMap;
use std::ffi::c_void;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// A machine that runs one executable. Cloning creates another handle of the same machine.
///
/// Several threads may call it at once; each call has its own frames. The data of `set_input` and `invoke_stateful` exists once for
/// all of them.
#[derive(Clone)]
pub struct VirtualMachine(pub(super) Arc<VirtualMachineImpl>);

/// The state that all handles of one machine share.
pub(super) struct VirtualMachineImpl {
    // Declared before the fields that it borrows from, so that it is dropped first.
    pub(super) code: DecodedCode,
    pub(super) loaded: Arc<LoadedExecutable>,
    /// The devices in the order of `vm_initialization`. The first one holds constants (VM-13), and -1 refers to the last one (VM-14).
    places: Vec<VmDevice>,
    /// The constant pool, whose cells `code` borrows.
    pub(super) constants: Vec<Any>,
    /// True if a bool of the executable is a `uint1` (VM-40).
    has_uint1: bool,
    /// The target of each entry of the function table, found when the machine was created (VM-11).
    pub(super) callees: Vec<Callee>,
    /// The function table as values.
    pub(super) functions: Vec<Any>,
    /// The frames of finished calls, for reuse.
    pub(super) frames: Mutex<Vec<VmFrame>>,
    /// The data of `set_input`, `invoke_stateful` and `save_function`.
    state: Mutex<MachineState>,
    watchers: RwLock<Watchers>,
    /// True if `watchers` has any entry. Each function reads it at its start, without a lock.
    watched: AtomicBool,
    /// The remaining jumps and calls; [`UNLIMITED`] if there is no limit.
    left: AtomicU64,
    /// The imports, kept loaded because `callees` call their code.
    _imports: Vec<Module>,
}

/// The state between calls of module functions, by the name of the function. Saved functions have their own names (VM-64).
#[derive(Default)]
pub(super) struct MachineState {
    /// The arguments of `set_input`, on the first device (VM-62).
    pub(super) inputs: HashMap<String, Vec<Any>>,
    /// The results of `invoke_stateful`, which may be tuples (VM-63).
    pub(super) outputs: HashMap<String, Any>,
    /// The closures of `save_function`, by the names that they were saved under (VM-65).
    pub(super) saved: HashMap<String, Ref<VmClosure>>,
}

/// The value that means no limit of jumps and calls.
const UNLIMITED: u64 = u64::MAX;

/// The observer and the instrument of a machine's calls. Both are rare, so one flag for both is enough.
#[derive(Clone, Default)]
struct Watchers {
    /// The watcher of the embedder, in Rust.
    observer: Option<Observer>,
    /// The watcher of a frontend, set through `set_instrument` (VM-66).
    instrument: Option<Function>,
}

impl VirtualMachine {
    /// Creates a machine for `loaded`. Its functions are looked up in `imports`, then in the global registry.
    ///
    /// # Errors
    ///
    /// Returns VM-11 with the names of all missing functions; a device's error.
    pub fn new(
        loaded: Arc<LoadedExecutable>,
        imports: Vec<Module>,
        devices: &[Device],
    ) -> Result<VirtualMachine, Error> {
        VirtualMachine::make(loaded, imports, &pooled(devices), Origin::Unknown)
    }

    /// Creates a machine as [`VirtualMachine::new`] does, with exactly these devices and allocators (at least one), for code of the
    /// given origin.
    pub(super) fn make(
        loaded: Arc<LoadedExecutable>,
        imports: Vec<Module>,
        devices: &[(Device, AllocatorKind)],
        origin: Origin,
    ) -> Result<VirtualMachine, Error> {
        // VM-11: the registry is searched next, and an embedder may not have filled it.
        builtin::provide();
        let places = devices
            .iter()
            .map(|(device, kind)| VmDevice::new(*device, *kind));
        let places: Vec<VmDevice> = places.collect::<Result<_, Error>>()?;
        let functions = resolve(&loaded, &imports, origin)?;
        // VM-11: all callees are looked up before anything runs, so that a model fails when it is loaded, and not in the middle of a
        // run.
        let mut callees: Vec<Callee> = functions
            .iter()
            .enumerate()
            .map(|(index, value)| callee(index, value, origin))
            .collect();
        for (index, compiled) in compiled_functions(&loaded, &imports)? {
            callees[index] = Callee::Compiled(index, compiled);
        }
        // After the functions, so that a machine that cannot be created copies no constants to a device.
        let constants = constants(&loaded, &places)?;
        let code = DecodedCode::decode(&loaded, &constants, &functions)?;
        let machine = Arc::new(VirtualMachineImpl {
            code,
            loaded,
            places,
            has_uint1: bools::has_uint1(&constants),
            constants,
            callees,
            functions,
            frames: Mutex::default(),
            state: Mutex::default(),
            watchers: RwLock::default(),
            watched: AtomicBool::default(),
            left: AtomicU64::new(UNLIMITED),
            _imports: imports,
        });
        // Builtins in the registry find the machine by the handle that compiled code passes.
        let calling: Arc<dyn CallingMachine> = machine.clone();
        builtin::announce(&calling);
        Ok(VirtualMachine(machine))
    }

    /// Returns the names of the functions that can be called, in the order of the table.
    pub fn functions(&self) -> Vec<&str> {
        let functions = self.0.loaded.executable().functions();
        functions.map(|function| &*function.name).collect()
    }

    /// Returns the names of the parameters of `function`.
    ///
    /// # Errors
    ///
    /// Returns VM-61 for an unknown function.
    pub fn parameters(&self, function: &str) -> Result<Vec<&str>, Error> {
        let index = self.0.index(function)?;
        let code = self.0.loaded.executable().code();
        Ok(code.functions[index]
            .params
            .iter()
            .map(|name| &**name)
            .collect())
    }

    /// Calls the function of this name, or the one that was saved under this name (VM-64). `args` are a tuple, an array or a slice of
    /// values.
    ///
    /// # Errors
    ///
    /// Returns VM-61 for an unknown function; VM-60 for a wrong number of arguments; any error during the call, with the instructions
    /// that led to it.
    pub fn call(&self, function: &str, args: impl IntoArgs) -> Result<Any, Error> {
        args.with_views(|views| self.call_views(function, views))
    }

    /// Calls as [`VirtualMachine::call`] does, with borrowed arguments.
    pub(crate) fn call_views(&self, function: &str, args: &[AnyView<'_>]) -> Result<Any, Error> {
        self.0.closure(function)?.call(&*self.0, args)
    }

    /// Returns the devices. The first one holds constants.
    pub fn devices(&self) -> impl Iterator<Item = Device> {
        self.0.places.iter().map(|place| place.device)
    }

    /// Returns the executable that it runs, shared with the module that loaded it.
    pub fn loaded(&self) -> &Arc<LoadedExecutable> {
        &self.0.loaded
    }

    /// Makes `observer` see every call that starts after this one; `None` removes the observer.
    pub fn observe(&self, observer: Option<Observer>) {
        self.0.watch(|watchers| watchers.observer = observer);
    }

    /// Limits the machine to `most` jumps and calls of VM functions together, on all threads; `None` removes the limit.
    ///
    /// A loop has a jump and recursion a call, so every call of the machine ends. One step beyond the limit is an error. This is
    /// meant for untrusted code.
    pub fn limit(&self, most: Option<u64>) {
        self.0
            .left
            .store(most.unwrap_or(UNLIMITED), Ordering::Relaxed);
    }

    /// Measures the seconds per call of `function` on the first device, one number for each repetition of `how`.
    ///
    /// # Errors
    ///
    /// As [`VirtualMachine::call`], for the first call that fails; the device's error for a sync.
    pub fn time(&self, function: &str, args: &[Any], how: &Evaluator) -> Result<Vec<f64>, Error> {
        let place = &self.0.places[0];
        let mut timer = DefaultTimer::new(place.api, place.device);
        let mut failed = None;
        let times = how.run(place.api, place.device, &mut timer, || {
            // The measurement cannot be stopped halfway, so the remaining rounds call nothing.
            if failed.is_none() {
                failed = self.call(function, args).err();
            }
            Ok(())
        });
        // The error of the call has precedence over the error of the timer, because it lists the instructions that led to it.
        match failed {
            Some(fault) => Err(fault),
            None => Ok(times?),
        }
    }
}

impl fmt::Debug for VirtualMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VirtualMachine({})", self.functions().join(", "))
    }
}

/// Returns these devices with pooled memory, and the host after them if it is not among them.
pub(super) fn pooled(devices: &[Device]) -> Vec<(Device, AllocatorKind)> {
    let mut pooled: Vec<_> = devices
        .iter()
        .map(|device| (*device, AllocatorKind::Pooled))
        .collect();
    // VM-14: compilers expect the host as the last device, because shape heaps are there (VM-48).
    if !devices.iter().any(|device| device.kind == Device::CPU.kind) {
        pooled.push((Device::CPU, AllocatorKind::Pooled));
    }
    pooled
}

impl CallingMachine for VirtualMachineImpl {
    fn loaded(&self) -> &Arc<LoadedExecutable> {
        &self.loaded
    }

    fn device(&self, index: i64) -> Result<&VmDevice, Error> {
        let count = self.places.len();
        let found = match index {
            // VM-14: every release compares the index as an unsigned number first, and so rejects -1.
            -1 => self.places.last(),
            index => usize::try_from(index)
                .ok()
                .and_then(|index| self.places.get(index)),
        };
        found.ok_or_else(|| {
            let message = format!("the machine has no device {index}, it has {count}");
            VM_14.rejected(Kind::Missing, message).into()
        })
    }

    fn host(&self) -> Result<&VmDevice, Error> {
        let host = self
            .places
            .iter()
            .rev()
            .find(|place| place.device.kind == Device::CPU.kind);
        host.ok_or_else(|| {
            VM_14
                .rejected(
                    Kind::Missing,
                    "the machine has no host device: pass the CPU as the last device",
                )
                .into()
        })
    }

    fn run(&self, function: usize, args: &[AnyView<'_>]) -> VmResult {
        if !self.has_uint1 {
            return self.run_function(function, args);
        }
        let own = |arg: &AnyView<'_>| bools::as_uint1(*arg).unwrap_or_else(|| arg.to_any());
        let args: Vec<Any> = args.iter().map(own).collect();
        let views: Vec<AnyView<'_>> = args.iter().map(Any::view).collect();
        self.run_function(function, &views)
    }
}

impl Drop for VirtualMachineImpl {
    fn drop(&mut self) {
        // From here on `with_machine` rejects a handle that compiled code kept.
        builtin::remove_machine(std::ptr::from_ref(self).addr());
    }
}

impl VirtualMachineImpl {
    /// Counts a jump or a call of a VM function against [`VirtualMachine::limit`].
    #[inline]
    pub(super) fn spend(&self) -> Result<(), Error> {
        // Relaxed, because only the number matters and no other data depends on it.
        if self.left.load(Ordering::Relaxed) == UNLIMITED {
            return Ok(());
        }
        self.spend_one()
    }

    /// Implements [`VirtualMachineImpl::spend`] with a limit.
    #[cold]
    fn spend_one(&self) -> Result<(), Error> {
        // If another thread just removed the limit, one less than `UNLIMITED` has the same effect.
        let take = |left: u64| left.checked_sub(1);
        // One atomic step, because other threads count against the same number.
        let taken = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        match taken {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::new(
                ErrorKind::Runtime,
                "the machine has made as many jumps and calls as it may",
            )),
        }
    }

    /// Returns the name of entry `index` of the function table.
    pub(super) fn name(&self, index: usize) -> &str {
        &self.loaded.executable().code().functions[index].name
    }

    /// Returns the machine as the operand `%vm`: an address, as compiled code passes it. `with_machine` checks that it is a live
    /// machine before it uses the address.
    pub(super) fn handle(&self) -> AnyView<'_> {
        // SAFETY: functions that take `%vm` take it as the machine, which this is.
        unsafe { AnyView::handle(std::ptr::from_ref(self).cast_mut().cast::<c_void>()) }
    }

    /// Creates the error of VM-60 for a call with these arguments, with the names of the function's parameters.
    #[cold]
    pub(super) fn wrong_count(&self, function: usize, args: &[AnyView<'_>]) -> Error {
        let function = &self.loaded.executable().code().functions[function];
        // VM-60: upstream names the parameters from 0.17 on. An executable may have no names (VM-04).
        let names: Vec<&str> = function.params.iter().map(|name| &**name).collect();
        let message = format!(
            "function `{}` takes {} arguments ({}), not {}",
            function.name,
            function.num_args,
            names.join(", "),
            args.len()
        );
        VM_60.rejected(Kind::Type, message).into()
    }

    /// Returns the index of the function `name` (VM-61).
    pub(super) fn index(&self, name: &str) -> Result<usize, Error> {
        let code = self.loaded.executable().code();
        let index = self
            .loaded
            .function(name)
            // VM-61: the name of a packed function is not a function of the executable. The executable only calls it.
            .filter(|index| code.functions[*index].kind != FunctionKind::Packed);
        index.ok_or_else(|| {
            let known: Vec<&str> = self
                .loaded
                .executable()
                .functions()
                .map(|function| &*function.name)
                .collect();
            let message = format!("Unknown function: {name}; there are {}", known.join(", "));
            VM_61.rejected(Kind::Missing, message).into()
        })
    }

    /// Returns the closure of `name`: the one saved under it, otherwise the function (VM-64).
    pub(super) fn closure(&self, name: &str) -> Result<Ref<VmClosure>, Error> {
        // VM-64: a saved function may have the name of a function of the executable, and then hides it.
        let saved = self.state().saved.get(name).cloned();
        if let Some(saved) = saved {
            return Ok(saved);
        }
        let index = self.index(name)?;
        // VM-28: the value of a function of the table is a closure without bound values.
        let value = self.functions[index].as_object().cloned();
        value
            .and_then(|object| object.downcast::<VmClosure>().ok())
            .ok_or_else(|| {
                VM_61
                    .rejected(Kind::Missing, format!("Unknown function: {name}"))
                    .into()
            })
    }

    /// Locks the state between calls. The lock is not held across a call, which may lock it again.
    pub(super) fn state(&self) -> MutexGuard<'_, MachineState> {
        // A poisoned lock is accepted, because the maps change by one entry at a time.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets or removes the instrument: a function that is called before and after every call.
    pub(super) fn set_instrument(&self, instrument: Option<Function>) {
        self.watch(|watchers| watchers.instrument = instrument);
    }

    /// Changes the watchers.
    fn watch(&self, change: impl FnOnce(&mut Watchers)) {
        let mut watchers = self
            .watchers
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        change(&mut watchers);
        // Still under the lock, so that the flag matches the last change.
        let any = watchers.observer.is_some() || watchers.instrument.is_some();
        self.watched.store(any, Ordering::Release);
    }

    /// Returns whether there are watchers, with one load for each function that starts.
    pub(super) fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Acquire)
    }

    /// Returns the watchers, cloned so that the callee may change them. No lock is held when they are called.
    pub(super) fn watchers(&self) -> (Option<Observer>, Option<Function>) {
        let watchers = self
            .watchers
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        (watchers.observer, watchers.instrument)
    }
}
