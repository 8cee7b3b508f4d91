//! Chains of keys with one home slot: finding the position for a key, and making room for it (OBJ-07, OBJ-39).
//!
//! A chain begins in its home slot. The mark of each slot says how far the next slot of the chain is. If a chain runs through the home of a
//! new key, it first moves out of that slot.

use super::layout::{BODY, EMPTY, JUMPS, PROTECTED};
use super::table::MapTable;
use crate::function::{Error, ErrorKind, Result};
use crate::object::hash::{any_equal, any_hash};
use crate::object::{OBJ_07, OBJ_39};
use crate::value::AnyView;

/// The position of a key, or the position where it can be inserted.
pub(super) enum KeyPosition {
    /// The key is in this slot.
    Known(u64),
    /// The key begins a new chain in this slot.
    Home(u64),
    /// The key follows this slot, the last of its chain.
    Behind(u64),
    /// The key begins a new chain at `home`. The slot contains an item of another chain, in which it follows `before`.
    Intruder { home: u64, before: u64 },
    /// The chain can reach no free slot.
    Full,
}

/// One step of [`MapTable::move_intruder`], with the slots and their earlier marks.
struct MovedItem {
    /// The item's old slot, and its mark.
    from: (u64, u8),
    /// The slot before it in the moved chain, and its mark.
    last: (u64, u8),
    /// The item's new slot.
    free: u64,
}

impl MapTable {
    /// Finds `key`, or the position where it can be inserted. Changes nothing, but calls the hooks of keys.
    ///
    /// # Safety
    /// `home` is the home of `key` in this dense map, and nothing changes the map during the call.
    #[inline]
    pub(super) unsafe fn find_position(
        self,
        longest: u64,
        home: u64,
        key: AnyView<'_>,
    ) -> Result<KeyPosition> {
        // SAFETY: a home is a slot of this dense map (OBJ-07).
        let mark = unsafe { self.mark_of(home) };
        if mark == EMPTY {
            return Ok(KeyPosition::Home(home));
        }
        if mark & BODY != 0 {
            // SAFETY: the slot is in the body of a chain, as its mark says.
            return unsafe { self.evicting_position(home) };
        }
        let mut slot = home;
        let mut passed = 1;
        loop {
            // SAFETY: the slots of a chain are filled (OBJ-07); nothing changes the map during the call, by this contract.
            if any_equal(key, unsafe { self.key_of(slot) })? {
                return Ok(KeyPosition::Known(slot));
            }
            // SAFETY: a slot of this dense map: a home, or a result of `after`.
            match self.next_in_chain(slot, unsafe { self.mark_of(slot) }) {
                Some(next) => slot = next,
                None => break,
            }
            passed += 1;
        }
        // OBJ-39: only a new key makes the chain longer, so an existing key may be set again.
        if passed >= longest {
            return Err(chain_too_long(longest));
        }
        if self.is_full() {
            return Ok(KeyPosition::Full);
        }
        Ok(KeyPosition::Behind(slot))
    }

    /// Like [`MapTable::find_position`], for a key that is not in the map. Compares nothing, and allows a chain of any length.
    ///
    /// # Safety
    /// As for [`MapTable::find_position`].
    #[inline]
    pub(super) unsafe fn find_new_position(self, home: u64) -> Result<KeyPosition> {
        // SAFETY: a home is a slot of this dense map (OBJ-07).
        let mut mark = unsafe { self.mark_of(home) };
        if mark == EMPTY {
            return Ok(KeyPosition::Home(home));
        }
        if mark & BODY != 0 {
            // SAFETY: the slot is in the body of a chain, as its mark says.
            return unsafe { self.evicting_position(home) };
        }
        let mut slot = home;
        while let Some(next) = self.next_in_chain(slot, mark) {
            slot = next;
            // SAFETY: `after` returns a slot of this dense map.
            mark = unsafe { self.mark_of(slot) };
        }
        if self.is_full() {
            return Ok(KeyPosition::Full);
        }
        Ok(KeyPosition::Behind(slot))
    }

