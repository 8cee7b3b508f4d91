//! Errors: kind, message and backtrace, and the rule that was broken. `error_object` has their layout.

use super::ErrorKind;
use super::error_object::{ErrorObj, OwnError, changes, updates};
use crate::rule::{Kind, Violation};
use crate::value::header::{ObjectRef, Ref};
use crate::value::{Any, AnyView, Argument, ByteArray, Schema};
use std::cell::Cell;

/// The mode in which a text follows the backtrace that is there.
const APPEND: i32 = 1;

/// Why something failed: the one error of everything that runs, in whatever language it was raised.
///
/// Kind and message are what every language of the boundary has. Where a rule was broken, [`Error::violation`] is that; a format that
/// is read alone fails with the [`Violation`] itself.
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
    /// An error with no backtrace. `kind` is an [`ErrorKind`] or the name of one.
    #[cold]
    pub fn new<'k>(kind: impl Into<ErrorKind<'k>>, message: impl AsRef<[u8]>) -> Error {
        let kind = kind.into().as_str();
        Error::with_parts(kind.as_bytes(), message.as_ref(), b"", None, None)
    }

    /// An error with all its parts that cross the boundary.
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

    /// All parts of an error; `objects` are its cause and its context.
    fn make(
        kind: &[u8],
        message: &[u8],
        backtrace: &[u8],
        objects: [Option<ObjectRef>; 2],
        broken: Option<Box<Violation>>,
    ) -> Error {
        Error(OwnError::make(kind, message, backtrace, objects, broken))
    }

    /// The same error, caused by `cause`, as an object of its own (FUN-04). Its texts need not be UTF-8: they cross as bytes.
    #[must_use]
    pub fn caused_by(self, cause: Error) -> Error {
        let message = Error::bytes(&self.0.cell.message);
        self.again(message, [Some(cause.into_object()), self.context()])
    }

    /// The same error with this message, as an object of its own: an error that is raised more than once collects the frames of
    /// all its ways up.
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
        self.again(message.as_bytes(), [cause, self.context()])
    }

    /// A copy with another message and other objects; kind, backtrace and broken rule stay.
    fn again(&self, message: &[u8], objects: [Option<ObjectRef>; 2]) -> Error {
        // FUN-04: as bytes, because an error of another library may hold what is no UTF-8.
        let kind = Error::bytes(&self.0.cell.kind);
        let backtrace = self.backtrace_bytes();
        let broken = self.violation().cloned().map(Box::new);
        Error::make(kind, message, &backtrace, objects, broken)
    }

    /// The rule that was broken, if that is the reason. An error of another library has none, and what crosses the boundary as text
    /// loses it.
    pub fn violation(&self) -> Option<&Violation> {
        OwnError::of(&self.0)?.broken.as_deref()
    }

    /// The message behind the rule that was broken, as a [`Violation`] prints itself; without one, behind the kind.
    pub fn reason(&self) -> String {
        let message = self.message();
        match self.violation() {
            // More may stand behind the message of the rule, which `with_text_behind` adds; `with_message` may have replaced it.
            Some(broken) => match message.strip_prefix(broken.message()) {
                Some(rest) => format!("{broken}{rest}"),
                None => message.to_owned(),
            },
            None => self.to_string(),
        }
    }

    /// A text of the error as it is.
    fn bytes(part: &ByteArray) -> &[u8] {
        // SAFETY: kind and message live while the error does.
        unsafe { part.as_slice() }
    }

    /// The same error with `text` behind its message. The other parts stay as they are, byte for byte.
    #[cfg(feature = "vm")]
    #[cold]
    pub(crate) fn with_text_behind(&self, text: &str) -> Error {
        let message = [Error::bytes(&self.0.cell.message), text.as_bytes()].concat();
        let cause = self.cause().map(Error::into_object);
        self.again(&message, [cause, self.context()])
    }

    /// A text of the error for Rust, which has texts in UTF-8 alone.
    fn text(part: &ByteArray) -> &str {
        std::str::from_utf8(Error::bytes(part)).unwrap_or("(not UTF-8)")
    }

    /// The kind (FUN-04); one that is no UTF-8 reads as `(not UTF-8)`.
    pub fn kind(&self) -> ErrorKind<'_> {
        Error::text(&self.0.cell.kind).into()
    }

    /// The message (FUN-04); one that is no UTF-8 reads as `(not UTF-8)`.
    pub fn message(&self) -> &str {
        Error::text(&self.0.cell.message)
    }

    /// A copy of the backtrace, most recent call first; often empty.
    pub fn backtrace(&self) -> String {
        String::from_utf8(self.backtrace_bytes()).unwrap_or_else(|_| "(not UTF-8)".to_owned())
    }

    /// A copy of the backtrace, since a change frees what the public part points to.
    fn backtrace_bytes(&self) -> Vec<u8> {
        // In this order everywhere: an error that is made here takes the second lock inside of the first.
        let _updates = updates();
        let _held = changes();
        // SAFETY: errors made here change it under `changes`, others under `updates` (see `Sync`).
        let backtrace = unsafe { &*self.0.cell.backtrace.get() };
        // SAFETY: it points to bytes that live until the next change.
        unsafe { backtrace.as_slice() }.to_vec()
    }

    /// The error that caused this one (FUN-04, from tvm-ffi 0.1.8 on); none where that is no error.
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

    /// Adds a line to the end of the backtrace, in the form of FUN-05.
    pub fn add_frame(&self, file: &str, line: u32, function: &str) {
        self.update_backtrace(
            &format!("  File \"{file}\", line {line}, in {function}\n"),
            APPEND,
        );
    }

    /// Replaces the backtrace (mode 0) or adds to it (mode 1), by the function of the library that made the error (FUN-05).
    pub fn update_backtrace(&self, text: &str, mode: i32) {
        // FUN-05: never null; a library that breaks that keeps its backtrace as it is.
        if let Some(update) = self.0.cell.update_backtrace {
            let bytes = ByteArray::of(text.as_bytes());
            let _updates = updates();
            // SAFETY: the function is of this error (FUN-05), and the text lives for the call.
            unsafe { update(self.0.as_object().as_ptr(), &bytes, mode) }
        }
    }

    /// The object, with the reference that this handle held.
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

