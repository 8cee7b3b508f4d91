//! The owner of the layout of a type's objects: one Rust type, or something else.

use super::DynamicType;
use super::table::published;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The layout of the objects of a type. It never changes after it is known, because objects with one index and two layouts would be
/// read incorrectly.
pub(super) struct ObjectLayout(AtomicUsize);

/// The owner of a layout: the address of a [`DynamicType`], or 1 for everything that is not a Rust type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Owner(usize);

impl Owner {
    /// Reflection, for records in zeroed memory, and C libraries.
    const ELSEWHERE: Owner = Owner(1);

    /// Returns the owner for the Rust type `own`.
    pub(super) fn of(own: &'static DynamicType) -> Owner {
        Owner(std::ptr::from_ref(own).addr())
    }
}

impl ObjectLayout {
    /// Creates a layout that is not known yet.
    pub(super) const fn unknown() -> ObjectLayout {
        ObjectLayout(AtomicUsize::new(0))
    }

    /// Claims the layout for `owner`. Returns false if another owner has it.
    pub(super) fn claim(&self, owner: Owner) -> bool {
        let known = self
            .0
            .compare_exchange(0, owner.0, Ordering::AcqRel, Ordering::Acquire);
        known.is_ok() || known == Err(owner.0)
    }
}

/// Records that no Rust type lays out the objects of a type. Returns false if a [`DynamicType`] does.
pub(crate) fn lay_out_elsewhere(type_index: i32) -> bool {
    published(type_index).is_some_and(|entry| entry.layout.claim(Owner::ELSEWHERE))
}
