//! The JSON forms of this chapter; `spec/schema/rpc.json` fixes them.

use super::code::RpcCode;
use super::packed::PackedValue;
use super::packet::{CopyTarget, Packet};
use super::tensor_block::TensorBlock;
use crate::release::ParseError;
use crate::tensor::json::{from_device, from_dtype, to_device, to_dtype};
use crate::wire::json::{float_form, object};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// `{"code": .., ..}`; the code is null for a packet of nothing.
///
/// The code is its name (RPC-20); the other members are those of the body. [`to_packet`] is the way back.
pub fn from_packet(packet: &Packet<'_>) -> Value {
    let code = packet.code().map(RpcCode::name);
    let mut form = Map::new();
    form.insert("code".into(), json!(code));
    let mut put = |name: &str, value: Value| form.insert(name.into(), value);
    match packet {
        // RPC-11, RPC-14: neither has a body.
        Packet::KeepAlive | Packet::Shutdown => {}
        Packet::InitServer(version, args) => {
            put("version", text(version));
            put("args", from_values(args));
        }
        Packet::CallFunc(function, args) => {
            put("function", json!(function));
            put("args", from_values(args));
        }
        Packet::Return(args) | Packet::Exception(args) | Packet::SystemCall(_, args) => {
            put("args", from_values(args));
        }
        Packet::CopyFromRemote(target, bytes) => {
            put("from", from_target(target));
            put("bytes", json!(bytes));
        }
        Packet::CopyToRemote(target, data) => {
            put("to", from_target(target));
            put("data", base64(data));
        }
        Packet::CopyAck(data) => {
            put("data", base64(data));
        }
    }
    Value::Object(form)
}

/// The list of values, in order.
fn from_values(values: &[PackedValue<'_>]) -> Value {
    values.iter().map(from_value).collect()
}

/// A value as an object whose first member says what it is; null for none (RPC-43).
fn from_value(value: &PackedValue<'_>) -> Value {
    match value {
        PackedValue::None => Value::Null,
        PackedValue::Int(value) => object([("int", json!(value))]),
        PackedValue::Uint(value) => object([("uint", json!(value))]),
        PackedValue::Bool(value) => object([("bool", json!(value))]),
        PackedValue::Float(value) => object([("float", float_form(*value))]),
        PackedValue::Handle(handle) => object([("handle", json!(handle))]),
        // RPC-45: padding that is 0, as it should be, has no member.
        PackedValue::Dtype(dtype, 0) => object([("dtype", from_dtype(*dtype))]),
        PackedValue::Dtype(dtype, padding) => {
            object([("dtype", from_dtype(*dtype)), ("padding", json!(padding))])
        }
        PackedValue::Device(device) => object([("device", from_device(*device))]),
        PackedValue::Tensor(block) => object([("tensor", from_block(block))]),
        PackedValue::Str(bytes) => object([("str", text(bytes))]),
        PackedValue::Bytes(bytes) => object([("bytes", base64(bytes))]),
        PackedValue::Module(handle) => object([("module", json!(handle))]),
        PackedValue::Function(handle) => object([("function", json!(handle))]),
        // RPC-49: readers go by the inner index; the outer one is kept so that the bytes can be written again.
        PackedValue::Object(handle, index) => {
            object([("object", json!(handle)), ("index", json!(index))])
        }
        // RPC-47: by value as `str` is; `index` tells the two apart.
        PackedValue::StrObject(bytes, index) => {
            object([("str", text(bytes)), ("index", json!(index))])
        }
        PackedValue::BytesObject(bytes, index) => {
            object([("bytes", base64(bytes)), ("index", json!(index))])
        }
    }
}

/// A tensor without its data (RPC-30).
fn from_block(block: &TensorBlock) -> Value {
    object([
        ("data", json!(block.data)),
        ("device", from_device(block.device)),
        ("dtype", from_dtype(block.dtype)),
        ("shape", json!(block.shape)),
        ("byte_offset", json!(block.byte_offset)),
    ])
}

/// What is copied (RPC-25): a tensor, or up to 0.7 an allocation, distinguished by the member `handle`.
fn from_target(target: &CopyTarget) -> Value {
    match target {
        CopyTarget::Block(block) => from_block(block),
        // RPC-25: up to 0.7 a copy names an allocation and a place in it, and no tensor.
        CopyTarget::Flat(handle, offset, device, dtype) => object([
            ("handle", json!(handle)),
            ("offset", json!(offset)),
            ("device", from_device(*device)),
            ("dtype", from_dtype(*dtype)),
        ]),
    }
}

/// Text as it is; other bytes as `{"base64": ..}`.
///
/// A string on the wire is any bytes (WIRE-04).
fn text(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!(text),
        // JSON text is UTF-8: other bytes would not come back as they were.
        Err(_) => object([("base64", base64(bytes))]),
    }
}

/// Standard base64, with padding.
fn base64(bytes: &[u8]) -> Value {
    Value::String(BASE64_STANDARD.encode(bytes))
}

