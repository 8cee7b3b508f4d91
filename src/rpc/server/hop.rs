//! A session that another server executes: this one connects to it, and passes on the packets of both sides (RPC-93).

use super::super::client::{SessionOptions, connected, far_error, server_era, shake_hands};
use super::super::transport::Transport;
use super::super::{PackedValue, Packet, Protocol, RPC_80, RPC_93, Speaker};
use super::functions::fits;
use super::{ServerOptions, SessionEnd, SessionReport};
use crate::function::{Error, ErrorKind, Result};
use crate::release::Release;
use crate::rule::{Findings, Kind};
use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The name of the function that makes such a session.
pub(super) const CONNECT: &[u8] = b"rpc.Connect";

/// A connection to the server that executes the session, which has begun there.
pub(super) struct Hop {
    far: Transport,
}

/// What `rpc.Connect` is called with.
struct HopTarget<'a> {
    host: Cow<'a, str>,
    port: u16,
    key: Cow<'a, str>,
    /// What makes the session there: nothing, or the next hop.
    rest: &'a [PackedValue<'a>],
}

impl<'a> HopTarget<'a> {
    /// Reads what follows the name.
    fn of(args: &'a [PackedValue<'a>]) -> Result<HopTarget<'a>> {
        let [host, port, key, rest @ ..] = args else {
            return Err(wrong());
        };
        let port = match port {
            PackedValue::Int(port) => u16::try_from(*port).map_err(|_| wrong())?,
            _ => return Err(wrong()),
        };
        // RPC-80: from 0.9 on a flag follows the key, and 0.8 has none. A constructor begins with its name.
        let rest = match rest {
            [PackedValue::Int(_) | PackedValue::Bool(_), rest @ ..] => rest,
            rest => rest,
        };
        Ok(HopTarget {
            host: string(host)?,
            port,
            key: string(key)?,
            rest,
        })
    }

    /// Whether one of the patterns is of this server, as `HOST:PORT` or with any port.
    fn is_allowed(&self, patterns: &[String]) -> bool {
        let whole = format!("{}:{}", self.host, self.port);
        let mut patterns = patterns.iter();
        patterns.any(|pattern| fits(pattern, &whole) || fits(pattern, &self.host))
    }
}

/// A string argument.
fn string<'a>(value: &'a PackedValue<'_>) -> Result<Cow<'a, str>> {
    match value {
        PackedValue::Str(text) | PackedValue::StrObject(text, _) => {
            Ok(String::from_utf8_lossy(text))
        }
        _ => Err(wrong()),
    }
}

/// RPC-80.
fn wrong() -> Error {
    let message = "rpc.Connect takes a host, a port, a key and what makes the session there";
    RPC_80.rejected(Kind::Type, message).into()
}

