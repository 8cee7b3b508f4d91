//! `rpc.connection`: both sides of a connection, and the releases that speak like that.

use crate::conformance::golden::hex_bytes;
use crate::conformance::op::{Answer, OpError};
use crate::release::Release;
use crate::rpc::Connection;
use crate::rule::Findings;
use serde_json::{Value, json};

/// Reads the bytes of both sides.
pub(super) fn read(args: &Value) -> Result<Answer, OpError> {
    let release = args.get("release").and_then(Value::as_str);
    let release: Option<Release> = release
        .map(|release| release.parse().map_err(OpError::from))
        .transpose()?;
    let (client, server) = (side(args, "client")?, side(args, "server")?);
    let mut form = json!(Connection::read(&client, &server, release));
    let has_fields = args.get("fields") == Some(&Value::Bool(true));
    for name in ["client", "server"] {
        if let Some(side) = form.get_mut(name).and_then(Value::as_object_mut) {
            without_text(side.get_mut("broken"));
            if !has_fields {
                side.remove("fields");
            }
        }
    }
    let others = form.get_mut("others").and_then(Value::as_array_mut);
    for other in others.into_iter().flatten() {
        without_text(other.get_mut("broken"));
    }
    Ok(Answer::new(form, Findings::default()))
}

/// Removes the text of a violation, which readers choose themselves.
fn without_text(broken: Option<&mut Value>) {
    if let Some(broken) = broken.and_then(Value::as_object_mut) {
        broken.remove("message");
    }
}

/// Returns the bytes of a side, which are given as pieces of hex.
fn side(args: &Value, name: &str) -> Result<Vec<u8>, OpError> {
    let wrong = || OpError::Unsupported(format!("`{name}` has another form"));
    let value = args.get("value").and_then(|value| value.get(name));
    let pieces = value.and_then(Value::as_array).ok_or_else(wrong)?;
    let mut bytes = Vec::new();
    for piece in pieces {
        let piece = piece.as_str().and_then(|hex| hex_bytes(hex).ok());
        bytes.extend(piece.ok_or_else(wrong)?);
    }
    Ok(bytes)
}
