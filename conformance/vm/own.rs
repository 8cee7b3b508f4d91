//! What no C function shows of a machine: ours, through the Rust interface.

use crate::conformance::device::counted::{self, UsageCount};
use crate::device::Device;
use crate::device::timer::Evaluator;
use crate::function::{Error, Function};
use crate::module::Module;
use crate::object::sequence_of;
use crate::release::Layout;
use crate::value::{Any, AnyView, cast};
use crate::vm::{LoadedExecutable, ObservedCall, VirtualMachine};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};

/// Functions of an executable, which return JSON text: `text` is all of its code, `functions` what can be called and on which
/// devices by default; `limited` takes a number and a call (a name and arguments), and says whether it ended within so many
/// jumps and calls; `observed` takes a call, and lists the calls that it makes; `timed` takes a number, a number of repetitions
/// and a call, and says how often it was measured; `alone` takes a call of a function that returns a tuple of integers, and makes it
/// on a machine of its own of the executable's bytes.
pub(in crate::conformance) fn function(name: &str) -> Option<Function> {
    let body: fn(&Module, &[AnyView<'_>]) -> Result<Value, Error> = match name {
        "text" => text,
        "functions" => functions,
        "limited" => limited,
        "observed" => observed,
        "timed" => timed,
        "alone" => alone,
        _ => return None,
    };
    Some(Function::from_packed(move |args| {
        let [executable, rest @ ..] = args else {
            return Err(short());
        };
        Ok(body(&cast::<Module>(*executable)?, rest)?
            .to_string()
            .into())
    }))
}

/// Too few arguments: the driver is wrong, and not the machine.
fn short() -> Error {
    Error::new("TypeError", "an executable, and what the function takes")
}

/// A machine on the CPU alone.
fn machine(executable: &Module) -> Result<VirtualMachine, Error> {
    VirtualMachine::of(executable, &[Device::CPU])
}

/// The text of the code, as `as_text` of releases prints it, by lines.
fn text(executable: &Module, _: &[AnyView<'_>]) -> Result<Value, Error> {
    let text = executable.require("as_text")?.call(&[])?;
    Ok(cast::<String>(text.view())?.lines().collect())
}

/// Functions and builtins by name, and the devices of machines on one and on two (VM-13, VM-14).
fn functions(executable: &Module, _: &[AnyView<'_>]) -> Result<Value, Error> {
    // The machine copies its constants to that device, which a case in another thread would count as its own.
    let _alone = UsageCount::begin()?;
    let far = VirtualMachine::of(executable, &[counted::number(0)])?;
    let near = machine(executable)?;
    let both = VirtualMachine::of(executable, &[counted::number(0), Device::CPU])?;
    let made = executable.require("vm_load_executable")?.call(&[])?;
    let kind = cast::<Module>(made.view())?.kind();
    let devices = |machine: &VirtualMachine| -> Vec<[i32; 2]> {
        let devices = machine.devices();
        devices.map(|device| [device.kind, device.id]).collect()
    };
    let known = [devices(&near), devices(&far), devices(&both)];
    Ok(json!([
        near.functions(),
        known,
        kind,
        crate::vm::builtins()
    ]))
}

/// Calls a function of the machine with owned arguments: the cells of the driver are borrowed.
fn call(machine: &VirtualMachine, args: &[AnyView<'_>]) -> Result<Any, Error> {
    let [name, args @ ..] = args else {
        return Err(short());
    };
    let args: Vec<Any> = args.iter().map(|arg| arg.to_any()).collect();
    machine.call(&cast::<String>(*name)?, &args)
}

/// VM-25: whether a call ends within so many jumps and calls, and whether it does without the limit, on the same machine.
fn limited(executable: &Module, args: &[AnyView<'_>]) -> Result<Value, Error> {
    let [most, args @ ..] = args else {
        return Err(short());
    };
    let machine = machine(executable)?;
    machine.limit(Some(cast::<u64>(*most)?));
    let ended = call(&machine, args).is_ok();
    machine.limit(None);
    let unlimited = call(&machine, args).is_ok();
    Ok(json!([ended, unlimited]))
}

/// Each call with the function and the instruction that makes it, and how many arguments it has. A second call shows that an observer is gone.
fn observed(executable: &Module, args: &[AnyView<'_>]) -> Result<Value, Error> {
    let machine = machine(executable)?;
    let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
    let note = Arc::clone(&seen);
    machine.observe(Some(Arc::new(move |step: &ObservedCall<'_>| {
        let entry = json!([
            step.function,
            step.instruction,
            step.callee,
            step.args.len()
        ]);
        note.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(entry);
    })));
    call(&machine, args)?;
    // Once more without an observer: what it still notes is a call too many in the answer.
    machine.observe(None);
    call(&machine, args)?;
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(seen.iter().cloned().collect())
}

/// A call on a machine of bytes whose effects no caller has declared: it changes no tuple that others hold.
fn alone(executable: &Module, args: &[AnyView<'_>]) -> Result<Value, Error> {
    let loaded = LoadedExecutable::from_bytes(executable.save_to_bytes()?, Layout::V0_22)?;
    let machine = VirtualMachine::new(Arc::new(loaded), Vec::new(), &[Device::CPU])?;
    let Ok(result) = call(&machine, args) else {
        return Ok(json!({"error": true}));
    };
    let items = sequence_of(result.view());
    let items = items.as_deref().unwrap_or_default().iter();
    Ok(items.map(|item| cast::<i64>(item.view()).ok()).collect())
}

/// DEV-45 on a machine: how many results there are, and that none is below zero. How long a call takes is no case's.
fn timed(executable: &Module, args: &[AnyView<'_>]) -> Result<Value, Error> {
    let [number, repeat, name, args @ ..] = args else {
        return Err(short());
    };
    let machine = machine(executable)?;
    let how = Evaluator {
        number: cast(*number)?,
        repeat: cast(*repeat)?,
        ..Evaluator::default()
    };
    let args: Vec<Any> = args.iter().map(|arg| arg.to_any()).collect();
    let Ok(times) = machine.time(&cast::<String>(*name)?, &args, &how) else {
        return Ok(json!({"error": true}));
    };
    Ok(json!([times.len(), times.iter().all(|time| *time >= 0.0)]))
}
