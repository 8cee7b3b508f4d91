//! Operations of the chapter vm.

use crate::conformance::op::{self, Answer, Op, Refusal};
use crate::function::registry;
use crate::object::{Array, Shape, Tensor, extents_of, sequence_of};
use crate::release::Layout;
use crate::rule::Findings;
use crate::value::{Any, AnyView, cast, dtype_from_text, dtype_to_text, index};
use crate::vm::{Executable, Fault, Loaded, VirtualMachine, perform, triplets};
use crate::wire::Cursor;
use serde_json::{Value, json};
use std::sync::Arc;

/// What a case of this chapter can ask.
pub(crate) const OPS: &[Op] = &[
    Op {
        name: "vm.decode",
        help: "data: an executable as libraries of `layout` store it; its functions with their code, its constants, counts",
        run: decode,
    },
    Op {
        name: "vm.run",
        help: "data: an executable of layout 0.22; `devices`: arguments of vm_initialization ([1, 0, 2] if absent); `steps`: \
               lists of a name (a module function, a VM function, a builtin, or `tensor` with type, extents and base64) and \
               arguments, {\"ref\": n} being the result of step n; the results of all steps, as they are after the last one",
        run,
    },
];

fn decode(args: &Value) -> Result<Answer, Refusal> {
    let data = op::data(args)?;
    let layout = args.get("layout").and_then(Value::as_str).unwrap_or("0.22");
    let layout: Layout = layout.parse().map_err(Refusal::Unsupported)?;
    let mut findings = Findings::default();
    let mut cursor = Cursor::new(&data);
    let executable = Executable::read(layout, &mut cursor, &mut findings)?;
    cursor.finish("the executable", &mut findings)?;
    Ok(Answer::new(executable.to_json(), findings))
}

fn run(args: &Value) -> Result<Answer, Refusal> {
    let loaded = Arc::new(Loaded::from_bytes(op::data(args)?, Layout::V0_22)?);
    let devices = match args.get("devices").and_then(Value::as_array) {
        Some(numbers) => numbers
            .iter()
            .map(plain)
            .collect::<Result<Vec<Any>, Refusal>>()?,
        None => vec![1i64.into(), 0i64.into(), 2i64.into()],
    };
    let machine = triplets(&views(&devices))
        .and_then(|devices| VirtualMachine::with_allocators(loaded, Vec::new(), &devices))
        .map_err(refusal)?;
    let mut results: Vec<Any> = Vec::new();
    for step in args
        .get("steps")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let unclear =
            || Refusal::Unsupported(format!("step {step} is not a list that begins with a name"));
        let [name, values @ ..] = step.as_array().ok_or_else(unclear)?.as_slice() else {
            return Err(unclear());
        };
        let name = name.as_str().ok_or_else(unclear)?;
        let values: Vec<Any> = values
            .iter()
            .map(|value| argument(value, &results))
            .collect::<Result<_, Refusal>>()?;
        results.push(match name {
            "tensor" => tensor(&values)?,
            name => perform(&machine, name, &views(&values)).map_err(refusal)?,
        });
    }
    let shown: Result<Vec<Value>, Refusal> = results.iter().map(show).collect();
    Ok(Answer::new(shown?.into(), Findings::default()))
}

fn views(values: &[Any]) -> Vec<AnyView<'_>> {
    values.iter().map(Any::view).collect()
}

fn refusal(fault: Fault) -> Refusal {
    match fault.violation() {
        Some(broken) => Refusal::Rejected(broken.clone()),
        None => Refusal::Unsupported(format!("an error of no rule: {fault}")),
    }
}

/// A value: JSON's own; {"shape": [..]}, {"dtype": "float32"}, {"function": "global name"}, {"ref": n}; a list is a tuple.
fn argument(value: &Value, results: &[Any]) -> Result<Any, Refusal> {
    let bad = || Refusal::Unsupported(format!("{value} is no value of this chapter"));
    if let Some(items) = value.as_array() {
        let items: Result<Vec<Any>, Refusal> =
            items.iter().map(|item| argument(item, results)).collect();
        return Ok(Array::new(items?).into());
    }
    let Some(object) = value.as_object() else {
        return plain(value);
    };
    if let Some(at) = object.get("ref").and_then(Value::as_u64) {
        return results.get(at as usize).cloned().ok_or_else(bad);
    }
    if let Some(extents) = object.get("shape").and_then(Value::as_array) {
        let extents: Option<Vec<i64>> = extents.iter().map(Value::as_i64).collect();
        return Ok(Shape::new(&extents.ok_or_else(bad)?).into());
    }
    if let Some(name) = object.get("dtype").and_then(Value::as_str) {
        return Ok(dtype_from_text(name)?.into());
    }
    let name = object
        .get("function")
        .and_then(Value::as_str)
        .ok_or_else(bad)?;
    registry::lookup(name).map(Any::from).ok_or_else(bad)
}

fn plain(value: &Value) -> Result<Any, Refusal> {
    Ok(match value {
        Value::Null => Any::none(),
        Value::Bool(value) => (*value).into(),
        Value::String(text) => text.as_str().into(),
        Value::Number(number) => match number.as_i64() {
            Some(number) => number.into(),
            None => number.as_f64().unwrap_or(f64::NAN).into(),
        },
        _ => return Err(Refusal::Unsupported(format!("{value} is not plain"))),
    })
}

/// `tensor(type, extents, base64)`.
fn tensor(values: &[Any]) -> Result<Any, Refusal> {
    let bad = |_| Refusal::Unsupported("tensor takes a type, extents and base64".into());
    let [dtype, shape, data] = values else {
        return Err(bad(()));
    };
    let extents = extents_of(shape.view()).ok_or_else(|| bad(()))?;
    let text = cast::<String>(data.view())?;
    let bytes = op::data(&json!({ "data": text }))?;
    let tensor = Tensor::empty(extents, cast(dtype.view())?).map_err(|_| bad(()))?;
    tensor.fill(&bytes).map_err(|_| bad(()))?;
    Ok(tensor.into())
}

/// The JSON form of a result.
fn show(value: &Any) -> Result<Value, Refusal> {
    if let Some(items) = sequence_of(value.view()) {
        return items.iter().map(show).collect();
    }
    if let Some(extents) = extents_of(value.view()) {
        return Ok(json!({ "shape": extents }));
    }
    Ok(match value.type_index() {
        index::NONE => Value::Null,
        index::BOOL => (value.as_raw().int() != 0).into(),
        index::INT => value.as_raw().int().into(),
        index::FLOAT => value.as_raw().float().into(),
        index::DATA_TYPE => json!({ "dtype": dtype_to_text(value.as_raw().dtype())? }),
        index::TENSOR => {
            let tensor = cast::<Tensor>(value.view())?;
            let bytes = tensor
                .to_bytes()
                .map_err(|error| Refusal::Unsupported(error.to_string()))?;
            json!({
                "tensor": dtype_to_text(tensor.dl().dtype)?,
                "shape": tensor.shape(),
                "data": op::base64(&bytes),
            })
        }
        other => match cast::<String>(value.view()) {
            Ok(text) => text.into(),
            Err(_) => json!({ "object": crate::value::types::key_of(other) }),
        },
    })
}
