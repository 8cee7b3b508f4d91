//! The servers of a tracker's key, one for each session.

use super::{Reached, Seat, connect};
use crate::function::ErrorKind;
use crate::rpc::tracker::TrackerClient;
use std::time::{Duration, Instant};

/// The default time that a server may take to become free.
const WAIT: Duration = Duration::from_secs(60);

/// The time for which an offer is fresh. A TVM server withdraws an offer that no client uses within four seconds and a ping (RPC-63
/// states the tracker's part).
const FRESH: Duration = Duration::from_secs(2);

/// The number of new requests to the tracker if the server that it provided has ended.
const TRIES: usize = 5;

/// A tracker, and the servers that are requested from it.
pub(super) struct Pool {
    /// The address of the tracker, and the key of its servers.
    tracker: Seat,
    wait: Duration,
    /// The connection; `None` after an abandoned request, because the tracker withdraws a request only with its connection.
    client: Option<TrackerClient>,
    /// A server that was provided, and the time.
    taken: Option<(Seat, Instant)>,
}

impl Pool {
    /// Connects to the tracker, without requesting a server.
    pub(super) fn open(tracker: Seat, wait: Option<Duration>) -> Result<Pool, String> {
        let mut pool = Pool {
            tracker,
            wait: wait.unwrap_or(WAIT),
            client: None,
            taken: None,
        };
        pool.client = Some(pool.connected()?);
        Ok(pool)
    }

    /// Returns the common key of the servers.
    pub(super) fn key(&self) -> &str {
        &self.tracker.key
    }

    pub(super) fn name(&self) -> String {
        let Seat { place, key } = &self.tracker;
        format!("RPC servers `{key}` of the tracker at {place}")
    }

    fn connected(&self) -> Result<TrackerClient, String> {
        let place = &*self.tracker.place;
        TrackerClient::connect(place).map_err(|error| format!("rpc-tracker: {place}: {error}"))
    }

    /// Requests a server for the next session.
    pub(super) fn ready(&mut self, goes_on: &dyn Fn() -> bool) -> Result<(), String> {
        if matches!(&self.taken, Some((_, since)) if since.elapsed() < FRESH) {
            return Ok(());
        }
        self.taken = None;
        // A tracker that was restarted needs a new connection.
        let mut is_last = self.client.is_none();
        let seat = loop {
            let mut client = match self.client.take() {
                Some(client) => client,
                None => self.connected()?,
            };
            match client.request_while(self.key(), 1, self.wait, goes_on) {
                Ok(server) => {
                    self.client = Some(client);
                    // An IPv6 address needs brackets, because otherwise its last part is read as the port.
                    let host = if server.host.contains(':') {
                        format!("[{}]", server.host)
                    } else {
                        server.host
                    };
                    break Seat {
                        place: format!("{host}:{}", server.port),
                        key: server.match_key,
                    };
                }
                Err(error)
                    if error.kind() == ErrorKind::Timeout
                        || std::mem::replace(&mut is_last, true) =>
                {
                    let place = &self.tracker.place;
                    return Err(format!("rpc-tracker: {place}: {error}"));
                }
                Err(_) => {}
            }
        };
        self.taken = Some((seat, Instant::now()));
        Ok(())
    }

    /// Takes the server that was provided for the next session.
    pub(super) fn take(&mut self) -> Result<Seat, String> {
        self.ready(&|| true)?;
        let taken = self.taken.take().map(|(seat, _)| seat);
        taken.ok_or_else(|| "rpc-tracker: no server".to_owned())
    }

    /// Connects to a server that exists.
    pub(super) fn reach(&mut self, patience: Duration) -> Result<Reached, String> {
        let mut last = String::new();
        for _ in 0..TRIES {
            let seat = self.take()?;
            match connect(&seat.place, patience) {
                Ok(stream) => return Ok(Reached { seat, stream }),
                // The server ended after its offer.
                Err(error) => last = format!("{}: {error}", seat.place),
            }
        }
        Err(format!(
            "rpc-tracker: {TRIES} servers in a row do not answer; the last one is {last}"
        ))
    }
}
