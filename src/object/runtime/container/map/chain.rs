//! Chains of keys with one home: where a key goes, and room for it (OBJ-07, OBJ-39).
//!
//! A chain begins in its home slot and goes on by the marks: each says how far its next slot is. Where it runs through the home of a
//! key that is inserted, it moves out of that slot first.

use super::layout::{BODY, EMPTY, JUMPS, PROTECTED};
use super::table::MapTable;
use crate::function::{Error, ErrorKind, Result};
use crate::object::hash::{any_equal, any_hash};
use crate::object::{OBJ_07, OBJ_39};
use crate::value::AnyView;

/// Where a key is, or where it goes.
pub(super) enum KeyPosition {
    /// The key is here.
    Known(u64),
    /// The key begins a chain here.
    Home(u64),
    /// The key follows this one, the last of its chain.
    Behind(u64),
    /// The key begins a chain at `home`, where one of another chain is, which follows `before`.
    Intruder { home: u64, before: u64 },
    /// There is no room that a chain could reach.
    Full,
}

/// One step of [`MapTable::move_intruder`]: slots, and the marks that they had before it.
struct MovedItem {
    /// Where the item was, and its mark.
    from: (u64, u8),
    /// The slot that the chain had been moved to before, and its mark.
    last: (u64, u8),
    /// Where the item went.
    free: u64,
}

