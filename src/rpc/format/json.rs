//! The JSON forms of this chapter; `spec/schema/rpc.json` fixes them.

use super::code::RpcCode;
use super::packed::PackedValue;
use super::packet::{CopyTarget, Packet};
use super::tensor_block::TensorBlock;
use crate::release::{ParseError, Releases};
use crate::tensor::Dtype;
use crate::tensor::json::{from_device, from_dtype, from_dtype_in, to_device, to_dtype};
use crate::wire::json::{float_form, object};
use base64::display::Base64Display;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_core::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Value, json};
use std::borrow::Cow;

/// Converts a packet to `{"code": .., ..}`; the code is null for an empty packet.
///
/// The code is its name (RPC-20); the other members are those of the body. [`to_packet`] is the inverse.
pub fn from_packet(packet: &Packet<'_>) -> Value {
    json!(packet)
}

/// Writes the form of [`from_packet`] piece by piece, because a form of a packet takes many times the memory of its bytes.
impl Serialize for Packet<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Form(self, None).serialize(serializer)
    }
}

impl Packet<'_> {
    /// Returns the form of [`from_packet`] for people. Types have the names of the releases of `era`, and both names if their codes were
    /// assigned twice (TEN-02). [`to_packet`] does not accept those names.
    pub fn in_era(&self, era: Releases) -> impl Serialize {
        Form(self, Some(era))
    }
}

/// The form of a value, with the releases that name the types. Without releases the newest release names them.
struct Form<'v, T: ?Sized>(&'v T, Option<Releases>);

impl<T: ?Sized> Form<'_, T> {
    /// Returns the form of a part.
    fn for_part<'p, P: ?Sized>(&self, part: &'p P) -> Form<'p, P> {
        Form(part, self.1)
    }

    fn dtype(&self, dtype: Dtype) -> Value {
        match self.1 {
            Some(era) => from_dtype_in(dtype, era),
            None => from_dtype(dtype),
        }
    }
}

impl Serialize for Form<'_, Packet<'_>> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let packet = self.0;
        let mut form = serializer.serialize_map(None)?;
        form.serialize_entry("code", &packet.code().map(RpcCode::name))?;
        match packet {
            // RPC-11, RPC-14: neither has a body.
            Packet::KeepAlive | Packet::Shutdown => {}
            Packet::InitServer(version, args) => {
                form.serialize_entry("version", &Text(version))?;
                form.serialize_entry("args", &self.for_part(args.as_slice()))?;
            }
            Packet::CallFunc(function, args) => {
                form.serialize_entry("function", function)?;
                form.serialize_entry("args", &self.for_part(args.as_slice()))?;
            }
            Packet::Return(args) | Packet::Exception(args) | Packet::SystemCall(_, args) => {
                form.serialize_entry("args", &self.for_part(args.as_slice()))?;
            }
            Packet::CopyFromRemote(target, bytes) => {
                form.serialize_entry("from", &self.for_part(target))?;
                form.serialize_entry("bytes", bytes)?;
            }
            Packet::CopyToRemote(target, data) => {
                form.serialize_entry("to", &self.for_part(target))?;
                form.serialize_entry("data", &Base64(data))?;
            }
            Packet::CopyAck(data) => form.serialize_entry("data", &Base64(data))?,
        }
        form.end()
    }
}

impl Serialize for Form<'_, [PackedValue<'_>]> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|value| self.for_part(value)))
    }
}

