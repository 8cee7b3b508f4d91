//! Maps: [`Map`] (copied when changed) and [`Dict`] (changed in place), with the table that inlined C++ reads.
//!
//! | bytes   | field                                                          | rule   |
//! |---------|----------------------------------------------------------------|--------|
//! | 24..32  | address of the pairs (small) or blocks (dense)                 | OBJ-05 |
//! | 32..40  | number of pairs                                                | OBJ-05 |
//! | 40..48  | number of slots; bit 63 says small                             | OBJ-05 |
//! | 48..56  | frees the memory behind the address; null when it is the object's | OBJ-05 |
//! | 56..    | small: pairs of cells, in order of insertion                   | OBJ-06 |
//! | 56..60  | dense: shift of the Fibonacci hash                             | OBJ-07 |
//! | 64..80  | dense: first and last slot in order of insertion               | OBJ-07 |
//!
//! A dense block is 16 bytes of marks and 16 items of 48 bytes: key, value, previous slot, next slot.

use super::hash::{any_equal, any_hash};
use super::turnstile::{Purpose, Stay, Turn, alone, turn};
use crate::function::{Error, Result, lent};
use crate::object::{OBJ_07, OBJ_39};
use crate::value::header::{
    DELETE_STRONG, DELETE_WEAK, Header, ObjectRef, Ref, end_nested, static_object,
};
use crate::value::heap::{allocate, release};
use crate::value::{Any, AnyView, Argument, Schema, VAL_10, index};
use std::ffi::c_void;
use std::marker::PhantomData;

const SMALL: u64 = 1 << 63;
const SMALL_MAX: u64 = 4;
const NOWHERE: u64 = u64::MAX;
const EMPTY: u8 = 0xff;
const PROTECTED: u8 = 0xfe;
const BODY: u8 = 0x80;
const BLOCK: usize = 16 + 16 * size_of::<Item>();
/// The most keys of one chain in a map whose keys come from a file or a text (OBJ-39). By chance no chain of a million keys
/// reaches a tenth of it.
pub(super) const UNTRUSTED_CHAIN: u64 = 256;
/// For keys that a program chose.
const ANY_CHAIN: u64 = u64::MAX;
const GOLDEN: u64 = 11_400_714_819_323_198_485;

/// The fixed part of both maps.
#[repr(C)]
pub(crate) struct MapObj {
    header: Header,
    body: MapBody,
    // Only in a dense map; a small one has its pairs there.
    order: MapOrder,
}

/// Where the pairs are, and how many.
#[repr(C)]
#[derive(Clone, Copy)]
struct MapBody {
    data: *mut u8,
    size: u64,
    slots: u64,
    data_deleter: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
}

impl MapBody {
    /// No pairs, and no room for any.
    const NOTHING: MapBody = MapBody {
        data: std::ptr::null_mut(),
        size: 0,
        slots: SMALL,
        data_deleter: None,
    };
}

/// What a dense map has besides.
#[repr(C)]
#[derive(Clone, Copy)]
struct MapOrder {
    fib_shift: u32,
    padding: u32,
    head: u64,
    tail: u64,
}

impl MapOrder {
    /// Of a map without pairs.
    const fn empty(fib_shift: u32) -> MapOrder {
        MapOrder {
            fib_shift,
            padding: 0,
            head: NOWHERE,
            tail: NOWHERE,
        }
    }
}

const HEAD: usize = std::mem::offset_of!(MapObj, order);
const _: () = assert!(size_of::<MapObj>() == 80 && HEAD == 56);

#[repr(C)]
struct Pair {
    key: Any,
    value: Any,
}

impl Pair {
    const fn of(key: Any, value: Any) -> Pair {
        Pair { key, value }
    }

    fn copy(&self) -> Pair {
        Pair::of(self.key.clone(), self.value.clone())
    }

    /// Leaves nothing behind.
    fn moved_out(&mut self) -> Pair {
        std::mem::replace(self, Pair::of(Any::none(), Any::none()))
    }
}

/// A table that takes the place of another.
struct Successor {
    table: Table,
    /// The pairs are those of the other bit for bit, so that the other has to forget them.
    moved: bool,
}

#[repr(C)]
struct Item {
    pair: Pair,
    prev: u64,
    next: u64,
}

const _: () = assert!(size_of::<Item>() == 48 && BLOCK == 784);

/// An immutable map object; only a type for references.
#[repr(transparent)]
pub(crate) struct MapKind(Header);
/// A mutable map object; only a type for references.
#[repr(transparent)]
pub(crate) struct DictKind(Header);

static_object!(MapKind, index::MAP);
static_object!(DictKind, index::DICT);

/// How far each mark jumps: 0 to 15, triangular numbers up to 2628, then about 2.25 times further each time.
static JUMPS: [u64; 126] = jumps();

const fn jumps() -> [u64; 126] {
    const FAR: [u64; 43] = [
        8515,
        19110,
        42778,
        96141,
        216153,
        486591,
        1092981,
        2458653,
        5532801,
        12442566,
        27993903,
        62983476,
        141717030,
        318844378,
        717352503,
        1614057336,
        3631522476,
        8170957530,
        18384510628,
        41364789378,
        93070452520,
        209408356380,
        471168559170,
        1060128894105,
        2385289465695,
        5366898840628,
        12075518705635,
        27169915244790,
        61132312065111,
        137547689707000,
        309482283181501,
        696335127828753,
        1566753995631385,
        3525196511162271,
        7931691992677701,
        17846306936293605,
        40154190677507445,
        90346928918121501,
        203280589587557251,
        457381325854679626,
        1029107982097042876,
        2315492959180353330,
        5209859154120846435,
    ];
    let mut table = [0; 126];
    let mut at = 0;
    while at < 16 {
        table[at] = at as u64;
        at += 1;
    }
    while at < 83 {
        let side = at as u64 - 10;
        table[at] = side * (side + 1) / 2;
        at += 1;
    }
    while at < 126 {
        table[at] = FAR[at - 83];
        at += 1;
    }
    table
}

unsafe extern "C-unwind" fn free_data(data: *mut c_void) {
    // SAFETY: the deleter of the tables that `Table::dense` and `become_table` make with `allocate`; called once, with the
    // map's last use of one (`Table::reset`).
    unsafe { release(data.cast()) }
}

unsafe extern "C-unwind" fn delete(object: *mut Header, flags: i32) {
    // SAFETY: deleters are called as VAL-05 says, which is the contract of `end`.
    unsafe { end_nested(object, flags, end) }
}

