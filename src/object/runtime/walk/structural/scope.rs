//! Where a structural walk may bind variables, and how deep it is.

use crate::function::{Error, Result};
use crate::object::walk::depth;
use crate::value::types::{FieldInfo, flag};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where variables may be bound.
pub(super) mod region {
    pub(in super::super) const NONE: i32 = 0;
    pub(in super::super) const PATTERN: i32 = 1;
    pub(in super::super) const SIMPLE: i32 = 2;
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The region in which a walk is now, and how deep it is.
#[derive(Default)]
pub(super) struct BindingScope {
    pub(super) region: AtomicI32,
    depth: AtomicUsize,
}

impl BindingScope {
    pub(super) fn region(&self) -> i32 {
        self.region.load(Ordering::Relaxed)
    }

    /// Runs `body` in another region. A pattern region stays one.
    fn within<T>(&self, wanted: i32, body: impl FnOnce() -> Result<T>) -> Result<T> {
        let before = self.region();
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
        if before == region::SIMPLE {
            self.region.store(region::NONE, Ordering::Relaxed);
        }
        let result = body();
        self.region.store(before, Ordering::Relaxed);
        result
    }

    pub(super) fn of_field<T>(
        &self,
        field: &FieldInfo,
        body: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        if field.flags & flag::DEF_SIMPLE != 0 {
            self.within(region::SIMPLE, body)
        } else if field.flags & flag::DEF_PATTERN != 0 {
            self.within(region::PATTERN, body)
        } else {
            body()
        }
    }

    /// As a hook of a type asks for it: 0 keeps the region.
    pub(super) fn as_asked<T>(&self, asked: i64, body: impl FnOnce() -> Result<T>) -> Result<T> {
        let asked = i32::try_from(asked)
            .map_err(|_| Error::new("ValueError", format!("there is no region {asked}")))?;
        match asked {
            region::NONE => self.within(self.region(), body),
            wanted => self.within(wanted, body),
        }
    }

    pub(super) fn deeper<T>(&self, body: impl FnOnce() -> Result<T>) -> Result<T> {
        let levels = self.depth.fetch_add(1, Ordering::Relaxed);
        let result = depth::check(levels).and_then(|()| body());
        self.depth.fetch_sub(1, Ordering::Relaxed);
        result
    }
}
