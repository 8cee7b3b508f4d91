//! `vm.run` on the Relax VM of a runtime.

use crate::conformance::runtime::ffi::api::Api;
use crate::conformance::runtime::ffi::held::{Held, Raised, bool_arg, int_arg};
use crate::conformance::runtime::ffi::{Reply, bytes, forms, tensors, told, unsupported};
use crate::value::{Payload, RawAny, index};
use serde_json::{Value, json};
use std::io::Write as _;

pub(in crate::conformance) fn run(api: &'static Api, args: &Value) -> Result<Reply, Reply> {
    let mut file = tempfile::NamedTempFile::new().map_err(skipped)?;
    file.write_all(&bytes(args)?).map_err(skipped)?;
    let path = api.text(&file.path().to_string_lossy())?;
    let load = "ffi.Module.load_from_file.relax.VMExecutable";
    let executable = api.call_global(load, &[path.raw])?;
    let make = function(api, &executable, "vm_load_executable")?;
    let machine = api.call(&make, &[])?;
    let devices = match args.get("devices").and_then(Value::as_array) {
        Some(numbers) => each(api, numbers, &[])?,
        None => [1, 0, 2].map(|number| api.share(int_arg(number))).into(),
    };
    let start = function(api, &machine, "vm_initialization")?;
    api.call(&start, &raw(&devices))?;
    let mut results: Vec<Held> = Vec::new();
    for step in args
        .get("steps")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let Some([Value::String(name), values @ ..]) = step.as_array().map(Vec::as_slice) else {
            let why = format!("step {step} is not a list that begins with a name");
            return Err(unsupported(why));
        };
        results.push(match name.as_str() {
            "tensor" => tensor(api, values)?,
            _ => {
                let values = each(api, values, &results)?;
                let called = match name.starts_with("vm.builtin.") {
                    true => global(api, name)?,
                    false => function(api, &machine, name)?,
                };
                api.call(&called, &raw(&values))?
            }
        });
    }
    let shown: Result<Vec<Value>, Reply> = results.iter().map(|value| show(api, value)).collect();
    told(shown?.into())
}

fn skipped(error: std::io::Error) -> Reply {
    Reply::Skipped(error.to_string())
}

fn raw(values: &[Held]) -> Vec<RawAny> {
    values.iter().map(|value| value.raw).collect()
}

fn global(api: &'static Api, name: &str) -> Result<Held, Reply> {
    let missing = || Raised::missing(&format!("function `{name}`"));
    Ok(api.global(name).ok_or_else(missing)?)
}

/// A function of a module. That there is none is an error of the step, as it is for everyone who asks for it.
fn function(api: &'static Api, module: &Held, name: &str) -> Result<Held, Reply> {
    let text = api.text(name)?;
    let args = [module.raw, text.raw, bool_arg(false)];
    let found = api.call_global("ffi.ModuleGetFunction", &args)?;
    if found.raw.type_index == index::FUNCTION {
        return Ok(found);
    }
    let (kind, message) = ("ValueError".to_owned(), format!("no function {name}"));
    Err(Raised {
        kind,
        message,
        broken: None,
    }
    .into())
}

fn each(api: &'static Api, values: &[Value], results: &[Held]) -> Result<Vec<Held>, Reply> {
    let values = values.iter();
    values.map(|value| argument(api, value, results)).collect()
}

/// The forms of the chapter: JSON's own; `{"shape"}`, `{"dtype"}`, `{"function"}`, `{"ref"}`; a list is a tuple.
fn argument(api: &'static Api, value: &Value, results: &[Held]) -> Result<Held, Reply> {
    let wrong = || unsupported(format!("{value} is no value of this chapter"));
    if let Some(items) = value.as_array() {
        let items = each(api, items, results)?;
        return Ok(api.call_global("ffi.Array", &raw(&items))?);
    }
    if let Some(at) = value.get("ref").and_then(Value::as_u64) {
        let held = results.get(at as usize).ok_or_else(wrong)?;
        return Ok(api.share(held.raw));
    }
    if let Some(name) = value.get("function").and_then(Value::as_str) {
        return global(api, name);
    }
    match value.as_f64().filter(|_| value.is_f64()) {
        Some(float) => Ok(api.share(RawAny::of(index::FLOAT, Payload { float }))),
        None => forms::make(api, value),
    }
}

/// `tensor(type, extents, base64)`.
fn tensor(api: &'static Api, values: &[Value]) -> Result<Held, Reply> {
    let [dtype, shape, data] = values else {
        return Err(unsupported("tensor takes a type, extents and base64"));
    };
    let form = json!({"dtype": dtype["dtype"], "shape": shape["shape"], "data": data});
    tensors::made(api, &form)
}

/// The form of a result, the other way round.
fn show(api: &'static Api, value: &Held) -> Result<Value, Reply> {
    Ok(match value.raw.type_index {
        index::FLOAT => json!(f64::from_bits(value.raw.bits())),
        index::TENSOR => {
            let shown = tensors::shown(value)?;
            json!({"tensor": shown["dtype"], "shape": shown["shape"], "data": shown["data"]})
        }
        index::ARRAY => {
            let size = api.call_global("ffi.ArraySize", &[value.raw])?.raw.int();
            let items: Result<Vec<Value>, Reply> = (0..size)
                .map(|at| {
                    let at = int_arg(at);
                    let item = api.call_global("ffi.ArrayGetItem", &[value.raw, at])?;
                    show(api, &item)
                })
                .collect();
            items?.into()
        }
        _ => forms::show(api, value)?,
    })
}
