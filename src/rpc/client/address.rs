//! Addresses of remote devices as text: `rpc://host:port/key#cpu:0`, `rpc-tracker://host:port/key#cpu:0`.

use super::super::tracker::TrackerClient;
use super::super::transport::seconds;
use super::super::{TrackerReply, TrackerRequest};
use super::options::{RemoteHop, SessionOptions};
use super::session::Session;
use crate::device::Device;
use crate::function::{Error, ErrorKind, Result};
use crate::release::Release;
use crate::value::device_from_text;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The address of a device of a server, with the options of the session. Alternatively, the address of a tracker, with the key of the
/// server to request from it.
///
/// ```
/// use tvmspec::rpc::client::RemoteAddress;
///
/// let address = RemoteAddress::parse("rpc://board:9090/key?release=0.8&timeout=60#cpu:0")?;
/// assert_eq!((&*address.host, address.port, &*address.key), ("board", 9090, "key"));
/// assert!(RemoteAddress::parse("rpc://board").is_err());
/// let any = RemoteAddress::parse("rpc-tracker://farm:9190/board?priority=5&wait=600")?;
/// assert_eq!(any.tracker.map(|tracker| tracker.priority), Some(5));
/// # Ok::<(), tvmspec::function::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct RemoteAddress {
    /// Name or address of the server or the tracker.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Key of the server, often empty. A tracker assigns a server of this key.
    pub key: String,
    /// Options for the tracker, if the host is a tracker.
    pub tracker: Option<TrackerChoice>,
    /// Options after `?`: `release=0.8`; `timeout=SECONDS` of a request, which also bounds the time to connect; `session-timeout=SECONDS`;
    /// `via=HOST:PORT/KEY` for a hop, which may be repeated.
    pub options: SessionOptions,
    /// Device after `#`, with the server's own number; `cpu:0` by default.
    pub device: Device,
}

/// Options for a tracker, after `?`: `priority=N` and `wait=SECONDS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackerChoice {
    /// Priority of the request; higher ones are served first (RPC-61). 1 by default, as in Python's clients.
    pub priority: i64,
    /// Time limit for a server to become free; one minute by default.
    pub wait: Duration,
}

impl Default for TrackerChoice {
    fn default() -> TrackerChoice {
        TrackerChoice {
            priority: 1,
            wait: Duration::from_secs(60),
        }
    }
}

/// Maximum number of the tracker's keys that an error names.
const KEYS: usize = 8;

/// Number of servers that are tried when an assigned server is gone.
const TRIES: usize = 5;

impl RemoteAddress {
    /// Prefix of the address of a server.
    pub const SCHEME: &'static str = "rpc://";

    /// Prefix of the address of a tracker.
    pub const TRACKER_SCHEME: &'static str = "rpc-tracker://";

    /// Returns whether the text is the address of a server or a tracker, and not of a device of this process.
    pub fn is_remote(text: &str) -> bool {
        split_scheme(text).is_some()
    }

