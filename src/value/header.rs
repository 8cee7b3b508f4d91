//! The object header and reference counting.
//!
//! | bytes   | field                                                        | rule   |
//! |---------|--------------------------------------------------------------|--------|
//! | 0..8    | strong count in the low 32 bits, weak count in the high 32   | VAL-04 |
//! | 8..12   | type index, i32                                              | VAL-04 |
//! | 12..16  | padding, zero                                                | VAL-04 |
//! | 16..24  | deleter: `fn(object, flags)`; may be null                    | VAL-05 |

mod deletion_queue;
mod reference;

pub(crate) use deletion_queue::end_nested;
pub(crate) use reference::{BareObject, dynamic_object, own_object, static_object};
pub use reference::{Object, ObjectRef, Ref};

use super::index;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// The deleter of an object. `flags` holds [`DELETE_STRONG`], [`DELETE_WEAK`] or both.
pub(crate) type Deleter = unsafe extern "C-unwind" fn(object: *mut Header, flags: i32);

/// Deleter flag: the last strong reference is gone, so the contents are dropped.
pub(crate) const DELETE_STRONG: i32 = 1;
/// Deleter flag: the last weak reference is gone, so the memory is freed.
pub(crate) const DELETE_WEAK: i32 = 2;
const DELETE_BOTH: i32 = DELETE_STRONG | DELETE_WEAK;

const WEAK_ONE: u64 = 1 << 32;
/// The counts of a fresh object: one strong reference, and the weak reference that all strong references share.
pub(crate) const FRESH: u64 = WEAK_ONE | 1;

/// The first 24 bytes of every object (`TVMFFIObject`).
#[repr(C)]
pub struct Header {
    /// Strong count in the lower 32 bits, weak count in the upper 32.
    pub(crate) combined: AtomicU64,
    /// Index of the object's type.
    pub(crate) type_index: i32,
    /// Always zero.
    pub(crate) padding: u32,
    /// The deleter of the object.
    pub(crate) deleter: Option<Deleter>,
}

debug_fields!(Header: type_index);

const _: () = assert!(size_of::<Header>() == 24);
const _: () = assert!(std::mem::offset_of!(Header, type_index) == 8);
const _: () = assert!(std::mem::offset_of!(Header, deleter) == 16);

impl Header {
    /// Creates the header of a fresh object.
    pub fn new(type_index: i32, deleter: Deleter) -> Header {
        Header {
            combined: AtomicU64::new(FRESH),
            type_index,
            padding: 0,
            deleter: Some(deleter),
        }
    }

    /// Creates a header that [`Ref::new`] overwrites with that of the new object.
    pub(crate) const fn placeholder() -> Header {
        Header {
            combined: AtomicU64::new(0),
            type_index: index::OBJECT,
            padding: 0,
            deleter: None,
        }
    }

    /// Returns the number of strong references.
    pub fn strong_count(&self) -> u32 {
        self.combined.load(Ordering::Relaxed) as u32
    }

    /// Returns the number of weak references, including the one that all strong references share.
    #[cfg(feature = "suite")]
    pub(crate) fn weak_count(&self) -> u32 {
        (self.combined.load(Ordering::Relaxed) >> 32) as u32
    }
}

/// The header of an object that this crate creates only with [`Ref::new`]. A default or a clone is a placeholder, because the value is
/// not an object yet.
#[repr(transparent)]
pub(crate) struct HeaderSlot(Header);

impl Default for HeaderSlot {
    fn default() -> HeaderSlot {
        HeaderSlot(Header::placeholder())
    }
}

impl Clone for HeaderSlot {
    fn clone(&self) -> HeaderSlot {
        HeaderSlot::default()
    }
}

/// Adds a strong reference. Does nothing for null.
///
/// # Safety
/// A non-null `object` is alive.
#[inline]
pub(crate) unsafe fn inc_ref(object: *mut Header) {
    if let Some(object) = NonNull::new(object) {
        // SAFETY: alive, by this contract. Relaxed is enough, because the holder of a reference has already synchronised to get it.
        unsafe { object.as_ref() }
            .combined
            .fetch_add(1, Ordering::Relaxed);
    }
}

