//! Operations of the chapter function: calls, errors, the registry.

use crate::conformance::op::{Answer, Op, Refusal};
use crate::function::{
    Error, Function, FunctionObj, registry, set_raised, take_broken, take_raised,
};
use crate::object::form::{from_json, to_json};
use crate::rule::Findings;
use crate::value::{Any, AnyView, RawAny};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// What a case of this chapter can ask.
pub(crate) const OPS: &[Op] = &[
    Op {
        name: "function.call",
        help: "value {function, args}: calls one of the functions that spec/function.md lists: the result, or the error",
        run: call,
    },
    Op {
        name: "function.raw_call",
        help: "value {function, args}: the return code, the result place (7 before), the error left on the thread",
        run: raw_call,
    },
    Op {
        name: "function.error",
        help: "value {kind, message, backtrace, cause, updates: [[mode, text]]}: the parts of the error object",
        run: error,
    },
    Op {
        name: "function.raised",
        help: "value [\"set x\" | \"take\" ...]: what each take gave",
        run: raised,
    },
    Op {
        name: "function.registry",
        help: "value [[register, name, result, override] | [lookup, name] | [call_old, name] | [remove, name] | [names]]: what each gave",
        run: registry_steps,
    },
];

fn answer(value: Value) -> Result<Answer, Refusal> {
    Ok(Answer::new(value, Findings::default()))
}

fn value_of(args: &Value) -> Result<&Value, Refusal> {
    args.get("value")
        .ok_or_else(|| Refusal::Unsupported("the request has no value".into()))
}

/// The refusal behind an error: the rule that it came from, or the error itself as an answer.
pub(crate) fn refusal(error: &Error) -> Option<Refusal> {
    let broken = take_broken()?;
    (broken.message() == error.message()).then_some(Refusal::Rejected(broken))
}

fn function(name: &str) -> Result<Function, Refusal> {
    Ok(match name {
        "add" => Function::named(Some("add"), |a: i64, b: f64| a as f64 + b),
        "concat" => Function::named(Some("concat"), |a: String, b: String| a + &b),
        "count" => Function::from_packed(|args| Ok(Any::from(args.len()))),
        "fail" => Function::from_packed(|_| Err(Error::new("ValueError", "as asked"))),
        "frontend" => Function::from_packed(|_| {
            Err(Error::new("EnvErrorAlreadySet", "the frontend holds it"))
        }),
        "panic" => Function::from_packed(|_| std::panic::panic_any("as asked")),
        "apply" => Function::named(Some("apply"), |f: Function, x: i64| f.call(&[x.into()])),
        "twice" => Function::named(Some("twice"), |x: i64| x * 2),
        "maybe" => Function::named(Some("maybe"), |x: Option<i64>| x.unwrap_or(-1)),
        other => {
            return Err(Refusal::Unsupported(format!(
                "there is no function {other}"
            )));
        }
    })
}

fn prepared(args: &Value) -> Result<(Function, Vec<Any>), Refusal> {
    let value = value_of(args)?;
    let name = value.get("function").and_then(Value::as_str);
    let mut list = Vec::new();
    for form in value
        .get("args")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let inner = form.get("function").and_then(Value::as_str);
        list.push(match inner {
            Some(name) => function(name)?.into(),
            None => from_json(form).map_err(Refusal::Unsupported)?,
        });
    }
    Ok((function(name.unwrap_or_default())?, list))
}

/// Keeps the messages of intended panics off the terminal.
fn quietly<T>(body: impl FnOnce() -> T) -> T {
    static HOOK: Mutex<()> = Mutex::new(());
    let _one = HOOK.lock();
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let result = body();
    std::panic::set_hook(hook);
    result
}

fn call(args: &Value) -> Result<Answer, Refusal> {
    let (function, list) = prepared(args)?;
    let views: Vec<AnyView<'_>> = list.iter().map(Any::view).collect();
    drop(take_broken());
    match quietly(|| function.call(&views)) {
        Ok(result) => answer(json!({"result": to_json(result.view())})),
        Err(error) => match refusal(&error) {
            Some(refusal) => Err(refusal),
            None => answer(json!({"error": error.kind()})),
        },
    }
}

