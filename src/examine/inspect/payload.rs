//! A summary of a module's payload: enough to recognise it, without its code.

use super::graph;
use super::memory_limit::MemoryBudget;
use crate::examine::{Format, Unit};
use crate::payload::file::SideFile;
use crate::payload::{self, Field, FunctionInfo, Payload, relax_vm, relay_vm};
use crate::rule::Findings;
use crate::tensor::json::from_dtype_in;
use crate::tensor::{Params, Sizing, TensorRecord};
use crate::vm::Listing;
use crate::wire::Cursor;
use crate::wire::json::float_form;
use serde_json::{Map, Value, json};
use std::fmt::Display;

/// Adds a summary of `payload` to the report of its module.
///
/// Empty lists have no member. Code is shown by its size only: `extract` writes it.
pub(super) fn describe(payload: &Payload<'_>, value: &mut Map<String, Value>, room: &MemoryBudget) {
    value.insert("format".into(), payload.format().into());
    value.insert("form".into(), payload.form().into());
    let functions = room.list(payload.functions(), |(name, info)| {
        function_value(name, info, room)
    });
    if !functions.is_empty() {
        value.insert("functions".into(), functions.into());
    }
    let mut needs = Map::new();
    for need in payload.code_needs() {
        let of_name = needs.entry(need.name()).or_insert_with(|| json!([]));
        if let Some(values) = of_name.as_array_mut() {
            values.push(need.value().into());
        }
    }
    if !needs.is_empty() {
        value.insert("needs".into(), Value::Object(needs));
    }
    let kernels = room.list(
        payload.kernels(),
        |(name, code)| json!({ "name": name, "bytes": code.len() }),
    );
    if !kernels.is_empty() {
        value.insert("kernels".into(), kernels.into());
    }
    if let Payload::Known(known) = payload {
        // A payload has one field for every slot of its form, in the order of the slots.
        for (slot, field) in known.form().slots.iter().zip(payload.fields()) {
            describe_field(slot.name, field, value, room);
        }
    }
    // Both VMs use the same member, so a reader of the report does not have to tell them apart.
    if payload.relax_vm().is_some() || payload.relay_vm().is_some() {
        value.insert("vm".into(), vm(payload, room));
    }
}

/// Reports a function of a device module, from its function map or its side file.
fn function_value(name: &str, info: &FunctionInfo<'_>, room: &MemoryBudget) -> Value {
    let mut value = json!({
        "name": name,
        "arg_types": room.list(&info.arg_types, |dtype| from_dtype_in(*dtype, room.era.get())),
        "launch_param_tags": room.list(&info.launch_param_tags, |tag| json!(tag)),
        "arg_extra_tags": room.list(&info.arg_extra_tags, |tag| json!(tag)),
    });
    if let (Some(second), Some(members)) = (&info.second, value.as_object_mut()) {
        let fields = room.list(&second.cuda_launch_fields, |field| json!(field));
        members.insert("cuda_launch_fields".into(), fields.into());
        let attrs = room.list(&second.cuda_kernel_attrs, |attr| json!(attr));
        members.insert("cuda_kernel_attrs".into(), attrs.into());
    }
    value
}

/// Adds one field of a payload: a number or a short text as a value, anything longer as a size.
///
/// Tensors, symbols and a graph get separate members. Fields that `describe` has shown already are skipped.
fn describe_field(
    name: &str,
    field: &Field<'_>,
    value: &mut Map<String, Value>,
    room: &MemoryBudget,
) {
    /// The length of the longest text that is shown, in bytes. `extract` writes longer ones.
    const LONGEST: usize = 200;
    let plain = match field {
        // PAY-40, PAY-45: a vendor's text may also have this name. It is left out if it is not a graph of chapter graph.
        Field::Text(text) if name == "graph_json" => {
            if let Some(summary) = graph::summary(text.as_bytes(), room) {
                value.insert("graph".into(), summary);
            }
            return;
        }
        // `describe` shows it, under the same name for all forms.
        Field::Text(_) if name == "format" => return,
        Field::Text(text) if text.len() > LONGEST => json!({ "bytes": text.len() }),
        Field::Text(text) => json!(text),
        Field::Bytes(bytes) => json!({ "bytes": bytes.len() }),
        Field::Int(number) => json!(number),
        Field::Names(names) => room.list(names, |name| json!(name)).into(),
        Field::Tensors(list) => {
            let list = room.list(list, |(name, record)| tensor(name, record, room));
            value.insert("tensors".into(), list.into());
            return;
        }
        // PAY-34: one member for each function, with the variables that the function takes.
        Field::Symbols(list) => {
            // A map, because releases use the last of two lists for one function. A list would show both (PAY-37).
            let mut map = Map::new();
            room.list(list, |(function, variables)| {
                let variables = room.list(variables, |name| json!(name));
                map.insert(function.to_string(), variables.into());
                json!(function)
            });
            value.insert("symbols".into(), Value::Object(map));
            return;
        }
        Field::Imports(list) => room.list(list, |payload| json!(payload.kind())).into(),
        Field::StackVms(list) => room.list(list, |(name, _)| json!(name)).into(),
        _ => return,
    };
    let fields = value.entry("fields").or_insert_with(|| json!({}));
    if let Some(fields) = fields.as_object_mut() {
        fields.insert(name.into(), plain);
    }
}