/// Drops a strong reference, and deletes the object if it was the last (VAL-05). Does nothing for null.
///
/// # Safety
/// A non-null `object` is alive, and the caller gives up one reference.
#[inline]
pub(crate) unsafe fn dec_ref(object: *mut Header) {
    if object.is_null() {
        return;
    }
    // Release, for the load in `deleter_of`: the thread that deletes the object sees the writes of this one.
    // SAFETY: alive until this reference is dropped, by this contract.
    let before = unsafe { &(*object).combined }.fetch_sub(1, Ordering::Release);
    if before as u32 == 1 {
        // SAFETY: the strong count is now zero, and this call holds the implicit weak reference.
        unsafe { last_strong(object, before) }
    }
}

/// Returns the deleter, after synchronizing with all earlier holders. Uses a load instead of a fence, because race detectors understand it.
///
/// # Safety
/// The memory of `object` is allocated.
unsafe fn deleter_of(object: *mut Header) -> Option<Deleter> {
    // SAFETY: the memory is allocated, by this contract.
    unsafe { &(*object).combined }.load(Ordering::Acquire);
    // SAFETY: as for the counts.
    unsafe { (*object).deleter }
}

/// Deletes an object after its last strong reference is gone.
///
/// # Safety
/// The strong count of `object` has just become zero, from counts of `before`. The caller owns the weak reference that the strong
/// references shared.
#[cold]
#[inline(never)]
unsafe fn last_strong(object: *mut Header, before: u64) {
    // SAFETY: the memory stays until that weak reference is dropped below.
    let deleter = unsafe { deleter_of(object) };
    // VAL-05: no weak reference is left, so one call drops and frees the object.
    if before == FRESH {
        if let Some(delete) = deleter {
            // SAFETY: nothing else refers to the object, strongly or weakly.
            unsafe { delete(object, DELETE_STRONG | DELETE_WEAK) }
        }
        return;
    }
    if let Some(delete) = deleter {
        // SAFETY: no strong reference is left; weak ones only read the counts.
        unsafe { delete(object, DELETE_STRONG) }
    }
    // SAFETY: drops the weak reference that the strong ones shared.
    unsafe { dec_weak(object) }
}

/// Drops a weak reference, and frees the memory if it was the last.
///
/// # Safety
/// The caller gives up one weak reference.
pub unsafe fn dec_weak(object: *mut Header) {
    // SAFETY: the weak reference of this contract keeps the memory allocated.
    let before = unsafe { &(*object).combined }.fetch_sub(WEAK_ONE, Ordering::Release);
    if before >> 32 != 1 {
        return;
    }
    // SAFETY: the memory stays until the deleter frees it.
    let deleter = unsafe { deleter_of(object) };
    if let Some(delete) = deleter {
        // SAFETY: nothing refers to the object any more.
        unsafe { delete(object, DELETE_WEAK) }
    }
}

/// Adds a weak reference.
///
/// # Safety
/// `object` is alive, or the caller holds a weak reference.
pub unsafe fn inc_weak(object: *mut Header) {
    // SAFETY: a reference of either kind keeps the memory allocated, by this contract.
    unsafe { &(*object).combined }.fetch_add(WEAK_ONE, Ordering::Relaxed);
}

/// Creates a strong reference from a weak one, unless the object has been dropped. The weak one stays.
///
/// # Safety
/// The caller owns a weak reference to `object`.
pub unsafe fn upgrade(object: *mut Header) -> Option<ObjectRef> {
    // SAFETY: the weak reference of this contract keeps the memory allocated.
    let counts = unsafe { &(*object).combined };
    // VAL-05: a strong count of zero must not grow again, because the destructor may have run.
    let mut seen = counts.load(Ordering::Relaxed);
    while seen as u32 != 0 {
        match counts.compare_exchange_weak(seen, seen + 1, Ordering::AcqRel, Ordering::Relaxed) {
            // SAFETY: this function owns the strong reference that was just added.
            Ok(_) => return Some(unsafe { ObjectRef::from_raw(object) }),
            Err(now) => seen = now,
        }
    }
    None
}
