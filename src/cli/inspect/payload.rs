//! What a module stores, in a few fields: enough to know it, without its code.

use super::graph;
use crate::cli::subject::{Format, Unit};
use serde_json::{Map, Value, json};
use tvmspec::payload::{self, Field, Payload, relax_vm, relay_vm};
use tvmspec::rule::Findings;
use tvmspec::tensor::json::from_dtype;
use tvmspec::tensor::{Params, Sizing, TensorRecord};
use tvmspec::wire::Cursor;

/// Adds what is known of `payload` to the value of its module.
pub(super) fn describe(payload: &Payload<'_>, value: &mut Map<String, Value>) {
    value.insert("format".into(), payload.format().into());
    value.insert("form".into(), payload.form().into());
    let functions: Vec<Value> = payload
        .functions()
        .map(|(name, info)| {
            let types: Vec<Value> = info
                .arg_types
                .iter()
                .map(|dtype| from_dtype(*dtype))
                .collect();
            json!({
                "name": name,
                "arg_types": types,
                "launch_param_tags": info.launch_param_tags,
                "arg_extra_tags": info.arg_extra_tags,
            })
        })
        .collect();
    if !functions.is_empty() {
        value.insert("functions".into(), functions.into());
    }
    let kernels: Vec<Value> = payload
        .kernels()
        .map(|(name, code)| json!({ "name": name, "bytes": code.len() }))
        .collect();
    if !kernels.is_empty() {
        value.insert("kernels".into(), kernels.into());
    }
    if let Payload::Known(known) = payload {
        for (slot, field) in known.form().slots.iter().zip(payload.fields()) {
            describe_field(slot.name, field, value);
        }
    }
    if payload.relax_vm().is_some() || payload.relay_vm().is_some() {
        value.insert("vm".into(), vm(payload));
    }
}

fn describe_field(name: &str, field: &Field<'_>, value: &mut Map<String, Value>) {
    /// Longer texts are for `extract`.
    const LONGEST: usize = 200;
    let plain = match field {
        Field::Text(text) if name == "graph_json" => {
            let summary = graph::summary(text.as_bytes());
            value.insert("graph".into(), summary.unwrap_or(Value::Null));
            return;
        }
        Field::Text(_) if name == "format" => return,
        Field::Text(text) if text.len() > LONGEST => json!({ "bytes": text.len() }),
        Field::Text(text) => json!(text),
        Field::Bytes(bytes) => json!({ "bytes": bytes.len() }),
        Field::Int(number) => json!(number),
        Field::Names(names) => json!(names),
        Field::Tensors(list) => {
            let list: Vec<Value> = list
                .iter()
                .map(|(name, record)| tensor(name, record))
                .collect();
            value.insert("tensors".into(), list.into());
            return;
        }
        Field::Symbols(list) => {
            let map: Map<String, Value> = list
                .iter()
                .map(|(function, variables)| (function.to_string(), json!(variables)))
                .collect();
            value.insert("symbols".into(), Value::Object(map));
            return;
        }
        Field::Imports(list) => json!(list.iter().map(Payload::kind).collect::<Vec<_>>()),
        Field::StackVms(list) => json!(
            list.iter()
                .map(|(name, _)| name.as_ref())
                .collect::<Vec<_>>()
        ),
        _ => return,
    };
    let fields = value.entry("fields").or_insert_with(|| json!({}));
    if let Some(fields) = fields.as_object_mut() {
        fields.insert(name.into(), plain);
    }
}

fn tensor(name: &str, record: &TensorRecord<'_>) -> Value {
    json!({
        "name": name,
        "dtype": from_dtype(record.dtype()),
        "shape": record.shape(),
        "bytes": record.data().len(),
    })
}

