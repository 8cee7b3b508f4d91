//! The object that an error is, as it crosses the boundary.
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
use crate::value::header::{Header, ObjectRef, Ref, dec_ref, static_object};
use crate::value::{ByteArray, index};
use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The public part of an error (`TVMFFIErrorCell`, 72 bytes).
#[repr(C)]
pub(crate) struct ErrorCell {
    /// `ValueError`, `TypeError`, ...
    pub(crate) kind: ByteArray,
    /// What happened.
    pub(crate) message: ByteArray,
    /// Lines `  File "<file>", line <n>, in <function>`, most recent call first. Changes in place, and what it pointed
    /// to goes: [`Error::backtrace`](super::Error::backtrace) copies it.
    pub(crate) backtrace: UnsafeCell<ByteArray>,
    /// Replaces (mode 0) or extends (mode 1) the backtrace.
    pub(crate) update_backtrace: Option<UpdateBacktrace>,
    /// The error that caused this one.
    pub(crate) cause_chain: *mut Header,
    /// Anything else that travels along; changes in place.
    pub(crate) extra_context: UnsafeCell<*mut Header>,
}

/// Changes the backtrace of the error that has it (FUN-05).
type UpdateBacktrace = unsafe extern "C-unwind" fn(*mut Header, *const ByteArray, i32);

const _: () = assert!(size_of::<ErrorCell>() == 72);

/// An error object. Ours keeps the texts behind the public part.
#[repr(C)]
pub(crate) struct ErrorObj {
    header: Header,
    /// The public part.
    pub(crate) cell: ErrorCell,
}

const _: () = assert!(size_of::<ErrorObj>() == 96);

static_object!(ErrorObj, index::ERROR);

// SAFETY: only backtrace and context change: those of errors made here under `changes`; a backtrace of another library's
// error is updated and read from here under `updates`, and the ABI leaves what that library does with it to the library.
unsafe impl Send for ErrorObj {}
// SAFETY: only backtrace and context change: those of errors made here under `changes`; a backtrace of another library's
// error is updated and read from here under `updates`, and the ABI leaves what that library does with it to the library.
unsafe impl Sync for ErrorObj {}

/// An error that was made here: the public part, and what its texts point to.
#[repr(C)]
pub(super) struct OwnError {
    public: ErrorObj,
    /// Kind and message, one behind the other. A raw pointer: moving a box would end the views in the public part.
    texts: NonNull<[u8]>,
    /// What the public part shows as the backtrace.
    backtrace: UnsafeCell<Vec<u8>>,
    /// The rule that was broken, where one was. Never changes.
    pub(super) broken: Option<Box<Violation>>,
}

// SAFETY: `#[repr(C)]`, `public` first; its own functions alone reach the texts.
own_object!(unsafe OwnError, index::ERROR);

impl OwnError {
    /// A new error object. What is in `objects` is what caused it, and what travels along.
    pub(super) fn make(
        kind: &[u8],
        message: &[u8],
        backtrace: &[u8],
        [cause, context]: [Option<ObjectRef>; 2],
        broken: Option<Box<Violation>>,
    ) -> Ref<ErrorObj> {
        // FUN-04: both texts in one allocation, with no zero behind them: their lengths are in the public part.
        let texts = NonNull::from(Box::leak([kind, message].concat().into_boxed_slice()));
        let start: *const u8 = texts.as_ptr().cast();
        let backtrace = backtrace.to_vec();
        let take =
            |object: Option<ObjectRef>| object.map_or(std::ptr::null_mut(), ObjectRef::into_raw);
        let own = Ref::new(OwnError {
            public: ErrorObj {
                // `Ref::new` writes its own header over this one, whose deleter ends the texts as well.
                header: Header::new(index::ERROR, crate::value::heap::delete_plain),
                cell: ErrorCell {
                    kind: ByteArray {
                        data: start,
                        size: kind.len(),
                    },
                    message: ByteArray {
                        data: start.wrapping_add(kind.len()),
                        size: message.len(),
                    },
                    // The vector's memory, which stays where it is when the vector itself moves into the object below.
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

    /// The whole of an error that was made here; none of another library's.
    pub(super) fn of(error: &Ref<ErrorObj>) -> Option<&OwnError> {
        // By the function and not by the type: errors of other libraries have that index and the public part alone.
        let own: UpdateBacktrace = update_backtrace;
        if !std::ptr::fn_addr_eq(error.cell.update_backtrace?, own) {
            return None;
        }
        let object = error.as_object().as_ptr().cast::<OwnError>();
        // SAFETY: `update_backtrace` is only ever set in errors made here, and the object lives while its reference does.
        Some(unsafe { &*object })
    }
}

impl Drop for OwnError {
    fn drop(&mut self) {
        // SAFETY: null, or an object that the cell owns a reference of.
        unsafe { dec_ref(self.public.cell.cause_chain) };
        // SAFETY: null, or an object that the cell owns a reference of.
        unsafe { dec_ref(*self.public.cell.extra_context.get_mut()) };
        // SAFETY: came from a box in `with_parts`, and ends with the error.
        let _texts = unsafe { Box::from_raw(self.texts.as_ptr()) };
    }
}

/// One lock for what changes in errors, backtrace and context: that is rare and short.
pub(super) fn changes() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One lock for changing the backtrace of an error of any library, and for reading it: another library need not
/// lock. Comes before [`changes`], which our own errors take themselves.
pub(super) fn updates() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// # Safety
/// `error` is an [`OwnError`]; `text` is null or a byte array, which is readable for the call.
unsafe extern "C-unwind" fn update_backtrace(
    error: *mut Header,
    text: *const ByteArray,
    mode: i32,
) {
    let error = error.cast::<OwnError>();
    let _held = changes();
    // SAFETY: null or the address of a byte array, by this contract.
    let added = unsafe { text.as_ref() };
    // FUN-05: a copy, for the bytes may be those of this very backtrace, as the cell of the error shows them.
    // SAFETY: readable for the call, by this contract.
    let added = added.map(|added| unsafe { added.as_slice() }.to_vec());
    // SAFETY: this function is only ever set in errors made here, and called with the error itself.
    let error = unsafe { &*error };
    // SAFETY: what looks at the backtrace of such an error holds the lock `changes`, as this does.
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
