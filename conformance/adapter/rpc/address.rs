//! The spelling of servers and trackers.

use super::POOL;
use crate::release::Release;
use std::time::Duration;

/// A server, and its key for one session.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Seat {
    /// The host and port.
    pub(super) place: String,
    /// The key that a client's hello names.
    pub(super) key: String,
}

/// The text after the scheme, parsed.
#[derive(Debug, PartialEq)]
pub(super) struct Spelled {
    pub(super) seat: Seat,
    /// The time that the tracker may take to provide a server.
    pub(super) wait: Option<Duration>,
    pub(super) release: Option<Release>,
}

/// Checks the spelling without connecting.
pub(super) fn parse_address(scheme: &str, text: &str) -> Result<Spelled, String> {
    // Split from the end, because a key may contain an `@`, and a release cannot.
    let (text, release) = match text.rsplit_once('@') {
        None => (text, None),
        Some((text, release)) => {
            let named: Option<Release> = release.parse().ok();
            let named = named.filter(|named| named.minor() >= 7);
            let wrong = || {
                format!(
                    "{scheme}: `{release}` is not a release with this protocol: there are 0.7 to {}",
                    Release::LAST
                )
            };
            (text, Some(named.ok_or_else(wrong)?))
        }
    };
    let (text, wait) = match text.rsplit_once("?wait=") {
        Some((text, seconds)) if scheme == POOL => {
            let seconds: Option<f64> = seconds.parse().ok();
            let wait = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            let wait = wait.filter(|wait| !wait.is_zero());
            let wrong = || format!("{scheme}: `wait` is a number of seconds above 0");
            (text, Some(wait.ok_or_else(wrong)?))
        }
        _ => (text, None),
    };
    let (place, key) = text.split_once('/').unwrap_or((text, ""));
    // Split from the end, because an IPv6 address contains colons.
    let port = place.rsplit_once(':').filter(|(host, _)| !host.is_empty());
    let is_place = port.is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let seat = Seat {
        place: place.to_owned(),
        key: key.to_owned(),
    };
    match scheme {
        POOL if !is_place || key.is_empty() => Err(format!(
            "{scheme}: needs the host and port of a tracker and a key of its servers, such as {scheme}:127.0.0.1:9190/board@0.27"
        )),
        _ if !is_place => Err(format!(
            "{scheme}: needs a host and a port, such as {scheme}:127.0.0.1:9090@0.27"
        )),
        _ => Ok(Spelled {
            seat,
            wait,
            release,
        }),
    }
}
