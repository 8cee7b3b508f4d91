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
use super::function_info::{DeviceFunction, FunctionInfo};
use super::slot::{FieldShape, FormSlot};
use super::{
    Binary, KernelCode, KnownPayload, Network, PAY_01, Payload, Shader, StackVm, Text, json_vm,
    kind_info,
};
use crate::rule::{Kind, Violation};
use crate::tensor::json::{from_dtype, from_record, to_device, to_dtype};
use crate::tensor::{Device, Dtype, Sizing, TensorRecord};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

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
        let object = In::new(value, "payload");
        // PAY-01: the kind first: it decides which other members there are.
        let kind = object.text("kind")?;
        // Before the table: a kind whose grammar layout 0.22 does not have is opaque there as well.
        if let Some(bytes) = value.get("opaque") {
            return Ok(Payload::Opaque {
                kind,
                bytes: In::new(bytes, "opaque").base64()?,
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
///
/// # Errors
///
/// PAY-01 of kind type, with the path of what is missing or wrong; the rule that a tensor breaks.
fn take_field(slot: &FormSlot, object: &In<'_>) -> Result<Field<'static>, Violation> {
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
    Value::Object(object)
}

/// The inverse of [`function_to`]: what is absent is empty.
fn function_from(item: In<'_>) -> Result<DeviceFunction<'static>, Violation> {
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
        },
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
fn kernel_from(item: In<'_>) -> Result<KernelCode<'static>, Violation> {
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
fn shader_from(item: In<'_>) -> Result<Shader<'static>, Violation> {
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
fn network_from(item: In<'_>) -> Result<Network<'static>, Violation> {
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
fn stackvm_from(item: In<'_>) -> Result<(Text<'static>, StackVm<'static>), Violation> {
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

/// A tensor in the form of the chapter `tensor`.
///
/// # Errors
///
/// PAY-01 of kind type for a member that is missing or wrong; a rule of chapter `tensor` for a shape that its data does not fill.
pub(super) fn tensor_from(
    item: &In<'_>,
    sizing: Sizing,
) -> Result<TensorRecord<'static>, Violation> {
    let dtype = item.at("dtype")?.dtype()?;
    let shape = item.list("shape", |item| item.i64())?;
    let data = item.at("data")?.base64()?;
    // Held to its rules again: shape and data are apart in JSON, and may have been edited apart.
    let tensor = TensorRecord::new(dtype, &shape, data, sizing)?;
    let reserved = item.maybe("reserved").map(|word| word.u64()).transpose()?;
    Ok(tensor
        .with_device(item.at("device")?.device()?)
        .with_reserved(reserved.unwrap_or(0)))
}

/// Bytes in base64 of the standard alphabet, padded.
pub(super) fn base64(bytes: &[u8]) -> Value {
    Value::String(BASE64_STANDARD.encode(bytes))
}

/// A value that is not of its form: PAY-01, kind type, without an offset, because it was never bytes.
fn wrong(message: String) -> Violation {
    PAY_01.rejected(Kind::Type, message)
}

/// A JSON value that is read by a known form, and where it is.
pub(super) struct In<'v> {
    /// The value.
    pub(super) value: &'v Value,
    /// Its path from the payload, as messages show it.
    path: String,
}

impl<'v> In<'v> {
    /// A value that is at `path`, as messages show it: `payload.functions[0].name`.
    fn new(value: &'v Value, path: impl Into<String>) -> In<'v> {
        In {
            value,
            path: path.into(),
        }
    }

    /// The member `name`, if there is one.
    pub(super) fn maybe(&self, name: &str) -> Option<In<'v>> {
        // Null is as good as absent: other languages write members that have no value.
        let value = self.value.get(name).filter(|value| !value.is_null())?;
        Some(In::new(value, format!("{}.{name}", self.path)))
    }

    /// The member `name`.
    ///
    /// # Errors
    ///
    /// PAY-01 of kind type where it is absent.
    pub(super) fn at(&self, name: &str) -> Result<In<'v>, Violation> {
        self.maybe(name)
            .ok_or_else(|| wrong(format!("{} has no `{name}`", self.path)))
    }

    /// Every element through `read`.
    ///
    /// # Errors
    ///
    /// PAY-01 of kind type where this is no list; the first that `read` returns.
    pub(super) fn all<T>(
        &self,
        mut read: impl FnMut(In<'v>) -> Result<T, Violation>,
    ) -> Result<Vec<T>, Violation> {
        let list = self.value.as_array().ok_or_else(|| self.wrong("a list"))?;
        let items = list.iter().enumerate();
        items
            .map(|(index, item)| read(In::new(item, format!("{}[{index}]", self.path))))
            .collect()
    }

    /// Every element of member `name` through `read`.
    pub(super) fn list<T>(
        &self,
        name: &str,
        read: impl FnMut(In<'v>) -> Result<T, Violation>,
    ) -> Result<Vec<T>, Violation> {
        self.at(name)?.all(read)
    }

    /// The member `name`, a text.
    pub(super) fn text(&self, name: &str) -> Result<Text<'static>, Violation> {
        self.at(name)?.as_text()
    }

    /// The member `name`, a list of texts.
    pub(super) fn texts(&self, name: &str) -> Result<Vec<Text<'static>>, Violation> {
        self.list(name, |item| item.as_text())
    }

    /// This value, a text.
    pub(super) fn as_text(&self) -> Result<Text<'static>, Violation> {
        let text = self.value.as_str().ok_or_else(|| self.wrong("a text"))?;
        Ok(Cow::Owned(text.to_owned()))
    }

    /// This value, bytes in base64.
    ///
    /// # Errors
    ///
    /// PAY-01 of kind type for another value, and for base64 without its padding or with other letters.
    pub(super) fn base64(&self) -> Result<Binary<'static>, Violation> {
        let bytes = self
            .value
            .as_str()
            .and_then(|text| BASE64_STANDARD.decode(text).ok());
        // One reading of each text: padding and unused bits are those that writing makes.
        bytes.map(Cow::Owned).ok_or_else(|| self.wrong("base64"))
    }

    /// The bytes of `source`, where it is there, or of `data`.
    fn code(&self) -> Result<Binary<'static>, Violation> {
        // A text is the bytes of its UTF-8, whatever JSON escaped in it.
        if let Some(source) = self.maybe("source") {
            let text = source.as_text()?.into_owned();
            return Ok(Cow::Owned(text.into_bytes()));
        }
        self.at("data")?.base64()
    }

    /// This value, from -2^63 to 2^63 - 1.
    pub(super) fn i64(&self) -> Result<i64, Violation> {
        self.value
            .as_i64()
            .ok_or_else(|| self.wrong("a 64-bit integer"))
    }

    /// This value, from 0 to 2^64 - 1.
    pub(super) fn u64(&self) -> Result<u64, Violation> {
        self.value
            .as_u64()
            .ok_or_else(|| self.wrong("an unsigned 64-bit integer"))
    }

    /// This value, from -2^31 to 2^31 - 1.
    pub(super) fn i32(&self) -> Result<i32, Violation> {
        // By way of 64 bits: a number that does not fit is an error, not another number.
        i32::try_from(self.i64()?).map_err(|_| self.wrong("a 32-bit integer"))
    }

    /// This value, from 0 to 2^32 - 1.
    pub(super) fn u32(&self) -> Result<u32, Violation> {
        u32::try_from(self.u64()?).map_err(|_| self.wrong("an unsigned 32-bit integer"))
    }

    /// This value, a dtype as text or as `[code, bits, lanes]`.
    ///
    /// # Errors
    ///
    /// PAY-01 of kind type for another value.
    pub(super) fn dtype(&self) -> Result<Dtype, Violation> {
        to_dtype(self.value).map_err(|_| self.wrong("a dtype"))
    }

    /// `[type, index]`.
    pub(super) fn device(&self) -> Result<Device, Violation> {
        to_device(self.value).map_err(|_| self.wrong("[device type, index]"))
    }

    /// The violation of this value, which should have been what `expected` names.
    pub(super) fn wrong(&self, expected: &str) -> Violation {
        wrong(format!("{} is not {expected}", self.path))
    }
}
