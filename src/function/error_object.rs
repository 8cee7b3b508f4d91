//! The object of an error, as it crosses the boundary.
//!
//! | bytes   | field                                             | rule   |
//! |---------|---------------------------------------------------|--------|
//! | 24..40  | kind                                              | FUN-04 |
//! | 40..56  | message                                           | FUN-04 |
//! | 56..72  | backtrace, most recent call first                 | FUN-04 |
//! | 72..80  | `update_backtrace(error, bytes, mode)`, never null | FUN-05 |
//! | 80..88  | error that caused this one, or null               | FUN-04 |
//! | 88..96  | extra context object, or null                     | FUN-04 |

use crate::rule::Violation;
use crate::value::header::{Header, ObjectRef, Ref, dec_ref, own_object, static_object};
use crate::value::{ByteArray, index};
use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The public part of an error (`TVMFFIErrorCell`, 72 bytes).
#[repr(C)]
pub(crate) struct ErrorCell {
    /// `ValueError`, `TypeError`, ...
    pub(crate) kind: ByteArray,
    /// The message.
    pub(crate) message: ByteArray,
    /// Lines ` File "<file>", line <n>, in <function>`, most recent call first. A change frees the old bytes, so
    /// [`Error::backtrace`](super::Error::backtrace) copies them.
    pub(crate) backtrace: UnsafeCell<ByteArray>,
    /// Replaces (mode 0) or extends (mode 1) the backtrace.
    pub(crate) update_backtrace: Option<UpdateBacktrace>,
    /// The error that caused this one.
    pub(crate) cause_chain: *mut Header,
    /// Additional context, which can be replaced.
    pub(crate) extra_context: UnsafeCell<*mut Header>,
}

/// Changes the backtrace of its error (FUN-05).
type UpdateBacktrace = unsafe extern "C-unwind" fn(*mut Header, *const ByteArray, i32);

const _: () = assert!(size_of::<ErrorCell>() == 72);

/// An error object. Errors of this library store the texts after the public part.
#[repr(C)]
pub(crate) struct ErrorObj {
    header: Header,
    /// The public part.
    pub(crate) cell: ErrorCell,
}

const _: () = assert!(size_of::<ErrorObj>() == 96);

static_object!(ErrorObj, index::ERROR);

// SAFETY: only backtrace and context change. For errors of this library they change under `lock_changes`. A backtrace of another library's error
// is updated and read here under `lock_backtraces`; the ABI makes that library responsible for its own accesses.
unsafe impl Send for ErrorObj {}
// SAFETY: only backtrace and context change. For errors of this library they change under `lock_changes`. A backtrace of another library's error
// is updated and read here under `lock_backtraces`; the ABI makes that library responsible for its own accesses.
unsafe impl Sync for ErrorObj {}

/// An error of this library: the public part, and the memory of its texts.
#[repr(C)]
pub(super) struct OwnError {
    public: ErrorObj,
    /// Kind and message, concatenated. A raw pointer, because moving a box would invalidate the pointers in the public part.
    texts: NonNull<[u8]>,
    /// The memory of the backtrace in the public part.
    backtrace: UnsafeCell<Vec<u8>>,
    /// The broken rule, if there is one. Never changes.
    pub(super) broken: Option<Box<Violation>>,
}

// SAFETY: `#[repr(C)]`, `public` first; only its own functions reach the texts.
own_object!(unsafe OwnError, index::ERROR);