/// A value is an object whose first member states its kind, or null for none (RPC-43).
impl Serialize for Form<'_, PackedValue<'_>> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if *self.0 == PackedValue::None {
            return serializer.serialize_unit();
        }
        let mut form = serializer.serialize_map(None)?;
        match self.0 {
            PackedValue::None => {}
            PackedValue::Int(value) => form.serialize_entry("int", value)?,
            PackedValue::Uint(value) => form.serialize_entry("uint", value)?,
            PackedValue::Bool(value) => form.serialize_entry("bool", value)?,
            PackedValue::Float(value) => form.serialize_entry("float", &float_form(*value))?,
            PackedValue::Handle(handle) => form.serialize_entry("handle", handle)?,
            PackedValue::Dtype(dtype, padding) => {
                form.serialize_entry("dtype", &self.dtype(*dtype))?;
                // RPC-45: padding of 0, the valid value, has no member.
                if *padding != 0 {
                    form.serialize_entry("padding", padding)?;
                }
            }
            PackedValue::Device(device) => form.serialize_entry("device", &from_device(*device))?,
            PackedValue::Tensor(block) => form.serialize_entry("tensor", &self.for_part(block))?,
            PackedValue::Str(bytes) => form.serialize_entry("str", &Text(bytes))?,
            PackedValue::Bytes(bytes) => form.serialize_entry("bytes", &Base64(bytes))?,
            PackedValue::Module(handle) => form.serialize_entry("module", handle)?,
            PackedValue::Function(handle) => form.serialize_entry("function", handle)?,
            // RPC-49: readers use the inner index; the outer one is kept so that the same bytes can be written again.
            PackedValue::Object(handle, index) => {
                form.serialize_entry("object", handle)?;
                form.serialize_entry("index", index)?;
            }
            // RPC-47: a string by value, like `str`; the member `index` tells the two apart.
            PackedValue::StrObject(bytes, index) => {
                form.serialize_entry("str", &Text(bytes))?;
                form.serialize_entry("index", index)?;
            }
            PackedValue::BytesObject(bytes, index) => {
                form.serialize_entry("bytes", &Base64(bytes))?;
                form.serialize_entry("index", index)?;
            }
        }
        form.end()
    }
}

/// A tensor without its data (RPC-30).
impl Serialize for Form<'_, TensorBlock> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let block = self.0;
        let mut form = serializer.serialize_map(Some(5))?;
        form.serialize_entry("data", &block.data)?;
        form.serialize_entry("device", &from_device(block.device))?;
        form.serialize_entry("dtype", &self.dtype(block.dtype))?;
        form.serialize_entry("shape", &block.shape)?;
        form.serialize_entry("byte_offset", &block.byte_offset)?;
        form.end()
    }
}

/// The target of a copy (RPC-25): a tensor, or up to 0.7 an allocation, which has the member `handle`.
impl Serialize for Form<'_, CopyTarget> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            CopyTarget::Block(block) => self.for_part(block).serialize(serializer),
            // RPC-25: up to 0.7 a copy names an allocation and an offset in it, not a tensor.
            CopyTarget::Flat(handle, offset, device, dtype) => object([
                ("handle", json!(handle)),
                ("offset", json!(offset)),
                ("device", from_device(*device)),
                ("dtype", self.dtype(*dtype)),
            ])
            .serialize(serializer),
        }
    }
}

/// UTF-8 text as a string; other bytes as `{"base64": ..}`.
///
/// A string on the wire may hold any bytes (WIRE-04).
struct Text<'b>(&'b [u8]);

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => {
                // JSON text is UTF-8: other bytes would be changed by a round trip.
                let mut form = serializer.serialize_map(Some(1))?;
                form.serialize_entry("base64", &Base64(self.0))?;
                form.end()
            }
        }
    }
}

/// Standard base64, with padding.
struct Base64<'b>(&'b [u8]);

impl Serialize for Base64<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Base64Display::new(self.0, &BASE64_STANDARD))
    }
}

