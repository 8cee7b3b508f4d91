//! Operations for the contract around a target: the checks of a generator's result, the readings of a target by each release, and
//! the options of a kind for frontends.

use super::ops::{compiled_for, object, rejection, release};
use crate::conformance::op::{Answer, OpError, data};
use crate::conformance::reply::Reply;
use crate::conformance::runtime::ffi::accepted;
use crate::conformance::runtime::ffi::api::FfiApi;
use crate::conformance::runtime::ffi::forms::show;
use crate::release::Releases;
use crate::rule::Findings;
use crate::target::{
    GeneratedCode, Generators, LoweredModule, TargetAccount, TargetConfig, TargetKind, Targets,
    register_generator, register_kind, register_tag, registered_generators, registered_targets,
};
use serde_json::{Value, json};

/// Runs `target.judge`: checks code of another generator as that of the target's kind (TGT-81, TGT-85, TGT-86).
pub(super) fn judge(args: &Value) -> Result<Answer, OpError> {
    let target = compiled_for(args)?;
    let module = LoweredModule::read(&data(args)?)?;
    let code = GeneratedCode::from_json(args.get("code").unwrap_or(&Value::Null))?;
    let mut generators = Generators::default();
    // Registered as a generator that always returns this code, so that the code passes the same checks as any other.
    generators.register(&target.kind, Box::new(move |_, _| Ok(code.clone())));
    let code = generators.generate(&module, &target)?;
    let mut value = code.to_json();
    if let Some(form) = value.as_object_mut() {
        // Each release writes the payload in its own form; the other members contain its content.
        form.remove("payload");
    }
    Ok(Answer::new(value, Findings::default()))
}

/// Runs `target.account`: returns the reading of a target by each release.
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
    // Rows that differ only in the message of the release are merged, because no rule states messages.
    let mut rows: Vec<(Releases, Value)> = Vec::new();
    for (releases, reading) in account.rows() {
        let row = match &reading {
            Ok(target) => json!({"target": target}),
            Err(broken) => {
                json!({"rejected": {"rule": broken.rule().id(), "kind": broken.kind().name()}})
            }
        };
        match rows.last_mut() {
            Some((before, last)) if reading.is_err() && *last == row => {
                before.until = releases.until;
            }
            _ => rows.push((releases, row)),
        }
    }
    let rows = rows.into_iter().map(|(releases, mut row)| {
        row["releases"] = releases.short().into();
        row
    });
    Ok(Answer::new(
        json!({"rows": rows.collect::<Vec<_>>(), "newest": newest}),
        Findings::default(),
    ))
}

/// Runs `target.options`: returns the types of a kind's options, from functions of the registry (TGT-74).
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
    // A value that is not a map is returned unchanged, because it differs from a map without options.
    let options = match types.get_mut("map").and_then(Value::as_array_mut) {
        Some(pairs) => {
            // A map has the order of insertion, but no rule orders the options of a kind.
            pairs.sort_by_key(ToString::to_string);
            types["map"].take()
        }
        None => types,
    };
    accepted(json!({"listed": listed, "options": options}))
}

/// Runs `target.registered`: registers kinds, tags and generators for the process, in addition to those of the release (TGT-15,
/// TGT-71, TGT-80).
pub(super) fn registered(args: &Value) -> Result<Answer, OpError> {
    let release = release(args)?;
    let steps = args.get("value").and_then(Value::as_array);
    let mut results = Vec::new();
    for step in steps.into_iter().flatten() {
        let part = |at: usize| step.get(at).unwrap_or(&Value::Null);
        let word = |at: usize| part(at).as_str().unwrap_or_default();
        let done = match word(0) {
            "kind" => {
                // TGT-15: a registration lasts for the process and cannot be undone, so each case uses its own names.
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
