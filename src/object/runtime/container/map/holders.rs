//! Who reaches a map that changes.

use super::table::MapTable;
use crate::object::container::turnstile::{Turn, turn};

/// Who reaches a map that changes.
#[derive(Clone, Copy)]
pub(super) enum Holders {
    /// The caller alone.
    One,
    /// Other threads too, at a dict; the caller stays at it.
    Several,
}

impl Holders {
    /// What the change happens under.
    #[inline]
    pub(super) fn turn(self, table: MapTable) -> Option<Turn> {
        matches!(self, Holders::Several).then(|| turn(table.as_ptr()))
    }
}
