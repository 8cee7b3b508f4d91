//! The region in which a structural walk may bind variables, and its depth.

use crate::function::{Error, ErrorKind, Result};
use crate::object::walk::depth;
use crate::value::types::{FieldInfo, flag};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The regions in which variables may be bound. The flags `flag::DEF_SIMPLE` and `flag::DEF_PATTERN` of a field open them, and hooks of
/// types pass their numbers.
pub(super) mod region {
    /// No binding: a variable equals only itself.
    pub(crate) const NONE: i32 = 0;
    /// Binds all variables below, including those in the types of variables.
    pub(crate) const PATTERN: i32 = 1;
    /// Binds the variable itself, but no variable in its type.
    pub(crate) const SIMPLE: i32 = 2;
}

/// Locks `mutex`, ignoring poison, because its content changes only by single insertions.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The current region and depth of a walk.
#[derive(Default)]
pub(super) struct BindingScope {
    /// The current region, one of [`region`]. Atomic because callbacks for hooks share the walk. A walk uses one thread at a time.
    pub(super) region: AtomicI32,
    /// Number of objects around the current value.
    depth: AtomicUsize,
}

impl BindingScope {
    /// Returns the current region, one of [`region`].
    pub(super) fn region(&self) -> i32 {
        self.region.load(Ordering::Relaxed)
    }

    /// Runs `body` in another region. A pattern region is never replaced.
    fn run_in_region<T>(&self, wanted: i32, body: impl FnOnce() -> Result<T>) -> Result<T> {
        let before = self.region();
        // Below a pattern, all variables are bound by the pattern, even if a field or a hook requests another region.
        if before != region::PATTERN {
            self.region.store(wanted, Ordering::Relaxed);
        }
        let result = body();
        self.region.store(before, Ordering::Relaxed);
        result
    }

    /// Runs `body` for the type of a variable, whose variables a simple region does not bind.
    pub(super) fn run_for_variable_type<T>(&self, body: impl FnOnce() -> Result<T>) -> Result<T> {
        let before = self.region();
        // A pattern also binds variables in the type.
        if before == region::SIMPLE {
            self.region.store(region::NONE, Ordering::Relaxed);
        }
        let result = body();
        self.region.store(before, Ordering::Relaxed);
        result
    }

    /// Runs `body` for a field, in the region that its flags open.
    pub(super) fn run_for_field<T>(
        &self,
        field: &FieldInfo,
        body: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        // A field has at most one of the flags. If it has both, the narrower one counts.
        if field.flags & flag::DEF_SIMPLE != 0 {
            self.run_in_region(region::SIMPLE, body)
        } else if field.flags & flag::DEF_PATTERN != 0 {
            self.run_in_region(region::PATTERN, body)
        } else {
            body()
        }
    }

    /// Runs `body` in the region that a type's hook passes. 0 keeps the current region.
    pub(super) fn run_in_hook_region<T>(
        &self,
        kind: i64,
        body: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let kind = i32::try_from(kind)
            .map_err(|_| Error::new(ErrorKind::Value, format!("there is no region {kind}")))?;
        match kind {
            region::NONE => self.run_in_region(self.region(), body),
            wanted => self.run_in_region(wanted, body),
        }
    }

    /// Runs `body` one level deeper.
    pub(super) fn deeper<T>(&self, body: impl FnOnce() -> Result<T>) -> Result<T> {
        // Counted in the scope instead of passed on, because a hook may run between two levels.
        let levels = self.depth.fetch_add(1, Ordering::Relaxed);
        let result = depth::check(levels).and_then(|()| body());
        self.depth.fetch_sub(1, Ordering::Relaxed);
        result
    }
}
