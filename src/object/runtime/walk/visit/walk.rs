//! Walks with callbacks: [`walk`] calls them before or after the parts, [`visit`] leaves the parts to them.

use super::context::attach;
use super::{
    Callback, Interrupt, VisitDepth, Visitor, VisitorObj, VisitorTable, answer, blank,
    interrupt_or_none, native, unexpected,
};
use crate::function::{Error, ErrorKind, Result};
use crate::object::{OBJ_34, sequence_of};
use crate::rule::Kind;
use crate::value::Schema;
use crate::value::header::{Object, ObjectRef, Ref};
use crate::value::types::ObjectIndex;
use crate::value::{Any, AnyView, Argument, RawAny, VAL_10, index};

/// Callbacks for values alone, and for values with the kind of the region.
#[derive(Clone)]
pub(crate) struct Links {
    /// Callbacks that take the value alone.
    pub(crate) plain: Callbacks,
    /// Callbacks that take the value and the number of the region.
    pub(crate) with_region: Callbacks,
}

impl Links {
    /// Calls the first callback for the value, if there is one.
    pub(super) fn call(&self, value: AnyView<'_>, region: i32) -> Option<Result> {
        let actual = value.type_index();
        let find = |list: &Callbacks| list.0.iter().find(|link| link.takes(actual)).cloned();
        // OBJ-34: the first callback for the type, and those without the region come before those with it.
        if let Some(link) = find(&self.plain) {
            return Some(link.function.call(&[value]));
        }
        let link = find(&self.with_region)?;
        Some(link.function.call(&[value, i64::from(region).into()]))
    }
}

/// A list of `(type index, function)`, the first that takes a value wins.
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

/// When a walk calls.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum VisitOrder {
    /// Before the parts.
    Pre,
    /// After them.
    Post,
}

impl VisitOrder {
    /// From the number that the ABI passes.
    pub(crate) const fn from_number(order: i64) -> VisitOrder {
        if order == 0 {
            VisitOrder::Pre
        } else {
            VisitOrder::Post
        }
    }
}

/// What a walk does with a value.
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
    /// The part that code of any library sees. It comes first, so that a pointer to one is a pointer to the other.
    visitor: VisitorObj,
    /// The callbacks, and when they are called.
    way: WalkMode,
    /// How deep the walk is.
    depth: VisitDepth,
}

// SAFETY: `#[repr(C)]` with the header first; only reached through its own table.
unsafe impl Object for CallbackWalk {
    fn type_index() -> ObjectIndex {
        VisitorObj::type_index()
    }

    // Other visitors have the same type index, so the index proves nothing: only the table tells that one is a `CallbackWalk`.
    fn matches(_: i32) -> bool {
        false
    }
}

/// The table of every [`CallbackWalk`], by whose address [`copy`] knows one.
static TABLE: VisitorTable = VisitorTable { visit: dispatch };

