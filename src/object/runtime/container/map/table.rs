//! Raw access to a map: creation, lookup and iteration (OBJ-05 to OBJ-08).

use super::access_guard::{Purpose, Stay};
use super::layout::{
    BLOCK, BODY, EMPTY, HEAD, JUMPS, MapBody, MapItem, MapObj, MapOrder, NOWHERE, Pair, SMALL,
    blocks, free_data,
};
use crate::function::Result;
use crate::object::container::lock::{LockGuard, lock, with_lock};
use crate::object::format::key_hash;
use crate::object::hash::{any_equal, any_hash};
use crate::value::header::{DELETE_STRONG, DELETE_WEAK, Header, end_nested};
use crate::value::heap::{allocate, release};
use crate::value::{Any, AnyView, index};

/// Deletes a map of either kind. Frees long chains of nested maps without recursion (VAL-05).
///
/// # Safety
/// The call follows VAL-05.
unsafe extern "C-unwind" fn delete(object: *mut Header, flags: i32) {
    // SAFETY: deleters are called as VAL-05 says, which is the contract of `end`.
    unsafe { end_nested(object, flags, end) }
}

/// Does the work of [`delete`].
///
/// # Safety
/// The call follows VAL-05.
unsafe extern "C-unwind" fn end(object: *mut Header, flags: i32) {
    if flags & DELETE_STRONG != 0 {
        // SAFETY: the last strong reference is gone (VAL-05), so nothing else uses the map.
        unsafe { MapTable(object.cast()).reset() }
    }
    if flags & DELETE_WEAK != 0 {
        // SAFETY: the last weak reference is gone (VAL-05), and maps with this deleter are allocated with `allocate`.
        unsafe { release(object.cast()) }
    }
}

/// Raw access to a map object. Copies alias.
///
/// Invariant: the clauses of [`MapTable::of`] hold for every copy. Therefore methods that read are safe, and methods that change or free
/// the map, or take a position, are `unsafe`. *Exclusive access* to a map means that it is fresh, a [`Map`](super::Map) with one reference,
/// or a [`Dict`](super::Dict) that this thread has locked ([`MapTable::run_locked`]).
#[derive(Clone, Copy)]
pub(super) struct MapTable(*mut MapObj);

impl MapTable {
    /// Returns raw access to `map`.
    ///
    /// # Safety
    /// * `map` is a map as specified by OBJ-05 to OBJ-07, and lives for as long as the result and its copies are used.
    /// * Nothing else changes it while one of them reads it. Either it is a [`Map`](super::Map), which nothing changes while others hold
    ///   it, or the caller stays at the [`Dict`](super::Dict) or has locked it. [`MapTable::look_up`], [`MapTable::insert_at_once`] and
    ///   [`MapTable::run_locked`] are exceptions, because they lock or stay themselves.
    #[inline]
    pub(super) const unsafe fn of(map: *mut MapObj) -> MapTable {
        MapTable(map)
    }

    /// Returns the address of the map, without a reference.
    #[inline]
    pub(super) const fn as_ptr(self) -> *mut MapObj {
        self.0
    }

    /// Creates a small map with room for `slots` pairs (at least 2). Its block is large enough to become dense in place.
    pub(super) fn small(type_index: i32, slots: u64) -> MapTable {
        let slots = slots.max(2);
        let object = allocate(HEAD + slots as usize * size_of::<Pair>()).cast::<MapObj>();
        let header = Header::new(type_index, delete);
        // SAFETY: the block begins with a header. It has at least 120 bytes, so it can also become dense in place; a `MapObj` is not
        // written, because the pairs overlap its last part.
        unsafe { object.cast::<Header>().write(header) };
        let body = MapBody {
            data: object.cast::<u8>().wrapping_add(HEAD),
            size: 0,
            slots: slots | SMALL,
            data_deleter: None,
        };
        let place = object.wrapping_byte_add(std::mem::offset_of!(MapObj, body));
        // SAFETY: the body follows the header in those bytes.
        unsafe { place.cast::<MapBody>().write(body) };
        MapTable(object)
    }

    /// Creates an empty dense map.
    pub(super) fn dense(type_index: i32, slots: u64, fib_shift: u32) -> MapTable {
        let object = allocate(size_of::<MapObj>()).cast::<MapObj>();
        // Whole blocks: the marks after the last slot are also empty, and no slot number reaches them.
        let blocks = blocks(slots);
        let data = allocate(blocks * BLOCK);
        for block in 0..blocks {
            let marks = data.wrapping_add(block * BLOCK);
            // SAFETY: the marks of a block are its first 16 bytes, and there are `blocks` of them at `data`.
            unsafe { marks.write_bytes(EMPTY, 16) }
        }
        let map = MapObj {
            header: Header::new(type_index, delete),
            body: MapBody {
                data,
                size: 0,
                slots,
                data_deleter: Some(free_data),
            },
            order: MapOrder::empty(fib_shift),
        };
        // SAFETY: the block is as large as a `MapObj`, and aligned for any object.
        unsafe { object.write(map) };
        MapTable(object)
    }

