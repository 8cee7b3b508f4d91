//! Insertion in place, or into a table that replaces this one (OBJ-06, OBJ-08).

use super::access_mode::Holders;
use super::chain::KeyPosition;
use super::grow::{Successor, replace_by};
use super::layout::{BODY, EMPTY, MapItem, NOWHERE, Pair, SMALL_MAX};
use super::table::{MapTable, is_plain};
use crate::function::Result;
use crate::object::container::lock::lock;
use crate::object::hash::any_hash;
use crate::value::Any;

impl MapTable {
    /// Inserts or replaces a pair, without making a chain longer than `longest`. Returns `None` if the change happened in place. Otherwise
    /// returns the table that replaces this one, to which all pairs have been moved or copied.
    ///
    /// # Safety
    /// With [`Holders::One`], the caller has exclusive access. With [`Holders::Several`], it stays at the dict to change it.
    pub(super) unsafe fn insert(
        self,
        longest: u64,
        fresh: &mut Pair,
        holders: Holders,
    ) -> Result<Option<Successor>> {
        if !self.is_small() {
            // SAFETY: the map is dense, because `is_small` is false. The rest is this contract.
            return unsafe { self.insert_dense(longest, fresh, holders) };
        }
        let full = self.size() == self.slots();
        if full && self.slots() >= SMALL_MAX {
            // Even an update turns a full small map dense (OBJ-06).
            let dense = self.dense_copy()?;
            // SAFETY: a fresh map, which is dense.
            let inserted = unsafe { dense.insert_dense(longest, fresh, Holders::One) };
            // SAFETY: `inserted` is the result for that fresh map.
            return unsafe { dense.succeeded(inserted) };
        }
        // Before the map is locked: `find` may call a hook, and no hook may run under a lock.
        let known = self.find(fresh.key.view())?;
        if known.is_some() || !full {
            let _guard = holders.lock(self);
            // SAFETY: `find` searched for this key in this small map, which has not changed since and has room for one more pair.
            unsafe { self.put_small(known, fresh) };
            return Ok(None);
        }
        // OBJ-06: 2 slots become 4. A map that was created with three pairs has 3 slots, which also become 4.
        let grown = self.small_copy((self.slots() * 2).clamp(2, SMALL_MAX));
        // SAFETY: a fresh map.
        let inserted = unsafe { grown.insert(longest, fresh, Holders::One) };
        // SAFETY: `inserted` is the result for that fresh map.
        unsafe { grown.succeeded(inserted) }
    }

    /// Replaces the value at `known` by the value of `fresh`, or appends `fresh` after the last pair.
    ///
    /// # Safety
    /// The map is small, and the caller has exclusive access. `known` is the position of the key of `fresh`. If it is `None`, the map is
    /// not full.
    #[inline]
    unsafe fn put_small(self, known: Option<u64>, fresh: &mut Pair) {
        if let Some(at) = known {
            // SAFETY: a pair of this small map is there, by this contract, and the caller has exclusive access.
            let value = unsafe { &mut (*self.pair(at)).value };
            return std::mem::swap(value, &mut fresh.value);
        }
        let end = self.pair(self.size());
        // SAFETY: the map is small and not full, by this contract, so there is room for one pair after the last (OBJ-06).
        unsafe { end.write(fresh.moved_out()) };
        // SAFETY: a live map, to which the caller has exclusive access; the counted pair has just been written.
        unsafe { (*self.as_ptr()).body.size += 1 };
    }

    /// Like [`MapTable::insert`], for a shared dict, and only under its lock. Works only if no thread stays at the dict, no hook is called,
    /// and no other table is needed. Otherwise returns false and changes nothing.
    ///
    /// # Safety
    /// The map is a dict that others lock when they use it.
    pub(super) unsafe fn insert_at_once(self, longest: u64, fresh: &mut Pair) -> Result<bool> {
        let key = fresh.key.view();
        if !is_plain(key) {
            return Ok(false);
        }
        let guard = lock(self.as_ptr());
        if !guard.has_no_stay() {
            return Ok(false);
        }
        if self.is_small() {
            let full = self.size() == self.slots();
            // A full small map turns dense, even for an update (OBJ-06).
            if full && self.slots() >= SMALL_MAX {
                return Ok(false);
            }
            let known = self.find(key)?;
            if known.is_none() && full {
                return Ok(false);
            }
            // SAFETY: `find` searched for this key in this small map under the lock, and there is room for one more pair.
            unsafe { self.put_small(known, fresh) };
            return Ok(true);
        }
        let hash = any_hash(key)?;
        // SAFETY: the map is dense, because `is_small` is false.
        let home = unsafe { self.chain_start_slot(hash) };
        // SAFETY: a home is a slot of this dense map (OBJ-07).
        let mark = unsafe { self.mark_of(home) };
        // The key in that slot would have to move, and is hashed to find the slot before it. Only a plain key calls no hook.
        if mark & BODY != 0 && mark != EMPTY {
            // SAFETY: a slot in the body of a chain is filled (OBJ-07), and this thread has exclusive access.
            let other = unsafe { self.key_of(home) };
            if !is_plain(other) {
                return Ok(false);
            }
        }
        // SAFETY: the home of a slot of this dense map.
        let place = unsafe { self.find_position(longest, home, key)? };
        // SAFETY: the position was found in this map under the lock that is still held.
        Ok(unsafe { self.put_dense(place, fresh) })
    }

