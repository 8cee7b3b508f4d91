//! The JSON form of a connection; `spec/schema/rpc.json` fixes it.

use super::connection::{Connection, ConnectionMessage, ConnectionSide};
use super::hello::HelloAnswer;
use super::protocol::Speaker;
use super::relay_json::{from_tracker_reply, from_tracker_request};
use crate::release::{Release, Releases};
use crate::rule::Violation;
use serde_core::ser::{Serialize, SerializeMap as _, SerializeSeq as _, Serializer};
use serde_json::{Value, json};

/// `{"releases": [first, last], "others": [..], "client": side, "server": side}`.
///
/// `others` has a member for each other form of the protocol, newest first: `{"releases", "broken"}`. There `broken` is null or `{"side",
/// "rule", "offset", "message"}` of the first rule that is broken. A side is `{"messages": [{"start", "end", "message"}], "fields":
/// [[start, end, field, rule, value]], "broken": null or {"rule", "kind", "offset", "field", "message"}}`. Offsets count the bytes of one
/// side. Messages and fields are parsed while they are written, so that only one is in memory at a time.
impl Serialize for Connection<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let range = |first: Release, last: Release| json!([first.to_string(), last.to_string()]);
        let others = self.others.iter().map(|(first, last, broken)| {
            let broken = broken.as_ref().map(|(speaker, broken)| {
                json!({ "side": speaker.name(), "rule": broken.rule().id(), "offset": broken.offset(), "message": broken.message() })
            });
            json!({ "releases": range(*first, *last), "broken": broken })
        });
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("releases", &range(self.releases.0, self.releases.1))?;
        map.serialize_entry("others", &others.collect::<Value>())?;
        let era = self.era();
        map.serialize_entry(Speaker::Client.name(), &SideForm(&self.client, era))?;
        map.serialize_entry(Speaker::Server.name(), &SideForm(&self.server, era))?;
        map.end()
    }
}

/// One side: its messages with their offsets, its fields, and the rule that ended the reading. Types have the names of these releases.
struct SideForm<'c, 'a>(&'c ConnectionSide<'a>, Releases);

impl Serialize for SideForm<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("messages", &MessageList(self.0, self.1))?;
        map.serialize_entry("fields", &FieldList(self.0))?;
        map.serialize_entry("broken", &self.0.broken.as_ref().map(from_broken))?;
        map.end()
    }
}

/// The messages of a side.
struct MessageList<'c, 'a>(&'c ConnectionSide<'a>, Releases);

impl Serialize for MessageList<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let forms = self
            .0
            .messages()
            .map(|message| MessageForm(message, self.1));
        serializer.collect_seq(forms)
    }
}

/// A message with the offset of its first byte and the offset after its last byte.
struct MessageForm<'a>((u64, u64, ConnectionMessage<'a>), Releases);

impl Serialize for MessageForm<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (start, end, message) = &self.0;
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("start", start)?;
        map.serialize_entry("end", end)?;
        match message {
            ConnectionMessage::Packet(packet) => {
                map.serialize_entry("message", &packet.in_era(self.1))?;
            }
            message => map.serialize_entry("message", message)?,
        }
        map.end()
    }
}

/// Each kind of message has its own form.
impl Serialize for ConnectionMessage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let form = match self {
            // Only a packet may be long, so that it is not built as one value.
            ConnectionMessage::Packet(packet) => return packet.serialize(serializer),
            ConnectionMessage::Hello(hello) => json!({ "key": hello.key }),
            ConnectionMessage::Answer(HelloAnswer::Success(key)) => {
                json!({ "code": "success", "key": key })
            }
            ConnectionMessage::Answer(HelloAnswer::Duplicate) => json!({ "code": "duplicate" }),
            ConnectionMessage::Answer(HelloAnswer::Mismatch) => json!({ "code": "mismatch" }),
            ConnectionMessage::TrackerHello => json!({ "code": "tracker" }),
            ConnectionMessage::TrackerRequest(request) => from_tracker_request(request),
            ConnectionMessage::TrackerReply(reply) => from_tracker_reply(reply),
        };
        form.serialize(serializer)
    }
}

/// The fields of a side, message by message, including those before a broken rule.
struct FieldList<'c, 'a>(&'c ConnectionSide<'a>);

impl Serialize for FieldList<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        let mut written = Ok(());
        let mut messages = self.0.messages();
        loop {
            messages.visit_fields(|span| {
                if written.is_ok() {
                    let field = (
                        span.start,
                        span.end,
                        &span.field,
                        span.rule.id(),
                        &span.value,
                    );
                    written = list.serialize_element(&field);
                }
            });
            if written.is_err() || messages.next().is_none() {
                break;
            }
        }
        written?;
        list.end()
    }
}

fn from_broken(broken: &Violation) -> Value {
    json!({ "rule": broken.rule().id(), "kind": broken.kind().name(), "offset": broken.offset(), "field": broken.field(), "message": broken.message() })
}