    /// Returns the number of pairs.
    pub(super) fn size(self) -> u64 {
        // SAFETY: a live map, by the invariant of `MapTable`; both forms have a body.
        unsafe { (*self.0).body.size }
    }

    /// Returns whether the map is small: the pairs are contiguous, and there are no marks (OBJ-05).
    pub(super) fn is_small(self) -> bool {
        // SAFETY: a live map, by the invariant of `MapTable`; both forms have a body.
        unsafe { (*self.0).body.slots & SMALL != 0 }
    }

    /// Returns the number of slots, without the bit for small maps.
    pub(super) fn slots(self) -> u64 {
        // SAFETY: a live map, by the invariant of `MapTable`; both forms have a body.
        unsafe { (*self.0).body.slots & !SMALL }
    }

    /// Returns the type index, of a map or of a dict.
    pub(super) fn type_index(self) -> i32 {
        // SAFETY: a live map, by the invariant of `MapTable`, begins with a header.
        unsafe { (*self.0).header.type_index }
    }

    /// Returns the address of the pairs or the blocks.
    pub(super) fn data(self) -> *mut u8 {
        // SAFETY: a live map, by the invariant of `MapTable`; both forms have a body.
        unsafe { (*self.0).body.data }
    }

    /// Returns the address of pair `at` of a small map, which has [`MapTable::slots`] of them.
    pub(super) fn pair(self, at: u64) -> *mut Pair {
        self.data().cast::<Pair>().wrapping_add(at as usize)
    }

    /// Returns the address of the mark of a slot of a dense map, which has [`MapTable::slots`] of them.
    pub(super) fn mark(self, slot: u64) -> *mut u8 {
        let (block, at) = (slot as usize / 16, slot as usize % 16);
        self.data().wrapping_add(block * BLOCK + at)
    }

    /// Returns the address of the item of a slot of a dense map. Items follow the 16 marks of their block.
    pub(super) fn item(self, slot: u64) -> *mut MapItem {
        let (block, at) = (slot as usize / 16, slot as usize % 16);
        let offset = block * BLOCK + 16 + at * size_of::<MapItem>();
        self.data().wrapping_add(offset).cast()
    }

    /// Returns the mark of a slot.
    ///
    /// # Safety
    /// The slot belongs to this dense map.
    pub(super) unsafe fn mark_of(self, slot: u64) -> u8 {
        // SAFETY: one of its slots, by this contract, and every slot has a mark (OBJ-07).
        unsafe { *self.mark(slot) }
    }

    /// Writes the mark of a slot.
    ///
    /// # Safety
    /// The slot belongs to this dense map, to which the caller has exclusive access.
    pub(super) unsafe fn set_mark(self, slot: u64, mark: u8) {
        // SAFETY: one of its slots, by this contract, and every slot has a mark (OBJ-07).
        unsafe { self.mark(slot).write(mark) }
    }

    /// Returns the key of a slot.
    ///
    /// # Safety
    /// The slot is a filled one of this dense map, and nothing changes the map while the key is used.
    pub(super) unsafe fn key_of<'a>(self, slot: u64) -> AnyView<'a> {
        // SAFETY: a filled slot has an item, and it stays as it is, by this contract.
        let key: &'a Any = unsafe { &(*self.item(slot)).pair.key };
        key.view()
    }

    /// Finds `key`: a pair of a small map, or a slot of a dense one. Returns `None` if it is missing.
    pub(super) fn find(self, key: AnyView<'_>) -> Result<Option<u64>> {
        if self.size() == 0 {
            return Ok(None);
        }
        if self.is_small() {
            for at in 0..self.size() {
                // SAFETY: the first `size` pairs of a small map are filled (OBJ-06); nothing changes a map during a lookup (`Stay`).
                let own = unsafe { &(*self.pair(at)).key };
                // OBJ-38: in a small map, the stored key is the left side. In a dense map, it is the right side, as in upstream. A hook
                // can observe the difference.
                if any_equal(own.view(), key)? {
                    return Ok(Some(at));
                }
            }
            return Ok(None);
        }
        let hash = any_hash(key)?;
        // SAFETY: the map is dense, because `is_small` is false.
        let mut slot = unsafe { self.chain_start_slot(hash) };
        // SAFETY: a home is a slot of this dense map (OBJ-07).
        if unsafe { self.mark_of(slot) } & BODY != 0 {
            return Ok(None);
        }
        loop {
            // SAFETY: the slots of a chain are filled (OBJ-07); nothing changes a map during a lookup (`Stay`).
            if any_equal(key, unsafe { self.key_of(slot) })? {
                return Ok(Some(slot));
            }
            // SAFETY: a slot of this dense map: a home, or a result of `next_in_chain`.
            match self.next_in_chain(slot, unsafe { self.mark_of(slot) }) {
                Some(next) => slot = next,
                None => return Ok(None),
            }
        }
    }

