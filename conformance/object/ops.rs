//! Operations of the chapter object: containers, text, comparison, JSON, the JSON graph.

use crate::conformance::function::ops::refusal;
use crate::conformance::op::{Answer, Op, Refusal};
use crate::function::{Error, take_broken};
use crate::object::form::{from_json, to_json};
use crate::object::hash::{any_equal, any_hash};
use crate::object::legacy_graph::{LegacyGraph, RELEASES as LEGACY, form as legacy_form};
use crate::object::{
    Array, Dict, List, MapShape, Tensor, construct, graph, json as text, recursive, repr,
    structural,
};
use crate::release::Release;
use crate::rule::Findings;
use crate::value::{Any, AnyView, DLDataType};
use serde_json::{Value, json};

/// What a case of this chapter can ask.
pub(crate) const OPS: &[Op] = &[
    Op {
        name: "object.decode",
        help: "data: the JSON graph of 0.2 to 0.21 as its nodes, whatever their types",
        run: |args| {
            let data = crate::conformance::op::data(args)?;
            let mut findings = Findings::default();
            let graph = LegacyGraph::read(&data, &mut findings)?;
            Ok(Answer::new(legacy_form::to_json(&graph)?, findings))
        },
    },
    Op {
        name: "object.encode",
        help: "value, release (optional: refuse what it does not know): the text of the nodes",
        run: |args| {
            let graph = legacy_form::from_json(value_of(args)?).map_err(|wrong| match wrong {
                legacy_form::Wrong::Form(what) => Refusal::Unsupported(what),
                legacy_form::Wrong::Broken(broken) => Refusal::Rejected(broken),
            })?;
            let text = graph.write(release(args)?)?;
            Ok(Answer::new(
                crate::conformance::op::base64(&text),
                Findings::default(),
            ))
        },
    },
    Op {
        name: "object.from_legacy_graph",
        help: "value: the value of the JSON graph of 0.2 to 0.21",
        run: |args| {
            crate::object::init();
            let source = value_of(args)?;
            let source = source
                .as_str()
                .map_or_else(|| source.to_string(), str::to_owned);
            let mut findings = Findings::default();
            let graph = LegacyGraph::read(source.as_bytes(), &mut findings)?;
            drop(take_broken());
            finish(graph.value().map(|value| to_json(value.view())))
        },
    },
    Op {
        name: "object.to_legacy_graph",
        help: "value, release: the JSON graph of 0.2 to 0.21 as that release writes it, as text",
        run: |args| {
            let release = release(args)?.unwrap_or(LEGACY.until);
            one(args, |value| {
                let graph = LegacyGraph::of(value, release)?;
                let text = graph.write(Some(release))?;
                Ok(String::from_utf8_lossy(&text).into())
            })
        },
    },
    Op {
        name: "object.hash",
        help: "value: the hash that maps use, in hexadecimal",
        run: |args| hex(args, any_hash),
    },
    Op {
        name: "object.equal",
        help: "value [left, right]: whether maps take them for the same key",
        run: |args| two(args, |left, right| any_equal(left, right).map(Value::from)),
    },
    Op {
        name: "object.hooked",
        help: "value {form (number, cell, function), numbers}: a dict whose keys are alike when their last digits are: its pairs, and what is found under each digit",
        run: super::hooks::hooked,
    },
    Op {
        name: "object.layout",
        help: "value: size and capacity of a sequence; form, slots and marks of a map",
        run: layout,
    },
    Op {
        name: "object.element",
        help: "value [sequence, index]: the element",
        run: element,
    },
    Op {
        name: "object.dict",
        help: "value [[set, key, value] | [remove, key]]: the pairs in order, after all steps",
        run: dict,
    },
    Op {
        name: "object.repr",
        help: "value: the text form",
        run: |args| one(args, |value| repr::repr(value).map(Value::from)),
    },
    Op {
        name: "object.recursive_equal",
        help: "value [left, right]: equality by contents",
        run: |args| {
            two(args, |left, right| {
                recursive::equal(left, right).map(Value::from)
            })
        },
    },
    Op {
        name: "object.recursive_compare",
        help: "value [left, right]: order by contents, -1, 0 or 1",
        run: |args| {
            two(args, |left, right| {
                recursive::compare(left, right).map(Value::from)
            })
        },
    },
    Op {
        name: "object.recursive_hash",
        help: "value: hash by contents, in hexadecimal",
        run: |args| hex(args, recursive::hash),
    },
    Op {
        name: "object.structural_hash",
        help: "value: structural hash, in hexadecimal",
        run: |args| hex(args, |value| structural::hash(value, false, false)),
    },
    Op {
        name: "object.structural_equal",
        help: "value [left, right]: structural equality",
        run: |args| {
            two(args, |left, right| {
                structural::equal(left, right, false, false).map(Value::from)
            })
        },
    },
    Op {
        name: "object.make",
        help: "value [type key, name, value, ...]: makes an object and prints it",
        run: make,
    },
    Op {
        name: "object.dlpack",
        help: "value {shape, strides, align, offset, contiguous, padded}: whether a float32 tensor of DLPack is taken over",
        run: dlpack,
    },
    Op {
        name: "object.json_parse",
        help: "value: JSON text to a value",
        run: |args| {
            let source = value_of(args)?.as_str().unwrap_or_default().to_owned();
            finish(text::parse(source.as_bytes()).map(|value| to_json(value.view())))
        },
    },
    Op {
        name: "object.json_print",
        help: "value, indent: JSON text of a value",
        run: |args| {
            let indent = args.get("indent").and_then(Value::as_i64).unwrap_or(0);
            one(args, |value| {
                text::stringify(value, indent).map(Value::from)
            })
        },
    },
    Op {
        name: "object.to_graph",
        help: "value, metadata, cycle (bool: the list is put into itself first): the JSON graph as text",
        run: to_graph,
    },
    Op {
        name: "object.walk",
        help: "value, order (pre or post), answers {text form: what the callback answers}: text forms in the order met",
        run: super::visits::walk,
    },
    Op {
        name: "object.rewrite",
        help: "value, add, shared (bool: somebody else holds the value): every integer increased, and what the other holder sees",
        run: super::visits::rewrite,
    },
    Op {
        name: "object.from_graph",
        help: "value or data: the value of a JSON graph",
        run: |args| {
            crate::object::init();
            if args.get("data").is_some() {
                let source = crate::conformance::op::data(args)?;
                return finish(graph::decode_text(&source).map(|value| to_json(value.view())));
            }
            let source = value_of(args)?;
            let source = source
                .as_str()
                .map_or_else(|| source.to_string(), str::to_owned);
            finish(graph::decode_text(source.as_bytes()).map(|value| to_json(value.view())))
        },
    },
];

