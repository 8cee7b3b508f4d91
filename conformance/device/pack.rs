//! The operations `device.launch` and `device.pack`: the meaning of a kernel call, as data.

use super::forms::{integers, rejected_or, value};
use crate::conformance::op::{Answer, OpError};
use crate::device::launch::{Arg, ArgType, LaunchTags, Packed, WorkSizes};
use crate::device::{Dtype, Result as DeviceResult};
use serde_json::{Value, json};

/// Returns the launch of `{tags, args}`.
///
/// DEV-47 to DEV-49: the sizes of grid, block and cluster, shared memory, and the number of launch arguments after those of the
/// kernel.
pub(super) fn launch(args: &Value) -> Result<Answer, OpError> {
    let of = args.get("value").unwrap_or(&Value::Null);
    let tags = strings(of.get("tags"))?;
    let sizes = integers(of.get("args"))?;
    let launch = || -> DeviceResult<Value> {
        let tags = LaunchTags::parse(&tags)?;
        // Every member is named, so that a new one of `WorkSizes` does not compile until the answer contains it.
        let WorkSizes {
            grid,
            block,
            cluster,
            shared,
            cooperative,
            programmatic,
            dimensions,
        } = tags.sizes(&sizes)?;
        Ok(json!({
            "grid": grid, "block": block, "cluster": cluster, "shared": shared,
            "cooperative": cooperative, "programmatic": programmatic, "dimensions": dimensions,
            "arguments": tags.arguments(),
        }))
    };
    rejected_or(launch())
}

/// Returns the packed arguments of `{form, types, args}`, in hex. A handle is written `{"handle": number}`.
///
/// DEV-50 to DEV-53: `void` has one value each, as CUDA and OpenCL take them. `slots4` and `slots8` separate buffers and scalars,
/// for Vulkan and Metal up to 0.7 and since. `tight` and `aligned` are one block, for ROCm.
pub(super) fn pack(args: &Value) -> Result<Answer, OpError> {
    let of = args.get("value").unwrap_or(&Value::Null);
    let types = of
        .get("types")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let types: Vec<Dtype> = types.iter().map(dtype).collect::<Result<_, _>>()?;
    let args = of
        .get("args")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let args: Vec<Arg> = args.iter().map(arg).collect::<Result<_, _>>()?;
    let form = of.get("form").and_then(Value::as_str).unwrap_or_default();
    let packed = || -> DeviceResult<Packed> {
        // Types are read before the arguments, because DEV-53 rejects a type when the function is looked up, before any call.
        let types: Vec<ArgType> = types
            .iter()
            .map(|dtype| ArgType::from_dtype(*dtype))
            .collect::<DeviceResult<_>>()?;
        Packed::new(&types, &args)
    };
    let packed = match packed() {
        Ok(packed) => packed,
        Err(error) => return rejected_or::<Value>(Err(error)),
    };
    match form {
        "void" => Ok(value(
            packed.values().map(|(_, bytes)| hex(bytes)).collect(),
        )),
        "slots4" | "slots8" => {
            let width = if form == "slots4" { 4 } else { 8 };
            rejected_or(
                packed.buffers_and_scalars(width).map(
                    |(buffers, scalars)| json!({"buffers": buffers, "scalars": hex(&scalars)}),
                ),
            )
        }
        "tight" | "aligned" => Ok(value(hex(&packed.block(form == "aligned")))),
        _ => Err(OpError::Unsupported(format!("no form `{form}`"))),
    }
}

/// Returns bytes in hex, so that a case shows padding and byte order.
fn hex(bytes: &[u8]) -> Value {
    Value::String(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Reads an optional list of texts.
fn strings(list: Option<&Value>) -> Result<Vec<String>, OpError> {
    let list = list
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let text = |item: &Value| item.as_str().map(str::to_owned);
    list.iter()
        .map(text)
        .collect::<Option<_>>()
        .ok_or_else(|| OpError::Unsupported("a list of texts is missing".into()))
}

/// Parses a data type.
fn dtype(text: &Value) -> Result<Dtype, OpError> {
    let parsed = crate::value::dtype_from_text(text.as_str().unwrap_or_default());
    parsed.map_err(OpError::Rejected)
}

/// Reads a handle, an integer, or a fraction.
pub(super) fn arg(value: &Value) -> Result<Arg, OpError> {
    if let Some(handle) = value.get("handle").and_then(Value::as_u64) {
        return Ok(Arg::Handle(std::ptr::without_provenance_mut(
            handle as usize,
        )));
    }
    // DEV-50: a whole number is always read as an integer, because DEV-50 converts an integer for a float parameter.
    match (value.as_i64(), value.as_f64()) {
        (Some(number), _) => Ok(Arg::Int(number)),
        (None, Some(number)) if value.is_f64() => Ok(Arg::Float(number)),
        _ => Err(OpError::Unsupported(format!("{value} is not an argument"))),
    }
}