    /// Returns the hash shift of a dense map.
    ///
    /// # Safety
    /// The map is dense.
    pub(super) unsafe fn fib_shift(self) -> u32 {
        // SAFETY: a live map, by the invariant of `MapTable`; a dense one, by this contract, has the field (OBJ-07).
        unsafe { (*self.0).order.fib_shift }
    }

    /// Returns the slot where the chain of `hash` begins.
    ///
    /// # Safety
    /// The map is dense.
    pub(super) unsafe fn chain_start_slot(self, hash: u64) -> u64 {
        // SAFETY: the contract of `fib_shift` is this one.
        let shift = unsafe { self.fib_shift() };
        key_hash::home(hash, shift)
    }

    /// Returns the slot after `slot` in its chain, given the mark of `slot` (OBJ-07); `None` for the last.
    pub(super) fn next_in_chain(self, slot: u64, mark: u8) -> Option<u64> {
        match JUMPS.get(usize::from(mark & 0x7f)) {
            // `None` is the result for empty and protected slots, whose low bits are beyond the table of distances.
            Some(0) | None => None,
            Some(&jump) => Some(self.wrapped(slot.wrapping_add(jump))),
        }
    }

    /// Returns `slot` modulo the number of slots. In every table that this library created, that number is a power of two.
    #[inline]
    pub(super) fn wrapped(self, slot: u64) -> u64 {
        self.wrapping()(slot)
    }

    /// Like [`MapTable::wrapped`], for several slots.
    #[inline]
    pub(super) fn wrapping(self) -> impl Fn(u64) -> u64 {
        let slots = self.slots();
        let mask = slots.wrapping_sub(1);
        // OBJ-07: another library may have created a table of any size, for which upstream takes the remainder. A mask is much cheaper.
        let is_power = slots & mask == 0;
        move |slot| if is_power { slot & mask } else { slot % slots }
    }

    /// Returns the address of the pair at a position.
    ///
    /// # Safety
    /// The position belongs to this map: `find`, `first` or `next` returned it, and the map has not changed since.
    pub(super) unsafe fn pair_at(self, position: u64) -> *mut Pair {
        if self.is_small() {
            return self.pair(position);
        }
        // SAFETY: a dense map, where positions, by this contract, are slots, and every slot has an item.
        unsafe { &raw mut (*self.item(position)).pair }
    }

    /// Returns the first position, in the order of OBJ-08.
    pub(super) fn first(self) -> Option<u64> {
        if self.size() == 0 {
            return None;
        }
        if self.is_small() {
            return Some(0);
        }
        // SAFETY: a live map, by the invariant of `MapTable`; a dense one has the field (OBJ-07).
        Some(unsafe { (*self.0).order.head })
    }

    /// Returns the position after this one, in the order of OBJ-08.
    ///
    /// # Safety
    /// As for [`MapTable::pair_at`].
    pub(super) unsafe fn next(self, position: u64) -> Option<u64> {
        if self.is_small() {
            return Some(position + 1).filter(|&next| next < self.size());
        }
        // SAFETY: positions of a dense map are slots with items, and this is one, by this contract.
        Some(unsafe { (*self.item(position)).next }).filter(|&next| next != NOWHERE)
    }

    /// Runs `work`, which changes the table or reads it without a stay, under the lock of a dict. All calls of hooks come before it,
    /// and all drops of values after it.
    #[inline]
    pub(super) fn run_locked<R>(self, work: impl FnOnce() -> R) -> R {
        let _guard = self.lock();
        work()
    }

    /// Locks a dict. One function for all maps, so that `work` is compiled only once.
    #[inline]
    pub(super) fn lock(self) -> Option<LockGuard> {
        (self.type_index() == index::DICT).then(|| lock(self.0))
    }

    /// Returns the value of `key`. The caller stays at a dict, or has exclusive access and the key calls no hook.
    fn value_of(self, key: AnyView<'_>) -> Result<Option<Any>> {
        let Some(at) = self.find(key)? else {
            return Ok(None);
        };
        // SAFETY: `find` returned the position, and nothing changed the map since: the caller stays at it, or has exclusive access.
        let pair = unsafe { self.pair_at(at) };
        // SAFETY: there is a pair at a position that `find` returned.
        Ok(Some(unsafe { &(*pair).value }.clone()))
    }

    /// Returns the value of `key` in a map of either kind.
    pub(super) fn look_up(self, key: AnyView<'_>) -> Result<Option<Any>> {
        if self.type_index() != index::DICT {
            return self.value_of(key);
        }
        if is_plain(key) {
            return with_lock(self.0, || self.value_of(key));
        }
        let _stay = Stay::begin(self.0, Purpose::Look)?;
        self.value_of(key)
    }
}

/// Returns whether a lookup of `key` calls no hook. Only objects have hooks, and strings and bytes are compared by content.
pub(super) fn is_plain(key: AnyView<'_>) -> bool {
    let kind = key.type_index();
    kind < index::OBJECT_BEGIN || matches!(kind, index::STR | index::BYTES)
}
