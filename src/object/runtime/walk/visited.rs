//! What a walk over objects has looked at.

use crate::function::Result;
use crate::object::{Dict, ObjectRef};

/// Objects by address, held so that no other comes to be at the same one. No file chooses an address, so the public hash of
/// the dict does no harm.
pub(crate) struct VisitedObjects(Dict);

impl VisitedObjects {
    /// No object.
    pub(crate) fn new() -> VisitedObjects {
        VisitedObjects(Dict::new())
    }

    /// Adds `object`; whether it was not there before.
    pub(crate) fn add(&self, object: &ObjectRef) -> Result<bool> {
        // A dict does not return whether a key was there; whether it grew does.
        let before = self.0.len();
        self.0.set(object.as_ptr() as usize, object.clone())?;
        Ok(self.0.len() > before)
    }
}
