//! Errors: kind, message and backtrace, and the broken rule. `error_object` defines their layout.

use super::ErrorKind;
use super::error_object::{ErrorObj, OwnError, lock_backtraces, lock_changes};
use crate::rule::{Kind, Violation};
use crate::value::header::{ObjectRef, Ref};
use crate::value::{ByteArray, Schema};
use std::cell::Cell;

/// The mode that appends a text to the backtrace.
const APPEND: i32 = 1;

/// A failure of anything that runs. All languages share this type.
///
/// Every language at the boundary has the kind and the message. If a rule was broken, [`Error::violation`] returns it. A format that is
/// read without the runtime fails with the [`Violation`] itself.
///
/// ```
/// use tvmspec::device::{Device, Manager};
///
/// let error = Manager::global().api(99).err().unwrap();
/// assert_eq!(error.kind(), "RuntimeError");
/// assert_eq!(error.violation().unwrap().rule().id(), "DEV-06");
/// # let _ = Device::CPU;
/// ```
#[derive(Clone)]
#[repr(transparent)]
pub struct Error(Ref<ErrorObj>);

impl Error {
    /// Creates an error without a backtrace. `kind` is an [`ErrorKind`] or its name.
    #[cold]
    pub fn new<'k>(kind: impl Into<ErrorKind<'k>>, message: impl AsRef<[u8]>) -> Error {
        let kind = kind.into().as_str();
        Error::with_parts(kind.as_bytes(), message.as_ref(), b"", None, None)
    }

    /// Creates an error with all parts that cross the boundary.
    #[cold]
    pub(crate) fn with_parts(
        kind: &[u8],
        message: &[u8],
        backtrace: &[u8],
        cause: Option<ObjectRef>,
        context: Option<ObjectRef>,
    ) -> Error {
        Error::make(kind, message, backtrace, [cause, context], None)
    }

    /// Creates an error with all parts. `objects` are its cause and its context.
    fn make(
        kind: &[u8],
        message: &[u8],
        backtrace: &[u8],
        objects: [Option<ObjectRef>; 2],
        broken: Option<Box<Violation>>,
    ) -> Error {
        Error(OwnError::make(kind, message, backtrace, objects, broken))
    }

    /// Returns the same error with `cause`, as a new object (FUN-04). Its texts may be invalid UTF-8, because they cross as bytes.
    #[must_use]
    pub fn caused_by(self, cause: Error) -> Error {
        let message = Error::bytes(&self.0.cell.message);
        self.copy_with(message, [Some(cause.into_object()), self.context()])
    }

    /// Returns the same error with this message, as a new object. A single object that is raised more than once would collect the frames of
    /// every raise.
    #[cold]
    #[cfg_attr(
        not(any(
            feature = "cuda",
            feature = "hip",
            feature = "opencl",
            feature = "vulkan"
        )),
        allow(dead_code)
    )]
    pub(crate) fn with_message(&self, message: &str) -> Error {
        let cause = self.cause().map(Error::into_object);
        self.copy_with(message.as_bytes(), [cause, self.context()])
    }

    /// Returns a copy with another message and other objects. Kind, backtrace and broken rule stay.
    fn copy_with(&self, message: &[u8], objects: [Option<ObjectRef>; 2]) -> Error {
        // FUN-04: copied as bytes, because an error of another library may contain invalid UTF-8.
        let kind = Error::bytes(&self.0.cell.kind);
        let backtrace = self.backtrace_bytes();
        let broken = self.violation().cloned().map(Box::new);
        Error::make(kind, message, &backtrace, objects, broken)
    }

    /// Returns the broken rule, if there is one. Errors of other libraries have none, and an error that crosses the boundary as text loses
    /// it.
    pub fn violation(&self) -> Option<&Violation> {
        OwnError::downcast(&self.0)?.broken.as_deref()
    }

    /// Returns the message with the place and the id of the broken rule, as a [`Violation`] prints itself. Without a rule, the message
    /// follows the kind.
    pub fn reason(&self) -> String {
        let message = self.message();
        let Some(broken) = self.violation() else {
            return self.to_string();
        };
        let shown = broken.to_string();
        // The message of a failed load already has this form, because other languages see only the message.
        if message.starts_with(&shown) {
            return message.to_owned();
        }
        // `with_text_behind` appends text to the rule's message, and `with_message` may have replaced it.
        match message.strip_prefix(broken.message()) {
            Some(rest) => format!("{shown}{rest}"),
            None => message.to_owned(),
        }
    }

    /// Returns a text of the error unchanged.
    fn bytes(part: &ByteArray) -> &[u8] {
        // SAFETY: kind and message live while the error does.
        unsafe { part.as_slice() }
    }

    /// Returns the same error with `text` appended to its message. The other parts stay unchanged, byte for byte.
    #[cfg(feature = "vm")]
    #[cold]
    pub(crate) fn with_text_behind(&self, text: &str) -> Error {
        let message = [Error::bytes(&self.0.cell.message), text.as_bytes()].concat();
        let cause = self.cause().map(Error::into_object);
        self.copy_with(&message, [cause, self.context()])
    }

    /// Returns a text of the error for Rust, which requires UTF-8.
    fn text(part: &ByteArray) -> &str {
        std::str::from_utf8(Error::bytes(part)).unwrap_or("(not UTF-8)")
    }

    /// Returns the kind (FUN-04). Invalid UTF-8 reads as `(not UTF-8)`.
    pub fn kind(&self) -> ErrorKind<'_> {
        Error::text(&self.0.cell.kind).into()
    }

    /// Returns the message (FUN-04). Invalid UTF-8 reads as `(not UTF-8)`.
    pub fn message(&self) -> &str {
        Error::text(&self.0.cell.message)
    }

    /// Returns a copy of the backtrace, most recent call first. It is often empty.
    pub fn backtrace(&self) -> String {
        String::from_utf8(self.backtrace_bytes()).unwrap_or_else(|_| "(not UTF-8)".to_owned())
    }

    /// Returns a copy of the backtrace, because a change frees the memory of the old one.
    fn backtrace_bytes(&self) -> Vec<u8> {
        // Locked in this order everywhere: an error of this library takes the second lock while the first is held.
        let _updates = lock_backtraces();
        let _held = lock_changes();
        // SAFETY: errors of this library change it under `changes`, others under `updates` (see `Sync`).
        let backtrace = unsafe { &*self.0.cell.backtrace.get() };
        // SAFETY: it points to bytes that live until the next change.
        unsafe { backtrace.as_slice() }.to_vec()
    }

    /// Returns the error that caused this one (FUN-04, from tvm-ffi 0.1.8 on). Returns `None` if the cause is not an error.
    pub fn cause(&self) -> Option<Error> {
        let cause = self.0.cell.cause_chain;
        if cause.is_null() {
            return None;
        }
        // SAFETY: a non-null cause is a live error to which this one owns a reference.
        unsafe { ObjectRef::retain(cause) }
            .downcast()
            .ok()
            .map(Error)
    }

    /// Returns additional context, such as the location of a visit when it failed.
    pub fn context(&self) -> Option<ObjectRef> {
        let _held = lock_changes();
        // SAFETY: alive while `self` is, and changed only under the lock.
        let context = unsafe { *self.0.cell.extra_context.get() };
        // SAFETY: a non-null context is a live object to which this error owns a reference.
        (!context.is_null()).then(|| unsafe { ObjectRef::retain(context) })
    }

    /// Replaces the additional context.
    #[cfg_attr(not(feature = "frontend"), allow(dead_code))]
    pub(crate) fn set_context(&self, context: ObjectRef) {
        let before = {
            let _held = lock_changes();
            // SAFETY: alive while `self` is, and changed only under the lock.
            unsafe { self.0.cell.extra_context.get().replace(context.into_raw()) }
        };
        // Dropped outside the lock, because its destructor may use this error.
        // SAFETY: null, or the reference that the error owned.
        let _ended = unsafe { ObjectRef::from_nullable(before) };
    }

    /// Appends a line to the backtrace, in the form of FUN-05.
    pub fn add_frame(&self, file: &str, line: u32, function: &str) {
        self.update_backtrace(
            &format!("  File \"{file}\", line {line}, in {function}\n"),
            APPEND,
        );
    }

    /// Replaces the backtrace (mode 0) or appends to it (mode 1), with the function of the library that created the error (FUN-05).
    pub fn update_backtrace(&self, text: &str, mode: i32) {
        // FUN-05: never null. If a library breaks that rule, its backtrace stays unchanged.
        if let Some(update) = self.0.cell.update_backtrace {
            let bytes = ByteArray::of(text.as_bytes());
            let _updates = lock_backtraces();
            // SAFETY: the function belongs to this error (FUN-05), and the text lives for the call.
            unsafe { update(self.0.as_object().as_ptr(), &bytes, mode) }
        }
    }

    /// Returns the object with this handle's reference.
    pub fn into_object(self) -> ObjectRef {
        self.0.into_object()
    }

    /// Borrows the object.
    pub const fn as_object(&self) -> &ObjectRef {
        self.0.as_object()
    }

    /// Converts `object` to an error, or returns it unchanged.
    ///
    /// # Errors
    ///
    /// Returns the object itself if it is not an error.
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

