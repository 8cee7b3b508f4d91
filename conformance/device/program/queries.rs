//! Steps that query a device: the answers that they allow, and the features that a program needs.

use super::super::steps::{NamedCalls, Stop};
use crate::conformance::behaviour::Failure;
use crate::device::{Attribute, AttributeValue, Device, Stream};
use serde_json::{Value, json};

/// Skips the program on a device that lacks the feature that it needs.
pub(super) fn needs(calls: &NamedCalls<'_>, what: &str) -> Result<(), Stop> {
    let NamedCalls { api, device, .. } = *calls;
    let has_text = |attribute: Attribute| {
        let answer = api.attribute(device, attribute);
        matches!(answer, Ok(AttributeValue::Text(_)))
    };
    let (has, otherwise) = match what {
        "pool" => (
            api.pools_workspace(),
            "workspace of this device is plain memory",
        ),
        "addresses" => (
            api.supports_pointer_arithmetic(),
            "handles of this device are not addresses that the host may look at",
        ),
        "streams" => {
            let made = calls.streams.values();
            let has = made.clone().all(|(stream, _)| *stream != Stream::DEFAULT);
            (has, "the device has only the default stream")
        }
        "next" => {
            // DEV-42: the CPU ignores the index, so the next number needs no second CPU.
            let next = Device::new(device.kind, device.id + 1);
            let exists = || api.attribute(next, Attribute::Exist);
            let has = device.kind == Device::CPU.kind || exists()? == AttributeValue::Int(1);
            (has, "there is one device of this type")
        }
        "thread dimensions" => (
            has_text(Attribute::MaxThreadDimensions),
            "the device does not know its thread dimensions",
        ),
        "compute version" => (
            has_text(Attribute::ComputeVersion),
            "the device has no compute version",
        ),
        _ => return Err(Stop::Malformed(format!("`needs` knows no `{what}`"))),
    };
    if !has {
        Failure::skipped(otherwise)?;
    }
    Ok(())
}

/// Returns whether an answer has one of the forms that a step allows: null, a number, a text, or a word for many answers.
pub(super) fn fits(form: &Value, answer: &Value) -> bool {
    let text = answer.as_str();
    match form.as_str() {
        Some("some text") => text.is_some_and(|text| !text.is_empty()),
        Some("above 0") => answer.as_i64().is_some_and(|number| number > 0),
        Some("not 0") => *answer != json!(0),
        Some("three sizes") => text.is_some_and(|text| {
            let axes = serde_json::from_str::<[u64; 3]>(text);
            axes.is_ok_and(|axes| !axes.contains(&0))
        }),
        Some("version") => text.is_some_and(|text| {
            let parts: Vec<&str> = text.split('.').collect();
            let numbers = parts.iter().all(|part| part.parse::<u32>().is_ok());
            numbers && (2..=3).contains(&parts.len())
        }),
        _ => form == answer,
    }
}
