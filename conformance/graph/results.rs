//! Results of an executor, as the cases of chapter graph show them.

use super::tensors::tensor_shown;
use crate::conformance::adapter::{Reply, legacy::modules};
use crate::conformance::runtime::ffi::{forms::plain_float, unsupported};
use crate::conformance::runtime::legacy::{LegacyApi, LegacyArg, LegacyValue, int_arg};
use crate::value::legacy::code;
use serde_json::{Map, Value, json};

/// Converts a result to the form of the chapter's cases.
pub(super) fn shown(api: &'static LegacyApi, result: &LegacyValue) -> Result<Value, Reply> {
    Ok(match result.code {
        code::NULL => Value::Null,
        code::INT => json!(result.int()),
        code::BOOL => json!(result.int() != 0),
        // SAFETY: the code says that it is a float.
        code::FLOAT => plain_float(unsafe { result.value.v_float64 }),
        code::STR => json!(result.text()?),
        code::BYTES => json!({"bytes": result.bytes().map_or(0, <[u8]>::len)}),
        code::MODULE => json!({"module": executor_kind(modules::kind_of(api, result)?)}),
        code::NDARRAY | code::DLTENSOR => result.tensor().map_or(Value::Null, tensor_shown),
        code::OBJECT => object_shown(api, result)?,
        other => json!({"code": other}),
    })
}

/// Returns the kind of a module with the names of 0.8 and later, which cases use.
fn executor_kind(kind: String) -> String {
    match kind.as_str() {
        "GraphRuntime" => "GraphExecutor".to_owned(),
        "GraphRuntimeFactory" => "GraphExecutorFactory".to_owned(),
        _ => kind,
    }
}

/// Converts a container, whose type is found by trying the functions that take it.
fn object_shown(api: &'static LegacyApi, result: &LegacyValue) -> Result<Value, Reply> {
    if let Some(show) = api.suite_function("graph.show") {
        let text = api.call(&show, &[result.arg()])?.text()?;
        return serde_json::from_str(&text).map_err(|wrong| unsupported(wrong.to_string()));
    }
    let of =
        |name: &str, more: &[LegacyArg]| api.call_global(name, &[&[result.arg()], more].concat());
    if let Ok(text) = of("runtime.GetFFIString", &[]) {
        return Ok(json!(text.text()?));
    }
    // Unlike the others, `MapItems` does not check the type of its argument.
    if of("runtime.MapSize", &[]).is_ok() {
        let items = shown(api, &of("runtime.MapItems", &[])?)?;
        let items = items.as_array().cloned().unwrap_or_default();
        let pairs = items.chunks_exact(2).map(|pair| {
            let name = pair[0].as_str().unwrap_or_default().to_owned();
            (name, pair[1].clone())
        });
        return Ok(Value::Object(pairs.collect::<Map<_, _>>()));
    }
    for (size, item) in [
        ("runtime.ArraySize", "runtime.ArrayGetItem"),
        ("runtime.GetShapeTupleSize", "runtime.GetShapeTupleElem"),
    ] {
        if let Ok(size) = of(size, &[]) {
            let items = (0..size.int()).map(|at| shown(api, &of(item, &[int_arg(at)])?));
            return Ok(Value::Array(items.collect::<Result<_, Reply>>()?));
        }
    }
    Err(unsupported("a result is an object that no function shows"))
}
