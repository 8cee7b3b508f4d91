//! The JSON form of the two VM executables.
//!
//! | value | JSON |
//! |---|---|
//! | tensor constant | `{"tensor": {...}}` |
//! | constant that is loaded later (PAY-66) | `{"late": name}` |
//! | shape, text, int, dtype (PAY-86) | `{"shape": [..]}`, `{"text": ..}`, `{"int": ..}`, `{"dtype": ..}` |
//! | float | `{"float": ..}`; if not finite, `{"float_bits": ..}`: base64 of its 8 bytes, little endian |
//! | instruction of the Relay VM | `{"opcode": .., "fields": [..]}`, without its hash, which writing computes (PAY-71) |
//! | code of the Relax VM | `instr_offset` and `instr_data`: words as signed integers (PAY-88) |

use super::json_reader::{JsonPlace, base64, tensor_from};
use super::{Text, relax_vm, relay_vm};
use crate::rule::Violation;
use crate::tensor::Sizing;
use crate::tensor::json::{from_device, from_dtype, from_record};
use crate::wire::Words;
use serde_json::{Value, json};

/// Returns the member `executable` of a Relax VM payload (PAY-81): functions, scopes, constants, instructions.
pub(super) fn relax_to(executable: &relax_vm::RelaxExecutable<'_>) -> Value {
    let signed = |words: &Words<'_>| -> Vec<i64> { words.iter().map(u64::cast_signed).collect() };
    let functions: Vec<Value> = executable.functions.iter().map(relax_function_to).collect();
    let constants: Vec<Value> = executable.constants.iter().map(relax_constant_to).collect();
    // PAY-85: null means the older magic; an empty list means the newer magic without scopes.
    let scopes = executable.memory_scopes.as_ref().map(|scopes| {
        let rows = scopes.iter();
        rows.map(|(constant, scope)| json!({"constant": constant, "scope": scope}))
            .collect::<Vec<_>>()
    });
    json!({
        "functions": functions,
        "memory_scopes": scopes,
        "constants": constants,
        // PAY-88: the words are stored as i64, so they are shown as signed numbers.
        "instr_offset": signed(&executable.offsets),
        "instr_data": signed(&executable.words),
    })
}

/// Reads an executable: the inverse of [`relax_to`]. An absent or null `memory_scopes` means the older magic (PAY-82).
pub(super) fn relax_from(
    object: &JsonPlace<'_>,
) -> Result<relax_vm::RelaxExecutable<'static>, Violation> {
    // PAY-88: instructions are not decoded: JSON contains the words of the file.
    let words = |name: &str| -> Result<Words<'static>, Violation> {
        let words = object.list(name, |item| item.i64().map(i64::cast_unsigned))?;
        Ok(Words::from(words.as_slice()))
    };
    let scopes = object.optional_member("memory_scopes").map(|scopes| {
        scopes.all(|item| Ok((item.member("constant")?.i64()?, item.text("scope")?)))
    });
    Ok(relax_vm::RelaxExecutable {
        functions: object.list("functions", relax_function_from)?,
        memory_scopes: scopes.transpose()?,
        constants: object.list("constants", relax_constant_from)?,
        offsets: words("instr_offset")?,
        words: words("instr_data")?,
    })
}

/// Returns a row of the function table (PAY-84), with the name of its kind.
fn relax_function_to(function: &relax_vm::RelaxFunction<'_>) -> Value {
    json!({
        "kind": function.kind.name(), "name": function.name,
        "start": function.start, "end": function.end,
        "num_args": function.num_args, "registers": function.registers,
        "params": function.params,
    })
}