/// Reports a tensor without its data. `bytes` counts the stored bytes. If the tensor has several lanes, these are fewer than its size
/// in memory (TEN-31, TEN-34).
fn tensor(name: &str, record: &TensorRecord<'_>, room: &MemoryBudget) -> Value {
    json!({
        "name": name,
        "dtype": from_dtype_in(record.dtype(), room.era.get()),
        "shape": room.list(record.shape(), |extent| json!(extent)),
        "bytes": record.data().len(),
    })
}

/// Returns the content of a file that is not a container, and its name in the report. Returns `None` if the file cannot be read.
///
/// Also returns `None` for library binaries, because they are listed with their parts.
pub(super) fn content(unit: &Unit<'_>, room: &MemoryBudget) -> Option<(&'static str, Value)> {
    let mut findings = Findings::default();
    let mut cursor = Cursor::new(&unit.bytes);
    Some(match &unit.format {
        Format::Params => {
            // TEN-45: this repeats the search for a count of bytes that fits. `Unit::judge` reports the findings.
            let (params, _) = Params::detect(&mut cursor, &mut findings).ok()?;
            let list = room.list(params.iter(), |(name, record)| tensor(name, record, room));
            ("params", list.into())
        }
        Format::Tensor => {
            let record = TensorRecord::read(&mut cursor, Sizing::V0_7, &mut findings).ok()?;
            // A list with one element, so that the member has the form of `params`.
            ("tensor", json!([tensor("", &record, room)]))
        }
        Format::RelayCode => {
            let executable =
                relay_vm::RelayExecutable::read_code(&mut cursor, &mut findings).ok()?;
            let vm = relay(&executable, room);
            ("module", json!({ "kind": "VMExecutable", "vm": vm }))
        }
        Format::Payload { kind, layout } | Format::ModuleFile { kind, layout } => {
            let payload = payload::read(kind, *layout, &mut cursor, &mut findings).ok()?;
            room.era.set(layout.releases());
            let mut value = Map::new();
            value.insert("kind".into(), (*kind).into());
            value.insert("bytes".into(), unit.bytes.len().into());
            describe(&payload, &mut value, room);
            ("module", Value::Object(value))
        }
        Format::SideFile => {
            let side = SideFile::read(&unit.bytes, &mut findings).ok()?;
            let functions = room.list(&side.functions, |function| {
                function_value(&function.key, &function.info, room)
            });
            (
                "module",
                json!({ "kind": "side file", "bytes": unit.bytes.len(), "functions": functions }),
            )
        }
        Format::HostFile { format } => {
            let (kind, bytes) = (format.kind, unit.bytes.len());
            let value = json!({
                "kind": kind,
                "bytes": bytes,
                "format": format.extension,
                "fields": { "code": { "bytes": bytes } },
            });
            ("module", value)
        }
        // Its modules are described one by one, in the report of its part.
        Format::Library { .. } => return None,
    })
}

/// Reports an executable of either VM: functions, calls, constants and, if requested, the code. Shows code even if it breaks a rule of
/// chapter vm.
fn vm(payload: &Payload<'_>, room: &MemoryBudget) -> Value {
    match (payload.relax_vm(), payload.relay_vm()) {
        (Some(executable), _) => relax(executable, room),
        (None, Some(executable)) => relay(executable, room),
        (None, None) => Value::Null,
    }
}