/// Errors are equal if kind and message are equal. Origin and cause are not compared.
impl PartialEq for Error {
    fn eq(&self, other: &Error) -> bool {
        let texts = |error: &Error| {
            let cell = &error.0.cell;
            [&cell.kind, &cell.message].map(|text| Error::bytes(text).to_vec())
        };
        texts(self) == texts(other)
    }
}

impl Eq for Error {}

impl From<Violation> for Error {
    #[cold]
    fn from(broken: Violation) -> Error {
        let kind = match broken.kind() {
            Kind::Type => ErrorKind::Type,
            // Malformed bytes are a ValueError, as in Python. Limits and missing things are a RuntimeError.
            Kind::Truncated | Kind::Trailing | Kind::Malformed | Kind::Cycle => ErrorKind::Value,
            _ => ErrorKind::Runtime,
        };
        Error::of_violation(kind, broken)
    }
}

#[cfg(feature = "suite")]
thread_local! {
    /// Separate from the error, because an error that crosses the C interface arrives without its rule.
    static LAST_BROKEN: Cell<Option<Violation>> = const { Cell::new(None) };
}

/// Returns the violation of the last error of this thread, which the suite reports.
#[cfg(feature = "suite")]
pub(crate) fn take_broken() -> Option<Violation> {
    LAST_BROKEN.take()
}

