//! The sessions of this process by number, and what their memory is known by here.
//!
//! A [`Space`] of a remote device is a number that means nothing to the server: which session it belongs to, and what the server
//! knows the memory by, is looked up. So a space of one session never reaches another one, and no server sees a number that it did
//! not choose.

use super::link::{Link, lock};
use super::place::PLACES;
use crate::device::{Device, Error, ErrorKind, Result, Space};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};

static SESSIONS: Mutex<[Weak<Link>; PLACES]> = Mutex::new([const { Weak::new() }; PLACES]);

/// Puts a session in the place that it has.
pub(super) fn settle(link: &Arc<Link>) {
    // Weak, as the table lives as long as the process: a session ends with the last of its handles.
    lock(&SESSIONS)[link.place.index()] = Arc::downgrade(link);
}

/// The session of a device.
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

/// Memory of a server.
#[derive(Clone)]
pub(super) struct RemoteSpace {
    /// It keeps the session open.
    pub(super) link: Arc<Link>,
    /// What the server knows it by.
    pub(super) handle: u64,
}

/// Memory of servers by its number here, and the number that was used last.
#[derive(Default)]
struct Spaces {
    by_number: HashMap<usize, RemoteSpace>,
    last: usize,
}

fn spaces() -> &'static RwLock<Spaces> {
    static SPACES: OnceLock<RwLock<Spaces>> = OnceLock::new();
    SPACES.get_or_init(RwLock::default)
}

/// Numbers are so far apart, as addresses of aligned memory are: what checks the alignment of data accepts them.
const STEP: usize = 256;

/// A number for memory of the server.
pub(super) fn add_space(space: RemoteSpace) -> Space {
    let mut spaces = spaces().write().unwrap_or_else(PoisonError::into_inner);
    // Never used again: a space that was freed is found nowhere, and not in its successor.
    spaces.last = spaces.last.wrapping_add(STEP);
    let number = spaces.last;
    spaces.by_number.insert(number, space);
    Space(std::ptr::without_provenance_mut(number))
}

/// The memory that a number stands for.
pub(super) fn find_space(space: Space) -> Result<RemoteSpace> {
    let spaces = spaces().read().unwrap_or_else(PoisonError::into_inner);
    let found = spaces.by_number.get(&space.address()).cloned();
    found.ok_or_else(|| {
        Error::new(
            ErrorKind::Runtime,
            "no memory of a session is known by this",
        )
    })
}

/// Forgets a number, and returns what it stood for.
pub(super) fn remove_space(space: Space) -> Result<RemoteSpace> {
    let mut spaces = spaces().write().unwrap_or_else(PoisonError::into_inner);
    let found = spaces.by_number.remove(&space.address());
    // The reference of the session may be its last, so that it goes behind the lock.
    drop(spaces);
    found.ok_or_else(|| {
        Error::new(
            ErrorKind::Runtime,
            "no memory of a session is known by this",
        )
    })
}
