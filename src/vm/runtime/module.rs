//! The module kinds: executables and machines.

use super::allocator::{AllocatorKind, allocator_kind};
use super::builtin;
use super::error::VmResult;
use super::link::Origin;
use super::loaded_executable::LoadedExecutable;
use super::machine::{VirtualMachine, pooled};
use super::methods::METHODS;
use crate::device::Device;
use crate::function::{self, Error, ErrorKind, Function, registry};
use crate::module::{LoaderEntry, Module, ModuleKind, provide_loader};
use crate::release::Layout;
use crate::rule::Kind;
use crate::value::{Any, AnyView, cast};
use crate::vm::{VM_30, VM_60};
use std::sync::{Arc, OnceLock};

/// The kinds of VM executables: the first up to 0.19, the second from 0.20 on.
const KINDS: [&str; 2] = ["relax.Executable", "relax.VMExecutable"];

/// Provides the loaders of libraries and files with VM executables, and the builtins.
pub(crate) fn provide() {
    builtin::provide();
    // One loader for both, because the kinds differ only in name, and the library states the layout.
    for kind in KINDS {
        provide_loader(kind, load);
        let name = format!("ffi.Module.load_from_file.{kind}");
        registry::provide(&name, from_file(kind));
    }
    let from_file = from_file("relax.VMExecutable");
    // The Python package loads files by this name.
    registry::provide("relax.ExecutableLoadFromFile", from_file);
}

/// Returns the loader of files. It takes the path. The layout is that of 0.22 and later, independent of the release that wrote the file.
fn from_file(kind: &'static str) -> Function {
    Function::from_typed(move |path: String| {
        let bytes = std::fs::read(&path)
            .map_err(|error| Error::new(ErrorKind::Runtime, format!("{path}: {error}")))?;
        let loaded = LoadedExecutable::from_bytes(bytes, Layout::V0_22)?;
        Ok::<_, Error>(module_of(loaded, kind))
    })
}

/// Loads an executable from a library, without copying its bytes.
fn load(entry: &LoaderEntry<'_>) -> function::Result<Module> {
    // SAFETY: only `module::load_symbols` creates entries, and `Symbols::data` of the library returned their payload.
    let loaded =
        unsafe { LoadedExecutable::from_library(entry.payload, entry.layout, entry.library) }?;
    Ok(module_of(loaded, entry.kind))
}

/// Returns the executable as a module of `kind`.
fn module_of(loaded: LoadedExecutable, kind: &str) -> Module {
    Module::new(ExecutableModule {
        kind: kind.to_owned(),
        loaded: Arc::new(loaded),
    })
}

/// Returns the executable of a module of this chapter, or `None` for a module of another kind or of another runtime.
fn loaded_of(module: &Module) -> Option<Arc<LoadedExecutable>> {
    let kind = module.implementation()?;
    let kind: &dyn std::any::Any = kind;
    Some(Arc::clone(&kind.downcast_ref::<ExecutableModule>()?.loaded))
}

impl VirtualMachine {
    /// Creates a machine for the executable that `module` is or imports, on `devices`, with pooled memory.
    ///
    /// The first device holds constants. The host is added after the others if it is not among them.
    ///
    /// # Errors
    ///
    /// Returns a RuntimeError, with a list of the kinds, if no module is an executable. Returns the errors of [`VirtualMachine::new`]:
    /// devices without an API (DEV-04), and functions that are missing (VM-11) or cannot be run (VM-12).
    pub fn from_module(module: &Module, devices: &[Device]) -> Result<VirtualMachine, Error> {
        // A library imports its executable, at any depth; the module of a file is the executable itself.
        let all = module.walk();
        let found = all
            .iter()
            .find_map(|module| Some((module, loaded_of(module)?)));
        let Some((executable, loaded)) = found else {
            let kinds: Vec<String> = all.iter().map(Module::kind).collect();
            let message = format!(
                "there is no VM executable among the modules: {}; it has kind relax.VMExecutable (relax.Executable up to 0.19)",
                kinds.join(", ")
            );
            return Err(Error::new(ErrorKind::Runtime, message));
        };
        let devices = pooled(devices);
        // VM-11: only the executable's own imports are searched, not the modules above it.
        VirtualMachine::make(loaded, executable.imports(), &devices, Origin::Trusted)
    }
}

/// An executable as a module.
struct ExecutableModule {
    kind: String,
    loaded: Arc<LoadedExecutable>,
}

impl ModuleKind for ExecutableModule {
    fn kind(&self) -> &str {
        &self.kind
    }

