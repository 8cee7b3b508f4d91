//! Operations of chapter value: cells, conversions, reference counts, types, texts, the old value model.

use super::{convert, driver, extension};
use crate::conformance::object::ops::tensor_or_plain;
use crate::conformance::op::{Answer, Handler, Op, OpError};
use crate::function::Function;
use crate::object::form::to_json;
use crate::release::Release;
use crate::rule::Findings;
use crate::tensor::{Device, Dtype};
use crate::value::header::{self, Header};
use crate::value::legacy::{self, TVMValue};
use crate::value::{
    Any, AnyView, Argument, DLTensor, ObjectRef, cast, device_from_text, index, str_bytes, types,
};
use serde_json::{Value, json};

/// All operations that a case of this chapter can request.
pub(crate) const OPS: &[Op] = &[
    Op {
        name: "value.cell",
        help: "value: the cell of a value: type key and index, auxiliary word, payload; of an object its header",
        run: Handler::Driven(driver::cell),
    },
    Op {
        name: "value.convert",
        help: "value, to (int, int32, bool, ...; spec/value.md lists them): the result of the conversion",
        run: Handler::Driven(convert::convert),
    },
    Op {
        name: "value.own",
        help: "value {c_str} or {byte_array} or {rvalue}: the owned value, and whether the slot is empty after",
        run: Handler::Driven(driver::own),
    },
    Op {
        name: "value.life",
        help: "value {weak, early (bool: one becomes strong before the end)}: the flags with which the deleter is called as references go",
        run: Handler::Driven(driver::life),
    },
    Op {
        name: "value.types",
        help: "value {new: [{key, parent, slots, overflow, depth}], ask: [[key, ancestor]], about: [[field | method, type, name, doc] | [metadata, type, doc] | [attr, type, name, value] | [show, type]]}: indices from the first one, and answers",
        run: Handler::Driven(driver::types),
    },
    Op {
        name: "value.dtype",
        help: "value, custom {name: code} (optional: the custom types of the process): text to [code, bits, lanes], or the other way",
        run: Handler::Driven(driver::dtype),
    },
    Op {
        name: "value.device",
        help: "value: text to [type, number]",
        run: Handler::Driven(driver::device),
    },
    Op {
        name: "value.legacy",
        help: "value {code, hex}: the value that 8 bytes and a type code of 0.2 to 0.20 stand for",
        run: Handler::Here(from_legacy),
    },
    Op {
        name: "value.legacy_code",
        help: "value (or {code}: returns the name of that code), release, back (bool: also returns the value that the argument is read as): the type code of a value up to 0.20",
        run: Handler::Here(to_legacy),
    },
    Op {
        name: "value.extension",
        help: "value {code, registered: whether a type of extensions has the code, use: argument, own, result or free}: how often a value of it is copied and destroyed, and whether the caller is returned one",
        run: Handler::Here(extension::run),
    },
];

/// Returns an answer without findings, because no operation of this chapter reads bytes that could cause one.
fn answer(value: Value) -> Result<Answer, OpError> {
    Ok(Answer::new(value, Findings::default()))
}

/// Returns the value of the request.
pub(super) fn value_of(args: &Value) -> Result<&Value, OpError> {
    args.get("value")
        .ok_or_else(|| OpError::Unsupported("the request has no value".into()))
}

/// Makes the value of a form, or a pointer from its address, which is never dereferenced.
fn any_of(args: &Value) -> Result<Any, OpError> {
    let form = value_of(args)?;
    if let Some(address) = form.get("pointer").and_then(Value::as_u64) {
        // SAFETY: a case only looks at the pointer and does not dereference it.
        return Ok(unsafe { Any::handle(address as *mut std::ffi::c_void) });
    }
    tensor_or_plain(form)
}

/// Returns a function that converts its argument to the type `to` and returns the result.
///
/// There is one function for each row of VAL-07 to VAL-13. This crate's runtime is asked directly, while a foreign runtime shows its
/// conversions by functions that it already has.
pub(in crate::conformance) fn converter(to: &str) -> Option<Function> {
    fn of<T: Argument>() -> Function
    where
        Any: From<T>,
    {
        Function::from_packed(|args| {
            let argument = args.first().copied().unwrap_or(AnyView::none());
            Ok(cast::<T>(argument).map(Any::from)?)
        })
    }
    Some(match to {
        "int" => of::<i64>(),
        "int32" => of::<i32>(),
        "bool" => of::<bool>(),
        "float" => of::<f64>(),
        "pointer" => Function::from_packed(|args| {
            let argument = args.first().copied().unwrap_or(AnyView::none());
            let pointer = cast::<*mut std::ffi::c_void>(argument)?;
            // The operation shows a null pointer as None (`spec/value.md`).
            if pointer.is_null() {
                return Ok(Any::none());
            }
            // SAFETY: a case only looks at the pointer and does not dereference it.
            Ok(unsafe { Any::handle(pointer) })
        }),
        "str" => of::<crate::value::Str>(),
        "bytes" => of::<crate::value::Bytes>(),
        "dtype" => of::<Dtype>(),
        "device" => of::<Device>(),
        "object" => of::<ObjectRef>(),
        "shape" => of::<crate::object::Shape>(),
        "array" => of::<crate::object::Array>(),
        "list" => of::<crate::object::List>(),
        "map" => of::<crate::object::Map>(),
        "function" => of::<Function>(),
        "optional-int" => of::<Option<i64>>(),
        _ => return None,
    })
}

