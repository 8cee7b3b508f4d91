//! The JSON form of a payload, the result of `payload.decode` and the input of `payload.encode`. `spec/payload.md` defines it.
//!
//! | value | JSON |
//! |---|---|
//! | string that is text | string |
//! | bytes | base64 |
//! | code | `source` if it is UTF-8 without NUL, otherwise `data` in base64 |
//! | dtype, device, tensor | see chapter tensor |
//! | list or map | array, in the order of the file |
//! | opaque payload | `opaque`: all bytes in base64 |

use super::field::Field;
use super::function_info::{DeviceFunction, FunctionInfo, SecondForm};
use super::json_reader::{JsonPlace, base64, tensor_from, type_violation};
use super::slot::{FieldShape, FormSlot};
use super::{
    KernelCode, KnownPayload, Network, PAY_01, Payload, Shader, StackVm, Text, json_vm, kind_info,
};
use crate::rule::{Kind, Violation};
use crate::tensor::json::{from_dtype, from_record};
use crate::tensor::{Sizing, TensorRecord};
use serde_json::{Map, Value, json};

impl Payload<'_> {
    /// Returns the JSON form. It names the `form` if the kind has several.
    pub fn to_json(&self) -> Value {
        let mut object = Map::new();
        object.insert("kind".into(), self.kind().into());
        match self {
            Payload::Opaque { bytes, .. } => {
                object.insert("opaque".into(), base64(bytes));
            }
            Payload::Known(known) => {
                // PAY-09: the form is named only if the kind has more than one.
                if known.info.forms.len() > 1 {
                    object.insert("form".into(), known.form.name.into());
                }
                for (slot, field) in known.form.slots.iter().zip(&known.fields) {
                    put_field(slot, field, &mut object);
                }
            }
        }
        Value::Object(object)
    }

    /// Creates a payload from its JSON form. Without `form`, the newest form is used.
    ///
    /// # Errors
    ///
    /// Returns PAY-01 if the value does not have this form, with the path of the missing or wrong part.
    pub fn from_json(value: &Value) -> Result<Payload<'static>, Violation> {
        let object = JsonPlace::new(value, "payload");
        // PAY-01: the kind is read first, because it decides which other members exist.
        let kind = object.text("kind")?;
        // Checked before the table: a kind with a grammar can also be opaque, if layout 0.22 does not have that grammar.
        if let Some(bytes) = value.get("opaque") {
            return Ok(Payload::Opaque {
                kind,
                bytes: JsonPlace::new(bytes, "opaque").base64()?,
            });
        }
        let info = kind_info(&kind).ok_or_else(|| {
            type_violation(format!(
                "no grammar for kind `{kind}`: give its bytes as `opaque`"
            ))
        })?;
        // PAY-09: a value without a form has the newest form, which reading also prefers.
        let form = match value.get("form").and_then(Value::as_str) {
            // PAY-01: a form of another layout is accepted, because the layout is known only when the payload is written.
            Some(name) => info.forms.iter().find(|form| form.name == name),
            None => info.forms.first(),
        };
        let form = form.ok_or_else(|| {
            let message = format!("kind `{kind}` has no form {}", value["form"]);
            PAY_01.rejected(Kind::Unsupported, message)
        })?;
        // The slots decide which members are read, so that other members are ignored.
        let fields = form.slots.iter().map(|slot| take_field(slot, &object));
        let fields = fields.collect::<Result<_, _>>()?;
        Ok(Payload::Known(KnownPayload::new(info, form, fields)))
    }
}

/// Adds the value of `slot` to `object`, under the name of the slot; code is added under `source` or `data`.
fn put_field(slot: &FormSlot, field: &Field<'_>, object: &mut Map<String, Value>) {
    let value = match field {
        // The member is not named after the slot, because its name shows whether the code is text or base64.
        Field::Bytes(bytes) if slot.shape == FieldShape::Code => {
            put_code(bytes, object);
            return;
        }
        Field::Text(text) => json!(text),
        Field::Bytes(bytes) => base64(bytes),
        Field::Int(value) => json!(value),
        Field::Names(names) => json!(names),
        Field::Functions(list) => list.iter().map(function_to).collect(),
        Field::Kernels(list) => list.iter().map(kernel_to).collect(),
        Field::Shaders(list) => list.iter().map(shader_to).collect(),
        Field::Tensors(list) => list
            .iter()
            .map(|(name, tensor)| named_tensor(name, tensor))
            .collect(),
        Field::Symbols(list) => list
            .iter()
            .map(|(name, variables)| json!({"name": name, "variables": variables}))
            .collect(),
        Field::Networks(list) => list.iter().map(network_to).collect(),
        Field::Relay(executable) => json_vm::relay_to(executable),
        Field::Relax(executable) => json_vm::relax_to(executable),
        Field::StackVms(list) => list.iter().map(|(name, vm)| stackvm_to(name, vm)).collect(),
        // PAY-57: imports have no imports, so this is one level.
        Field::Imports(list) => list.iter().map(|import| import.to_json()).collect(),
    };
    object.insert(slot.name.into(), value);
}