    /// Finds the position of a key whose home slot is part of another chain.
    ///
    /// # Safety
    /// `home` is in the body of a chain of this dense map, and nothing changes the map during the call.
    unsafe fn evicting_position(self, home: u64) -> Result<KeyPosition> {
        if self.is_full() {
            return Ok(KeyPosition::Full);
        }
        // SAFETY: in the body of a chain, by this contract.
        let before = unsafe { self.previous_in_chain(home) }?;
        Ok(KeyPosition::Intruder { home, before })
    }

    /// Returns the empty slot for a position, linked into its chain, and the mark to write there. Returns `None` if the chain reaches no
    /// empty slot. Calls no hook.
    ///
    /// # Safety
    /// The position was found in this map, is not `Known`, and the map has not changed since. The caller has exclusive access.
    pub(super) unsafe fn make_room(self, place: KeyPosition) -> Option<(u64, u8)> {
        match place {
            KeyPosition::Known(_) | KeyPosition::Full => None,
            KeyPosition::Home(home) => Some((home, 0)),
            KeyPosition::Behind(last) => {
                // SAFETY: the map is dense, because positions are found only in dense maps.
                let (jump, free) = unsafe { self.free_after(last) }?;
                // SAFETY: the last slot of a chain of this map, to which the caller has exclusive access (this contract).
                unsafe { self.set_jump(last, jump) };
                Some((free, BODY))
            }
            // SAFETY: `find_position` found the first slot in the body of a chain of this map, and the second one before it.
            KeyPosition::Intruder { home, before } => unsafe { self.move_intruder(home, before) },
        }
    }

    /// Returns whether one more pair would fill more than 99 of 100 slots.
    #[inline]
    fn is_full(self) -> bool {
        // OBJ-07: upstream also skips this check for a key whose home is empty, so both grow at the same pair.
        // The arithmetic cannot overflow: a table of that size does not fit into memory.
        self.size().wrapping_add(1).wrapping_mul(100) > self.slots().wrapping_mul(99)
    }

    /// Writes the distance to the next slot of a chain, as an index into [`JUMPS`]. Does not change the bit for the body of a chain.
    ///
    /// # Safety
    /// The slot is a filled one of this dense map, to which the caller has exclusive access.
    pub(super) unsafe fn set_jump(self, slot: u64, jump: u8) {
        // SAFETY: a slot of this dense map, by this contract.
        let mark = unsafe { self.mark_of(slot) };
        // SAFETY: the same slot, of a map to which the caller has exclusive access.
        unsafe { self.set_mark(slot, mark & BODY | jump) }
    }

    /// Returns the nearest empty slot that a mark at `slot` can name.
    ///
    /// # Safety
    /// The map is dense.
    unsafe fn free_after(self, slot: u64) -> Option<(u8, u64)> {
        let wrapped = self.wrapping();
        // In table order, at most 126 slots. If none of them is free, the table grows, even if it is nearly empty.
        (1..JUMPS.len()).find_map(|jump| {
            let candidate = wrapped(slot.wrapping_add(JUMPS[jump]));
            // SAFETY: a dense map, by this contract, and one of its slots by the remainder.
            (unsafe { self.mark_of(candidate) } == EMPTY).then_some((jump as u8, candidate))
        })
    }

