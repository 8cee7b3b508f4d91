//! Requests to a tracker: a list whose first element is a code.

use super::super::{RPC_54, RPC_55, RPC_56};
use super::protocol::Progress;
use super::tracker::{TrackerText, write_text};
use crate::release::Release;
use crate::rule::{Kind, Rule, Violation};
use crate::wire::{Cursor, Writer};
use serde_json::{Value, json};

/// A request to a tracker (RPC-54). Servers and clients write the same ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrackerRequest {
    /// 1: checks that the tracker is there.
    Ping,
    /// 2: stops the tracker, if this is the tracker's own key.
    Stop(String),
    /// 3: offers a server, for one session.
    Put(TrackerOffer),
    /// 4: requests a server.
    Request {
        /// Key under which the server must have offered itself.
        key: String,
        /// Name of the requesting user; released clients write an empty text.
        user: String,
        /// Requests of higher priority are served first; the default of clients is 1.
        priority: i64,
    },
    /// 5: sets the entry of this connection in the summary.
    UpdateInfo(TrackerPeer),
    /// 6: requests the numbers of servers and requests.
    Summary,
    /// 7: requests the match keys of this connection's offers that were not given to a client yet.
    PendingMatchKeys,
}

/// The offer of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrackerOffer {
    /// Key that clients request.
    pub key: String,
    /// Port of the server.
    pub port: u16,
    /// `key:` and a random number, which the client's hello must contain, so that an outdated offer opens no session.
    pub match_key: String,
    /// Host of the server, if it differs from the host of its connection to the tracker.
    pub host: Option<String>,
}

/// One connection in a tracker's summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrackerPeer {
    /// `server:` and a key; from a proxy, `server:proxy[` and its keys.
    pub key: String,
    /// Host and port. Without a host, the host of the connection is used. Present from 0.8 on (RPC-56).
    pub address: Option<(Option<String>, u16)>,
}

impl TrackerRequest {
    /// Reads a request.
    ///
    /// # Errors
    ///
    /// Returns RPC-51, RPC-52 and RPC-53 for the message, RPC-54 for its code, RPC-55 and RPC-56 for its other elements.
    pub fn read(
        cursor: &mut Cursor<'_>,
        release: Release,
    ) -> Result<Progress<TrackerRequest>, Violation> {
        let text = match TrackerText::read(cursor)? {
            Progress::Short(more) => return Ok(Progress::Short(more)),
            Progress::Whole(text) => text,
        };
        let request = TrackerElements::request(&text, release);
        let request = request.map_err(|broken| broken.in_field("message"))?;
        Ok(Progress::Whole(request))
    }

    /// Writes the request.
    ///
    /// # Errors
    ///
    /// Returns RPC-52 of kind limit for a request that is too long for every reader; RPC-56 of kind missing for a peer without an
    /// address from 0.8 on.
    pub fn write(&self, release: Release, out: &mut Writer) -> Result<(), Violation> {
        let value = match self {
            TrackerRequest::Ping => json!([1]),
            TrackerRequest::Stop(key) => json!([2, key]),
            // RPC-54: a tracker of 0.3 takes the host from the connection.
            TrackerRequest::Put(offer) if release.minor() < 4 => {
                json!([3, offer.key, [offer.port, offer.match_key]])
            }
            TrackerRequest::Put(offer) => {
                json!([3, offer.key, [offer.port, offer.match_key], offer.host])
            }
            TrackerRequest::Request {
                key,
                user,
                priority,
            } => json!([4, key, user, priority]),
            TrackerRequest::UpdateInfo(peer) => {
                let there = peer.address.is_some() || !has_address(release);
                RPC_56.demand(Kind::Missing, there, || {
                    "a peer without an address".to_owned()
                })?;
                json!([5, from_peer(peer)])
            }
            TrackerRequest::Summary => json!([6]),
            TrackerRequest::PendingMatchKeys => json!([7]),
        };
        write_text(&value, out)
    }
}

/// Returns whether UpdateInfo states an address. Trackers up to 0.7 use the address of the connection (RPC-56).
fn has_address(release: Release) -> bool {
    release.minor() >= 8
}

/// The elements of a request or reply, with the rule that defines them.
pub(super) struct TrackerElements<'v> {
    rule: Rule,
    start: u64,
    values: &'v [Value],
}

