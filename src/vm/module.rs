//! The module kinds, and their functions under the names that frontends and compiled pipelines use.

use super::closure::Closure;
use super::memory::{AllocatorKind, allocator_kind};
use super::{Fault, Loaded, VM_30, VM_60, VM_62, VM_63, VirtualMachine, builtin};
use crate::device::Device;
use crate::function::{Error, Function, Result, registry};
use crate::module::{LoaderEntry, Module, ModuleKind, provide_loader};
use crate::object::item_count;
use crate::release::Layout;
use crate::rule;
use crate::value::{Any, AnyView, cast, index};
use std::sync::{Arc, OnceLock};

type Outcome<T = Any> = std::result::Result<T, Fault>;

const KINDS: [&str; 2] = ["relax.Executable", "relax.VMExecutable"];

/// Provides the loaders of libraries and files with VM executables, and the builtins.
pub(crate) fn provide() {
    builtin::provide();
    for kind in KINDS {
        provide_loader(kind, load);
        let name = format!("ffi.Module.load_from_file.{kind}");
        registry::provide(&name, from_file(kind));
    }
    let from_file = from_file("relax.VMExecutable");
    registry::provide("relax.ExecutableLoadFromFile", from_file);
}

fn from_file(kind: &'static str) -> Function {
    Function::from_packed(move |args| {
        let path = String::try_from(args.first().copied().unwrap_or(AnyView::none()))?;
        let bytes = std::fs::read(&path)
            .map_err(|error| Error::new("RuntimeError", format!("{path}: {error}")))?;
        Ok(module_of(Loaded::from_bytes(bytes, Layout::V0_22)?, kind).into())
    })
}

fn load(entry: &LoaderEntry<'_>) -> Result<Module> {
    // SAFETY: only `module::load_symbols` makes entries, and their payload is what `Symbols::data` gave of the library.
    let loaded = unsafe { Loaded::from_library(entry.payload, entry.layout, entry.library) }?;
    Ok(module_of(loaded, entry.kind))
}

fn module_of(loaded: Loaded, kind: &str) -> Module {
    Module::new(ExecutableModule {
        kind: kind.to_owned(),
        loaded: Arc::new(loaded),
    })
}

/// The executable behind a module of this chapter.
pub(super) fn loaded_of(module: &Module) -> Option<Arc<Loaded>> {
    let kind = module.implementation()?;
    let kind: &dyn std::any::Any = kind;
    Some(Arc::clone(&kind.downcast_ref::<ExecutableModule>()?.loaded))
}

/// An executable as a module.
struct ExecutableModule {
    kind: String,
    loaded: Arc<Loaded>,
}

impl ModuleKind for ExecutableModule {
    fn kind(&self) -> &str {
        &self.kind
    }

    fn function(&self, module: &Module, name: &str) -> Result<Option<Function>> {
        let loaded = Arc::clone(&self.loaded);
        let module = module.clone();
        Ok(Some(match name {
            "stats" => Function::from_packed(move |_| Ok(loaded.executable().stats().into())),
            "as_text" => {
                Function::from_packed(move |_| Ok(loaded.executable().disassemble().into()))
            }
            "has_function" => Function::from_packed(move |args| {
                VM_60.demand(rule::Kind::Type, args.len() == 1, || {
                    "`has_function` takes a name".into()
                })?;
                Ok(loaded
                    .function(&String::try_from(args[0])?)
                    .is_some()
                    .into())
            }),
            "vm_load_executable" => Function::from_packed(move |_| {
                Ok(Module::new(MachineModule(Arc::new(Shared {
                    loaded: Arc::clone(&loaded),
                    imports: module.imports(),
                    machine: OnceLock::new(),
                })))
                .into())
            }),
            _ => return Ok(None),
        }))
    }

    fn save_to_bytes(&self) -> Result<Vec<u8>> {
        Ok(self.loaded.bytes().to_vec())
    }
}

/// A machine as a module (`relax.VirtualMachine`): first without devices, then with.
struct MachineModule(Arc<Shared>);

/// What the functions of such a module keep.
struct Shared {
    loaded: Arc<Loaded>,
    imports: Vec<Module>,
    machine: OnceLock<VirtualMachine>,
}

