//! Operations over structural visits: what a walk meets, and what a rewrite changes.

use super::ops::{any, finish, value_of};
use crate::conformance::op::{Answer, Refusal};
use crate::function::{Error, Function, take_broken};
use crate::object::form::{from_json, to_json};
use crate::object::visit::Interrupt;
use crate::object::visit::rewrite;
use crate::object::visit::walk::{self, Callbacks, Links, Order};
use crate::object::{Array, repr};
use crate::value::header::Ref;
use crate::value::{Any, AnyView, cast, index};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};

/// One callback for values of a type.
fn callback(type_index: i32, function: Function) -> Result<Links, Error> {
    let entry = Array::new(vec![Any::from(type_index), function.into()]);
    let list = Array::new(vec![Any::from(entry)]);
    Ok(Links {
        plain: cast::<Callbacks>((&list).into())?,
        with_region: Callbacks::default(),
    })
}

fn order(args: &Value) -> Order {
    match args.get("order").and_then(Value::as_str) {
        Some("pre") => Order::Pre,
        _ => Order::Post,
    }
}

/// Walks `value`; `answers` says what the callback answers for the value with a text form.
pub(super) fn walk(args: &Value) -> Result<Answer, Refusal> {
    crate::object::init();
    let value = any(value_of(args)?)?;
    drop(take_broken());
    finish(walked(value.view(), order(args), args.get("answers")))
}

fn walked(value: AnyView<'_>, order: Order, answers: Option<&Value>) -> Result<Value, Error> {
    let met = Arc::new(Mutex::new(Vec::new()));
    let (seen, answers) = (met.clone(), answers.cloned().unwrap_or_default());
    let function = Function::from_packed(move |args| {
        let text = repr::repr(args.first().copied().unwrap_or(AnyView::none()))?;
        let answer = answers.get(&text).cloned().unwrap_or_default();
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.push(text);
        let form = |form: &Value| from_json(form).map_err(|text| Error::new("ValueError", text));
        match answer.get("interrupt") {
            Some(with) => Ok(Ref::new(Interrupt::new(form(with)?)).into()),
            None => form(&answer),
        }
    });
    let stopped = walk::walk(value, callback(index::ANY, function)?, order)?;
    let met = met.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let interrupt = stopped.map(|stopped| to_json(stopped.value.view()));
    Ok(json!({"met": met, "interrupt": interrupt}))
}

/// Adds a number to every integer in `value`, which somebody else holds too when `shared` says so.
pub(super) fn rewrite(args: &Value) -> Result<Answer, Refusal> {
    crate::object::init();
    let value = any(value_of(args)?)?;
    let add = args.get("add").and_then(Value::as_i64).unwrap_or(0);
    let shared = args.get("shared").and_then(Value::as_bool) == Some(true);
    let other = shared.then(|| value.clone());
    let before = value.as_object().map(|object| object.as_ptr() as usize);
    drop(take_broken());
    let function = Function::from_typed(move |number: i64| number.wrapping_add(add));
    let rewritten = callback(index::INT, function)
        .and_then(|links| rewrite::map(value, links, Order::Post))
        .map(|result| {
            let after = result.as_object().map(|object| object.as_ptr() as usize);
            json!({
                "result": to_json(result.view()),
                "other": other.map(|other| to_json(other.view())),
                "same": before == after,
            })
        });
    finish(rewritten)
}
