//! `object.script`: registered functions, called one after the other. What containers, texts and objects do is reached through
//! these by every frontend, so one operation asks for all of it.

use crate::conformance::runtime::ffi::api::Api;
use crate::conformance::runtime::ffi::forms::{make, show};
use crate::conformance::runtime::ffi::held::Held;
use crate::conformance::runtime::ffi::{Reply, told, unsupported, value_of};
use crate::value::RawAny;
use serde_json::{Value, json};

/// Each step is `[function, argument, ...]`; `{"of": n}` is the result of step n, in the place of either.
pub(super) fn script(api: &'static Api, args: &Value) -> Result<Reply, Reply> {
    let steps = value_of(args).as_array();
    let steps = steps.ok_or_else(|| unsupported("`value` is no list of steps"))?;
    let (mut results, mut answers) = (Vec::new(), Vec::new());
    for step in steps {
        let (name, given) = step
            .as_array()
            .and_then(|parts| parts.split_first())
            .ok_or_else(|| unsupported(format!("{step} names no function")))?;
        let mut parts = vec![target(api, name, &results)?];
        for form in given {
            parts.push(argument(api, form, &results)?);
        }
        let args: Vec<RawAny> = parts.iter().skip(1).map(|part| part.raw).collect();
        match api.call(&parts[0], &args) {
            Ok(result) => {
                answers.push(show(api, &result)?);
                results.push(Some(result));
            }
            Err(raised) => {
                answers.push(json!({"raises": raised.kind}));
                results.push(None);
            }
        }
    }
    told(Value::Array(answers))
}

fn target(api: &'static Api, name: &Value, results: &[Option<Held>]) -> Result<Held, Reply> {
    let Some(name) = name.as_str() else {
        return argument(api, name, results);
    };
    let function = api.global(name);
    function.ok_or_else(|| unsupported(format!("this runtime has no function `{name}`")))
}

fn argument(api: &'static Api, form: &Value, results: &[Option<Held>]) -> Result<Held, Reply> {
    let Some(at) = form.get("of") else {
        return make(api, form);
    };
    let at = at.as_u64().and_then(|at| usize::try_from(at).ok());
    let result = at.and_then(|at| results.get(at)).and_then(Option::as_ref);
    let result = result.ok_or_else(|| unsupported(format!("{form} is no earlier result")))?;
    Ok(api.share(result.raw))
}
