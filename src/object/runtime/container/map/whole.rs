//! All pairs of a map at once: taken out, dropped, taken over, borrowed, copied.

use super::layout::{EMPTY, MapBody, PROTECTED, Pair, free_data};
use super::pairs::{PairIter, PairSteps};
use super::table::MapTable;
use crate::function::Result;
use crate::value::Any;
use crate::value::header::ObjectRef;
use crate::value::heap::allocate;

impl MapTable {
    /// Leaves the table empty and returns all pairs. The caller drops them when the table is whole: what ends with a value may
    /// come back to it.
    ///
    /// # Safety
    /// The caller has the map alone.
    #[must_use]
    pub(super) unsafe fn take(self) -> Vec<Pair> {
        let mut taken = Vec::with_capacity(self.size() as usize);
        let mut at = self.first();
        while let Some(position) = at {
            // SAFETY: `first` or `next` returned the position, and its pair is still there.
            at = unsafe { self.next(position) };
            // SAFETY: `first` or `next` returned the position.
            let pair = unsafe { self.pair_at(position) };
            // SAFETY: there is a pair at such a position, which is read once: the map is emptied here.
            taken.push(unsafe { pair.read() });
            if !self.is_small() {
                // SAFETY: positions of a dense map are its slots; the caller has it alone (this contract).
                unsafe { self.set_mark(position, EMPTY) };
            }
        }
        if self.is_small() {
            // SAFETY: a live map, which the caller has alone (this contract); an empty one needs no filled pair.
            unsafe { (*self.as_ptr()).body.size = 0 }
        } else {
            // SAFETY: a dense map, which the caller has alone (this contract), and whose pairs are in `taken`.
            unsafe { self.forget() };
        }
        taken
    }

    /// Drops all pairs and the memory behind them.
    ///
    /// # Safety
    /// No one else reaches the table any more.
    pub(super) unsafe fn reset(self) {
        // In order, and each next position before the pair goes: values end in the order of insertion.
        let mut at = self.first();
        while let Some(position) = at {
            // SAFETY: `first` or `next` returned the position, and its pair is still there.
            at = unsafe { self.next(position) };
            // SAFETY: `first` or `next` returned the position.
            let pair = unsafe { self.pair_at(position) };
            // SAFETY: there is a pair at such a position. It is read once, and no one looks at the map after that (this
            // contract).
            let Pair { key, value } = unsafe { pair.read() };
            drop(key);
            drop(value);
        }
        // SAFETY: a live map, which the caller has alone (this contract), and whose pairs are dropped.
        let body = std::mem::replace(unsafe { &mut (*self.as_ptr()).body }, MapBody::NOTHING);
        // A small map that was made small has its pairs in the object, and no deleter.
        if let Some(free) = body.data_deleter
            && !body.data.is_null()
        {
            // SAFETY: the deleter that was left for this memory (OBJ-05), which the map has no more.
            unsafe { free(body.data.cast()) };
        }
    }

    /// Ends an object that is not shared yet.
    ///
    /// # Safety
    /// The map is fresh: [`MapTable::small`] or [`MapTable::dense`] made it, and its one reference is the caller's. Neither this nor a
    /// copy is used afterwards.
    pub(super) unsafe fn dispose(self) {
        // SAFETY: the one reference of a fresh object, by this contract.
        drop(unsafe { ObjectRef::from_raw(self.as_ptr().cast()) });
    }

    /// Takes over the contents of `other`, a fresh object, and returns the own pairs. The identity of this object stays. The
    /// other is empty then, for the caller to dispose of. Calls no hook and drops no value.
    ///
    /// # Safety
    /// `other` is fresh, and the caller has both maps alone.
    #[must_use]
    pub(super) unsafe fn become_table(self, other: MapTable) -> Vec<Pair> {
        // SAFETY: the caller has this map alone.
        let gone = unsafe { self.take() };
        // SAFETY: the caller has this map alone; what it had is in `gone`.
        unsafe { self.reset() };
        // SAFETY: a live map, by the invariant of `MapTable`.
        let mut body = unsafe { (*other.as_ptr()).body };
        // Its pairs lie in the object that ends, so they move to memory of their own; a dense table is handed over as it is.
        if other.is_small() {
            let bytes = other.slots() as usize * size_of::<Pair>();
            let data = allocate(bytes);
            // SAFETY: the pairs of a fresh small map lie in one block of `slots` pairs (`MapTable::small`), and the new one is
            // as large.
            unsafe { std::ptr::copy_nonoverlapping(body.data, data, bytes) };
            body.data = data;
            body.data_deleter = Some(free_data);
            // SAFETY: a live map, which the caller has alone; its pairs are this map's now.
            unsafe { (*other.as_ptr()).body.size = 0 };
        } else {
            // SAFETY: a live map, by the invariant of `MapTable`; a dense one has the field (OBJ-07).
            let order = unsafe { (*other.as_ptr()).order };
            // SAFETY: a live map, which the caller has alone, and the memory of a small one too is large enough to be dense
            // (OBJ-05).
            unsafe { (*self.as_ptr()).order = order };
            // SAFETY: a live map, which the caller has alone; its pairs are this map's now.
            unsafe { (*other.as_ptr()).body = MapBody::NOTHING };
        }
        // SAFETY: a live map, which the caller has alone and which has no pairs: those of the other come to it.
        unsafe { (*self.as_ptr()).body = body };
        gone
    }

    /// Whether there is a pair at what was a position once.
    pub(super) fn is_filled(self, position: u64) -> bool {
        if self.is_small() {
            return position < self.size();
        }
        // SAFETY: the map is dense and the slot below the number of its slots.
        position < self.slots() && !matches!(unsafe { self.mark_of(position) }, EMPTY | PROTECTED)
    }

    /// The pairs, borrowed.
    ///
    /// # Safety
    /// The map lives for `'a`, and nothing changes it.
    pub(super) unsafe fn borrowed<'a>(self) -> PairIter<'a> {
        PairIter(PairSteps::Borrowed(self, self.first()))
    }

    /// Copies of the pairs, as they are now.
    pub(super) fn copied_pairs(self) -> Vec<(Any, Any)> {
        // SAFETY: nothing changes the map while this reads it (`MapTable::of`), and the pairs are copied before it returns.
        let pairs = unsafe { self.borrowed() };
        pairs
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }

    /// A fresh map of the same pairs.
    pub(super) fn copy(self) -> Result<MapTable> {
        if self.is_small() {
            return Ok(self.small_copy(self.size()));
        }
        // SAFETY: the map is dense: `is_small` is false.
        let shift = unsafe { self.fib_shift() };
        self.copied(self.slots(), shift)
    }
}
