//! Executables of the Relax VM. One of their functions is called, with an input for each parameter (VM-04).

use super::inputs::Inputs;
use super::{Operator, RunArgs, report, statistics, timed, write_outputs};
use crate::cli::full::array::Bound;
use crate::cli::full::device_mirror::on_host;
use crate::cli::full::input::list_known_names;
use crate::cli::{CliError, Exit, output};
use crate::lock::lock;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tvmspec::device::Device;
use tvmspec::module::Module;
use tvmspec::object::{Tensor, sequence_of};
use tvmspec::tensor::Dtype;
use tvmspec::value::{Any, AnyView, DLTensor, cast, dtype_to_text};
use tvmspec::vm::VirtualMachine;

/// Calls --func with its parameters, and writes outputs, times and profile as requested.
pub(super) fn run(
    args: &RunArgs,
    module: &Module,
    devices: &[Device],
    mut inputs: Inputs,
) -> Result<Exit, CliError> {
    if args.dump.is_some() {
        return Err(CliError::new(
            "--dump writes the tensors of a graph; a VM executable has --profile and --trace",
        ));
    }
    // VM-11: a missing function is detected here, before any input is read.
    let machine = VirtualMachine::from_module(module, devices).map_err(CliError::new)?;
    let func = &args.func;
    let params = machine
        .parameters(func)
        .map_err(CliError::from_library_error)?;
    let types = machine
        .parameter_types(func)
        .map_err(CliError::from_library_error)?;
    let values = arguments(func, &params, &types.into_iter().collect(), &mut inputs)?;
    let mut result = Any::none();
    let times = timed(args.repeat, || {
        result = machine
            .call(func, &*values)
            .map_err(CliError::from_library_error)?;
        Ok(())
    })?;
    let mut outputs = Vec::new();
    leaves(&result, &mut outputs);
    let outputs = outputs
        .into_iter()
        .map(|(name, tensor)| Ok((name, on_host(tensor)?)))
        .collect::<Result<Vec<_>, CliError>>()?;
    write_outputs(args, &outputs)?;
    statistics(&times);
    if args.profile || args.trace.is_some() {
        report(args, profile(&machine, func, &values)?)?;
    }
    Ok(Exit::Good)
}

/// Creates the arguments of a call. Every parameter is an input by its name; `NAME.0`, `NAME.1`, ... are the elements of a tuple.
fn arguments(
    func: &str,
    params: &[&str],
    types: &HashMap<String, Dtype>,
    inputs: &mut Inputs,
) -> Result<Vec<Any>, CliError> {
    // A set and one pass over the names, because a model may have thousands of parameters, its weights.
    let known: HashSet<&str> = params.iter().copied().collect();
    let names: Vec<String> = inputs.names().map(str::to_owned).collect();
    // The elements of each tuple, by its name.
    let mut tuples = HashMap::<&str, Vec<(usize, &str)>>::new();
    for name in &names {
        let element = name.rsplit_once('.').and_then(|(param, at)| {
            let at = at.parse().ok()?;
            Some((*known.get(param)?, at))
        });
        if let Some((param, at)) = element {
            tuples.entry(param).or_default().push((at, name));
        } else if !known.contains(name.as_str()) {
            let params = list_known_names(name, params.iter().copied());
            return Err(CliError::Message(format!(
                "`{func}` has no parameter `{name}`; it has {params}"
            )));
        }
    }
    let mut values = Vec::new();
    let mut missing = Vec::new();
    for param in params {
        // An executable does not state the shapes of its parameters, so that only the file limits the size.
        let dtype = types.get(*param).copied();
        if let Some(tensor) = inputs.read(param, Bound::File, dtype)? {
            check_type(func, param, &tensor, dtype)?;
            values.push(Any::from(tensor));
            continue;
        }
        let mut tuple = tuples.remove(param).unwrap_or_default();
        // Sorted by number, so that `NAME.10` comes after `NAME.9`.
        tuple.sort();
        if tuple.is_empty() {
            // All of them are collected, because a model may have dozens.
            missing.push(*param);
        }
        let mut items: Vec<Any> = Vec::new();
        for (_, name) in tuple {
            let dtype = types.get(name).copied();
            if let Some(tensor) = inputs.read(name, Bound::File, dtype)? {
                check_type(func, name, &tensor, dtype)?;
                items.push(tensor.into());
            }
        }
        values.push(tvmspec::object::Array::new(items).into());
    }
    if missing.is_empty() {
        return Ok(values);
    }
    Err(CliError::Message(format!(
        "missing inputs: {}; write --input NAME=FILE.npy for each (NAME.0, NAME.1, ... for a tuple)",
        missing.join(", ")
    )))
}

