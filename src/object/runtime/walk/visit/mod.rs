//! Structural visits: walks over a value by hooks of types, by fields, and by callbacks.
//!
//! A visitor is an object with a table of C functions, so that hooks of one library can run under the visitors of another:
//!
//! | bytes   | visitor and mutator                                     |
//! |---------|---------------------------------------------------------|
//! | 24..32  | address of the table                                    |
//! | 32..36  | region in which variables may be bound, see [`Region`]  |
//!
//! Every function of a table takes the object and a value, and returns a cell that the caller owns. A visit returns None to continue, an
//! interrupt, or an error.

pub(crate) mod container_hooks;
pub(crate) mod context;
pub(crate) mod mutate;
pub(crate) mod paths;
pub(crate) mod rewrite;
pub(crate) mod walk;

use super::region::Region;
use crate::function::{Error, ErrorKind, Function, Result, catch_panic};
use crate::object::OBJ_34;
use crate::object::reflect::field_access::fields_of;
use crate::object::reflect::{column, key_hooks};
use crate::rule::Kind;
use crate::value::AnyPayload;
use crate::value::header::{Header, HeaderSlot, ObjectRef, Ref, dynamic_object, static_object};
use crate::value::types::{self, TypeInfo, flag};
use crate::value::{Any, AnyView, RawAny, cast, index};
use std::ffi::c_void;

/// An interrupt, which ends a visit early with a value.
#[repr(C)]
#[derive(Clone, Default)]
pub(crate) struct Interrupt {
    header: HeaderSlot,
    /// At offset 24: the result of the visit.
    pub(crate) value: Any,
}

const _: () = assert!(size_of::<Interrupt>() == 40);

static_object!(Interrupt, index::VISIT_INTERRUPT);

impl Interrupt {
    /// Creates an interrupt with a value.
    pub(crate) fn new(value: Any) -> Interrupt {
        Interrupt {
            header: HeaderSlot::default(),
            value,
        }
    }
}

impl Region {
    /// Runs `body` for the fields of an object. A simple definition binds a variable, but not the variables that its fields use.
    fn run_for_fields<T>(&self, info: &TypeInfo, body: impl FnOnce() -> T) -> T {
        if structural_kind(info) == kind::VARIABLE {
            self.run_for_variable_type(body)
        } else {
            body()
        }
    }
}

/// Structural kinds of types.
pub(crate) mod kind {
    /// The type does not support structural comparison.
    pub(crate) const UNSUPPORTED: i32 = 0;
    /// A variable, which can be bound in a region.
    pub(crate) const VARIABLE: i32 = 2;
    /// A graph node, which is one object wherever it occurs.
    pub(crate) const SHARED: i32 = 3;
}

/// Returns the structural kind of a type; 0 if it has no metadata.
pub(crate) fn structural_kind(info: &TypeInfo) -> i32 {
    info.metadata()
        .map_or(kind::UNSUPPORTED, |metadata| metadata.structural_kind)
}

/// A function that visits a value: the only entry in the table of a visitor, and the type of the hook `__s_visit__`.
pub(crate) type VisitFn =
    unsafe extern "C-unwind" fn(visitor: *mut VisitorObj, value: RawAny) -> RawAny;

/// The table of a visitor.
#[repr(C)]
pub(crate) struct VisitorTable {
    /// Visits a value and returns None, an interrupt or an error.
    visit: VisitFn,
}

/// The public part of a visitor.
#[repr(C)]
pub(crate) struct VisitorObj {
    header: HeaderSlot,
    /// At offset 24: the table, which outlives the visitor.
    table: *const VisitorTable,
    /// At offset 32: the current region.
    region: Region,
}

const _: () = assert!(size_of::<VisitorObj>() == 40);

dynamic_object!(VisitorObj, "ffi.StructuralVisitor");

// SAFETY: the table never changes; the region is atomic.
unsafe impl Send for VisitorObj {}
// SAFETY: the table never changes; the region is atomic.
unsafe impl Sync for VisitorObj {}

impl VisitorObj {
    /// Creates a visitor with this table, outside every region.
    fn new(table: &'static VisitorTable) -> VisitorObj {
        VisitorObj {
            header: HeaderSlot::default(),
            table,
            region: Region::of(Region::NONE),
        }
    }
}

/// A visitor that stays alive during the visit.
#[derive(Clone, Copy)]
pub(crate) struct Visitor(*mut VisitorObj);

impl Visitor {
    /// Wraps the address of a visitor.
    ///
    /// # Safety
    /// `visitor` is alive for as long as the result is used.
    pub(crate) const unsafe fn from_raw(visitor: *mut VisitorObj) -> Visitor {
        Visitor(visitor)
    }

    /// Wraps a visitor. The caller keeps it alive while the result is used.
    pub(crate) fn of(visitor: &Ref<VisitorObj>) -> Visitor {
        Visitor(visitor.as_ptr())
    }

    /// Returns the region, which changes while parts are visited.
    pub(crate) const fn region(&self) -> &Region {
        // SAFETY: the visitor is alive (the contract of `from_raw`).
        unsafe { &(*self.0).region }
    }

