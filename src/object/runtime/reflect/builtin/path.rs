//! Access paths: the location of a part within an object, as a list of steps.
//!
//! | type | bytes | field |
//! |---|---|---|
//! | `ffi.reflection.AccessStep` | 24..28 | kind, i32: the number of an `AccessKind` |
//! | | 32..48 | key: the name of an attribute, the index of an item, the key of a pair |
//! | `ffi.reflection.AccessPath` | 24..32 | the parent path; null at the root |
//! | | 32..40 | the last step; null at the root |
//! | | 40..44 | number of steps, i32 |
//!
//! A path refers to its parent, not to its children, so that paths with a common prefix share it. Comparison returns paths to the first
//! difference, and errors of visits contain the path to the failure.

use crate::function::{Error, Function, Result};
use crate::object::hash::any_equal;
use crate::object::reflect::column;
use crate::object::reflect::describe::{TypeDescription, field};
use crate::object::{Array, ArrayOf};
use crate::value::header::{HeaderSlot, Object, ObjectRef, Ref, dynamic_object};
use crate::value::types::ObjectIndex;
use crate::value::{Any, AnyView, Str, cast, index};

/// The kind of a step. The `Missing` kinds refer to a part that does not exist. The order is that of upstream's enumeration, because
/// the number is part of the ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessKind {
    /// A field of an object, by name.
    Attr,
    /// An element of a sequence, by index from 0.
    ArrayItem,
    /// A value of a map, by key.
    MapItem,
    /// A field that does not exist on this side.
    AttrMissing,
    /// An element past the end on this side.
    ArrayItemMissing,
    /// A key that does not exist on this side.
    MapItemMissing,
}

/// One step: its kind, and a name, index or key.
#[repr(C)]
#[derive(Clone, Default)]
pub(crate) struct AccessStepObj {
    header: HeaderSlot,
    /// Number of an [`AccessKind`]. Other numbers are possible, because reflection can write the field.
    kind: i32,
    /// Name, index or key. A name is a string, an index an int.
    key: Any,
}

/// A path: its parent, the last step, and the number of steps.
#[repr(C)]
#[derive(Clone, Default)]
pub(crate) struct AccessPathObj {
    header: HeaderSlot,
    /// The path without the last step, an untyped reference as in C++. `None` at the root.
    parent: Option<ObjectRef>,
    /// The last step; `None` at the root.
    step: Option<Ref<AccessStepObj>>,
    /// Number of steps; 0 at the root.
    depth: i32,
}

// As in C++, which reads the fields of both at fixed offsets.
const _: () = assert!(size_of::<AccessStepObj>() == 48 && size_of::<AccessPathObj>() == 48);

dynamic_object!(AccessStepObj, "ffi.reflection.AccessStep");
dynamic_object!(AccessPathObj, "ffi.reflection.AccessPath");

/// The indices of the types of this file, in the order of upstream.
pub(super) const INDICES: [fn() -> ObjectIndex; 2] =
    [AccessStepObj::type_index, AccessPathObj::type_index];

/// A path object.
pub(crate) type AccessPath = Ref<AccessPathObj>;

/// Returns the empty path.
pub(crate) fn root() -> AccessPath {
    Ref::new(AccessPathObj::default())
}

/// Returns a path that is one step longer. `path` stays unchanged and becomes the parent of the new path.
pub(crate) fn extend(path: &AccessPath, kind: AccessKind, key: Any) -> AccessPath {
    let step = Ref::new(AccessStepObj {
        header: HeaderSlot::default(),
        kind: kind as i32,
        key,
    });
    extend_by(path, step)
}

/// Like [`extend`], for a step that is already an object.
fn extend_by(path: &AccessPath, step: Ref<AccessStepObj>) -> AccessPath {
    Ref::new(AccessPathObj {
        header: HeaderSlot::default(),
        parent: Some(path.as_object().clone()),
        step: Some(step),
        depth: path.depth + 1,
    })
}

/// Returns the steps of a path in order.
fn steps(path: &AccessPath) -> Result<Vec<Any>> {
    let mut steps = Vec::new();
    let mut at = path.clone();
    // Follows the parents instead of `depth`, because reflection can write that field.
    while let Some(parent) = at.parent.clone() {
        if let Some(step) = &at.step {
            steps.push(Any::from(step.clone()));
        }
        at = cast::<AccessPath>(AnyView::from(&parent))?;
    }
    // The loop runs from the last step back to the root.
    steps.reverse();
    Ok(steps)
}

