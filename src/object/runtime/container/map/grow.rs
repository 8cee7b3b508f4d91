//! Tables that replace another one: copies, and tables with more slots (OBJ-06, OBJ-07).
//!
//! Pairs are inserted one by one in order of insertion, as when upstream grows a table. The marks depend on that order, so they are the
//! same in every library.

use super::access_mode::Holders;
use super::chain::KeyPosition;
use super::layout::{ANY_CHAIN, NOWHERE, Pair, SMALL_MAX};
use super::table::{MapTable, is_plain};
use crate::function::Result;
use crate::object::format::key_hash::table_size;
use crate::object::hash::any_hash;

/// A table that replaces another one.
pub(super) struct Successor {
    /// The new table. Its only reference belongs to the caller.
    pub(super) table: MapTable,
    /// True if the pairs moved bit for bit, so that the old table must forget them.
    pub(super) moved: bool,
}

impl MapTable {
    /// Creates a small map with the pairs of this small map and room for `slots`.
    pub(super) fn small_copy(self, slots: u64) -> MapTable {
        let copy = MapTable::small(self.type_index(), slots.max(self.size()));
        for at in 0..self.size() {
            // SAFETY: the first `size` pairs of a small map are filled (OBJ-06).
            let pair = unsafe { &*self.pair(at) };
            // SAFETY: the copy has at least as many slots as there are pairs, and this slot is not filled yet.
            unsafe { copy.pair(at).write(pair.copy()) };
            // SAFETY: a fresh map, whose pairs up to this one are written.
            unsafe { (*copy.as_ptr()).body.size = at + 1 };
        }
        copy
    }

    /// Creates a dense map with the pairs of this map: 8 slots for four pairs.
    pub(super) fn dense_copy(self) -> Result<MapTable> {
        let (slots, shift) = table_size(self.size().max(SMALL_MAX));
        self.copy_pairs_to_new(slots, shift)
    }

    /// Moves all pairs, in order, to a table with twice the slots, and adds one pair.
    ///
    /// # Safety
    /// The map is dense. The caller has exclusive access or stays at the map to change it. If the pairs moved, the caller makes this map
    /// forget them.
    #[inline(never)]
    pub(super) unsafe fn rehash(self, longest: u64, fresh: &mut Pair) -> Result<Successor> {
        // SAFETY: a dense map, by this contract.
        let shift = unsafe { self.fib_shift() };
        let (slots, shift) = (self.slots() * 2, shift - 1);
        // `None` if a key now equals another one, or if a chain finds no slot. Copies are inserted instead, which can replace and grow.
        // SAFETY: a dense map, by this contract. One of the two forgets the pairs: the larger one here if the insertion fails, this one in
        // `replace_by` or `replace_in`.
        let (larger, moved) = match unsafe { self.move_pairs_to_new(slots, shift) }? {
            Some(larger) => (larger, true),
            None => (self.copy_pairs_to_new(slots, shift)?, false),
        };
        // SAFETY: a fresh map, which is dense.
        match unsafe { larger.insert_dense(longest, fresh, Holders::One) } {
            Ok(still_larger) => Ok(Successor {
                // SAFETY: both are fresh, and nothing else has seen them.
                table: unsafe { replace_by(larger, still_larger) },
                moved,
            }),
            Err(error) => {
                // This map keeps its pairs.
                if moved {
                    // SAFETY: a fresh map, which is dense; its pairs are this map's.
                    unsafe { larger.remove_without_drop() };
                }
                // SAFETY: a fresh map.
                unsafe { larger.dispose() };
                Err(error)
            }
        }
    }

