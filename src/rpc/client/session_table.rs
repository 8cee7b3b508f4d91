//! The sessions of this process by number, and the table of their remote memory.
//!
//! A [`Space`] of a remote device is a local number that means nothing to the server. The table maps it to its session and to the server's
//! handle. A space of one session therefore never reaches another one, and a server only sees handles that it chose itself.

use super::link::Link;
use super::session_place::PLACES;
use crate::device::{Device, Space};
use crate::function::{Error, ErrorKind, Result};
use crate::lock::{lock, unpoisoned};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, RwLock, Weak};

static SESSIONS: Mutex<[Weak<Link>; PLACES]> = Mutex::new([const { Weak::new() }; PLACES]);

/// Stores a session at its place.
pub(super) fn store_session(link: &Arc<Link>) {
    // Weak, because the table lives as long as the process, but a session ends with its last handle.
    lock(&SESSIONS)[link.place.index()] = Arc::downgrade(link);
}

/// Returns the session of a device.
pub(super) fn session_of(device: Device) -> Result<Arc<Link>> {
    let number = device
        .session()
        .and_then(|number| usize::try_from(number).ok());
    let places = lock(&SESSIONS);
    let link = number.and_then(|number| places.get(number)?.upgrade());
    drop(places);
    link.ok_or_else(|| {
        let text = format!("device type {} is of no session that is open", device.kind);
        Error::new(ErrorKind::Runtime, text)
    })
}

/// One allocation of a server.
#[derive(Clone)]
pub(super) struct RemoteSpace {
    /// Session of the memory, which it keeps open.
    pub(super) link: Arc<Link>,
    /// Handle by which the server knows the memory.
    pub(super) handle: u64,
}

/// Memory of servers by its local number, and the last number that was used.
#[derive(Default)]
struct Spaces {
    by_number: HashMap<usize, RemoteSpace>,
    last: usize,
}

fn spaces() -> &'static RwLock<Spaces> {
    static SPACES: OnceLock<RwLock<Spaces>> = OnceLock::new();
    SPACES.get_or_init(RwLock::default)
}

/// Distance between numbers. They are aligned like addresses, so that checks of the alignment of data accept them.
const STEP: usize = 256;

/// Adds memory of the server, and returns its local number.
pub(super) fn add_space(space: RemoteSpace) -> Space {
    let mut spaces = unpoisoned(spaces().write());
    // Never reused, so that a freed number cannot name later memory.
    spaces.last = spaces.last.wrapping_add(STEP);
    let number = spaces.last;
    spaces.by_number.insert(number, space);
    Space(std::ptr::without_provenance_mut(number))
}

/// Returns the memory of a local number.
pub(super) fn find_space(space: Space) -> Result<RemoteSpace> {
    let spaces = unpoisoned(spaces().read());
    let found = spaces.by_number.get(&space.address()).cloned();
    found.ok_or_else(|| {
        Error::new(
            ErrorKind::Runtime,
            "no memory of a session is known by this",
        )
    })
}

/// Removes a local number, and returns its memory.
pub(super) fn remove_space(space: Space) -> Result<RemoteSpace> {
    let mut spaces = unpoisoned(spaces().write());
    let found = spaces.by_number.remove(&space.address());
    // The reference to the session may be its last one, which must be dropped after the lock is released.
    drop(spaces);
    found.ok_or_else(|| {
        Error::new(
            ErrorKind::Runtime,
            "no memory of a session is known by this",
        )
    })
}