fn release(args: &Value) -> Result<Option<Release>, Refusal> {
    let text = args.get("release").and_then(Value::as_str);
    let release = text.map(str::parse).transpose();
    release.map_err(Refusal::Unsupported)
}

pub(super) fn value_of(args: &Value) -> Result<&Value, Refusal> {
    args.get("value")
        .ok_or_else(|| Refusal::Unsupported("the request has no value".into()))
}

pub(super) fn any(form: &Value) -> Result<Any, Refusal> {
    from_json(form).map_err(Refusal::Unsupported)
}

/// An answer, a refusal with its rule, or the kind of an error that no rule of this crate names.
pub(super) fn finish(result: Result<Value, Error>) -> Result<Answer, Refusal> {
    match result {
        Ok(value) => Ok(Answer::new(value, Findings::default())),
        Err(error) => match refusal(&error) {
            Some(refusal) => Err(refusal),
            None => Ok(Answer::new(
                json!({"error": error.kind()}),
                Findings::default(),
            )),
        },
    }
}

fn one(
    args: &Value,
    body: impl FnOnce(AnyView<'_>) -> Result<Value, Error>,
) -> Result<Answer, Refusal> {
    crate::object::init();
    let value = any(value_of(args)?)?;
    drop(take_broken());
    finish(body(value.view()))
}

fn hex(
    args: &Value,
    body: impl FnOnce(AnyView<'_>) -> Result<u64, Error>,
) -> Result<Answer, Refusal> {
    one(args, |value| {
        body(value).map(|hash| json!(format!("{hash:#x}")))
    })
}

fn two(
    args: &Value,
    body: impl FnOnce(AnyView<'_>, AnyView<'_>) -> Result<Value, Error>,
) -> Result<Answer, Refusal> {
    crate::object::init();
    let pair = value_of(args)?;
    let side = |at: usize| any(pair.get(at).unwrap_or(&Value::Null));
    let (left, right) = (side(0)?, side(1)?);
    drop(take_broken());
    finish(body(left.view(), right.view()))
}

fn layout(args: &Value) -> Result<Answer, Refusal> {
    one(args, |value| {
        if let Some(shape) = MapShape::of(value) {
            return Ok(json!({
                "small": shape.small,
                "slots": shape.slots,
                "padding": shape.padding,
                "marks": shape.marks,
            }));
        }
        let object = value.as_object().cloned();
        let sequence = object.as_ref().and_then(crate::object::sequence_layout);
        Ok(match sequence {
            Some((size, capacity, inline)) => {
                json!({"size": size, "capacity": capacity, "inline": inline})
            }
            None => Value::Null,
        })
    })
}

fn element(args: &Value) -> Result<Answer, Refusal> {
    two(args, |sequence, at| {
        let at = crate::value::cast::<i64>(at)?;
        let found = match List::from_object(
            sequence
                .as_object()
                .cloned()
                .unwrap_or_else(|| Array::new(vec![]).into_object()),
        ) {
            Ok(list) => list.at(at)?,
            Err(_) => crate::value::cast::<Array>(sequence)?.at(at)?,
        };
        Ok(to_json(found.view()))
    })
}

fn dict(args: &Value) -> Result<Answer, Refusal> {
    let dict = Dict::new();
    for step in value_of(args)?.as_array().into_iter().flatten() {
        let part = |at: usize| any(step.get(at).unwrap_or(&Value::Null));
        if step.get(0).and_then(Value::as_str) == Some("remove") {
            let key = part(1)?;
            finish(dict.remove(key.view()).map(Value::from))?;
            continue;
        }
        finish(dict.set(part(1)?, part(2)?).map(|()| Value::Null))?;
    }
    finish(Ok(to_json((&dict).into())))
}

fn make(args: &Value) -> Result<Answer, Refusal> {
    crate::object::init();
    let forms = value_of(args)?.as_array().cloned().unwrap_or_default();
    let parts: Result<Vec<Any>, Refusal> = forms.iter().map(any).collect();
    let parts = parts?;
    let views: Vec<AnyView<'_>> = parts.iter().map(Any::view).collect();
    drop(take_broken());
    finish(
        construct::make_object(&views)
            .and_then(|object| repr::repr(object.view()))
            .map(Value::from),
    )
}

fn dlpack(args: &Value) -> Result<Answer, Refusal> {
    let value = value_of(args)?;
    let list = |name: &str| -> Vec<i64> {
        let items = value.get(name).and_then(Value::as_array);
        items
            .into_iter()
            .flatten()
            .filter_map(Value::as_i64)
            .collect()
    };
    let flag = |name: &str| value.get(name).and_then(Value::as_bool) == Some(true);
    let (shape, mut strides) = (list("shape"), list("strides"));
    let result = Tensor::empty(&shape, DLDataType::scalar(2, 32)).and_then(|tensor| {
        let out = tensor.to_dlpack_versioned();
        // SAFETY: `out` was just made, and no one else has it.
        let managed = unsafe { &mut *out };
        if !strides.is_empty() {
            // They live for the call.
            managed.dl_tensor.strides = strides.as_mut_ptr();
        }
        if flag("padded") {
            managed.flags |= 4;
        }
        managed.dl_tensor.byte_offset = value.get("offset").and_then(Value::as_u64).unwrap_or(0);
        let (delete, align) = (managed.deleter, value.get("align").and_then(Value::as_i64));
        // SAFETY: a live managed tensor of ours; its strides live for the call.
        match unsafe { Tensor::from_dlpack_versioned(out, align.unwrap_or(0), flag("contiguous")) }
        {
            Ok(taken) => Ok(json!({"shape": taken.shape()})),
            Err(error) => {
                if let Some(delete) = delete {
                    // SAFETY: what is refused stays ours (OBJ-12), and ends here.
                    unsafe { delete(out) };
                }
                Err(error)
            }
        }
    });
    finish(result)
}

fn to_graph(args: &Value) -> Result<Answer, Refusal> {
    one(args, |value| {
        let list = value.as_object().cloned().map(List::from_object);
        if args.get("cycle").and_then(Value::as_bool) == Some(true)
            && let Some(Ok(list)) = list
        {
            list.push(list.clone().into());
            let encoded = graph::encode_text(value, AnyView::none());
            list.clear();
            return encoded.map(Value::from);
        }
        let metadata = args.get("metadata").map(from_json);
        let metadata = metadata.and_then(Result::ok).unwrap_or_default();
        graph::encode_text(value, metadata.view()).map(Value::from)
    })
}
