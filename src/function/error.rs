//! Errors: kind, message, backtrace, in an object that crosses the boundary.
//!
//! | bytes   | field                                             | rule   |
//! |---------|---------------------------------------------------|--------|
//! | 24..40  | kind                                              | FUN-04 |
//! | 40..56  | message                                           | FUN-04 |
//! | 56..72  | backtrace, most recent call first                 | FUN-04 |
//! | 72..80  | `update_backtrace(error, bytes, mode)`, never null | FUN-05 |
//! | 80..88  | error that caused this one, or null               | FUN-04 |
//! | 88..96  | extra context object, or null                     | FUN-04 |

use super::ErrorKind;
use crate::rule::{Kind, Violation};
use crate::value::header::{Header, ObjectRef, Ref, dec_ref, static_object};
use crate::value::{Any, AnyView, Argument, ByteArray, Schema, index};
use std::cell::{Cell, UnsafeCell};
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
    /// to goes: [`Error::backtrace`] copies it.
    pub(crate) backtrace: UnsafeCell<ByteArray>,
    /// Replaces (mode 0) or extends (mode 1) the backtrace.
    pub(crate) update_backtrace:
        Option<unsafe extern "C-unwind" fn(*mut Header, *const ByteArray, i32)>,
    /// The error that caused this one.
    pub(crate) cause_chain: *mut Header,
    /// Anything else that travels along; changes in place.
    pub(crate) extra_context: UnsafeCell<*mut Header>,
}

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

#[repr(C)]
struct OwnError {
    public: ErrorObj,
    /// Kind and message, one behind the other. A raw pointer: moving a box would end the views in the public part.
    texts: NonNull<[u8]>,
    /// What the public part shows as the backtrace.
    backtrace: UnsafeCell<Vec<u8>>,
}

// SAFETY: `#[repr(C)]`, `public` first; its own functions alone reach the texts.
own_object!(unsafe OwnError, index::ERROR);

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
fn changes() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One lock for who asks an error of any library to change its backtrace, and for who reads it: another library need not
/// lock. Comes before [`changes`], which our own errors take themselves.
fn updates() -> MutexGuard<'static, ()> {
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
    // SAFETY: this function is only ever set in errors made here, and called with the error itself.
    let error = unsafe { &*error };
    // SAFETY: what looks at the backtrace of such an error holds the lock `changes`, as this does.
    let backtrace = unsafe { &mut *error.backtrace.get() };
    if mode == 0 {
        backtrace.clear();
    }
    // SAFETY: null or the address of a byte array, by this contract.
    if let Some(text) = unsafe { text.as_ref() } {
        // SAFETY: readable for the call, by this contract.
        backtrace.extend_from_slice(unsafe { text.as_slice() });
    }
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

/// The mode in which a text follows the backtrace that is there.
const APPEND: i32 = 1;

/// An error that travels: what a call gives instead of a result.
#[derive(Clone)]
#[repr(transparent)]
pub struct Error(Ref<ErrorObj>);