/// Returns a function that reads a text as a device.
pub(in crate::conformance) fn device_reader() -> Function {
    Function::from_packed(|args| {
        let text = args.first().and_then(str_bytes).unwrap_or_default();
        Ok(device_from_text(&String::from_utf8_lossy(text))?.into())
    })
}

/// Returns a step for weak references of the object whose address is the argument. C++ code does these steps itself, and no C function
/// does. `add` and `drop` change the count. `upgrade` returns whether a weak reference becomes a strong one, which is then dropped.
pub(in crate::conformance) fn weak(step: &str) -> Option<Function> {
    fn of(step: fn(*mut Header) -> bool) -> Function {
        Function::from_packed(move |args| {
            let argument = args.first().copied().unwrap_or(AnyView::none());
            Ok(step(cast::<*mut std::ffi::c_void>(argument)?.cast()).into())
        })
    }
    Some(match step {
        "add" => of(|object| {
            // SAFETY: the driver holds a strong reference.
            unsafe { header::inc_weak(object) };
            true
        }),
        "drop" => of(|object| {
            // SAFETY: the driver has added a weak reference.
            unsafe { header::dec_weak(object) };
            true
        }),
        // SAFETY: the driver has added a weak reference.
        "upgrade" => of(|object| unsafe { header::upgrade(object) }.is_some()),
        _ => return None,
    })
}

/// Returns the release that the request must name.
fn release(args: &Value) -> Result<Release, OpError> {
    let text = args.get("release").and_then(Value::as_str);
    let text = text.ok_or_else(|| OpError::Unsupported("the request has no release".into()))?;
    text.parse().map_err(OpError::from)
}

/// Performs `value.legacy` (VAL-19, VAL-20). The hexadecimal digits are in memory order, so the padding after a narrow value is part of the
/// case.
fn from_legacy(args: &Value) -> Result<Answer, OpError> {
    let value = value_of(args)?;
    let code = value.get("code").and_then(Value::as_i64);
    let code = code.and_then(|code| i32::try_from(code).ok());
    let code = code.ok_or_else(|| OpError::Unsupported("the value has no type code".into()))?;
    let hex = value.get("hex").and_then(Value::as_str).unwrap_or("0");
    let bits = u64::from_str_radix(hex, 16)
        .map_err(|wrong| OpError::Unsupported(wrong.to_string()))?
        // The case states the bytes in memory order, unlike a hexadecimal number.
        .swap_bytes();
    let value = TVMValue {
        v_int64: bits as i64,
    };
    // SAFETY: cases only name codes whose value is in the eight bytes, or codes that are rejected before the value is read.
    let view = unsafe { legacy::view_of(value, code) }?;
    let key = types::key_of(view.type_index());
    answer(json!({"type": key, "value": to_json(view)}))
}

/// Performs `value.legacy_code` (VAL-19): shows the code, its name in errors, and with `back` the value that a callee of these releases
/// reads.
fn to_legacy(args: &Value) -> Result<Answer, OpError> {
    let release = release(args)?;
    let named = |code| json!({"code": code, "name": legacy::code_name(code, release)});
    if let Some(code) = value_of(args)?.get("code").and_then(Value::as_i64) {
        let code = i32::try_from(code).map_err(|wrong| OpError::Unsupported(wrong.to_string()))?;
        return answer(named(code));
    }
    let value = any_of(args)?;
    let (argument, code) = legacy::argument_of(&value.view(), release)?;
    let mut members = named(code);
    if args.get("back").and_then(Value::as_bool) == Some(true) {
        // SAFETY: the value and the code belong to one argument, and its target is held.
        let back = unsafe { legacy::view_of(argument, code) }?;
        let raw = *back.as_raw();
        members["back"] = match raw.type_index() {
            index::OPAQUE => json!({"pointer": raw.bits()}),
            index::DLTENSOR_PTR => {
                // SAFETY: this is the description in the tensor that is held.
                let tensor = unsafe { &*raw.ptr().cast::<DLTensor>() };
                // SAFETY: the description has as many extents as dimensions.
                json!({"tensor": unsafe { tensor.shape() }})
            }
            _ => to_json(back.to_any().view()),
        };
    }
    answer(members)
}
