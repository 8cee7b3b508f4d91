//! Where a structural walk may bind variables, and how deep it is.

use crate::function::{Error, ErrorKind, Result};
use crate::object::walk::depth;
use crate::value::types::{FieldInfo, flag};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where variables may be bound: the kinds of region that `flag::DEF_SIMPLE` and `flag::DEF_PATTERN` of a field open, by the numbers
/// that hooks of types pass.
pub(super) mod region {
    /// Nowhere: a variable is itself.
    pub(crate) const NONE: i32 = 0;
    /// In all that is below, the types of variables included.
    pub(crate) const PATTERN: i32 = 1;
    /// The variable itself, and none in its type.
    pub(crate) const SIMPLE: i32 = 2;
}

/// The lock, also after a panic: what it protects is changed by single insertions.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The region in which a walk is now, and how deep it is.
#[derive(Default)]
pub(super) struct BindingScope {
    /// The region now, one of [`region`]. Atomic because callbacks for hooks share the walk; a walk is on one thread at a time.
    pub(super) region: AtomicI32,
    /// How many objects are around the value at hand.
    depth: AtomicUsize,
}

impl BindingScope {
    /// The region now, one of [`region`].
    pub(super) fn region(&self) -> i32 {
        self.region.load(Ordering::Relaxed)
    }

    /// Runs `body` in another region. A pattern region stays one.
    fn within<T>(&self, wanted: i32, body: impl FnOnce() -> Result<T>) -> Result<T> {
        let before = self.region();
        // Whatever a field or a hook wants: below a pattern all variables are bound by it.
        if before != region::PATTERN {
            self.region.store(wanted, Ordering::Relaxed);
        }
        let result = body();
        self.region.store(before, Ordering::Relaxed);
        result
    }

    /// Runs `body` for the type of a variable, which a simple region does not bind.
    pub(super) fn of_variable<T>(&self, body: impl FnOnce() -> Result<T>) -> Result<T> {
        let before = self.region();
        // Below a pattern the type is bound as well.
        if before == region::SIMPLE {
            self.region.store(region::NONE, Ordering::Relaxed);
        }
        let result = body();
        self.region.store(before, Ordering::Relaxed);
        result
    }

    /// Runs `body` for a field, in the region that its flags open.
    pub(super) fn of_field<T>(
        &self,
        field: &FieldInfo,
        body: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        // A field has one mark; of two the narrower counts.
        if field.flags & flag::DEF_SIMPLE != 0 {
            self.within(region::SIMPLE, body)
        } else if field.flags & flag::DEF_PATTERN != 0 {
            self.within(region::PATTERN, body)
        } else {
            body()
        }
    }

    /// Runs `body` in the region whose number a hook of a type passes: 0 keeps the one that is.
    pub(super) fn in_region_of_hook<T>(
        &self,
        kind: i64,
        body: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let kind = i32::try_from(kind)
            .map_err(|_| Error::new(ErrorKind::Value, format!("there is no region {kind}")))?;
        match kind {
            region::NONE => self.within(self.region(), body),
            wanted => self.within(wanted, body),
        }
    }

    /// Runs `body` one level down.
    pub(super) fn deeper<T>(&self, body: impl FnOnce() -> Result<T>) -> Result<T> {
        // Counted here and not passed on: a hook of a type may come between two levels.
        let levels = self.depth.fetch_add(1, Ordering::Relaxed);
        let result = depth::check(levels).and_then(|()| body());
        self.depth.fetch_sub(1, Ordering::Relaxed);
        result
    }
}
