//! Maps: [`Map`] (copied when changed) and [`Dict`] (changed in place), with the table that inlined C++ reads.
//!
//! | bytes   | field                                                          | rule   |
//! |---------|----------------------------------------------------------------|--------|
//! | 24..32  | address of the pairs (small) or blocks (dense)                 | OBJ-05 |
//! | 32..40  | number of pairs                                                | OBJ-05 |
//! | 40..48  | number of slots; bit 63 says small                             | OBJ-05 |
//! | 48..56  | frees the memory behind the address; null when it is the object's | OBJ-05 |
//! | 56..    | small: pairs of cells, in order of insertion                   | OBJ-06 |
//! | 56..60  | dense: shift of the Fibonacci hash                             | OBJ-07 |
//! | 64..80  | dense: first and last slot in order of insertion               | OBJ-07 |
//!
//! A dense block is 16 bytes of marks and 16 items of 48 bytes: key, value, previous slot, next slot.

mod chain;
mod grow;
mod holders;
mod insert;
mod layout;
mod order;
mod pairs;
mod stay;
mod table;
mod whole;

pub(crate) use pairs::MapCursor;
pub use pairs::{PairIter, Pairs, pairs_of};

use crate::function::{Error, ErrorKind, Result, borrowed};
use crate::object::format::key_hash::{UNTRUSTED_CHAIN, table_size};
use crate::value::header::{ObjectRef, Ref};
use crate::value::{Any, AnyView, Argument, Schema, VAL_10, index};
use grow::replace_in;
use holders::Holders;
use insert::filled;
use layout::{ANY_CHAIN, DictKind, MapKind, Pair, SMALL_MAX};
use stay::{Purpose, Stay};
use table::MapTable;

/// The KeyError for a key that is not there, with upstream's text for both kinds of map.
#[cold]
fn missing() -> Error {
    Error::new(ErrorKind::Key, "key is not in Map")
}

