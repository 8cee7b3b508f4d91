//! From the context of a failed visit to paths: where under a root the objects of the context lie in that order.

use super::context::ErrorContext;
use crate::function::Result;
use crate::object::reflect::builtin::{AccessKind, AccessPath, extend, root as root_path};
use crate::object::reflect::record::fields_of;
use crate::object::walk::depth;
use crate::object::{Array, pairs_of, sequence_of};
use crate::value::header::{ObjectRef, Ref};
use crate::value::types;
use crate::value::{Any, AnyView};

/// Paths from `root` to where the visit of `context` failed. With `allow_prefix` also those on which only the first of
/// its objects lie, to where there was nothing further to look at.
pub(crate) fn find_access_paths(
    root: &ObjectRef,
    context: &Ref<ErrorContext>,
    allow_prefix: bool,
) -> Result<Array> {
    let mut finder = PathFinder {
        pattern: pattern(context),
        matched: 0,
        steps: Vec::new(),
        found: Vec::new(),
        allow_prefix,
    };
    finder.object(root)?;
    Ok(Array::new(
        finder.found.into_iter().map(Any::from).collect::<Vec<_>>(),
    ))
}

/// The objects of a context, outermost first. One that was recorded twice in a row counts once; absent ones do not.
fn pattern(context: &Ref<ErrorContext>) -> Vec<ObjectRef> {
    let recorded = context.pattern.to_vec();
    let objects = recorded.iter().filter_map(Any::as_object);
    let mut pattern: Vec<ObjectRef> = objects.cloned().collect();
    // A callback and the rewrite that it calls for the same object may both attach it.
    pattern.dedup_by(|next, before| next.as_ptr() == before.as_ptr());
    // Recorded on the way up, and looked for on the way down.
    pattern.reverse();
    pattern
}

/// A step that is not an object yet; most are never part of a path that is found.
enum PathStep {
    /// A field of an object, by its name.
    Field(&'static str),
    /// An element of a sequence, by its index from 0.
    Item(i64),
    /// A value of a map, by its key.
    Key(Any),
}

/// A search for the objects of a context below a root, in their order but not one right below the other.
struct PathFinder {
    /// The objects of the context, outermost first.
    pattern: Vec<ObjectRef>,
    /// How many of the pattern lie on the way here.
    matched: usize,
    /// The steps from the root to the value at hand.
    steps: Vec<PathStep>,
    /// The paths found so far, in the order of the walk.
    found: Vec<AccessPath>,
    /// Whether a path counts that only the first objects of the pattern lie on.
    allow_prefix: bool,
}

impl PathFinder {
    /// The path from the root to the value at hand, as an object.
    fn path(&self) -> AccessPath {
        self.steps
            .iter()
            // Made only when a path is found: each step is an object.
            .fold(root_path(), |path, step| match step {
                PathStep::Field(name) => extend(&path, AccessKind::Attr, (*name).into()),
                PathStep::Item(at) => extend(&path, AccessKind::ArrayItem, (*at).into()),
                PathStep::Key(key) => extend(&path, AccessKind::MapItem, key.clone()),
            })
    }

    /// Looks into a part of the value at hand, one step further down.
    fn below(&mut self, step: PathStep, value: AnyView<'_>) -> Result<()> {
        depth::check(self.steps.len())?;
        self.steps.push(step);
        let result = self.value(value);
        self.steps.pop();
        result
    }

    /// Looks into any value: containers part by part, objects by [`PathFinder::object`]; anything else holds no object.
    fn value(&mut self, value: AnyView<'_>) -> Result<()> {
        if let Some(items) = sequence_of(value) {
            for (at, item) in (0..).zip(&*items) {
                self.below(PathStep::Item(at), item.view())?;
            }
            return Ok(());
        }
        if let Some(pairs) = pairs_of(value) {
            for (key, item) in &pairs {
                if !key.is_none() {
                    self.below(PathStep::Key(key.clone()), item.view())?;
                }
            }
            return Ok(());
        }
        match value.as_object() {
            Some(object) => self.object(object),
            None => Ok(()),
        }
    }

    /// Looks into an object: the last one of the pattern ends a path, the next one moves the pattern on for its fields. A type
    /// without metadata has no fields to look into.
    fn object(&mut self, object: &ObjectRef) -> Result<()> {
        let info = types::info(object.type_index());
        if info.and_then(types::TypeInfo::metadata).is_none() {
            return Ok(());
        }
        let wanted = self.pattern.get(self.matched);
        let is_next = wanted.is_some_and(|wanted| wanted.as_ptr() == object.as_ptr());
        if is_next && self.matched + 1 == self.pattern.len() {
            // The rest of the object is not looked into: what failed is the object itself.
            self.found.push(self.path());
            return Ok(());
        }
        // Only one step of the pattern at a time: objects that a visit does not attach may lie between two of them.
        self.matched += usize::from(is_next);
        let before = self.found.len();
        for field in fields_of(object) {
            let value = field.get()?;
            self.below(PathStep::Field(field.name()), value.view())?;
        }
        let partly = (1..self.pattern.len()).contains(&self.matched);
        // A longer match below this object has noted itself, and then the prefix adds nothing. The root alone is no path.
        if self.allow_prefix && partly && !self.steps.is_empty() && self.found.len() == before {
            self.found.push(self.path());
        }
        self.matched -= usize::from(is_next);
        Ok(())
    }
}
