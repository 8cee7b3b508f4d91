//! The JSON form of a payload: what `payload.decode` answers and `payload.encode` takes. `spec/payload.md` fixes it.
//!
//! | value | JSON |
//! |---|---|
//! | string that is text | string |
//! | bytes | base64 |
//! | code | `source` where it is UTF-8 without NUL, else `data` in base64 |
//! | dtype, device, tensor | as in chapter tensor |
//! | list or map | array, in the order of the file |
//! | opaque payload | `opaque`: all bytes in base64 |

use super::field::Field;
use super::function_info::{DeviceFunction, FunctionInfo, SecondForm};
use super::json_in::{JsonPlace, base64, tensor_from, wrong};
use super::slot::{FieldShape, FormSlot};
use super::{
    KernelCode, KnownPayload, Network, PAY_01, Payload, Shader, StackVm, Text, json_vm, kind_info,
};
use crate::rule::{Kind, Violation};
use crate::tensor::json::{from_dtype, from_record};
use crate::tensor::{Sizing, TensorRecord};
use serde_json::{Map, Value, json};

impl Payload<'_> {
    /// The JSON form. `form` is named where the kind has several.
    pub fn to_json(&self) -> Value {
        let mut object = Map::new();
        object.insert("kind".into(), self.kind().into());
        match self {
            Payload::Opaque { bytes, .. } => {
                object.insert("opaque".into(), base64(bytes));
            }
            Payload::Known(known) => {
                // PAY-09: named only where the kind alone does not tell.
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

    /// From the JSON form; without `form` the newest.
    ///
    /// # Errors
    ///
    /// PAY-01 when the value is not of that form, with the path of what is missing or wrong.
    pub fn from_json(value: &Value) -> Result<Payload<'static>, Violation> {
        let object = JsonPlace::new(value, "payload");
        // PAY-01: the kind first: it decides which other members there are.
        let kind = object.text("kind")?;
        // Before the table: a kind whose grammar layout 0.22 does not have is opaque there as well.
        if let Some(bytes) = value.get("opaque") {
            return Ok(Payload::Opaque {
                kind,
                bytes: JsonPlace::new(bytes, "opaque").base64()?,
            });
        }
        let info = kind_info(&kind).ok_or_else(|| {
            wrong(format!(
                "no grammar for kind `{kind}`: give its bytes as `opaque`"
            ))
        })?;
        // PAY-09 in reverse: a value without a form is one of the newest, as the newest is what reading prefers.
        let form = match value.get("form").and_then(Value::as_str) {
            // PAY-01: a form of another layout is accepted: which layout it is for is known when it is written.
            Some(name) => info.forms.iter().find(|form| form.name == name),
            None => info.forms.first(),
        };
        let form = form.ok_or_else(|| {
            let message = format!("kind `{kind}` has no form {}", value["form"]);
            PAY_01.rejected(Kind::Unsupported, message)
        })?;
        // By the slots and not by the members: what the form does not have is not looked at.
        let fields = form.slots.iter().map(|slot| take_field(slot, &object));
        let fields = fields.collect::<Result<_, _>>()?;
        Ok(Payload::Known(KnownPayload::new(info, form, fields)))
    }
}

/// Adds what `slot` holds to the members of `object`, under the name of the slot; code under `source` or `data`.
fn put_field(slot: &FormSlot, field: &Field<'_>, object: &mut Map<String, Value>) {
    let value = match field {
        // Not under the name of the slot: the name of the member says whether it is text or base64.
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

/// The inverse of [`put_field`], by the shape of the slot.
fn take_field(slot: &FormSlot, object: &JsonPlace<'_>) -> Result<Field<'static>, Violation> {
    let name = slot.name;
    Ok(match slot.shape {
        FieldShape::Text | FieldShape::Version | FieldShape::Base64 | FieldShape::Format(_) => {
            Field::Text(object.text(name)?)
        }
        FieldShape::Code => Field::Bytes(object.code()?),
        FieldShape::Binary => Field::Bytes(object.at(name)?.base64()?),
        FieldShape::Int => Field::Int(object.at(name)?.i32()?),
        FieldShape::Names => Field::Names(object.texts(name)?),
        // PAY-09: only reading has to tell forms apart, so that a name which repeats is no error here.
        FieldShape::Functions | FieldShape::SilentFunctions => {
            Field::Functions(object.list(name, function_from)?)
        }
        FieldShape::Kernels => Field::Kernels(object.list(name, kernel_from)?),
        FieldShape::Shaders { .. } => Field::Shaders(object.list(name, shader_from)?),
        // PAY-34, PAY-40: both came with 0.7, and with them one way to count the bytes of a tensor (TEN-31).
        FieldShape::Variables | FieldShape::Params => {
            Field::Tensors(object.list(name, |item| {
                Ok((item.text("name")?, tensor_from(&item, Sizing::V0_7)?))
            })?)
        }
        FieldShape::Symbols => Field::Symbols(object.list(name, |item| {
            Ok((item.text("name")?, item.texts("variables")?))
        })?),
        // PAY-48: with sizes where the value has them; whether the form has is for the writer.
        FieldShape::Networks { .. } => Field::Networks(object.list(name, network_from)?),
        FieldShape::Relay => Field::Relay(Box::new(json_vm::relay_from(&object.at(name)?)?)),
        FieldShape::Relax => Field::Relax(Box::new(json_vm::relax_from(&object.at(name)?)?)),
        FieldShape::StackVms => Field::StackVms(object.list(name, stackvm_from)?),
        FieldShape::Imports => {
            Field::Imports(object.list(name, |item| Payload::from_json(item.value))?)
        }
    })
}

/// Code is `source` when it is text, `data` when not. Text is UTF-8 without NUL.
fn put_code(bytes: &[u8], object: &mut Map<String, Value>) {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => object.insert("source".into(), text.into()),
        // NUL is valid UTF-8, and no source has one: bytes with one are a binary that happens to be text.
        _ => object.insert("data".into(), base64(bytes)),
    };
}

/// `{"name", "info_name", "arg_types", "launch_param_tags", "arg_extra_tags"}`; the second and last only where there are any.
fn function_to(function: &DeviceFunction<'_>) -> Value {
    let DeviceFunction { key, info } = function;
    let types: Value = info
        .arg_types
        .iter()
        .map(|dtype| from_dtype(*dtype))
        .collect();
    let mut object = Map::new();
    object.insert("name".into(), json!(key));
    // PAY-07: empty up to 0.23, and left out, so that a value of 0.2 has no member that came later.
    if !info.name.is_empty() {
        object.insert("info_name".into(), json!(info.name));
    }
    object.insert("arg_types".into(), types);
    object.insert("launch_param_tags".into(), json!(info.launch_param_tags));
    // PAY-08: none is as good as zeros, and not the same bytes: absent is none.
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

/// The inverse of [`function_to`]: what is absent is empty.
fn function_from(item: JsonPlace<'_>) -> Result<DeviceFunction<'static>, Violation> {
    let info_name = item
        .maybe("info_name")
        .map(|name| name.as_text())
        .transpose()?;
    let extra = item
        .maybe("arg_extra_tags")
        .map(|list| list.all(|tag| tag.i32()))
        .transpose()?;
    Ok(DeviceFunction {
        key: item.text("name")?,
        info: FunctionInfo {
            name: info_name.unwrap_or_default(),
            arg_types: item.list("arg_types", |item| item.dtype())?,
            // PAY-05, PAY-06: any text: tags are held to their rules when the written bytes are read.
            launch_param_tags: item.texts("launch_param_tags")?,
            arg_extra_tags: extra.unwrap_or_default(),
            second: item.maybe("second_form").map(second_from).transpose()?,
        },
    })
}

/// `{"cuda_launch_fields", "cuda_kernel_attrs"}`, the second a list of `[name, value]` (PAY-54).
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

/// `{"name", "source" or "data"}`.
fn kernel_to(kernel: &KernelCode<'_>) -> Value {
    let mut object = Map::new();
    object.insert("name".into(), json!(kernel.name));
    put_code(&kernel.code, &mut object);
    Value::Object(object)
}

/// The inverse of [`kernel_to`].
fn kernel_from(item: JsonPlace<'_>) -> Result<KernelCode<'static>, Violation> {
    Ok(KernelCode {
        name: item.text("name")?,
        code: item.code()?,
    })
}

/// `{"name", "flags", "spirv"}`: the words as bytes, little endian, in base64.
fn shader_to(shader: &Shader<'_>) -> Value {
    json!({"name": shader.name, "flags": shader.flags, "spirv": base64(&shader.spirv)})
}

/// The inverse of [`shader_to`], which rejects a part of a word (PAY-14).
fn shader_from(item: JsonPlace<'_>) -> Result<Shader<'static>, Violation> {
    // PAY-14: the file counts words, so that a part of one could not be written.
    let spirv = item.at("spirv")?;
    let bytes = spirv.base64()?;
    if bytes.len() % 4 != 0 {
        return Err(spirv.wrong("whole words of 4 bytes"));
    }
    Ok(Shader {
        name: item.text("name")?,
        flags: item.at("flags")?.u32()?,
        spirv: bytes,
    })
}

/// `{"name", "compiled", "inputs", "outputs"}`, and from form 0.10 on `input_sizes` and `output_sizes` (PAY-48).
fn network_to(network: &Network<'_>) -> Value {
    let mut value = json!({
        "name": network.name, "compiled": base64(&network.compiled),
        "inputs": network.inputs, "outputs": network.outputs,
    });
    // PAY-49: inputs are never empty, so that a network without sizes is one of form 0.7.
    if let (false, Some(object)) = (network.input_sizes.is_empty(), value.as_object_mut()) {
        object.insert("input_sizes".into(), json!(network.input_sizes));
        object.insert("output_sizes".into(), json!(network.output_sizes));
    }
    value
}

/// The inverse of [`network_to`]: without sizes it is a network of form 0.7.
fn network_from(item: JsonPlace<'_>) -> Result<Network<'static>, Violation> {
    let sizes = |name| {
        let list = item
            .maybe(name)
            .map(|list| list.all(|size| size.u32()))
            .transpose();
        list.map(Option::unwrap_or_default)
    };
    Ok(Network {
        name: item.text("name")?,
        compiled: item.at("compiled")?.base64()?,
        // PAY-49: an empty list is accepted here, and rejected when the written bytes are read.
        inputs: item.list("inputs", |item| item.u32())?,
        input_sizes: sizes("input_sizes")?,
        outputs: item.list("outputs", |item| item.u32())?,
        output_sizes: sizes("output_sizes")?,
    })
}

/// `{"name", "code", "texts", "extern_functions", "heap_names", "heap_size", "stack_size"}` (PAY-56).
fn stackvm_to(name: &str, vm: &StackVm<'_>) -> Value {
    json!({
        "name": name, "code": vm.code, "texts": vm.texts,
        "extern_functions": vm.extern_functions, "heap_names": vm.heap_names,
        "heap_size": vm.heap_size, "stack_size": vm.stack_size,
    })
}

/// The inverse of [`stackvm_to`].
fn stackvm_from(item: JsonPlace<'_>) -> Result<(Text<'static>, StackVm<'static>), Violation> {
    let vm = StackVm {
        code: item.list("code", |item| item.i32())?,
        texts: item.texts("texts")?,
        extern_functions: item.texts("extern_functions")?,
        heap_names: item.texts("heap_names")?,
        // PAY-56: 8 bytes in the file, whatever a machine of the writer had.
        heap_size: item.at("heap_size")?.u64()?,
        stack_size: item.at("stack_size")?.u64()?,
    };
    Ok((item.text("name")?, vm))
}

/// A tensor in the form of the chapter `tensor`, with its name in front.
fn named_tensor(name: &str, tensor: &TensorRecord<'_>) -> Value {
    let mut object = Map::new();
    object.insert("name".into(), name.into());
    // The name first, and then the members of the tensor beside it.
    if let Value::Object(tensor) = from_record(tensor) {
        object.extend(tensor);
    }
    Value::Object(object)
}