impl Error {
    /// An error with no backtrace. `kind` is an [`ErrorKind`] or the name of one.
    #[cold]
    pub fn new<'k>(kind: impl Into<ErrorKind<'k>>, message: impl AsRef<[u8]>) -> Error {
        let kind = kind.into().as_str();
        Error::with_parts(kind.as_bytes(), message.as_ref(), b"", None, None)
    }

    /// An error with all its parts.
    #[cold]
    pub(crate) fn with_parts(
        kind: &[u8],
        message: &[u8],
        backtrace: &[u8],
        cause: Option<ObjectRef>,
        context: Option<ObjectRef>,
    ) -> Error {
        let texts = NonNull::from(Box::leak([kind, message].concat().into_boxed_slice()));
        let start: *const u8 = texts.as_ptr().cast();
        let backtrace = backtrace.to_vec();
        let take =
            |object: Option<ObjectRef>| object.map_or(std::ptr::null_mut(), ObjectRef::into_raw);
        let own = Ref::new(OwnError {
            public: ErrorObj {
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
                    backtrace: UnsafeCell::new(ByteArray::of(&backtrace)),
                    update_backtrace: Some(update_backtrace),
                    cause_chain: take(cause),
                    extra_context: UnsafeCell::new(take(context)),
                },
            },
            texts,
            backtrace: UnsafeCell::new(backtrace),
        });
        // SAFETY: an `OwnError` starts with an `ErrorObj`, and the reference moves.
        Error(unsafe { Ref::from_raw(own.into_object().into_raw()) })
    }

    /// The same error, caused by `cause`.
    #[must_use]
    pub fn caused_by(self, cause: Error) -> Error {
        Error::with_parts(
            self.kind().as_str().as_bytes(),
            self.message().as_bytes(),
            self.backtrace().as_bytes(),
            Some(cause.into_object()),
            None,
        )
    }

    /// The same error with `text` behind its message. The other parts stay as they are, byte for byte.
    #[cfg(feature = "vm")]
    #[cold]
    pub(crate) fn with_text_behind(&self, text: &str) -> Error {
        let cell = &self.0.cell;
        // SAFETY: the kind lives, unchanged, while the error does.
        let kind = unsafe { cell.kind.as_slice() };
        // SAFETY: so does the message.
        let message = unsafe { cell.message.as_slice() };
        let backtrace = {
            let _updates = updates();
            let _held = changes();
            // SAFETY: errors made here change it under `changes`, others under `updates` (see `Sync`).
            let backtrace = unsafe { &*cell.backtrace.get() };
            // SAFETY: the bytes that it counts, which live while both locks are held.
            unsafe { backtrace.as_slice() }.to_vec()
        };
        Error::with_parts(
            kind,
            &[message, text.as_bytes()].concat(),
            &backtrace,
            self.cause().map(Error::into_object),
            self.context(),
        )
    }

    fn text(part: &ByteArray) -> &str {
        // SAFETY: kind and message live while the error does; the backtrace is read before anyone can change it.
        std::str::from_utf8(unsafe { part.as_slice() }).unwrap_or("(not UTF-8)")
    }

    /// The kind.
    pub fn kind(&self) -> ErrorKind<'_> {
        Error::text(&self.0.cell.kind).into()
    }

    /// The message.
    pub fn message(&self) -> &str {
        Error::text(&self.0.cell.message)
    }

    /// A copy of the backtrace, most recent call first; often empty.
    pub fn backtrace(&self) -> String {
        let _updates = updates();
        let _held = changes();
        // SAFETY: errors made here change it under `changes`, others under `updates` (see `Sync`).
        let backtrace = unsafe { &*self.0.cell.backtrace.get() };
        Error::text(backtrace).to_owned()
    }

    /// The error behind this one.
    pub fn cause(&self) -> Option<Error> {
        let cause = self.0.cell.cause_chain;
        if cause.is_null() {
            return None;
        }
        // SAFETY: a non-null cause is a live error that this one owns a reference of.
        unsafe { ObjectRef::retain(cause) }
            .downcast()
            .ok()
            .map(Error)
    }

    /// What else travels along, such as where a visit was when it failed.
    pub fn context(&self) -> Option<ObjectRef> {
        let _held = changes();
        // SAFETY: alive while `self` is, and changed under the lock alone.
        let context = unsafe { *self.0.cell.extra_context.get() };
        // SAFETY: a non-null context is a live object that this error owns a reference of.
        (!context.is_null()).then(|| unsafe { ObjectRef::retain(context) })
    }

    /// Replaces what travels along.
    #[cfg_attr(not(feature = "frontend"), allow(dead_code))]
    pub(crate) fn set_context(&self, context: ObjectRef) {
        let before = {
            let _held = changes();
            // SAFETY: alive while `self` is, and changed under the lock alone.
            unsafe { self.0.cell.extra_context.get().replace(context.into_raw()) }
        };
        // Its end may come back to this error, so it is not under the lock.
        // SAFETY: null, or the reference that the error owned.
        let _ended = unsafe { ObjectRef::from_nullable(before) };
    }

    /// Adds a line to the backtrace.
    pub fn add_frame(&self, file: &str, line: u32, function: &str) {
        self.update_backtrace(
            &format!("  File \"{file}\", line {line}, in {function}\n"),
            APPEND,
        );
    }

    /// Replaces the backtrace (mode 0) or adds to it (mode 1).
    pub fn update_backtrace(&self, text: &str, mode: i32) {
        if let Some(update) = self.0.cell.update_backtrace {
            let bytes = ByteArray::of(text.as_bytes());
            let _updates = updates();
            // SAFETY: the function is of this error (FUN-05), and the text lives for the call.
            unsafe { update(self.0.as_object().as_ptr(), &bytes, mode) }
        }
    }

    /// The object.
    pub fn into_object(self) -> ObjectRef {
        self.0.into_object()
    }

    /// The object, borrowed.
    pub const fn as_object(&self) -> &ObjectRef {
        self.0.as_object()
    }

    /// The error that `object` is, or `object` back.
    ///
    /// # Errors
    ///
    /// The object itself when it is no error.
    pub fn from_object(object: ObjectRef) -> Result<Error, ObjectRef> {
        object.downcast().map(Error)
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.kind(), self.message())
    }
}

