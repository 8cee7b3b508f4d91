//! One thread at a time for each key, while code runs that is not ours: factories, loaders, initialisers.
//!
//! A lock of the table that is filled would do, but for code that comes back: it would wait for itself.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

/// Which keys have code running, and on which thread.
pub(crate) struct Turns<K> {
    running: Mutex<Vec<(K, ThreadId)>>,
    /// Notified when one of them is done.
    done: Condvar,
}

impl<K: PartialEq + Clone> Turns<K> {
    /// Nothing runs.
    pub(crate) const fn new() -> Turns<K> {
        Turns {
            running: Mutex::new(Vec::new()),
            done: Condvar::new(),
        }
    }

    /// Waits until no other thread has the turn of `key`, and takes it; `None` where this thread has it already, and would wait for
    /// itself.
    pub(crate) fn take(&self, key: &K) -> Option<KeyTurn<'_, K>> {
        let own = thread::current().id();
        let mut running = self.running();
        // Looked for again after each wait: of several threads that were woken another may have taken the turn.
        while let Some((_, thread)) = running.iter().find(|(known, _)| known == key) {
            if *thread == own {
                return None;
            }
            running = self
                .done
                .wait(running)
                .unwrap_or_else(PoisonError::into_inner);
        }
        running.push((key.clone(), own));
        Some(KeyTurn {
            turns: self,
            key: key.clone(),
        })
    }

    fn running(&self) -> MutexGuard<'_, Vec<(K, ThreadId)>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The turn of a key, until it is dropped: also by code that panicked, so that the next thread is not left waiting.
pub(crate) struct KeyTurn<'t, K: PartialEq + Clone> {
    turns: &'t Turns<K>,
    key: K,
}

impl<K: PartialEq + Clone> Drop for KeyTurn<'_, K> {
    fn drop(&mut self) {
        self.turns.running().retain(|(key, _)| *key != self.key);
        // All of them: one alone might be a thread that waits for another key, and the right one would sleep on.
        self.turns.done.notify_all();
    }
}
