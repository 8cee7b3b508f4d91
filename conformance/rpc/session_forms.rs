//! Display of the answers of a session.

use super::session::texts_in;
use crate::rpc::json::from_packet;
use crate::rpc::{PackedValue, Packet};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// Returns the display of an answer, and its values for later requests.
pub(super) fn shown(
    packet: &Packet<'_>,
    step: &Map<String, Value>,
    texts: &[&str],
) -> (Value, Vec<PackedValue<'static>>) {
    let mut form = from_packet(packet);
    if let Packet::Exception(values) = packet {
        // RPC-26, RPC-82: an exception is one string whose wording depends on the server. Only the parts that the case names are compared.
        let text = match values.as_slice() {
            [PackedValue::Str(text)] => String::from_utf8_lossy(text),
            _ => Cow::Borrowed(""),
        };
        let has = texts_in(&text, texts);
        return (json!({"code": "Exception", "has": has}), Vec::new());
    }
    let values = match packet {
        Packet::Return(values) => values.iter().filter_map(handed_out).collect(),
        _ => Vec::new(),
    };
    let with_lengths = step.get("lengths") == Some(&Value::Bool(true));
    for value in form
        .get_mut("args")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        hide(value, with_lengths);
    }
    (form, values)
}

/// Returns the value if a later request may refer to it.
fn handed_out(value: &PackedValue<'_>) -> Option<PackedValue<'static>> {
    match value {
        PackedValue::Handle(handle) => Some(PackedValue::Handle(*handle)),
        PackedValue::Tensor(block) => Some(PackedValue::Tensor(block.clone())),
        _ => None,
    }
}

/// Replaces the server's own numbers by `"some"`, and with `with_lengths` texts and bytes by their lengths.
fn hide(value: &mut Value, with_lengths: bool) {
    let some = |number: Option<&mut Value>| {
        // RPC-85: 0 means no object on every server, so that it stays visible.
        if let Some(number) = number.filter(|number| number.as_u64() != Some(0)) {
            *number = json!("some");
        }
    };
    some(value.get_mut("handle"));
    some(value.pointer_mut("/tensor/data"));
    if with_lengths {
        if let Some(bytes) = value.get_mut("bytes") {
            let length = bytes
                .as_str()
                .and_then(|text| BASE64_STANDARD.decode(text).ok());
            *bytes = json!(length.unwrap_or_default().len());
        }
        if let Some(text) = value.get_mut("str") {
            *text = json!(text.as_str().unwrap_or_default().len());
        }
    }
}
