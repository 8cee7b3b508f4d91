//! The operations of the chapter `target`.

use super::{contract, driver};
use crate::conformance::op::{Answer, Handler, Op, OpError};
use crate::release::Release;
use crate::rule::{Findings, Violation};
use crate::target::{
    HostMachine, Target, TargetConfig, TargetKind, TargetScope, Targets, current, enter_scope,
    exit_scope,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Every operation of this chapter.
pub(crate) const OPS: &[Op] = &[
    Op {
        name: "target.read",
        help: "`value`: a text or an object that names a target; `release`; `machine`: {`triple`, `cuda_arch`, `rocm_arch`, `cpu`, `devices`}; `tags`: {name: object}, `kinds`: further kinds, defined first; returns the target",
        run: Handler::Here(read),
    },
    Op {
        name: "target.render",
        help: "the arguments of target.read; returns the text of the target",
        run: Handler::Here(render),
    },
    Op {
        name: "target.tag",
        help: "`value`: an object; `name`, `replace`: defines it as a tag of `release`; returns the target",
        run: Handler::Here(tag),
    },
    Op {
        name: "target.detect",
        help: "`value`: {name: what the device answers}; `device`: the name of its type; `release`, `machine`: returns the target of the device",
        run: Handler::Here(detect),
    },
    Op {
        name: "target.scopes",
        help: "`value`: steps, [\"enter\", name, target], [\"exit\", name], [\"within\", target], [\"current\"], [\"elsewhere\"], on one thread; returns for each null, the kind of the current target, or the rule that rejects the step",
        run: Handler::Here(scopes),
    },
    Op {
        name: "target.generate",
        help: "`data`: the JSON graph of a lowered module; `target`: a text or an object; `release`: calls the generator of the target's kind; returns the kind of the result, its functions, how kernels are launched, whether a second call makes the same",
        run: Handler::Foreign(driver::generate),
    },
    Op {
        name: "target.judge",
        help: "`data`, `target`, `release`: as for target.generate; `code`: the result of a generator for it; checks that result against the contract and returns its kind, functions, kernels and source",
        run: Handler::Here(contract::judge),
    },
    Op {
        name: "target.account",
        help: "`value`: a text or an object that names a target; returns ranges of releases that read it alike, and the newest release that reads it",
        run: Handler::Here(contract::account),
    },
    Op {
        name: "target.options",
        help: "`value`: the name of a kind; returns whether the registry lists it, and the types of its options by name",
        run: Handler::Driven(contract::options),
    },
    Op {
        name: "target.registered",
        help: "`value`: steps, [\"kind\", declaration], [\"tag\", name, object, whether it replaces], [\"read\", name], [\"listed\", name], [\"generator\", kind, its result for every module], [\"generate\", kind], on this process; `data`: the JSON graph of a lowered module; returns for each null, the target, whether the name is that of a kind, the source, or the rule that rejects the step",
        run: Handler::Here(contract::registered),
    },
];

/// Runs `target.read` (TGT-01 to TGT-58): returns the target, with keys, options and host. The case states the machine, because the
/// suite's machine varies.
fn read(args: &Value) -> Result<Answer, OpError> {
    Ok(Answer::new(form(&target(args)?), Findings::default()))
}

/// Runs `target.render` (TGT-14, TGT-60 to TGT-64): returns the text that this release prints.
fn render(args: &Value) -> Result<Answer, OpError> {
    let text = target(args)?.render()?;
    // From 0.24 on the text is JSON, whose members have no order, so it is compared as JSON.
    let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
    Ok(Answer::new(value, Findings::default()))
}

/// Runs `target.tag` (TGT-71): adds a tag to the release, for this request only.
fn tag(args: &Value) -> Result<Answer, OpError> {
    let mut targets = targets(args)?;
    let name = args.get("name").and_then(Value::as_str).unwrap_or_default();
    let replace = args.get("replace").and_then(Value::as_bool) == Some(true);
    let target = targets.add_tag(name, object(args.get("value"))?, replace)?;
    Ok(Answer::new(form(&target), Findings::default()))
}

/// Runs `target.detect` (TGT-59): returns the target of a device whose answers the case states.
fn detect(args: &Value) -> Result<Answer, OpError> {
    let answers = object(args.get("value"))?;
    let name = args
        .get("device")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let answer = |question: &str| answers.get(question).cloned().unwrap_or_default();
    let target = targets(args)?.detect(name, 0, &answer)?;
    Ok(Answer::new(form(&target), Findings::default()))
}

/// Runs the steps on a new thread, which ends together with the scopes that they left open.
///
/// TGT-72, TGT-73. `elsewhere` asks on another thread, which is in no scope.
fn scopes(args: &Value) -> Result<Answer, OpError> {
    let targets = targets(args)?;
    let steps = args
        .get("value")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let all = move || -> Result<Vec<Value>, OpError> {
        let mut named: BTreeMap<String, Arc<Target>> = BTreeMap::new();
        let mut results = Vec::new();
        for step in &steps {
            let word = |at: usize| step.get(at).and_then(Value::as_str).unwrap_or_default();
            let known = named.get(word(1)).cloned();
            let done = match (word(0), known) {
                ("enter", Some(target)) => {
                    enter_scope(target);
                    Ok(Value::Null)
                }
                ("enter", None) => {
                    let target = Arc::new(targets.read(word(2))?);
                    enter_scope(target.clone());
                    named.insert(word(1).into(), target);
                    Ok(Value::Null)
                }
                ("within", _) => {
                    let scope = TargetScope::enter(targets.read(word(1))?);
                    let inside = current().map(|target| target.kind.clone());
                    drop(scope);
                    let outside = current().map(|target| target.kind.clone());
                    Ok(json!([inside.ok(), outside.ok()]))
                }
                ("exit", Some(target)) => exit_scope(&target).map(|()| Value::Null),
                ("current", _) => current().map(|target| target.kind.clone().into()),
                ("elsewhere", _) => {
                    let there = std::thread::spawn(current).join();
                    there
                        .unwrap_or_else(|_| current())
                        .map(|target| target.kind.clone().into())
                }
                _ => return Err(OpError::Unsupported(format!("the step {step}"))),
            };
            results.push(done.unwrap_or_else(|broken| rejection(&broken)));
        }
        Ok(results)
    };
    let results = std::thread::spawn(all).join();
    let results =
        results.unwrap_or_else(|_| Err(OpError::Unsupported("a step panicked".into())))?;
    Ok(Answer::new(results.into(), Findings::default()))
}

/// Returns the answer for a rejected step or module.
pub(super) fn rejection(broken: &Violation) -> Value {
    json!({"reject": broken.kind().name(), "rule": broken.rule().id()})
}

/// Returns the target of a request for a module, stated under `target`.
pub(super) fn compiled_for(args: &Value) -> Result<Target, OpError> {
    let named = args.get("target").cloned().unwrap_or_default();
    let release = args.get("release").cloned().unwrap_or_default();
    target(&json!({"value": named, "release": release}))
}

/// Returns the release of a request.
pub(super) fn release(args: &Value) -> Result<Release, OpError> {
    let release = args.get("release").and_then(Value::as_str);
    let release = release.unwrap_or_default().parse();
    release.map_err(OpError::from)
}

/// Returns the target of a request.
fn target(args: &Value) -> Result<Target, OpError> {
    let targets = targets(args)?;
    Ok(match args.get("value") {
        Some(Value::String(text)) => targets.read(text)?,
        other => targets.read_config(&object(other)?)?,
    })
}

/// Returns the kinds and tags of the request's release, on its machine.
fn targets(args: &Value) -> Result<Targets, OpError> {
    let release = release(args)?;
    let machine = args.get("machine").unwrap_or(&Value::Null);
    let text = |name: &str| machine.get(name).and_then(Value::as_str).map(str::to_owned);
    let mut targets = Targets::for_machine(
        release,
        HostMachine {
            triple: text("triple").unwrap_or_default(),
            cuda_arch: text("cuda_arch"),
            rocm_arch: text("rocm_arch"),
            cpu: text("cpu"),
            devices: devices(machine)?,
        },
    );
    for kind in args
        .get("kinds")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        targets.register(TargetKind::from_json(kind)?);
    }
    for (name, config) in args
        .get("tags")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        // A tag is defined before its object is read, as in upstream. A fault of the object is reported where the tag is used.
        let _ = targets.add_tag(name, object(Some(config))?, true);
    }
    Ok(targets)
}

/// Reads the answers of devices, by the numbers of their types.
fn devices(machine: &Value) -> Result<BTreeMap<i64, Vec<TargetConfig>>, OpError> {
    let mut devices = BTreeMap::new();
    for (number, answers) in machine
        .get("devices")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let number = number
            .parse()
            .map_err(|_| OpError::Unsupported(format!("the device type {number}")))?;
        let answers = answers.as_array().into_iter().flatten();
        let answers: Result<Vec<TargetConfig>, OpError> =
            answers.map(|answers| object(Some(answers))).collect();
        devices.insert(number, answers?);
    }
    Ok(devices)
}

/// Reads an object that names a target, or that a tag stands for.
pub(super) fn object(value: Option<&Value>) -> Result<TargetConfig, OpError> {
    let object = value.and_then(Value::as_object).cloned();
    object.ok_or_else(|| {
        OpError::Unsupported("there is neither a text nor an object under `value`".into())
    })
}

/// Returns a target as cases state it, with its host in the same form.
fn form(target: &Target) -> Value {
    json!({
        "kind": target.kind,
        "device_type": target.device_type,
        "tag": target.tag,
        "keys": target.keys,
        "attrs": target.attrs,
        "host": target.host.as_deref().map(form),
    })
}