    /// Returns this table, a copy, after an insertion into it. Frees it if the insertion failed.
    ///
    /// # Safety
    /// The map is fresh, and an insertion into it returned `inserted`.
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

    /// Inserts `fresh`. Values that the map does not take, or that it replaces, are left in `fresh`. The caller drops them when the map
    /// is consistent and no lock is held, because a destructor may use the map again.
    ///
    /// # Safety
    /// The map is dense; the rest is the contract of [`MapTable::insert`].
    pub(super) unsafe fn insert_dense(
        self,
        longest: u64,
        fresh: &mut Pair,
        holders: Holders,
    ) -> Result<Option<Successor>> {
        let hash = any_hash(fresh.key.view())?;
        // SAFETY: a dense map, by this contract.
        let home = unsafe { self.chain_start_slot(hash) };
        // SAFETY: the home of a hash is a slot of this map.
        let place = match unsafe { self.mark_of(home) } {
            // The most common case: nothing is compared and nothing moves.
            EMPTY => KeyPosition::Home(home),
            // SAFETY: the home of the key.
            _ => unsafe { self.find_position(longest, home, fresh.key.view())? },
        };
        let guard = holders.lock(self);
        // SAFETY: nothing changed the map since the position was found (`Stay`, or exclusive access).
        if unsafe { self.put_dense(place, fresh) } {
            return Ok(None);
        }
        // The larger map has its own lock.
        drop(guard);
        // SAFETY: a dense map, by this contract.
        unsafe { self.rehash(longest, fresh) }.map(Some)
    }

    /// Writes `fresh` to its position. Returns false, without a change, if there is no room.
    ///
    /// # Safety
    /// The position belongs to the key of `fresh` in this dense map, which has not changed since. The caller has exclusive access.
    #[inline]
    unsafe fn put_dense(self, place: KeyPosition, fresh: &mut Pair) -> bool {
        if let KeyPosition::Known(slot) = place {
            // SAFETY: `place` found the key at this slot of this map, which has not changed since.
            unsafe { self.unlink(slot) };
            // SAFETY: the same slot, which has just left the order.
            unsafe { self.link_last(slot) };
            // SAFETY: the slot of a known key is filled, and the caller has exclusive access (this contract).
            let value = unsafe { &mut (*self.item(slot)).pair.value };
            std::mem::swap(value, &mut fresh.value);
            return true;
        }
        let room = match place {
            KeyPosition::Home(home) => Some((home, 0)),
            // SAFETY: nothing changed the map since the position was found, and the key is not known.
            place => unsafe { self.make_room(place) },
        };
        let Some((slot, mark)) = room else {
            return false;
        };
        // SAFETY: `make_room` returned the empty slot and its mark.
        unsafe { self.enter(slot, mark, fresh.moved_out()) };
        true
    }

    /// Writes a pair to `slot` and counts it.
    ///
    /// # Safety
    /// The slot is an empty one of this dense map, `make_room` returned `mark` with it, and the caller has exclusive access.
    #[inline]
    pub(super) unsafe fn enter(self, slot: u64, mark: u8, pair: Pair) {
        // Both addresses are computed before the first write, because the compiler assumes that the write may change their inputs.
        let (item, marked) = (self.item(slot), self.mark(slot));
        // SAFETY: a live map, by the invariant of `MapTable`; a dense one, by this contract, has the field (OBJ-07).
        let prev = unsafe { (*self.as_ptr()).order.tail };
        let next = NOWHERE;
        // SAFETY: an empty slot, by this contract, has memory for an item.
        unsafe { item.write(MapItem { pair, prev, next }) };
        // SAFETY: every slot has a mark (OBJ-07), and the caller has exclusive access.
        unsafe { marked.write(mark) };
        // SAFETY: a live map, by the invariant of `MapTable`; the pair of the slot is counted for the first time.
        unsafe { (*self.as_ptr()).body.size += 1 };
        // SAFETY: the last item in the order is an item of this map, or NOWHERE (OBJ-07).
        unsafe { self.set_next(prev, slot) };
        // SAFETY: a live map, by the invariant of `MapTable`; a dense one, by this contract, has the field (OBJ-07).
        unsafe { (*self.as_ptr()).order.tail = slot };
    }
}

/// Inserts `pairs` into `table` in order. Returns `table` or the one that replaced it.
///
/// # Safety
/// `table` is fresh, and is not used afterwards.
pub(super) unsafe fn insert_all(
    table: MapTable,
    longest: u64,
    pairs: &mut dyn Iterator<Item = (Any, Any)>,
) -> Result<MapTable> {
    let mut table = table;
    for (key, value) in pairs {
        let mut fresh = Pair::of(key, value);
        // SAFETY: a fresh map, by this contract, or one that replaced it.
        match unsafe { table.insert(longest, &mut fresh, Holders::One) } {
            Ok(None) => {}
            // SAFETY: both are fresh, and nothing else has seen them.
            Ok(moved) => table = unsafe { replace_by(table, moved) },
            Err(error) => {
                // SAFETY: a fresh map.
                unsafe { table.dispose() };
                return Err(error);
            }
        }
        // Dropped separately, so that both drops are inlined here. Dropping the whole pair would be a call.
        let Pair { key, value } = fresh;
        drop(key);
        drop(value);
    }
    Ok(table)
}
