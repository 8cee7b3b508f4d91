//! Operations of chapter object: containers, text, comparison, JSON, the JSON graph.

use super::{driver, layout, script, visits};
use crate::conformance::function::ops::rejection;
use crate::conformance::op::{Answer, Handler, Op, OpError};
use crate::conformance::runtime::case_numbers::numbers_of;
use crate::conformance::runtime::ffi::tensors;
use crate::function::{Error, Function, take_broken};
use crate::object::form::{from_json, to_json};
use crate::object::hash::any_hash;
use crate::object::json_graph::ffi;
use crate::object::json_graph::legacy::{LegacyGraph, RELEASES as LEGACY, form as legacy_form};
use crate::object::{Tensor, construct};
use crate::release::Release;
use crate::rule::Findings;
use crate::tensor::Dtype;
use crate::value::{Any, AnyView, str_bytes};
use serde_json::{Value, json};

/// All operations that a case of this chapter can request.
pub(crate) const OPS: &[Op] = &[
    Op {
        name: "object.decode",
        help: "data: the nodes of a JSON graph of 0.2 to 0.21, of known and unknown types",
        run: Handler::Here(|args| {
            let data = crate::conformance::op::data(args)?;
            let mut findings = Findings::default();
            let graph = LegacyGraph::read(&data, &mut findings)?;
            Ok(Answer::new(legacy_form::to_json(&graph)?, findings))
        }),
    },
    Op {
        name: "object.encode",
        help: "value, release (optional: rejects nodes that this release does not have): the text of the nodes",
        run: Handler::Here(|args| {
            let graph = legacy_form::from_json(value_of(args)?).map_err(|wrong| match wrong {
                legacy_form::FormError::Form(what) => what.into(),
                legacy_form::FormError::Broken(broken) => OpError::Rejected(broken),
            })?;
            let text = graph.write(release(args)?)?;
            Ok(Answer::new(
                crate::conformance::op::base64(&text),
                Findings::default(),
            ))
        }),
    },
    Op {
        name: "object.from_legacy_graph",
        help: "value, numbers (bool: checks OBJ-36 for every node, also for unused ones): the value of the JSON graph of 0.2 to 0.21",
        run: Handler::Here(|args| {
            // The text forms and hooks of builtin types must be registered before a graph can name one.
            crate::object::init();
            let source = value_of(args)?;
            let source = source
                .as_str()
                .map_or_else(|| source.to_string(), str::to_owned);
            let mut findings = Findings::default();
            let read = match args.get("numbers").and_then(Value::as_bool) {
                Some(true) => LegacyGraph::verify_known,
                _ => LegacyGraph::read,
            };
            let graph = read(source.as_bytes(), &mut findings)?;
            // As in `answer_about_value`: otherwise the rule of an earlier failure would be reported for this value.
            drop(take_broken());
            finish(graph.value().map(|value| to_json(value.view())))
        }),
    },
    Op {
        name: "object.to_legacy_graph",
        help: "value, release: the JSON graph of 0.2 to 0.21 as that release writes it, as text",
        run: Handler::Here(|args| {
            let release = release(args)?.unwrap_or(LEGACY.until);
            answer_about_value(args, |value| {
                let graph = LegacyGraph::from_value(value, release)?;
                let text = graph.write(Some(release))?;
                Ok(String::from_utf8_lossy(&text).into())
            })
        }),
    },
    Op {
        name: "object.hash",
        help: "value: the hash that maps use, in hexadecimal",
        run: Handler::Driven(layout::home),
    },
    Op {
        name: "object.equal",
        help: "value [left, right]: whether maps take them for the same key",
        run: Handler::Driven(driver::equal),
    },
    Op {
        name: "object.hooked",
        help: "value {form (number, cell, function), numbers}: a dict whose keys are equal if their last digits are: its pairs, and the value found for each digit",
        run: Handler::Driven(driver::hooked),
    },
    Op {
        name: "object.layout",
        help: "value: size and capacity of a sequence; form, slots and marks of a map",
        run: Handler::Driven(layout::layout),
    },
    Op {
        name: "object.element",
        help: "value [sequence, index]: the element",
        run: Handler::Driven(driver::element),
    },
    Op {
        name: "object.dict",
        help: "value [[set, key, value] | [remove, key]]: the pairs in order, after all steps",
        run: Handler::Driven(driver::dict),
    },
    Op {
        name: "object.script",
        help: "value [[function, argument, ...]]: calls registered functions, methods and attributes in turn, and reads and writes fields; {of: n} is the result of step n. The results, an error as {raises: kind}, and {alive: n} if n probes outlive all results",
        run: Handler::Driven(script::script),
    },
    Op {
        name: "object.repr",
        help: "value: the text form",
        run: Handler::Driven(driver::repr),
    },
    Op {
        name: "object.recursive_equal",
        help: "value [left, right]: equality by contents",
        run: Handler::Driven(driver::recursive_equal),
    },
    Op {
        name: "object.recursive_compare",
        help: "value [left, right]: order by contents, -1, 0 or 1",
        run: Handler::Driven(driver::recursive_compare),
    },
    Op {
        name: "object.recursive_hash",
        help: "value: hash by contents, in hexadecimal",
        run: Handler::Driven(driver::recursive_hash),
    },
    Op {
        name: "object.structural_hash",
        help: "value: structural hash, in hexadecimal",
        run: Handler::Driven(driver::structural_hash),
    },
    Op {
        name: "object.structural_equal",
        help: "value [left, right]: structural equality",
        run: Handler::Driven(driver::structural_equal),
    },
    Op {
        name: "object.make",
        help: "value [type key, name, value, ...]: makes an object and prints it",
        run: Handler::Driven(driver::object),
    },
    Op {
        name: "object.dlpack",
        help: "value {shape, strides, align, offset, contiguous, padded}: whether a float32 tensor of DLPack is taken over",
        run: Handler::Driven(tensors::dlpack),
    },
    Op {
        name: "object.json_parse",
        help: "value: JSON text to a value",
        run: Handler::Driven(driver::json_parse),
    },
    Op {
        name: "object.json_print",
        help: "value, indent: JSON text of a value",
        run: Handler::Driven(driver::json_print),
    },
    Op {
        name: "object.to_graph",
        help: "value, metadata, cycle (bool: the list is put into itself first): the JSON graph as text",
        run: Handler::Driven(driver::to_graph),
    },
    Op {
        name: "object.walk",
        help: "value, order (pre or post), answers {text form: answer of the callback}: text forms in the order of the visits",
        run: Handler::Driven(visits::walk),
    },
    Op {
        name: "object.rewrite",
        help: "value, add, shared (bool: a second holder of the value): the value with every integer increased, and the value of the other holder",
        run: Handler::Driven(visits::rewrite),
    },
    Op {
        name: "object.from_graph",
        help: "value or data, check (bool: only checks rules that need no type): the value of a JSON graph",
        run: Handler::Driven(driver::from_graph),
    },
];