/// `visit` of the table: visits a value one level further down. An error carries the value on its way up.
unsafe extern "C-unwind" fn dispatch(visitor: *mut VisitorObj, value: RawAny) -> RawAny {
    answer(|| {
        // SAFETY: the table is only ever in a `CallbackWalk`, which is alive for the call.
        let walk = unsafe { &*visitor.cast::<CallbackWalk>() };
        // SAFETY: the value lives for the call.
        let value = unsafe { AnyView::from_raw(value) };
        // OBJ-34: None is not met.
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
    /// Visits a root with a new visitor: the interrupt that ended the visit, or `None` where it went to its end.
    fn start(way: WalkMode, root: AnyView<'_>) -> Result<Option<Ref<Interrupt>>> {
        let walk = Ref::new(CallbackWalk {
            visitor: VisitorObj::new(blank(), &TABLE),
            way,
            depth: VisitDepth::default(),
        });
        // SAFETY: `walk` is held until the visit is over.
        let visitor = unsafe { Visitor::from_raw(walk.as_ptr().cast()) };
        stop(visitor.visit(root)?)
    }

    /// Visits one value as the mode says (OBJ-34).
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
                // OBJ-34: an interrupt among the parts ends the walk, so that the value itself is not met any more.
                if *order == VisitOrder::Pre || !stopped.is_none() {
                    return Ok(stopped);
                }
                // After the parts there is nothing left to leave out, so that 1 is as good as None.
                match self.call_links(links, visitor, value)? {
                    WalkAnswer::Stop(interrupt) => Ok(interrupt),
                    _ => Ok(Any::none()),
                }
            }
            WalkMode::Visit(callbacks) => {
                let own = callbacks.0.iter();
                match own.clone().find(|link| link.takes(value.type_index())) {
                    Some(link) => interrupt_or_none(link.function.call(&[value, visitor.view()])?),
                    None => visitor.default_visit(value),
                }
            }
        }
    }

    /// What the callback for a value decides; to go on where there is none.
    fn call_links(
        &self,
        links: &Links,
        visitor: Visitor,
        value: AnyView<'_>,
    ) -> Result<WalkAnswer> {
        match links.call(value, visitor.region().kind()) {
            None => Ok(WalkAnswer::Advance),
            Some(returned) => WalkAnswer::from_answer(native::settle(returned?)?),
        }
    }
}

/// What a callback of a walk decides.
enum WalkAnswer {
    /// Goes on with the parts.
    Advance,
    /// Leaves the parts out.
    Skip,
    /// Ends the walk with this interrupt.
    Stop(Any),
}

impl WalkAnswer {
    /// What a result means.
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

/// The interrupt of a visit that ended early; None is none.
fn stop(answer: Any) -> Result<Option<Ref<Interrupt>>> {
    Ok(crate::value::cast(answer.view())?)
}

/// Calls callbacks for a value and everything in it, every occurrence, before or after its parts. A callback answers
/// 1 to leave the parts out, None or any other integer to go on, or an interrupt, which ends the walk and is the result.
pub(crate) fn walk(
    root: AnyView<'_>,
    links: Links,
    order: VisitOrder,
) -> Result<Option<Ref<Interrupt>>> {
    CallbackWalk::start(WalkMode::Walk(links, order), root)
}

/// Hands values to callbacks together with the visitor; whether and how the parts are visited is left to them. Values
/// without a callback are visited as their types say.
pub(crate) fn visit(root: AnyView<'_>, callbacks: Callbacks) -> Result<Option<Ref<Interrupt>>> {
    CallbackWalk::start(WalkMode::Visit(callbacks), root)
}

/// A copy of a visitor. What is behind the public part is only known for our own; a copy of another library's has a
/// table that rejects, where the reference would read past the end of the copy.
pub(crate) fn copy(source: &Ref<VisitorObj>) -> ObjectRef {
    let region = source.region.kind();
    if std::ptr::eq(source.table, &TABLE) {
        // SAFETY: the table is only ever in a `CallbackWalk`.
        let walk = unsafe { &*source.as_ptr().cast::<CallbackWalk>() };
        let copy = Ref::new(CallbackWalk {
            visitor: VisitorObj::new(blank(), &TABLE),
            way: walk.way.clone(),
            depth: VisitDepth::default(),
        });
        // The copy goes on in the region in which the original is, and at depth 0: it is a walk of its own.
        copy.visitor.region.set(region);
        return copy.into_object();
    }
    let copy = Ref::new(VisitorObj::new(blank(), &REJECTING));
    copy.region.set(region);
    copy.into_object()
}

/// The table of a copy whose original belongs to another library.
static REJECTING: VisitorTable = VisitorTable { visit: reject };

/// Fails: what the original did is behind its public part, whose size is not known here.
unsafe extern "C-unwind" fn reject(_: *mut VisitorObj, _: RawAny) -> RawAny {
    answer(|| {
        Err(Error::new(
            ErrorKind::Type,
            "this is the copy of a visitor whose own part is not known here",
        ))
    })
}
