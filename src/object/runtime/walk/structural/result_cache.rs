//! Results of walks over containers that occur several times (OBJ-14).

use crate::function::Result;
use crate::lock::lock;
use crate::value::header::ObjectRef;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The objects, kept alive, and the result for them.
type KnownResult<T> = ([Option<ObjectRef>; 2], T);

/// The addresses of one or two objects; 0 for no object.
type Addresses = (usize, usize);

/// Results by the addresses of the one or two objects that they belong to. The objects are kept alive.
///
/// Without this cache, 30 arrays that each contain the previous one twice take 2^30 steps.
pub(super) struct SharedWork<T> {
    known: Mutex<HashMap<Addresses, KnownResult<T>>>,
    /// Number of results so far that may change if the work is repeated.
    changing: AtomicU64,
}

impl<T> Default for SharedWork<T> {
    fn default() -> SharedWork<T> {
        SharedWork {
            known: Mutex::default(),
            changing: AtomicU64::new(0),
        }
    }
}

impl<T: Copy> SharedWork<T> {
    /// Runs `work` on one or two objects, or returns its cached result.
    pub(super) fn get_or_run(
        &self,
        objects: &[&ObjectRef],
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        // An object with one holder occurs once, unless its holder occurs several times.
        if objects.iter().any(|object| object.is_unique()) {
            return work();
        }
        let address = |at: usize| objects.get(at).map_or(0, |object| object.as_ptr() as usize);
        let key = (address(0), address(1));
        if let Some((_, known)) = lock(&self.known).get(&key) {
            return Ok(*known);
        }
        let before = self.changing.load(Ordering::Relaxed);
        let result = work()?;
        if self.changing.load(Ordering::Relaxed) == before {
            let held = [0, 1].map(|at| objects.get(at).map(|&object| object.clone()));
            lock(&self.known).insert(key, (held, result));
        }
        Ok(result)
    }

    /// Records that the running work may have another result next time.
    pub(super) fn is_not_final(&self) {
        self.changing.fetch_add(1, Ordering::Relaxed);
    }
}
