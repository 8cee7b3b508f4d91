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
    pattern.dedup_by(|next, before| next.as_ptr() == before.as_ptr());
    pattern.reverse();
    pattern
}

/// A step that is not an object yet; most are never part of a path that is found.
enum PathStep {
    Field(&'static str),
    Item(i64),
    Key(Any),
}

struct PathFinder {
    pattern: Vec<ObjectRef>,
    /// How many of the pattern lie on the way here.
    matched: usize,
    steps: Vec<PathStep>,
    found: Vec<AccessPath>,
    allow_prefix: bool,
}

impl PathFinder {
    fn path(&self) -> AccessPath {
        self.steps
            .iter()
            .fold(root_path(), |path, step| match step {
                PathStep::Field(name) => extend(&path, AccessKind::Attr, (*name).into()),
                PathStep::Item(at) => extend(&path, AccessKind::ArrayItem, (*at).into()),
                PathStep::Key(key) => extend(&path, AccessKind::MapItem, key.clone()),
            })
    }

    fn below(&mut self, step: PathStep, value: AnyView<'_>) -> Result<()> {
        depth::check(self.steps.len())?;
        self.steps.push(step);
        let result = self.value(value);
        self.steps.pop();
        result
    }

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

    fn object(&mut self, object: &ObjectRef) -> Result<()> {
        let info = types::info(object.type_index());
        if info.and_then(types::TypeInfo::metadata).is_none() {
            return Ok(());
        }
        let wanted = self.pattern.get(self.matched);
        let is_next = wanted.is_some_and(|wanted| wanted.as_ptr() == object.as_ptr());
        if is_next && self.matched + 1 == self.pattern.len() {
            self.found.push(self.path());
            return Ok(());
        }
        self.matched += usize::from(is_next);
        let before = self.found.len();
        for field in fields_of(object) {
            let value = field.get()?;
            self.below(PathStep::Field(field.name()), value.view())?;
        }
        let partly = (1..self.pattern.len()).contains(&self.matched);
        if self.allow_prefix && partly && !self.steps.is_empty() && self.found.len() == before {
            self.found.push(self.path());
        }
        self.matched -= usize::from(is_next);
        Ok(())
    }
}