/// Reads the packet of a form.
///
/// # Errors
///
/// A [`ParseError`] that names the member that is missing or has another type, or the unknown code.
pub fn to_packet(form: &Value) -> Result<Packet<'static>, ParseError> {
    // Null is the empty packet (RPC-11); an absent code is an error.
    let Some(name) = form.get("code").and_then(Value::as_str) else {
        return match form.get("code") {
            Some(Value::Null) => Ok(Packet::KeepAlive),
            _ => Err(ParseError::new("`code` is not a name of a code")),
        };
    };
    let code = RpcCode::from_name(name)
        .ok_or_else(|| ParseError::new(format!("there is no code `{name}`")))?;
    // Read only for codes with arguments: copies and Shutdown have no arguments.
    let args = || to_values(form.get("args").unwrap_or(&Value::Null));
    Ok(match code {
        RpcCode::Shutdown => Packet::Shutdown,
        RpcCode::InitServer => Packet::InitServer(to_text(form, "version")?, args()?),
        RpcCode::CallFunc => Packet::CallFunc(number(form, "function")?, args()?),
        RpcCode::Return => Packet::Return(args()?),
        RpcCode::Exception => Packet::Exception(args()?),
        RpcCode::CopyFromRemote => {
            Packet::CopyFromRemote(to_target(form, "from")?, number(form, "bytes")?)
        }
        RpcCode::CopyToRemote => {
            Packet::CopyToRemote(to_target(form, "to")?, to_bytes(form, "data")?)
        }
        RpcCode::CopyAck => Packet::CopyAck(to_bytes(form, "data")?),
        // The writer checks whether a release has the code with these arguments (RPC-20, RPC-28).
        code => Packet::SystemCall(code, args()?),
    })
}

/// Reads the values of a list.
fn to_values(list: &Value) -> Result<Vec<PackedValue<'static>>, ParseError> {
    let list = list.as_array().ok_or("`args` is not a list")?;
    list.iter().map(to_value).collect()
}

/// Reads the value of a form, by its first member.
fn to_value(form: &Value) -> Result<PackedValue<'static>, ParseError> {
    let Some(members) = form.as_object() else {
        return match form {
            Value::Null => Ok(PackedValue::None),
            _ => Err(ParseError::new(format!("{form} is not a value"))),
        };
    };
    let index = match members.get("index") {
        None => None,
        Some(_) => Some(narrow(form, "index")?),
    };
    // Objects keep their order: `index` and `padding` follow the member that states the kind of the value.
    let first = members.keys().next().map(String::as_str);
    Ok(match (first.unwrap_or_default(), index) {
        ("int", _) => PackedValue::Int(signed(form, "int")?),
        ("uint", _) => PackedValue::Uint(number(form, "uint")?),
        // RPC-46: all 64 bits, so that an odd value is written as it was read.
        ("bool", _) => PackedValue::Bool(signed(form, "bool")?),
        ("float", _) => PackedValue::Float(float(members.get("float"))?),
        ("handle", _) => PackedValue::Handle(number(form, "handle")?),
        ("dtype", _) => {
            let dtype = to_dtype(members.get("dtype").unwrap_or(&Value::Null))?;
            // RPC-45: the member is absent if the padding is 0.
            let padding = match members.get("padding") {
                None => 0,
                Some(_) => narrow(form, "padding")?,
            };
            PackedValue::Dtype(dtype, padding)
        }
        ("device", _) => {
            PackedValue::Device(to_device(members.get("device").unwrap_or(&Value::Null))?)
        }
        ("tensor", _) => {
            PackedValue::Tensor(to_block(members.get("tensor").unwrap_or(&Value::Null))?)
        }
        // RPC-43: a text without an index is a C string, with an index a string object by value; likewise for bytes.
        ("str", None) => PackedValue::Str(to_text(form, "str")?),
        ("str", Some(index)) => PackedValue::StrObject(to_text(form, "str")?, index),
        ("bytes", None) => PackedValue::Bytes(to_bytes(form, "bytes")?),
        ("bytes", Some(index)) => PackedValue::BytesObject(to_bytes(form, "bytes")?, index),
        ("module", _) => PackedValue::Module(number(form, "module")?),
        ("function", _) => PackedValue::Function(number(form, "function")?),
        ("object", Some(index)) => PackedValue::Object(number(form, "object")?, index),
        _ => return Err(ParseError::new(format!("{form} is not a value"))),
    })
}

