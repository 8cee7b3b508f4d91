//! The JSON forms of messages to and from trackers; `spec/schema/rpc.json` fixes them.

use super::tracker_reply::{TrackerCount, TrackerReply, TrackerSummary};
use super::tracker_request::{TrackerOffer, TrackerPeer, TrackerRequest};
use crate::release::ParseError;
use serde_json::{Map, Value, json};

/// Converts a request to a tracker to `{"code": .., ..}`. [`to_tracker_request`] is the inverse.
pub fn from_tracker_request(request: &TrackerRequest) -> Value {
    match request {
        TrackerRequest::Ping => json!({ "code": "ping" }),
        TrackerRequest::Stop(key) => json!({ "code": "stop", "stop_key": key }),
        TrackerRequest::Put(offer) => {
            // RPC-56: null if the host is the one of the connection, as on the wire.
            json!({ "code": "put", "key": offer.key, "port": offer.port, "match": offer.match_key, "host": offer.host })
        }
        TrackerRequest::Request {
            key,
            user,
            priority,
        } => json!({ "code": "request", "key": key, "user": user, "priority": priority }),
        TrackerRequest::UpdateInfo(peer) => {
            json!({ "code": "update-info", "peer": from_peer(peer) })
        }
        TrackerRequest::Summary => json!({ "code": "summary" }),
        TrackerRequest::PendingMatchKeys => json!({ "code": "pending-match-keys" }),
    }
}

/// Reads a request from its JSON form. [`from_tracker_request`] is the inverse.
///
/// # Errors
///
/// A [`ParseError`] that names the member that is missing or has another type, or the unknown code.
pub fn to_tracker_request(form: &Value) -> Result<TrackerRequest, ParseError> {
    Ok(match text(form, "code")?.as_str() {
        "ping" => TrackerRequest::Ping,
        "stop" => TrackerRequest::Stop(text(form, "stop_key")?),
        "put" => TrackerRequest::Put(TrackerOffer {
            key: text(form, "key")?,
            port: port(form)?,
            match_key: text(form, "match")?,
            // RPC-56: null and a missing host mean the same: the host of the connection.
            host: text(form, "host").ok(),
        }),
        "request" => TrackerRequest::Request {
            key: text(form, "key")?,
            user: text(form, "user")?,
            priority: form
                .get("priority")
                .and_then(Value::as_i64)
                // RPC-61: there is no default here, because a form shows the bytes on the wire. Python's clients have a default of 1.
                .ok_or("there is no priority")?,
        },
        "update-info" => {
            TrackerRequest::UpdateInfo(to_peer(form.get("peer").unwrap_or(&Value::Null))?)
        }
        "summary" => TrackerRequest::Summary,
        "pending-match-keys" => TrackerRequest::PendingMatchKeys,
        other => return Err(ParseError::new(format!("no request is `{other}`"))),
    })
}

/// Converts a tracker's reply to `{"code": .., ..}`. [`to_tracker_reply`] is the inverse.
pub fn from_tracker_reply(reply: &TrackerReply) -> Value {
    match reply {
        TrackerReply::Success => json!({ "code": "success" }),
        TrackerReply::Fail => json!({ "code": "fail" }),
        TrackerReply::Server {
            host,
            port,
            match_key,
        } => json!({ "code": "server", "host": host, "port": port, "match": match_key }),
        TrackerReply::Summary(summary) => {
            let queues = summary.queues.iter().map(|count| {
                let counts = json!({ "free": count.free, "pending": count.pending });
                // RPC-64: keyed by the key; a tracker writes each key once, so that an object holds all of them.
                (count.key.clone(), counts)
            });
            let servers: Vec<_> = summary.servers.iter().map(from_peer).collect();
            json!({ "code": "summary", "queues": queues.collect::<Map<_, _>>(), "servers": servers })
        }
        TrackerReply::MatchKeys(keys) => json!({ "code": "match-keys", "keys": keys }),
    }
}

/// Reads a reply from its JSON form. [`from_tracker_reply`] is the inverse.
///
/// # Errors
///
/// A [`ParseError`] that names the member that is missing or has another type, or the unknown code.
pub fn to_tracker_reply(form: &Value) -> Result<TrackerReply, ParseError> {
    let list = |name: &str| {
        let list = form.get(name).and_then(Value::as_array);
        list.ok_or_else(|| ParseError::new(format!("there is no list `{name}`")))
    };
    Ok(match text(form, "code")?.as_str() {
        "success" => TrackerReply::Success,
        "fail" => TrackerReply::Fail,
        "server" => TrackerReply::Server {
            host: text(form, "host")?,
            port: port(form)?,
            match_key: text(form, "match")?,
        },
        "summary" => {
            let queues = form.get("queues").and_then(Value::as_object);
            let queues = queues.ok_or("there are no queues")?.iter();
            let queues = queues.map(|(key, counts)| TrackerCount {
                key: key.clone(),
                free: counts["free"].as_u64().unwrap_or_default(),
                pending: counts["pending"].as_u64().unwrap_or_default(),
            });
            let servers = list("servers")?.iter().map(to_peer);
            TrackerReply::Summary(TrackerSummary {
                queues: queues.collect(),
                servers: servers.collect::<Result<_, _>>()?,
            })
        }
        "match-keys" => {
            let keys = list("keys")?.iter();
            let keys = keys.map(|key| key.as_str().unwrap_or_default().to_owned());
            TrackerReply::MatchKeys(keys.collect())
        }
        other => return Err(ParseError::new(format!("no reply is `{other}`"))),
    })
}

/// Converts a peer to `{"key": .., "host": .., "port": ..}`; without an address, only the key (RPC-56).
fn from_peer(peer: &TrackerPeer) -> Value {
    match &peer.address {
        None => json!({ "key": peer.key }),
        Some((host, port)) => json!({ "key": peer.key, "host": host, "port": port }),
    }
}

/// Reads a peer from its JSON form: it has an address if it has a port.
fn to_peer(form: &Value) -> Result<TrackerPeer, ParseError> {
    let address = match form.get("port") {
        None => None,
        Some(_) => Some((text(form, "host").ok(), port(form)?)),
    };
    let key = text(form, "key")?;
    Ok(TrackerPeer { key, address })
}

fn text(form: &Value, name: &str) -> Result<String, ParseError> {
    let text = form.get(name).and_then(Value::as_str);
    text.map(str::to_owned)
        .ok_or_else(|| ParseError::new(format!("there is no text under `{name}`")))
}

fn port(form: &Value) -> Result<u16, ParseError> {
    let port = form.get("port").and_then(Value::as_u64);
    let port = port.and_then(|port| u16::try_from(port).ok());
    port.ok_or_else(|| ParseError::new("there is no port"))
}
