//! Who reaches a map that changes.

use super::table::MapTable;
use crate::object::container::lock::{LockGuard, lock};

/// Who reaches a map that changes.
#[derive(Clone, Copy)]
pub(super) enum Holders {
    /// The caller alone.
    One,
    /// Other threads too, at a dict; the caller stays at it.
    Several,
}

impl Holders {
    /// Locks the map for the change where other threads reach it.
    #[inline]
    pub(super) fn lock(self, table: MapTable) -> Option<LockGuard> {
        matches!(self, Holders::Several).then(|| lock(table.as_ptr()))
    }
}
