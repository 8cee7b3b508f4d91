//! Replies of a tracker. A reply does not name its request; its form and its order show which one it answers.

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
    /// `0`: success; the answer to Ping, Put, UpdateInfo, and Stop with the right key.
    Success,
    /// `-1`: the answer to Stop with a wrong key.
    Fail,
    /// A server for the client that requested one.
    Server {
        /// Host of the server, as a client reaches it.
        host: String,
        /// Port of the server.
        port: u16,
        /// Match key that the client's hello must contain.
        match_key: String,
    },
    /// The numbers of servers and requests.
    Summary(TrackerSummary),
    /// Match keys of this connection's offers that were not given to a client yet.
    MatchKeys(Vec<String>),
}

/// The numbers of servers and requests of a tracker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrackerSummary {
    /// Counts of each key that was offered or requested. Our tracker drops unused keys when room is short (RPC-64).
    pub queues: Vec<TrackerCount>,
    /// The connections that have sent UpdateInfo.
    pub servers: Vec<TrackerPeer>,
}

/// The numbers of servers and requests for one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrackerCount {
    /// Key that servers offer and clients request.
    pub key: String,
    /// Number of servers that wait for a client.
    pub free: u64,
    /// Number of clients that wait for a server.
    pub pending: u64,
}

impl TrackerReply {
    /// Reads a reply.
    ///
    /// # Errors
    ///
    /// Returns RPC-51, RPC-52 and RPC-53 for the message, RPC-57 for a message that is not a reply, RPC-58 for an incomplete reply.
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
    /// Returns RPC-52 of kind limit for a reply that is too long for every reader.
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

/// Converts `text` to a reply.
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
    let parts = TrackerElements::from_list(&text.value, RPC_58, start)?;
    // RPC-57: match keys are strings, so that a list of them never begins with 0.
    if values.iter().all(Value::is_string) {
        let keys = 0..values.len();
        let keys = keys.map(|index| parts.text(index, "match key"));
        return Ok(TrackerReply::MatchKeys(keys.collect::<Result<_, _>>()?));
    }
    if values.first().and_then(Value::as_i64) != Some(0) {
        return Err(other());
    }
    // RPC-57: only the form tells the two apart, because no reply names its request.
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

/// Converts a summary to `{"queue_info": {key: {"free", "pending"}}, "server_info": [peer, ..]}`.
fn from_summary(summary: &TrackerSummary) -> Value {
    let queues = summary.queues.iter().map(|count| {
        let counts = json!({ "free": count.free, "pending": count.pending });
        (count.key.clone(), counts)
    });
    let servers = summary.servers.iter().map(from_peer);
    json!({ "queue_info": queues.collect::<Map<_, _>>(), "server_info": servers.collect::<Vec<_>>() })
}

/// Reads a summary. [`from_summary`] is the inverse.
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
    let parts = TrackerElements::from_list(listed, RPC_58, start)?;
    let count = listed.as_array().map_or(0, Vec::len);
    // RPC-56: a peer of 0.7 states no address, which is accepted here too.
    let servers = (0..count).map(|index| parts.peer(index, false));
    let servers = servers.collect::<Result<_, _>>()?;
    Ok(TrackerSummary { queues, servers })
}
