//! Inserting: in place, or into a table that takes the place of this one (OBJ-06, OBJ-08).

use super::chain::KeyPosition;
use super::layout::{ANY_CHAIN, BODY, EMPTY, MapItem, NOWHERE, Pair, SMALL_MAX};
use super::table::{MapTable, is_plain};
use crate::function::Result;
use crate::object::container::turnstile::{Turn, turn};
use crate::object::format::key_hash::table_size;
use crate::object::hash::any_hash;
use crate::value::Any;

/// A table that takes the place of another.
pub(super) struct Successor {
    pub(super) table: MapTable,
    /// The pairs are those of the other bit for bit, so that the other has to forget them.
    pub(super) moved: bool,
}

/// Who reaches a map that changes.
#[derive(Clone, Copy)]
pub(super) enum Holders {
    /// The caller alone.
    One,
    /// Other threads too, at a dict; the caller stays at it.
    Several,
}

impl Holders {
    /// What the change happens under.
    #[inline]
    pub(super) fn turn(self, table: MapTable) -> Option<Turn> {
        matches!(self, Holders::Several).then(|| turn(table.as_ptr()))
    }
}

impl MapTable {
    /// Inserts or replaces, and makes no chain longer than `longest`. `None` when done in place; otherwise the map that takes
    /// this one's place, to which all pairs have moved or been copied.
    ///
    /// # Errors
    ///
    /// As [`MapTable::place`]; the map is as it was.
    ///
    /// # Safety
    /// With [`Holders::One`] the caller has the map alone; with [`Holders::Several`] it stays at the dict to change it.
    pub(super) unsafe fn insert(
        self,
        longest: u64,
        fresh: &mut Pair,
        holders: Holders,
    ) -> Result<Option<Successor>> {
        if !self.is_small() {
            // SAFETY: the map is dense: `is_small` is false. The rest is this contract.
            return unsafe { self.insert_dense(longest, fresh, holders) };
        }
        let full = self.size() == self.slots();
        if full && self.slots() >= SMALL_MAX {
            // Even an update turns a full small map dense (OBJ-06).
            let dense = self.dense_copy()?;
            // SAFETY: a fresh map, which is dense.
            let inserted = unsafe { dense.insert_dense(longest, fresh, Holders::One) };
            // SAFETY: `inserted` is of that fresh map.
            return unsafe { dense.succeeded(inserted) };
        }
        let known = self.find(fresh.key.view())?;
        if known.is_some() || !full {
            let _turn = holders.turn(self);
            // SAFETY: `find` looked for this key in this small map, which did not change since and has room for a pair more.
            unsafe { self.put_small(known, fresh) };
            return Ok(None);
        }
        let grown = self.small_copy((self.slots() * 2).clamp(2, SMALL_MAX));
        // SAFETY: a fresh map.
        let inserted = unsafe { grown.insert(longest, fresh, Holders::One) };
        // SAFETY: `inserted` is of that fresh map.
        unsafe { grown.succeeded(inserted) }
    }

    /// Puts the value of `fresh` in the place of the one at `known`, or `fresh` behind the last pair.
    ///
    /// # Safety
    /// The map is small, the caller has it alone, `known` is where the key of `fresh` is in it, and where it is nowhere the map
    /// is not full.
    #[inline]
    unsafe fn put_small(self, known: Option<u64>, fresh: &mut Pair) {
        if let Some(at) = known {
            // SAFETY: a pair of this small map is there, by this contract, and the caller has the map alone.
            let value = unsafe { &mut (*self.pair(at)).value };
            return std::mem::swap(value, &mut fresh.value);
        }
        let end = self.pair(self.size());
        // SAFETY: the map is small and not full, by this contract, so behind its last pair there is room for one (OBJ-06).
        unsafe { end.write(fresh.moved_out()) };
        // SAFETY: a live map, which the caller has alone; the pair that is counted has just been written.
        unsafe { (*self.as_ptr()).body.size += 1 };
    }

