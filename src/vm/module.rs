//! The module kinds, and their functions under the names that frontends and compiled pipelines use.

use super::closure::Closure;
use super::memory::{AllocatorKind, allocator_kind};
use super::{Fault, Loaded, VM_62, VM_63, VirtualMachine, builtin};
use crate::device::Device;
use crate::function::{Error, Function, Result, registry};
use crate::module::{Entry, Kind, Module, provide_loader};
use crate::object::item_count;
use crate::release::Layout;
use crate::rule;
use crate::value::{Any, AnyView, cast, index};
use std::sync::{Arc, OnceLock};

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

fn load(entry: &Entry<'_>) -> Result<Module> {
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

impl Kind for ExecutableModule {
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
                let [name] = args else {
                    return Err(wrong_count("has_function", "a name"));
                };
                Ok(loaded.function(&String::try_from(*name)?).is_some().into())
            }),
            "vm_load_executable" => Function::from_packed(move |_| {
                Ok(Module::new(MachineModule {
                    loaded: Arc::clone(&loaded),
                    imports: module.imports(),
                    machine: OnceLock::new(),
                })
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
struct MachineModule {
    loaded: Arc<Loaded>,
    imports: Vec<Module>,
    machine: OnceLock<VirtualMachine>,
}

type Method = fn(&VirtualMachine, &[AnyView<'_>]) -> std::result::Result<Any, Fault>;

impl MachineModule {
    fn of(module: &Module) -> Option<&MachineModule> {
        let kind = module.implementation()?;
        let kind: &dyn std::any::Any = kind;
        kind.downcast_ref()
    }

    fn machine(&self) -> std::result::Result<&VirtualMachine, Fault> {
        self.machine.get().ok_or_else(|| {
            Error::new(
                "RuntimeError",
                "the machine has no devices yet: call vm_initialization first",
            )
            .into()
        })
    }

    /// Triplets of device type, device id and allocator (VM-30).
    fn initialize(&self, args: &[AnyView<'_>]) -> std::result::Result<Any, Fault> {
        let devices = triplets(args)?;
        let machine = VirtualMachine::make(
            Arc::clone(&self.loaded),
            self.imports.clone(),
            &devices,
            super::machine::Origin::Trusted,
        )?;
        if self.machine.set(machine).is_err() {
            return Err(Error::new("RuntimeError", "the machine has its devices already").into());
        }
        Ok(Any::none())
    }
}

/// The devices of a machine, from the arguments of `vm_initialization`.
fn triplets(args: &[AnyView<'_>]) -> std::result::Result<Vec<(Device, AllocatorKind)>, Fault> {
    if args.is_empty() || !args.len().is_multiple_of(3) {
        let message = format!(
            "vm_initialization takes a device type, a device id and an allocator for each device, it got {} numbers",
            args.len()
        );
        return Err(super::VM_30.refused(rule::Kind::Type, message).into());
    }
    args.chunks_exact(3)
        .map(|chunk| {
            let half = |at: usize| {
                let number = cast::<i64>(chunk[at])?;
                i32::try_from(number).map_err(|_| {
                    let message = format!("{number} is no type or id of a device");
                    Fault::from(super::VM_30.refused(rule::Kind::Type, message))
                })
            };
            let device = Device::new(half(0)?, half(1)?);
            Ok((device, allocator_kind(cast::<i64>(chunk[2])?)?))
        })
        .collect()
}

impl Kind for MachineModule {
    fn kind(&self) -> &str {
        "relax.VirtualMachine"
    }

    fn function(&self, module: &Module, name: &str) -> Result<Option<Function>> {
        let alive = module.clone();
        if name == "vm_initialization" {
            return Ok(Some(Function::from_packed(
                move |args| match MachineModule::of(&alive) {
                    Some(own) => Ok(own.initialize(args)?),
                    None => Ok(Any::none()),
                },
            )));
        }
        if let Some(method) = method(name) {
            return Ok(Some(Function::from_packed(
                move |args| match MachineModule::of(&alive) {
                    Some(own) => Ok(method(own.machine()?, args)?),
                    None => Ok(Any::none()),
                },
            )));
        }
        let Some(machine) = self.machine.get().cloned() else {
            let known = self.loaded.function(name).is_some();
            return match known {
                true => Err(self
                    .machine()
                    .err()
                    .map_or_else(|| wrong_count(name, ""), Error::from)),
                false => Ok(None),
            };
        };
        if !machine.0.knows(name) {
            return Ok(None);
        }
        let closure = machine.0.closure(name)?;
        Ok(Some(Function::from_packed(move |args| {
            let _alive = &alive;
            Ok(closure.call(&machine.0, args)?)
        })))
    }
}

fn method(name: &str) -> Option<Method> {
    Some(match name {
        "set_input" => |vm, args| {
            let (name, args) = named("set_input", args)?;
            vm.0.set_input(&name, args)?;
            Ok(Any::none())
        },
        "set_input_with_param_module" => |vm, args| {
            let (name, args) = named("set_input_with_param_module", args)?;
            let Some((last, first)) = args.split_last() else {
                return Err(wrong_count(
                    "set_input_with_param_module",
                    "a module as the last argument",
                )
                .into());
            };
            let params = cast::<Module>(*last)?.require("get_params")?.call(&[])?;
            let mut all = first.to_vec();
            all.push(params.view());
            vm.0.set_input(&name, &all)?;
            Ok(Any::none())
        },
        "invoke_stateful" => |vm, args| {
            vm.0.invoke_stateful(&named("invoke_stateful", args)?.0)?;
            Ok(Any::none())
        },
        "get_output" => |vm, args| {
            let (name, path) = named("get_output", args)?;
            let value = vm.0.output(&name, path)?;
            VM_63.demand(rule::Kind::Type, value.type_index() != index::ARRAY, || {
                "`get_output` cannot return a tuple for RPC compatibility. Please specify another index argument.".into()
            })?;
            Ok(value)
        },
        "get_output_arity" => |vm, args| {
            let (name, path) = named("get_output_arity", args)?;
            let value = vm.0.output(&name, path)?;
            let count = item_count(value.view()).map_or(-1, |count| count as i64);
            Ok(count.into())
        },
        "get_function_arity" => |vm, args| {
            let (name, _) = named("get_function_arity", args)?;
            Ok((vm.parameters(&name)?.len() as i64).into())
        },
        "get_function_param_name" => |vm, args| {
            let (name, rest) = named("get_function_param_name", args)?;
            let at = cast::<i64>(rest.first().copied().unwrap_or(AnyView::none()))?;
            let names = vm.parameters(&name)?;
            let found = usize::try_from(at).ok().and_then(|at| names.get(at));
            match found {
                Some(name) => Ok((*name).into()),
                None => {
                    let message = format!("Invalid index for {name} ({at} out of {})", names.len());
                    Err(VM_62.refused(rule::Kind::Missing, message).into())
                }
            }
        },
        "save_function" => |vm, args| {
            let [name, save_as, returns, args @ ..] = args else {
                return Err(wrong_count(
                    "save_function",
                    "a function, a name, whether to return, arguments",
                )
                .into());
            };
            let (name, save_as) = (cast::<String>(*name)?, cast::<String>(*save_as)?);
            vm.0.save(&name, &save_as, cast::<bool>(*returns)?, args)?;
            Ok(Any::none())
        },
        "invoke_closure" => |vm, args| {
            let Some((closure, args)) = args.split_first() else {
                return Err(wrong_count("invoke_closure", "a closure and its arguments").into());
            };
            vm.0.invoke(*closure, args)
        },
        "set_instrument" => |vm, args| {
            let Some((first, rest)) = args.split_first() else {
                return Err(wrong_count(
                    "set_instrument",
                    "a function or the name of one that makes it",
                )
                .into());
            };
            let instrument = match cast::<Function>(*first) {
                Ok(function) => Some(function),
                Err(_) if first.is_none() => None,
                Err(_) => {
                    let made = registry::require(&cast::<String>(*first)?)?.call(rest)?;
                    Some(cast::<Function>(made.view())?)
                }
            };
            vm.0.set_instrument(instrument);
            Ok(Any::none())
        },
        _ => return None,
    })
}

fn named<'a>(
    method: &str,
    args: &'a [AnyView<'a>],
) -> std::result::Result<(String, &'a [AnyView<'a>]), Fault> {
    let Some((name, rest)) = args.split_first() else {
        return Err(wrong_count(method, "the name of a function").into());
    };
    Ok((cast::<String>(*name)?, rest))
}

#[cold]
fn wrong_count(method: &str, wanted: &str) -> Error {
    Error::new("TypeError", format!("`{method}` takes {wanted}"))
}

impl super::machine::Machine {
    /// Calls a closure or a plain function (VM-29).
    pub(super) fn invoke(
        &self,
        closure: AnyView<'_>,
        args: &[AnyView<'_>],
    ) -> std::result::Result<Any, Fault> {
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