impl OwnError {
    /// Creates an error object. `objects` contains its cause and its context.
    pub(super) fn make(
        kind: &[u8],
        message: &[u8],
        backtrace: &[u8],
        [cause, context]: [Option<ObjectRef>; 2],
        broken: Option<Box<Violation>>,
    ) -> Ref<ErrorObj> {
        // FUN-04: both texts share one allocation without final zeros, because their lengths are in the public part.
        let texts = NonNull::from(Box::leak([kind, message].concat().into_boxed_slice()));
        let start: *const u8 = texts.as_ptr().cast();
        let backtrace = backtrace.to_vec();
        let take =
            |object: Option<ObjectRef>| object.map_or(std::ptr::null_mut(), ObjectRef::into_raw);
        let own = Ref::new(OwnError {
            public: ErrorObj {
                header: Header::placeholder(),
                cell: ErrorCell {
                    kind: ByteArray {
                        data: start,
                        size: kind.len(),
                    },
                    message: ByteArray {
                        data: start.wrapping_add(kind.len()),
                        size: message.len(),
                    },
                    // Points to the vector's memory, which does not move when the vector moves into the object below.
                    backtrace: UnsafeCell::new(ByteArray::of(&backtrace)),
                    update_backtrace: Some(update_backtrace),
                    cause_chain: take(cause),
                    extra_context: UnsafeCell::new(take(context)),
                },
            },
            texts,
            backtrace: UnsafeCell::new(backtrace),
            broken,
        });
        // SAFETY: an `OwnError` starts with an `ErrorObj`, and the reference moves.
        unsafe { Ref::from_raw(own.into_object().into_raw()) }
    }

    /// Returns the private part of an error of this library; `None` for another library's.
    pub(super) fn downcast(error: &Ref<ErrorObj>) -> Option<&OwnError> {
        // Identified by the function instead of the type: errors of other libraries have the same index, but only the public part.
        let own: UpdateBacktrace = update_backtrace;
        if !std::ptr::fn_addr_eq(error.cell.update_backtrace?, own) {
            return None;
        }
        let object = error.as_object().as_ptr().cast::<OwnError>();
        // SAFETY: `update_backtrace` is only set in errors of this library, and the object lives while its reference does.
        Some(unsafe { &*object })
    }
}

impl Drop for OwnError {
    fn drop(&mut self) {
        // SAFETY: null, or an object to which the cell owns a reference.
        unsafe { dec_ref(self.public.cell.cause_chain) };
        // SAFETY: null, or an object to which the cell owns a reference.
        unsafe { dec_ref(*self.public.cell.extra_context.get_mut()) };
        // SAFETY: came from a box in `make`, and is freed once, with the error.
        let _texts = unsafe { Box::from_raw(self.texts.as_ptr()) };
    }
}

/// Locks backtraces and contexts of errors. One lock for all errors, because changes are rare and short.
pub(super) fn lock_changes() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks the backtraces of errors of all libraries, for changing and reading. Needed because another library may not lock. Locked
/// before [`lock_changes`], which errors of this library lock themselves.
pub(super) fn lock_backtraces() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Implements `update_backtrace` for errors of this library (FUN-05).
///
/// # Safety
/// `error` is an [`OwnError`]; `text` is null or a byte array that is readable for the call.
unsafe extern "C-unwind" fn update_backtrace(
    error: *mut Header,
    text: *const ByteArray,
    mode: i32,
) {
    let error = error.cast::<OwnError>();
    let _held = lock_changes();
    // SAFETY: null or the address of a byte array, by this contract.
    let added = unsafe { text.as_ref() };
    // FUN-05: a copy, because the bytes may be those of this very backtrace, to which the error's cell points.
    // SAFETY: readable for the call, by this contract.
    let added = added.map(|added| unsafe { added.as_slice() }.to_vec());
    // SAFETY: this function is only set in errors of this library, and is called with the error itself.
    let error = unsafe { &*error };
    // SAFETY: every access to the backtrace of such an error holds the lock of `lock_changes`, like this one.
    let backtrace = unsafe { &mut *error.backtrace.get() };
    if mode == 0 {
        backtrace.clear();
    }
    backtrace.extend(added.unwrap_or_default());
    // SAFETY: as for the backtrace itself.
    unsafe {
        error
            .public
            .cell
            .backtrace
            .get()
            .write(ByteArray::of(backtrace))
    }
}
