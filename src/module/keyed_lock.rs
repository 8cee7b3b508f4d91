//! One thread at a time for each key, while foreign code runs: factories, loaders, initializers.
//!
//! A lock of the table that is filled would deadlock if that code came back for the same key.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

/// The keys for which code runs, and its threads.
pub(crate) struct KeyedLock<K> {
    running: Mutex<Vec<(K, ThreadId)>>,
    /// Notified when code for a key has ended.
    done: Condvar,
}

impl<K: PartialEq + Clone> KeyedLock<K> {
    /// Creates a lock for which no code runs.
    pub(crate) const fn new() -> KeyedLock<K> {
        KeyedLock {
            running: Mutex::new(Vec::new()),
            done: Condvar::new(),
        }
    }

    /// Waits until no other thread has the turn of `key`, and takes it. Returns `None` if this thread already has it, because it would
    /// wait for itself.
    pub(crate) fn take(&self, key: &K) -> Option<KeyTurn<'_, K>> {
        let own = thread::current().id();
        let mut running = self.running();
        // Searched again after each wait: another of the woken threads may have taken the turn.
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
            lock: self,
            key: key.clone(),
        })
    }

    fn running(&self) -> MutexGuard<'_, Vec<(K, ThreadId)>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The turn of a key. It is released on drop, also after a panic, so that the next thread does not wait without end.
pub(crate) struct KeyTurn<'t, K: PartialEq + Clone> {
    lock: &'t KeyedLock<K>,
    key: K,
}

impl<K: PartialEq + Clone> Drop for KeyTurn<'_, K> {
    fn drop(&mut self) {
        self.lock.running().retain(|(key, _)| *key != self.key);
        // Wakes all threads: a single one might wait for another key, and the right one would sleep on.
        self.lock.done.notify_all();
    }
}
