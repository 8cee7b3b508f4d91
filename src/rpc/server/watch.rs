//! The part of a session that another thread uses to end the session during a call, when its time is over or its client is gone. The
//! thread that reads packets is busy with the call and cannot notice this.

use super::super::transport::{RpcStream, seconds};
use super::super::{Packet, Protocol};
use crate::function::ErrorKind;
use crate::lock::{lock, unpoisoned};
use crate::wire::Writer;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// State that a session shares with the thread that watches it.
#[derive(Debug, Default)]
pub struct SessionWatch {
    /// `None` before the hello, and for a session without a limit.
    limit: Mutex<Option<SessionLimit>>,
    /// Notified when a limit was set.
    stated: Condvar,
    /// Locked while a packet is written, so that no other packet begins inside it.
    writing: Mutex<()>,
    /// Start of the request in progress; `None` between two requests.
    call: Mutex<Option<Instant>>,
}

/// The time limit of a session.
#[derive(Clone, Copy, Debug)]
struct SessionLimit {
    deadline: Instant,
    /// The limit as the client stated it, in seconds.
    seconds: f64,
    /// Protocol for the final packet to the client.
    spoken: Protocol,
}

impl SessionWatch {
    /// Waits until the time of the session is over. Never returns for a session without a limit.
    pub fn wait(&self) {
        let mut limit = lock(&self.limit);
        loop {
            // Computed again after each wait: the limit may have changed, and a condition variable may wake up without a cause.
            let left = limit.map(|limit| limit.deadline.saturating_duration_since(Instant::now()));
            limit = match left {
                None => unpoisoned(self.stated.wait(limit)),
                Some(left) if left.is_zero() => return,
                Some(left) => unpoisoned(self.stated.wait_timeout(limit, left)).0,
            };
        }
    }

    /// Writes to the client that its time is over (RPC-83), as a packet that does not interleave with another. Returns false if the
    /// session has already written this, or is still writing another packet.
    pub fn expire(&self, stream: &mut dyn RpcStream) -> bool {
        // RPC-83: does not wait for the lock, because a session may hold it for a long time while its client reads nothing.
        let Ok(_writing) = self.writing.try_lock() else {
            return false;
        };
        let Some(limit) = lock(&self.limit).take() else {
            return false;
        };
        let mut out = Writer::new();
        let packet = expired(limit.seconds);
        packet.write(&limit.spoken, &mut out).is_ok() && stream.write_all(&out.into_bytes()).is_ok()
    }

    /// Returns how long the request in progress has been computed; `None` between two requests, while one is read or answered.
    pub fn computing(&self) -> Option<Duration> {
        lock(&self.call).map(|since| since.elapsed())
    }

    /// Notes that the computation of a request begins, or ends.
    pub(super) fn compute(&self, begins: bool) {
        *lock(&self.call) = begins.then(Instant::now);
    }

    /// Sets the limit.
    pub(super) fn set(&self, deadline: Instant, seconds: f64, spoken: Protocol) {
        *lock(&self.limit) = Some(SessionLimit {
            deadline,
            seconds,
            spoken,
        });
        self.stated.notify_all();
    }

    /// Returns whether the caller has to write that the time is over. Returns true only once.
    pub(super) fn claim_timeout_report(&self) -> bool {
        lock(&self.limit).take().is_some()
    }

    /// Locks the stream: [`SessionWatch::expire`] writes no packet while the guard is held.
    pub(super) fn write(&self) -> MutexGuard<'_, ()> {
        lock(&self.writing)
    }
}

/// Returns the final packet of a session whose time is over. RPC-83: clients from 0.13 on recognize it by the start of the text.
pub(super) fn expired(seconds: f64) -> Packet<'static> {
    // RPC-83: uses the text of the releases, which print the seconds as Python does, `2.0`. The debug format does the same.
    let text = format!(
        "RPCSessionTimeoutError: Your {seconds:?}s session has expired, try to increase the \"session_timeout\" value."
    );
    Packet::Exception(vec![super::values::text(text)])
}

/// Returns the final packet of a session whose client did nothing for `time`.
pub(super) fn idle_timeout_packet(time: Duration) -> Packet<'static> {
    let text = format!(
        "{}: the server has ended this session, whose client did nothing for {}",
        ErrorKind::Timeout,
        seconds(time)
    );
    Packet::Exception(vec![super::values::text(text)])
}