/// What maps and dicts have in common. `$index` is the type's own, `$other` that of the kind that converts to it, `$schema` what
/// metadata of functions call it.
macro_rules! map_type {
    ($type:ident, $kind:ident, $index:expr, $schema:expr, $other:expr) => {
        impl $type {
            /// An empty one, small, with room for two pairs (OBJ-06).
            #[allow(
                clippy::new_without_default,
                reason = "it allocates, which a default is not expected to do"
            )]
            pub fn new() -> $type {
                // SAFETY: a fresh map.
                unsafe { $type::of(MapTable::small($index, 2)) }
            }

            /// What setting one of `pairs` after the other makes. Until it is whole nothing else has it, so no thread is
            /// waited for.
            pub(crate) fn grown(pairs: &mut dyn Iterator<Item = (Any, Any)>) -> Result<$type> {
                // SAFETY: a fresh map.
                let table = unsafe { filled(MapTable::small($index, 2), ANY_CHAIN, pairs) }?;
                // SAFETY: a fresh map, which `filled` returns.
                Ok(unsafe { $type::of(table) })
            }

            /// # Safety
            /// The table is a fresh one of this type: its one reference is the caller's, and comes to the result.
            unsafe fn of(table: MapTable) -> $type {
                // SAFETY: the one reference of a fresh object, by this contract.
                $type(unsafe { Ref::from_raw(table.as_ptr().cast()) })
            }

            /// Raw access to the map, for as long as the handle is borrowed.
            const fn table(&self) -> MapTable {
                // SAFETY: a map, which this handle keeps alive. Others change a `Map` only where its handle is the only one; a
                // `Dict` is read under its lock or in a stay.
                unsafe { MapTable::of(self.0.as_ptr().cast()) }
            }

            /// Number of pairs; of a dict, as it is now.
            pub fn len(&self) -> usize {
                self.table().settled(|| self.table().size() as usize)
            }

            /// Whether there is none.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// The value of `key`.
            ///
            /// # Errors
            ///
            /// What the hash or the equality of a key of its own type raises; of a dict, a RuntimeError where waiting for a
            /// thread that changes it could last for ever.
            pub fn get(&self, key: AnyView<'_>) -> Result<Option<Any>> {
                self.table().look_up(key)
            }

            /// The value of `key`, or a KeyError.
            ///
            /// # Errors
            ///
            /// A KeyError when the key is not there; what `get` returns.
            pub fn at(&self, key: AnyView<'_>) -> Result {
                self.get(key)?.ok_or_else(missing)
            }

            /// The object, with the reference that this handle held.
            pub fn into_object(self) -> ObjectRef {
                self.0.into_object()
            }

            /// The object, borrowed.
            pub const fn as_object(&self) -> &ObjectRef {
                self.0.as_object()
            }

            /// The map that `object` is, or `object` back.
            ///
            /// # Errors
            ///
            /// The object itself when it is of another type.
            pub fn from_object(object: ObjectRef) -> std::result::Result<$type, ObjectRef> {
                object.downcast().map($type)
            }
        }

        impl From<$type> for Any {
            fn from(value: $type) -> Any {
                value.0.into()
            }
        }

        impl<'a> From<&'a $type> for AnyView<'a> {
            fn from(value: &'a $type) -> AnyView<'a> {
                AnyView::from(value.as_object())
            }
        }

        crate::value::try_from_any!($type);

        impl Argument for $type {
            const RULE: crate::rule::Rule = VAL_10;

            fn schema() -> Schema {
                $schema
            }

            fn try_from_view(view: AnyView<'_>) -> Option<$type> {
                if let Some(found) = Ref::<$kind>::try_from_view(view) {
                    return Some($type(found));
                }
                if view.type_index() != $other {
                    return None;
                }
                // The other map converts by copying.
                let pairs = pairs_of(view)?;
                let mut pairs = pairs
                    .iter()
                    .map(|(key, value)| (key.clone(), value.clone()));
                $type::grown(&mut pairs).ok()
            }
        }
    };
}

/// An immutable map; changing it makes a new one where it has another holder.
#[derive(Clone)]
#[repr(transparent)]
pub struct Map(Ref<MapKind>);

/// A mutable map, shared by all who hold it, on any thread: each operation happens at once for all others. A hash or an
/// equality of a key's type that changes the dict which the key is looked up in, or that needs another dict which is in use
/// on another thread, gets a RuntimeError.
#[derive(Clone)]
#[repr(transparent)]
pub struct Dict(Ref<DictKind>);