    fn function(&self, module: &Module, name: &str) -> function::Result<Option<Function>> {
        let loaded = Arc::clone(&self.loaded);
        let module = module.clone();
        Ok(Some(match name {
            "stats" => Function::from_packed(move |_| Ok(loaded.executable().stats().into())),
            "as_text" => {
                Function::from_packed(move |_| Ok(loaded.executable().disassemble().into()))
            }
            "has_function" => Function::from_packed(move |args| {
                VM_60.demand(Kind::Type, args.len() == 1, || {
                    "`has_function` takes a name".into()
                })?;
                Ok(loaded
                    // A packed function also counts, as in upstream, although it cannot be called from outside.
                    .function(&String::try_from(args[0])?)
                    .is_some()
                    .into())
            }),
            // VM-30: it has no devices, which `vm_initialization` sets. Each call creates another machine.
            "vm_load_executable" => Function::from_packed(move |_| {
                Ok(Module::new(MachineModule(Arc::new(LazyMachine {
                    loaded: Arc::clone(&loaded),
                    // VM-11: the present imports. Modules that the executable imports later are not searched.
                    imports: module.imports(),
                    machine: OnceLock::new(),
                })))
                .into())
            }),
            _ => return Ok(None),
        }))
    }

    fn save_to_bytes(&self) -> function::Result<Vec<u8>> {
        Ok(self.loaded.bytes().to_vec())
    }
}

/// A machine as a module (`relax.VirtualMachine`), at first without devices.
struct MachineModule(Arc<LazyMachine>);

/// The state that the functions of such a module share.
struct LazyMachine {
    loaded: Arc<LoadedExecutable>,
    /// The imports of the executable: the libraries that have its kernels (VM-11).
    imports: Vec<Module>,
    /// The machine, which `vm_initialization` creates once.
    machine: OnceLock<VirtualMachine>,
}

impl LazyMachine {
    /// Returns the machine if it has devices (VM-30).
    fn machine(&self) -> VmResult<&VirtualMachine> {
        self.machine.get().ok_or_else(|| {
            let message = "the machine has no devices yet: call vm_initialization first";
            VM_30.rejected(Kind::Missing, message).into()
        })
    }

    /// Creates the machine; arguments: triplets of device type, device id and allocator (VM-30).
    fn initialize(&self, args: &[AnyView<'_>]) -> VmResult<()> {
        let machine = VirtualMachine::make(
            Arc::clone(&self.loaded),
            self.imports.clone(),
            &triplets(args)?,
            Origin::Trusted,
        )?;
        // VM-30: two threads may both get here; the machine of the first remains.
        self.machine.set(machine).map_err(|_| {
            let message = "the machine has its devices already";
            VM_30.rejected(Kind::Duplicate, message).into()
        })
    }
}

/// Returns the devices of a machine, from the arguments of `vm_initialization`.
fn triplets(args: &[AnyView<'_>]) -> VmResult<Vec<(Device, AllocatorKind)>> {
    // VM-30: without a device upstream creates the machine, and crashes when it needs a device.
    if args.is_empty() || !args.len().is_multiple_of(3) {
        let message = format!(
            "vm_initialization takes a device type, a device id and an allocator for each device, it got {} numbers",
            args.len()
        );
        return Err(VM_30.rejected(Kind::Type, message).into());
    }
    args.chunks_exact(3)
        .map(|chunk| {
            let half = |at: usize| {
                let number = cast::<i64>(chunk[at])?;
                // Types and ids of devices have 32 bits in the C interface.
                i32::try_from(number).map_err(|_| {
                    let message = format!("{number} is not a type or id of a device");
                    Error::from(VM_30.rejected(Kind::Type, message))
                })
            };
            let device = Device::new(half(0)?, half(1)?);
            Ok((device, allocator_kind(cast::<i64>(chunk[2])?)?))
        })
        .collect()
}

impl ModuleKind for MachineModule {
    fn kind(&self) -> &str {
        "relax.VirtualMachine"
    }

    fn function(&self, _: &Module, name: &str) -> function::Result<Option<Function>> {
        let shared = Arc::clone(&self.0);
        if name == "vm_initialization" {
            return Ok(Some(Function::from_packed(move |args| {
                shared.initialize(args)?;
                Ok(Any::none())
            })));
        }
        // VM-30: these functions are found even without devices. A call then reports that the devices are missing.
        if let Some(method) = METHODS.iter().find(|method| method.name == name) {
            return Ok(Some(Function::from_packed(move |args| {
                method.call(shared.machine()?, args)
            })));
        }
        let machine = match self.0.machine() {
            Ok(machine) => machine.clone(),
            // VM-30: a function of the executable reports the missing devices; any other name is unknown (VM-61).
            Err(fault) if self.0.loaded.function(name).is_some() => return Err(fault),
            Err(_) => return Ok(None),
        };
        // VM-61: the name is neither a function nor saved.
        let Ok(closure) = machine.0.closure(name) else {
            return Ok(None);
        };
        Ok(Some(Function::from_packed(move |args| {
            closure.call(&*machine.0, args)
        })))
    }
}
