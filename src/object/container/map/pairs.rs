//! The pairs of a map, from the first to the last (OBJ-08).

use super::layout::Pair;
use super::table::Table;
use crate::value::header::ObjectRef;
use crate::value::{Any, AnyView, index};
use std::marker::PhantomData;

/// The pairs of a map of either kind, in order of insertion; a dense map puts an updated key last. Those of a
/// [`Map`](super::Map) are borrowed, those of a [`Dict`](super::Dict), which may change meanwhile, are as they were when this was
/// made.
pub struct Pairs<'a>(Source<'a>);

enum Source<'a> {
    Lent(Table, PhantomData<&'a ()>),
    Kept(Vec<(Any, Any)>),
}

impl Pairs<'_> {
    /// From the first to the last.
    pub fn iter(&self) -> PairIter<'_> {
        match &self.0 {
            Source::Lent(table, _) => table.lent(),
            Source::Kept(pairs) => PairIter(Steps::Kept(pairs.iter())),
        }
    }
}

impl<'a> IntoIterator for &'a Pairs<'_> {
    type Item = (&'a Any, &'a Any);
    type IntoIter = PairIter<'a>;

    fn into_iter(self) -> PairIter<'a> {
        self.iter()
    }
}

/// Goes through the pairs of a map: keys and values.
pub struct PairIter<'a>(pub(super) Steps<'a>);

pub(super) enum Steps<'a> {
    Lent(Table, Option<u64>),
    Kept(std::slice::Iter<'a, (Any, Any)>),
}

impl<'a> Iterator for PairIter<'a> {
    type Item = (&'a Any, &'a Any);

    fn next(&mut self) -> Option<(&'a Any, &'a Any)> {
        match &mut self.0 {
            Steps::Kept(pairs) => pairs.next().map(|(key, value)| (key, value)),
            Steps::Lent(table, next) => {
                let at = (*next)?;
                *next = table.next(at);
                // SAFETY: `first` or `next` gave the position, and the map does not change for `'a` (`Table::lent`).
                let pair = unsafe { table.pair_at(at) };
                // SAFETY: there is a pair at such a position, and the map lives for `'a`.
                let pair = unsafe { &*pair };
                Some((&pair.key, &pair.value))
            }
        }
    }
}

/// The pairs of a map of either kind.
pub fn pairs_of(view: AnyView<'_>) -> Option<Pairs<'_>> {
    let table = Table(view.as_raw().ptr().cast());
    Some(Pairs(match view.type_index() {
        index::MAP => Source::Lent(table, PhantomData),
        index::DICT => Source::Kept(table.settled(|| table.kept())),
        _ => return None,
    }))
}

/// A cursor over a map that keeps it alive: the state of the iterator functions.
pub(crate) struct Cursor {
    map: ObjectRef,
    at: Option<u64>,
}

impl Cursor {
    pub(crate) fn new(map: ObjectRef) -> Cursor {
        let table = Table(map.as_ptr().cast());
        let at = table.settled(|| table.first());
        Cursor { map, at }
    }

    const fn table(&self) -> Table {
        Table(self.map.as_ptr().cast())
    }

    /// Where the cursor stands, unless the map changed and has no pair there any more. Called alone at a dict.
    fn position(&self) -> Option<u64> {
        self.at.filter(|&at| self.table().is_filled(at))
    }

    /// The key at the cursor.
    pub(crate) fn key(&self) -> Option<Any> {
        self.pair().map(|pair| pair.key)
    }

    /// The value at the cursor.
    pub(crate) fn value(&self) -> Option<Any> {
        self.pair().map(|pair| pair.value)
    }

    fn pair(&self) -> Option<Pair> {
        self.table().settled(|| {
            let at = self.position()?;
            // SAFETY: a pair is at the position (`position`), and nothing changes the map in here (`settled`).
            let pair = unsafe { self.table().pair_at(at) };
            // SAFETY: there is a pair, by `position`.
            Some(unsafe { &*pair }.copy())
        })
    }

    /// Steps on; false at the end.
    pub(crate) fn advance(&mut self) -> bool {
        let table = self.table();
        self.at = table.settled(|| self.position().and_then(|at| table.next(at)));
        self.at.is_some()
    }
}