/// Reads the value of a slot by its shape: the inverse of [`put_field`].
fn take_field(slot: &FormSlot, object: &JsonPlace<'_>) -> Result<Field<'static>, Violation> {
    let name = slot.name;
    Ok(match slot.shape {
        FieldShape::Text | FieldShape::Version | FieldShape::Base64 | FieldShape::Format(_) => {
            Field::Text(object.text(name)?)
        }
        FieldShape::Code => Field::Bytes(object.code()?),
        FieldShape::Binary => Field::Bytes(object.member(name)?.base64()?),
        FieldShape::Int => Field::Int(object.member(name)?.i32()?),
        FieldShape::Names => Field::Names(object.texts(name)?),
        // PAY-09: a repeated name is not an error here, because only a reader of bytes has to distinguish the forms.
        FieldShape::Functions | FieldShape::SilentFunctions => {
            Field::Functions(object.list(name, function_from)?)
        }
        FieldShape::Kernels => Field::Kernels(object.list(name, kernel_from)?),
        FieldShape::Shaders { .. } => Field::Shaders(object.list(name, shader_from)?),
        // PAY-34, PAY-40: both exist since 0.7, so only one way to count the bytes of a tensor is needed (TEN-31).
        FieldShape::Variables | FieldShape::Params => {
            Field::Tensors(object.list(name, |item| {
                Ok((item.text("name")?, tensor_from(&item, Sizing::V0_7)?))
            })?)
        }
        FieldShape::Symbols => Field::Symbols(object.list(name, |item| {
            Ok((item.text("name")?, item.texts("variables")?))
        })?),
        // PAY-48: sizes are read if the value has them. The writer checks whether the form allows them.
        FieldShape::Networks { .. } => Field::Networks(object.list(name, network_from)?),
        FieldShape::Relay => Field::Relay(Box::new(json_vm::relay_from(&object.member(name)?)?)),
        FieldShape::Relax => Field::Relax(Box::new(json_vm::relax_from(&object.member(name)?)?)),
        FieldShape::StackVms => Field::StackVms(object.list(name, stackvm_from)?),
        FieldShape::Imports => {
            Field::Imports(object.list(name, |item| Payload::from_json(item.value))?)
        }
    })
}

/// Adds code as `source` if it is text, otherwise as `data`. Text is UTF-8 without NUL.
fn put_code(bytes: &[u8], object: &mut Map<String, Value>) {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => object.insert("source".into(), text.into()),
        // NUL is valid UTF-8, but no source contains it: bytes with a NUL are a binary.
        _ => object.insert("data".into(), base64(bytes)),
    };
}

/// Returns `{"name", "info_name", "arg_types", "launch_param_tags", "arg_extra_tags"}`. Empty `info_name` and `arg_extra_tags` are left
/// out.
fn function_to(function: &DeviceFunction<'_>) -> Value {
    let DeviceFunction { key, info } = function;
    let types: Value = info
        .arg_types
        .iter()
        .map(|dtype| from_dtype(*dtype))
        .collect();
    let mut object = Map::new();
    object.insert("name".into(), json!(key));
    // PAY-07: the name is empty up to 0.23. Then it is left out, so that a value of 0.2 has no later member.
    if !info.name.is_empty() {
        object.insert("info_name".into(), json!(info.name));
    }
    object.insert("arg_types".into(), types);
    object.insert("launch_param_tags".into(), json!(info.launch_param_tags));
    // PAY-08: an empty list is as valid as zeros, but it has other bytes: an absent member is an empty list.
    if !info.arg_extra_tags.is_empty() {
        object.insert("arg_extra_tags".into(), json!(info.arg_extra_tags));
    }
    if let Some(second) = &info.second {
        let form = json!({
            "cuda_launch_fields": second.cuda_launch_fields,
            "cuda_kernel_attrs": second.cuda_kernel_attrs,
        });
        object.insert("second_form".into(), form);
    }
    Value::Object(object)
}