/// The packet of a form.
///
/// # Errors
///
/// A [`ParseError`] that names the member which is missing or of another type, or the code that is none.
pub fn to_packet(form: &Value) -> Result<Packet<'static>, ParseError> {
    // Null is the packet of nothing (RPC-11); an absent code is a mistake.
    let Some(name) = form.get("code").and_then(Value::as_str) else {
        return match form.get("code") {
            Some(Value::Null) => Ok(Packet::KeepAlive),
            _ => Err(ParseError::new("`code` is not a name of a code")),
        };
    };
    let code = RpcCode::named(name)
        .ok_or_else(|| ParseError::new(format!("there is no code `{name}`")))?;
    // Read where a code has arguments only: copies and Shutdown have none.
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
        // Whether a release has the code, and these arguments, is for the writer to say (RPC-20, RPC-28).
        code => Packet::SystemCall(code, args()?),
    })
}

/// The values of a list.
fn to_values(list: &Value) -> Result<Vec<PackedValue<'static>>, ParseError> {
    let list = list.as_array().ok_or("`args` is not a list")?;
    list.iter().map(to_value).collect()
}

/// The value of a form, by its first member.
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
    // Objects keep their order: `index` and `padding` come behind the member that says what the value is.
    let first = members.keys().next().map(String::as_str);
    Ok(match (first.unwrap_or_default(), index) {
        ("int", _) => PackedValue::Int(signed(form, "int")?),
        ("uint", _) => PackedValue::Uint(number(form, "uint")?),
        // RPC-46: all of its 64 bits, so that an odd one is written as it was read.
        ("bool", _) => PackedValue::Bool(signed(form, "bool")?),
        ("float", _) => PackedValue::Float(float(members.get("float"))?),
        ("handle", _) => PackedValue::Handle(number(form, "handle")?),
        ("dtype", _) => {
            let dtype = to_dtype(members.get("dtype").unwrap_or(&Value::Null))?;
            // RPC-45: it is absent where it is 0.
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
        // RPC-43: text is a C string, or with an index a string object by value; bytes likewise.
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

/// The tensor of a form.
fn to_block(form: &Value) -> Result<TensorBlock, ParseError> {
    let shape = form.get("shape").and_then(Value::as_array);
    let shape = shape.and_then(|list| list.iter().map(Value::as_i64).collect());
    Ok(TensorBlock {
        data: number(form, "data")?,
        device: to_device(form.get("device").unwrap_or(&Value::Null))?,
        dtype: to_dtype(form.get("dtype").unwrap_or(&Value::Null))?,
        shape: shape.ok_or("`shape` is not a list of integers")?,
        // RPC-30: it is there in every release, and 0 up to 0.7.
        byte_offset: number(form, "byte_offset")?,
    })
}

/// What is copied, in member `name` of a packet.
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

/// The unsigned number in member `name`.
fn number(form: &Value, name: &str) -> Result<u64, ParseError> {
    let number = form.get(name).and_then(Value::as_u64);
    number.ok_or_else(|| ParseError::new(format!("`{name}` is not a number of 64 bits")))
}

/// The signed number in member `name`.
fn signed(form: &Value, name: &str) -> Result<i64, ParseError> {
    let number = form.get(name).and_then(Value::as_i64);
    number.ok_or_else(|| ParseError::new(format!("`{name}` is not an integer")))
}

/// The number of 32 bits in member `name`: a type index, or padding.
fn narrow(form: &Value, name: &str) -> Result<i32, ParseError> {
    let number = signed(form, name)?;
    i32::try_from(number).map_err(|_| ParseError::new(format!("`{name}` has more than 32 bits")))
}

/// A float; JSON has no form for four of them, which are words.
fn float(form: Option<&Value>) -> Result<f64, ParseError> {
    match form {
        // An integer is a float here: many writers print 1.0 as 1.
        Some(Value::Number(number)) => number.as_f64().ok_or_else(|| ParseError::new("no float")),
        Some(Value::String(word)) => match word.as_str() {
            "nan" => Ok(f64::NAN),
            "inf" => Ok(f64::INFINITY),
            "-inf" => Ok(f64::NEG_INFINITY),
            // A zero that is written as a number loses its sign in many readers.
            "-0" => Ok(-0.0),
            _ => Err(ParseError::new(format!("`{word}` is not a float"))),
        },
        _ => Err(ParseError::new("`float` is not a float")),
    }
}

/// The bytes of text in member `name`: a string, or `{"base64": ..}` for what is not UTF-8.
fn to_text(form: &Value, name: &str) -> Result<Cow<'static, [u8]>, ParseError> {
    match form.get(name) {
        Some(Value::String(text)) => Ok(Cow::Owned(text.clone().into_bytes())),
        // What is not UTF-8 is an object of base64.
        Some(bytes) => to_bytes(bytes, "base64"),
        None => Err(ParseError::new(format!("`{name}` is missing"))),
    }
}

/// The bytes in member `name`, in base64.
fn to_bytes(form: &Value, name: &str) -> Result<Cow<'static, [u8]>, ParseError> {
    let text = form.get(name).and_then(Value::as_str);
    let bytes = text.and_then(|text| BASE64_STANDARD.decode(text).ok());
    bytes
        .map(Cow::Owned)
        .ok_or_else(|| ParseError::new(format!("`{name}` is not base64")))
}