    /// [`MapTable::insert`] into a dict that others reach, under its lock alone: where no thread stays at it, and nothing that
    /// this would do calls a hook or makes another table. Otherwise false, and nothing happened.
    ///
    /// # Errors
    ///
    /// As [`MapTable::place`].
    ///
    /// # Safety
    /// The map is a dict: others who reach it take their turn.
    pub(super) unsafe fn insert_at_once(self, longest: u64, fresh: &mut Pair) -> Result<bool> {
        let key = fresh.key.view();
        if !is_plain(key) {
            return Ok(false);
        }
        let turn = turn(self.as_ptr());
        if !turn.is_free() {
            return Ok(false);
        }
        if self.is_small() {
            let full = self.size() == self.slots();
            // A full small map turns dense, even for an update (OBJ-06).
            let known = match full && self.slots() >= SMALL_MAX {
                true => return Ok(false),
                false => self.find(key)?,
            };
            if known.is_none() && full {
                return Ok(false);
            }
            // SAFETY: `find` looked for this key in this small map, under the lock, and there is room for a pair more.
            unsafe { self.put_small(known, fresh) };
            return Ok(true);
        }
        let hash = any_hash(key)?;
        // SAFETY: the map is dense: `is_small` is false.
        let home = unsafe { self.home(hash) };
        // SAFETY: a home is a slot of this dense map (OBJ-07).
        let mark = unsafe { self.mark_of(home) };
        if mark & BODY != 0 && mark != EMPTY {
            // SAFETY: a slot in the body of a chain is filled (OBJ-07), and this thread is alone with the map.
            let other = unsafe { self.key_of(home) };
            if !is_plain(other) {
                return Ok(false);
            }
        }
        // SAFETY: the home of a slot of this dense map.
        let place = unsafe { self.place(longest, home, key)? };
        // SAFETY: the place was found in this map under the lock that is still held.
        Ok(unsafe { self.put_dense(place, fresh) })
    }

    /// This table, a copy, after an insertion into it; it ends where that failed.
    ///
    /// # Safety
    /// The map is fresh, and `inserted` is what an insertion into it returned.
    unsafe fn succeeded(self, inserted: Result<Option<Successor>>) -> Result<Option<Successor>> {
        match inserted {
            Ok(next) => Ok(Some(Successor {
                // SAFETY: both are fresh, by this contract.
                table: unsafe { replace_by(self, next) },
                moved: false,
            })),
            Err(error) => {
                // SAFETY: a fresh map, by this contract.
                unsafe { self.dispose() };
                Err(error)
            }
        }
    }

    /// A small map with the pairs of this small one, and room for `slots`.
    pub(super) fn small_copy(self, slots: u64) -> MapTable {
        let copy = MapTable::small(self.type_index(), slots.max(self.size()));
        for at in 0..self.size() {
            // SAFETY: the first `size` pairs of a small map are filled (OBJ-06).
            let pair = unsafe { &*self.pair(at) };
            // SAFETY: the copy has at least as many slots as there are pairs, and this one is not filled yet.
            unsafe { copy.pair(at).write(pair.copy()) };
            // SAFETY: a fresh map, whose pairs up to this one are written.
            unsafe { (*copy.as_ptr()).body.size = at + 1 };
        }
        copy
    }

    /// A dense map with the pairs of this one.
    fn dense_copy(self) -> Result<MapTable> {
        let (slots, shift) = table_size(self.size().max(SMALL_MAX));
        let mut copy = MapTable::dense(self.type_index(), slots, shift);
        let mut at = self.first();
        while let Some(position) = at {
            // SAFETY: `first` or `next` returned the position; what is copied does not change meanwhile (`Map`, or `Stay` at a
            // dict).
            let pair = unsafe { self.pair_at(position) };
            // SAFETY: there is a pair at such a position.
            let pair = unsafe { &*pair };
            // SAFETY: a fresh map, which is dense.
            match unsafe { copy.insert_dense(ANY_CHAIN, &mut pair.copy(), Holders::One) } {
                // SAFETY: both are fresh, and no one else has seen them.
                Ok(larger) => copy = unsafe { replace_by(copy, larger) },
                Err(error) => {
                    // SAFETY: a fresh map.
                    unsafe { copy.dispose() };
                    return Err(error);
                }
            }
            // SAFETY: `first` or `next` returned the position, and the map did not change since.
            at = unsafe { self.next(position) };
        }
        Ok(copy)
    }