impl Hop {
    /// Connects to the server that `args` name, and begins a session there by the rules of `release`.
    pub(super) fn connect(
        version: &[u8],
        args: &[PackedValue<'_>],
        options: &ServerOptions,
        release: Release,
        limit: Option<Instant>,
    ) -> Result<Hop> {
        let target = HopTarget::of(args)?;
        // RPC-93: upstream connects to whatever a client names, also where no client gets to.
        RPC_93.demand(Kind::Unsupported, target.is_allowed(&options.connect), || {
            format!(
                "this server does not connect to `{}:{}` for its clients: its option `allow-connect` does not name it",
                target.host.escape_debug(),
                target.port
            )
        })?;
        let patience = Instant::now() + options.handshake;
        let deadline = limit.map_or(patience, |limit| limit.min(patience));
        let left = deadline.saturating_duration_since(Instant::now());
        let stream = connected(&target.host, target.port, left)?;
        let mut far = Transport::tcp(stream)?;
        far.set_deadline(Some(deadline));
        // RPC-93: without a time of its own: that of this server holds, and its end ends the other connection.
        shake_hands(&mut far, &target.key, &SessionOptions::default())?;
        let begin = Packet::InitServer(Cow::Borrowed(version), target.rest.to_vec());
        far.write_packet(&begin, &Protocol::new(release, Speaker::Client))?;
        // Packets pass as they are, so that both ends have one encoding.
        server_era(&mut far, release, true)?;
        let spoken = Protocol::new(release, Speaker::Server);
        match far.read_packet(&spoken, &mut Findings::default())? {
            Some(Packet::Return(_)) => {}
            Some(Packet::Exception(values)) => return Err(far_error(&values)),
            _ => {
                return Err(Error::new(
                    ErrorKind::Connection,
                    "the server there ends the session",
                ));
            }
        }
        // RPC-83: no longer that of the handshake: what is called there may take as long as the session.
        far.set_deadline(limit);
        Ok(Hop { far })
    }

    /// Passes on packets until either side ends the session. A packet is read as far as its length: what it requests is for the server
    /// there to reject.
    pub(super) fn pass_on(
        self,
        client: &mut Transport,
        spoken: &Protocol,
        options: &ServerOptions,
        report: &mut SessionReport,
    ) -> Result<SessionEnd> {
        let Hop { mut far } = self;
        let (Some(mut to_client), Some(mut to_far)) = (client.twin()?, far.twin()?) else {
            let message = "this stream has no second half, so that no session goes through it";
            return Err(RPC_93.rejected(Kind::Unsupported, message).into());
        };
        let answered = AtomicU64::new(0);
        std::thread::scope(|scope| {
            let count = &answered;
            let answers = scope.spawn(move || {
                let ended = loop {
                    match far.peek_packet(spoken) {
                        Ok(Some(packet)) => {
                            // RPC-83: no other packet begins inside of this one.
                            let writing = options.watch.as_ref().map(|watch| watch.write());
                            let written = to_client.write_raw(packet);
                            drop(writing);
                            match written {
                                Ok(()) => {}
                                // RPC-83: the client gets to know why.
                                Err(error) if error.kind() == ErrorKind::Timeout => {
                                    break Err(error);
                                }
                                // It is gone.
                                Err(_) => break Ok(()),
                            }
                            let length = packet.len();
                            far.consume(length);
                            count.fetch_add(1, Ordering::Relaxed);
                        }
                        Ok(None) => break Ok(()),
                        Err(error) => break Err(error),
                    }
                };
                // The other thread waits for the client.
                to_client.end_reading();
                ended
            });
            let asked = requests(client, &mut to_far, spoken, report, &answered);
            to_far.end();
            let ended = answers.join().unwrap_or(Ok(()));
            match (asked, ended) {
                (Ok(SessionEnd::Closed), Err(error)) => Err(error),
                (asked, _) => asked,
            }
        })
    }
}

/// Passes on what the client writes. `answered` is how many answers it has got.
fn requests(
    client: &mut Transport,
    to_far: &mut Transport,
    spoken: &Protocol,
    report: &mut SessionReport,
    answered: &AtomicU64,
) -> Result<SessionEnd> {
    let mut asked = 0;
    loop {
        let there = client
            .peek_packet(spoken)
            .map(|there| there.map(<[u8]>::len));
        let length = match there {
            Ok(Some(length)) => length,
            Ok(None) => return Ok(SessionEnd::Closed),
            // A client that waits for an answer is not one that does nothing.
            Err(error)
                if error.kind() == ErrorKind::Timeout
                    && !client.is_late()
                    && answered.load(Ordering::Relaxed) < asked =>
            {
                continue;
            }
            Err(error) => return Err(error),
        };
        // RPC-11: a packet of nothing is a length of 0.
        if length > 8 {
            report.requests += 1;
            asked += 1;
        }
        // It is there: nothing is waited for.
        if let Some(packet) = client.peek_packet(spoken)? {
            to_far.write_raw(packet)?;
        }
        client.consume(length);
    }
}