    /// Parses an address.
    ///
    /// # Errors
    ///
    /// Returns a ValueError that shows the syntax; VAL-13 for an unknown device name.
    pub fn parse(text: &str) -> Result<RemoteAddress> {
        let wrong = |why: &str| {
            let form = if text.starts_with(RemoteAddress::TRACKER_SCHEME) {
                "rpc-tracker://HOST:PORT/KEY?priority=1&wait=SECONDS#cpu:0"
            } else {
                "rpc://HOST:PORT/KEY?release=0.8&timeout=SECONDS#cpu:0"
            };
            Error::new(
                ErrorKind::Value,
                format!("`{text}`: {why}; the form is {form}"),
            )
        };
        let (mut tracker, rest) =
            split_scheme(text).ok_or_else(|| wrong("it does not begin with rpc://"))?;
        let (rest, device) = rest.split_once('#').unwrap_or((rest, "cpu:0"));
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let server = ServerPlace::parse(rest).map_err(|why| wrong(&why))?;
        if tracker.is_some() && server.key.is_empty() {
            return Err(wrong("it has no key to ask the tracker for"));
        }
        let mut options = SessionOptions::default();
        for option in query.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let seconds = || {
                let seconds: f64 = value.parse().ok()?;
                Duration::try_from_secs_f64(seconds)
                    .ok()
                    .filter(|time| !time.is_zero())
            };
            match (name, &mut tracker) {
                ("priority", Some(tracker)) => {
                    let priority = value.parse();
                    tracker.priority = priority.map_err(|_| wrong("no number of a priority"))?;
                }
                ("wait", Some(tracker)) => {
                    tracker.wait =
                        seconds().ok_or_else(|| wrong("no number of seconds above 0"))?;
                }
                ("release", _) => {
                    let release = value.parse::<Release>();
                    options.release = Some(release.map_err(|_| wrong("no such release"))?);
                }
                ("timeout", _) => {
                    let limit = seconds().ok_or_else(|| wrong("no number of seconds above 0"))?;
                    options.timeout = Some(limit);
                    // A short timeout also bounds the connection; a long one allows for slow requests and does not extend it.
                    options.connect_timeout = options.connect_timeout.min(limit);
                }
                ("session-timeout", _) => {
                    let limit = seconds().ok_or_else(|| wrong("no number of seconds above 0"))?;
                    options.session_timeout = Some(limit.as_secs_f64());
                }
                ("via", _) => {
                    let hop = ServerPlace::parse(value)
                        .map_err(|why| wrong(&format!("no hop is `{value}`: {why}")))?;
                    options.hops.push(RemoteHop {
                        host: hop.host.to_owned(),
                        port: hop.port,
                        key: hop.key.to_owned(),
                    });
                }
                _ => return Err(wrong(&format!("no option is called `{name}`"))),
            }
        }
        // Without a release, the first session only finds out the encoding, and that would use up the match key.
        if tracker.is_some() && !options.hops.is_empty() && options.release.is_none() {
            return Err(wrong("behind a tracker, `via` needs `release`"));
        }
        Ok(RemoteAddress {
            host: server.host.to_owned(),
            port: server.port,
            key: server.key.to_owned(),
            tracker,
            options,
            device: device_from_text(device)?,
        })
    }

    /// Connects to the server, or to one that the tracker assigns. An assigned server is taken until the session ends.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Session::connect`] and [`TrackerClient::request`].
    pub fn connect(&self) -> Result<Session> {
        self.connect_while(&|| true)
    }

    /// Connects like [`RemoteAddress::connect`], while `goes_on` returns true. It is called several times a second while the tracker has no
    /// free server.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`RemoteAddress::connect`]. Also returns a TimeoutError if `goes_on` returns false.
    pub fn connect_while(&self, goes_on: &dyn Fn() -> bool) -> Result<Session> {
        let options = &self.options;
        let Some(choice) = self.tracker else {
            return Session::connect_or_probe(&self.host, self.port, &self.key, options, true);
        };
        let end = Instant::now().checked_add(choice.wait);
        let mut tracker = self.tracker_client()?;
        let mut tried = 0;
        let mut unanswered = None;
        loop {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            let left = left.unwrap_or(choice.wait);
            let found = tracker
                .request_while(&self.key, choice.priority, left, goes_on)
                .map_err(|error| self.not_free(error, choice.wait, unanswered.take()))?;
            // RPC-67: the match key opens this one session; another key is answered with mismatch.
            let session = Session::connect(&found.host, found.port, &found.match_key, options);
            tried += 1;
            match session {
                // The server ended after its offer: the tracker may have another one, or the same one again.
                Err(error)
                    if tried < TRIES
                        && (error.kind() == ErrorKind::Connection
                            || error.kind() == ErrorKind::Timeout) =>
                {
                    let reason = error.reason();
                    unanswered = Some(format!(
                        "{}:{} was handed out and did not answer: {reason}",
                        found.host, found.port
                    ));
                }
                Err(error) => {
                    let text = format!(
                        "the tracker hands out {}:{}: {}",
                        found.host,
                        found.port,
                        error.reason()
                    );
                    return Err(Error::new(error.kind(), text));
                }
                Ok(session) => return Ok(session),
            }
        }
    }
}