fn raw_call(args: &Value) -> Result<Answer, Refusal> {
    let (function, list) = prepared(args)?;
    drop(take_raised());
    let object = function.as_object().as_ptr().cast::<FunctionObj>();
    let mut result = Any::from(7i64).into_raw();
    let cells = list.as_ptr().cast::<RawAny>();
    // SAFETY: `function` holds the object, which is a function.
    let call = unsafe { (*object).safe_call };
    // SAFETY: `function` holds the object, which is a function.
    let cpp_call = unsafe { (*object).cpp_call };
    // SAFETY: a live function, cells that live for the call, a place for the result.
    let code =
        quietly(|| unsafe { call(object.cast(), cells, list.len() as i32, &raw mut result) });
    let left = take_raised().map(|error| error.kind().to_owned());
    // SAFETY: the place holds an owned value, the callee's or the number that was there.
    let result = unsafe { Any::from_raw(result) };
    answer(json!({
        "code": code,
        "result": to_json(result.view()),
        "raised": left,
        "cpp_call_is_null": cpp_call.is_null(),
    }))
}

fn error(args: &Value) -> Result<Answer, Refusal> {
    let value = value_of(args)?;
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let cause = value
        .get("cause")
        .and_then(Value::as_str)
        .map(|kind| Error::new(kind, "").into_object());
    let error = Error::with_parts(
        text("kind").as_bytes(),
        text("message").as_bytes(),
        text("backtrace").as_bytes(),
        cause,
        None,
    );
    for update in value
        .get("updates")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let mode = update.get(0).and_then(Value::as_i64).unwrap_or(0) as i32;
        let text = update.get(1).and_then(Value::as_str).unwrap_or_default();
        error.update_backtrace(text, mode);
    }
    answer(json!({
        "kind": error.kind(),
        "message": error.message(),
        "backtrace": error.backtrace(),
        "cause": error.cause().map(|cause| cause.kind().to_owned()),
    }))
}

fn raised(args: &Value) -> Result<Answer, Refusal> {
    drop(take_raised());
    drop(take_raised());
    let mut taken = Vec::new();
    for step in value_of(args)?.as_array().into_iter().flatten() {
        match step.as_str().unwrap_or_default().split_once(' ') {
            Some(("set", kind)) => set_raised(Error::new(kind, "")),
            _ => taken.push(take_raised().map(|error| error.kind().to_owned())),
        }
    }
    // One more, which the other thread must not see and which is all that is left on this one.
    set_raised(Error::new("Left", ""));
    let other = std::thread::spawn(|| take_raised().is_some()).join();
    let other = other.unwrap_or(true);
    drop(take_raised());
    answer(json!({"taken": taken, "other_thread": other}))
}

fn registry_steps(args: &Value) -> Result<Answer, Refusal> {
    static RUN: AtomicU32 = AtomicU32::new(0);
    let run = RUN.fetch_add(1, Ordering::Relaxed);
    let prefix = format!("case{run}.");
    let mut said = Vec::new();
    let mut replaced = BTreeMap::new();
    drop(take_broken());
    let run_it = |function: &Function| {
        let result = function.call(&[]).map(|value| to_json(value.view()));
        result.unwrap_or_else(|error| json!(error.kind()))
    };
    for step in value_of(args)?.as_array().into_iter().flatten() {
        let text = |at: usize| step.get(at).and_then(Value::as_str).unwrap_or_default();
        let name = format!("{prefix}{}", text(1));
        said.push(match text(0) {
            "register" => {
                let result = step.get(2).and_then(Value::as_i64).unwrap_or(0);
                let over = step.get(3).and_then(Value::as_bool).unwrap_or(false);
                if let Some(old) = registry::lookup(&name) {
                    replaced.insert(name.clone(), old);
                }
                let function = Function::from_typed(move || result);
                if let Err(error) = registry::register(&name, function, over) {
                    clean(&prefix);
                    return Err(
                        refusal(&error).unwrap_or_else(|| Refusal::Unsupported(error.to_string()))
                    );
                }
                Value::Null
            }
            "lookup" => registry::lookup(&name).map_or(Value::Null, |found| run_it(&found)),
            "require" => match registry::require(&name) {
                Ok(found) => run_it(&found),
                Err(error) => {
                    clean(&prefix);
                    return Err(
                        refusal(&error).unwrap_or_else(|| Refusal::Unsupported(error.to_string()))
                    );
                }
            },
            "call_old" => replaced.get(&name).map_or(Value::Null, run_it),
            "remove" => json!(registry::remove(&name)),
            "names" => {
                let names = registry::names();
                let own = names
                    .iter()
                    .filter_map(|name| name.strip_prefix(prefix.as_str()));
                json!(own.collect::<Vec<_>>())
            }
            other => return Err(Refusal::Unsupported(format!("there is no step {other}"))),
        });
    }
    clean(&prefix);
    answer(json!(said))
}

fn clean(prefix: &str) {
    for name in registry::names() {
        if name.starts_with(prefix) {
            registry::remove(name);
        }
    }
}
