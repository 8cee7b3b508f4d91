//! Allocation of new types and their indices (VAL-14, VAL-15).

use super::info;
use super::table::{INDICES, TypeWriter, published, writer};
use crate::rule::{Kind, Violation};
use crate::value::{VAL_14, VAL_15};
use std::sync::atomic::Ordering;

/// Number of indices reserved for Rust types ([`DynamicType`](super::DynamicType)), which need one no matter how many others are
/// registered.
const KEPT: i32 = 1024;

/// Registers a type derived from `parent`. The type may get derived types beyond its reserved indices.
///
/// # Errors
///
/// Returns VAL-15 (type) for an unknown parent, for a parent without room for more children, and if all type indices are used.
pub fn register(key: &str, parent: i32) -> Result<i32, Violation> {
    get_or_alloc(NewType {
        key,
        static_index: -1,
        depth: None,
        child_slots: 0,
        can_overflow: true,
        parent,
    })
}

/// A new type, with the arguments of `TVMFFITypeGetOrAllocIndex`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewType<'a> {
    /// The key.
    pub(crate) key: &'a str,
    /// A fixed index, or -1 for the next free one.
    pub(crate) static_index: i32,
    /// Distance from the root, which must be the parent's plus one. `None` skips the check.
    pub(crate) depth: Option<i32>,
    /// Number of indices to reserve after its own for derived types.
    pub(crate) child_slots: i32,
    /// True if more derived types than reserved may be registered. They take indices from elsewhere.
    pub(crate) can_overflow: bool,
    /// Index of the parent.
    pub(crate) parent: i32,
}

/// Returns the index of a type. A new key gets an index. A known key keeps its index and the other arguments are ignored.
pub(crate) fn get_or_alloc(new: NewType<'_>) -> Result<i32, Violation> {
    let mut writer = writer();
    // VAL-14: a known key keeps its index, and the other arguments are ignored.
    if let Ok(at) = writer.index_of(new.key.as_bytes()) {
        return Ok(writer.keys[at].1);
    }
    allocate(&mut writer, new, KEPT)
}

/// Creates a type, even if its key is known. The last `kept` indices stay free.
pub(super) fn allocate(
    writer: &mut TypeWriter,
    new: NewType<'_>,
    kept: i32,
) -> Result<i32, Violation> {
    let end = INDICES - kept;
    let reject = |message: String| VAL_15.rejected(Kind::Type, message);
    let Some(slots) = published(new.parent) else {
        return Err(reject(format!("type `{}` has no known parent", new.key)));
    };
    let parent = &slots.info;
    let depth = parent.type_depth + 1;
    let fits = new.depth.is_none_or(|claimed| claimed == depth);
    VAL_15.demand(Kind::Type, fits, || {
        format!(
            "type `{}` claims depth {:?}, but its parent `{}` is at {}",
            new.key,
            new.depth,
            parent.key(),
            parent.type_depth
        )
    })?;
    // VAL-14: one index for the type, and one for each child that it reserves room for.
    let wanted = new.child_slots.max(0).saturating_add(1);
    let mut next = writer.next;
    // Relaxed: it changes only under the writer's lock, which is held here.
    let taken = slots.taken.load(Ordering::Relaxed);
    // VAL-15: a parent that was registered without overflow also forbids it to its children.
    let can_overflow = new.can_overflow && slots.can_overflow;
    let mut inside = false;
    let type_index = if new.static_index >= 0 {
        // VAL-14: `duplicate` takes precedence over an index that does not fit the parent, which is `type` (VAL-15).
        if let Some(other) = info(new.static_index) {
            return Err(VAL_14.rejected(
                Kind::Duplicate,
                format!(
                    "conflicting static index {} between `{}` and `{}`",
                    new.static_index,
                    other.key(),
                    new.key
                ),
            ));
        }
        new.static_index
    } else if wanted <= slots.total.saturating_sub(taken) {
        inside = true;
        new.parent.saturating_add(taken)
    } else {
        if !slots.can_overflow {
            return Err(reject(format!(
                "reach maximum number of sub-classes for `{}`",
                parent.key()
            )));
        }
        // VAL-14: an earlier type may have this index as its fixed index.
        let free = (next..end).find(|&at| published(at).is_none());
        let first = free.unwrap_or(end);
        next = first.saturating_add(wanted);
        if next > end {
            return Err(reject(format!(
                "type `{}` needs {wanted} indices, and {} are left",
                new.key,
                end - first
            )));
        }
        first
    };
    // VAL-15: the index of a type must be larger than the index of its parent.
    if type_index <= new.parent || type_index >= INDICES || published(type_index).is_some() {
        return Err(reject(format!(
            "type `{}` would get index {type_index}, its parent has {}",
            new.key, new.parent
        )));
    }
    // VAL-14: a fixed index does not use the parent's reserve.
    if inside {
        slots.taken.store(taken + wanted, Ordering::Relaxed);
    }
    writer.next = next;
    writer.enter(
        new.key.as_bytes(),
        type_index,
        Some(slots),
        new.child_slots.max(0),
        can_overflow,
    );
    Ok(type_index)
}
