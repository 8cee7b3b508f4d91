//! Handles of memory that is not an address: numbers that lead to no memory.

use crate::device::error::refuse;
use crate::device::{DEV_41, Result, Space};
use crate::rule::Kind;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is alive, by handle. A handle that is not here is refused, and none comes twice.
pub(crate) struct Handles<T> {
    backend: &'static str,
    state: Mutex<State<T>>,
}

struct State<T> {
    alive: HashMap<usize, T>,
    last: usize,
}

/// Handles start here: far from small integers, and 64 apart, so that a handle with an offset added is no handle.
const FIRST: usize = 1 << 40;

impl<T> Handles<T> {
    pub(crate) fn new(backend: &'static str) -> Handles<T> {
        Handles {
            backend,
            state: Mutex::new(State {
                alive: HashMap::new(),
                last: FIRST,
            }),
        }
    }

    pub(crate) fn insert(&self, value: T) -> Space {
        let mut state = self.state();
        state.last += 64;
        let handle = state.last;
        state.alive.insert(handle, value);
        Space(std::ptr::without_provenance_mut(handle))
    }

    /// What is behind `space`, through `look` (DEV-41).
    pub(crate) fn with<R>(&self, space: Space, look: impl FnOnce(&T) -> R) -> Result<R> {
        match self.state().alive.get(&space.address()) {
            Some(value) => Ok(look(value)),
            None => self.unknown(space),
        }
    }

    pub(crate) fn remove(&self, space: Space) -> Result<T> {
        match self.state().alive.remove(&space.address()) {
            Some(value) => Ok(value),
            None => self.unknown(space),
        }
    }

    fn unknown<R>(&self, space: Space) -> Result<R> {
        refuse(
            DEV_41,
            Kind::Missing,
            format!("{:#x} is no memory of {}", space.address(), self.backend),
        )
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