/// The content of a file that is no container: under which name it stands in the report, and what stands there.
pub(super) fn content(unit: &Unit<'_>) -> (&'static str, Value) {
    let mut findings = Findings::default();
    let mut cursor = Cursor::new(&unit.bytes);
    match &unit.format {
        Format::Params => {
            let list = Params::detect(&mut cursor, &mut findings).map(|(params, _)| {
                let list = params.iter().map(|(name, record)| tensor(name, record));
                list.collect::<Vec<_>>()
            });
            ("params", list.map_or(Value::Null, Value::from))
        }
        Format::Tensor => {
            let record = TensorRecord::read(&mut cursor, Sizing::V0_7, &mut findings);
            (
                "tensor",
                record.map_or(Value::Null, |record| json!([tensor("", &record)])),
            )
        }
        Format::RelayCode => {
            let executable = relay_vm::Executable::read_code(&mut cursor, &mut findings);
            let value = executable
                .map(|executable| json!({ "kind": "Relay VM", "vm": relay(&executable) }));
            ("module", value.unwrap_or(Value::Null))
        }
        Format::Payload { kind, layout } => {
            let payload = payload::read(kind, *layout, &mut cursor, &mut findings);
            let value = payload.map(|payload| {
                let mut value = Map::new();
                value.insert("kind".into(), (*kind).into());
                value.insert("bytes".into(), unit.bytes.len().into());
                describe(&payload, &mut value);
                Value::Object(value)
            });
            ("module", value.unwrap_or(Value::Null))
        }
        Format::Library { .. } => ("library", Value::Null),
    }
}

/// An executable of either VM: functions, what they call, constants.
fn vm(payload: &Payload<'_>) -> Value {
    if let Some(executable) = payload.relax_vm() {
        return relax(executable);
    }
    payload.relay_vm().map_or(Value::Null, relay)
}

fn relax(executable: &relax_vm::Executable<'_>) -> Value {
    use relax_vm::{Constant, FunctionKind};
    let (packed, own): (Vec<_>, Vec<_>) = executable
        .functions
        .iter()
        .partition(|function| function.kind == FunctionKind::Packed);
    let functions: Vec<Value> = own
        .iter()
        .map(|function| {
            json!({
                "name": function.name,
                "kind": match function.kind {
                    FunctionKind::Vm => "vm",
                    FunctionKind::VmTir => "vmtir",
                    FunctionKind::Packed => "packed",
                },
                "parameters": function.params,
                "registers": function.registers,
                "instructions": function.end.saturating_sub(function.start),
            })
        })
        .collect();
    let constants: Vec<Value> = executable
        .constants
        .iter()
        .map(|constant| match constant {
            Constant::Tensor(record) => tensor_constant(record),
            Constant::Shape(shape) => json!({ "type": "shape", "value": shape }),
            Constant::Text(text) => json!({ "type": "string", "value": text }),
            Constant::Int(number) => json!({ "type": "int", "value": number }),
            Constant::Float(number) => json!({ "type": "float", "value": number }),
            Constant::Dtype(dtype) => json!({ "type": "dtype", "value": from_dtype(*dtype) }),
        })
        .collect();
    json!({
        "version": "Relax VM",
        "functions": functions,
        "packed": packed.iter().map(|function| &*function.name).collect::<Vec<_>>(),
        "constants": constants,
        "instructions": executable.offsets.len(),
    })
}

fn relay(executable: &relay_vm::Executable<'_>) -> Value {
    let functions: Vec<Value> = executable
        .functions
        .iter()
        .map(|function| {
            json!({
                "name": function.name,
                "kind": "vm",
                "parameters": function.params,
                "registers": function.registers,
                "instructions": function.code.len(),
            })
        })
        .collect();
    let constants: Vec<Value> = executable
        .constants
        .iter()
        .map(|constant| match constant {
            relay_vm::Constant::Tensor(record) => tensor_constant(record),
            relay_vm::Constant::Late(name) => json!({ "type": "loaded later", "value": name }),
        })
        .collect();
    json!({
        "version": format!("Relay VM of {}", executable.version),
        "functions": functions,
        "packed": executable.primitives,
        "constants": constants,
    })
}

fn tensor_constant(record: &TensorRecord<'_>) -> Value {
    let extents: Vec<String> = record.shape().iter().map(ToString::to_string).collect();
    json!({ "type": from_dtype(record.dtype()), "value": format!("[{}]", extents.join(", ")) })
}