/// Reads a function: the inverse of [`function_to`]. Absent members are empty.
fn function_from(item: JsonPlace<'_>) -> Result<DeviceFunction<'static>, Violation> {
    let info_name = item
        .optional_member("info_name")
        .map(|name| name.as_text())
        .transpose()?;
    let extra = item
        .optional_member("arg_extra_tags")
        .map(|list| list.all(|tag| tag.i32()))
        .transpose()?;
    Ok(DeviceFunction {
        key: item.text("name")?,
        info: FunctionInfo {
            name: info_name.unwrap_or_default(),
            arg_types: item.list("arg_types", |item| item.dtype())?,
            // PAY-05, PAY-06: any text is accepted; tags are checked when the written bytes are read.
            launch_param_tags: item.texts("launch_param_tags")?,
            arg_extra_tags: extra.unwrap_or_default(),
            second: item
                .optional_member("second_form")
                .map(second_from)
                .transpose()?,
        },
    })
}

/// Reads `{"cuda_launch_fields", "cuda_kernel_attrs"}`, of which the second is a list of `[name, value]` (PAY-54).
fn second_from(item: JsonPlace<'_>) -> Result<SecondForm<'static>, Violation> {
    let attr = |pair: JsonPlace<'_>| {
        let both = pair.value.as_array().map(Vec::as_slice);
        let [name, value] = both.unwrap_or_default() else {
            return Err(pair.wrong("[name, value]"));
        };
        let name = JsonPlace::new(name, "cuda_kernel_attrs").as_text()?;
        Ok((name, JsonPlace::new(value, "cuda_kernel_attrs").i64()?))
    };
    Ok(SecondForm {
        cuda_launch_fields: item.texts("cuda_launch_fields")?,
        cuda_kernel_attrs: item.list("cuda_kernel_attrs", attr)?,
    })
}

/// Returns `{"name", "source" or "data"}`.
fn kernel_to(kernel: &KernelCode<'_>) -> Value {
    let mut object = Map::new();
    object.insert("name".into(), json!(kernel.name));
    put_code(&kernel.code, &mut object);
    Value::Object(object)
}

/// Reads a kernel: the inverse of [`kernel_to`].
fn kernel_from(item: JsonPlace<'_>) -> Result<KernelCode<'static>, Violation> {
    Ok(KernelCode {
        name: item.text("name")?,
        code: item.code()?,
    })
}

/// Returns `{"name", "flags", "spirv"}`: the words as little-endian bytes in base64.
fn shader_to(shader: &Shader<'_>) -> Value {
    json!({"name": shader.name, "flags": shader.flags, "spirv": base64(&shader.spirv)})
}

/// Reads a shader: the inverse of [`shader_to`]. Rejects a partial word (PAY-14).
fn shader_from(item: JsonPlace<'_>) -> Result<Shader<'static>, Violation> {
    // PAY-14: the file counts words, so a partial word could not be written.
    let spirv = item.member("spirv")?;
    let bytes = spirv.base64()?;
    if bytes.len() % 4 != 0 {
        return Err(spirv.wrong("whole words of 4 bytes"));
    }
    Ok(Shader {
        name: item.text("name")?,
        flags: item.member("flags")?.u32()?,
        spirv: bytes,
    })
}

/// Returns `{"name", "compiled", "inputs", "outputs"}`, and from form 0.10 on also `input_sizes` and `output_sizes` (PAY-48).
fn network_to(network: &Network<'_>) -> Value {
    let mut value = json!({
        "name": network.name, "compiled": base64(&network.compiled),
        "inputs": network.inputs, "outputs": network.outputs,
    });
    // PAY-49: inputs are never empty, so a network without sizes has form 0.7.
    if let (false, Some(object)) = (network.input_sizes.is_empty(), value.as_object_mut()) {
        object.insert("input_sizes".into(), json!(network.input_sizes));
        object.insert("output_sizes".into(), json!(network.output_sizes));
    }
    value
}

/// Reads a network: the inverse of [`network_to`]. Without sizes it has form 0.7.
fn network_from(item: JsonPlace<'_>) -> Result<Network<'static>, Violation> {
    let sizes = |name| {
        let list = item
            .optional_member(name)
            .map(|list| list.all(|size| size.u32()))
            .transpose();
        list.map(Option::unwrap_or_default)
    };
    Ok(Network {
        name: item.text("name")?,
        compiled: item.member("compiled")?.base64()?,
        // PAY-49: an empty list is accepted here, and rejected when the written bytes are read.
        inputs: item.list("inputs", |item| item.u32())?,
        input_sizes: sizes("input_sizes")?,
        outputs: item.list("outputs", |item| item.u32())?,
        output_sizes: sizes("output_sizes")?,
    })
}

/// Returns `{"name", "code", "texts", "extern_functions", "heap_names", "heap_size", "stack_size"}` (PAY-56).
fn stackvm_to(name: &str, vm: &StackVm<'_>) -> Value {
    json!({
        "name": name, "code": vm.code, "texts": vm.texts,
        "extern_functions": vm.extern_functions, "heap_names": vm.heap_names,
        "heap_size": vm.heap_size, "stack_size": vm.stack_size,
    })
}

/// Reads a StackVM function: the inverse of [`stackvm_to`].
fn stackvm_from(item: JsonPlace<'_>) -> Result<(Text<'static>, StackVm<'static>), Violation> {
    let vm = StackVm {
        code: item.list("code", |item| item.i32())?,
        texts: item.texts("texts")?,
        extern_functions: item.texts("extern_functions")?,
        heap_names: item.texts("heap_names")?,
        // PAY-56: the file uses 8 bytes, regardless of the writer's machine.
        heap_size: item.member("heap_size")?.u64()?,
        stack_size: item.member("stack_size")?.u64()?,
    };
    Ok((item.text("name")?, vm))
}

/// Returns a tensor in the form of chapter `tensor`, with its name as the first member.
fn named_tensor(name: &str, tensor: &TensorRecord<'_>) -> Value {
    let mut object = Map::new();
    object.insert("name".into(), name.into());
    if let Value::Object(tensor) = from_record(tensor) {
        object.extend(tensor);
    }
    Value::Object(object)
}