/// The work of [`delete`].
///
/// # Safety
/// As a deleter is called (VAL-05).
unsafe extern "C-unwind" fn end(object: *mut Header, flags: i32) {
    if flags & DELETE_STRONG != 0 {
        // SAFETY: the last strong reference is gone (VAL-05), so no one else is at the map.
        unsafe { Table(object.cast()).reset() }
    }
    if flags & DELETE_WEAK != 0 {
        // SAFETY: the last weak reference is gone (VAL-05), and maps with this deleter are made with `allocate`.
        unsafe { release(object.cast()) }
    }
}

/// Raw access to a map object. Copies alias.
///
/// Invariant: the address is that of a map, and the map lives while this is used: its maker has it from [`Table::small`] or
/// [`Table::dense`], or from a reference or view of a map that outlives the use. Such a map is as OBJ-05 to OBJ-07 say. What
/// changes it has it alone: the map is fresh, or a [`Map`] with one reference, or a [`Dict`] in [`Table::settled`]. A position
/// that a method takes is one that [`Table::find`], [`Table::first`] or [`Table::next`] gave, of the map as it still is.
#[derive(Clone, Copy)]
struct Table(*mut MapObj);

impl Table {
    /// A small map with room for `slots` pairs (at least 2). Large enough to become dense in place.
    fn small(type_index: i32, slots: u64) -> Table {
        let slots = slots.max(2);
        let object = allocate(HEAD + slots as usize * size_of::<Pair>()).cast::<MapObj>();
        let header = Header::new(type_index, delete);
        // SAFETY: the block begins with a header. It has at least 120 bytes, so also room to become dense in place; a
        // `MapObj` is not written, because the pairs lie where its last part is.
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
        Table(object)
    }