impl MapTable {
    /// Where `key` is, or where it goes. Changes nothing; calls the hooks of keys.
    ///
    /// # Safety
    /// `home` is the home of `key` in this dense map, which nothing changes meanwhile.
    #[inline]
    pub(super) unsafe fn place(
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
            return unsafe { self.place_of_intruder(home) };
        }
        let mut slot = home;
        let mut passed = 1;
        loop {
            // SAFETY: the slots of a chain are filled (OBJ-07); nothing changes the map meanwhile, by this contract.
            if any_equal(key, unsafe { self.key_of(slot) })? {
                return Ok(KeyPosition::Known(slot));
            }
            // SAFETY: a slot of this dense map: a home, or what `after` returns.
            match self.after(slot, unsafe { self.mark_of(slot) }) {
                Some(next) => slot = next,
                None => break,
            }
            passed += 1;
        }
        // OBJ-39: only a key that is not there makes the chain longer, so that one that is may be set again.
        if passed >= longest {
            return Err(chain_too_long(longest));
        }
        if self.is_full() {
            return Ok(KeyPosition::Full);
        }
        Ok(KeyPosition::Behind(slot))
    }

    /// [`MapTable::place`] of a key that is not in the map, in a chain of any length: compares nothing.
    ///
    /// # Safety
    /// As for [`MapTable::place`].
    #[inline]
    pub(super) unsafe fn place_of_new(self, home: u64) -> Result<KeyPosition> {
        // SAFETY: a home is a slot of this dense map (OBJ-07).
        let mut mark = unsafe { self.mark_of(home) };
        if mark == EMPTY {
            return Ok(KeyPosition::Home(home));
        }
        if mark & BODY != 0 {
            // SAFETY: the slot is in the body of a chain, as its mark says.
            return unsafe { self.place_of_intruder(home) };
        }
        let mut slot = home;
        while let Some(next) = self.after(slot, mark) {
            slot = next;
            // SAFETY: `after` returns a slot of this dense map.
            mark = unsafe { self.mark_of(slot) };
        }
        if self.is_full() {
            return Ok(KeyPosition::Full);
        }
        Ok(KeyPosition::Behind(slot))
    }

    /// [`MapTable::place`] of a key whose home another chain runs through.
    ///
    /// # Safety
    /// `home` is in the body of a chain of this dense map, which nothing changes meanwhile.
    unsafe fn place_of_intruder(self, home: u64) -> Result<KeyPosition> {
        if self.is_full() {
            return Ok(KeyPosition::Full);
        }
        // SAFETY: in the body of a chain, by this contract.
        let before = unsafe { self.before(home) }?;
        Ok(KeyPosition::Intruder { home, before })
    }

    /// The empty slot that a place is about, linked into its chain, with the mark to write there; `None` where no chain
    /// reaches one. Calls no hook.
    ///
    /// # Safety
    /// The place is of this map, which did not change since and which the caller has alone, and none of a known key.
    pub(super) unsafe fn make_room(self, place: KeyPosition) -> Option<(u64, u8)> {
        match place {
            KeyPosition::Known(_) | KeyPosition::Full => None,
            KeyPosition::Home(home) => Some((home, 0)),
            KeyPosition::Behind(last) => {
                // SAFETY: the map is dense: places are only found in dense ones.
                let (jump, free) = unsafe { self.free_after(last) }?;
                // SAFETY: the last slot of a chain of this map, which the caller has alone (this contract).
                unsafe { self.set_jump(last, jump) };
                Some((free, BODY))
            }
            // SAFETY: `place` found the first slot in the body of a chain of this map, and the second before it.
            KeyPosition::Intruder { home, before } => unsafe { self.move_intruder(home, before) },
        }
    }

    /// Whether one pair more is more than 99 in 100 slots.
    #[inline]
    fn is_full(self) -> bool {
        // OBJ-07: upstream does not look at this for a key whose home is empty, either: both grow at the same pair.
        // A number that overflows here is that of no memory.
        self.size().wrapping_add(1).wrapping_mul(100) > self.slots().wrapping_mul(99)
    }

    /// # Safety
    /// The slot is a filled one of this dense map, which the caller has alone.
    /// Writes how far the next slot of a chain is, as an index into [`JUMPS`], and leaves the bit for the body of a chain alone.
    ///
    pub(super) unsafe fn set_jump(self, slot: u64, jump: u8) {
        // SAFETY: a slot of this dense map, by this contract.
        let mark = unsafe { self.mark_of(slot) };
        // SAFETY: the same slot, of a map that the caller has alone.
        unsafe { self.set_mark(slot, mark & BODY | jump) }
    }

    /// The nearest empty slot that a mark at `slot` can name.
    ///
    /// # Safety
    /// The map is dense.
    unsafe fn free_after(self, slot: u64) -> Option<(u8, u64)> {
        let wrapped = self.wrapping();
        // In the order of the table, 126 at most: where none is free the table grows, however empty it is.
        (1..JUMPS.len()).find_map(|jump| {
            let candidate = wrapped(slot.wrapping_add(JUMPS[jump]));
            // SAFETY: a dense map, by this contract, and one of its slots by the remainder.
            (unsafe { self.mark_of(candidate) } == EMPTY).then_some((jump as u8, candidate))
        })
    }

    /// Frees `home` from the chain that it belongs to, where it follows `last`: the rest of that chain, from `home` on, moves
    /// to other slots.
    ///
    /// # Safety
    /// `home` is in the body of a chain of this dense map, where it follows `last`, and the caller has the map alone.
    unsafe fn move_intruder(self, home: u64, mut last: u64) -> Option<(u64, u8)> {
        let mut from = home;
        let mut steps = Vec::new();
        loop {
            // SAFETY: the map is dense, by this contract.
            let Some((jump, free)) = (unsafe { self.free_after(last) }) else {
                // SAFETY: the steps of this loop, on a map that the caller has alone.
                unsafe { self.move_back(&steps) };
                return None;
            };
            // SAFETY: `free_after` returns a slot of this map, which the caller has alone.
            unsafe { self.set_mark(free, BODY) };
            // SAFETY: `from` is filled and `free` was empty, so these are two slots; the first is emptied below.
            unsafe { std::ptr::copy_nonoverlapping(self.item(from), self.item(free), 1) };
            // SAFETY: the item has just moved to this slot.
            unsafe { self.relink(free) };
            // SAFETY: a slot of a chain of this map: `home`, or what `after` returns.
            let mark = unsafe { self.mark_of(from) };
            // The first slot is kept for the newcomer: nothing of this chain may move back into it.
            let emptied = if from == home { PROTECTED } else { EMPTY };
            // SAFETY: the same slot, of a map that the caller has alone.
            unsafe { self.set_mark(from, emptied) };
            // SAFETY: a slot of this dense map: what `home` follows, by this contract, or where an item has just moved to.
            let followed = unsafe { self.mark_of(last) };
            // SAFETY: the same slot, which is filled.
            unsafe { self.set_jump(last, jump) };
            let step = MovedItem {
                from: (from, mark),
                last: (last, followed),
                free,
            };
            last = free;
            // Behind the last step nothing can fail, so that it need not be kept: most chains have no other.
            match self.after(from, mark) {
                Some(next) => {
                    steps.push(step);
                    from = next;
                }
                None => break,
            }
        }
        Some((home, 0))
    }

    /// Undoes what [`MapTable::move_intruder`] did so far: the chain is as it was.
    ///
    /// # Safety
    /// The steps are those that were made last, in their order, and the caller has the map alone.
    unsafe fn move_back(self, steps: &[MovedItem]) {
        for step in steps.iter().rev() {
            let (from, mark) = step.from;
            // SAFETY: the step moved the item from the one slot to the other, and the later steps are undone (this contract).
            unsafe { std::ptr::copy_nonoverlapping(self.item(step.free), self.item(from), 1) };
            // SAFETY: a slot of a map that the caller has alone; the item is back in it.
            unsafe { self.set_mark(from, mark) };
            // SAFETY: the item has just moved to this slot.
            unsafe { self.relink(from) };
            // SAFETY: a slot of the chain, of a map that the caller has alone.
            unsafe { self.set_mark(step.last.0, step.last.1) };
            // SAFETY: the slot that the step filled, and whose item has left it.
            unsafe { self.set_mark(step.free, EMPTY) };
        }
    }

    /// The slot before `slot` in its chain. Calls the hash of its key.
    ///
    /// # Safety
    /// The slot is in the body of a chain of this dense map, which nothing changes meanwhile.
    pub(super) unsafe fn before(self, slot: u64) -> Result<u64> {
        // SAFETY: slots in the body of a chain are filled, and the map stays as it is, by this contract.
        let hash = any_hash(unsafe { self.key_of(slot) })?;
        // SAFETY: the map is dense, by this contract.
        let mut at = unsafe { self.home(hash) };
        // Bounded: a chain that another library wrote wrongly may have no end.
        for _ in 0..=self.slots() {
            // SAFETY: a slot of this dense map: a home, or what `after` returns.
            match self.after(at, unsafe { self.mark_of(at) }) {
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

/// The error for a key that would make a chain of keys of a file longer than `longest` (OBJ-39).
#[cold]
fn chain_too_long(longest: u64) -> Error {
    let message = format!("more than {longest} keys of one map share a chain of its table");
    OBJ_39.rejected(crate::rule::Kind::Limit, message).into()
}
