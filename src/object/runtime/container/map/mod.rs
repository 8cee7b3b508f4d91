//! Maps: [`Map`] (copied when changed) and [`Dict`] (changed in place). Inlined C++ reads their tables.
//!
//! | bytes   | field                                                          | rule   |
//! |---------|----------------------------------------------------------------|--------|
//! | 24..32  | address of the pairs (small) or blocks (dense)                 | OBJ-05 |
//! | 32..40  | number of pairs                                                | OBJ-05 |
//! | 40..48  | number of slots; bit 63 says small                             | OBJ-05 |
//! | 48..56  | deleter of the memory at that address; null if it is the object's | OBJ-05 |
//! | 56..    | small: pairs of cells, in order of insertion                   | OBJ-06 |
//! | 56..60  | dense: shift of the Fibonacci hash                             | OBJ-07 |
//! | 64..80  | dense: first and last slot in order of insertion               | OBJ-07 |
//!
//! A dense block is 16 bytes of marks and 16 items of 48 bytes: key, value, previous slot, next slot.

mod access_guard;
mod access_mode;
mod bulk;
mod chain;
mod grow;
mod insert;
mod layout;
mod order;
mod pairs;
mod table;

pub(crate) use pairs::MapCursor;
pub use pairs::{PairIter, Pairs, pairs_of};

use crate::function::{Error, ErrorKind, Result, borrowed};
use crate::object::format::key_hash::{UNTRUSTED_CHAIN, table_size};
use crate::value::header::Ref;
use crate::value::{Any, AnyView, Schema, index};
use access_guard::{Purpose, Stay};
use access_mode::Holders;
use grow::replace_in;
use insert::insert_all;
use layout::{ANY_CHAIN, DictKind, MapKind, Pair, SMALL_MAX};
use table::MapTable;

/// Returns the KeyError for a missing key, with upstream's text for both kinds of map.
#[cold]
fn missing() -> Error {
    Error::new(ErrorKind::Key, "key is not in Map")
}

/// Defines the common part of maps and dicts. `$index` is the index of the type, `$other` that of the kind that converts to it, and
/// `$schema` its name in the metadata of functions.
macro_rules! map_type {
    ($type:ident, $kind:ident, $index:expr, $schema:expr, $other:expr) => {
        impl $type {
            /// Creates an empty small map with room for two pairs (OBJ-06).
            #[allow(
                clippy::new_without_default,
                reason = "it allocates, which a default is not expected to do"
            )]
            pub fn new() -> $type {
                // SAFETY: a fresh map.
                unsafe { $type::of(MapTable::small($index, 2)) }
            }

            /// Creates a map by setting `pairs` one after another. No other thread can reach it before it is complete, so nothing waits.
            pub(crate) fn grown(pairs: &mut dyn Iterator<Item = (Any, Any)>) -> Result<$type> {
                // SAFETY: a fresh map.
                let table = unsafe { insert_all(MapTable::small($index, 2), ANY_CHAIN, pairs) }?;
                // SAFETY: a fresh map, which `filled` returns.
                Ok(unsafe { $type::of(table) })
            }

            /// Takes ownership of a table.
            ///
            /// # Safety
            /// The table is a fresh one of this type. Its only reference belongs to the caller, and moves to the result.
            unsafe fn of(table: MapTable) -> $type {
                // SAFETY: the one reference of a fresh object, by this contract.
                $type(unsafe { Ref::from_raw(table.as_ptr().cast()) })
            }

            /// Returns raw access to the map, valid while the handle is borrowed.
            const fn table(&self) -> MapTable {
                // SAFETY: a map, which this handle keeps alive. Others change a `Map` only if its handle is the only one; a `Dict` is read
                // under its lock or in a stay.
                unsafe { MapTable::of(self.0.as_ptr().cast()) }
            }

            /// Returns the number of pairs. A dict may change it at any time.
            pub fn len(&self) -> usize {
                self.table().run_locked(|| self.table().size() as usize)
            }

            /// Returns whether the map has no pairs.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Returns the value of `key`.
            ///
            /// # Errors
            ///
            /// Returns the error that the hash or equality hook of a key raises. For a dict, returns a RuntimeError if waiting for a thread
            /// that changes it could last forever.
            pub fn get(&self, key: AnyView<'_>) -> Result<Option<Any>> {
                self.table().look_up(key)
            }

            /// Returns the value of `key`, or a KeyError.
            ///
            /// # Errors
            ///
            /// Returns a KeyError if the key is missing, and the errors of `get`.
            pub fn at(&self, key: AnyView<'_>) -> Result {
                self.get(key)?.ok_or_else(missing)
            }
        }

        crate::value::handle_value!($type, $kind, $schema, |view: AnyView<'_>| {
            if view.type_index() != $other {
                return None;
            }
            // The other kind of map converts by copying.
            let pairs = pairs_of(view)?;
            let mut pairs = pairs
                .iter()
                .map(|(key, value)| (key.clone(), value.clone()));
            $type::grown(&mut pairs).ok()
        });
        crate::value::handle_object!($type);
    };
}

