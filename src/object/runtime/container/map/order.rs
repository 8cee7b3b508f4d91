//! The order of insertion, and the removal of a pair from it (OBJ-08). In a dense map it is a linked list of items by slot number, so that
//! it survives a move of the table's memory.

use super::layout::{BODY, EMPTY, MapItem, NOWHERE, Pair};
use super::table::MapTable;
use crate::function::Result;

impl MapTable {
    /// Removes an item from the order.
    ///
    /// # Safety
    /// The slot is in the order of this dense map, to which the caller has exclusive access.
    pub(super) unsafe fn unlink(self, slot: u64) {
        // SAFETY: a filled slot, by this contract.
        let MapItem { prev, next, .. } = unsafe { &*self.item(slot) };
        let (prev, next) = (*prev, *next);
        // SAFETY: the neighbours of an item in the order are items of this map, or NOWHERE (OBJ-07).
        unsafe { self.set_next(prev, next) };
        // SAFETY: the neighbours of an item in the order are items of this map, or NOWHERE (OBJ-07).
        unsafe { self.set_prev(next, prev) };
    }

    /// Appends an item to the end of the order.
    ///
    /// # Safety
    /// The slot is a filled one of this dense map that is not in the order, and the caller has exclusive access.
    pub(super) unsafe fn link_last(self, slot: u64) {
        // SAFETY: a live map, by the invariant of `MapTable`; a dense one, by this contract, has the field (OBJ-07).
        let tail = unsafe { (*self.as_ptr()).order.tail };
        let item = self.item(slot);
        // SAFETY: a filled slot, by this contract.
        unsafe { (*item).prev = tail };
        // SAFETY: a filled slot, by this contract.
        unsafe { (*item).next = NOWHERE };
        // SAFETY: the last item in the order is an item of this map, or NOWHERE (OBJ-07).
        unsafe { self.set_next(tail, slot) };
        // SAFETY: a live map, by the invariant of `MapTable`; a dense one, by this contract, has the field (OBJ-07).
        unsafe { (*self.as_ptr()).order.tail = slot };
    }

    /// Updates the neighbours of an item that moved to `slot`.
    ///
    /// # Safety
    /// The slot has an item in the order of this dense map, to which the caller has exclusive access.
    pub(super) unsafe fn relink(self, slot: u64) {
        // SAFETY: a slot with an item, by this contract.
        let MapItem { prev, next, .. } = unsafe { &*self.item(slot) };
        let (prev, next) = (*prev, *next);
        // SAFETY: the neighbours of an item in the order are items of this map, or NOWHERE (OBJ-07).
        unsafe { self.set_next(prev, slot) };
        // SAFETY: the neighbours of an item in the order are items of this map, or NOWHERE (OBJ-07).
        unsafe { self.set_prev(next, slot) };
    }

    /// Sets the successor of `slot` in the order. NOWHERE is the position before the first item.
    ///
    /// # Safety
    /// `slot` has an item of this dense map, or is NOWHERE; the caller has exclusive access.
    pub(super) unsafe fn set_next(self, slot: u64, next: u64) {
        match slot {
            // SAFETY: a live map, by the invariant of `MapTable`; a dense one, by this contract, has the field (OBJ-07).
            NOWHERE => unsafe { (*self.as_ptr()).order.head = next },
            // SAFETY: a slot with an item, by this contract.
            slot => unsafe { (*self.item(slot)).next = next },
        }
    }

    /// Sets the predecessor of `slot` in the order. NOWHERE is the position after the last item.
    ///
    /// # Safety
    /// `slot` has an item of this dense map, or is NOWHERE; the caller has exclusive access.
    unsafe fn set_prev(self, slot: u64, prev: u64) {
        match slot {
            // SAFETY: a live map, by the invariant of `MapTable`; a dense one, by this contract, has the field (OBJ-07).
            NOWHERE => unsafe { (*self.as_ptr()).order.tail = prev },
            // SAFETY: a slot with an item, by this contract.
            slot => unsafe { (*self.item(slot)).prev = prev },
        }
    }

