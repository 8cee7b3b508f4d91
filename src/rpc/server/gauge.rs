//! How far a session is, for another thread that shows it.

use crate::release::Release;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a session shares with a thread that shows it.
#[derive(Debug, Default)]
pub struct SessionGauge {
    state: Mutex<SessionState>,
}

/// How far a session is, behind its last request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionState {
    /// The key of the client, with its options; empty before the hello.
    pub key: String,
    /// The release by whose rules the client writes, once that is known (RPC-84).
    pub release: Option<Release>,
    /// How many requests have come.
    pub requests: u64,
    /// How many bytes the client has written.
    pub received: u64,
    /// How many bytes the client has allocated and not freed (RPC-86).
    pub memory: u64,
}

impl SessionGauge {
    /// How far it is.
    pub fn state(&self) -> SessionState {
        self.lock().clone()
    }

    /// The hello has come.
    pub(super) fn greet(&self, key: &str) {
        key.clone_into(&mut self.lock().key);
    }

    /// Requests have come, and so many bytes.
    pub(super) fn count(&self, requests: u64, received: u64) {
        let mut state = self.lock();
        (state.requests, state.received) = (requests, received);
    }

    /// What is known of the client, and what it holds.
    pub(super) fn hold(&self, release: Option<Release>, memory: u64) {
        let mut state = self.lock();
        (state.release, state.memory) = (release, memory);
    }

    /// A panic leaves the numbers whole.
    fn lock(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