    /// Inserts `fresh`. What the map does not take stays there, and what it returns in exchange comes there, so that all of it
    /// is dropped where the map is whole and no lock is held: what ends with a value may come back to the map.
    ///
    /// # Safety
    /// The map is dense; the rest is the contract of [`MapTable::insert`].
    unsafe fn insert_dense(
        self,
        longest: u64,
        fresh: &mut Pair,
        holders: Holders,
    ) -> Result<Option<Successor>> {
        let hash = any_hash(fresh.key.view())?;
        // SAFETY: a dense map, by this contract.
        let home = unsafe { self.home(hash) };
        // SAFETY: the home of a hash is a slot of this map.
        let place = match unsafe { self.mark_of(home) } {
            // Most often: nothing is compared and nothing moves.
            EMPTY => KeyPosition::Home(home),
            // SAFETY: the home of the key.
            _ => unsafe { self.place(longest, home, fresh.key.view())? },
        };
        let turn = holders.turn(self);
        // SAFETY: nothing changed the map since the place was found (`Stay`, or the caller has it alone).
        if unsafe { self.put_dense(place, fresh) } {
            return Ok(None);
        }
        // The larger map has a lock of its own.
        drop(turn);
        // SAFETY: a dense map, by this contract.
        unsafe { self.rehash(longest, fresh) }.map(Some)
    }

    /// Puts `fresh` where it goes; false, with nothing done, where there is no room.
    ///
    /// # Safety
    /// The place is of the key of `fresh` in this dense map, which did not change since and which the caller has alone.
    #[inline]
    unsafe fn put_dense(self, place: KeyPosition, fresh: &mut Pair) -> bool {
        if let KeyPosition::Known(slot) = place {
            // SAFETY: `place` found the key at this slot of this map, which did not change since.
            unsafe { self.unlink(slot) };
            // SAFETY: the same slot, which has just left the order.
            unsafe { self.link_last(slot) };
            // SAFETY: the slot of a known key is filled, and the caller has the map alone (this contract).
            let value = unsafe { &mut (*self.item(slot)).pair.value };
            std::mem::swap(value, &mut fresh.value);
            return true;
        }
        let room = match place {
            KeyPosition::Home(home) => Some((home, 0)),
            // SAFETY: nothing changed the map since the place was found, and the key is not known.
            place => unsafe { self.make_room(place) },
        };
        let Some((slot, mark)) = room else {
            return false;
        };
        // SAFETY: `make_room` returned the empty slot and its mark.
        unsafe { self.enter(slot, mark, fresh.moved_out()) };
        true
    }

    /// Writes a pair to `slot`, and counts it in.
    ///
    /// # Safety
    /// The slot is an empty one of this dense map, `mark` is what `make_room` returned with it, and the caller has the map alone.
    #[inline]
    unsafe fn enter(self, slot: u64, mark: u8, pair: Pair) {
        // Both addresses before the first write: to the compiler it may change what they are made of.
        let (item, marked) = (self.item(slot), self.mark(slot));
        // SAFETY: a live map, by the invariant of `MapTable`; a dense one, by this contract, has the field (OBJ-07).
        let prev = unsafe { (*self.as_ptr()).order.tail };
        let next = NOWHERE;
        // SAFETY: an empty slot, by this contract, has memory for an item.
        unsafe { item.write(MapItem { pair, prev, next }) };
        // SAFETY: every slot has a mark (OBJ-07), and the caller has the map alone.
        unsafe { marked.write(mark) };
        // SAFETY: a live map, by the invariant of `MapTable`; the pair of the slot is counted for the first time.
        unsafe { (*self.as_ptr()).body.size += 1 };
        // SAFETY: the last item in the order is an item of this map, or NOWHERE (OBJ-07).
        unsafe { self.set_next(prev, slot) };
        // SAFETY: a live map, by the invariant of `MapTable`; a dense one, by this contract, has the field (OBJ-07).
        unsafe { (*self.as_ptr()).order.tail = slot };
    }