/// Adds as many lines of code to `value` as fit into the memory limit, if code was requested.
///
/// `lines` is called only if code was requested.
fn with_code<L: Iterator<Item: Display>>(
    mut value: Value,
    lines: impl FnOnce() -> L,
    room: &MemoryBudget,
) -> Value {
    if room.code
        && let Value::Object(members) = &mut value
    {
        members.insert("code".into(), room.lines(lines()).into());
    }
    value
}

/// Reports an executable of the Relax VM. Functions of kind packed are names that it calls, and are listed separately (PAY-84).
///
/// The code is a listing with one line for each instruction.
fn relax(executable: &relax_vm::RelaxExecutable<'_>, room: &MemoryBudget) -> Value {
    use relax_vm::FunctionKind;
    let (packed, own): (Vec<_>, Vec<_>) = executable
        .functions
        .iter()
        .partition(|function| function.kind == FunctionKind::Packed);
    let functions = room.list(own, |function| {
        json!({
            "name": function.name,
            "kind": match function.kind {
                FunctionKind::Vm => "vm",
                FunctionKind::VmTir => "vmtir",
                FunctionKind::Packed => "packed",
            },
            "parameters": room.list(&function.params, |name| json!(name)),
            "registers": function.registers,
            // PAY-90: in code that breaks this rule, the end may come before the start.
            "instructions": function.end.saturating_sub(function.start),
        })
    });
    let constants = room.list(&executable.constants, |constant| {
        relax_constant(constant, room)
    });
    let value = json!({
        "version": "Relax VM",
        "functions": functions,
        // PAY-84: packed functions have neither instructions nor registers.
        "packed": room.list(packed, |function| json!(function.name)),
        "constants": constants,
        "instructions": executable.offsets.len(),
    });
    // PAY-88: the listing also shows instructions whose offset is outside the words.
    let listing = Listing::new(executable);
    with_code(value, || listing.lines(), room)
}

/// Reports a constant by its type and value; of a tensor, only the shape (PAY-86).
fn relax_constant(constant: &relax_vm::RelaxConstant<'_>, room: &MemoryBudget) -> Value {
    use relax_vm::RelaxConstant::{Dtype, Float, Int, Shape, Tensor, Text};
    match constant {
        Tensor(record) => tensor_constant(record, room),
        Shape(shape) => json!({ "type": "shape", "value": shape }),
        Text(text) => json!({ "type": "string", "value": text }),
        Int(number) => json!({ "type": "int", "value": number }),
        // JSON has no infinities and no NaN, and loses the sign of a zero. `float_form` has words for them.
        Float(number) => json!({ "type": "float", "value": float_form(*number) }),
        Dtype(dtype) => json!({ "type": "dtype", "value": from_dtype_in(*dtype, room.era.get()) }),
    }
}

/// Reports an executable of the Relay VM. From 0.9 on, a constant may be the name of a tensor that is loaded later (PAY-66).
///
/// The version is that of the release that wrote it (PAY-62).
fn relay(executable: &relay_vm::RelayExecutable<'_>, room: &MemoryBudget) -> Value {
    let functions = room.list(&executable.functions, |function| {
        json!({
            "name": function.name,
            "kind": "vm",
            "parameters": room.list(&function.params, |name| json!(name)),
            "registers": function.registers,
            "instructions": function.code.len(),
        })
    });
    let constants = room.list(&executable.constants, |constant| match constant {
        relay_vm::RelayConstant::Tensor(record) => tensor_constant(record, room),
        // PAY-66: only the name under which the tensor is loaded later.
        relay_vm::RelayConstant::Late(name) => json!({ "type": "loaded later", "value": name }),
    });
    let value = json!({
        "version": format!("Relay VM of {}", executable.version),
        "functions": functions,
        "packed": room.list(&executable.primitives, |name| json!(name)),
        "constants": constants,
    });
    with_code(value, || executable.lines(), room)
}

/// Reports a tensor among the constants: its dtype as the type, its extents as the value.
fn tensor_constant(record: &TensorRecord<'_>, room: &MemoryBudget) -> Value {
    let extents: Vec<String> = record.shape().iter().map(ToString::to_string).collect();
    json!({ "type": from_dtype_in(record.dtype(), room.era.get()), "value": format!("[{}]", extents.join(", ")) })
}
