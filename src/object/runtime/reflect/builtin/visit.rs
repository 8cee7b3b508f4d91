//! Registration of structural visits and rewrites, and their types (OBJ-34, OBJ-35).
//!
//! | functions | purpose |
//! |---|---|
//! | `ffi.StructuralWalk`, `ffi.StructuralMap` | call one callback for each value and continue on their own |
//! | `ffi.StructuralVisit`, `ffi.StructuralMutate` | call a callback with the visitor or mutator, which the callback uses to continue |
//! | `ffi.StructuralVisitor...`, `ffi.StructuralMutator...` | operations of a callback on its visitor or mutator |
//! | `ffi.VisitErrorContext.FindAccessPaths` | paths below a root where a visit failed |
//!
//! The kinds of regions have upstream's numbers: 0 none, 1 pattern, 2 simple.

use super::path::AccessPath;
use super::{ArrayOf, def};
use crate::function::{Error, Function, Result};
use crate::object::List;
use crate::object::reflect::column;
use crate::object::reflect::describe::{TypeDescription, field};
use crate::object::walk::visit::context::ErrorContext;
use crate::object::walk::visit::mutate::{Mutator, MutatorObj, resolve};
use crate::object::walk::visit::paths::find_access_paths;
use crate::object::walk::visit::rewrite;
use crate::object::walk::visit::walk::{self, Callbacks, Links, VisitOrder};
use crate::object::walk::visit::{Interrupt, Visitor, VisitorObj, container_hooks};
use crate::value::header::{Object, ObjectRef, Ref};
use crate::value::types::ObjectIndex;
use crate::value::{Any, cast, index, types};

/// The interrupt that ended a visit early, if any.
type WalkInterrupt = Option<Ref<Interrupt>>;

/// Combines the two lists of callbacks of `ffi.StructuralWalk` and `ffi.StructuralMap`: those that take only the value, and those that also
/// take the kind of the region.
fn links(plain: Callbacks, with_region: Callbacks) -> Links {
    Links { plain, with_region }
}

/// Converts the result of a visit to its declared type.
fn stop(answer: Result) -> Result<WalkInterrupt> {
    Ok(cast(answer?.view())?)
}

/// Registers the types, the hooks of builtin types and the functions of this file.
pub(super) fn register() {
    register_types();
    container_hooks::register();
    register_visits();
    register_rewrites();
    def(
        "ffi.VisitErrorContext.FindAccessPaths",
        |root: ObjectRef, context: Ref<ErrorContext>, allow_prefix: bool| {
            find_access_paths(&root, &context, allow_prefix).map(ArrayOf::<AccessPath>::new)
        },
    );
}

/// Registers the reading part: `ffi.VisitInterrupt` and the functions of visitors.
fn register_visits() {
    def("ffi.VisitInterrupt", |value: Any| {
        Ref::new(Interrupt::new(value))
    });
    def(
        "ffi.StructuralVisitorVisit",
        |visitor: Ref<VisitorObj>, value: Any| stop(Visitor::of(&visitor).visit(value.view())),
    );
    def(
        "ffi.StructuralVisitorDefaultVisit",
        |visitor: Ref<VisitorObj>, value: Any| {
            stop(Visitor::of(&visitor).default_visit(value.view()))
        },
    );
    def(
        "ffi.StructuralVisitorDefRegionKind",
        |visitor: Ref<VisitorObj>| Visitor::of(&visitor).region().kind(),
    );
    def(
        "ffi.StructuralVisitorWithDefRegionKind",
        |visitor: Ref<VisitorObj>, kind: i32, body: Function| {
            Visitor::of(&visitor)
                .region()
                .run_in_region(kind, || body.call_packed(&[]))
        },
    );
    def(
        "ffi.StructuralWalk",
        |root: Any, plain: Callbacks, with_region: Callbacks, order: i64| {
            // 0 visits a value before its parts, any other number after them.
            let order = VisitOrder::from_number(order);
            walk::walk(root.view(), links(plain, with_region), order)
        },
    );
    def("ffi.StructuralVisit", |root: Any, callbacks: Callbacks| {
        walk::visit(root.view(), callbacks)
    });
}