impl<'v> TrackerElements<'v> {
    /// Returns the elements of a list.
    pub(super) fn from_list(
        value: &'v Value,
        rule: Rule,
        start: u64,
    ) -> Result<TrackerElements<'v>, Violation> {
        match value {
            Value::Array(values) => Ok(TrackerElements {
                rule,
                start,
                values,
            }),
            other => Err(rule.broken(Kind::Type, start, format!("`{other}` is not a list"))),
        }
    }

    /// Returns element `index`.
    pub(super) fn get(&self, index: usize, name: &str) -> Result<&'v Value, Violation> {
        self.values.get(index).ok_or_else(|| {
            let message = format!("there is no {name}");
            self.rule.broken(Kind::Missing, self.start, message)
        })
    }

    /// Returns element `index` as a text.
    pub(super) fn text(&self, index: usize, name: &str) -> Result<String, Violation> {
        let value = self.get(index, name)?;
        let text = value.as_str().map(str::to_owned);
        text.ok_or_else(|| self.wrong_element(name, value))
    }

    /// Returns element `index` as a list.
    pub(super) fn list(&self, index: usize, name: &str) -> Result<TrackerElements<'v>, Violation> {
        TrackerElements::from_list(self.get(index, name)?, self.rule, self.start)
    }

    /// Returns element `index` as a port.
    pub(super) fn port(&self, index: usize) -> Result<u16, Violation> {
        let value = self.get(index, "port")?;
        let port = value.as_u64().and_then(|port| u16::try_from(port).ok());
        port.ok_or_else(|| self.wrong_element("port", value))
    }

    /// Returns element `index` as the port of an address, which the C++ server writes as a text (RPC-55).
    fn address_port(&self, index: usize) -> Result<u16, Violation> {
        let value = self.get(index, "port")?;
        match value.as_str() {
            Some(digits) if digits.bytes().all(|digit| digit.is_ascii_digit()) => {
                let port = digits.parse().ok();
                port.ok_or_else(|| self.wrong_element("port", value))
            }
            _ => self.port(index),
        }
    }

    fn wrong_element(&self, name: &str, value: &Value) -> Violation {
        let message = format!("{name} is `{value}`");
        self.rule.broken(Kind::Type, self.start, message)
    }

    /// Converts `text` to a request.
    fn request(text: &'v TrackerText, release: Release) -> Result<TrackerRequest, Violation> {
        let start = text.start;
        let code = match &text.value {
            Value::Array(values) => values.first().and_then(Value::as_i64),
            _ => None,
        };
        let Some(code) = code else {
            let message = format!("`{}` has no code", text.value);
            return Err(RPC_54.broken(Kind::Malformed, start, message));
        };
        let parts = TrackerElements::from_list(&text.value, RPC_55, start)?;
        // RPC-55: additional elements have no meaning, so the length of the list is not checked.
        Ok(match code {
            1 => TrackerRequest::Ping,
            2 => TrackerRequest::Stop(parts.text(1, "stop key")?),
            3 => {
                let key = parts.text(1, "key")?;
                let place = parts.list(2, "port and match key")?;
                let (port, match_key) = (place.port(0)?, place.text(1, "match key")?);
                // RPC-55: servers up to 0.7 state no host.
                let host = match parts.values.get(3) {
                    None | Some(Value::Null) => None,
                    Some(_) => Some(parts.text(3, "host")?),
                };
                TrackerRequest::Put(TrackerOffer {
                    key,
                    port,
                    match_key,
                    host,
                })
            }
            4 => {
                let (key, user) = (parts.text(1, "key")?, parts.text(2, "user")?);
                let priority = parts.get(3, "priority")?;
                TrackerRequest::Request {
                    key,
                    user,
                    priority: priority
                        .as_i64()
                        .ok_or_else(|| parts.wrong_element("priority", priority))?,
                }
            }
            5 => TrackerRequest::UpdateInfo(parts.peer(1, has_address(release))?),
            6 => TrackerRequest::Summary,
            7 => TrackerRequest::PendingMatchKeys,
            other => {
                let message = format!("no request has code {other}");
                return Err(RPC_54.broken(Kind::UnknownKind, start, message));
            }
        })
    }

    /// Reads element `index` as `{"key": .., "addr": [host, port]}`. Other members are ignored.
    pub(super) fn peer(&self, index: usize, has_address: bool) -> Result<TrackerPeer, Violation> {
        let value = self.get(index, "peer")?;
        let Value::Object(members) = value else {
            return Err(self.wrong_element("peer", value));
        };
        // RPC-58: a fault inside a peer breaks RPC-55, also in a summary.
        let key = members.get("key").ok_or_else(|| {
            let message = "a peer has no key".to_owned();
            RPC_55.broken(Kind::Missing, self.start, message)
        })?;
        let key = key.as_str().ok_or_else(|| {
            let message = format!("key is `{key}`");
            RPC_55.broken(Kind::Type, self.start, message)
        })?;
        let address = match members.get("addr") {
            None => {
                RPC_56.require_as(Kind::Missing, !has_address, self.start, || {
                    "a peer has no address".to_owned()
                })?;
                None
            }
            Some(address) => {
                let address = TrackerElements::from_list(address, RPC_55, self.start)?;
                let host = match address.get(0, "host")? {
                    Value::Null => None,
                    _ => Some(address.text(0, "host")?),
                };
                Some((host, address.address_port(1)?))
            }
        };
        let key = key.to_owned();
        Ok(TrackerPeer { key, address })
    }
}

/// Converts a peer to `{"key": .., "addr": [host, port]}`.
pub(super) fn from_peer(peer: &TrackerPeer) -> Value {
    match &peer.address {
        None => json!({ "key": peer.key }),
        Some((host, port)) => json!({ "key": peer.key, "addr": [host, port] }),
    }
}
