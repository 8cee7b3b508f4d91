//! Values, their codes, and calls.

use super::{Reply, RuntimeReleases, unsupported};
use crate::conformance::runtime::RawHandle;
use crate::conformance::runtime::ffi::forms::{float, float_of};
use crate::conformance::runtime::legacy::{
    LegacyApi, LegacyArg, LegacyValue, c_text, int_arg, null_arg, text_arg,
};
use crate::release::Release;
use crate::tensor::{Device, Dtype};
use crate::value::legacy::{TVMValue, code, code_name};
use serde_json::{Value, json};
use std::ffi::c_int;

/// Passes a value through a function that returns its argument.
///
/// A callback of this crate returns the value. It crosses the interface twice, and the runtime chooses the code of the result.
pub(super) fn echo(api: &'static LegacyApi, arg: LegacyArg) -> Result<LegacyValue, Reply> {
    let function = api.function(delete_exported, api)?;
    api.call(&function, &[arg])
}

/// Runs `value.legacy`: returns eight bytes under a code, as they come back.
///
/// Codes of objects are never passed, because the runtime would dereference the eight bytes of the case (VAL-20).
pub(super) fn value(api: &'static LegacyApi, args: &Value) -> Result<Reply, Reply> {
    let part = |key: &str| args.pointer(&format!("/value/{key}"));
    let type_code = part("code").and_then(Value::as_i64).unwrap_or(0);
    let type_code =
        c_int::try_from(type_code).map_err(|_| unsupported("the code is not 32 bits"))?;
    let hex = part("hex").and_then(Value::as_str).unwrap_or("0");
    let bits = u64::from_str_radix(hex, 16).map_err(|wrong| unsupported(wrong.to_string()))?;
    match type_code {
        code::OBJECT | code::MODULE | code::FUNCTION | code::NDARRAY | code::RVALUE => {
            return Err(unsupported(
                "this runtime has objects of 0.20 and before, and would follow the pointer",
            ));
        }
        code::INT | code::FLOAT | code::NULL | code::DATA_TYPE | code::DEVICE | code::BOOL => {}
        _ => {
            return Err(unsupported(
                "an unknown code matters only where it becomes a value of 0.21 and later",
            ));
        }
    }
    // The case states the bytes in the order of memory.
    let v_int64 = bits.swap_bytes().cast_signed();
    let returned = echo(api, (TVMValue { v_int64 }, type_code))?;
    let (name, value) = match returned.code {
        code::STR if type_code == code::DATA_TYPE => {
            ("DataType", json!({"dtype": returned.text()?}))
        }
        code::INT => ("int", json!(returned.int())),
        code::FLOAT => {
            // SAFETY: the code says that it is a float.
            let number = unsafe { returned.value.v_float64 };
            ("float", json!({"float": float(number)}))
        }
        code::BOOL => ("bool", json!(returned.int() != 0)),
        code::NULL => ("None", Value::Null),
        code::DEVICE => {
            // SAFETY: the code says that it is a device.
            let device = unsafe { returned.value.v_device };
            let pair = [device.kind, device.id];
            ("Device", json!({"device": pair}))
        }
        other => ("other", json!({"code": other})),
    };
    Ok(Reply::Ok {
        value: json!({"type": name, "value": value}),
        findings: None,
    })
}

