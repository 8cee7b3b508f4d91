//! The location of a failed visit: a context that grows while an error propagates.

use crate::function::Error;
use crate::object::List;
use crate::value::AnyView;
use crate::value::header::{HeaderSlot, ObjectRef, Ref, dynamic_object};

/// The objects on the path to a failure, innermost first, and the previous context of the error.
#[repr(C)]
#[derive(Clone)]
pub(crate) struct ErrorContext {
    header: HeaderSlot,
    /// At offset 24: the objects, innermost first. A list, because it grows while the error propagates through visitors of several
    /// libraries.
    pub(crate) pattern: List,
    /// At offset 32: the previous context of the error, of any type, or null.
    pub(crate) before: Option<ObjectRef>,
}

const _: () = assert!(size_of::<ErrorContext>() == 40);

dynamic_object!(ErrorContext, "ffi.VisitErrorContext");

impl Default for ErrorContext {
    fn default() -> ErrorContext {
        ErrorContext {
            header: HeaderSlot::default(),
            pattern: List::new(Vec::new()),
            before: None,
        }
    }
}

/// Adds a value to the context of an error, if the value is an object.
#[cold]
pub(super) fn attach(error: &Error, value: AnyView<'_>) {
    // A plain value has no address by which it could be found below a root.
    let Some(object) = value.as_object() else {
        return;
    };
    let before = error.context();
    if let Some(context) = before
        .as_ref()
        .and_then(|before| before.get::<ErrorContext>())
    {
        // A list grows in place, so the error stays unchanged.
        context.pattern.push(object.clone().into());
        return;
    }
    let context = Ref::new(ErrorContext {
        header: HeaderSlot::default(),
        pattern: List::new(vec![object.clone().into()]),
        before,
    });
    error.set_context(context.into_object());
}