impl std::fmt::Debug for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

impl From<Violation> for Error {
    #[cold]
    fn from(broken: Violation) -> Error {
        let kind = match broken.kind() {
            Kind::Type => ErrorKind::Type,
            Kind::Truncated | Kind::Trailing | Kind::Malformed | Kind::Cycle => ErrorKind::Value,
            _ => ErrorKind::Runtime,
        };
        Error::of_violation(kind, broken)
    }
}

#[cfg(feature = "suite")]
thread_local! {
    static LAST_BROKEN: Cell<Option<Violation>> = const { Cell::new(None) };
}

/// The violation that the last error of this thread was made of; the suite reports it.
#[cfg(feature = "suite")]
pub(crate) fn take_broken() -> Option<Violation> {
    LAST_BROKEN.take()
}

impl Error {
    /// An error of `kind`, where the rule that is broken has another than [`Error::from`] chooses.
    #[cold]
    pub(crate) fn of_violation(kind: ErrorKind<'_>, broken: Violation) -> Error {
        let error = Error::new(kind, broken.message());
        #[cfg(feature = "suite")]
        LAST_BROKEN.set(Some(broken));
        error
    }
}

impl From<Error> for Any {
    fn from(error: Error) -> Any {
        error.into_object().into()
    }
}

crate::value::try_from_any!(Error);

impl Argument for Error {
    const RULE: crate::rule::Rule = crate::value::VAL_10;

    fn schema() -> Schema {
        <Ref<ErrorObj> as Argument>::schema()
    }

    fn try_from_view(view: AnyView<'_>) -> Option<Error> {
        Ref::try_from_view(view).map(Error)
    }
}

thread_local! {
    static RAISED: Cell<Option<Error>> = const { Cell::new(None) };
}

/// Leaves `error` for the caller of this thread to take (FUN-06). What was there is dropped.
pub(crate) fn set_raised(error: Error) {
    // During the end of a thread no caller is left to take it.
    let _ = RAISED.try_with(|slot| slot.set(Some(error)));
}

/// Takes the error that was left on this thread.
pub(crate) fn take_raised() -> Option<Error> {
    RAISED.try_with(Cell::take).ok().flatten()
}

#[cfg(all(test, feature = "vm"))]
mod tests {
    use super::*;

    #[test]
    fn a_text_behind_a_message_changes_no_byte_of_an_error() {
        let foreign = Error::with_parts(b"\xffKind", b"\xfetext", b"\xfdtrace", None, None);
        let error = foreign.with_text_behind(" more");
        let cell = &error.0.cell;
        // SAFETY: the kind lives while the error does.
        assert_eq!(unsafe { cell.kind.as_slice() }, b"\xffKind");
        // SAFETY: so does the message.
        assert_eq!(unsafe { cell.message.as_slice() }, b"\xfetext more");
        // SAFETY: nothing changes the backtrace of an error that this test alone has.
        let backtrace = unsafe { &*cell.backtrace.get() };
        // SAFETY: the bytes that it counts, which nothing changes.
        assert_eq!(unsafe { backtrace.as_slice() }, b"\xfdtrace");
    }
}