    /// Moves all pairs to a table of twice the slots, in order, and adds one.
    ///
    /// # Safety
    /// The map is dense. The caller has it alone or stays at it to change it, and has it forget its pairs where they moved.
    #[inline(never)]
    unsafe fn rehash(self, longest: u64, fresh: &mut Pair) -> Result<Successor> {
        // SAFETY: a dense map, by this contract.
        let shift = unsafe { self.fib_shift() };
        let (slots, shift) = (self.slots() * 2, shift - 1);
        // SAFETY: a dense map, by this contract. One of the two forgets the pairs: the larger one here where the insertion fails, this
        // one in `replace_by` or `replace_in`.
        let (larger, moved) = match unsafe { self.moved(slots, shift) }? {
            Some(larger) => (larger, true),
            None => (self.copied(slots, shift)?, false),
        };
        // SAFETY: a fresh map, which is dense.
        match unsafe { larger.insert_dense(longest, fresh, Holders::One) } {
            Ok(still_larger) => Ok(Successor {
                // SAFETY: both are fresh, and no one else has seen them.
                table: unsafe { replace_by(larger, still_larger) },
                moved,
            }),
            Err(error) => {
                // This map stays whole.
                if moved {
                    // SAFETY: a fresh map, which is dense; its pairs are this map's.
                    unsafe { larger.forget() };
                }
                // SAFETY: a fresh map.
                unsafe { larger.dispose() };
                Err(error)
            }
        }
    }

    /// A table of `slots` slots with the pairs of this dense one bit for bit: one of the two has to forget them. `None`
    /// when they do not go in one by one.
    ///
    /// # Safety
    /// The map is dense, and the caller has one of the two forget the pairs before either drops them.
    unsafe fn moved(self, slots: u64, shift: u32) -> Result<Option<MapTable>> {
        let larger = MapTable::dense(self.type_index(), slots, shift);
        let mut at = self.first();
        while let Some(slot) = at {
            // SAFETY: `first` or `next` of an item returned the slot of an item; this map does not change here.
            let item = unsafe { &*self.item(slot) };
            let key = item.pair.key.view();
            let place = any_hash(key).and_then(|hash| {
                // SAFETY: the other map is dense.
                let home = unsafe { larger.home(hash) };
                match is_plain(key) {
                    // SAFETY: the home of the key, which is none of the keys before: equality of such keys calls no hook that
                    // could say otherwise now.
                    true => unsafe { larger.place_of_new(home) },
                    // SAFETY: the home of the key.
                    false => unsafe { larger.place(ANY_CHAIN, home, key) },
                }
            });
            let room = match place {
                Ok(KeyPosition::Known(_)) => Ok(None),
                Ok(KeyPosition::Home(home)) => Ok(Some((home, 0))),
                // SAFETY: nothing changed the other map, which is fresh, since the place was found, and the key is not known.
                Ok(place) => Ok(unsafe { larger.make_room(place) }),
                Err(error) => Err(error),
            };
            match room {
                Ok(Some((free, mark))) => {
                    // SAFETY: the pair of an item. It is in both maps until one forgets it (this function's contract).
                    let pair = unsafe { std::ptr::read(&raw const item.pair) };
                    // SAFETY: `make_room` returned an empty slot of the other map, which is fresh, and its mark.
                    unsafe { larger.enter(free, mark, pair) };
                }
                other => {
                    // SAFETY: a fresh map, which is dense; its pairs are this map's.
                    unsafe { larger.forget() };
                    // SAFETY: a fresh map.
                    unsafe { larger.dispose() };
                    return other.map(|_| None);
                }
            }
            at = (item.next != NOWHERE).then_some(item.next);
        }
        Ok(Some(larger))
    }

