//! Walks with callbacks: [`walk`] calls them before or after the parts, and [`visit`] leaves the parts to them.

use super::context::attach;
use super::{
    Callback, Interrupt, Visitor, VisitorObj, VisitorTable, answer, interrupt_or_none, key_hooks,
    unexpected,
};
use crate::function::{Error, ErrorKind, Result};
use crate::object::walk::depth::Levels;
use crate::object::{OBJ_34, sequence_of};
use crate::rule::Kind;
use crate::value::Schema;
use crate::value::header::{Object, ObjectRef, Ref};
use crate::value::types::ObjectIndex;
use crate::value::{Any, AnyView, Argument, RawAny, VAL_10, index};

/// Callbacks that take only a value, and callbacks that also take the kind of the region.
#[derive(Clone)]
pub(crate) struct Links {
    /// Callbacks that take only the value.
    pub(crate) plain: Callbacks,
    /// Callbacks that take the value and the number of the region.
    pub(crate) with_region: Callbacks,
}

impl Links {
    /// Calls the first matching callback for the value, if there is one.
    pub(super) fn call(&self, value: AnyView<'_>, region: i32) -> Option<Result> {
        let actual = value.type_index();
        let find = |list: &Callbacks| list.0.iter().find(|link| link.applies_to(actual)).cloned();
        // OBJ-34: the first callback for the type is called. Those without the region precede those with it.
        if let Some(link) = find(&self.plain) {
            return Some(link.function.call_packed(&[value]));
        }
        let link = find(&self.with_region)?;
        Some(
            link.function
                .call_packed(&[value, i64::from(region).into()]),
        )
    }
}

/// A list of `(type index, function)`. The first entry that matches a value wins.
#[derive(Clone, Default)]
pub(crate) struct Callbacks(pub(super) Vec<Callback>);

impl Argument for Callbacks {
    const RULE: crate::rule::Rule = VAL_10;

    fn schema() -> Schema {
        let pair = vec![Schema::plain("int"), Schema::plain("ffi.Function")];
        Schema::of("ffi.Array", vec![Schema::of("Tuple", pair)])
    }

    fn try_from_view(view: AnyView<'_>) -> Option<Callbacks> {
        sequence_of(view)?
            .iter()
            .map(|entry| Callback::from_tuple(&sequence_of(entry.view())?))
            .collect::<Option<Vec<_>>>()
            .map(Callbacks)
    }
}

/// The time when a walk calls a callback.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum VisitOrder {
    /// Before the parts.
    Pre,
    /// After the parts.
    Post,
}

impl VisitOrder {
    /// Converts the number that the ABI passes.
    pub(crate) const fn from_number(order: i64) -> VisitOrder {
        if order == 0 {
            VisitOrder::Pre
        } else {
            VisitOrder::Post
        }
    }
}

/// The mode of a walk.
#[derive(Clone)]
enum WalkMode {
    /// Calls a callback before or after the parts.
    Walk(Links, VisitOrder),
    /// Leaves the parts to a callback, which calls the visitor for them.
    Visit(Callbacks),
}

/// A visitor that calls callbacks.
#[repr(C)]
struct CallbackWalk {
    /// The part that code of any library sees. It is first, so that a pointer to one is a pointer to the other.
    visitor: VisitorObj,
    /// The callbacks, and the time of their calls.
    way: WalkMode,
    /// The depth of the walk.
    depth: Levels,
}

// SAFETY: `#[repr(C)]` with the header first; only reached through its own table.
unsafe impl Object for CallbackWalk {
    fn type_index() -> ObjectIndex {
        VisitorObj::type_index()
    }

    // Other visitors have the same type index, so only the table identifies a `CallbackWalk`.
    fn matches(_: i32) -> bool {
        false
    }
}

/// The table of every [`CallbackWalk`]. [`copy`] recognizes one by the address of its table.
static TABLE: VisitorTable = VisitorTable { visit: dispatch };

/// Implements `visit` of the table: visits a value one level deeper. An error records the value in its context.
unsafe extern "C-unwind" fn dispatch(visitor: *mut VisitorObj, value: RawAny) -> RawAny {
    answer(|| {
        // SAFETY: only a `CallbackWalk` has this table, and it is alive for the call.
        let walk = unsafe { &*visitor.cast::<CallbackWalk>() };
        // SAFETY: the value lives for the call.
        let value = unsafe { AnyView::from_raw(value) };
        // OBJ-34: None is skipped.
        if value.is_none() {
            return Ok(Any::none());
        }
        // SAFETY: alive for the call.
        let visitor = unsafe { Visitor::from_raw(visitor) };
        walk.depth
            .deeper(|| walk.step(visitor, value))
            .inspect_err(|error| attach(error, value))
    })
}

impl CallbackWalk {
    /// Visits a root with a new visitor. Returns the interrupt that ended the visit, or `None` if it finished.
    fn start(way: WalkMode, root: AnyView<'_>) -> Result<Option<Ref<Interrupt>>> {
        let walk = Ref::new(CallbackWalk {
            visitor: VisitorObj::new(&TABLE),
            way,
            depth: Levels::default(),
        });
        // SAFETY: `walk` is kept alive until the visit is over.
        let visitor = unsafe { Visitor::from_raw(walk.as_ptr().cast()) };
        stop(visitor.visit(root)?)
    }

