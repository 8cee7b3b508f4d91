//! Where in an object something is: steps and paths.

use crate::function::{Error, Function, Result};
use crate::object::hash::any_equal;
use crate::object::reflect::column;
use crate::object::reflect::describe::{Describe, field};
use crate::object::{Array, ArrayOf};
use crate::value::header::{Header, Object, ObjectRef, Ref};
use crate::value::heap::delete_plain;
use crate::value::{Any, AnyView, Str, cast, index};

/// What a step goes through; the `Missing` ones say what was not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum AccessKind {
    Attr,
    ArrayItem,
    MapItem,
    AttrMissing,
    ArrayItemMissing,
    MapItemMissing,
}

/// One step: its kind, and the name, index or key.
#[repr(C)]
pub(crate) struct AccessStepObj {
    header: Header,
    kind: i32,
    key: Any,
}

/// A path: the path before, the last step, and how many steps.
#[repr(C)]
pub(crate) struct AccessPathObj {
    header: Header,
    parent: Option<ObjectRef>,
    step: Option<Ref<AccessStepObj>>,
    depth: i32,
}

const _: () = assert!(size_of::<AccessStepObj>() == 48 && size_of::<AccessPathObj>() == 48);

fn blank() -> Header {
    // Overwritten when the object is made.
    Header::new(index::OBJECT, delete_plain)
}

macro_rules! dynamic_object {
    ($type:ty, $key:literal) => {
        // SAFETY: `#[repr(C)]` with the header first; the key is registered for this layout.
        unsafe impl Object for $type {
            fn type_index() -> i32 {
                static TYPE: $crate::value::types::DynamicType =
                    $crate::value::types::DynamicType::new($key, || $crate::value::index::OBJECT);
                TYPE.index()
            }
        }
    };
}
pub(crate) use dynamic_object;

dynamic_object!(AccessStepObj, "ffi.reflection.AccessStep");
dynamic_object!(AccessPathObj, "ffi.reflection.AccessPath");

impl Default for AccessStepObj {
    fn default() -> AccessStepObj {
        AccessStepObj {
            header: blank(),
            kind: 0,
            key: Any::none(),
        }
    }
}

impl Clone for AccessStepObj {
    fn clone(&self) -> AccessStepObj {
        AccessStepObj {
            header: blank(),
            kind: self.kind,
            key: self.key.clone(),
        }
    }
}

impl Default for AccessPathObj {
    fn default() -> AccessPathObj {
        AccessPathObj {
            header: blank(),
            parent: None,
            step: None,
            depth: 0,
        }
    }
}

impl Clone for AccessPathObj {
    fn clone(&self) -> AccessPathObj {
        AccessPathObj {
            header: blank(),
            parent: self.parent.clone(),
            step: self.step.clone(),
            depth: self.depth,
        }
    }
}

/// A path object.
pub(crate) type AccessPath = Ref<AccessPathObj>;

/// The empty path.
pub(crate) fn root() -> AccessPath {
    Ref::new(AccessPathObj::default())
}

/// A path one step longer.
pub(crate) fn extend(path: &AccessPath, kind: AccessKind, key: Any) -> AccessPath {
    let step = Ref::new(AccessStepObj {
        header: blank(),
        kind: kind as i32,
        key,
    });
    extend_by(path, step)
}

fn extend_by(path: &AccessPath, step: Ref<AccessStepObj>) -> AccessPath {
    Ref::new(AccessPathObj {
        header: blank(),
        parent: Some(path.as_object().clone()),
        step: Some(step),
        depth: path.depth + 1,
    })
}

/// The steps of a path, the first one first.
fn steps(path: &AccessPath) -> Result<Vec<Any>> {
    let mut steps = Vec::new();
    let mut at = path.clone();
    while let Some(parent) = at.parent.clone() {
        if let Some(step) = &at.step {
            steps.push(Any::from(step.clone()));
        }
        at = cast::<AccessPath>(AnyView::from(&parent))?;
    }
    steps.reverse();
    Ok(steps)
}

/// Whether two rows of steps are the same as far as both go. Keys are equal as those of maps are (OBJ-02).
fn same_steps(left: &[Any], right: &[Any]) -> Result<bool> {
    for (left, right) in left.iter().zip(right) {
        let left = cast::<Ref<AccessStepObj>>(left.view())?;
        let right = cast::<Ref<AccessStepObj>>(right.view())?;
        if left.kind != right.kind || !any_equal(left.key.view(), right.key.view())? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_prefix(short: &AccessPath, long: &AccessPath) -> Result<bool> {
    let (short, long) = (steps(short)?, steps(long)?);
    Ok(short.len() <= long.len() && same_steps(&short, &long)?)
}

/// The text of a step: `.name`, `[0]`, `["key"]`, or `[<missing:..>]` where that side has no such part.
fn step_text(step: &AccessStepObj, repr: &Function) -> Result<String> {
    let plain = || -> Result<String> { Ok(cast::<i64>(step.key.view())?.to_string()) };
    let shown = || -> Result<String> { Ok(cast::<String>(repr.call(&[step.key.view()])?.view())?) };
    Ok(match step.kind {
        0 => format!(".{}", cast::<String>(step.key.view())?),
        1 => format!("[{}]", plain()?),
        2 => format!("[{}]", shown()?),
        4 => format!("[<missing:{}>]", plain()?),
        // A missing attribute, too, whose name prints in quotes here.
        _ => format!("[<missing:{}>]", shown()?),
    })
}

pub(super) fn register() {
    const INT: &str = "{\"type\":\"int\"}";
    const ANY: &str = "{\"type\":\"Any\"}";
    let step = Describe::<AccessStepObj>::whole(4);
    field!(step, AccessStepObj, kind: i32, "kind", "", index::INT, 0, INT);
    field!(step, AccessStepObj, key: Any, "key", "", index::ANY, 0, ANY);
    step.attr(
        &column::REPR,
        Function::named(None, |step: Ref<AccessStepObj>, repr: Function| {
            step_text(&step, &repr)
        })
        .into(),
    );
    let path = Describe::<AccessPathObj>::whole(4);
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
                Ok::<bool, Error>(left.depth == right.depth && is_prefix(&left, &right)?)
            },
        )
        .attr(
            &column::REPR,
            Function::named(None, |path: AccessPath, repr: Function| {
                let mut text = "<root>".to_owned();
                for step in steps(&path)? {
                    text.push_str(&cast::<String>(repr.call(&[step.view()])?.view())?);
                }
                Ok::<String, Error>(text)
            })
            .into(),
        );
}