    /// Creates a table of `slots` slots that contains this dense map's pairs bit for bit. One of the two has to forget them. Returns `None`
    /// if the pairs cannot be inserted one by one.
    ///
    /// # Safety
    /// The map is dense, and the caller makes one of the two forget the pairs before either drops them.
    unsafe fn move_pairs_to_new(self, slots: u64, shift: u32) -> Result<Option<MapTable>> {
        let larger = MapTable::dense(self.type_index(), slots, shift);
        let mut at = self.first();
        while let Some(slot) = at {
            // SAFETY: `first` or `next` of an item returned the slot of an item; this map does not change here.
            let item = unsafe { &*self.item(slot) };
            let key = item.pair.key.view();
            let place = any_hash(key).and_then(|hash| {
                // SAFETY: the other map is dense.
                let home = unsafe { larger.chain_start_slot(hash) };
                if is_plain(key) {
                    // SAFETY: the home of the key, which differs from all keys before: the equality of such keys calls no hook that could
                    // decide otherwise now.
                    unsafe { larger.find_new_position(home) }
                } else {
                    // SAFETY: the home of the key.
                    unsafe { larger.find_position(ANY_CHAIN, home, key) }
                }
            });
            let room = match place {
                Ok(KeyPosition::Known(_)) => Ok(None),
                Ok(KeyPosition::Home(home)) => Ok(Some((home, 0))),
                // SAFETY: nothing changed the other map, which is fresh, since the position was found, and the key is not known.
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
                    unsafe { larger.remove_without_drop() };
                    // SAFETY: a fresh map.
                    unsafe { larger.dispose() };
                    return other.map(|_| None);
                }
            }
            at = (item.next != NOWHERE).then_some(item.next);
        }
        Ok(Some(larger))
    }

    /// Like [`MapTable::move_pairs_to_new`], but copies the pairs, for maps that keep theirs.
    pub(super) fn copy_pairs_to_new(self, slots: u64, shift: u32) -> Result<MapTable> {
        let mut copy = MapTable::dense(self.type_index(), slots, shift);
        let mut at = self.first();
        while let Some(slot) = at {
            // SAFETY: `first` or `next` returned the position; the copied map does not change during the call (`Map`, or `Stay` at a dict).
            let pair = unsafe { self.pair_at(slot) };
            // SAFETY: there is a pair at such a position.
            let pair = unsafe { &*pair };
            // SAFETY: a fresh map, which is dense.
            match unsafe { copy.insert_dense(ANY_CHAIN, &mut pair.copy(), Holders::One) } {
                // SAFETY: both are fresh, and nothing else has seen them.
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

    /// Removes all pairs of a dense map without dropping them, because another table owns them now.
    ///
    /// # Safety
    /// The map is dense, and the caller has exclusive access.
    pub(super) unsafe fn remove_without_drop(self) {
        // SAFETY: a live map, to which the caller has exclusive access; a dense one, by this contract, has the fields (OBJ-07).
        let order = unsafe { &mut (*self.as_ptr()).order };
        (order.head, order.tail) = (NOWHERE, NOWHERE);
        // SAFETY: a live map, to which the caller has exclusive access (this contract); an empty one needs no filled slot.
        unsafe { (*self.as_ptr()).body.size = 0 };
    }
}

/// Returns the table that results from an insertion.
///
/// # Safety
/// `old` is fresh, an insertion into it returned `new`, and `old` is not used afterwards.
pub(super) unsafe fn replace_by(old: MapTable, new: Option<Successor>) -> MapTable {
    match new {
        Some(new) => {
            if new.moved {
                // SAFETY: only dense maps move their pairs (`rehash`), and this one is fresh.
                unsafe { old.remove_without_drop() };
            }
            // SAFETY: a fresh map, by this contract.
            unsafe { old.dispose() };
            new.table
        }
        None => old,
    }
}

/// Returns the table that replaces `old`. Others also refer to `old`, which is freed later.
///
/// # Safety
/// An insertion into `old` returned `new`, and the caller has exclusive access to `old`.
pub(super) unsafe fn replace_in(old: MapTable, new: Successor) -> MapTable {
    if new.moved {
        // SAFETY: only dense maps move their pairs (`rehash`), and the caller has exclusive access to this one.
        unsafe { old.remove_without_drop() };
    }
    new.table
}
