//! The region in which a walk may bind variables (OBJ-14, OBJ-34).

use crate::value::types::{FieldInfo, flag};
use std::sync::atomic::{AtomicI32, Ordering};

/// The current region of a walk. The flags `flag::DEF_SIMPLE` and `flag::DEF_PATTERN` of a field open one, and hooks of types pass their
/// numbers.
///
/// Relaxed, because a walk uses one thread at a time; atomic, because visitors and the callbacks of hooks are objects, which may be shared.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Region(AtomicI32);

impl Region {
    /// No binding: a variable equals only itself, and stays unchanged.
    pub(crate) const NONE: i32 = 0;
    /// Binds all variables below, including those in the types of variables.
    pub(crate) const PATTERN: i32 = 1;
    /// Binds the variable itself, but no variable in its type.
    pub(crate) const SIMPLE: i32 = 2;

    /// Creates a region from its number. Accepts any number, because it may come from another library's object.
    pub(crate) const fn of(kind: i32) -> Region {
        Region(AtomicI32::new(kind))
    }

    /// Changes the region.
    #[cfg(feature = "frontend")]
    pub(crate) fn set(&self, kind: i32) {
        self.0.store(kind, Ordering::Relaxed);
    }

    /// Returns the number of the region.
    pub(crate) fn kind(&self) -> i32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Runs `body` in another region. A pattern region is never replaced.
    pub(crate) fn run_in_region<T>(&self, kind: i32, body: impl FnOnce() -> T) -> T {
        /// Restores the region, even if `body` panics, because the visitor may be used again.
        struct Restore<'a>(&'a AtomicI32, i32);
        impl Drop for Restore<'_> {
            fn drop(&mut self) {
                self.0.store(self.1, Ordering::Relaxed);
            }
        }
        let before = self.kind();
        // Below a pattern, all variables are bound by it, even if a field or a hook requests another region.
        if before == Region::PATTERN {
            return body();
        }
        self.0.store(kind, Ordering::Relaxed);
        let _restore = Restore(&self.0, before);
        body()
    }

    /// Runs `body` in the region that a field opens. If it has both flags, the narrower one counts.
    pub(crate) fn run_for_field<T>(&self, field: &FieldInfo, body: impl FnOnce() -> T) -> T {
        if field.flags & flag::DEF_SIMPLE != 0 {
            self.run_in_region(Region::SIMPLE, body)
        } else if field.flags & flag::DEF_PATTERN != 0 {
            self.run_in_region(Region::PATTERN, body)
        } else {
            body()
        }
    }

    /// Runs `body` for the type of a variable, whose variables a simple region does not bind.
    pub(crate) fn run_for_variable_type<T>(&self, body: impl FnOnce() -> T) -> T {
        if self.kind() == Region::SIMPLE {
            self.run_in_region(Region::NONE, body)
        } else {
            body()
        }
    }
}