/// Returns the release that the request names, if any.
fn release(args: &Value) -> Result<Option<Release>, OpError> {
    let text = args.get("release").and_then(Value::as_str);
    let release = text.map(str::parse).transpose();
    release.map_err(OpError::from)
}

/// Returns the value of the request.
fn value_of(args: &Value) -> Result<&Value, OpError> {
    args.get("value")
        .ok_or_else(|| OpError::Unsupported("the request has no value".into()))
}

/// Makes a value of a case. `{"make": [type key, name, value, ...]}` is an object, `{"tensor": shape}` is a tensor of zeros.
fn any(form: &Value) -> Result<Any, OpError> {
    let failed = |error: Error| OpError::Unsupported(error.to_string());
    if let Some(parts) = form.get("make").and_then(Value::as_array) {
        let parts: Vec<Any> = parts.iter().map(any).collect::<Result<_, _>>()?;
        let views: Vec<AnyView<'_>> = parts.iter().map(Any::view).collect();
        return construct::make_object(&views).map_err(failed);
    }
    tensor_or_plain(form)
}

/// Makes a tensor of zeros from `{"tensor": shape}`, and a value of `spec/values.md` from any other form.
pub(in crate::conformance) fn tensor_or_plain(form: &Value) -> Result<Any, OpError> {
    if let Some(shape) = form.get("tensor").and_then(Value::as_array) {
        return zeros(shape);
    }
    Ok(from_json(form)?)
}

/// Creates a tensor of float32 zeros on the CPU, with the shape that a case states.
fn zeros(shape: &[Value]) -> Result<Any, OpError> {
    let failed = |error: Error| OpError::Unsupported(error.to_string());
    let shape = numbers_of(shape)?;
    let tensor = Tensor::empty(&shape, Dtype::FLOAT32).map_err(failed)?;
    tensor.fill(&vec![0; tensor.nbytes()]).map_err(failed)?;
    Ok(tensor.into())
}

/// Turns a result into an answer, a rejection with its rule, or the kind of an error that no rule of this crate names.
fn finish(result: Result<Value, Error>) -> Result<Answer, OpError> {
    match result {
        Ok(value) => Ok(Answer::new(value, Findings::default())),
        Err(error) => match rejection(&error) {
            Some(rejection) => Err(rejection),
            None => Ok(Answer::new(
                json!({"error": error.kind().as_str()}),
                Findings::default(),
            )),
        },
    }
}

/// Answers about the value of the request. First drops the rule of an earlier failure on this thread, so that it is not reported for this
/// value.
fn answer_about_value(
    args: &Value,
    body: impl FnOnce(AnyView<'_>) -> Result<Value, Error>,
) -> Result<Answer, OpError> {
    crate::object::init();
    let value = any(value_of(args)?)?;
    drop(take_broken());
    finish(body(value.view()))
}

/// Returns a function that checks the text of a JSON graph, as far as this is possible without types.
pub(in crate::conformance) fn graph_checker() -> Function {
    Function::from_packed(|args| {
        let text = args.first().and_then(str_bytes).unwrap_or_default();
        ffi::check(text, &mut Findings::default()).map_err(|fault| fault.violation)?;
        Ok(Any::none())
    })
}

/// Returns a function that hashes its argument as maps do. Its result is hexadecimal text.
pub(in crate::conformance) fn hasher() -> Function {
    Function::from_packed(|args| {
        let value = args.first().copied().unwrap_or(AnyView::none());
        Ok(format!("{:#x}", any_hash(value)?).into())
    })
}
