//! Operations of the chapter function: calls, errors, the registry.

use super::{driver, script};
use crate::conformance::op::{Op, Refusal, Run};
use crate::function::{Error, Function, take_broken};
use crate::value::Any;

/// What a case of this chapter can ask.
pub(crate) const OPS: &[Op] = &[
    Op {
        name: "function.call",
        help: "value {function, args}: calls one of the functions that spec/function.md lists: the result, or the error",
        run: Run::Driven(driver::call),
    },
    Op {
        name: "function.raw_call",
        help: "value {function, args}: the return code, the result place (7 before), the error left on the thread",
        run: Run::Driven(driver::raw_call),
    },
    Op {
        name: "function.error",
        help: "value {kind, message, backtrace, cause, updates: [[mode, text]]}: the parts of the error object",
        run: Run::Driven(driver::error),
    },
    Op {
        name: "function.raised",
        help: "value [\"set x\" | \"take\" ...]: what each take gave",
        run: Run::Driven(driver::raised),
    },
    Op {
        name: "function.registry",
        help: "value [[register, name, result, override] | [describe, name, result, doc, metadata] | [metadata, name] | [finished] | [lookup, name] | [call_old, name] | [remove, name] | [names]]: what each gave",
        run: Run::Driven(driver::registry),
    },
    Op {
        name: "function.script",
        help: "value [[global function or {of: n}, argument, ...], ...]: what each call returned or raised, and what it took of what was moved",
        run: Run::Driven(script::script),
    },
];

/// The refusal behind an error: the rule that it came from, or the error itself as an answer.
pub(crate) fn refusal(error: &Error) -> Option<Refusal> {
    let broken = take_broken()?;
    (broken.message() == error.message()).then_some(Refusal::Rejected(broken))
}

/// The functions of `spec/function.md` as a Rust user writes them, with types of their own.
pub(in crate::conformance) fn function(name: &str) -> Option<Function> {
    Some(match name {
        "add" => Function::named(Some("add"), |a: i64, b: f64| a as f64 + b),
        "concat" => Function::named(Some("concat"), |a: String, b: String| a + &b),
        "count" => Function::from_packed(|args| Ok(Any::from(args.len()))),
        "fail" => Function::from_packed(|_| Err(Error::new("ValueError", "as asked"))),
        "frontend" => Function::from_packed(|_| {
            Err(Error::new("EnvErrorAlreadySet", "the frontend holds it"))
        }),
        // Without the message that a panic prints: it is intended.
        "panic" => Function::from_packed(|_| std::panic::resume_unwind(Box::new("as asked"))),
        "apply" => Function::named(Some("apply"), |f: Function, x: i64| f.call(&[x.into()])),
        "twice" => Function::named(Some("twice"), |x: i64| x * 2),
        "maybe" => Function::named(Some("maybe"), |x: Option<i64>| x.unwrap_or(-1)),
        _ => return None,
    })
}
