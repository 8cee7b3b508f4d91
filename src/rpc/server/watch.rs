//! What another thread sees of a session while a function of it runs, to end it: its time is over, or its client is gone. The thread that
//! reads packets is not there to notice.

use super::super::transport::{RpcStream, seconds};
use super::super::{Packet, Protocol};
use crate::function::ErrorKind;
use crate::wire::Writer;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What the session and the thread that watches it share.
#[derive(Debug, Default)]
pub struct SessionWatch {
    /// `None` before the hello, and for a session without a limit.
    limit: Mutex<Option<SessionLimit>>,
    /// A limit was stated.
    stated: Condvar,
    /// Held while a packet is written: no other may begin inside of it.
    writing: Mutex<()>,
    /// Since when a request is computed; `None` between two.
    call: Mutex<Option<Instant>>,
}

/// When a session is over.
#[derive(Clone, Copy, Debug)]
struct SessionLimit {
    deadline: Instant,
    /// The same as the client stated it.
    seconds: f64,
    /// How the client wants to hear of it.
    spoken: Protocol,
}

impl SessionWatch {
    /// Returns when the time of the session is over, which is never for a session without a limit.
    pub fn wait(&self) {
        let mut limit = lock(&self.limit);
        loop {
            // Anew after each wait: the limit may be another one, and a condition variable also wakes without a cause.
            let left = limit.map(|limit| limit.deadline.saturating_duration_since(Instant::now()));
            limit = match left {
                None => self
                    .stated
                    .wait(limit)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(left) if left.is_zero() => return,
                Some(left) => {
                    let waited = self.stated.wait_timeout(limit, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Writes to the client that its time is over (RPC-83), in a packet that interleaves with no other. False where the session has
    /// written so itself, or is still writing another packet.
    pub fn expire(&self, stream: &mut dyn RpcStream) -> bool {
        // RPC-83: not waited for: a session that writes to a client which takes nothing holds the lock for as long.
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

    /// For how long the present request has been computed; `None` between two requests, while one is read or answered.
    pub fn computing(&self) -> Option<Duration> {
        lock(&self.call).map(|since| since.elapsed())
    }

    /// A request begins to be computed, or is.
    pub(super) fn compute(&self, begins: bool) {
        *lock(&self.call) = begins.then(Instant::now);
    }

    /// States the limit.
    pub(super) fn set(&self, deadline: Instant, seconds: f64, spoken: Protocol) {
        *lock(&self.limit) = Some(SessionLimit {
            deadline,
            seconds,
            spoken,
        });
        self.stated.notify_all();
    }

    /// Whether the caller is the one to write that the time is over: it is written once.
    pub(super) fn claim(&self) -> bool {
        lock(&self.limit).take().is_some()
    }

    /// No packet of [`SessionWatch::expire`] begins while the guard is held.
    pub(super) fn write(&self) -> MutexGuard<'_, ()> {
        lock(&self.writing)
    }
}

/// RPC-83: clients from 0.13 on know the end of their time by how the text begins.
pub(super) fn expired(seconds: f64) -> Packet<'static> {
    // RPC-83: in the words of releases, which print the seconds as Python does, `2.0`: hence the debug form.
    let text = format!(
        "RPCSessionTimeoutError: Your {seconds:?}s session has expired, try to increase the \"session_timeout\" value."
    );
    Packet::Exception(vec![super::values::text(text)])
}

/// What a client finds behind its last answer that did nothing for `time`.
pub(super) fn forgotten(time: Duration) -> Packet<'static> {
    let text = format!(
        "{}: the server has ended this session, whose client did nothing for {}",
        ErrorKind::Timeout,
        seconds(time)
    );
    Packet::Exception(vec![super::values::text(text)])
}

/// A panic leaves the values whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