/// Returns whether two lists of steps agree up to the end of the shorter one. Keys are compared like map keys (OBJ-02).
fn same_steps(left: &[Any], right: &[Any]) -> Result<bool> {
    for (left, right) in left.iter().zip(right) {
        // Compared by kind and key, because two equal steps can be different objects.
        let left = cast::<Ref<AccessStepObj>>(left.view())?;
        let right = cast::<Ref<AccessStepObj>>(right.view())?;
        if left.kind != right.kind || !any_equal(left.key.view(), right.key.view())? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns whether `long` begins with the steps of `short`. Each path is a prefix of itself.
fn is_prefix(short: &AccessPath, long: &AccessPath) -> Result<bool> {
    let (short, long) = (steps(short)?, steps(long)?);
    Ok(short.len() <= long.len() && same_steps(&short, &long)?)
}

/// Returns the text of a step: `.name`, `[0]`, `["key"]`, or `[<missing:..>]` if that side lacks the part.
fn step_text(step: &AccessStepObj, repr: &Function) -> Result<String> {
    let plain = || -> Result<String> { Ok(cast::<i64>(step.key.view())?.to_string()) };
    let shown = || -> Result<String> {
        Ok(cast::<String>(
            repr.call_packed(&[step.key.view()])?.view(),
        )?)
    };
    // The numbers of `AccessKind`. A map key can be any value, so `repr` prints it, with quotes around a string.
    Ok(match step.kind {
        0 => format!(".{}", cast::<String>(step.key.view())?),
        1 => format!("[{}]", plain()?),
        2 => format!("[{}]", shown()?),
        4 => format!("[<missing:{}>]", plain()?),
        // OBJ-13: any other number, which reflection can write, is also printed. Upstream does not expect one.
        // The arm also covers a missing attribute, whose name is printed in quotes here.
        _ => format!("[<missing:{}>]", shown()?),
    })
}

/// Registers steps and paths with reflection: fields, methods with upstream's names, and text forms. 4 is the structural kind of a constant
/// tree. Steps and paths have no constructor. `_root` and `_extend` create paths, and `ffi.MakeObjectFromPackedArgs` creates a step from
/// its fields.
pub(super) fn register() {
    const INT: &str = "{\"type\":\"int\"}";
    const ANY: &str = "{\"type\":\"Any\"}";
    let step = TypeDescription::<AccessStepObj>::creatable(4);
    field!(step, AccessStepObj, kind: i32, "kind", "", index::INT, 0, INT);
    field!(step, AccessStepObj, key: Any, "key", "", index::ANY, 0, ANY);
    step.attr(
        &column::REPR,
        Function::named(None, |step: Ref<AccessStepObj>, repr: Function| {
            step_text(&step, &repr)
        })
        .into(),
    );
    let path = TypeDescription::<AccessPathObj>::creatable(4);
    field!(path, AccessPathObj, parent: Option<ObjectRef>, "parent", "", index::ANY, 0,
        "{\"type\":\"Optional\",\"args\":[{\"type\":\"ffi.Object\"}]}");
    field!(path, AccessPathObj, step: Option<Ref<AccessStepObj>>, "step", "", index::ANY, 0,
        "{\"type\":\"Optional\",\"args\":[{\"type\":\"ffi.reflection.AccessStep\"}]}");
    field!(path, AccessPathObj, depth: i32, "depth", "", index::INT, 0, INT);
    path.method("_root", "", true, root)
        .method(
            "_extend",
            "",
            false,
            |path: AccessPath, step: Ref<AccessStepObj>| extend_by(&path, step),
        )
        .method("_attr", "", false, |path: AccessPath, name: Str| {
            extend(&path, AccessKind::Attr, name.into())
        })
        .method("_array_item", "", false, |path: AccessPath, at: i64| {
            extend(&path, AccessKind::ArrayItem, at.into())
        })
        .method("_map_item", "", false, |path: AccessPath, key: Any| {
            extend(&path, AccessKind::MapItem, key)
        })
        .method("_attr_missing", "", false, |path: AccessPath, name: Str| {
            extend(&path, AccessKind::AttrMissing, name.into())
        })
        .method(
            "_array_item_missing",
            "",
            false,
            |path: AccessPath, at: i64| extend(&path, AccessKind::ArrayItemMissing, at.into()),
        )
        .method(
            "_map_item_missing",
            "",
            false,
            |path: AccessPath, key: Any| extend(&path, AccessKind::MapItemMissing, key),
        )
        .method(
            "_is_prefix_of",
            "",
            false,
            |short: AccessPath, long: AccessPath| is_prefix(&short, &long),
        )
        .method("_to_steps", "", false, |path: AccessPath| {
            steps(&path).map(|steps| ArrayOf::<Ref<AccessStepObj>>::new(Array::new(steps)))
        })
        .method(
            "_path_equal",
            "",
            false,
            |left: AccessPath, right: AccessPath| {
                // A path is a prefix of another one of the same length only if both are equal.
                Ok::<bool, Error>(left.depth == right.depth && is_prefix(&left, &right)?)
            },
        )
        .attr(
            &column::REPR,
            Function::named(None, |path: AccessPath, repr: Function| {
                let mut text = "<root>".to_owned();
                for step in steps(&path)? {
                    text.push_str(&cast::<String>(repr.call_packed(&[step.view()])?.view())?);
                }
                Ok::<String, Error>(text)
            })
            .into(),
        );
}