/// Compares the type of an input with the type that the function expects (VM-40). The message of the function itself uses the terms of
/// the compiler.
fn check_type(
    func: &str,
    name: &str,
    tensor: &Tensor,
    wanted: Option<Dtype>,
) -> Result<(), CliError> {
    let found = tensor.dl().dtype;
    // The type of a bool differs between eras.
    let Some(wanted) =
        wanted.filter(|wanted| *wanted != found && wanted.bits > 1 && found.bits > 1)
    else {
        return Ok(());
    };
    let text = |dtype| dtype_to_text(dtype).unwrap_or_else(|broken| broken.to_string());
    let (wanted, found) = (text(wanted), text(found));
    Err(CliError::Message(format!(
        "input `{name}` of `{func}` is {wanted}, and the array is {found}: convert it in numpy, `x.astype(\"{wanted}\")`; of raw bits say what they are, --input {name}=FILE.npy:{wanted} [VM-40]"
    )))
}

/// Appends the tensors of a result in order, as `out_0`, `out_1`, ... Tuples of any depth are flattened. Values that are not tensors
/// are noted on stderr.
fn leaves(value: &Any, outputs: &mut Vec<(String, Tensor)>) {
    if let Some(items) = sequence_of(value.view()) {
        items.iter().for_each(|item| leaves(item, outputs));
        return;
    }
    match cast::<Tensor>(value.view()) {
        Ok(tensor) => outputs.push((format!("out_{}", outputs.len()), tensor)),
        // A shape or a number, which .npz cannot hold.
        Err(_) => output::note(format_args!(
            "note: a part of the result is not a tensor: {value:?}"
        )),
    }
}

/// Runs the function once more with an observer, and returns its calls in the order in which they ended. VM functions are left out,
/// because their time is the time of their calls.
fn profile(
    machine: &VirtualMachine,
    func: &str,
    values: &[Any],
) -> Result<Vec<Operator>, CliError> {
    // Shared, because the machine holds the observer and may call it on any thread.
    let seen: Arc<Mutex<Vec<Operator>>> = Arc::default();
    let (list, origin) = (Arc::clone(&seen), Instant::now());
    let own: HashSet<String> = machine.functions().into_iter().map(str::to_owned).collect();
    machine.observe(Some(Arc::new(move |step| {
        // Its time is the sum of its calls, which would count twice.
        if own.contains(step.callee) {
            return;
        }
        let shapes: Vec<String> = step.args.iter().filter_map(|arg| described(*arg)).collect();
        lock(&list).push(Operator {
            name: step.callee.to_owned(),
            started: step
                .started
                .checked_duration_since(origin)
                .unwrap_or(Duration::ZERO),
            took: step.took,
            shapes: shapes.join(", "),
        });
    })));
    let ran = machine.call(func, values);
    // Also if the call failed, because the observer holds the list.
    machine.observe(None);
    ran.map_err(CliError::from_library_error)?;
    let mut seen = lock(&seen);
    if seen.is_empty() {
        // VM-12: such code calls its operators itself.
        output::note(
            "note: the machine called no operator: a function of exec_mode \"compiled\" shows none",
        );
    }
    Ok(std::mem::take(&mut *seen))
}

/// Returns the type and shape of a tensor, `float32[2,3]`; `None` for any other argument.
fn described(arg: AnyView<'_>) -> Option<String> {
    let tensor = cast::<*mut DLTensor>(arg).ok()?;
    // SAFETY: an argument of a call that has just ended; its maker still holds it.
    let tensor = unsafe { &*tensor };
    // SAFETY: an argument has as many extents as it says.
    let (dtype, shape) = (tensor.dtype, unsafe { tensor.shape() });
    let extents: Vec<String> = shape.iter().map(i64::to_string).collect();
    Some(format!(
        "{}[{}]",
        dtype_to_text(dtype).ok()?,
        extents.join(",")
    ))
}