/// Runs `value.legacy_code`: returns the code under which the runtime returns a value, and its name for that code.
pub(super) fn code_of(
    api: &'static LegacyApi,
    stands: RuntimeReleases,
    args: &Value,
) -> Result<Reply, Reply> {
    let release = args.get("release").and_then(Value::as_str).unwrap_or("0.8");
    let release: Release = release
        .parse()
        .map_err(|_| unsupported(format!("no release {release}")))?;
    // From 0.18 on a bool has its own code; before, it is returned as an integer.
    let bool_has_a_code = |release: Release| release >= Release::of(18);
    let value = args.get("value").unwrap_or(&Value::Null);
    let other_era = value.is_boolean() && bool_has_a_code(release) != bool_has_a_code(stands.last);
    if release < Release::of(8) || other_era {
        return Err(unsupported(format!(
            "the case tests the behaviour of {release}"
        )));
    }
    if args.get("back").and_then(Value::as_bool) == Some(true) {
        return Err(unsupported(
            "the runtime reads the arguments without the interface",
        ));
    }
    let text = c_text(value.as_str().unwrap_or_default());
    let named = value.get("code").and_then(Value::as_i64);
    let named = named.and_then(|code| c_int::try_from(code).ok());
    let arg = match value {
        // With these codes the runtime does not dereference the pointer.
        _ if matches!(named, Some(code::HANDLE | code::DLTENSOR | code::BYTES)) => {
            (TVMValue::ZERO, named.unwrap_or(code::NULL))
        }
        Value::Null => null_arg(),
        // The bool is one that the runtime itself returns.
        Value::Bool(_) => {
            let returned = api.call_global("runtime.RuntimeEnabled", &[text_arg(c"cpu")])?;
            (returned.value, returned.code)
        }
        Value::Number(number) => int_arg(number.as_i64().unwrap_or(0)),
        Value::String(_) => text_arg(&text),
        Value::Object(form) => plain(form.iter().next())?,
        Value::Array(_) => return Err(unsupported(ONLY_PLAIN)),
    };
    Ok(Reply::Ok {
        value: json!({"code": arg.1, "name": name_of(api, arg)?}),
        findings: None,
    })
}

/// The reason why a form is unsupported here.
const ONLY_PLAIN: &str = "the case is about a value that this interface does not have";

/// Returns the argument of a form with one member: a float, a device or a data type.
fn plain(form: Option<(&String, &Value)>) -> Result<LegacyArg, Reply> {
    let none = || unsupported(ONLY_PLAIN);
    let (key, value) = form.ok_or_else(none)?;
    let number = |at: usize| value.get(at).and_then(Value::as_i64)?.try_into().ok();
    // All eight bytes are written, whichever member is set below.
    let mut arg = TVMValue { v_int64: 0 };
    let code = match key.as_str() {
        "float" => {
            arg.v_float64 = float_of(value).ok_or_else(none)?;
            code::FLOAT
        }
        "device" => {
            arg.v_device = Device {
                kind: number(0).ok_or_else(none)?,
                id: number(1).ok_or_else(none)?,
            };
            code::DEVICE
        }
        "dtype" => {
            arg.v_type = Dtype::INT8;
            code::DATA_TYPE
        }
        _ => return Err(none()),
    };
    Ok((arg, code))
}

/// Returns the runtime's name for a code. Its error names the code when it expects a module and gets another value.
fn name_of(api: &'static LegacyApi, arg: LegacyArg) -> Result<String, Reply> {
    let wanted = "expected ";
    let returned = match arg.1 {
        // Null would be a missing module. Only where a text is expected does the error name it.
        code::NULL => api.call_global("runtime.RuntimeEnabled", &[arg]),
        _ => api.call_global("runtime.ModuleGetTypeKey", &[arg]),
    };
    let Err(Reply::Reject(rejection)) = returned else {
        return Err(unsupported("a wrong argument is accepted"));
    };
    let message = rejection.message;
    let name = message
        .rsplit_once(wanted)
        .and_then(|(_, rest)| rest.split_once(" but got "))
        .map(|(_, name)| {
            name.split_whitespace()
                .next()
                .unwrap_or_default()
                .to_owned()
        });
    match name {
        Some(name) => Ok(name.trim_end_matches(['.', ',']).to_owned()),
        // Some releases call codes object types.
        None if arg.1 == code::NULL => Ok(code_name(code::NULL, Release::of(8))),
        None => Err(unsupported(format!(
            "the message does not name the type: {message}"
        ))),
    }
}

/// Returns its first argument.
unsafe extern "C-unwind" fn delete_exported(
    values: *mut TVMValue,
    codes: *mut c_int,
    count: c_int,
    result: RawHandle,
    this: RawHandle,
) -> c_int {
    if count < 1 {
        return -1;
    }
    // SAFETY: it was made with the interface, which is never freed.
    let api: &'static LegacyApi = unsafe { &*this.cast::<LegacyApi>() };
    // SAFETY: there is one argument.
    let value = unsafe { *values };
    // SAFETY: there is one argument, and each has a code.
    let code = unsafe { *codes };
    // SAFETY: the result is that of this callback.
    unsafe { api.set_result(result, (value, code)) }
}