    /// Frees `home`, which follows `last` in another chain. The rest of that chain, from `home` on, moves to other slots.
    ///
    /// # Safety
    /// `home` is in the body of a chain of this dense map, in which it follows `last`. The caller has exclusive access.
    unsafe fn move_intruder(self, home: u64, mut last: u64) -> Option<(u64, u8)> {
        let mut from = home;
        let mut steps = Vec::new();
        loop {
            // SAFETY: the map is dense, by this contract.
            let Some((jump, free)) = (unsafe { self.free_after(last) }) else {
                // SAFETY: the steps of this loop, on a map to which the caller has exclusive access.
                unsafe { self.move_back(&steps) };
                return None;
            };
            // SAFETY: `free_after` returns a slot of this map, to which the caller has exclusive access.
            unsafe { self.set_mark(free, BODY) };
            // SAFETY: `from` is filled and `free` was empty, so these are two slots; the first is emptied below.
            unsafe { std::ptr::copy_nonoverlapping(self.item(from), self.item(free), 1) };
            // SAFETY: the item has just moved to this slot.
            unsafe { self.relink(free) };
            // SAFETY: a slot of a chain of this map: `home`, or a result of `after`.
            let mark = unsafe { self.mark_of(from) };
            // The first slot is reserved for the new key, so nothing of this chain may move back into it.
            let emptied = if from == home { PROTECTED } else { EMPTY };
            // SAFETY: the same slot, of a map to which the caller has exclusive access.
            unsafe { self.set_mark(from, emptied) };
            // SAFETY: a slot of this dense map: the one before `home`, by this contract, or one that an item has just moved to.
            let followed = unsafe { self.mark_of(last) };
            // SAFETY: the same slot, which is filled.
            unsafe { self.set_jump(last, jump) };
            let step = MovedItem {
                from: (from, mark),
                last: (last, followed),
                free,
            };
            last = free;
            // Nothing can fail after the last step, so it is not recorded. Most chains need only that step.
            match self.next_in_chain(from, mark) {
                Some(next) => {
                    steps.push(step);
                    from = next;
                }
                None => break,
            }
        }
        Some((home, 0))
    }

    /// Undoes the recorded steps of [`MapTable::move_intruder`] and restores the chain.
    ///
    /// # Safety
    /// The steps are the latest ones, in their order, and the caller has exclusive access to the map.
    unsafe fn move_back(self, steps: &[MovedItem]) {
        for step in steps.iter().rev() {
            let (from, mark) = step.from;
            // SAFETY: the step moved the item from the one slot to the other, and the later steps are undone (this contract).
            unsafe { std::ptr::copy_nonoverlapping(self.item(step.free), self.item(from), 1) };
            // SAFETY: a slot of a map to which the caller has exclusive access; the item is back in it.
            unsafe { self.set_mark(from, mark) };
            // SAFETY: the item has just moved to this slot.
            unsafe { self.relink(from) };
            // SAFETY: a slot of the chain, of a map to which the caller has exclusive access.
            unsafe { self.set_mark(step.last.0, step.last.1) };
            // SAFETY: the slot that the step filled; its item has left it.
            unsafe { self.set_mark(step.free, EMPTY) };
        }
    }

    /// Returns the slot before `slot` in its chain. Calls the hash of its key.
    ///
    /// # Safety
    /// The slot is in the body of a chain of this dense map, and nothing changes the map during the call.
    pub(super) unsafe fn previous_in_chain(self, slot: u64) -> Result<u64> {
        // SAFETY: slots in the body of a chain are filled, and the map stays as it is, by this contract.
        let hash = any_hash(unsafe { self.key_of(slot) })?;
        // SAFETY: the map is dense, by this contract.
        let mut at = unsafe { self.chain_start_slot(hash) };
        // Bounded, because a chain that another library wrote incorrectly may have no end.
        for _ in 0..=self.slots() {
            // SAFETY: a slot of this dense map: a home, or a result of `after`.
            match self.next_in_chain(at, unsafe { self.mark_of(at) }) {
                Some(next) if next == slot => return Ok(at),
                Some(next) => at = next,
                None => break,
            }
        }
        let moved = "a key of a map hashes to another chain now than when it was inserted";
        let broken = OBJ_07.rejected(crate::rule::Kind::Malformed, moved);
        Err(Error::of_violation(ErrorKind::Internal, broken))
    }
}

/// Returns the error for an untrusted key that would make a chain longer than `longest` (OBJ-39).
#[cold]
fn chain_too_long(longest: u64) -> Error {
    let message = format!("more than {longest} keys of one map share a chain of its table");
    OBJ_39.rejected(crate::rule::Kind::Limit, message).into()
}
