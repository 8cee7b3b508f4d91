//! What a tracker answers. Nothing in a reply names its request: its form does, and the order.

use super::super::{RPC_57, RPC_58};
use super::protocol::Progress;
use super::tracker::{TrackerText, write_text};
use super::tracker_request::{TrackerElements, TrackerPeer, from_peer};
use crate::rule::{Kind, Violation};
use crate::wire::{Cursor, Writer};
use serde_json::{Map, Value, json};

/// A reply of a tracker (RPC-57).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrackerReply {
    /// `0`: done; behind Ping, Put, UpdateInfo, and Stop with the right key.
    Success,
    /// `-1`: behind Stop with a wrong key.
    Fail,
    /// A server for the client that asked.
    Server {
        /// Where it listens, as a client reaches it.
        host: String,
        /// Where it listens.
        port: u16,
        /// What the client's hello must have.
        match_key: String,
    },
    /// How many servers and requests there are.
    Summary(TrackerSummary),
    /// The match keys of this connection's offers that have not been handed out.
    MatchKeys(Vec<String>),
}

/// How many servers and requests a tracker has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrackerSummary {
    /// Each key that was offered or asked for; ours drops those of no use for want of room (RPC-64).
    pub queues: Vec<TrackerCount>,
    /// The connections that have stated who they are.
    pub servers: Vec<TrackerPeer>,
}

/// How many servers and requests of one key a tracker has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrackerCount {
    /// The key that servers offer and clients ask for.
    pub key: String,
    /// Servers that wait for a client.
    pub free: u64,
    /// Clients that wait for a server.
    pub pending: u64,
}

impl TrackerReply {
    /// Reads a reply.
    ///
    /// # Errors
    ///
    /// RPC-51, RPC-52 and RPC-53 for the message, RPC-57 for what is no reply, RPC-58 for what one lacks.
    pub fn read(cursor: &mut Cursor<'_>) -> Result<Progress<TrackerReply>, Violation> {
        let text = match TrackerText::read(cursor)? {
            Progress::Short(more) => return Ok(Progress::Short(more)),
            Progress::Whole(text) => text,
        };
        let reply = reply(&text).map_err(|broken| broken.in_field("message"))?;
        Ok(Progress::Whole(reply))
    }

    /// Writes the reply.
    ///
    /// # Errors
    ///
    /// RPC-52 of kind limit for one that no reader takes.
    pub fn write(&self, out: &mut Writer) -> Result<(), Violation> {
        let value = match self {
            TrackerReply::Success => json!(0),
            TrackerReply::Fail => json!(-1),
            TrackerReply::Server {
                host,
                port,
                match_key,
            } => json!([0, [host, port, match_key]]),
            TrackerReply::Summary(summary) => json!([0, from_summary(summary)]),
            TrackerReply::MatchKeys(keys) => json!(keys),
        };
        write_text(&value, out)
    }
}

/// The reply that `text` is.
fn reply(text: &TrackerText) -> Result<TrackerReply, Violation> {
    let start = text.start;
    let other = || {
        let message = format!("`{}` is not a reply", text.value);
        RPC_57.broken(Kind::Malformed, start, message)
    };
    let Value::Array(values) = &text.value else {
        return match text.value.as_i64() {
            Some(0) => Ok(TrackerReply::Success),
            Some(-1) => Ok(TrackerReply::Fail),
            _ => Err(other()),
        };
    };
    let parts = TrackerElements::of(&text.value, RPC_58, start)?;
    // RPC-57: match keys are texts, so that a list of them is never one that begins with 0.
    if values.iter().all(Value::is_string) {
        let keys = 0..values.len();
        let keys = keys.map(|index| parts.text(index, "match key"));
        return Ok(TrackerReply::MatchKeys(keys.collect::<Result<_, _>>()?));
    }
    if values.first().and_then(Value::as_i64) != Some(0) {
        return Err(other());
    }
    // RPC-57: which of the two it is shows by its form alone: no reply names its request.
    match parts.get(1, "what was asked for")? {
        Value::Object(summary) => Ok(TrackerReply::Summary(to_summary(summary, start)?)),
        _ => {
            let server = parts.list(1, "server")?;
            Ok(TrackerReply::Server {
                host: server.text(0, "host")?,
                port: server.port(1)?,
                match_key: server.text(2, "match key")?,
            })
        }
    }
}

/// `{"queue_info": {key: {"free", "pending"}}, "server_info": [peer, ..]}`.
fn from_summary(summary: &TrackerSummary) -> Value {
    let queues = summary.queues.iter().map(|count| {
        let counts = json!({ "free": count.free, "pending": count.pending });
        (count.key.clone(), counts)
    });
    let servers = summary.servers.iter().map(from_peer);
    json!({ "queue_info": queues.collect::<Map<_, _>>(), "server_info": servers.collect::<Vec<_>>() })
}

/// The way back from [`from_summary`].
fn to_summary(summary: &Map<String, Value>, start: u64) -> Result<TrackerSummary, Violation> {
    let member = |name: &str| {
        summary
            .get(name)
            .ok_or_else(|| RPC_58.broken(Kind::Missing, start, format!("a summary has no {name}")))
    };
    let wrong = |what: &str, value: &Value| {
        RPC_58.broken(Kind::Type, start, format!("{what} is `{value}`"))
    };
    let queues = member("queue_info")?;
    let Value::Object(queues) = queues else {
        return Err(wrong("queue_info", queues));
    };
    let queues = queues.iter().map(|(key, counts)| {
        let count = |name| match counts.get(name) {
            None if counts.is_object() => {
                let message = format!("a key has no {name}");
                Err(RPC_58.broken(Kind::Missing, start, message))
            }
            count => count
                .and_then(Value::as_u64)
                .ok_or_else(|| wrong(name, counts)),
        };
        Ok(TrackerCount {
            key: key.clone(),
            free: count("free")?,
            pending: count("pending")?,
        })
    });
    let queues = queues.collect::<Result<_, Violation>>()?;
    let listed = member("server_info")?;
    let parts = TrackerElements::of(listed, RPC_58, start)?;
    let count = listed.as_array().map_or(0, Vec::len);
    // RPC-56: what a peer of 0.7 stated has no address in a summary of a later tracker either.
    let servers = (0..count).map(|index| parts.peer(index, false));
    let servers = servers.collect::<Result<_, _>>()?;
    Ok(TrackerSummary { queues, servers })
}
