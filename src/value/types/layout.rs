//! The owner of the layout of a type's objects: one Rust type, or anything else.

use super::DynamicType;
use super::table::published;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The layout of the objects of a type, which never changes once it is known: objects of one index that lie in two ways would be
/// read as each other.
pub(super) struct ObjectLayout(AtomicUsize);

/// The owner of a layout: the address of a [`DynamicType`], or 1 for everything that is not a Rust type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Owner(usize);

impl Owner {
    /// Reflection, for records in zeroed memory, and libraries of C.
    const ELSEWHERE: Owner = Owner(1);

    /// The Rust type of `own`.
    pub(super) fn of(own: &'static DynamicType) -> Owner {
        Owner(std::ptr::from_ref(own).addr())
    }
}

impl ObjectLayout {
    /// A layout that is not known yet.
    pub(super) const fn unknown() -> ObjectLayout {
        ObjectLayout(AtomicUsize::new(0))
    }

    /// Whether `owner` lays the objects out from now on; false where another does already.
    pub(super) fn claim(&self, owner: Owner) -> bool {
        let known = self
            .0
            .compare_exchange(0, owner.0, Ordering::AcqRel, Ordering::Acquire);
        known.is_ok() || known == Err(owner.0)
    }
}

/// Records that the objects of a type have the memory of no Rust type; false where a [`DynamicType`] lays them out.
pub(crate) fn lay_out_elsewhere(type_index: i32) -> bool {
    published(type_index).is_some_and(|entry| entry.layout.claim(Owner::ELSEWHERE))
}
