//! Devices of servers as text: `rpc://host:port/key#cpu:0`.

use super::session::{RemoteHop, Session, SessionOptions};
use crate::device::Device;
use crate::function::{Error, ErrorKind, Result};
use crate::release::Release;
use crate::value::device_from_text;
use std::time::Duration;

/// A server, how it is spoken to, and one of its devices.
///
/// ```
/// use tvmspec::rpc::client::RemoteAddress;
///
/// let address = RemoteAddress::parse("rpc://board:9090/key?release=0.8&timeout=60#cpu:0")?;
/// assert_eq!((&*address.host, address.port, &*address.key), ("board", 9090, "key"));
/// assert!(RemoteAddress::parse("rpc://board").is_err());
/// # Ok::<(), tvmspec::function::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct RemoteAddress {
    /// A name or an address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The key of the server; often empty.
    pub key: String,
    /// What stands behind `?`: `release=0.8`, `timeout=SECONDS` of a request, `session-timeout=SECONDS`, `via=HOST:PORT/KEY` for a hop,
    /// which may be repeated.
    pub options: SessionOptions,
    /// What stands behind `#`, by the server's own number; `cpu:0` without it.
    pub device: Device,
}

impl RemoteAddress {
    /// What such a text begins with.
    pub const SCHEME: &'static str = "rpc://";

    /// Reads a text of this form.
    ///
    /// # Errors
    ///
    /// A ValueError that shows the form; VAL-13 for a device without a name.
    pub fn parse(text: &str) -> Result<RemoteAddress> {
        let wrong = |why: &str| {
            let form = "rpc://HOST:PORT/KEY?release=0.8&timeout=SECONDS#cpu:0";
            Error::new(
                ErrorKind::Value,
                format!("`{text}`: {why}; the form is {form}"),
            )
        };
        let rest = text
            .strip_prefix(RemoteAddress::SCHEME)
            .ok_or_else(|| wrong("it does not begin with rpc://"))?;
        let (rest, device) = rest.split_once('#').unwrap_or((rest, "cpu:0"));
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let server = ServerPlace::parse(rest).ok_or_else(|| wrong("it has no host and port"))?;
        let mut options = SessionOptions::default();
        for option in query.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let seconds = || {
                let seconds: f64 = value.parse().ok()?;
                Duration::try_from_secs_f64(seconds)
                    .ok()
                    .filter(|time| !time.is_zero())
            };
            match name {
                "release" => {
                    let release = value.parse::<Release>();
                    options.release = Some(release.map_err(|_| wrong("no such release"))?);
                }
                "timeout" => {
                    options.timeout = Some(seconds().ok_or_else(|| wrong("no number of seconds"))?);
                }
                "session-timeout" => {
                    let limit = seconds().ok_or_else(|| wrong("no number of seconds"))?;
                    options.session_timeout = Some(limit.as_secs_f64());
                }
                "via" => {
                    let hop = ServerPlace::parse(value).ok_or_else(|| wrong("no hop"))?;
                    options.hops.push(RemoteHop {
                        host: hop.host.to_owned(),
                        port: hop.port,
                        key: hop.key.to_owned(),
                    });
                }
                _ => return Err(wrong(&format!("no option is called `{name}`"))),
            }
        }
        Ok(RemoteAddress {
            host: server.host.to_owned(),
            port: server.port,
            key: server.key.to_owned(),
            options,
            device: Device::from(device_from_text(device)?),
        })
    }

    /// Connects to the server.
    ///
    /// # Errors
    ///
    /// As [`Session::connect`].
    pub fn connect(&self) -> Result<Session> {
        Session::connect(&self.host, self.port, &self.key, &self.options)
    }
}

/// `host:port/key`, where the host may be an address of IPv6 in brackets and the key may be missing.
struct ServerPlace<'t> {
    host: &'t str,
    port: u16,
    key: &'t str,
}

impl<'t> ServerPlace<'t> {
    fn parse(text: &'t str) -> Option<ServerPlace<'t>> {
        let (place, key) = text.split_once('/').unwrap_or((text, ""));
        let (host, port) = place.rsplit_once(':')?;
        let host = match host.strip_prefix('[') {
            Some(host) => host.strip_suffix(']')?,
            None => host,
        };
        // RPC-05: blanks end the key, and what follows are options.
        let plain = !host.is_empty() && !key.contains(char::is_whitespace);
        let port = port.parse().ok()?;
        plain.then_some(ServerPlace { host, port, key })
    }
}
