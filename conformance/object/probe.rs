//! Objects of the suite's own that are counted: whether what holds them lets them go, and when.

use crate::conformance::runtime::ffi::api::FfiApi;
use crate::conformance::runtime::ffi::owned::OwnedValue;
use crate::value::header::{DELETE_STRONG, DELETE_WEAK, Header};
use crate::value::{AnyPayload, RawAny, index};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// How many probes of a case are alive.
#[derive(Clone, Default)]
pub(super) struct Alive(Arc<AtomicU32>);

impl Alive {
    /// How many are alive.
    pub(super) fn count(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    /// One more is alive.
    pub(super) fn more(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }

    /// One is freed.
    pub(super) fn less(&self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[repr(C)]
struct CountedObject {
    header: Header,
    alive: Alive,
}

/// One more, as a plain object of the runtime's.
pub(super) fn make(api: &'static FfiApi, alive: &Alive) -> OwnedValue {
    alive.more();
    let header = Header::new(index::OBJECT, delete);
    let alive = alive.clone();
    let ptr = Box::into_raw(Box::new(CountedObject { header, alive })).cast();
    OwnedValue {
        api,
        raw: RawAny::of(index::OBJECT, AnyPayload { ptr }),
    }
}

/// VAL-05: with the last strong reference one fewer is alive, and with the last weak one the memory goes; both may come in one call.
unsafe extern "C-unwind" fn delete(object: *mut Header, flags: i32) {
    let probe = object.cast::<CountedObject>();
    if flags & DELETE_STRONG != 0 {
        // SAFETY: made by `make`, and its memory is still there.
        let alive = unsafe { &(*probe).alive };
        alive.less();
    }
    if flags & DELETE_WEAK != 0 {
        // SAFETY: made by `make`; this is the last that happens to it.
        drop(unsafe { Box::from_raw(probe) });
    }
}