/// Registers the rewriting part: the functions of mutators.
fn register_rewrites() {
    def(
        "ffi.StructuralMutatorMutate",
        |mutator: Ref<MutatorObj>, value: Any| {
            // Not in place: the caller that passed the value still holds it (OBJ-35). The tag for "unchanged" stays inside the library.
            let after = Mutator::of(&mutator).mutate(value.view(), false)?;
            Ok::<Any, Error>(resolve(after, value.view()))
        },
    );
    def(
        "ffi.StructuralMutatorDefaultMutate",
        |mutator: Ref<MutatorObj>, value: Any| {
            let after = Mutator::of(&mutator).default_mutate(value.view(), false)?;
            Ok::<Any, Error>(resolve(after, value.view()))
        },
    );
    def(
        "ffi.StructuralMutatorVarRemapGet",
        |mutator: Ref<MutatorObj>, variable: Any| Mutator::of(&mutator).remap_get(variable.view()),
    );
    def(
        "ffi.StructuralMutatorVarRemapSet",
        |mutator: Ref<MutatorObj>, variable: Any, mapped: Any| {
            Mutator::of(&mutator).remap_set(variable.view(), mapped.view())
        },
    );
    def(
        "ffi.StructuralMutatorDefRegionKind",
        |mutator: Ref<MutatorObj>| Mutator::of(&mutator).region().kind(),
    );
    def(
        "ffi.StructuralMutatorWithDefRegionKind",
        |mutator: Ref<MutatorObj>, kind: i32, body: Function| {
            Mutator::of(&mutator)
                .region()
                .run_in_region(kind, || body.call_packed(&[]))
        },
    );
    def(
        "ffi.StructuralMap",
        |root: Any, plain: Callbacks, with_region: Callbacks, order: i64| {
            rewrite::map(
                root,
                links(plain, with_region),
                VisitOrder::from_number(order),
            )
        },
    );
    // Each of its callbacks states whether it may change a value in place (OBJ-35).
    def("ffi.StructuralMutate", rewrite::mutate);
}

/// The indices of the types of this file, in the order of upstream.
pub(super) const INDICES: [fn() -> ObjectIndex; 3] = [
    VisitorObj::type_index,
    ErrorContext::type_index,
    MutatorObj::type_index,
];

/// Registers interrupts and error contexts with their fields. Registers visitors and mutators as types of which only the beginning is
/// public, because each library appends private data for its own table.
fn register_types() {
    let interrupt = TypeDescription::<Interrupt>::creatable(0);
    // The default is None: an interrupt may do no more than end the visit.
    field!(interrupt, Interrupt, value: Any,
        "value", "", index::ANY, types::flag::HAS_DEFAULT, "{\"type\":\"Any\"}");
    let context = TypeDescription::<ErrorContext>::creatable(0);
    // Innermost first: an object is added when the error passes it on the way up.
    field!(context, ErrorContext, pattern: List, "reverse_visit_pattern", "", index::LIST, 0,
        "{\"type\":\"ffi.List\",\"args\":[{\"type\":\"ffi.Object\"}]}");
    field!(context, ErrorContext, before: Option<ObjectRef>, "prev_error_context", "", index::ANY, 0,
        "{\"type\":\"Optional\",\"args\":[{\"type\":\"ffi.Object\"}]}");
    // A copy needs more than the public part. Only the library that created the visitor knows the rest.
    let copy_visitor = |source: Ref<VisitorObj>| walk::copy(&source);
    TypeDescription::opaque(VisitorObj::type_index().get(), size_of::<VisitorObj>(), 0).attr(
        &column::SHALLOW_COPY,
        Function::from_typed(copy_visitor).into(),
    );
    let copy_mutator = |source: Ref<MutatorObj>| rewrite::copy(&source);
    TypeDescription::opaque(MutatorObj::type_index().get(), size_of::<MutatorObj>(), 0).attr(
        &column::SHALLOW_COPY,
        Function::from_typed(copy_mutator).into(),
    );
}