/// An immutable map. A change creates a new map if the old one has another holder.
#[derive(Clone)]
#[repr(transparent)]
pub struct Map(Ref<MapKind>);

impl std::fmt::Debug for Map {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// A mutable map that all holders share, on any thread. Each operation is atomic for other threads. The hash or equality hook of a key
/// gets a RuntimeError in two cases: if it changes the dict in which the key is looked up, or if it needs a dict that another thread is
/// using.
#[derive(Clone)]
#[repr(transparent)]
pub struct Dict(Ref<DictKind>);

impl std::fmt::Debug for Dict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.to_vec()).finish()
    }
}

map_type!(
    Map,
    MapKind,
    index::MAP,
    Schema::plain("ffi.Map"),
    index::DICT
);
// The schema that C++ declares for a dict that a function changes.
map_type!(
    Dict,
    DictKind,
    index::DICT,
    Schema::with("ffi.Dict", &[Any::schema, Any::schema]),
    index::MAP
);
borrowed!(Map, MapKind, index::MAP);
borrowed!(Dict, DictKind, index::DICT);

impl Map {
    /// Iterates over the pairs in the order of OBJ-08: by insertion. In a dense map, a key that was set again is last.
    pub fn iter(&self) -> PairIter<'_> {
        // SAFETY: this handle is borrowed during the iteration, so the map lives, and `Map::set` creates another one.
        unsafe { self.table().borrowed() }
    }

    /// Creates a map of pairs in order. If a key repeats, the last pair counts. Four or more pairs create a dense map immediately
    /// (OBJ-06).
    ///
    /// # Errors
    ///
    /// Returns the error that the hash or equality hook of a key raises.
    pub fn from_pairs(pairs: Vec<(Any, Any)>) -> Result<Map> {
        Map::from_pairs_bounded(ANY_CHAIN, pairs)
    }

    /// Like [`Map::from_pairs`], for keys from a file or a text.
    pub(crate) fn from_untrusted(pairs: Vec<(Any, Any)>) -> Result<Map> {
        Map::from_pairs_bounded(UNTRUSTED_CHAIN, pairs)
    }

    /// Like [`Map::from_pairs`], with at most `longest` keys in a chain (OBJ-39).
    fn from_pairs_bounded(longest: u64, pairs: Vec<(Any, Any)>) -> Result<Map> {
        let count = pairs.len() as u64;
        // OBJ-05, OBJ-06: as many slots as pairs, and at least two, as in upstream. Three pairs take three slots.
        let table = if count < SMALL_MAX {
            MapTable::small(index::MAP, count)
        } else {
            let (slots, shift) = table_size(count);
            MapTable::dense(index::MAP, slots, shift)
        };
        // SAFETY: a fresh map.
        let table = unsafe { insert_all(table, longest, &mut pairs.into_iter()) }?;
        // SAFETY: a fresh map, which `filled` returns.
        Ok(unsafe { Map::of(table) })
    }

    /// Sets `key` to `value` in this handle. Other holders keep the old map.
    ///
    /// # Errors
    ///
    /// Returns the error that the hash or equality hook of a key raises. Returns an InternalError with OBJ-07 if another key no longer has
    /// the hash that it was inserted with. After an error this handle is unchanged.
    pub fn set(&mut self, key: impl Into<Any>, value: impl Into<Any>) -> Result<()> {
        self.set_bounded(ANY_CHAIN, key.into(), value.into())
    }

    /// Like [`Map::set`], for a key from a file or a text.
    pub(crate) fn set_untrusted(
        &mut self,
        key: impl Into<Any>,
        value: impl Into<Any>,
    ) -> Result<()> {
        self.set_bounded(UNTRUSTED_CHAIN, key.into(), value.into())
    }

    /// Like [`Map::set`], with at most `longest` keys in a chain.
    fn set_bounded(&mut self, longest: u64, key: Any, value: Any) -> Result<()> {
        // Copies before anything changes, because other holders on any thread may be reading this map.
        if !self.as_object().is_unique() {
            let copy = self.table().copy()?;
            // SAFETY: a fresh map.
            *self = unsafe { Map::of(copy) };
        }
        let mut fresh = Pair::of(key, value);
        // SAFETY: a map with one reference, this one, which is mutably borrowed.
        if let Some(next) = unsafe { self.table().insert(longest, &mut fresh, Holders::One) }? {
            // SAFETY: as above; the insertion returned `next`.
            let table = unsafe { replace_in(self.table(), next) };
            // SAFETY: a fresh map, which the insertion created.
            *self = unsafe { Map::of(table) };
        }
        Ok(())
    }
}

