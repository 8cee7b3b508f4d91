//! Access to a map during a change: exclusive or shared.

use super::table::MapTable;
use crate::object::container::lock::{LockGuard, lock};

/// The threads that can reach a map during a change.
#[derive(Clone, Copy)]
pub(super) enum Holders {
    /// Only the caller.
    One,
    /// Other threads may use it too. The map is a dict, and the caller has a stay at it.
    Several,
}

impl Holders {
    /// Locks the map for the change if other threads can reach it.
    #[inline]
    pub(super) fn lock(self, table: MapTable) -> Option<LockGuard> {
        matches!(self, Holders::Several).then(|| lock(table.as_ptr()))
    }
}
