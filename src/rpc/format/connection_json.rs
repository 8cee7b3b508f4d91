//! The JSON form of a connection; `spec/schema/rpc.json` fixes it.

use super::connection::{Connection, ConnectionMessage, ConnectionSide};
use super::hello::HelloAnswer;
use super::json::from_packet;
use super::protocol::Speaker;
use super::relay_json::{from_tracker_reply, from_tracker_request};
use crate::release::Release;
use crate::rule::Violation;
use serde_json::{Value, json};

/// `{"releases": [first, last], "others": [..], "client": side, "server": side}`.
///
/// `others` has a member for each other form of the protocol, newest first: `{"releases", "broken"}`, where `broken` is null or
/// `{"side", "rule", "offset", "message"}` of what that form breaks first. A side is `{"messages": [{"start", "end", "message"}],
/// "fields": [[start, end, field, rule, value]], "broken": null or {"rule", "kind", "offset", "field", "message"}}`. Offsets count the bytes
/// of one side.
pub fn from_connection(connection: &Connection<'_>) -> Value {
    let range = |first: Release, last: Release| json!([first.to_string(), last.to_string()]);
    let others = connection.others.iter().map(|(first, last, broken)| {
        let broken = broken.as_ref().map(|(speaker, broken)| {
            json!({ "side": speaker.name(), "rule": broken.rule().id(), "offset": broken.offset(), "message": broken.message() })
        });
        json!({ "releases": range(*first, *last), "broken": broken })
    });
    json!({
        "releases": range(connection.releases.0, connection.releases.1),
        "others": others.collect::<Vec<_>>(),
        Speaker::Client.name(): from_side(&connection.client),
        Speaker::Server.name(): from_side(&connection.server),
    })
}

/// One side: its messages with where they lie, its fields, and the rule that ended the reading.
fn from_side(side: &ConnectionSide<'_>) -> Value {
    let messages = side.messages.iter().map(
        |(start, end, message)| json!({ "start": start, "end": end, "message": from_message(message) }),
    );
    let fields = side.fields.iter().map(|field| {
        json!([
            field.start,
            field.end,
            field.field,
            field.rule.id(),
            field.value
        ])
    });
    let broken = side.broken.as_ref().map(from_broken);
    json!({ "messages": messages.collect::<Vec<_>>(), "fields": fields.collect::<Vec<_>>(), "broken": broken })
}

/// The form that each kind of message has of its own.
fn from_message(message: &ConnectionMessage<'_>) -> Value {
    match message {
        ConnectionMessage::Hello(hello) => json!({ "key": hello.key }),
        ConnectionMessage::Answer(HelloAnswer::Success(key)) => {
            json!({ "code": "success", "key": key })
        }
        ConnectionMessage::Answer(HelloAnswer::Duplicate) => json!({ "code": "duplicate" }),
        ConnectionMessage::Answer(HelloAnswer::Mismatch) => json!({ "code": "mismatch" }),
        ConnectionMessage::Packet(packet) => from_packet(packet),
        ConnectionMessage::TrackerHello => json!({ "code": "tracker" }),
        ConnectionMessage::TrackerRequest(request) => from_tracker_request(request),
        ConnectionMessage::TrackerReply(reply) => from_tracker_reply(reply),
    }
}

fn from_broken(broken: &Violation) -> Value {
    json!({ "rule": broken.rule().id(), "kind": broken.kind().name(), "offset": broken.offset(), "field": broken.field(), "message": broken.message() })
}