impl Error {
    /// Creates an error of `kind`, if [`Error::from`] would choose another kind for the broken rule.
    #[cold]
    pub(crate) fn of_violation(kind: ErrorKind<'_>, broken: Violation) -> Error {
        let message = broken.message().to_owned();
        Error::with_violation(kind, &message, broken)
    }

    /// Like [`Error::of_violation`], with another message.
    #[cold]
    pub(crate) fn with_violation(kind: ErrorKind<'_>, message: &str, broken: Violation) -> Error {
        #[cfg(feature = "suite")]
        LAST_BROKEN.set(Some(broken.clone()));
        let (kind, message) = (kind.as_str().as_bytes(), message.as_bytes());
        Error::make(kind, message, b"", [None, None], Some(Box::new(broken)))
    }
}

crate::value::handle_value!(Error, ErrorObj, Schema::plain("ffi.Error"));

thread_local! {
    /// The error slot of this thread (FUN-06).
    static RAISED: Cell<Option<Error>> = const { Cell::new(None) };
}

/// Stores `error` for the caller on this thread (FUN-06). An earlier error is dropped.
pub(crate) fn set_raised(error: Error) {
    // While a thread ends, no caller is left to take it.
    let _ = RAISED.try_with(|slot| slot.set(Some(error)));
}

/// Takes the error of this thread, and empties the slot (FUN-06).
pub(crate) fn take_raised() -> Option<Error> {
    RAISED.try_with(Cell::take).ok().flatten()
}