/// Errors are the same when kind and message are: where they were raised and what caused them is not compared.
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
            // What is wrong with bytes is a ValueError, as Python has it; a limit or a missing thing is of the runtime.
            Kind::Truncated | Kind::Trailing | Kind::Malformed | Kind::Cycle => ErrorKind::Value,
            _ => ErrorKind::Runtime,
        };
        Error::of_violation(kind, broken)
    }
}

#[cfg(feature = "suite")]
thread_local! {
    /// Beside the error, because an error that crosses the C interface arrives there without its rule.
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
        let message = broken.message().to_owned();
        Error::with_violation(kind, &message, broken)
    }

    /// [`Error::of_violation`] with a message of its own.
    #[cold]
    pub(crate) fn with_violation(kind: ErrorKind<'_>, message: &str, broken: Violation) -> Error {
        #[cfg(feature = "suite")]
        LAST_BROKEN.set(Some(broken.clone()));
        let (kind, message) = (kind.as_str().as_bytes(), message.as_bytes());
        Error::make(kind, message, b"", [None, None], Some(Box::new(broken)))
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
    /// The slot of this thread (FUN-06).
    static RAISED: Cell<Option<Error>> = const { Cell::new(None) };
}

/// Leaves `error` for the caller of this thread to take (FUN-06). What was there is dropped.
pub(crate) fn set_raised(error: Error) {
    // During the end of a thread no caller is left to take it.
    let _ = RAISED.try_with(|slot| slot.set(Some(error)));
}

/// Takes the error that was left on this thread, and empties the slot (FUN-06).
pub(crate) fn take_raised() -> Option<Error> {
    RAISED.try_with(Cell::take).ok().flatten()
}
