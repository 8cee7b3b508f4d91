//! Inserting: in place, or into a table that takes the place of this one (OBJ-06, OBJ-08).

use super::chain::Place;
use super::layout::{ANY_CHAIN, BODY, EMPTY, Item, NOWHERE, Pair, SMALL_MAX};
use super::table::{Table, is_plain};
use crate::function::Result;
use crate::object::container::turnstile::{Turn, turn};
use crate::object::hash::any_hash;
use crate::object::key_hash::table_size;
use crate::value::Any;

/// A table that takes the place of another.
pub(super) struct Successor {
    pub(super) table: Table,
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
    pub(super) fn turn(self, table: Table) -> Option<Turn> {
        matches!(self, Holders::Several).then(|| turn(table.0))
    }
}

impl Table {
    /// Inserts or replaces, and makes no chain longer than `longest`. `None` when done in place; otherwise the map that takes
    /// this one's place, to which all pairs have moved or been copied.
    pub(super) fn insert(
        self,
        longest: u64,
        fresh: &mut Pair,
        holders: Holders,
    ) -> Result<Option<Successor>> {
        if !self.is_small() {
            return self.insert_dense(longest, fresh, holders);
        }
        let full = self.size() == self.slots();
        if full && self.slots() >= SMALL_MAX {
            // Even an update turns a full small map dense (OBJ-06).
            let dense = self.dense_copy()?;
            return dense.succeeded(|dense| dense.insert_dense(longest, fresh, Holders::One));
        }
        let known = self.find(fresh.key.view())?;
        if known.is_some() || !full {
            let _turn = holders.turn(self);
            // SAFETY: `find` looked for this key in this small map, which did not change since and has room for a pair more.
            unsafe { self.put_small(known, fresh) };
            return Ok(None);
        }
        let grown = self.small_copy((self.slots() * 2).clamp(2, SMALL_MAX));
        grown.succeeded(|grown| grown.insert(longest, fresh, Holders::One))
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
        unsafe { (*self.0).body.size += 1 };
    }

