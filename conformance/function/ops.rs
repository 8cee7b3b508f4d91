//! Operations of chapter function: calls, errors, the registry.

use super::{compiled, driver, registry_steps, script};
use crate::conformance::op::{Handler, Op, OpError};
use crate::function::{Error, Function, registry, take_broken};
use crate::value::{Any, AnyView};

/// All operations that a case of this chapter can request.
pub(crate) const OPS: &[Op] = &[
    Op {
        name: "function.call",
        help: "value {function, args}: calls one of the functions that spec/function.md lists: the result, or the error",
        run: Handler::Driven(driver::call),
    },
    Op {
        name: "function.raw_call",
        help: "value {function, args}: the return code, the result place (7 before), the error left on the thread",
        run: Handler::Driven(driver::raw_call),
    },
    Op {
        name: "function.error",
        help: "value {kind, message, backtrace, cause, updates: [[mode, text]], frames: [[file, line, function]]}: the parts of the error object",
        run: Handler::Driven(driver::error),
    },
    Op {
        name: "function.raised",
        help: "value [\"set x\" | \"take\" ...]: the result of each take",
        run: Handler::Driven(driver::raised),
    },
    Op {
        name: "function.registry",
        help: "value [[register, name, result, override] | [provide, name, result] | [register_safely, whole name, result] | [register_typed, name] | [is_safe, whole name] | [describe, name, result, doc, metadata] | [metadata, name] | [schema, name] | [finished] | [lookup, name] | [call_old, name] | [remove, name] | [names]]: the result of each",
        run: Handler::Driven(registry_steps::registry),
    },
    Op {
        name: "function.script",
        help: "value [[global function or {of: n}, argument, ...], ...]: the result or error of each call, and which moved arguments it took",
        run: Handler::Driven(script::script),
    },
    Op {
        name: "function.compiled",
        help: "data: a library, value {function, calls}: each call is a list of tensors {dtype, shape, data, strides, byte_offset, device, data_is_null}, which the function gets as descriptions; the content of the last tensor after each call, or {error: kind}",
        run: Handler::Driven(compiled::compiled),
    },
];

/// Returns the rejection by a rule that caused the error. Returns `None` if no rule caused it.
pub(crate) fn rejection(error: &Error) -> Option<OpError> {
    let broken = take_broken()?;
    (broken.message() == error.message()).then_some(OpError::Rejected(broken))
}

/// Returns a function of `spec/function.md` as a Rust user writes it, with Rust types.
pub(in crate::conformance) fn function(name: &str) -> Option<Function> {
    Some(match name {
        "add" => Function::named(Some("add"), |a: i64, b: f64| a as f64 + b),
        // This one captures a variable and borrows its arguments.
        "concat" => {
            let between = String::new();
            Function::named(Some("concat"), move |a: &str, b: &str| {
                [a, &between, b].concat()
            })
        }
        "count" => Function::from_packed(|args| Ok(Any::from(args.len()))),
        "fail" => Function::from_packed(|_| Err(Error::new("ValueError", "as asked"))),
        "frontend" => Function::from_packed(|_| {
            Err(Error::new("EnvErrorAlreadySet", "the frontend holds it"))
        }),
        // `resume_unwind` prints no panic message. The panic is intended.
        "panic" => Function::from_packed(|_| std::panic::resume_unwind(Box::new("as asked"))),
        "apply" => Function::named(Some("apply"), |f: Function, x: i64| {
            f.call_packed(&[x.into()])
        }),
        "keep" => {
            let instead: Option<Any> = None;
            Function::named(Some("keep"), move |kept: AnyView<'_>, _: i64| {
                instead.clone().unwrap_or_else(|| kept.to_any())
            })
        }
        "twice" => Function::named(Some("twice"), |x: i64| x * 2),
        "maybe" => Function::named(Some("maybe"), |x: Option<i64>| x.unwrap_or(-1)),
        _ => return None,
    })
}

/// Returns a step of `function.registry` that safe Rust code performs, or that registers a function which yields to others (FUN-11).
pub(in crate::conformance) fn registry(step: &str) -> Option<Function> {
    Some(match step {
        "require" => Function::from_typed(|name: String| registry::require(&name)),
        "find" => Function::from_typed(|name: String| registry::lookup(&name).is_some()),
        "provide" => Function::from_typed(|name: String, function: Function| {
            registry::provide(&name, function);
        }),
        "register_typed" => Function::from_typed(|name: String| {
            // This leaks a few bytes, which is acceptable in a worker process.
            registry::register_typed(name.leak(), |a: i64, b: f64| a as f64 + b)
        }),
        "register" => Function::from_typed(|name: String, function: Function| {
            registry::register(&name, function, false)
        }),
        _ => return None,
    })
}