impl Dict {
    /// Returns the current pairs in order, with a new reference to each part, because the dict may change afterwards.
    pub fn to_vec(&self) -> Vec<(Any, Any)> {
        self.table().run_locked(|| self.table().copied_pairs())
    }

    /// Sets `key` to `value` for all holders.
    ///
    /// # Errors
    ///
    /// Returns the error that the hash or equality hook of a key raises. Returns a RuntimeError if the hook of a key changes the dict in
    /// which the key is looked up, or if waiting for another thread could last forever (OBJ-02). Returns an InternalError with OBJ-07 if
    /// another key no longer has the hash that it was inserted with. After an error the dict is unchanged.
    pub fn set(&self, key: impl Into<Any>, value: impl Into<Any>) -> Result<()> {
        self.set_bounded(ANY_CHAIN, key.into(), value.into())
    }

    /// Like [`Dict::set`], for a key from a file or a text.
    pub(crate) fn set_untrusted(&self, key: impl Into<Any>, value: impl Into<Any>) -> Result<()> {
        self.set_bounded(UNTRUSTED_CHAIN, key.into(), value.into())
    }

    /// Like [`Dict::set`], with at most `longest` keys in a chain.
    fn set_bounded(&self, longest: u64, key: Any, value: Any) -> Result<()> {
        let table = self.table();
        // Dropped last, after this thread has left the dict.
        let mut fresh = Pair::of(key, value);
        // SAFETY: the map is a dict.
        if unsafe { table.insert_at_once(longest, &mut fresh) }? {
            return Ok(());
        }
        self.put_slowly(longest, &mut fresh)
    }

    /// Handles the cases of [`Dict::set_bounded`] that run hooks or replace the table.
    #[inline(never)]
    fn put_slowly(&self, longest: u64, fresh: &mut Pair) -> Result<()> {
        let table = self.table();
        let stay = Stay::begin(table.as_ptr(), Purpose::Change)?;
        // SAFETY: this thread stays at the dict to change it.
        let inserted = unsafe { table.insert(longest, fresh, Holders::Several) }?;
        // A dict keeps its address, because all holders refer to it. It takes over the contents of the larger table instead.
        let left = inserted.map(|next| {
            table.run_locked(|| {
                // SAFETY: the insertion returned `next`, and this thread has exclusive access to the dict (`settled`).
                let next = unsafe { replace_in(table, next) };
                // SAFETY: the insertion created that table, so it is fresh; this thread has exclusive access to the dict (`settled`).
                (next, unsafe { table.become_table(next) })
            })
        });
        // Values are dropped after the stay, because their destructors may use this dict again.
        drop(stay);
        if let Some((empty, gone)) = left {
            // SAFETY: the map that the insertion created; the dict has its pairs.
            unsafe { empty.dispose() };
            drop(gone);
        }
        Ok(())
    }

