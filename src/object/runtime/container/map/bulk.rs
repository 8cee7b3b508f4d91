//! Operations on all pairs of a map: take, drop, transfer, borrow, copy.

use super::layout::{EMPTY, MapBody, PROTECTED, Pair, free_data};
use super::pairs::{PairIter, PairSteps};
use super::table::MapTable;
use crate::function::Result;
use crate::value::Any;
use crate::value::header::ObjectRef;
use crate::value::heap::allocate;

impl MapTable {
    /// Empties the table and returns all pairs. The caller drops them when the table is consistent, because their destructors may use it
    /// again.
    ///
    /// # Safety
    /// The caller has exclusive access.
    #[must_use]
    pub(super) unsafe fn take(self) -> Vec<Pair> {
        let mut taken = Vec::with_capacity(self.size() as usize);
        let mut at = self.first();
        while let Some(position) = at {
            // SAFETY: `first` or `next` returned the position, and its pair is still there.
            at = unsafe { self.next(position) };
            // SAFETY: `first` or `next` returned the position.
            let pair = unsafe { self.pair_at(position) };
            // SAFETY: there is a pair at such a position, which is read once, because the map is emptied here.
            taken.push(unsafe { pair.read() });
            if !self.is_small() {
                // SAFETY: positions of a dense map are its slots; the caller has exclusive access (this contract).
                unsafe { self.set_mark(position, EMPTY) };
            }
        }
        if self.is_small() {
            // SAFETY: a live map, to which the caller has exclusive access (this contract); an empty one needs no filled pair.
            unsafe { (*self.as_ptr()).body.size = 0 }
        } else {
            // SAFETY: a dense map, to which the caller has exclusive access (this contract), and whose pairs are in `taken`.
            unsafe { self.remove_without_drop() };
        }
        taken
    }

    /// Drops all pairs and frees their memory.
    ///
    /// # Safety
    /// Nothing else can reach the table any more.
    pub(super) unsafe fn reset(self) {
        // Values are dropped in order of insertion. The next position is read before its pair is dropped.
        let mut at = self.first();
        while let Some(position) = at {
            // SAFETY: `first` or `next` returned the position, and its pair is still there.
            at = unsafe { self.next(position) };
            // SAFETY: `first` or `next` returned the position.
            let pair = unsafe { self.pair_at(position) };
            // SAFETY: there is a pair at such a position. It is read once, and nothing reads the map after that (this contract).
            let Pair { key, value } = unsafe { pair.read() };
            drop(key);
            drop(value);
        }
        // SAFETY: a live map, to which the caller has exclusive access (this contract), and whose pairs are dropped.
        let body = std::mem::replace(unsafe { &mut (*self.as_ptr()).body }, MapBody::NOTHING);
        // A map that was created small has its pairs in the object and no deleter.
        if let Some(free) = body.data_deleter
            && !body.data.is_null()
        {
            // SAFETY: the deleter that was stored for this memory (OBJ-05), which the map no longer uses.
            unsafe { free(body.data.cast()) };
        }
    }

    /// Frees an object that is not shared yet.
    ///
    /// # Safety
    /// The map is fresh: [`MapTable::small`] or [`MapTable::dense`] created it, and its only reference belongs to the caller. Neither this
    /// value nor a copy is used afterwards.
    pub(super) unsafe fn dispose(self) {
        // SAFETY: the only reference of a fresh object, by this contract.
        drop(unsafe { ObjectRef::from_raw(self.as_ptr().cast()) });
    }

    /// Takes over the contents of `other`, a fresh object, and returns the old pairs. This object keeps its identity. `other` is then
    /// empty, and the caller disposes of it. Calls no hook and drops no value.
    ///
    /// # Safety
    /// `other` is fresh, and the caller has exclusive access to both maps.
    #[must_use]
    pub(super) unsafe fn become_table(self, other: MapTable) -> Vec<Pair> {
        // SAFETY: the caller has exclusive access to this map.
        let gone = unsafe { self.take() };
        // SAFETY: the caller has exclusive access to this map; its old pairs are in `gone`.
        unsafe { self.reset() };
        // SAFETY: a live map, by the invariant of `MapTable`.
        let mut body = unsafe { (*other.as_ptr()).body };
        // The pairs of a small map are inside `other`, which is freed later, so they move to a separate block. The memory of a dense
        // table is transferred.
        if other.is_small() {
            let bytes = other.slots() as usize * size_of::<Pair>();
            let data = allocate(bytes);
            // SAFETY: the pairs of a fresh small map are in one block of `slots` pairs (`MapTable::small`), and the new block has the same
            // size.
            unsafe { std::ptr::copy_nonoverlapping(body.data, data, bytes) };
            body.data = data;
            body.data_deleter = Some(free_data);
            // SAFETY: a live map, to which the caller has exclusive access; its pairs now belong to this map.
            unsafe { (*other.as_ptr()).body.size = 0 };
        } else {
            // SAFETY: a live map, by the invariant of `MapTable`; a dense one has the field (OBJ-07).
            let order = unsafe { (*other.as_ptr()).order };
            // SAFETY: a live map, to which the caller has exclusive access; even the memory of a small one is large enough to be dense
            // (OBJ-05).
            unsafe { (*self.as_ptr()).order = order };
            // SAFETY: a live map, to which the caller has exclusive access; its pairs now belong to this map.
            unsafe { (*other.as_ptr()).body = MapBody::NOTHING };
        }
        // SAFETY: a live map without pairs, to which the caller has exclusive access; it receives the pairs of the other.
        unsafe { (*self.as_ptr()).body = body };
        gone
    }

    /// Returns whether there is a pair at a position, which may be outdated.
    pub(super) fn is_filled(self, position: u64) -> bool {
        if self.is_small() {
            return position < self.size();
        }
        // SAFETY: the map is dense, and the slot is below the number of slots.
        position < self.slots() && !matches!(unsafe { self.mark_of(position) }, EMPTY | PROTECTED)
    }

    /// Borrows the pairs.
    ///
    /// # Safety
    /// The map lives for `'a`, and nothing changes it.
    pub(super) unsafe fn borrowed<'a>(self) -> PairIter<'a> {
        PairIter(PairSteps::Borrowed(self, self.first()))
    }

    /// Returns copies of the current pairs.
    pub(super) fn copied_pairs(self) -> Vec<(Any, Any)> {
        // SAFETY: nothing changes the map while this reads it (`MapTable::of`), and the pairs are copied before it returns.
        let pairs = unsafe { self.borrowed() };
        pairs
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }

    /// Returns a fresh map with the same pairs.
    pub(super) fn copy(self) -> Result<MapTable> {
        if self.is_small() {
            return Ok(self.small_copy(self.size()));
        }
        // SAFETY: the map is dense, because `is_small` is false.
        let shift = unsafe { self.fib_shift() };
        self.copy_pairs_to_new(self.slots(), shift)
    }
}
