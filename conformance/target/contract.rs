//! Operations on the contract around a target: what the result of a generator is held to, what each release makes of a name, what
//! frontends read of a kind.

use super::ops::{compiled_for, object, rejection, release};
use crate::conformance::op::{Answer, OpError, data};
use crate::conformance::reply::Reply;
use crate::conformance::runtime::ffi::accepted;
use crate::conformance::runtime::ffi::api::FfiApi;
use crate::conformance::runtime::ffi::forms::show;
use crate::rule::Findings;
use crate::target::{
    GeneratedCode, Generators, LoweredModule, TargetAccount, TargetConfig, TargetKind, Targets,
    register_generator, register_kind, register_tag, registered_generators, registered_targets,
};
use serde_json::{Value, json};

/// `target.judge`: code of another generator, put to the contract as that of the target's kind (TGT-81, TGT-85, TGT-86).
pub(super) fn judge(args: &Value) -> Result<Answer, OpError> {
    let target = compiled_for(args)?;
    let module = LoweredModule::read(&data(args)?)?;
    let code = GeneratedCode::from_json(args.get("code").unwrap_or(&Value::Null))?;
    let mut generators = Generators::default();
    // As a generator that returns this code whatever it is called with: so it goes through the same checks as any other.
    generators.register(&target.kind, Box::new(move |_, _| Ok(code.clone())));
    let code = generators.generate(&module, &target)?;
    let mut value = code.to_json();
    if let Some(form) = value.as_object_mut() {
        // Written in a form of its own by each release; what is in it is in the other members.
        form.remove("payload");
    }
    Ok(Answer::new(value, Findings::default()))
}

/// `target.account`: what each release makes of a name.
pub(super) fn account(args: &Value) -> Result<Answer, OpError> {
    let value = args.get("value");
    let text = value.and_then(Value::as_str);
    let config = match text {
        Some(_) => TargetConfig::new(),
        None => object(value)?,
    };
    let account = TargetAccount::of(|release| match text {
        Some(text) => Targets::new(release).read(text),
        None => Targets::new(release).read_config(&config),
    });
    let newest = account.newest().map(|target| target.release.to_string());
    Ok(Answer::new(
        json!({"rows": account, "newest": newest}),
        Findings::default(),
    ))
}

/// `target.options`: the types of a kind's options, by functions of the registry (TGT-74).
pub(super) fn options(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let name = args
        .get("value")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let kinds = show(api, &api.call_global("target.ListTargetKinds", &[])?)?;
    let kinds = kinds.get("array").and_then(Value::as_array);
    let listed = kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind == name));
    let of = api.text(name)?;
    let types = api.call_global("target.ListTargetKindOptionsFromName", &[of.raw])?;
    let mut types = show(api, &types)?;
    // What is no map is shown as it is: no options are another answer.
    let options = match types.get_mut("map").and_then(Value::as_array_mut) {
        Some(pairs) => {
            // A map is in the order of insertion, and no rule orders the options of a kind.
            pairs.sort_by_key(ToString::to_string);
            types["map"].take()
        }
        None => types,
    };
    accepted(json!({"listed": listed, "options": options}))
}

/// `target.registered`: what a process registers besides what a release has (TGT-15, TGT-71, TGT-80).
pub(super) fn registered(args: &Value) -> Result<Answer, OpError> {
    let release = release(args)?;
    let steps = args.get("value").and_then(Value::as_array);
    let mut results = Vec::new();
    for step in steps.into_iter().flatten() {
        let part = |at: usize| step.get(at).unwrap_or(&Value::Null);
        let word = |at: usize| part(at).as_str().unwrap_or_default();
        let done = match word(0) {
            "kind" => {
                // TGT-15: for the process, and there is no way back: cases have names of their own for what they register.
                register_kind(TargetKind::from_json(part(1))?);
                Ok(Value::Null)
            }
            "tag" => {
                let replaces = part(3).as_bool() == Some(true);
                let target = register_tag(release, word(1), object(Some(part(2)))?, replaces);
                target.map(|target| target.kind.into())
            }
            "read" => {
                let target = registered_targets(release, false).read(word(1));
                target.map(|target| json!({"kind": target.kind, "device_type": target.device_type, "keys": target.keys}))
            }
            "listed" => {
                let kinds = registered_targets(release, false).kinds();
                Ok(kinds.iter().any(|kind| kind.name == word(1)).into())
            }
            "generator" => {
                let code = GeneratedCode::from_json(part(2))?;
                register_generator(word(1), Box::new(move |_, _| Ok(code.clone())));
                Ok(Value::Null)
            }
            "generate" => {
                let module = LoweredModule::read(&data(args)?)?;
                let target = registered_targets(release, false).read(word(1))?;
                let code = registered_generators().generate(&module, &target);
                code.map(|code| code.source().into())
            }
            _ => return Err(OpError::Unsupported(format!("the step {step}"))),
        };
        results.push(done.unwrap_or_else(|broken| rejection(&broken)));
    }
    Ok(Answer::new(results.into(), Findings::default()))
}