    /// Removes `key`. Returns false if it was not there.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Dict::set`].
    pub fn remove(&self, key: AnyView<'_>) -> Result<bool> {
        let stay = Stay::begin(self.table().as_ptr(), Purpose::Change)?;
        let gone = match self.table().find(key)? {
            // SAFETY: `find` returned the position, and this thread stays at the dict to change it.
            Some(at) => Some(unsafe { self.table().erase(at) }?),
            None => None,
        };
        drop(stay);
        Ok(gone.is_some())
    }

    /// Removes all pairs.
    ///
    /// # Errors
    ///
    /// Returns a RuntimeError if the hook of a key that is looked up in this dict calls this, or if waiting for another thread could last
    /// forever.
    pub fn clear(&self) -> Result<()> {
        let stay = Stay::begin(self.table().as_ptr(), Purpose::Change)?;
        // SAFETY: this thread has exclusive access to the dict (`settled`).
        let gone = self.table().run_locked(|| unsafe { self.table().take() });
        drop(stay);
        drop(gone);
        Ok(())
    }
}

/// Looks `key` up in a map of either kind.
///
/// # Errors
///
/// Returns the same errors as [`Dict::get`]. A value that is not a map has no keys, which is not an error.
pub fn lookup_in(map: AnyView<'_>, key: AnyView<'_>) -> Result<Option<Any>> {
    if !matches!(map.type_index(), index::MAP | index::DICT) {
        return Ok(None);
    }
    // SAFETY: a map, which the view keeps alive; `look_up` locks a dict.
    unsafe { MapTable::of(map.as_raw().ptr().cast()) }.look_up(key)
}

/// Replaces the value of a key in place, in a map of either kind, and returns the old value. Returns `None` if the key is missing.
///
/// # Safety
/// A [`Map`] has no other holder, and nothing borrows its pairs.
#[cfg(feature = "frontend")]
pub(crate) unsafe fn swap_value(
    map: &crate::value::ObjectRef,
    key: AnyView<'_>,
    value: Any,
) -> Result<Option<Any>> {
    if !matches!(map.type_index(), index::MAP | index::DICT) {
        return Ok(None);
    }
    // SAFETY: a map, which the reference keeps alive; this thread stays at a dict below, before anything is read.
    let table = unsafe { MapTable::of(map.as_ptr().cast()) };
    let is_dict = map.type_index() == index::DICT;
    let _stay = if is_dict {
        Some(Stay::begin(table.as_ptr(), Purpose::Change)?)
    } else {
        None
    };
    let Some(at) = table.find(key)? else {
        return Ok(None);
    };
    let old = table.run_locked(|| {
        // SAFETY: `find` returned the position, and nothing changed the map since (`Stay`, or this contract).
        let pair = unsafe { table.pair_at(at) };
        // SAFETY: there is a pair at a position that `find` returned; this thread has exclusive access now.
        std::mem::replace(unsafe { &mut (*pair).value }, value)
    });
    Ok(Some(old))
}

/// Returns the number of pairs of a map of either kind.
pub(crate) fn pair_count(view: AnyView<'_>) -> usize {
    match view.type_index() {
        index::MAP | index::DICT => {
            // SAFETY: a map, which the view keeps alive; a dict is read under its lock.
            let table = unsafe { MapTable::of(view.as_raw().ptr().cast()) };
            table.run_locked(|| table.size() as usize)
        }
        _ => 0,
    }
}
