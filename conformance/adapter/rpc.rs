//! `rpc:HOST:PORT[/KEY][@RELEASE]`: a server that runs somewhere, played with by a client.
//!
//! It is put to `rpc.session`, and to nothing else. Each session is a connection of its own. A server that serves no session
//! behind one that it ended has crashed, and the case of that session is charged with it.
//!
//! Cases call functions of the suite where a server has them: `conformance/testee/python/rpc_server.py` starts a server of TVM that
//! does. A server is as it was started, so that a session that wants it started otherwise is unsupported.

use super::{Identity, Reply, Testee};
use crate::conformance::op::OpError;
use crate::conformance::rpc::session::{RawWriter, ServerStart, SessionScript};
use crate::release::Release;
use crate::rpc::transport::Transport;
use serde_json::{Value, json};
use std::io::Write as _;
use std::net::{Shutdown, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

/// A server, and how long it may take for an answer.
pub(super) struct LiveServer {
    place: String,
    key: String,
    release: Release,
    patience: Duration,
}

/// Host and port, key, and the release that is stated.
struct Spelled {
    place: String,
    key: String,
    release: Option<Release>,
}

/// Checks the spelling without connecting.
///
/// # Errors
///
/// What is missing, or no release from 0.7 on.
fn spelled(text: &str) -> Result<Spelled, String> {
    let (text, release) = match text.rsplit_once('@') {
        None => (text, None),
        Some((text, release)) => {
            let named: Option<Release> = release.parse().ok();
            let named = named.filter(|named| named.minor() >= 7);
            let wrong = || {
                format!(
                    "rpc: `{release}` is no release with this protocol: there are 0.7 to {}",
                    Release::LAST
                )
            };
            (text, Some(named.ok_or_else(wrong)?))
        }
    };
    let (place, key) = text.split_once('/').unwrap_or((text, ""));
    let port = place.rsplit_once(':').filter(|(host, _)| !host.is_empty());
    match port.map(|(_, port)| port.parse::<u16>()) {
        Some(Ok(_)) => Ok(Spelled {
            place: place.to_owned(),
            key: key.to_owned(),
            release,
        }),
        _ => Err("rpc: needs a host and a port, such as rpc:127.0.0.1:9090@0.27".to_owned()),
    }
}

impl LiveServer {
    /// The server at `text`, which serves a session to show that it is there.
    ///
    /// # Errors
    ///
    /// The spelling; that nothing answers there; that the release is to be stated.
    pub(super) fn open(text: &str, patience: Duration) -> Result<LiveServer, String> {
        let Spelled {
            place,
            key,
            release,
        } = spelled(text)?;
        let server = LiveServer {
            place,
            key,
            release: release.unwrap_or(Release::LAST),
            patience,
        };
        let begun = server.begins();
        match release {
            Some(_) => begun?,
            None => begun.map_err(|why| {
                format!(
                    "{why}; if it is of another release than {}, state it: rpc:HOST:PORT@0.8",
                    Release::LAST
                )
            })?,
        }
        Ok(server)
    }

    /// Whether a session begins.
    fn begins(&self) -> Result<(), String> {
        let args = json!({"release": self.release.to_string(), "value": []});
        let script = SessionScript::read(&args).map_err(|error| format!("{error:?}"))?;
        match self.play(&script) {
            Ok(value) if value["end"] == "client" && value["answers"] == json!([]) => Ok(()),
            Ok(value) => Err(format!("rpc: {} serves no session: {value}", self.place)),
            Err(reply) => Err(format!("rpc: {} serves no session: {reply:?}", self.place)),
        }
    }

    fn play(&self, script: &SessionScript<'_>) -> Result<Value, Reply> {
        let gone = |error: std::io::Error| Reply::Crash(format!("{}: {error}", self.place));
        let stream = self.connect().map_err(gone)?;
        let writer = SocketWriter(stream.try_clone().map_err(gone)?);
        let transport = Transport::tcp(stream).map_err(|error| Reply::Crash(error.to_string()))?;
        let mut value = script.play(transport, &writer, &self.key, self.patience)?;
        // The name of the server is its operator's choice.
        if value["hello"]["key"] == json!(format!("server:{}", self.key)) {
            value["hello"]["key"] = json!("server:");
        }
        Ok(value)
    }

    fn connect(&self) -> std::io::Result<TcpStream> {
        let mut last = std::io::ErrorKind::AddrNotAvailable.into();
        for address in self.place.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, self.patience) {
                Ok(stream) => {
                    // A server that does not read is not written to for ever.
                    stream.set_write_timeout(Some(self.patience))?;
                    return Ok(stream);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

impl Testee for LiveServer {
    fn identity(&self) -> Identity {
        Identity {
            name: format!("RPC server at {}", self.place),
            version: self.release.to_string(),
            releases: vec![self.release.to_string()],
            ops: vec!["rpc.session".into()],
        }
    }

    fn answer(&mut self, op: &str, args: &Value) -> Reply {
        if op != "rpc.session" {
            return Reply::Unsupported("a live server is played with by rpc.session only".into());
        }
        let script = match SessionScript::read(args) {
            Ok(script) => script,
            Err(OpError::Unsupported(why)) => return Reply::Unsupported(why),
            Err(OpError::Rejected(broken)) => return Reply::ProtocolError(broken.to_string()),
        };
        if script.server != ServerStart::default() {
            return Reply::Unsupported("a live server is as it was started".into());
        }
        let played = self.play(&script);
        let is_well = matches!(&played, Ok(value) if value["end"] == "client");
        // A server that ends a session may have ended with it.
        match if is_well { Ok(()) } else { self.begins() } {
            Err(why) => Reply::Crash(format!("{}; behind this case {why}", shown(&played))),
            Ok(()) => match played {
                Ok(value) => Reply::Ok {
                    value,
                    findings: None,
                },
                Err(reply) => reply,
            },
        }
    }
}

fn shown(played: &Result<Value, Reply>) -> String {
    match played {
        Ok(value) => format!("the session: {value}"),
        Err(reply) => format!("{reply:?}"),
    }
}

/// The direction to the server, beside the transport.
struct SocketWriter(TcpStream);

impl RawWriter for SocketWriter {
    fn write(&self, bytes: &[u8]) -> bool {
        (&self.0).write_all(bytes).is_ok()
    }

    fn close(&self) {
        // A connection that is gone is closed.
        drop(self.0.shutdown(Shutdown::Write));
    }
}

/// Checks the spelling without connecting.
///
/// # Errors
///
/// As [`LiveServer::open`] without a server.
pub(super) fn parse(text: &str) -> Result<(), String> {
    spelled(text).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_a_port_and_perhaps_a_key_and_a_release() {
        let read = |text| {
            let found = spelled(text).map_err(drop)?;
            Ok((
                found.place,
                found.key,
                found.release.map(|release| release.to_string()),
            ))
        };
        let found = |place: &str, key: &str, release: Option<&str>| {
            Ok((place.to_owned(), key.to_owned(), release.map(str::to_owned)))
        };
        assert_eq!(read("a:9090"), found("a:9090", "", None));
        assert_eq!(
            read("a:9090/key:1@0.8"),
            found("a:9090", "key:1", Some("0.8"))
        );
        assert_eq!(read("[::1]:9@0.27"), found("[::1]:9", "", Some("0.27")));
        for text in [
            "",
            "a",
            ":9090",
            "a:b",
            "a:70000",
            "a:9090@0.6",
            "a:9090@next",
        ] {
            assert_eq!(read(text), Err(()), "{text}");
        }
    }
}