    /// [`Table::insert`] into a dict that others reach, under its lock alone: where no thread stays at it, and nothing that
    /// this would do calls a hook or makes another table. Otherwise false, and nothing happened.
    ///
    /// # Errors
    ///
    /// As [`Table::place`].
    pub(super) fn insert_at_once(self, longest: u64, fresh: &mut Pair) -> Result<bool> {
        let key = fresh.key.view();
        if !is_plain(key) {
            return Ok(false);
        }
        let turn = turn(self.0);
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

    /// This table, a copy, after `insert`; it ends where that fails.
    fn succeeded(
        self,
        insert: impl FnOnce(Table) -> Result<Option<Successor>>,
    ) -> Result<Option<Successor>> {
        match insert(self) {
            Ok(next) => Ok(Some(Successor {
                table: replace_by(self, next),
                moved: false,
            })),
            Err(error) => {
                self.dispose();
                Err(error)
            }
        }
    }

    pub(super) fn small_copy(self, slots: u64) -> Table {
        let copy = Table::small(self.type_index(), slots);
        for at in 0..self.size() {
            // SAFETY: the first `size` pairs of a small map are filled (OBJ-06).
            let pair = unsafe { &*self.pair(at) };
            // SAFETY: callers ask for at least as many slots as there are pairs, and this one of the copy is not filled yet.
            unsafe { copy.pair(at).write(pair.copy()) };
            // SAFETY: a fresh map, whose pairs up to this one are written.
            unsafe { (*copy.0).body.size = at + 1 };
        }
        copy
    }

    /// A dense map with the pairs of this one.
    fn dense_copy(self) -> Result<Table> {
        let (slots, shift) = table_size(self.size().max(SMALL_MAX));
        let mut copy = Table::dense(self.type_index(), slots, shift);
        let mut at = self.first();
        while let Some(position) = at {
            // SAFETY: `first` or `next` gave the position; what is copied does not change meanwhile (`Map`, or `Stay` at a
            // dict).
            let pair = unsafe { self.pair_at(position) };
            // SAFETY: there is a pair at such a position.
            let pair = unsafe { &*pair };
            match copy.insert_dense(ANY_CHAIN, &mut pair.copy(), Holders::One) {
                Ok(moved) => copy = replace_by(copy, moved),
                Err(error) => {
                    copy.dispose();
                    return Err(error);
                }
            }
            at = self.next(position);
        }
        Ok(copy)
    }

    /// Inserts `fresh`. What the map does not take stays there, and what it gives in exchange comes there, so that all of it
    /// is dropped where the map is whole and no lock is held: what ends with a value may come back to the map.
    fn insert_dense(
        self,
        longest: u64,
        fresh: &mut Pair,
        holders: Holders,
    ) -> Result<Option<Successor>> {
        let hash = any_hash(fresh.key.view())?;
        // SAFETY: called on dense maps.
        let home = unsafe { self.home(hash) };
        // SAFETY: the home of a hash is a slot of this map.
        let place = match unsafe { self.mark_of(home) } {
            // Most often: nothing is compared and nothing moves.
            EMPTY => Place::Home(home),
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
        self.rehash(longest, fresh).map(Some)
    }

    /// Puts `fresh` where it goes; false, with nothing done, where there is no room.
    ///
    /// # Safety
    /// The place is of the key of `fresh` in this dense map, which did not change since and which the caller has alone.
    #[inline]
    unsafe fn put_dense(self, place: Place, fresh: &mut Pair) -> bool {
        if let Place::Known(slot) = place {
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
            Place::Home(home) => Some((home, 0)),
            // SAFETY: nothing changed the map since the place was found, and the key is not known.
            place => unsafe { self.make_room(place) },
        };
        let Some((slot, mark)) = room else {
            return false;
        };
        // SAFETY: `make_room` gave the empty slot and its mark.
        unsafe { self.enter(slot, mark, fresh.moved_out()) };
        true
    }

    /// Writes a pair to `slot`, and counts it in.
    ///
    /// # Safety
    /// The slot is an empty one of this dense map, `mark` is what `make_room` gave with it, and the caller has the map alone.
    #[inline]
    unsafe fn enter(self, slot: u64, mark: u8, pair: Pair) {
        // Both addresses before the first write: to the compiler it may change what they are made of.
        let (item, marked) = (self.item(slot), self.mark(slot));
        // SAFETY: a live map, by the invariant of `Table`; a dense one, by this contract, has the field (OBJ-07).
        let prev = unsafe { (*self.0).order.tail };
        let next = NOWHERE;
        // SAFETY: an empty slot, by this contract, has memory for an item.
        unsafe { item.write(Item { pair, prev, next }) };
        // SAFETY: every slot has a mark (OBJ-07), and the caller has the map alone.
        unsafe { marked.write(mark) };
        // SAFETY: a live map, by the invariant of `Table`; the pair of the slot is counted for the first time.
        unsafe { (*self.0).body.size += 1 };
        // SAFETY: the last item in the order is an item of this map, or NOWHERE (OBJ-07).
        unsafe { self.set_next(prev, slot) };
        // SAFETY: a live map, by the invariant of `Table`; a dense one, by this contract, has the field (OBJ-07).
        unsafe { (*self.0).order.tail = slot };
    }

    /// Moves all pairs to a table of twice the slots, in order, and adds one.
    #[inline(never)]
    fn rehash(self, longest: u64, fresh: &mut Pair) -> Result<Successor> {
        // SAFETY: only a dense map is rehashed (`insert_dense`).
        let shift = unsafe { self.fib_shift() };
        let (slots, shift) = (self.slots() * 2, shift - 1);
        let (larger, moved) = match self.moved(slots, shift)? {
            Some(larger) => (larger, true),
            None => (self.copied(slots, shift)?, false),
        };
        match larger.insert_dense(longest, fresh, Holders::One) {
            Ok(still_larger) => Ok(Successor {
                table: replace_by(larger, still_larger),
                moved,
            }),
            Err(error) => {
                // This map stays whole.
                if moved {
                    larger.forget();
                }
                larger.dispose();
                Err(error)
            }
        }
    }

    /// A table of `slots` slots with the pairs of this dense one bit for bit: one of the two has to forget them. `None`
    /// when they do not go in one by one.
    fn moved(self, slots: u64, shift: u32) -> Result<Option<Table>> {
        let larger = Table::dense(self.type_index(), slots, shift);
        let mut at = self.first();
        while let Some(slot) = at {
            // SAFETY: `first` or `next` of an item gave the slot of an item; this map does not change here.
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
                Ok(Place::Known(_)) => Ok(None),
                Ok(Place::Home(home)) => Ok(Some((home, 0))),
                // SAFETY: nothing changed the other map, which is fresh, since the place was found, and the key is not known.
                Ok(place) => Ok(unsafe { larger.make_room(place) }),
                Err(error) => Err(error),
            };
            match room {
                Ok(Some((free, mark))) => {
                    // SAFETY: the pair of an item. It is in both maps until one forgets it (this function's contract).
                    let pair = unsafe { std::ptr::read(&raw const item.pair) };
                    // SAFETY: `make_room` gave an empty slot of the other map, which is fresh, and its mark.
                    unsafe { larger.enter(free, mark, pair) };
                }
                other => {
                    larger.forget();
                    larger.dispose();
                    return other.map(|_| None);
                }
            }
            at = (item.next != NOWHERE).then_some(item.next);
        }
        Ok(Some(larger))
    }

    /// [`Table::moved`] with copies of the pairs.
    pub(super) fn copied(self, slots: u64, shift: u32) -> Result<Table> {
        let mut copy = Table::dense(self.type_index(), slots, shift);
        let mut at = self.first();
        while let Some(slot) = at {
            // SAFETY: `first` or `next` gave the position; what is copied does not change meanwhile (`Map`, or `Stay` at a
            // dict).
            let pair = unsafe { self.pair_at(slot) };
            // SAFETY: there is a pair at such a position.
            let pair = unsafe { &*pair };
            match copy.insert_dense(ANY_CHAIN, &mut pair.copy(), Holders::One) {
                Ok(larger) => copy = replace_by(copy, larger),
                Err(error) => {
                    copy.dispose();
                    return Err(error);
                }
            }
            at = self.next(slot);
        }
        Ok(copy)
    }

    /// Lets go of all pairs of a dense map without dropping them: they are another table's now.
    pub(super) fn forget(self) {
        // SAFETY: a live map, which the caller has alone (`Table`); only called on dense ones, which have the fields.
        let order = unsafe { &mut (*self.0).order };
        (order.head, order.tail) = (NOWHERE, NOWHERE);
        // SAFETY: a live map, which the caller has alone (`Table`); an empty one needs no filled slot.
        unsafe { (*self.0).body.size = 0 };
    }
}

/// The table that an insertion leads to. Both are fresh and not shared yet.
fn replace_by(old: Table, new: Option<Successor>) -> Table {
    match new {
        Some(new) => {
            if new.moved {
                old.forget();
            }
            old.dispose();
            new.table
        }
        None => old,
    }
}

/// `table`, which is not shared yet, or what takes its place, with `pairs` in order.
pub(super) fn filled(
    table: Table,
    longest: u64,
    pairs: &mut dyn Iterator<Item = (Any, Any)>,
) -> Result<Table> {
    let mut table = table;
    for (key, value) in pairs {
        let mut fresh = Pair::of(key, value);
        match table.insert(longest, &mut fresh, Holders::One) {
            Ok(None) => {}
            Ok(moved) => table = replace_by(table, moved),
            Err(error) => {
                table.dispose();
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
pub(super) fn replace_in(old: Table, new: Successor) -> Table {
    if new.moved {
        old.forget();
    }
    new.table
}
