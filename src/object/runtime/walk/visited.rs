//! The objects that a walk has visited.

use crate::function::Result;
use crate::object::{Dict, ObjectRef};

/// Objects by address, kept alive so that no other object gets the same address. Addresses do not come from files, so the public hash
/// of the dict is not a risk.
pub(crate) struct VisitedObjects(Dict);

impl VisitedObjects {
    /// Creates an empty set.
    pub(crate) fn new() -> VisitedObjects {
        VisitedObjects(Dict::new())
    }

    /// Adds `object`. Returns whether it was new.
    pub(crate) fn add(&self, object: &ObjectRef) -> Result<bool> {
        // A dict does not report whether a key existed, but its growth does.
        let before = self.0.len();
        self.0.set(object.as_ptr() as usize, object.clone())?;
        Ok(self.0.len() > before)
    }
}