map_type!(
    Map,
    MapKind,
    index::MAP,
    Schema::plain("ffi.Map"),
    index::DICT
);
// As C++ declares a dict that a function changes.
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
    /// The pairs, in the order of OBJ-08: as they were inserted, a key that was set again last where the map is dense.
    pub fn iter(&self) -> PairIter<'_> {
        // SAFETY: this handle is borrowed meanwhile, so the map lives, and `Map::set` makes another one.
        unsafe { self.table().borrowed() }
    }

    /// A map of pairs in order; later ones win. Four and more are dense at once (OBJ-06).
    ///
    /// # Errors
    ///
    /// What the hash or the equality of a key of its own type raises.
    pub fn from_pairs(pairs: Vec<(Any, Any)>) -> Result<Map> {
        Map::within(ANY_CHAIN, pairs)
    }

    /// [`Map::from_pairs`] for keys that a file or a text chose.
    pub(crate) fn from_untrusted(pairs: Vec<(Any, Any)>) -> Result<Map> {
        Map::within(UNTRUSTED_CHAIN, pairs)
    }

    /// [`Map::from_pairs`] with at most `longest` keys in a chain (OBJ-39).
    fn within(longest: u64, pairs: Vec<(Any, Any)>) -> Result<Map> {
        let count = pairs.len() as u64;
        // OBJ-05, OBJ-06: as many slots as pairs, and at least two, as upstream makes it: three pairs take three slots.
        let table = if count < SMALL_MAX {
            MapTable::small(index::MAP, count)
        } else {
            let (slots, shift) = table_size(count);
            MapTable::dense(index::MAP, slots, shift)
        };
        // SAFETY: a fresh map.
        let table = unsafe { filled(table, longest, &mut pairs.into_iter()) }?;
        // SAFETY: a fresh map, which `filled` returns.
        Ok(unsafe { Map::of(table) })
    }

    /// Sets `key` to `value` in this handle; other holders keep what they have.
    ///
    /// # Errors
    ///
    /// What the hash or the equality of a key of its own type raises; an InternalError with OBJ-07 where another key hashes otherwise
    /// than when it was inserted. This handle is as it was.
    pub fn set(&mut self, key: impl Into<Any>, value: impl Into<Any>) -> Result<()> {
        self.put(ANY_CHAIN, key.into(), value.into())
    }

    /// [`Map::set`] for a key that a file or a text chose.
    pub(crate) fn set_untrusted(
        &mut self,
        key: impl Into<Any>,
        value: impl Into<Any>,
    ) -> Result<()> {
        self.put(UNTRUSTED_CHAIN, key.into(), value.into())
    }

    /// [`Map::set`] with at most `longest` keys in a chain.
    fn put(&mut self, longest: u64, key: Any, value: Any) -> Result<()> {
        // A copy before anything changes: other holders, on any thread, may be reading this map.
        if !self.as_object().is_unique() {
            let copy = self.table().copy()?;
            // SAFETY: a fresh map.
            *self = unsafe { Map::of(copy) };
        }
        let mut fresh = Pair::of(key, value);
        // SAFETY: a map with one reference, this one, which is borrowed to be changed.
        if let Some(next) = unsafe { self.table().insert(longest, &mut fresh, Holders::One) }? {
            // SAFETY: as above; `next` is of the insertion.
            let table = unsafe { replace_in(self.table(), next) };
            // SAFETY: a fresh map, which the insertion made.
            *self = unsafe { Map::of(table) };
        }
        Ok(())
    }
}

impl Dict {
    /// The pairs in order as they are now, each part counted once more: the dict may change while they are looked at.
    pub fn to_vec(&self) -> Vec<(Any, Any)> {
        self.table().settled(|| self.table().copied_pairs())
    }

    /// Sets `key` to `value` for all holders.
    ///
    /// # Errors
    ///
    /// What the hash or the equality of a key of its own type raises; a RuntimeError where the hook of a key changes the dict
    /// that it is looked up in, and where waiting for another thread could last for ever (OBJ-02); an InternalError with OBJ-07
    /// where another key hashes otherwise than when it was inserted. The dict is as it was.
    pub fn set(&self, key: impl Into<Any>, value: impl Into<Any>) -> Result<()> {
        self.put(ANY_CHAIN, key.into(), value.into())
    }

    /// [`Dict::set`] for a key that a file or a text chose.
    pub(crate) fn set_untrusted(&self, key: impl Into<Any>, value: impl Into<Any>) -> Result<()> {
        self.put(UNTRUSTED_CHAIN, key.into(), value.into())
    }

    /// [`Dict::set`] with at most `longest` keys in a chain.
    fn put(&self, longest: u64, key: Any, value: Any) -> Result<()> {
        let table = self.table();
        // Dropped last, when this thread left the dict.
        let mut fresh = Pair::of(key, value);
        // SAFETY: the map is a dict.
        if unsafe { table.insert_at_once(longest, &mut fresh) }? {
            return Ok(());
        }
        self.put_slowly(longest, &mut fresh)
    }