/// Reads the tensor of a form.
fn to_block(form: &Value) -> Result<TensorBlock, ParseError> {
    let shape = form.get("shape").and_then(Value::as_array);
    let shape = shape.and_then(|list| list.iter().map(Value::as_i64).collect());
    Ok(TensorBlock {
        data: number(form, "data")?,
        device: to_device(form.get("device").unwrap_or(&Value::Null))?,
        dtype: to_dtype(form.get("dtype").unwrap_or(&Value::Null))?,
        shape: shape.ok_or("`shape` is not a list of integers")?,
        // RPC-30: the member exists in every release, and is 0 up to 0.7.
        byte_offset: number(form, "byte_offset")?,
    })
}

/// Reads the target of a copy from member `name` of a packet.
fn to_target(form: &Value, name: &str) -> Result<CopyTarget, ParseError> {
    let target = form
        .get(name)
        .ok_or_else(|| ParseError::new(format!("`{name}` is missing")))?;
    // A tensor has `data` and no `handle`.
    if target.get("handle").is_none() {
        return to_block(target).map(CopyTarget::Block);
    }
    Ok(CopyTarget::Flat(
        number(target, "handle")?,
        number(target, "offset")?,
        to_device(target.get("device").unwrap_or(&Value::Null))?,
        to_dtype(target.get("dtype").unwrap_or(&Value::Null))?,
    ))
}

/// Reads the unsigned number in member `name`.
fn number(form: &Value, name: &str) -> Result<u64, ParseError> {
    let number = form.get(name).and_then(Value::as_u64);
    number.ok_or_else(|| ParseError::new(format!("`{name}` is not a number of 64 bits")))
}

/// Reads the signed number in member `name`.
fn signed(form: &Value, name: &str) -> Result<i64, ParseError> {
    let number = form.get(name).and_then(Value::as_i64);
    number.ok_or_else(|| ParseError::new(format!("`{name}` is not an integer")))
}

/// Reads the 32-bit number in member `name`: a type index, or padding.
fn narrow(form: &Value, name: &str) -> Result<i32, ParseError> {
    let number = signed(form, name)?;
    i32::try_from(number).map_err(|_| ParseError::new(format!("`{name}` has more than 32 bits")))
}

/// Reads a float. JSON has no form for four values, which are words.
fn float(form: Option<&Value>) -> Result<f64, ParseError> {
    match form {
        // An integer is a float here: many writers print 1.0 as 1.
        Some(Value::Number(number)) => number.as_f64().ok_or_else(|| ParseError::new("no float")),
        Some(Value::String(word)) => match word.as_str() {
            "nan" => Ok(f64::NAN),
            "inf" => Ok(f64::INFINITY),
            "-inf" => Ok(f64::NEG_INFINITY),
            // Many readers lose the sign of a zero that is written as a number.
            "-0" => Ok(-0.0),
            _ => Err(ParseError::new(format!("`{word}` is not a float"))),
        },
        _ => Err(ParseError::new("`float` is not a float")),
    }
}

/// Reads text in member `name`: a string, or `{"base64": ..}` for bytes that are not UTF-8.
fn to_text(form: &Value, name: &str) -> Result<Cow<'static, [u8]>, ParseError> {
    match form.get(name) {
        Some(Value::String(text)) => Ok(Cow::Owned(text.clone().into_bytes())),
        // Bytes that are not UTF-8 are an object with base64.
        Some(bytes) => to_bytes(bytes, "base64"),
        None => Err(ParseError::new(format!("`{name}` is missing"))),
    }
}

/// Reads the base64 bytes in member `name`.
fn to_bytes(form: &Value, name: &str) -> Result<Cow<'static, [u8]>, ParseError> {
    let text = form.get(name).and_then(Value::as_str);
    let bytes = text.and_then(|text| BASE64_STANDARD.decode(text).ok());
    bytes
        .map(Cow::Owned)
        .ok_or_else(|| ParseError::new(format!("`{name}` is not base64")))
}