impl RemoteAddress {
    /// Connects to the tracker, within the time limit for connecting.
    fn tracker_client(&self) -> Result<TrackerClient> {
        let place = (&*self.host, self.port);
        TrackerClient::connect_within(place, self.options.connect_timeout)
    }

    /// Creates the error for a key without a free server within `wait`. It lists the tracker's other keys, so that a misspelt key shows. It
    /// also reports the failure of the last server that was assigned, which may be the only one.
    fn not_free(&self, error: Error, wait: Duration, unanswered: Option<String>) -> Error {
        if error.kind() != ErrorKind::Timeout {
            return error;
        }
        let mut text = format!(
            "no server of key `{}` was free within {}",
            self.key,
            seconds(wait)
        );
        for part in [self.summary(), unanswered].into_iter().flatten() {
            text.push_str("; ");
            text.push_str(&part);
        }
        Error::new(ErrorKind::Timeout, text)
    }

    /// Describes the servers of the tracker. Returns `None` if the tracker does not answer.
    fn summary(&self) -> Option<String> {
        // A new connection, because the connection of the request still waits for its reply.
        let reply = self
            .tracker_client()
            .and_then(|mut tracker| tracker.ask(&TrackerRequest::Summary));
        let Ok(TrackerReply::Summary(summary)) = reply else {
            return None;
        };
        // RPC-56: the peers that are servers have this prefix before their key.
        let servers = summary.servers.iter();
        let keys = servers.filter_map(|peer| peer.key.strip_prefix("server:"));
        let own = keys.clone().filter(|key| *key == self.key).count();
        let others: BTreeSet<String> = keys.map(|key| format!("`{key}`")).collect();
        let others: Vec<String> = others.into_iter().take(KEYS).collect();
        Some(match (own, others.is_empty()) {
            (0, true) => "the tracker has no servers".to_owned(),
            (0, false) => format!(
                "the tracker has no server of this key, but of {}",
                others.join(", ")
            ),
            (count, _) => format!("the tracker has {count} of this key, which are taken"),
        })
    }
}

/// Splits off the scheme of an address. Returns the default choice for a tracker, and `None` for a text of another scheme.
fn split_scheme(text: &str) -> Option<(Option<TrackerChoice>, &str)> {
    if let Some(rest) = text.strip_prefix(RemoteAddress::SCHEME) {
        return Some((None, rest));
    }
    let rest = text.strip_prefix(RemoteAddress::TRACKER_SCHEME)?;
    Some((Some(TrackerChoice::default()), rest))
}

/// The parts of `host:port/key`. The host may be an IPv6 address in brackets, and the key may be missing.
pub(crate) struct ServerPlace<'t> {
    pub(crate) host: &'t str,
    pub(crate) port: u16,
    pub(crate) key: &'t str,
}

impl<'t> ServerPlace<'t> {
    /// Parses a place.
    pub(crate) fn parse(text: &'t str) -> std::result::Result<ServerPlace<'t>, String> {
        let (place, key) = text.split_once('/').unwrap_or((text, ""));
        // RPC-01: the last colon separates the port, because an IPv6 address has colons itself.
        let (host, number) = place.rsplit_once(':').ok_or("it has no host and port")?;
        let host = match host.strip_prefix('[') {
            Some(host) => host.strip_suffix(']').ok_or("a bracket is left open")?,
            None => host,
        };
        if host.is_empty() {
            return Err("it has no host".to_owned());
        }
        let port = number.parse().map_err(|_| match number {
            "" => "it has no port".to_owned(),
            number => format!("`{number}` is not a port, which is a number from 0 to 65535"),
        })?;
        // RPC-05: white space ends the key, and options follow.
        if key.contains(char::is_whitespace) {
            return Err(format!(
                "the key `{key}` has a blank, and a key is one word"
            ));
        }
        Ok(ServerPlace { host, port, key })
    }
}
