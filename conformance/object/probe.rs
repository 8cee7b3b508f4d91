//! Counted objects of the suite. They show whether and when their holders release them.

use crate::conformance::runtime::ffi::api::FfiApi;
use crate::conformance::runtime::ffi::owned::OwnedValue;
use crate::value::header::{DELETE_STRONG, DELETE_WEAK, Header};
use crate::value::{AnyPayload, RawAny, index};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The number of probes of a case that are alive.
#[derive(Clone, Default)]
pub(super) struct Alive(Arc<AtomicU32>);

impl Alive {
    /// Returns the number of probes that are alive.
    pub(super) fn count(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    /// Counts one more probe as alive.
    pub(super) fn count_created(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }

    /// Counts one probe fewer as alive.
    pub(super) fn count_dropped(&self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[repr(C)]
struct CountedObject {
    header: Header,
    alive: Alive,
}

/// Creates a probe, as a plain object of the runtime.
pub(super) fn make(api: &'static FfiApi, alive: &Alive) -> OwnedValue {
    alive.count_created();
    let header = Header::new(index::OBJECT, delete);
    let alive = alive.clone();
    let ptr = Box::into_raw(Box::new(CountedObject { header, alive })).cast();
    OwnedValue {
        api,
        raw: RawAny::of(index::OBJECT, AnyPayload { ptr }),
    }
}

/// Ends a probe (VAL-05). The count goes down with the last strong reference, and the last weak reference frees the memory. One call may do
/// both.
unsafe extern "C-unwind" fn delete(object: *mut Header, flags: i32) {
    let probe = object.cast::<CountedObject>();
    if flags & DELETE_STRONG != 0 {
        // SAFETY: `make` made the probe, and its memory is not freed yet.
        let alive = unsafe { &(*probe).alive };
        alive.count_dropped();
    }
    if flags & DELETE_WEAK != 0 {
        // SAFETY: `make` made the probe, and it is not used after this call.
        drop(unsafe { Box::from_raw(probe) });
    }
}
