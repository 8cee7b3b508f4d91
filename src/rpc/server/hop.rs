//! Sessions that another server executes: this server connects to it, and passes on the packets of both sides (RPC-93).

use super::super::client::{SessionOptions, connected, far_error, server_era, shake_hands};
use super::super::transport::Transport;
use super::super::{PackedValue, Packet, Protocol, RPC_80, RPC_93, Speaker};
use super::functions::matches_pattern;
use super::{ServerOptions, SessionEnd, SessionReport};
use crate::function::{Error, ErrorKind, Result};
use crate::release::Release;
use crate::rule::{Findings, Kind};
use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Name of the function that creates such a session.
pub(super) const CONNECT: &[u8] = b"rpc.Connect";

/// A connection to the server that executes the session, where the session has begun.
pub(super) struct Hop {
    far: Transport,
}

/// The arguments of `rpc.Connect`.
struct HopTarget<'a> {
    host: Cow<'a, str>,
    port: u16,
    key: Cow<'a, str>,
    /// Constructor of the session there: empty, or the next hop.
    rest: &'a [PackedValue<'a>],
}

impl<'a> HopTarget<'a> {
    /// Reads the arguments after the name.
    fn from_args(args: &'a [PackedValue<'a>]) -> Result<HopTarget<'a>> {
        let [host, port, key, rest @ ..] = args else {
            return Err(wrong_arguments());
        };
        let port = match port {
            PackedValue::Int(port) => u16::try_from(*port).map_err(|_| wrong_arguments())?,
            _ => return Err(wrong_arguments()),
        };
        // RPC-80: from 0.9 on a flag follows the key; 0.8 has no flag. A constructor begins with its name, a string.
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

    /// Returns whether a pattern matches this server, as `HOST:PORT` or as `HOST` with any port.
    fn is_allowed(&self, patterns: &[String]) -> bool {
        let whole = format!("{}:{}", self.host, self.port);
        let mut patterns = patterns.iter();
        patterns
            .any(|pattern| matches_pattern(pattern, &whole) || matches_pattern(pattern, &self.host))
    }
}

/// Reads a string argument.
fn string<'a>(value: &'a PackedValue<'_>) -> Result<Cow<'a, str>> {
    match value {
        PackedValue::Str(text) | PackedValue::StrObject(text, _) => {
            Ok(String::from_utf8_lossy(text))
        }
        _ => Err(wrong_arguments()),
    }
}

/// Creates the error for wrong arguments (RPC-80).
fn wrong_arguments() -> Error {
    let message = "rpc.Connect takes a host, a port, a key and what makes the session there";
    RPC_80.rejected(Kind::Type, message).into()
}

impl Hop {
    /// Connects to the server in `args`, and begins a session there by the rules of `release`.
    pub(super) fn connect(
        version: &[u8],
        args: &[PackedValue<'_>],
        options: &ServerOptions,
        release: Release,
        limit: Option<Instant>,
    ) -> Result<Hop> {
        let target = HopTarget::from_args(args)?;
        // RPC-93: upstream connects to any server that a client names, even one that the client itself cannot reach.
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
        // RPC-93: no session timeout is stated, because the timeout of this server also ends the other connection.
        shake_hands(&mut far, &target.key, &SessionOptions::default())?;
        let begin = Packet::InitServer(Cow::Borrowed(version), target.rest.to_vec());
        far.write_packet(&begin, &Protocol::new(release, Speaker::Client))?;
        // Packets are passed on unchanged, so that both ends must have the same encoding.
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
        // RPC-83: the time limit of the handshake ends here. A call there may take as long as the session.
        far.set_deadline(limit);
        Ok(Hop { far })
    }

    /// Passes on packets until either side ends the session. Only the length of a packet is parsed: the other server rejects invalid
    /// requests.
    pub(super) fn pass_on(
        self,
        client: &mut Transport,
        spoken: &Protocol,
        options: &ServerOptions,
        report: &mut SessionReport,
    ) -> Result<SessionEnd> {
        let Hop { mut far } = self;
        let (Some(mut to_client), Some(mut to_far)) = (client.duplicate()?, far.duplicate()?)
        else {
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
                            // RPC-83: the lock keeps other packets from beginning inside this one.
                            let writing = options.watch.as_ref().map(|watch| watch.write());
                            let written = to_client.write_raw(packet);
                            drop(writing);
                            match written {
                                Ok(()) => {}
                                // RPC-83: the client is told the reason.
                                Err(error) if error.kind() == ErrorKind::Timeout => {
                                    break Err(error);
                                }
                                // The client is gone.
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
                // Wakes the other thread, which waits for the client.
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

/// Passes on the packets of the client. `answered` counts the answers that it has received.
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
            // A client that waits for an answer is not idle.
            Err(error)
                if error.kind() == ErrorKind::Timeout
                    && !client.is_late()
                    && answered.load(Ordering::Relaxed) < asked =>
            {
                continue;
            }
            Err(error) => return Err(error),
        };
        // RPC-11: an empty packet consists only of its length, 0.
        if length > 8 {
            report.requests += 1;
            asked += 1;
        }
        // The packet has arrived already, so this does not wait.
        if let Some(packet) = client.peek_packet(spoken)? {
            to_far.write_raw(packet)?;
        }
        client.consume(length);
    }
}
