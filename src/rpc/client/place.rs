//! Places of sessions in this process.

use crate::device::{Error, ErrorKind, Result};
use std::sync::{Mutex, PoisonError};

/// Upstream's table has as many places, and device types are made of them (DEV-57).
pub(super) const PLACES: usize = 32;

static TAKEN: Mutex<[bool; PLACES]> = Mutex::new([false; PLACES]);

/// A place that a session has, free again when this is dropped.
#[derive(Debug)]
pub(super) struct SessionPlace(usize);

impl SessionPlace {
    /// Takes the first place that is free.
    pub(super) fn take() -> Result<SessionPlace> {
        let mut places = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        // DEV-57: numbers of sessions that have ended come again: a device type has room for 32.
        let free = places.iter().position(|taken| !taken);
        let free = free.ok_or_else(|| {
            let text =
                format!("{PLACES} sessions are open: device types have no number for one more");
            Error::new(ErrorKind::Runtime, text)
        })?;
        places[free] = true;
        Ok(SessionPlace(free))
    }

    /// Which place it is.
    pub(super) fn index(&self) -> usize {
        self.0
    }

    /// The number of the session, of which device types are made.
    pub(super) fn number(&self) -> i32 {
        i32::try_from(self.0).unwrap_or(i32::MAX)
    }
}

impl Drop for SessionPlace {
    fn drop(&mut self) {
        // The last tensor of the session holds this, so that the type of its device names no other session meanwhile.
        TAKEN.lock().unwrap_or_else(PoisonError::into_inner)[self.0] = false;
    }
}