impl Shared {
    fn machine(&self) -> Outcome<&VirtualMachine> {
        self.machine.get().ok_or_else(|| {
            let message = "the machine has no devices yet: call vm_initialization first";
            VM_30.refused(rule::Kind::Missing, message).into()
        })
    }

    /// Triplets of device type, device id and allocator (VM-30).
    fn initialize(&self, args: &[AnyView<'_>]) -> Outcome<()> {
        let machine = VirtualMachine::make(
            Arc::clone(&self.loaded),
            self.imports.clone(),
            &triplets(args)?,
            super::machine::Origin::Trusted,
        )?;
        self.machine.set(machine).map_err(|_| {
            let message = "the machine has its devices already";
            VM_30.refused(rule::Kind::Duplicate, message).into()
        })
    }
}

/// The devices of a machine, from the arguments of `vm_initialization`.
fn triplets(args: &[AnyView<'_>]) -> Outcome<Vec<(Device, AllocatorKind)>> {
    if args.is_empty() || !args.len().is_multiple_of(3) {
        let message = format!(
            "vm_initialization takes a device type, a device id and an allocator for each device, it got {} numbers",
            args.len()
        );
        return Err(VM_30.refused(rule::Kind::Type, message).into());
    }
    args.chunks_exact(3)
        .map(|chunk| {
            let half = |at: usize| {
                let number = cast::<i64>(chunk[at])?;
                i32::try_from(number).map_err(|_| {
                    let message = format!("{number} is no type or id of a device");
                    Fault::from(VM_30.refused(rule::Kind::Type, message))
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

    fn function(&self, _: &Module, name: &str) -> Result<Option<Function>> {
        let shared = Arc::clone(&self.0);
        if name == "vm_initialization" {
            return Ok(Some(Function::from_packed(move |args| {
                shared.initialize(args)?;
                Ok(Any::none())
            })));
        }
        if let Some(method) = METHODS.iter().find(|method| method.name == name) {
            return Ok(Some(Function::from_packed(move |args| {
                Ok(method.call(shared.machine()?, args)?)
            })));
        }
        let machine = match self.0.machine() {
            Ok(machine) => machine.clone(),
            Err(fault) if self.0.loaded.function(name).is_some() => return Err(fault.into()),
            Err(_) => return Ok(None),
        };
        // Neither a function nor saved (VM-61).
        let Ok(closure) = machine.0.closure(name) else {
            return Ok(None);
        };
        Ok(Some(Function::from_packed(move |args| {
            Ok(closure.call(&machine.0, args)?)
        })))
    }
}

/// A function of a machine with devices, under the name that frontends use.
struct Method {
    name: &'static str,
    /// How many arguments it has at least, and what they are.
    least: usize,
    takes: &'static str,
    body: fn(&VirtualMachine, &[AnyView<'_>]) -> Outcome,
}

impl Method {
    fn call(&self, machine: &VirtualMachine, args: &[AnyView<'_>]) -> Outcome {
        VM_60.demand(rule::Kind::Type, args.len() >= self.least, || {
            format!("`{}` takes {}", self.name, self.takes)
        })?;
        (self.body)(machine, args)
    }
}

const METHODS: [Method; 10] = [
    Method {
        name: "set_input",
        least: 1,
        takes: "the name of a function and its arguments",
        body: set_input,
    },
    Method {
        name: "set_input_with_param_module",
        least: 2,
        takes: "the name of a function, its first arguments, and a module with the last",
        body: set_input_with_param_module,
    },
    Method {
        name: "invoke_stateful",
        least: 1,
        takes: "the name of a function",
        body: |machine, args| {
            machine.0.invoke_stateful(&cast::<String>(args[0])?)?;
            Ok(Any::none())
        },
    },
    Method {
        name: "get_output",
        least: 1,
        takes: "the name of a function, and indices",
        body: output,
    },
    Method {
        name: "get_output_arity",
        least: 1,
        takes: "the name of a function, and indices",
        body: output_arity,
    },
    Method {
        name: "get_function_arity",
        least: 1,
        takes: "the name of a function",
        body: |machine, args| {
            let names = machine.parameters(&cast::<String>(args[0])?)?.len();
            Ok((names as i64).into())
        },
    },
    Method {
        name: "get_function_param_name",
        least: 2,
        takes: "the name of a function and an index",
        body: parameter_name,
    },
    Method {
        name: "save_function",
        least: 3,
        takes: "the name of a function, a new name, whether to return, and arguments",
        body: save_function,
    },
    Method {
        name: "invoke_closure",
        least: 1,
        takes: "a closure and its arguments",
        body: |machine, args| machine.0.invoke(args[0], &args[1..]),
    },
    Method {
        name: "set_instrument",
        least: 1,
        takes: "a function, the name of one that makes it, or None",
        body: set_instrument,
    },
];

fn set_input(machine: &VirtualMachine, args: &[AnyView<'_>]) -> Outcome {
    machine.0.set_input(&cast::<String>(args[0])?, &args[1..])?;
    Ok(Any::none())
}

/// What `get_params` of the last argument returns is the last argument of the function.
fn set_input_with_param_module(machine: &VirtualMachine, args: &[AnyView<'_>]) -> Outcome {
    let mut args = args.to_vec();
    let module = args.pop().unwrap_or(AnyView::none());
    let params = cast::<Module>(module)?.require("get_params")?.call(&[])?;
    args.push(params.view());
    set_input(machine, &args)
}

fn output(machine: &VirtualMachine, args: &[AnyView<'_>]) -> Outcome {
    let value = machine.0.output(&cast::<String>(args[0])?, &args[1..])?;
    VM_63.demand(rule::Kind::Type, value.type_index() != index::ARRAY, || {
        "`get_output` cannot return a tuple for RPC compatibility. Please specify another index argument.".into()
    })?;
    Ok(value)
}

fn output_arity(machine: &VirtualMachine, args: &[AnyView<'_>]) -> Outcome {
    let value = machine.0.output(&cast::<String>(args[0])?, &args[1..])?;
    let count = item_count(value.view()).map_or(-1, |count| count as i64);
    Ok(count.into())
}

fn parameter_name(machine: &VirtualMachine, args: &[AnyView<'_>]) -> Outcome {
    let (name, at) = (cast::<String>(args[0])?, cast::<i64>(args[1])?);
    let names = machine.parameters(&name)?;
    let found = usize::try_from(at).ok().and_then(|at| names.get(at));
    found.map(|name| (*name).into()).ok_or_else(|| {
        let message = format!("Invalid index for {name} ({at} out of {})", names.len());
        VM_62.refused(rule::Kind::Missing, message).into()
    })
}

fn save_function(machine: &VirtualMachine, args: &[AnyView<'_>]) -> Outcome {
    let (name, save_as) = (cast::<String>(args[0])?, cast::<String>(args[1])?);
    let returns = cast::<bool>(args[2])?;
    machine.0.save(&name, &save_as, returns, &args[3..])?;
    Ok(Any::none())
}

/// A function that is called around every call; or the name of one that makes it of the other arguments; None ends it.
fn set_instrument(machine: &VirtualMachine, args: &[AnyView<'_>]) -> Outcome {
    let instrument = match String::try_from(args[0]) {
        Ok(name) => cast(registry::require(&name)?.call(&args[1..])?.view())?,
        Err(_) => cast::<Option<Function>>(args[0])?,
    };
    machine.0.set_instrument(instrument);
    Ok(Any::none())
}

impl super::machine::Machine {
    /// Calls a closure or a plain function (VM-29).
    pub(super) fn invoke(&self, closure: AnyView<'_>, args: &[AnyView<'_>]) -> Outcome {
        let object = closure.as_object().cloned();
        if let Some(function) = object
            .clone()
            .and_then(|object| Function::from_object(object).ok())
        {
            return Ok(function.call(args)?);
        }
        match object.map(|object| object.downcast::<Closure>()) {
            Some(Ok(closure)) => closure.call(self, args),
            _ => {
                let key = crate::value::types::key_of(closure.type_index());
                let message = format!("a closure or a function is called, not `{key}`");
                Err(super::VM_29.refused(rule::Kind::Type, message).into())
            }
        }
    }
}
