//! Iteration over the pairs of a map (OBJ-08).

use super::layout::Pair;
use super::table::MapTable;
use super::{Dict, Map};
use crate::value::header::ObjectRef;
use crate::value::{Any, AnyView, index};
use std::marker::PhantomData;

/// The pairs of a map of either kind, in order of insertion. A dense map puts an updated key last. The pairs of a [`Map`](super::Map) are
/// borrowed. The pairs of a [`Dict`](super::Dict), which may change, are a copy from the time of creation.
pub struct Pairs<'a>(PairSource<'a>);

impl std::fmt::Debug for Pairs<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

/// The storage of [`Pairs`].
enum PairSource<'a> {
    /// The pairs of a map that a view keeps alive for `'a`.
    Borrowed(MapTable, PhantomData<&'a ()>),
    /// Copies of the pairs of a dict.
    Copied(Vec<(Any, Any)>),
}

impl Pairs<'_> {
    /// Iterates from the first pair to the last.
    pub fn iter(&self) -> PairIter<'_> {
        match &self.0 {
            // SAFETY: `pairs_of` created this for the life of a view of a `Map`, which nothing changes while others hold it.
            PairSource::Borrowed(table, _) => unsafe { table.borrowed() },
            PairSource::Copied(pairs) => PairIter(PairSteps::Copied(pairs.iter())),
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

/// An iterator over the pairs of a map: keys and values.
pub struct PairIter<'a>(pub(super) PairSteps<'a>);

debug_fields!(PairIter<'_>: );

/// The state of an iterator over pairs: a position in a borrowed map, or the rest of the copies.
pub(super) enum PairSteps<'a> {
    /// The map, and the position of the next pair.
    Borrowed(MapTable, Option<u64>),
    /// The remaining copies.
    Copied(std::slice::Iter<'a, (Any, Any)>),
}

impl<'a> Iterator for PairIter<'a> {
    type Item = (&'a Any, &'a Any);

    fn next(&mut self) -> Option<(&'a Any, &'a Any)> {
        match &mut self.0 {
            PairSteps::Copied(pairs) => pairs.next().map(|(key, value)| (key, value)),
            PairSteps::Borrowed(table, next) => {
                let at = (*next)?;
                // SAFETY: `first` or `next` returned the position, and the map does not change for `'a` (`MapTable::borrowed`).
                *next = unsafe { table.next(at) };
                // SAFETY: the same position.
                let pair = unsafe { table.pair_at(at) };
                // SAFETY: there is a pair at this position, and the map lives for `'a`.
                let pair = unsafe { &*pair };
                Some((&pair.key, &pair.value))
            }
        }
    }
}

/// Returns the pairs of a map of either kind; `None` for other values.
pub fn pairs_of(view: AnyView<'_>) -> Option<Pairs<'_>> {
    if !matches!(view.type_index(), index::MAP | index::DICT) {
        return None;
    }
    // SAFETY: a map, which the view keeps alive; a dict is read under its lock.
    let table = unsafe { MapTable::of(view.as_raw().ptr().cast()) };
    Some(Pairs(match view.type_index() {
        index::MAP => PairSource::Borrowed(table, PhantomData),
        _ => PairSource::Copied(table.run_locked(|| table.copied_pairs())),
    }))
}

/// A cursor over a map, which it keeps alive: the state of the iterator functions. If a dict changes between two calls, the cursor
/// continues with the pair at its position, or ends if there is no such pair.
pub(crate) struct MapCursor {
    /// A map or a dict.
    map: ObjectRef,
    /// Position of the current pair; `None` at the end.
    at: Option<u64>,
}

impl MapCursor {
    /// Creates a cursor at the first pair of a map.
    pub(crate) fn of_map(map: Map) -> MapCursor {
        MapCursor::at_start(map.into_object())
    }

    /// Creates a cursor at the first pair of a dict.
    pub(crate) fn of_dict(dict: Dict) -> MapCursor {
        MapCursor::at_start(dict.into_object())
    }

    /// Creates a cursor at the first pair of `map`, which is a map or a dict.
    fn at_start(map: ObjectRef) -> MapCursor {
        let mut cursor = MapCursor { map, at: None };
        let table = cursor.table();
        cursor.at = table.run_locked(|| table.first());
        cursor
    }

    /// Returns raw access to the map.
    const fn table(&self) -> MapTable {
        // SAFETY: a map, by the two functions that create a cursor, and the cursor keeps it alive; a dict is read under its lock.
        unsafe { MapTable::of(self.map.as_ptr().cast()) }
    }

    /// Returns the position of the cursor, unless the map changed and has no pair there. For a dict, the caller has exclusive access.
    fn position(&self) -> Option<u64> {
        self.at.filter(|&at| self.table().is_filled(at))
    }

    /// Returns the key at the cursor; `None` at the end.
    pub(crate) fn key(&self) -> Option<Any> {
        self.pair().map(|pair| pair.key)
    }

    /// Returns the value at the cursor; `None` at the end.
    pub(crate) fn value(&self) -> Option<Any> {
        self.pair().map(|pair| pair.value)
    }

    /// Returns a copy of the pair at the cursor.
    fn pair(&self) -> Option<Pair> {
        self.table().run_locked(|| {
            let at = self.position()?;
            // SAFETY: a pair is at the position (`position`), and nothing changes the map meanwhile (`settled`).
            let pair = unsafe { self.table().pair_at(at) };
            // SAFETY: there is a pair, by `position`.
            Some(unsafe { &*pair }.copy())
        })
    }

    /// Advances the cursor. Returns false at the end.
    pub(crate) fn advance(&mut self) -> bool {
        let table = self.table();
        self.at = table.run_locked(|| {
            let at = self.position()?;
            // SAFETY: a pair is at the position (`position`), and nothing changes the map meanwhile (`settled`).
            unsafe { table.next(at) }
        });
        self.at.is_some()
    }
}