    /// Visits one value according to the mode (OBJ-34).
    fn step(&self, visitor: Visitor, value: AnyView<'_>) -> Result {
        match &self.way {
            WalkMode::Walk(links, order) => {
                if *order == VisitOrder::Pre {
                    match self.call_links(links, visitor, value)? {
                        WalkAnswer::Stop(interrupt) => return Ok(interrupt),
                        WalkAnswer::Skip => return Ok(Any::none()),
                        WalkAnswer::Advance => {}
                    }
                }
                let stopped = visitor.default_visit(value)?;
                // OBJ-34: an interrupt among the parts ends the walk, so the callback for the value itself is not called.
                if *order == VisitOrder::Pre || !stopped.is_none() {
                    return Ok(stopped);
                }
                // After the parts, there is nothing left to skip, so 1 has the same effect as None.
                match self.call_links(links, visitor, value)? {
                    WalkAnswer::Stop(interrupt) => Ok(interrupt),
                    _ => Ok(Any::none()),
                }
            }
            WalkMode::Visit(callbacks) => {
                let own = callbacks.0.iter();
                match own.clone().find(|link| link.applies_to(value.type_index())) {
                    Some(link) => {
                        interrupt_or_none(link.function.call_packed(&[value, visitor.view()])?)
                    }
                    None => visitor.default_visit(value),
                }
            }
        }
    }

    /// Returns the decision of the callback for a value. Without a callback the walk advances.
    fn call_links(
        &self,
        links: &Links,
        visitor: Visitor,
        value: AnyView<'_>,
    ) -> Result<WalkAnswer> {
        match links.call(value, visitor.region().kind()) {
            None => Ok(WalkAnswer::Advance),
            Some(returned) => WalkAnswer::from_answer(key_hooks::raise_error_object(returned?)?),
        }
    }
}

/// The decision of a walk's callback.
enum WalkAnswer {
    /// Continue with the parts.
    Advance,
    /// Skip the parts.
    Skip,
    /// End the walk with this interrupt.
    Stop(Any),
}

impl WalkAnswer {
    /// Interprets the result of a callback.
    fn from_answer(returned: Any) -> Result<WalkAnswer> {
        match returned.type_index() {
            index::NONE => Ok(WalkAnswer::Advance),
            // A callback of Python may return `True` for 1.
            index::INT | index::BOOL if returned.as_raw().int() == 1 => Ok(WalkAnswer::Skip),
            index::INT | index::BOOL => Ok(WalkAnswer::Advance),
            index::VISIT_INTERRUPT => Ok(WalkAnswer::Stop(returned)),
            _ => {
                let message = unexpected("WalkResult", &returned);
                Err(OBJ_34.rejected(Kind::Type, message).into())
            }
        }
    }
}

/// Returns the interrupt of a visit that ended early; `None` for None.
fn stop(answer: Any) -> Result<Option<Ref<Interrupt>>> {
    Ok(crate::value::cast(answer.view())?)
}

/// Calls callbacks for a value and everything in it, for every occurrence, before or after its parts. A callback returns 1 to skip the
/// parts, None or any other integer to continue, or an interrupt. An interrupt ends the walk and is its result.
pub(crate) fn walk(
    root: AnyView<'_>,
    links: Links,
    order: VisitOrder,
) -> Result<Option<Ref<Interrupt>>> {
    CallbackWalk::start(WalkMode::Walk(links, order), root)
}

/// Calls callbacks with values and the visitor. The callbacks decide whether and how the parts are visited. Values without a callback are
/// visited in the way of their types.
pub(crate) fn visit(root: AnyView<'_>, callbacks: Callbacks) -> Result<Option<Ref<Interrupt>>> {
    CallbackWalk::start(WalkMode::Visit(callbacks), root)
}

/// Copies a visitor. Only this library's own visitors have a known private part. A copy of another library's visitor gets a table that
/// rejects every call; the reference would read past the end of the copy.
pub(crate) fn copy(source: &Ref<VisitorObj>) -> ObjectRef {
    let region = source.region.kind();
    if std::ptr::eq(source.table, &TABLE) {
        // SAFETY: only a `CallbackWalk` has this table.
        let walk = unsafe { &*source.as_ptr().cast::<CallbackWalk>() };
        let copy = Ref::new(CallbackWalk {
            visitor: VisitorObj::new(&TABLE),
            way: walk.way.clone(),
            depth: Levels::default(),
        });
        // The copy continues in the region of the original, but at depth 0, because it is an independent walk.
        copy.visitor.region.set(region);
        return copy.into_object();
    }
    let copy = Ref::new(VisitorObj::new(&REJECTING));
    copy.region.set(region);
    copy.into_object()
}

/// The table of a copy whose original belongs to another library.
static REJECTING: VisitorTable = VisitorTable { visit: reject };

/// Fails, because the original's private part follows its public part, and its size is unknown here.
unsafe extern "C-unwind" fn reject(_: *mut VisitorObj, _: RawAny) -> RawAny {
    answer(|| {
        Err(Error::new(
            ErrorKind::Type,
            "this is the copy of a visitor whose own part is not known here",
        ))
    })
}