    /// [`Dict::put`] where hooks run, or another table takes the place of this.
    #[inline(never)]
    fn put_slowly(&self, longest: u64, fresh: &mut Pair) -> Result<()> {
        let table = self.table();
        let stay = Stay::at(table.as_ptr(), Purpose::Change)?;
        // SAFETY: this thread stays at the dict to change it.
        let inserted = unsafe { table.insert(longest, fresh, Holders::Several) }?;
        // A dict keeps its address, which all holders have, so it takes over the contents of the larger table.
        let left = inserted.map(|next| {
            table.settled(|| {
                // SAFETY: `next` is of the insertion, and this thread is alone with the dict (`settled`).
                let next = unsafe { replace_in(table, next) };
                // SAFETY: the insertion made that table, so it is fresh; this thread is alone with the dict (`settled`).
                (next, unsafe { table.become_table(next) })
            })
        });
        // Values end after the stay: what ends with one may come back to this dict.
        drop(stay);
        if let Some((empty, gone)) = left {
            // SAFETY: the map that the insertion made; the dict has its pairs.
            unsafe { empty.dispose() };
            drop(gone);
        }
        Ok(())
    }

    /// Removes `key`; false when it was not there.
    ///
    /// # Errors
    ///
    /// As [`Dict::set`].
    pub fn remove(&self, key: AnyView<'_>) -> Result<bool> {
        let stay = Stay::at(self.table().as_ptr(), Purpose::Change)?;
        let gone = match self.table().find(key)? {
            // SAFETY: `find` returned the position, and this thread stays at the dict to change it.
            Some(at) => Some(unsafe { self.table().erase(at) }?),
            None => None,
        };
        drop(stay);
        Ok(gone.is_some())
    }

    /// Removes everything.
    ///
    /// # Errors
    ///
    /// A RuntimeError where the hook of a key calls this: of a key that is looked up in this dict, and where waiting for another
    /// thread could last for ever.
    pub fn clear(&self) -> Result<()> {
        let stay = Stay::at(self.table().as_ptr(), Purpose::Change)?;
        // SAFETY: this thread is alone with the dict (`settled`).
        let gone = self.table().settled(|| unsafe { self.table().take() });
        drop(stay);
        drop(gone);
        Ok(())
    }
}

/// Looks `key` up in a map of either kind.
///
/// # Errors
///
/// As [`Dict::get`]. A value that is no map has no keys, and that is no error.
pub fn lookup_in(map: AnyView<'_>, key: AnyView<'_>) -> Result<Option<Any>> {
    if !matches!(map.type_index(), index::MAP | index::DICT) {
        return Ok(None);
    }
    // SAFETY: a map, which the view keeps alive; `look_up` locks a dict.
    unsafe { MapTable::of(map.as_raw().ptr().cast()) }.look_up(key)
}

/// Replaces the value of a key in a map of either kind, in place, and returns the old one; `None` for a key that is not there.
///
/// # Safety
/// A [`Map`] has no other holder, and nothing borrows its pairs.
#[cfg(feature = "frontend")]
pub(crate) unsafe fn swap_value(
    map: &ObjectRef,
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
        Some(Stay::at(table.as_ptr(), Purpose::Change)?)
    } else {
        None
    };
    let Some(at) = table.find(key)? else {
        return Ok(None);
    };
    let old = table.settled(|| {
        // SAFETY: `find` returned the position, and no one changed the map since (`Stay`, or this contract).
        let pair = unsafe { table.pair_at(at) };
        // SAFETY: there is a pair at a position that `find` returned; this thread has the map alone now.
        std::mem::replace(unsafe { &mut (*pair).value }, value)
    });
    Ok(Some(old))
}

/// Number of pairs of a map of either kind.
pub(crate) fn pair_count(view: AnyView<'_>) -> usize {
    match view.type_index() {
        index::MAP | index::DICT => {
            // SAFETY: a map, which the view keeps alive; a dict is read under its lock.
            let table = unsafe { MapTable::of(view.as_raw().ptr().cast()) };
            table.settled(|| table.size() as usize)
        }
        _ => 0,
    }
}
