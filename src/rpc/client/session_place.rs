//! Places of sessions in the session table of this process.

use crate::function::{Error, ErrorKind, Result};
use crate::lock::lock;
use std::sync::Mutex;

/// Number of places, as in upstream's table; the place is part of the device type (DEV-57).
pub(super) const PLACES: usize = 32;

static TAKEN: Mutex<[bool; PLACES]> = Mutex::new([false; PLACES]);

/// The place of a session in the table. It is freed on drop.
#[derive(Debug)]
pub(super) struct SessionPlace(usize);

impl SessionPlace {
    /// Takes the first free place.
    pub(super) fn take() -> Result<SessionPlace> {
        let mut places = lock(&TAKEN);
        // DEV-57: numbers of ended sessions are reused, because a device type has room for only 32.
        let free = places.iter().position(|taken| !taken);
        let free = free.ok_or_else(|| {
            let text =
                format!("{PLACES} sessions are open: device types have no number for one more");
            Error::new(ErrorKind::Runtime, text)
        })?;
        places[free] = true;
        Ok(SessionPlace(free))
    }

    /// Returns the index of the place.
    pub(super) fn index(&self) -> usize {
        self.0
    }

    /// Returns the number of the session, which is part of its device types.
    pub(super) fn number(&self) -> i32 {
        i32::try_from(self.0).unwrap_or(i32::MAX)
    }
}

impl Drop for SessionPlace {
    fn drop(&mut self) {
        // Even the last tensor of a session holds this, so that its device type cannot refer to another session meanwhile.
        lock(&TAKEN)[self.0] = false;
    }
}
