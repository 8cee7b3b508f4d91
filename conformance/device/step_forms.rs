//! The arguments of every step, which are checked before a program runs. A wrong argument could otherwise make a step that checks
//! nothing.

use super::steps::{Step, StepTensor, Stop};
use serde_json::Value;

/// Each step with its arguments, as spec/device-programs.md lists them. `NAME?` may be null, `[NAME]` may also be left out.
const FORMS: &[&str] = &[
    "alloc NAME BYTES [ALIGNMENT]",
    "alloc-tensor NAME TENSOR [SCOPE]",
    "workspace NAME BYTES [DTYPE]",
    "free NAME?",
    "free-workspace NAME?",
    "write NAME OFFSET BYTES SEED [STREAM]",
    "read NAME [STREAM]",
    "read NAME OFFSET BYTES [STREAM]",
    "copy FROM OFFSET TO OFFSET BYTES [STREAM]",
    "copy-tensor TENSOR TENSOR [STREAM]",
    "size TENSOR [SCOPE] [BYTES]",
    "stream NAME",
    "free-stream NAME",
    "order BEFORE? AFTER?",
    "sync [STREAM]",
    "set-stream [STREAM]",
    "current-stream [STREAM]",
    "replace-stream NEW? OLD?",
    "device [DEVICE]",
    "ask ATTRIBUTE [FORM..]",
    "same NAME NAME",
    "different NAME NAME",
    "not-null NAME",
    "reject RULE KIND STEP [TEXT]",
    "needs WHAT",
    "unless-host STEPS",
    "thread STEPS",
    "on WHICH",
    "calls LIST",
    "pools BOOL",
    "addresses BOOL",
    "lookups LIST",
    "find BOOL",
    "register NAME",
    "launch KERNEL LIST",
    "reset-barrier",
    "kernels LIST",
    "no-kernel NAME",
    // These steps are only for `device.simulate`.
    "host NAME LIST",
    "change NAME LIST",
    "see NAME",
    "fill NAME BYTE [STREAM]",
    "fail-alloc COUNT",
    "fail-copy COUNT",
];

/// Checks that there is a step of this name with these arguments.
pub(super) fn check(step: &[Value]) -> Result<(), Stop> {
    let Some((Value::String(op), args)) = step.split_first() else {
        let why = "a step is a list that begins with its name";
        return Err(Stop::Malformed(why.into()));
    };
    let mut checked = Err(Stop::Malformed(format!("`{op}`: there is no such step")));
    for form in FORMS {
        if form.split(' ').next() == Some(op) && checked.is_err() {
            let of_form = |stop: Stop| stop.with_location(format_args!("`{form}`: "));
            checked = check_arguments(form, args).map_err(of_form);
        }
    }
    checked
}

fn check_arguments(form: &str, args: &[Value]) -> Result<(), Stop> {
    let mut args = args.iter();
    for parameter in form.split(' ').skip(1) {
        let name = parameter.trim_matches(['[', ']', '?']);
        if name.ends_with("..") {
            return Ok(());
        }
        let is_optional = parameter.starts_with('[');
        match args.next() {
            None if is_optional => {}
            None => return Err(Stop::Malformed(format!("missing `{name}`"))),
            Some(Value::Null) if is_optional || parameter.ends_with('?') => {}
            Some(value) => check_argument(name, value)?,
        }
    }
    match args.next() {
        Some(extra) => Err(Stop::Malformed(format!("{extra} is one argument too many"))),
        None => Ok(()),
    }
}

fn check_argument(name: &str, value: &Value) -> Result<(), Stop> {
    let (fits, expected) = match name {
        "BYTES" | "OFFSET" | "ALIGNMENT" | "SEED" | "COUNT" | "BYTE" => (value.is_u64(), "a count"),
        "BOOL" => (value.is_boolean(), "true or false"),
        "LIST" => (value.is_array(), "a list"),
        "TENSOR" => return StepTensor::read(value).map(drop),
        "STEP" => return Step::read(value).map(drop),
        "STEPS" => return Step::list(value).map(drop),
        // These are parsed where they are used.
        "DEVICE" | "WHICH" => return Ok(()),
        _ => (value.is_string(), "a text"),
    };
    if fits {
        return Ok(());
    }
    Err(Stop::Malformed(format!(
        "`{name}` is {expected}, not {value}"
    )))
}
