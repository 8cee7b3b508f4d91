//! Types, attributes and global functions that every library of this ABI registers when it is initialized.
//!
//! Frontends find them only by name, so names, metadata and kinds of errors are part of the interface. A build without the feature
//! `frontend` contains only the types that the runtime itself needs: `core`, `containers`, and the types of paths.

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

/// True if [`start`] has finished. Separate from [`INIT`], so that the common check costs one load and no call.
static READY: AtomicBool = AtomicBool::new(false);
/// Lets one thread register while the others wait.
static INIT: Once = Once::new();

/// Registers types and functions, once. Every C entry that reads the tables calls this. Rust code calls it before it looks up builtin
/// functions.
#[inline]
pub fn init() {
    if !READY.load(Ordering::Acquire) {
        start();
    }
}

/// Allocates the indices of the types, creates the attribute columns, then registers functions and fields.
#[cold]
fn start() {
    INIT.call_once(|| {
        // VAL-14: first, and in upstream's order, so that the indices of these types, from 128 on, match upstream's library.
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
        // Before any type registers into a column, because C++ looks up a column's address once and keeps it, even if it is null.
        for column in super::column::ALL {
            column.column();
        }
        core::register();
        containers::register();
        #[cfg(feature = "frontend")]
        frontend();
        // Last: a thread that reads true sees all registrations.
        READY.store(true, Ordering::Release);
    });
}

/// Registers the functions that only frontends call. A Rust program has its own functions for these tasks.
#[cfg(feature = "frontend")]
fn frontend() {
    path::register();
    dataclass::register();
    json::register();
    structural::register();
    visit::register();
}

/// Registers a builtin, with the metadata of the types of `body`. A function that the program registered before under the same name stays.
pub(crate) fn def<P: 'static, F: TypedFn<P>>(name: &'static str, body: F) {
    registry::define(name, Code::from_body(body));
}

/// An array as the result of a function, whose metadata names the type of the elements. Converts to a plain array. The elements are not
/// checked.
pub(crate) struct ArrayOf<T>(pub(crate) Array, PhantomData<T>);

impl<T> ArrayOf<T> {
    /// Wraps `array`, whose elements must each be a `T`.
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

/// Registers a builtin that takes any arguments and whose metadata names no parameters. `body` checks the number of arguments. Upstream's
/// packed functions read past the end instead.
pub(crate) fn def_packed(name: &'static str, body: fn(&[AnyView<'_>]) -> Result) {
    // A schema as JSON text inside JSON, as in the metadata of every function.
    let details = registry::Details {
        metadata: "{\"type_schema\":\"{\\\"type\\\":\\\"ffi.Function\\\"}\"}".to_owned(),
        flags: types::flag::STATIC_METHOD,
        ..registry::Details::default()
    };
    let function = Function::from_packed(body);
    // SAFETY: no builtin has a name that begins with `device_api.`.
    let _ = unsafe { registry::register_with(name.as_bytes(), function, false, details) };
}

/// Returns the object that means "no value" where None is a value. It exists once per process: a bare `ffi.Object` that equals only itself.
/// Frontends compare its address with the result of `ffi.GetInvalidObject`.
pub fn missing() -> &'static ObjectRef {
    static MISSING: OnceLock<ObjectRef> = OnceLock::new();
    MISSING.get_or_init(BareObject::new)
}

/// Returns the object that separates the positional from the named arguments of a constructor. Names and values follow it alternately
/// (OBJ-15). It exists once per process and is recognized by its address.
pub(crate) fn kwargs() -> &'static ObjectRef {
    static KWARGS: OnceLock<ObjectRef> = OnceLock::new();
    KWARGS.get_or_init(BareObject::new)
}