    /// [`MapTable::moved`] with copies of the pairs.
    pub(super) fn copied(self, slots: u64, shift: u32) -> Result<MapTable> {
        let mut copy = MapTable::dense(self.type_index(), slots, shift);
        let mut at = self.first();
        while let Some(slot) = at {
            // SAFETY: `first` or `next` returned the position; what is copied does not change meanwhile (`Map`, or `Stay` at a
            // dict).
            let pair = unsafe { self.pair_at(slot) };
            // SAFETY: there is a pair at such a position.
            let pair = unsafe { &*pair };
            // SAFETY: a fresh map, which is dense.
            match unsafe { copy.insert_dense(ANY_CHAIN, &mut pair.copy(), Holders::One) } {
                // SAFETY: both are fresh, and no one else has seen them.
                Ok(larger) => copy = unsafe { replace_by(copy, larger) },
                Err(error) => {
                    // SAFETY: a fresh map.
                    unsafe { copy.dispose() };
                    return Err(error);
                }
            }
            // SAFETY: `first` or `next` returned the position, and the map did not change since.
            at = unsafe { self.next(slot) };
        }
        Ok(copy)
    }

    /// Lets go of all pairs of a dense map without dropping them: they are another table's now.
    ///
    /// # Safety
    /// The map is dense, and the caller has it alone.
    pub(super) unsafe fn forget(self) {
        // SAFETY: a live map, which the caller has alone; a dense one, by this contract, has the fields (OBJ-07).
        let order = unsafe { &mut (*self.as_ptr()).order };
        (order.head, order.tail) = (NOWHERE, NOWHERE);
        // SAFETY: a live map, which the caller has alone (this contract); an empty one needs no filled slot.
        unsafe { (*self.as_ptr()).body.size = 0 };
    }
}

/// The table that an insertion leads to.
///
/// # Safety
/// `old` is fresh, `new` is what an insertion into it returned, and `old` is not used afterwards.
unsafe fn replace_by(old: MapTable, new: Option<Successor>) -> MapTable {
    match new {
        Some(new) => {
            if new.moved {
                // SAFETY: only dense maps move their pairs (`rehash`), and this one is fresh.
                unsafe { old.forget() };
            }
            // SAFETY: a fresh map, by this contract.
            unsafe { old.dispose() };
            new.table
        }
        None => old,
    }
}

/// `table`, or what takes its place, with `pairs` in order.
///
/// # Errors
///
/// As [`MapTable::place`]; the table has ended then.
///
/// # Safety
/// `table` is fresh, and is not used afterwards.
pub(super) unsafe fn filled(
    table: MapTable,
    longest: u64,
    pairs: &mut dyn Iterator<Item = (Any, Any)>,
) -> Result<MapTable> {
    let mut table = table;
    for (key, value) in pairs {
        let mut fresh = Pair::of(key, value);
        // SAFETY: a fresh map, by this contract, or what took its place.
        match unsafe { table.insert(longest, &mut fresh, Holders::One) } {
            Ok(None) => {}
            // SAFETY: both are fresh, and no one else has seen them.
            Ok(moved) => table = unsafe { replace_by(table, moved) },
            Err(error) => {
                // SAFETY: a fresh map.
                unsafe { table.dispose() };
                return Err(error);
            }
        }
        // One by one, which happens here; the pair as a whole would be dropped by a call.
        let Pair { key, value } = fresh;
        drop(key);
        drop(value);
    }
    Ok(table)
}

/// The table that takes the place of `old`, which is others' too and ends later.
///
/// # Safety
/// `new` is what an insertion into `old` returned, and the caller has `old` alone.
pub(super) unsafe fn replace_in(old: MapTable, new: Successor) -> MapTable {
    if new.moved {
        // SAFETY: only dense maps move their pairs (`rehash`), and the caller has this one alone.
        unsafe { old.forget() };
    }
    new.table
}
