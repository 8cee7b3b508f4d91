//! Functions of a machine that no C function offers, through the Rust interface of this crate.

use crate::conformance::device::counting_device::{self, UsageCount};
use crate::device::Device;
use crate::device::timer::Evaluator;
use crate::function::{Error, Function};
use crate::lock::lock;
use crate::module::Module;
use crate::object::sequence_of;
use crate::release::Layout;
use crate::value::{Any, AnyView, cast};
use crate::vm::{LoadedExecutable, ObservedCall, VirtualMachine};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// Returns the function of this name, which takes an executable and returns JSON text. A call is a name and its arguments.
///
/// * `text` returns all of the code
/// * `functions` returns the callable functions, and the default devices
/// * `limited` takes a number and a call, and returns whether the call ends within that number of jumps and calls
/// * `observed` takes a call, and lists the calls that it makes
/// * `timed` takes a number, a number of repetitions and a call, and returns the number of measurements
/// * `alone` takes a call of a function that returns a tuple of integers, and makes it on a new machine of the executable's bytes
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
            return Err(too_few_arguments());
        };
        Ok(body(&cast::<Module>(*executable)?, rest)?
            .to_string()
            .into())
    }))
}

/// Creates the error for too few arguments, which is a fault of the driver.
fn too_few_arguments() -> Error {
    Error::new(
        "TypeError",
        "expected an executable, then the arguments of the function",
    )
}

/// Creates a machine on the CPU only.
fn machine(executable: &Module) -> Result<VirtualMachine, Error> {
    VirtualMachine::from_module(executable, &[Device::CPU])
}

/// Returns the text of the code as lines, as `as_text` of releases prints it.
fn text(executable: &Module, _: &[AnyView<'_>]) -> Result<Value, Error> {
    let text = executable.require("as_text")?.call_packed(&[])?;
    Ok(cast::<String>(text.view())?.lines().collect())
}

/// Returns the functions and builtins by name, and the devices of machines on one and on two (VM-13, VM-14).
fn functions(executable: &Module, _: &[AnyView<'_>]) -> Result<Value, Error> {
    // The machine copies its constants to that device, which a concurrent case would count as its own.
    let _alone = UsageCount::begin()?;
    let far = VirtualMachine::from_module(executable, &[counting_device::number(0)])?;
    let near = machine(executable)?;
    let both = VirtualMachine::from_module(executable, &[counting_device::number(0), Device::CPU])?;
    let made = executable.require("vm_load_executable")?.call_packed(&[])?;
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

/// Calls a function of the machine with owned arguments, because the cells of the driver are borrowed.
fn call(machine: &VirtualMachine, args: &[AnyView<'_>]) -> Result<Any, Error> {
    let [name, args @ ..] = args else {
        return Err(too_few_arguments());
    };
    let args: Vec<Any> = args.iter().map(|arg| arg.to_any()).collect();
    machine.call(&cast::<String>(*name)?, &*args)
}

/// Returns whether a call ends within the number of jumps and calls, and whether it does without the limit on the same machine
/// (VM-25).
fn limited(executable: &Module, args: &[AnyView<'_>]) -> Result<Value, Error> {
    let [most, args @ ..] = args else {
        return Err(too_few_arguments());
    };
    let machine = machine(executable)?;
    machine.limit(Some(cast::<u64>(*most)?));
    let ended = call(&machine, args).is_ok();
    machine.limit(None);
    let unlimited = call(&machine, args).is_ok();
    Ok(json!([ended, unlimited]))
}

/// Returns each call with its function, its instruction, and the number of arguments. A second call shows that the observer is
/// removed.
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
        lock(&note).push(entry);
    })));
    call(&machine, args)?;
    // Calls once more without an observer. A call that is still observed would appear in the answer.
    machine.observe(None);
    call(&machine, args)?;
    let seen = lock(&seen);
    Ok(seen.iter().cloned().collect())
}

/// Calls a machine made from bytes of unknown origin, which changes no tuple that others hold.
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

/// Checks DEV-45 on a machine: the number of results, and that none is negative. No case can state how long a call takes.
fn timed(executable: &Module, args: &[AnyView<'_>]) -> Result<Value, Error> {
    let [number, repeat, name, args @ ..] = args else {
        return Err(too_few_arguments());
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
