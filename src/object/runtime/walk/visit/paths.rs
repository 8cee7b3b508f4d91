//! Conversion of the context of a failed visit to paths: the places below a root where the objects of the context occur in that order.

use super::context::ErrorContext;
use crate::function::Result;
use crate::object::reflect::builtin::{AccessKind, AccessPath, extend, root as root_path};
use crate::object::reflect::field_access::fields_of;
use crate::object::walk::depth;
use crate::object::{Array, pairs_of, sequence_of};
use crate::value::header::{ObjectRef, Ref};
use crate::value::types;
use crate::value::{Any, AnyView};

/// Returns the paths from `root` to the failure of the visit in `context`. With `allow_prefix`, also returns paths that match only the
/// first objects of the context, up to the point where nothing further matched.
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

/// Returns the objects of a context, outermost first. An object that was recorded twice in a row counts once. Absent objects are
/// dropped.
fn pattern(context: &Ref<ErrorContext>) -> Vec<ObjectRef> {
    let recorded = context.pattern.to_vec();
    let objects = recorded.iter().filter_map(Any::as_object);
    let mut pattern: Vec<ObjectRef> = objects.cloned().collect();
    // A callback and the rewrite that it calls for the same object may both record it.
    pattern.dedup_by(|next, before| next.as_ptr() == before.as_ptr());
    // Recorded from the inside out, but searched from the outside in.
    pattern.reverse();
    pattern
}

/// A step that is not an object yet. Most steps are never part of a result.
enum PathStep {
    /// A field of an object, by name.
    Field(&'static str),
    /// An element of a sequence, by index from 0.
    Item(i64),
    /// A value of a map, by key.
    Key(Any),
}

/// A search below a root for the objects of a context, in their order, possibly with other objects between them.
struct PathFinder {
    /// The objects of the context, outermost first.
    pattern: Vec<ObjectRef>,
    /// Number of objects of the pattern that are on the current path.
    matched: usize,
    /// The steps from the root to the current value.
    steps: Vec<PathStep>,
    /// The paths found so far, in walk order.
    found: Vec<AccessPath>,
    /// True if a path counts that matches only the first objects of the pattern.
    allow_prefix: bool,
}

impl PathFinder {
    /// Returns the path from the root to the current value, as an object.
    fn path(&self) -> AccessPath {
        self.steps
            .iter()
            // Created only when a path is found, because each step is an object.
            .fold(root_path(), |path, step| match step {
                PathStep::Field(name) => extend(&path, AccessKind::Attr, (*name).into()),
                PathStep::Item(at) => extend(&path, AccessKind::ArrayItem, (*at).into()),
                PathStep::Key(key) => extend(&path, AccessKind::MapItem, key.clone()),
            })
    }

    /// Searches a part of the current value, one step deeper.
    fn search_part(&mut self, step: PathStep, value: AnyView<'_>) -> Result<()> {
        depth::check(self.steps.len())?;
        self.steps.push(step);
        let result = self.value(value);
        self.steps.pop();
        result
    }

    /// Searches any value: containers part by part, objects with [`PathFinder::object`]. Other values contain no object.
    fn value(&mut self, value: AnyView<'_>) -> Result<()> {
        if let Some(items) = sequence_of(value) {
            for (at, item) in (0..).zip(&*items) {
                self.search_part(PathStep::Item(at), item.view())?;
            }
            return Ok(());
        }
        if let Some(pairs) = pairs_of(value) {
            for (key, item) in &pairs {
                if !key.is_none() {
                    self.search_part(PathStep::Key(key.clone()), item.view())?;
                }
            }
            return Ok(());
        }
        match value.as_object() {
            Some(object) => self.object(object),
            None => Ok(()),
        }
    }

    /// Searches an object. The last object of the pattern ends a path, and the next one advances the pattern for its fields. A type without
    /// metadata has no fields to search.
    fn object(&mut self, object: &ObjectRef) -> Result<()> {
        let info = types::info(object.type_index());
        if info.and_then(types::TypeInfo::metadata).is_none() {
            return Ok(());
        }
        let wanted = self.pattern.get(self.matched);
        let is_next = wanted.is_some_and(|wanted| wanted.as_ptr() == object.as_ptr());
        if is_next && self.matched + 1 == self.pattern.len() {
            // The rest of the object is not searched, because the failure is the object itself.
            self.found.push(self.path());
            return Ok(());
        }
        // Advances the pattern by one object only: objects that a visit does not record may lie between two of them.
        self.matched += usize::from(is_next);
        let before = self.found.len();
        for field in fields_of(object) {
            let value = field.get()?;
            self.search_part(PathStep::Field(field.name()), value.view())?;
        }
        let partly = (1..self.pattern.len()).contains(&self.matched);
        // A longer match below this object is already recorded, so the prefix adds no information. The root alone is not a path.
        if self.allow_prefix && partly && !self.steps.is_empty() && self.found.len() == before {
            self.found.push(self.path());
        }
        self.matched -= usize::from(is_next);
        Ok(())
    }
}
