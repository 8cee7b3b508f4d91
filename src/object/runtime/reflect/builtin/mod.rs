//! What every library of this ABI registers when it comes up: types, attributes, global functions.
//!
//! Frontends find these by name alone, so names, metadata and kinds of errors are part of the interface. A build without the feature
//! `frontend` has what the runtime itself needs: `core`, `containers`, and the types of paths.

mod containers;
mod core;
#[cfg(feature = "frontend")]
mod dataclass;
#[cfg(feature = "frontend")]
mod json;
mod path;
#[cfg(feature = "frontend")]
mod structural;
#[cfg(feature = "frontend")]
mod visit;

pub(crate) use core::{enum_index, enum_name, enum_number};
pub(crate) use path::{AccessKind, AccessPath, extend, root};

use crate::function::registry;
use crate::function::{Code, Function, Result, ResultSchema, TypedFn};
use crate::object::Array;
use crate::value::header::{BareObject, ObjectRef};
use crate::value::types;
use crate::value::{Any, AnyView, Argument, Schema};
use std::marker::PhantomData;
use std::sync::Once;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether [`start`] has ended. Apart from [`INIT`], so that the entries that look cost one load and no call.
static READY: AtomicBool = AtomicBool::new(false);
/// Lets one thread register while the others wait for it.
static INIT: Once = Once::new();

/// Registers types and functions, once. Every C entry that looks at the tables calls this; Rust users call it before
/// they look builtin functions up.
#[inline]
pub fn init() {
    if !READY.load(Ordering::Acquire) {
        start();
    }
}

/// Allocates the indices of the types, makes the columns of attributes, then registers functions and fields.
#[cold]
fn start() {
    INIT.call_once(|| {
        // VAL-14: in upstream's order, before all else: the indices of these types, from 128 on, are then those of upstream's library.
        for allocate in core::INDICES.into_iter().chain(path::INDICES) {
            allocate();
        }
        #[cfg(feature = "frontend")]
        {
            for allocate in visit::INDICES {
                allocate();
            }
            structural::key_index();
        }
        #[cfg(not(feature = "frontend"))]
        for key in [
            "ffi.StructuralVisitor",
            "ffi.VisitErrorContext",
            "ffi.StructuralMutator",
            "ffi.StructuralKey",
        ] {
            let _ = types::register(key, crate::value::index::OBJECT);
        }
        // Before any type registers into one: C++ looks a column's address up once, and keeps what it finds, a null address too.
        for column in super::column::ALL {
            column.column();
        }
        core::register();
        containers::register();
        #[cfg(feature = "frontend")]
        frontend();
        // Last: a thread that reads true sees all that is registered.
        READY.store(true, Ordering::Release);
    });
}

/// What only frontends call: a Rust program has functions of its own for it.
#[cfg(feature = "frontend")]
fn frontend() {
    path::register();
    dataclass::register();
    json::register();
    structural::register();
    visit::register();
}

/// Registers a builtin, with the metadata of the types of `body`. A name that the program registered before this library came up stays the
/// program's.
pub(crate) fn def<P: 'static, F: TypedFn<P>>(name: &'static str, body: F) {
    registry::define(name, Code::of(body));
}

/// An array that a function returns, whose metadata name the type of the elements.
/// Converts to a plain array; nothing checks the elements.
pub(crate) struct ArrayOf<T>(pub(crate) Array, PhantomData<T>);

impl<T> ArrayOf<T> {
    /// `array`, whose elements are each a `T`.
    pub(crate) const fn new(array: Array) -> ArrayOf<T> {
        ArrayOf(array, PhantomData)
    }
}

impl<T> From<ArrayOf<T>> for Any {
    fn from(array: ArrayOf<T>) -> Any {
        array.0.into()
    }
}

impl<T: Argument> ResultSchema for ArrayOf<T> {
    fn result_schema() -> Schema {
        Schema::with("ffi.Array", &[T::schema])
    }
}

/// Registers a builtin over any arguments, whose metadata name no parameters. `body` checks how many arguments
/// there are: upstream's packed functions read behind their end.
pub(crate) fn def_packed(name: &'static str, body: fn(&[AnyView<'_>]) -> Result) {
    // A schema as JSON text inside of JSON, as the metadata of every function have it.
    let details = registry::Details {
        metadata: "{\"type_schema\":\"{\\\"type\\\":\\\"ffi.Function\\\"}\"}".to_owned(),
        flags: types::flag::STATIC_METHOD,
        ..registry::Details::default()
    };
    let function = Function::from_packed(body);
    // SAFETY: no builtin has a name that begins with `device_api.`.
    let _ = unsafe { registry::register_with(name.as_bytes(), function, false, details) };
}

/// The object that means "no value" where None is a value: one for the process, a bare `ffi.Object` that is equal to itself alone.
/// Frontends compare its address with what `ffi.GetInvalidObject` returns.
pub fn missing() -> &'static ObjectRef {
    static MISSING: OnceLock<ObjectRef> = OnceLock::new();
    MISSING.get_or_init(BareObject::new)
}

/// The object between positional and named arguments of a constructor: names and values in turn follow it (OBJ-15). One for the process,
/// known by its address.
pub(crate) fn kwargs() -> &'static ObjectRef {
    static KWARGS: OnceLock<ObjectRef> = OnceLock::new();
    KWARGS.get_or_init(BareObject::new)
}