    /// An empty dense map.
    fn dense(type_index: i32, slots: u64, fib_shift: u32) -> Table {
        let object = allocate(size_of::<MapObj>()).cast::<MapObj>();
        let blocks = blocks(slots);
        let data = allocate(blocks * BLOCK);
        for block in 0..blocks {
            let marks = data.wrapping_add(block * BLOCK);
            // SAFETY: the marks of a block are its first 16 bytes, and there are `blocks` of them behind `data`.
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
        Table(object)
    }

    fn size(self) -> u64 {
        // SAFETY: a live map, by the invariant of `Table`; both forms have a body.
        unsafe { (*self.0).body.size }
    }

    fn is_small(self) -> bool {
        // SAFETY: a live map, by the invariant of `Table`; both forms have a body.
        unsafe { (*self.0).body.slots & SMALL != 0 }
    }

    fn slots(self) -> u64 {
        // SAFETY: a live map, by the invariant of `Table`; both forms have a body.
        unsafe { (*self.0).body.slots & !SMALL }
    }

    fn type_index(self) -> i32 {
        // SAFETY: a live map, by the invariant of `Table`, begins with a header.
        unsafe { (*self.0).header.type_index }
    }

    fn data(self) -> *mut u8 {
        // SAFETY: a live map, by the invariant of `Table`; both forms have a body.
        unsafe { (*self.0).body.data }
    }

    /// Where pair `at` of a small map lies, which has [`Table::slots`] of them.
    fn pair(self, at: u64) -> *mut Pair {
        self.data().cast::<Pair>().wrapping_add(at as usize)
    }

    /// Where the mark of a slot of a dense map lies, which has [`Table::slots`] of them.
    fn mark(self, slot: u64) -> *mut u8 {
        let (block, at) = (slot as usize / 16, slot as usize % 16);
        self.data().wrapping_add(block * BLOCK + at)
    }

    /// Where the item of a slot of a dense map lies: items follow the 16 marks of their block.
    fn item(self, slot: u64) -> *mut Item {
        let (block, at) = (slot as usize / 16, slot as usize % 16);
        let offset = block * BLOCK + 16 + at * size_of::<Item>();
        self.data().wrapping_add(offset).cast()
    }

    /// The mark of a slot.
    ///
    /// # Safety
    /// The slot is one of this dense map.
    unsafe fn mark_of(self, slot: u64) -> u8 {
        // SAFETY: one of its slots, by this contract, and every slot has a mark (OBJ-07).
        unsafe { *self.mark(slot) }
    }

    /// # Safety
    /// The slot is one of this dense map, which the caller has alone.
    unsafe fn set_mark(self, slot: u64, mark: u8) {
        // SAFETY: one of its slots, by this contract, and every slot has a mark (OBJ-07).
        unsafe { self.mark(slot).write(mark) }
    }

    /// The key of a slot.
    ///
    /// # Safety
    /// The slot is a filled one of this dense map, which nothing changes while the key is used.
    unsafe fn key_of<'a>(self, slot: u64) -> AnyView<'a> {
        // SAFETY: a filled slot has an item, and it stays as it is, by this contract.
        let key: &'a Any = unsafe { &(*self.item(slot)).pair.key };
        key.view()
    }

    /// Position of `key`: a pair of a small map, a slot of a dense one.
    fn find(self, key: AnyView<'_>) -> Result<Option<u64>> {
        if self.size() == 0 {
            return Ok(None);
        }
        if self.is_small() {
            for at in 0..self.size() {
                // SAFETY: the first `size` pairs of a small map are filled (OBJ-06); nothing changes a map that a key is
                // looked up in (`Stay`).
                let own = unsafe { &(*self.pair(at)).key };
                if any_equal(own.view(), key)? {
                    return Ok(Some(at));
                }
            }
            return Ok(None);
        }
        let hash = any_hash(key)?;
        // SAFETY: the map is dense: `is_small` is false.
        let mut slot = unsafe { self.home(hash) };
        // SAFETY: a home is a slot of this dense map (OBJ-07).
        if unsafe { self.mark_of(slot) } & BODY != 0 {
            return Ok(None);
        }
        loop {
            // SAFETY: the slots of a chain are filled (OBJ-07); nothing changes a map that a key is looked up in (`Stay`).
            if any_equal(key, unsafe { self.key_of(slot) })? {
                return Ok(Some(slot));
            }
            // SAFETY: a slot of this dense map: a home, or what `after` gives.
            match self.after(slot, unsafe { self.mark_of(slot) }) {
                Some(next) => slot = next,
                None => return Ok(None),
            }
        }
    }

    /// The shift of the hash of a dense map.
    ///
    /// # Safety
    /// The map is dense.
    unsafe fn fib_shift(self) -> u32 {
        // SAFETY: a live map, by the invariant of `Table`; a dense one, by this contract, has the field (OBJ-07).
        unsafe { (*self.0).order.fib_shift }
    }

    /// The slot where the chain of `hash` begins.
    ///
    /// # Safety
    /// The map is dense.
    unsafe fn home(self, hash: u64) -> u64 {
        // SAFETY: the contract of `fib_shift` is this one.
        let shift = unsafe { self.fib_shift() };
        // A dense map of one slot does not exist, so the shift is below 64.
        GOLDEN.wrapping_mul(hash) >> shift
    }

    fn after(self, slot: u64, mark: u8) -> Option<u64> {
        match JUMPS.get(usize::from(mark & 0x7f)) {
            Some(0) | None => None,
            Some(&jump) => Some(self.wrapped(slot.wrapping_add(jump))),
        }
    }

    /// `slot` modulo the number of slots, which is a power of two in every table that this library made.
    #[inline]
    fn wrapped(self, slot: u64) -> u64 {
        self.wrapping()(slot)
    }

    /// [`Table::wrapped`], for several slots.
    #[inline]
    fn wrapping(self) -> impl Fn(u64) -> u64 {
        let slots = self.slots();
        let mask = slots.wrapping_sub(1);
        let is_power = slots & mask == 0;
        move |slot| match is_power {
            true => slot & mask,
            false => slot % slots,
        }
    }

    /// Where the pair of a position lies.
    ///
    /// # Safety
    /// The position is of this map: `find`, `first` or `next` gave it, and the map did not change since.
    unsafe fn pair_at(self, position: u64) -> *mut Pair {
        if self.is_small() {
            return self.pair(position);
        }
        // SAFETY: a dense map, where positions, by this contract, are slots, and every slot has an item.
        unsafe { &raw mut (*self.item(position)).pair }
    }

    fn first(self) -> Option<u64> {
        if self.size() == 0 {
            return None;
        }
        if self.is_small() {
            return Some(0);
        }
        // SAFETY: a live map, by the invariant of `Table`; a dense one has the field (OBJ-07).
        Some(unsafe { (*self.0).order.head })
    }

    fn next(self, position: u64) -> Option<u64> {
        if self.is_small() {
            return Some(position + 1).filter(|&next| next < self.size());
        }
        // SAFETY: the position is from `find`, `first` or this (`Table`), and those of a dense map are slots with items.
        Some(unsafe { (*self.item(position)).next }).filter(|&next| next != NOWHERE)
    }

    /// Runs what changes the table, or looks at it without a stay: alone at a dict, which others reach at the same time. All
    /// that calls a hook comes before, all that drops a value after.
    #[inline]
    fn settled<R>(self, work: impl FnOnce() -> R) -> R {
        let _turn = self.turn();
        work()
    }

    /// The lock of a dict. One place for all maps, so that what runs meanwhile is compiled once.
    #[inline]
    fn turn(self) -> Option<Turn> {
        (self.type_index() == index::DICT).then(|| turn(self.0))
    }

    /// The value of `key`. Whoever calls this stays at a dict, or is alone with it and the key calls no hook.
    fn value_of(self, key: AnyView<'_>) -> Result<Option<Any>> {
        let Some(at) = self.find(key)? else {
            return Ok(None);
        };
        // SAFETY: `find` gave the position, and no one changed the map since: the caller stays at it, or is alone with it.
        let pair = unsafe { self.pair_at(at) };
        // SAFETY: there is a pair at a position that `find` gave.
        Ok(Some(unsafe { &(*pair).value }.clone()))
    }

    /// The value of `key` in a map of either kind.
    fn look_up(self, key: AnyView<'_>) -> Result<Option<Any>> {
        if self.type_index() != index::DICT {
            return self.value_of(key);
        }
        if is_plain(key) {
            return alone(self.0, || self.value_of(key));
        }
        let _stay = Stay::at(self.0, Purpose::Look)?;
        self.value_of(key)
    }

    /// Inserts or replaces, and makes no chain longer than `longest`. `None` when done in place; otherwise the map that takes
    /// this one's place, to which all pairs have moved or been copied.
    fn insert(self, longest: u64, fresh: &mut Pair, holders: Holders) -> Result<Option<Successor>> {
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
    fn insert_at_once(self, longest: u64, fresh: &mut Pair) -> Result<bool> {
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

    fn small_copy(self, slots: u64) -> Table {
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
    fn copied(self, slots: u64, shift: u32) -> Result<Table> {
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
    fn forget(self) {
        // SAFETY: a live map, which the caller has alone (`Table`); only called on dense ones, which have the fields.
        let order = unsafe { &mut (*self.0).order };
        (order.head, order.tail) = (NOWHERE, NOWHERE);
        // SAFETY: a live map, which the caller has alone (`Table`); an empty one needs no filled slot.
        unsafe { (*self.0).body.size = 0 };
    }

    /// Where `key` is, or where it goes. Changes nothing; calls the hooks of keys.
    ///
    /// # Errors
    ///
    /// OBJ-39 where the chain holds `longest` keys without `key`; what a hook fails with.
    ///
    /// # Safety
    /// `home` is the home of `key` in this dense map, which nothing changes meanwhile.
    #[inline]
    unsafe fn place(self, longest: u64, home: u64, key: AnyView<'_>) -> Result<Place> {
        // SAFETY: a home is a slot of this dense map (OBJ-07).
        let mark = unsafe { self.mark_of(home) };
        if mark == EMPTY {
            return Ok(Place::Home(home));
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
                return Ok(Place::Known(slot));
            }
            // SAFETY: a slot of this dense map: a home, or what `after` gives.
            match self.after(slot, unsafe { self.mark_of(slot) }) {
                Some(next) => slot = next,
                None => break,
            }
            passed += 1;
        }
        if passed >= longest {
            return Err(chain_too_long(longest));
        }
        if self.is_full() {
            return Ok(Place::Full);
        }
        Ok(Place::Behind(slot))
    }

    /// [`Table::place`] of a key that is not in the map, in a chain of any length: compares nothing.
    ///
    /// # Safety
    /// As for [`Table::place`].
    #[inline]
    unsafe fn place_of_new(self, home: u64) -> Result<Place> {
        // SAFETY: a home is a slot of this dense map (OBJ-07).
        let mut mark = unsafe { self.mark_of(home) };
        if mark == EMPTY {
            return Ok(Place::Home(home));
        }
        if mark & BODY != 0 {
            // SAFETY: the slot is in the body of a chain, as its mark says.
            return unsafe { self.place_of_intruder(home) };
        }
        let mut slot = home;
        while let Some(next) = self.after(slot, mark) {
            slot = next;
            // SAFETY: `after` gives a slot of this dense map.
            mark = unsafe { self.mark_of(slot) };
        }
        if self.is_full() {
            return Ok(Place::Full);
        }
        Ok(Place::Behind(slot))
    }

    /// [`Table::place`] of a key whose home another chain runs through.
    ///
    /// # Safety
    /// `home` is in the body of a chain of this dense map, which nothing changes meanwhile.
    unsafe fn place_of_intruder(self, home: u64) -> Result<Place> {
        if self.is_full() {
            return Ok(Place::Full);
        }
        // SAFETY: in the body of a chain, by this contract.
        let before = unsafe { self.before(home) }?;
        Ok(Place::Intruder { home, before })
    }

    /// The empty slot that a place is about, linked into its chain, with the mark to write there; `None` where no chain
    /// reaches one. Calls no hook.
    ///
    /// # Safety
    /// The place is of this map, which did not change since and which the caller has alone, and none of a known key.
    unsafe fn make_room(self, place: Place) -> Option<(u64, u8)> {
        match place {
            Place::Known(_) | Place::Full => None,
            Place::Home(home) => Some((home, 0)),
            Place::Behind(last) => {
                // SAFETY: the map is dense: places are only found in dense ones.
                let (jump, free) = unsafe { self.free_after(last) }?;
                // SAFETY: the last slot of a chain of this map, which the caller has alone (this contract).
                unsafe { self.set_jump(last, jump) };
                Some((free, BODY))
            }
            // SAFETY: `place` found the first slot in the body of a chain of this map, and the second before it.
            Place::Intruder { home, before } => unsafe { self.move_intruder(home, before) },
        }
    }

    /// Whether one pair more is more than 99 in 100 slots.
    #[inline]
    fn is_full(self) -> bool {
        // A number that overflows here is that of no memory.
        self.size().wrapping_add(1).wrapping_mul(100) > self.slots().wrapping_mul(99)
    }

    /// # Safety
    /// The slot is a filled one of this dense map, which the caller has alone.
    unsafe fn set_jump(self, slot: u64, jump: u8) {
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
            // SAFETY: `free_after` gives a slot of this map, which the caller has alone.
            unsafe { self.set_mark(free, BODY) };
            // SAFETY: `from` is filled and `free` was empty, so these are two slots; the first is emptied below.
            unsafe { std::ptr::copy_nonoverlapping(self.item(from), self.item(free), 1) };
            // SAFETY: the item has just moved to this slot.
            unsafe { self.relink(free) };
            // SAFETY: a slot of a chain of this map: `home`, or what `after` gives.
            let mark = unsafe { self.mark_of(from) };
            // The first slot is kept for the newcomer: nothing of this chain may move back into it.
            let emptied = if from == home { PROTECTED } else { EMPTY };
            // SAFETY: the same slot, of a map that the caller has alone.
            unsafe { self.set_mark(from, emptied) };
            // SAFETY: a slot of this dense map: what `home` follows, by this contract, or where an item has just moved to.
            let followed = unsafe { self.mark_of(last) };
            // SAFETY: the same slot, which is filled.
            unsafe { self.set_jump(last, jump) };
            let step = Moved {
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

    /// Undoes what [`Table::move_intruder`] did so far: the chain is as it was.
    ///
    /// # Safety
    /// The steps are those that were made last, in their order, and the caller has the map alone.
    unsafe fn move_back(self, steps: &[Moved]) {
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
    unsafe fn before(self, slot: u64) -> Result<u64> {
        // SAFETY: slots in the body of a chain are filled, and the map stays as it is, by this contract.
        let hash = any_hash(unsafe { self.key_of(slot) })?;
        // SAFETY: the map is dense, by this contract.
        let mut at = unsafe { self.home(hash) };
        for _ in 0..=self.slots() {
            // SAFETY: a slot of this dense map: a home, or what `after` gives.
            match self.after(at, unsafe { self.mark_of(at) }) {
                Some(next) if next == slot => return Ok(at),
                Some(next) => at = next,
                None => break,
            }
        }
        let moved = "a key of a map hashes to another chain now than when it was inserted";
        let broken = OBJ_07.refused(crate::rule::Kind::Malformed, moved);
        Err(Error::said("InternalError", broken))
    }

    /// Takes an item out of the order.
    ///
    /// # Safety
    /// The slot is one in the order of this dense map, which the caller has alone.
    unsafe fn unlink(self, slot: u64) {
        // SAFETY: a filled slot, by this contract.
        let Item { prev, next, .. } = unsafe { &*self.item(slot) };
        let (prev, next) = (*prev, *next);
        // SAFETY: the neighbours of an item in the order are items of this map, or NOWHERE (OBJ-07).
        unsafe { self.set_next(prev, next) };
        // SAFETY: the neighbours of an item in the order are items of this map, or NOWHERE (OBJ-07).
        unsafe { self.set_prev(next, prev) };
    }

    /// Puts an item at the end of the order.
    ///
    /// # Safety
    /// The slot is a filled one of this dense map that is not in the order, and the caller has the map alone.
    unsafe fn link_last(self, slot: u64) {
        // SAFETY: a live map, by the invariant of `Table`; a dense one, by this contract, has the field (OBJ-07).
        let tail = unsafe { (*self.0).order.tail };
        let item = self.item(slot);
        // SAFETY: a filled slot, by this contract.
        unsafe { (*item).prev = tail };
        // SAFETY: a filled slot, by this contract.
        unsafe { (*item).next = NOWHERE };
        // SAFETY: the last item in the order is an item of this map, or NOWHERE (OBJ-07).
        unsafe { self.set_next(tail, slot) };
        // SAFETY: a live map, by the invariant of `Table`; a dense one, by this contract, has the field (OBJ-07).
        unsafe { (*self.0).order.tail = slot };
    }

    /// Points the neighbours of an item that moved to `slot` at it.
    ///
    /// # Safety
    /// The slot has an item in the order of this dense map, which the caller has alone.
    unsafe fn relink(self, slot: u64) {
        // SAFETY: a slot with an item, by this contract.
        let Item { prev, next, .. } = unsafe { &*self.item(slot) };
        let (prev, next) = (*prev, *next);
        // SAFETY: the neighbours of an item in the order are items of this map, or NOWHERE (OBJ-07).
        unsafe { self.set_next(prev, slot) };
        // SAFETY: the neighbours of an item in the order are items of this map, or NOWHERE (OBJ-07).
        unsafe { self.set_prev(next, slot) };
    }

    /// Writes what follows `slot` in the order; NOWHERE is before the first.
    ///
    /// # Safety
    /// `slot` has an item of this dense map, or is NOWHERE; the caller has the map alone.
    unsafe fn set_next(self, slot: u64, next: u64) {
        match slot {
            // SAFETY: a live map, by the invariant of `Table`; a dense one, by this contract, has the field (OBJ-07).
            NOWHERE => unsafe { (*self.0).order.head = next },
            // SAFETY: a slot with an item, by this contract.
            slot => unsafe { (*self.item(slot)).next = next },
        }
    }

    /// Writes what `slot` follows in the order; NOWHERE is behind the last.
    ///
    /// # Safety
    /// `slot` has an item of this dense map, or is NOWHERE; the caller has the map alone.
    unsafe fn set_prev(self, slot: u64, prev: u64) {
        match slot {
            // SAFETY: a live map, by the invariant of `Table`; a dense one, by this contract, has the field (OBJ-07).
            NOWHERE => unsafe { (*self.0).order.tail = prev },
            // SAFETY: a slot with an item, by this contract.
            slot => unsafe { (*self.item(slot)).prev = prev },
        }
    }

    /// Removes the pair at a position, for the caller to drop.
    fn erase(self, position: u64) -> Result<Pair> {
        if self.is_small() {
            return Ok(self.settled(|| {
                let (gone, next) = (self.pair(position), self.pair(position + 1));
                // SAFETY: `find` gave the position, so a pair of this small map is there; the next one, or the count,
                // covers it.
                let pair = unsafe { gone.read() };
                let behind = self.size() - position - 1;
                // SAFETY: the pairs behind it, up to `size`, move down by one; the caller has the map alone (`Table`).
                unsafe { std::ptr::copy(next, gone, behind as usize) };
                // SAFETY: a live map, which the caller has alone; its pairs lie in the first `size - 1` places now.
                unsafe { (*self.0).body.size -= 1 };
                pair
            }));
        }
        // SAFETY: `find` gave the position, so it is a slot of this dense map.
        let mark = unsafe { self.mark_of(position) };
        if self.after(position, mark).is_none() {
            let before = match mark & BODY {
                0 => None,
                // SAFETY: the slot is in the body of a chain, as its mark says. This calls a hook, so it comes before the
                // change.
                _ => Some(unsafe { self.before(position)? }),
            };
            return Ok(self.settled(|| {
                if let Some(before) = before {
                    // SAFETY: `before` gave a slot of this map's chain, and the caller has the map alone (`Table`).
                    unsafe { self.set_jump(before, 0) };
                }
                // SAFETY: `find` gave the position of a pair, and those are in the order.
                let gone = unsafe { self.leave(position) };
                // SAFETY: a slot of this map, whose item has just been read for the last time.
                unsafe { self.set_mark(position, EMPTY) };
                gone
            }));
        }
        // The last of the chain takes the place of what goes.
        let (mut before, mut last) = (position, position);
        // SAFETY: a slot of this dense map: the position, or what `after` gives.
        while let Some(next) = self.after(last, unsafe { self.mark_of(last) }) {
            (before, last) = (last, next);
        }
        Ok(self.settled(|| {
            // SAFETY: `find` gave the position of a pair, and those are in the order.
            let gone = unsafe { self.leave(position) };
            // SAFETY: the last slot of the chain is another one than the position, whose item has just been read for the
            // last time.
            unsafe { std::ptr::copy_nonoverlapping(self.item(last), self.item(position), 1) };
            // SAFETY: the item has just moved to this slot.
            unsafe { self.relink(position) };
            // SAFETY: a slot of this map, whose item has just moved away.
            unsafe { self.set_mark(last, EMPTY) };
            // SAFETY: the slot that the last one of the chain followed, and the caller has the map alone (`Table`).
            unsafe { self.set_jump(before, 0) };
            gone
        }))
    }

    /// Takes an item out of the order and the count, and reads its pair for the last time.
    ///
    /// # Safety
    /// The slot is one in the order of this dense map, which the caller has alone. Afterwards it is emptied or filled anew.
    unsafe fn leave(self, slot: u64) -> Pair {
        // SAFETY: in the order, of a map that the caller has alone, by this contract.
        unsafe { self.unlink(slot) };
        // SAFETY: a live map, by the invariant of `Table`; the pair of the slot is not counted any more.
        unsafe { (*self.0).body.size -= 1 };
        // SAFETY: a slot in the order has an item, which the map has no more after this (this contract).
        unsafe { self.item(slot).read() }.pair
    }

    /// Leaves the table empty and gives all pairs. The caller drops them when the table is whole: what ends with a value may
    /// come back to it.
    #[must_use]
    fn take(self) -> Vec<Pair> {
        let mut taken = Vec::with_capacity(self.size() as usize);
        let mut at = self.first();
        while let Some(position) = at {
            at = self.next(position);
            // SAFETY: `first` or `next` gave the position.
            let pair = unsafe { self.pair_at(position) };
            // SAFETY: there is a pair at such a position, which is read once: the map is emptied here.
            taken.push(unsafe { pair.read() });
            if !self.is_small() {
                // SAFETY: positions of a dense map are its slots; the caller has it alone (`Table`).
                unsafe { self.set_mark(position, EMPTY) };
            }
        }
        if self.is_small() {
            // SAFETY: a live map, which the caller has alone (`Table`); an empty one needs no filled pair.
            unsafe { (*self.0).body.size = 0 }
        } else {
            self.forget();
        }
        taken
    }

    /// Drops all pairs and the memory behind them.
    ///
    /// # Safety
    /// No one else reaches the table any more.
    unsafe fn reset(self) {
        let mut at = self.first();
        while let Some(position) = at {
            at = self.next(position);
            // SAFETY: `first` or `next` gave the position.
            let pair = unsafe { self.pair_at(position) };
            // SAFETY: there is a pair at such a position. It is read once, and no one looks at the map after that (this
            // contract).
            let Pair { key, value } = unsafe { pair.read() };
            drop(key);
            drop(value);
        }
        // SAFETY: a live map, which the caller has alone (this contract), and whose pairs are dropped.
        let body = std::mem::replace(unsafe { &mut (*self.0).body }, MapBody::NOTHING);
        if let Some(free) = body.data_deleter
            && !body.data.is_null()
        {
            // SAFETY: the deleter that was left for this memory (OBJ-05), which the map has no more.
            unsafe { free(body.data.cast()) };
        }
    }

    /// Ends an object that nobody else has seen.
    fn dispose(self) {
        // SAFETY: `Table::small` and `Table::dense` make an object with one reference, which no one else has seen.
        drop(unsafe { ObjectRef::from_raw(self.0.cast()) });
    }

    /// Takes over the contents of `other`, a fresh object, and gives the own pairs. The identity of this object stays. The
    /// other is empty then, for the caller to dispose of. Calls no hook and drops no value.
    ///
    /// # Safety
    /// `other` is fresh, and the caller has both maps alone.
    #[must_use]
    unsafe fn become_table(self, other: Table) -> Vec<Pair> {
        let gone = self.take();
        // SAFETY: the caller has this map alone; what it had is in `gone`.
        unsafe { self.reset() };
        // SAFETY: a live map, by the invariant of `Table`.
        let mut body = unsafe { (*other.0).body };
        if other.is_small() {
            let bytes = other.slots() as usize * size_of::<Pair>();
            let data = allocate(bytes);
            // SAFETY: the pairs of a fresh small map lie in one block of `slots` pairs (`Table::small`), and the new one is
            // as large.
            unsafe { std::ptr::copy_nonoverlapping(body.data, data, bytes) };
            body.data = data;
            body.data_deleter = Some(free_data);
            // SAFETY: a live map, which the caller has alone; its pairs are this map's now.
            unsafe { (*other.0).body.size = 0 };
        } else {
            // SAFETY: a live map, by the invariant of `Table`; a dense one has the field (OBJ-07).
            let order = unsafe { (*other.0).order };
            // SAFETY: a live map, which the caller has alone, and the memory of a small one too is large enough to be dense
            // (OBJ-05).
            unsafe { (*self.0).order = order };
            // SAFETY: a live map, which the caller has alone; its pairs are this map's now.
            unsafe { (*other.0).body = MapBody::NOTHING };
        }
        // SAFETY: a live map, which the caller has alone and which has no pairs: those of the other come to it.
        unsafe { (*self.0).body = body };
        gone
    }

    /// Whether there is a pair at what was a position once.
    fn is_filled(self, position: u64) -> bool {
        if self.is_small() {
            return position < self.size();
        }
        // SAFETY: the map is dense and the slot below the number of its slots.
        position < self.slots() && !matches!(unsafe { self.mark_of(position) }, EMPTY | PROTECTED)
    }

    /// The pairs, for as long as nothing changes the map.
    fn lent<'a>(self) -> PairIter<'a> {
        PairIter(Steps::Lent(self, self.first()))
    }

    /// The pairs as they are now.
    fn kept(self) -> Vec<(Any, Any)> {
        let pairs = self.lent();
        pairs
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }

    fn copy(self) -> Result<Table> {
        if self.is_small() {
            return Ok(self.small_copy(self.size()));
        }
        // SAFETY: the map is dense: `is_small` is false.
        let shift = unsafe { self.fib_shift() };
        self.copied(self.slots(), shift)
    }
}

/// One step of [`Table::move_intruder`]: slots, and the marks that they had before it.
struct Moved {
    from: (u64, u8),
    last: (u64, u8),
    free: u64,
}

/// Who reaches a map that changes.
#[derive(Clone, Copy)]
enum Holders {
    /// The caller alone.
    One,
    /// Other threads too, at a dict; the caller stays at it.
    Several,
}

impl Holders {
    /// What the change happens under.
    #[inline]
    fn turn(self, table: Table) -> Option<Turn> {
        matches!(self, Holders::Several).then(|| turn(table.0))
    }
}

/// Where a key is, or where it goes.
enum Place {
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

fn blocks(slots: u64) -> usize {
    slots.div_ceil(16) as usize
}

/// Slots and shift of a dense map for `count` pairs.
fn table_size(count: u64) -> (u64, u32) {
    let bits = 64 - count.leading_zeros();
    let slots = 1u64 << bits;
    if slots < count * 2 {
        (slots << 1, 64 - bits - 1)
    } else {
        (slots, 64 - bits)
    }
}

/// The table that an insertion leads to. Both are fresh: nobody else knows them.
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

/// `table`, which nobody else has, or what takes its place, with `pairs` in order.
fn filled(
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
fn replace_in(old: Table, new: Successor) -> Table {
    if new.moved {
        old.forget();
    }
    new.table
}

/// Whether looking `key` up calls no hook: only objects have some, and strings and bytes are compared by what they say.
fn is_plain(key: AnyView<'_>) -> bool {
    let kind = key.type_index();
    kind < index::OBJECT_BEGIN || matches!(kind, index::STR | index::BYTES)
}

#[cold]
fn chain_too_long(longest: u64) -> Error {
    let message = format!("more than {longest} keys of one map share a chain of its table");
    OBJ_39.refused(crate::rule::Kind::Limit, message).into()
}

#[cold]
fn missing() -> Error {
    Error::new("KeyError", "key is not in Map")
}

macro_rules! map_type {
    ($type:ident, $kind:ident, $index:expr, $schema:expr, $other:expr) => {
        impl $type {
            /// An empty one.
            #[allow(clippy::new_without_default)]
            pub fn new() -> $type {
                $type::of(Table::small($index, 2))
            }

            /// What setting one of `pairs` after the other makes. Until it is whole nobody else has it, so nobody is
            /// waited for.
            pub(crate) fn grown(pairs: &mut dyn Iterator<Item = (Any, Any)>) -> Result<$type> {
                filled(Table::small($index, 2), ANY_CHAIN, pairs).map($type::of)
            }

            fn of(table: Table) -> $type {
                // SAFETY: `of` is called with fresh tables, which have one reference, and which no one else has seen.
                $type(unsafe { Ref::from_raw(table.0.cast()) })
            }

            const fn table(&self) -> Table {
                Table(self.0.as_ptr().cast())
            }

            /// Number of pairs.
            pub fn len(&self) -> usize {
                self.table().settled(|| self.table().size() as usize)
            }

            /// Whether there is none.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// The value of `key`.
            pub fn get(&self, key: AnyView<'_>) -> Result<Option<Any>> {
                self.table().look_up(key)
            }

            /// The value of `key`, or a KeyError.
            pub fn at(&self, key: AnyView<'_>) -> Result {
                self.get(key)?.ok_or_else(missing)
            }

            /// The object.
            pub fn into_object(self) -> ObjectRef {
                self.0.into_object()
            }

            /// The object, borrowed.
            pub const fn as_object(&self) -> &ObjectRef {
                self.0.as_object()
            }

            /// The map that `object` is, or `object` back.
            pub fn from_object(object: ObjectRef) -> std::result::Result<$type, ObjectRef> {
                object.downcast().map($type)
            }
        }

        impl From<$type> for Any {
            fn from(value: $type) -> Any {
                value.0.into()
            }
        }

        impl<'a> From<&'a $type> for AnyView<'a> {
            fn from(value: &'a $type) -> AnyView<'a> {
                AnyView::from(value.as_object())
            }
        }

        crate::value::try_from_any!($type);

        impl Argument for $type {
            const RULE: crate::rule::Rule = VAL_10;

            fn schema() -> Schema {
                $schema
            }

            fn try_from_view(view: AnyView<'_>) -> Option<$type> {
                if let Some(found) = Ref::<$kind>::try_from_view(view) {
                    return Some($type(found));
                }
                if view.type_index() != $other {
                    return None;
                }
                // The other map converts by copying.
                let pairs = pairs_of(view)?;
                let mut pairs = pairs
                    .iter()
                    .map(|(key, value)| (key.clone(), value.clone()));
                $type::grown(&mut pairs).ok()
            }
        }
    };
}

/// An immutable map; changing it makes a new one unless nobody else holds it.
#[derive(Clone)]
#[repr(transparent)]
pub struct Map(Ref<MapKind>);

/// A mutable map, shared by all who hold it, on any thread: each operation happens at once for all others. A hash or an
/// equality of a key's type that changes the dict which the key is looked up in, or that needs another dict which is in use
/// on another thread, gets a RuntimeError.
#[derive(Clone)]
#[repr(transparent)]
pub struct Dict(Ref<DictKind>);

map_type!(
    Map,
    MapKind,
    index::MAP,
    Schema::plain("ffi.Map"),
    index::DICT
);
// As C++ declares a dict that a function changes.
map_type!(
    Dict,
    DictKind,
    index::DICT,
    Schema::with("ffi.Dict", &[Any::schema, Any::schema]),
    index::MAP
);
lent!(Map, MapKind, index::MAP);
lent!(Dict, DictKind, index::DICT);

impl Map {
    /// The pairs in order.
    pub fn iter(&self) -> PairIter<'_> {
        self.table().lent()
    }

    /// A map of pairs in order; later ones win. Four and more are dense at once (OBJ-06).
    pub fn from_pairs(pairs: Vec<(Any, Any)>) -> Result<Map> {
        Map::within(ANY_CHAIN, pairs)
    }

    /// [`Map::from_pairs`] for keys that a file or a text chose.
    ///
    /// # Errors
    ///
    /// OBJ-39 where more than 256 keys share a chain; what the hash or the equality of a key fails with.
    pub(crate) fn from_untrusted(pairs: Vec<(Any, Any)>) -> Result<Map> {
        Map::within(UNTRUSTED_CHAIN, pairs)
    }

    fn within(longest: u64, pairs: Vec<(Any, Any)>) -> Result<Map> {
        let count = pairs.len() as u64;
        let table = if count < SMALL_MAX {
            Table::small(index::MAP, count)
        } else {
            let (slots, shift) = table_size(count);
            Table::dense(index::MAP, slots, shift)
        };
        filled(table, longest, &mut pairs.into_iter()).map(Map::of)
    }

    /// Sets `key` to `value` in this handle; other holders keep what they have.
    pub fn set(&mut self, key: impl Into<Any>, value: impl Into<Any>) -> Result<()> {
        self.put(ANY_CHAIN, key.into(), value.into())
    }

    /// [`Map::set`] for a key that a file or a text chose.
    ///
    /// # Errors
    ///
    /// As [`Map::from_untrusted`].
    pub(crate) fn set_untrusted(
        &mut self,
        key: impl Into<Any>,
        value: impl Into<Any>,
    ) -> Result<()> {
        self.put(UNTRUSTED_CHAIN, key.into(), value.into())
    }

    fn put(&mut self, longest: u64, key: Any, value: Any) -> Result<()> {
        if !self.as_object().is_unique() {
            *self = Map::of(self.table().copy()?);
        }
        let mut fresh = Pair::of(key, value);
        if let Some(next) = self.table().insert(longest, &mut fresh, Holders::One)? {
            *self = Map::of(replace_in(self.table(), next));
        }
        Ok(())
    }
}

impl Dict {
    /// The pairs in order as they are now, each part counted once more: the dict may change while they are looked at.
    pub fn to_vec(&self) -> Vec<(Any, Any)> {
        self.table().settled(|| self.table().kept())
    }

    /// Sets `key` to `value` for all holders.
    pub fn set(&self, key: impl Into<Any>, value: impl Into<Any>) -> Result<()> {
        self.put(ANY_CHAIN, key.into(), value.into())
    }

    /// [`Dict::set`] for a key that a file or a text chose.
    ///
    /// # Errors
    ///
    /// As [`Map::from_untrusted`].
    pub(crate) fn set_untrusted(&self, key: impl Into<Any>, value: impl Into<Any>) -> Result<()> {
        self.put(UNTRUSTED_CHAIN, key.into(), value.into())
    }

    fn put(&self, longest: u64, key: Any, value: Any) -> Result<()> {
        let table = self.table();
        // Dropped last, when this thread left the dict.
        let mut fresh = Pair::of(key, value);
        if table.insert_at_once(longest, &mut fresh)? {
            return Ok(());
        }
        self.put_slowly(longest, &mut fresh)
    }

    /// [`Dict::put`] where hooks run, or another table takes the place of this.
    #[inline(never)]
    fn put_slowly(&self, longest: u64, fresh: &mut Pair) -> Result<()> {
        let table = self.table();
        let stay = Stay::at(table.0, Purpose::Change)?;
        let inserted = table.insert(longest, fresh, Holders::Several)?;
        let left = inserted.map(|next| {
            table.settled(|| {
                let next = replace_in(table, next);
                // SAFETY: the insertion made that table, so it is fresh; this thread is alone with the dict (`settled`).
                (next, unsafe { table.become_table(next) })
            })
        });
        drop(stay);
        if let Some((empty, gone)) = left {
            empty.dispose();
            drop(gone);
        }
        Ok(())
    }

    /// Removes `key`; false when it was not there.
    pub fn remove(&self, key: AnyView<'_>) -> Result<bool> {
        let stay = Stay::at(self.table().0, Purpose::Change)?;
        let gone = match self.table().find(key)? {
            Some(at) => Some(self.table().erase(at)?),
            None => None,
        };
        drop(stay);
        Ok(gone.is_some())
    }

    /// Removes everything.
    ///
    /// # Errors
    ///
    /// A RuntimeError where this thread looks a key of this dict up: the key's hash or equality calls this.
    pub fn clear(&self) -> Result<()> {
        let stay = Stay::at(self.table().0, Purpose::Change)?;
        let gone = self.table().settled(|| self.table().take());
        drop(stay);
        drop(gone);
        Ok(())
    }
}

/// The pairs of a map of either kind, in order of insertion; a dense map puts an updated key last. Those of a [`Map`] are
/// lent, those of a [`Dict`], which may change meanwhile, are as they were when this was made.
pub struct Pairs<'a>(Source<'a>);

enum Source<'a> {
    Lent(Table, PhantomData<&'a ()>),
    Kept(Vec<(Any, Any)>),
}

impl Pairs<'_> {
    /// From the first to the last.
    pub fn iter(&self) -> PairIter<'_> {
        match &self.0 {
            Source::Lent(table, _) => table.lent(),
            Source::Kept(pairs) => PairIter(Steps::Kept(pairs.iter())),
        }
    }
}

impl<'a> IntoIterator for &'a Pairs<'_> {
    type Item = (&'a Any, &'a Any);
    type IntoIter = PairIter<'a>;

    fn into_iter(self) -> PairIter<'a> {
        self.iter()
    }
}

/// Goes through the pairs of a map: keys and values.
pub struct PairIter<'a>(Steps<'a>);

enum Steps<'a> {
    Lent(Table, Option<u64>),
    Kept(std::slice::Iter<'a, (Any, Any)>),
}

impl<'a> Iterator for PairIter<'a> {
    type Item = (&'a Any, &'a Any);

    fn next(&mut self) -> Option<(&'a Any, &'a Any)> {
        match &mut self.0 {
            Steps::Kept(pairs) => pairs.next().map(|(key, value)| (key, value)),
            Steps::Lent(table, next) => {
                let at = (*next)?;
                *next = table.next(at);
                // SAFETY: `first` or `next` gave the position, and the map does not change for `'a` (`Table::lent`).
                let pair = unsafe { table.pair_at(at) };
                // SAFETY: there is a pair at such a position, and the map lives for `'a`.
                let pair = unsafe { &*pair };
                Some((&pair.key, &pair.value))
            }
        }
    }
}

/// The pairs of a map of either kind.
pub fn pairs_of(view: AnyView<'_>) -> Option<Pairs<'_>> {
    let table = Table(view.as_raw().ptr().cast());
    Some(Pairs(match view.type_index() {
        index::MAP => Source::Lent(table, PhantomData),
        index::DICT => Source::Kept(table.settled(|| table.kept())),
        _ => return None,
    }))
}

/// Looks `key` up in a map of either kind.
pub fn lookup_in(map: AnyView<'_>, key: AnyView<'_>) -> Result<Option<Any>> {
    if !matches!(map.type_index(), index::MAP | index::DICT) {
        return Ok(None);
    }
    Table(map.as_raw().ptr().cast()).look_up(key)
}

/// Replaces the value of a key in a map of either kind, where it stands, and gives the old one. For those who hold the
/// map alone, or know that nobody looks at it meanwhile.
#[cfg(feature = "frontend")]
pub(crate) fn swap_value(map: &ObjectRef, key: AnyView<'_>, value: Any) -> Result<Option<Any>> {
    if !matches!(map.type_index(), index::MAP | index::DICT) {
        return Ok(None);
    }
    let table = Table(map.as_ptr().cast());
    let is_dict = map.type_index() == index::DICT;
    let _stay = match is_dict {
        true => Some(Stay::at(table.0, Purpose::Change)?),
        false => None,
    };
    let Some(at) = table.find(key)? else {
        return Ok(None);
    };
    let old = table.settled(|| {
        // SAFETY: `find` gave the position, and no one changed the map since (`Stay`, or the caller holds it alone).
        let pair = unsafe { table.pair_at(at) };
        // SAFETY: there is a pair at a position that `find` gave; this thread has the map alone now.
        std::mem::replace(unsafe { &mut (*pair).value }, value)
    });
    Ok(Some(old))
}

/// Number of pairs of a map of either kind.
pub(crate) fn pair_count(view: AnyView<'_>) -> usize {
    match view.type_index() {
        index::MAP | index::DICT => {
            let table = Table(view.as_raw().ptr().cast());
            table.settled(|| table.size() as usize)
        }
        _ => 0,
    }
}

/// A cursor over a map that keeps it alive: the state of the iterator functions.
pub(crate) struct Cursor {
    map: ObjectRef,
    at: Option<u64>,
}

impl Cursor {
    pub(crate) fn new(map: ObjectRef) -> Cursor {
        let table = Table(map.as_ptr().cast());
        let at = table.settled(|| table.first());
        Cursor { map, at }
    }

    const fn table(&self) -> Table {
        Table(self.map.as_ptr().cast())
    }

    /// Where the cursor stands, unless the map changed and has no pair there any more. Called alone at a dict.
    fn position(&self) -> Option<u64> {
        self.at.filter(|&at| self.table().is_filled(at))
    }

    /// The key at the cursor.
    pub(crate) fn key(&self) -> Option<Any> {
        self.pair().map(|pair| pair.key)
    }

    /// The value at the cursor.
    pub(crate) fn value(&self) -> Option<Any> {
        self.pair().map(|pair| pair.value)
    }

    fn pair(&self) -> Option<Pair> {
        self.table().settled(|| {
            let at = self.position()?;
            // SAFETY: a pair is at the position (`position`), and nothing changes the map in here (`settled`).
            let pair = unsafe { self.table().pair_at(at) };
            // SAFETY: there is a pair, by `position`.
            Some(unsafe { &*pair }.copy())
        })
    }

    /// Steps on; false at the end.
    pub(crate) fn advance(&mut self) -> bool {
        let table = self.table();
        self.at = table.settled(|| self.position().and_then(|at| table.next(at)));
        self.at.is_some()
    }
}