/// Reads a row: the inverse of [`relax_function_to`].
fn relax_function_from(item: JsonPlace<'_>) -> Result<relax_vm::RelaxFunction<'static>, Violation> {
    let kind = item.member("kind")?;
    let mut kinds = relax_vm::FunctionKind::ALL.into_iter();
    Ok(relax_vm::RelaxFunction {
        // PAY-84: only the names of known kinds are accepted, because an unknown name is a mistake in the JSON.
        kind: kinds
            .find(|known| kind.value == known.name())
            .ok_or_else(|| kind.wrong("packed, vm or vmtir"))?,
        name: item.text("name")?,
        start: item.member("start")?.i64()?,
        end: item.member("end")?.i64()?,
        num_args: item.member("num_args")?.i64()?,
        registers: item.member("registers")?.i64()?,
        params: item.texts("params")?,
    })
}

/// Returns a constant (PAY-86) under a member that names its type, because the tag in the file depends on the layout.
fn relax_constant_to(constant: &relax_vm::RelaxConstant<'_>) -> Value {
    use relax_vm::RelaxConstant::{Dtype, Float, Int, Shape, Tensor, Text};
    match constant {
        Tensor(tensor) => json!({"tensor": from_record(tensor)}),
        Shape(shape) => json!({"shape": shape}),
        Text(text) => json!({"text": text}),
        Int(value) => json!({"int": value}),
        // PAY-86: any 8 bytes are a float, but JSON numbers only express finite floats.
        Float(value) if value.is_finite() => json!({"float": value}),
        // JSON cannot express these floats, so their bits are stored, little endian.
        Float(value) => json!({"float_bits": base64(&value.to_le_bytes())}),
        Dtype(dtype) => json!({"dtype": from_dtype(*dtype)}),
    }
}

/// Reads a constant: the inverse of [`relax_constant_to`].
fn relax_constant_from(item: JsonPlace<'_>) -> Result<relax_vm::RelaxConstant<'static>, Violation> {
    use relax_vm::RelaxConstant;
    if let Some(tensor) = item.optional_member("tensor") {
        return tensor_from(&tensor, Sizing::V0_7).map(RelaxConstant::Tensor);
    }
    if let Some(shape) = item.optional_member("shape") {
        return shape.all(|dim| dim.i64()).map(RelaxConstant::Shape);
    }
    if let Some(text) = item.optional_member("text") {
        return text.as_text().map(RelaxConstant::Text);
    }
    if let Some(value) = item.optional_member("int") {
        return value.i64().map(RelaxConstant::Int);
    }
    if let Some(value) = item.optional_member("float") {
        let float = value.value.as_f64().ok_or_else(|| value.wrong("a float"));
        return float.map(RelaxConstant::Float);
    }
    if let Some(bits) = item.optional_member("float_bits") {
        let bytes = bits.base64()?;
        let bytes = <[u8; 8]>::try_from(&*bytes).map_err(|_| bits.wrong("8 bytes"))?;
        return Ok(RelaxConstant::Float(f64::from_le_bytes(bytes)));
    }
    item.member("dtype")?.dtype().map(RelaxConstant::Dtype)
}

/// Returns the member `executable` of a Relay VM payload (PAY-60). Fields that the release lacks are empty or 0.
pub(super) fn relay_to(executable: &relay_vm::RelayExecutable<'_>) -> Value {
    let devices: Vec<Value> = executable
        .virtual_devices
        .iter()
        .map(|device| json!({"device": from_device(device.device), "scope": device.scope}))
        .collect();
    let constants: Vec<Value> = executable
        .constants
        .iter()
        .map(|constant| match constant {
            relay_vm::RelayConstant::Tensor(tensor) => json!({"tensor": from_record(tensor)}),
            // PAY-66: the member shows the tag; before 0.9 the file has no tag.
            relay_vm::RelayConstant::Late(name) => json!({"late": name}),
        })
        .collect();
    let attrs: Vec<Value> = executable
        .primitive_attrs
        .iter()
        // Pairs in a list, because a JSON object would lose the order of the file and repeated names.
        .map(|(primitive, attrs)| json!({"primitive": primitive, "attrs": attrs}))
        .collect();
    let functions: Vec<Value> = executable.functions.iter().map(relay_function_to).collect();
    json!({
        "version": executable.version,
        "virtual_devices": devices,
        "host_device": executable.host_device,
        "globals": executable.globals,
        "constants": constants,
        "constant_devices": executable.constant_devices,
        "primitives": executable.primitives,
        "primitive_attrs": attrs,
        "functions": functions,
    })
}

/// Reads an executable: the inverse of [`relay_to`]. The code is not checked; reading the written bytes checks it.
pub(super) fn relay_from(
    object: &JsonPlace<'_>,
) -> Result<relay_vm::RelayExecutable<'static>, Violation> {
    let version = object.text("version")?;
    // PAY-66: code of 0.6 counts the bytes of a constant according to TEN-30.
    let sizing = match relay_vm::era_of(&version) {
        Some(6) => Sizing::V0_4,
        _ => Sizing::V0_7,
    };
    Ok(relay_vm::RelayExecutable {
        version,
        virtual_devices: object.list("virtual_devices", |item| {
            Ok(relay_vm::VirtualDevice {
                device: item.member("device")?.device()?,
                scope: item.text("scope")?,
            })
        })?,
        // PAY-65: the index is not compared with the devices; reading the written bytes does that.
        host_device: object.member("host_device")?.i32()?,
        globals: object.texts("globals")?,
        constants: object.list("constants", |item| {
            if let Some(tensor) = item.optional_member("tensor") {
                return tensor_from(&tensor, sizing).map(relay_vm::RelayConstant::Tensor);
            }
            item.text("late").map(relay_vm::RelayConstant::Late)
        })?,
        constant_devices: object.list("constant_devices", |item| item.i64())?,
        primitives: object.texts("primitives")?,
        primitive_attrs: object.list("primitive_attrs", |item| {
            let attrs = item.list("attrs", |pair| {
                let texts: [Text<'static>; 2] = pair
                    .all(|text| text.as_text())?
                    .try_into()
                    .map_err(|_| pair.wrong("[key, value]"))?;
                let [key, value] = texts;
                Ok((key, value))
            })?;
            Ok((item.member("primitive")?.u64()?, attrs))
        })?,
        functions: object.list("functions", relay_function_from)?,
    })
}

/// Returns a function (PAY-69, PAY-70) with its code.
fn relay_function_to(function: &relay_vm::RelayFunction<'_>) -> Value {
    let code: Vec<Value> = function
        .code
        .iter()
        // PAY-71: the hash is left out, so that an edited field does not break the instruction.
        .map(|instruction| json!({"opcode": instruction.opcode, "fields": instruction.fields}))
        .collect();
    json!({
        "name": function.name, "registers": function.registers,
        "params": function.params, "param_devices": function.param_devices, "code": code,
    })
}

/// Reads a function: the inverse of [`relay_function_to`]. Registers, jumps and indices may be any numbers.
fn relay_function_from(item: JsonPlace<'_>) -> Result<relay_vm::RelayFunction<'static>, Violation> {
    Ok(relay_vm::RelayFunction {
        name: item.text("name")?,
        registers: item.member("registers")?.u64()?,
        params: item.texts("params")?,
        param_devices: item.list("param_devices", |item| item.i64())?,
        code: item.list("code", |item| {
            Ok(relay_vm::RelayInstruction {
                opcode: item.member("opcode")?.i64()?,
                fields: item.list("fields", |item| item.i64())?,
            })
        })?,
    })
}