    /// Removes the pair at a position and returns it, so that the caller can drop it.
    ///
    /// # Safety
    /// The contract of [`MapTable::pair_at`] holds. The caller also has exclusive access, or stays at the dict to change it.
    pub(super) unsafe fn erase(self, position: u64) -> Result<Pair> {
        if self.is_small() {
            return Ok(self.run_locked(|| {
                let (gone, next) = (self.pair(position), self.pair(position + 1));
                // SAFETY: `find` returned the position, by this contract, so a pair of this small map is there; the next pair, or the
                // count, covers it.
                let pair = unsafe { gone.read() };
                let behind = self.size() - position - 1;
                // SAFETY: the pairs after it, up to `size`, move down by one; the caller has exclusive access (`MapTable`).
                unsafe { std::ptr::copy(next, gone, behind as usize) };
                // SAFETY: a live map, to which the caller has exclusive access; its pairs are now in the first `size - 1` places.
                unsafe { (*self.as_ptr()).body.size -= 1 };
                pair
            }));
        }
        // SAFETY: `find` returned the position, by this contract, so it is a slot of this dense map.
        let mark = unsafe { self.mark_of(position) };
        if self.next_in_chain(position, mark).is_none() {
            let before = match mark & BODY {
                0 => None,
                // SAFETY: the slot is in the body of a chain, as its mark says. This calls a hook, so it precedes the change.
                _ => Some(unsafe { self.previous_in_chain(position)? }),
            };
            return Ok(self.run_locked(|| {
                if let Some(before) = before {
                    // SAFETY: `before` returned a slot of this map's chain, and the caller has exclusive access (`MapTable`).
                    unsafe { self.set_jump(before, 0) };
                }
                // SAFETY: `find` returned the position of a pair, and those are in the order.
                let gone = unsafe { self.leave(position) };
                // SAFETY: a slot of this map, whose item has just been read for the last time.
                unsafe { self.set_mark(position, EMPTY) };
                gone
            }));
        }
        // A slot in the middle of a chain cannot simply be emptied, because there may be no mark for the distance across it. Instead,
        // the last item of the chain moves to the slot of the removed one.
        let (mut before, mut last) = (position, position);
        // SAFETY: a slot of this dense map: the position, or a result of `after`.
        while let Some(next) = self.next_in_chain(last, unsafe { self.mark_of(last) }) {
            (before, last) = (last, next);
        }
        Ok(self.run_locked(|| {
            // SAFETY: `find` returned the position of a pair, and those are in the order.
            let gone = unsafe { self.leave(position) };
            // SAFETY: the last slot of the chain differs from the position, whose item has just been read for the last time.
            unsafe { std::ptr::copy_nonoverlapping(self.item(last), self.item(position), 1) };
            // SAFETY: the item has just moved to this slot.
            unsafe { self.relink(position) };
            // SAFETY: a slot of this map, whose item has just moved away.
            unsafe { self.set_mark(last, EMPTY) };
            // SAFETY: the slot before the last one of the chain, and the caller has exclusive access (`MapTable`).
            unsafe { self.set_jump(before, 0) };
            gone
        }))
    }

    /// Removes an item from the order and the count, and reads its pair for the last time.
    ///
    /// # Safety
    /// The slot is in the order of this dense map, to which the caller has exclusive access. Afterwards the caller empties or refills the
    /// slot.
    unsafe fn leave(self, slot: u64) -> Pair {
        // SAFETY: in the order, of a map to which the caller has exclusive access, by this contract.
        unsafe { self.unlink(slot) };
        // SAFETY: a live map, by the invariant of `MapTable`; the pair of the slot no longer counts.
        unsafe { (*self.as_ptr()).body.size -= 1 };
        // SAFETY: a slot in the order has an item, which the map no longer has after this (this contract).
        unsafe { self.item(slot).read() }.pair
    }
}