    /// Returns the visitor as an argument.
    pub(crate) const fn view(&self) -> AnyView<'_> {
        // SAFETY: the visitor is alive (the contract of `from_raw`).
        unsafe { view_of(self.0.cast()) }
    }

    /// Visits a value with the visitor's own function. Returns None, or the interrupt that ended the visit.
    pub(crate) fn visit(self, value: AnyView<'_>) -> Result {
        // SAFETY: the visitor is alive (the contract of `from_raw`).
        let table = unsafe { (*self.0).table };
        // SAFETY: the table of a visitor outlives it.
        let visit = unsafe { (*table).visit };
        // SAFETY: the function belongs to this visitor, and the value lives for the call.
        let answer = unsafe { visit(self.0, *value.as_raw()) };
        // SAFETY: the caller owns the result of such a function.
        key_hooks::raise_error_object(unsafe { Any::from_raw(answer) })
    }

    /// Visits a value in the way of its type: by its hook, or field by field.
    pub(crate) fn default_visit(self, value: AnyView<'_>) -> Result {
        match column::S_VISIT.value(value.type_index()) {
            Some(hook) if hook.type_index() == index::OPAQUE => {
                let address = hook.as_raw().ptr();
                // SAFETY: a pointer that is an attribute is a function with its calling convention (the contract of `set_any_attr`).
                let hook = unsafe { std::mem::transmute::<*mut c_void, VisitFn>(address) };
                // SAFETY: a live visitor (the contract of `from_raw`), and a value that lives for the call.
                let answer = unsafe { hook(self.0, *value.as_raw()) };
                // SAFETY: the caller owns the result of a hook.
                key_hooks::raise_error_object(unsafe { Any::from_raw(answer) })
            }
            Some(hook) if hook.type_index() == index::FUNCTION => {
                interrupt_or_none(key_hooks::function(hook)?.call_packed(&[self.view(), value])?)
            }
            // Another kind of attribute is an error, not a missing hook: the fields alone may not reflect the type's meaning.
            Some(_) => Err(Error::new(
                ErrorKind::Type,
                "__s_visit__ must be an opaque function pointer or ffi.Function",
            )),
            None => match value.as_object() {
                Some(object) => self.fields(object),
                None => Ok(Any::none()),
            },
        }
    }

    /// Visits the fields of an object, starting with those of the base class, except ignored ones (OBJ-34). Ends at the first interrupt.
    fn fields(self, object: &ObjectRef) -> Result {
        let Some(info) = types::info(object.type_index()) else {
            return Ok(Any::none());
        };
        self.region().run_for_fields(info, || {
            for field in fields_of(object) {
                // OBJ-34: a field that structural comparison ignores is not visited.
                if field.flags & flag::EQ_HASH_IGNORE != 0 {
                    continue;
                }
                let value = field.get()?;
                let stop = self
                    .region()
                    .run_for_field(&field, || self.visit(value.view()))?;
                if !stop.is_none() {
                    return Ok(stop);
                }
            }
            Ok(Any::none())
        })
    }
}

/// Returns an object as an argument, without changing its reference count.
///
/// # Safety
/// `object` is alive for `'a`.
const unsafe fn view_of<'a>(object: *mut Header) -> AnyView<'a> {
    // SAFETY: alive, by this contract.
    let type_index = unsafe { (*object).type_index };
    let ptr = object.cast();
    // SAFETY: alive for `'a`, by this contract.
    unsafe { AnyView::from_raw(RawAny::of(type_index, AnyPayload { ptr })) }
}

/// Checks the result of a visiting function: None or an interrupt.
fn interrupt_or_none(answer: Any) -> Result {
    let answer = key_hooks::raise_error_object(answer)?;
    if answer.is_none() || answer.type_index() == index::VISIT_INTERRUPT {
        return Ok(answer);
    }
    let message = unexpected("Optional<ffi.VisitInterrupt>", &answer);
    Err(OBJ_34.rejected(Kind::Type, message).into())
}

/// Returns the message for an unexpected result of a callback.
#[cold]
fn unexpected(wanted: &str, answer: &Any) -> String {
    format!(
        "CallExpected: result type mismatch, expected {wanted}, but got {}",
        types::key_of(answer.type_index())
    )
}

/// Runs a body for a caller that expects a cell and no unwinding: an error or a panic becomes an error object.
fn answer(body: impl FnOnce() -> Result) -> RawAny {
    catch_panic(body).unwrap_or_else(Any::from).into_raw()
}

/// A callback for values of a type.
#[derive(Clone)]
pub(crate) struct Callback {
    /// The index of the type, or that of `ffi.Any` for all values.
    type_index: i32,
    /// The function to call.
    function: Function,
}

impl Callback {
    /// Returns whether the callback applies to values of a type: its own, a derived one, or any.
    fn applies_to(&self, actual: i32) -> bool {
        match self.type_index {
            own if own == actual => true,
            index::ANY => true,
            // A short text is in a cell with a separate tag (VAL-03), but it is still text.
            index::STR => actual == index::SMALL_STR,
            index::BYTES => actual == index::SMALL_BYTES,
            index::OBJECT => actual >= index::OBJECT_BEGIN,
            own => {
                own >= index::OBJECT_BEGIN
                    && actual >= index::OBJECT_BEGIN
                    && types::is_instance(actual, own)
            }
        }
    }

    /// Reads `(type index, function)`.
    fn from_tuple(items: &[Any]) -> Option<Callback> {
        let [type_index, function, ..] = items else {
            return None;
        };
        Some(Callback {
            type_index: cast(type_index.view()).ok()?,
            function: cast(function.view()).ok()?,
        })
    }
}
