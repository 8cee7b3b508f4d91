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
use super::turnstile::{Purpose, Stay, alone};
use super::{OBJ_05, OBJ_06, OBJ_07, OBJ_08, OBJ_39};
use crate::function::{Error, Result, lent};
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
    data: *mut u8,
    size: u64,
    slots: u64,
    data_deleter: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
    // From here on only in a dense map; a small one has its pairs there.
    fib_shift: u32,
    padding: u32,
    head: u64,
    tail: u64,
}

const HEAD: usize = std::mem::offset_of!(MapObj, fib_shift);
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
        Pair {
            key: std::mem::take(&mut self.key),
            value: std::mem::take(&mut self.value),
        }
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
    // SAFETY: tables of this library are made with `allocate`.
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
        // SAFETY: the last strong reference is gone; the table may be of either form and of either library.
        unsafe { Table(object.cast()).reset() }
    }
    if flags & DELETE_WEAK != 0 {
        // SAFETY: made with `allocate`, and nobody refers to it.
        unsafe { release(object.cast()) }
    }
}

/// Raw access to a map object. Copies alias; whoever uses one vouches that the object lives and is not used elsewhere
/// at the same time.
#[derive(Clone, Copy)]
struct Table(*mut MapObj);

impl Table {
    /// A small map with room for `slots` pairs (at least 2). Large enough to become dense in place.
    fn small(type_index: i32, slots: u64) -> Table {
        let slots = slots.max(2);
        let object = allocate(HEAD + slots as usize * size_of::<Pair>()).cast::<MapObj>();
        // SAFETY: the block holds at least 120 bytes, so also the dense fields, which are not written here.
        unsafe {
            (&raw mut (*object).header).write(Header::new(type_index, delete));
            (&raw mut (*object).data).write(object.cast::<u8>().add(HEAD));
            (&raw mut (*object).size).write(0);
            (&raw mut (*object).slots).write(slots | SMALL);
            (&raw mut (*object).data_deleter).write(None);
            if OBJ_05.is_off() {
                (&raw mut (*object).header.padding).write(1);
            }
        }
        Table(object)
    }

    /// An empty dense map.
    fn dense(type_index: i32, slots: u64, fib_shift: u32) -> Table {
        let object = allocate(size_of::<MapObj>()).cast::<MapObj>();
        let blocks = blocks(slots);
        let data = allocate(blocks * BLOCK);
        for block in 0..blocks {
            // SAFETY: the marks of a block are its first 16 bytes.
            unsafe { data.add(block * BLOCK).write_bytes(EMPTY, 16) }
        }
        // SAFETY: the block holds a `MapObj`.
        unsafe {
            object.write(MapObj {
                header: Header::new(type_index, delete),
                data,
                size: 0,
                slots,
                data_deleter: Some(free_data),
                fib_shift,
                padding: 0,
                head: NOWHERE,
                tail: NOWHERE,
            });
        }
        Table(object)
    }

    fn size(self) -> u64 {
        // SAFETY: see the type.
        unsafe { (*self.0).size }
    }

    fn is_small(self) -> bool {
        // SAFETY: see the type.
        unsafe { (*self.0).slots & SMALL != 0 }
    }

    fn slots(self) -> u64 {
        // SAFETY: see the type.
        unsafe { (*self.0).slots & !SMALL }
    }

    fn type_index(self) -> i32 {
        // SAFETY: see the type.
        unsafe { (*self.0).header.type_index }
    }

    unsafe fn pair(self, at: u64) -> *mut Pair {
        // SAFETY: the caller says that `at` is below the number of slots of a small map.
        unsafe { (*self.0).data.cast::<Pair>().add(at as usize) }
    }

    unsafe fn mark(self, slot: u64) -> *mut u8 {
        let (block, at) = (slot as usize / 16, slot as usize % 16);
        // SAFETY: the caller says that `slot` is one of a dense map.
        unsafe { (*self.0).data.add(block * BLOCK + at) }
    }

    unsafe fn item(self, slot: u64) -> *mut Item {
        let (block, at) = (slot as usize / 16, slot as usize % 16);
        // SAFETY: as for `mark`; items follow the 16 marks.
        unsafe {
            (*self.0)
                .data
                .add(block * BLOCK + 16 + at * size_of::<Item>())
                .cast()
        }
    }

    /// Position of `key`: a pair of a small map, a slot of a dense one.
    fn find(self, key: AnyView<'_>) -> Result<Option<u64>> {
        if self.size() == 0 {
            return Ok(None);
        }
        // SAFETY: positions come from the table itself.
        unsafe {
            if self.is_small() {
                for at in 0..self.size() {
                    if any_equal((*self.pair(at)).key.view(), key)? {
                        return Ok(Some(at));
                    }
                }
                return Ok(None);
            }
            let mut slot = self.home(any_hash(key)?);
            if *self.mark(slot) & BODY != 0 {
                return Ok(None);
            }
            loop {
                if any_equal(key, (*self.item(slot)).pair.key.view())? {
                    return Ok(Some(slot));
                }
                match self.after(slot, *self.mark(slot)) {
                    Some(next) => slot = next,
                    None => return Ok(None),
                }
            }
        }
    }

    fn home(self, hash: u64) -> u64 {
        // SAFETY: see the type; called on dense maps.
        let shift = unsafe { (*self.0).fib_shift };
        if OBJ_07.is_off() {
            return 0;
        }
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
        let slots = self.slots();
        if slots & slots.wrapping_sub(1) == 0 {
            slot & slots.wrapping_sub(1)
        } else {
            slot % slots
        }
    }

    /// The pair at a position.
    unsafe fn pair_at(self, position: u64) -> *mut Pair {
        // SAFETY: the caller got the position from `find`, `first` or `next`.
        unsafe {
            if self.is_small() {
                self.pair(position)
            } else {
                &raw mut (*self.item(position)).pair
            }
        }
    }

    fn first(self) -> Option<u64> {
        if self.size() == 0 {
            return None;
        }
        if self.is_small() {
            return Some(0);
        }
        // SAFETY: a dense map has the field.
        Some(unsafe { (*self.0).head })
    }

    fn next(self, position: u64) -> Option<u64> {
        if self.is_small() {
            return Some(position + 1).filter(|&next| next < self.size());
        }
        // SAFETY: the position is of a dense map's item.
        Some(unsafe { (*self.item(position)).next }).filter(|&next| next != NOWHERE)
    }

    /// Runs what changes the table, or looks at it without a stay: alone at a dict, which others reach at the same time. All
    /// that calls a hook comes before, all that drops a value after.
    #[inline]
    fn settled<R>(self, work: impl FnOnce() -> R) -> R {
        match self.type_index() {
            index::DICT => alone(self.0, work),
            _ => work(),
        }
    }

    /// The value of `key`. Whoever calls this stays at a dict, or is alone with it and the key calls no hook.
    fn value_of(self, key: AnyView<'_>) -> Result<Option<Any>> {
        let found = self.find(key)?;
        // SAFETY: the position is of this map, which nobody changes meanwhile.
        Ok(found.map(|at| unsafe { (*self.pair_at(at)).value.clone() }))
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

    /// Inserts or replaces. `None` when done in place; otherwise the map that takes this one's place, to which all
    /// pairs have moved or been copied.
    fn insert(self, fresh: &mut Pair) -> Result<Option<Successor>> {
        self.insert_within(ANY_CHAIN, fresh)
    }

    /// [`Table::insert`] that makes no chain longer than `longest`.
    fn insert_within(self, longest: u64, fresh: &mut Pair) -> Result<Option<Successor>> {
        if !self.is_small() {
            return self.insert_dense(longest, fresh);
        }
        let full = self.size() == self.slots();
        let in_place = OBJ_06.is_off() && self.find(fresh.key.view())?.is_some();
        if full && self.slots() >= SMALL_MAX && !in_place {
            // Even an update turns a full small map dense (OBJ-06).
            let dense = self.dense_copy()?;
            return dense.succeeded(|dense| dense.insert_dense(longest, fresh));
        }
        if let Some(at) = self.find(fresh.key.view())? {
            // SAFETY: the position is of this small map.
            self.settled(|| unsafe {
                std::mem::swap(&mut (*self.pair(at)).value, &mut fresh.value);
            });
            return Ok(None);
        }
        if !full {
            // SAFETY: there is room behind the last pair.
            self.settled(|| unsafe {
                self.pair(self.size()).write(fresh.moved_out());
                (*self.0).size += 1;
            });
            return Ok(None);
        }
        let grown = self.small_copy((self.slots() * 2).clamp(2, SMALL_MAX));
        grown.succeeded(|grown| grown.insert_within(longest, fresh))
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
        // SAFETY: there is room for all pairs.
        unsafe {
            for at in 0..self.size() {
                let pair = self.pair(at);
                copy.pair(at).write(Pair {
                    key: (*pair).key.clone(),
                    value: (*pair).value.clone(),
                });
                (*copy.0).size = at + 1;
            }
        }
        copy
    }

    /// A dense map with the pairs of this one.
    fn dense_copy(self) -> Result<Table> {
        let (slots, shift) = table_size(self.size().max(SMALL_MAX));
        let mut copy = Table::dense(self.type_index(), slots, shift);
        let mut at = self.first();
        while let Some(position) = at {
            // SAFETY: the position is of this map.
            let pair = unsafe { &*self.pair_at(position) };
            match copy.insert_dense(ANY_CHAIN, &mut pair.copy()) {
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
    fn insert_dense(self, longest: u64, fresh: &mut Pair) -> Result<Option<Successor>> {
        let hash = any_hash(fresh.key.view())?;
        let place = self.place(longest, hash, fresh.key.view())?;
        let entered = self.settled(|| {
            if let Place::Known(slot) = place {
                // SAFETY: an item of this map.
                unsafe {
                    if !OBJ_08.is_off() {
                        self.unlink(slot);
                        self.link_last(slot);
                    }
                    std::mem::swap(&mut (*self.item(slot)).pair.value, &mut fresh.value);
                }
                return true;
            }
            // SAFETY: nothing changed the map since the place was found.
            let Some((slot, mark)) = (unsafe { self.make_room(place) }) else {
                return false;
            };
            // SAFETY: an empty slot of this map.
            unsafe {
                (&raw mut (*self.item(slot)).pair).write(fresh.moved_out());
                self.enter(slot, mark);
            }
            true
        });
        match entered {
            true => Ok(None),
            false => self.rehash(longest, fresh).map(Some),
        }
    }

    /// Counts the pair that was written to `slot` in.
    unsafe fn enter(self, slot: u64, mark: u8) {
        // SAFETY: an empty slot of this dense map, says the caller.
        unsafe {
            self.mark(slot).write(mark);
            (*self.0).size += 1;
            self.link_last(slot);
        }
    }

    /// Moves all pairs to a table of twice the slots, in order, and adds one.
    fn rehash(self, longest: u64, fresh: &mut Pair) -> Result<Successor> {
        // SAFETY: a dense map has the field.
        let shift = unsafe { (*self.0).fib_shift };
        let (slots, shift) = (self.slots() * 2, shift - 1);
        let (larger, moved) = match self.moved(slots, shift)? {
            Some(larger) => (larger, true),
            None => (self.copied(slots, shift)?, false),
        };
        match larger.insert_dense(longest, fresh) {
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
            // SAFETY: an item of this map, which is not changed here.
            let item = unsafe { &*self.item(slot) };
            let key = item.pair.key.view();
            let place = any_hash(key).and_then(|hash| larger.place(ANY_CHAIN, hash, key));
            let room = match place {
                Ok(Place::Known(_)) => Ok(None),
                // SAFETY: nothing changed the other map, which is not known elsewhere, since the place was found.
                Ok(place) => Ok(unsafe { larger.make_room(place) }),
                Err(error) => Err(error),
            };
            match room {
                // SAFETY: an empty slot of the other map; who owns the pair is for the caller to settle.
                Ok(Some((free, mark))) => unsafe {
                    std::ptr::copy_nonoverlapping(item, larger.item(free), 1);
                    larger.enter(free, mark);
                },
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
            // SAFETY: an item of this map.
            let pair = unsafe { &*self.pair_at(slot) };
            match copy.insert_dense(ANY_CHAIN, &mut pair.copy()) {
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

    /// Lets go of all pairs without dropping them: they are another table's now.
    fn forget(self) {
        // SAFETY: a dense map has the fields.
        unsafe {
            (*self.0).size = 0;
            (*self.0).head = NOWHERE;
            (*self.0).tail = NOWHERE;
        }
    }

    /// Where `key` is, or where it goes. Changes nothing; calls the hooks of keys.
    ///
    /// # Errors
    ///
    /// OBJ-39 where the chain holds `longest` keys without `key`.
    fn place(self, longest: u64, hash: u64, key: AnyView<'_>) -> Result<Place> {
        let home = self.home(hash);
        // SAFETY: slots are of this dense map.
        unsafe {
            let mark = *self.mark(home);
            if mark == EMPTY {
                return Ok(Place::Home(home));
            }
            if mark & BODY != 0 {
                if self.is_full() {
                    return Ok(Place::Full);
                }
                let before = self.before(home)?;
                return Ok(Place::Intruder { home, before });
            }
            let mut slot = home;
            let mut passed = 1;
            loop {
                if any_equal(key, (*self.item(slot)).pair.key.view())? {
                    return Ok(Place::Known(slot));
                }
                match self.after(slot, *self.mark(slot)) {
                    Some(next) => slot = next,
                    None => break,
                }
                passed += 1;
            }
            if passed >= longest && !OBJ_39.is_off() {
                return Err(chain_too_long(longest));
            }
            if self.is_full() {
                return Ok(Place::Full);
            }
            Ok(Place::Behind(slot))
        }
    }

    /// The empty slot that a place is about, linked into its chain, with the mark to write there; `None` where no chain
    /// reaches one. Calls no hook.
    ///
    /// # Safety
    /// The place is of this map, which did not change since, and none of a known key.
    unsafe fn make_room(self, place: Place) -> Option<(u64, u8)> {
        match place {
            Place::Known(_) | Place::Full => None,
            Place::Home(home) => Some((home, 0)),
            Place::Behind(last) => {
                // SAFETY: the last slot of a chain of this map.
                let (jump, free) = unsafe { self.free_after(last) }?;
                // SAFETY: as above.
                unsafe { self.set_jump(last, jump) };
                Some((free, BODY))
            }
            // SAFETY: the slots are of this map, the second the one before the first.
            Place::Intruder { home, before } => unsafe { self.move_intruder(home, before) },
        }
    }

    fn is_full(self) -> bool {
        (self.size() + 1) as f64 > self.slots() as f64 * 0.99
    }

    unsafe fn set_jump(self, slot: u64, jump: u8) {
        // SAFETY: says the caller.
        unsafe {
            let mark = self.mark(slot);
            *mark = *mark & BODY | jump;
        }
    }

    /// The nearest empty slot that a mark at `slot` can name.
    unsafe fn free_after(self, slot: u64) -> Option<(u8, u64)> {
        (1..JUMPS.len()).find_map(|jump| {
            let candidate = self.wrapped(slot.wrapping_add(JUMPS[jump]));
            // SAFETY: inside the table by the remainder.
            (unsafe { *self.mark(candidate) } == EMPTY).then_some((jump as u8, candidate))
        })
    }

    /// Frees `home` from the chain that it belongs to, where it follows `last`: the rest of that chain, from `home` on, moves
    /// to other slots.
    unsafe fn move_intruder(self, home: u64, mut last: u64) -> Option<(u64, u8)> {
        // SAFETY: slots are of this dense map, and `home` is in the body of a chain.
        unsafe {
            let mut from = home;
            loop {
                let (jump, free) = self.free_after(last)?;
                self.mark(free).write(BODY);
                std::ptr::copy_nonoverlapping(self.item(from), self.item(free), 1);
                self.relink(free);
                let mark = *self.mark(from);
                // The first slot is kept for the newcomer: nothing of this chain may move back into it.
                self.mark(from)
                    .write(if from == home { PROTECTED } else { EMPTY });
                self.set_jump(last, jump);
                last = free;
                match self.after(from, mark) {
                    Some(next) => from = next,
                    None => break,
                }
            }
            Some((home, 0))
        }
    }

    /// The slot before `slot` in its chain.
    unsafe fn before(self, slot: u64) -> Result<u64> {
        // SAFETY: `slot` is in the body of a chain, whose head is the home of its key.
        unsafe {
            let mut at = self.home(any_hash((*self.item(slot)).pair.key.view())?);
            for _ in 0..=self.slots() {
                match self.after(at, *self.mark(at)) {
                    Some(next) if next == slot => return Ok(at),
                    Some(next) => at = next,
                    None => break,
                }
            }
        }
        Err(Error::new(
            "InternalError",
            OBJ_07
                .refused(
                    crate::rule::Kind::Malformed,
                    "a key of a map hashes to another chain now than when it was inserted",
                )
                .message(),
        ))
    }

    unsafe fn unlink(self, slot: u64) {
        // SAFETY: an item of this dense map, whose neighbours are too.
        unsafe {
            let (prev, next) = ((*self.item(slot)).prev, (*self.item(slot)).next);
            match prev {
                NOWHERE => (*self.0).head = next,
                prev => (*self.item(prev)).next = next,
            }
            match next {
                NOWHERE => (*self.0).tail = prev,
                next => (*self.item(next)).prev = prev,
            }
        }
    }

    unsafe fn link_last(self, slot: u64) {
        // SAFETY: an item of this dense map.
        unsafe {
            let tail = (*self.0).tail;
            (*self.item(slot)).prev = tail;
            (*self.item(slot)).next = NOWHERE;
            match tail {
                NOWHERE => (*self.0).head = slot,
                tail => (*self.item(tail)).next = slot,
            }
            (*self.0).tail = slot;
        }
    }

    /// Points the neighbours of an item that moved to `slot` at it.
    unsafe fn relink(self, slot: u64) {
        // SAFETY: an item of this dense map.
        unsafe {
            let (prev, next) = ((*self.item(slot)).prev, (*self.item(slot)).next);
            match prev {
                NOWHERE => (*self.0).head = slot,
                prev => (*self.item(prev)).next = slot,
            }
            match next {
                NOWHERE => (*self.0).tail = slot,
                next => (*self.item(next)).prev = slot,
            }
        }
    }

    /// Removes the pair at a position, for the caller to drop.
    fn erase(self, position: u64) -> Result<Pair> {
        if self.is_small() {
            // SAFETY: the position came from `find`.
            return Ok(self.settled(|| unsafe {
                let pair = self.pair(position).read();
                let behind = self.size() - position - 1;
                std::ptr::copy(
                    self.pair(position + 1),
                    self.pair(position),
                    behind as usize,
                );
                (*self.0).size -= 1;
                pair
            }));
        }
        // SAFETY: the position came from `find`.
        let mark = unsafe { *self.mark(position) };
        if self.after(position, mark).is_none() {
            let before = match mark & BODY {
                0 => None,
                // SAFETY: the slot is in the body of a chain. This calls a hook, so it comes before the change.
                _ => Some(unsafe { self.before(position)? }),
            };
            // SAFETY: as above.
            return Ok(self.settled(|| unsafe {
                if let Some(before) = before {
                    self.set_jump(before, 0);
                }
                self.unlink(position);
                self.mark(position).write(EMPTY);
                (*self.0).size -= 1;
                self.item(position).read().pair
            }));
        }
        // The last of the chain takes the place of what goes.
        let (mut before, mut last) = (position, position);
        // SAFETY: slots of one chain of this map.
        while let Some(next) = self.after(last, unsafe { *self.mark(last) }) {
            (before, last) = (last, next);
        }
        // SAFETY: as above.
        Ok(self.settled(|| unsafe {
            self.unlink(position);
            (*self.0).size -= 1;
            let gone = self.item(position).read();
            std::ptr::copy_nonoverlapping(self.item(last), self.item(position), 1);
            self.relink(position);
            self.mark(last).write(EMPTY);
            self.set_jump(before, 0);
            gone.pair
        }))
    }

    /// Leaves the table empty and gives all pairs. The caller drops them when the table is whole: what ends with a value may
    /// come back to it.
    #[must_use]
    fn take(self) -> Vec<Pair> {
        let mut taken = Vec::with_capacity(self.size() as usize);
        let mut at = self.first();
        while let Some(position) = at {
            at = self.next(position);
            // SAFETY: a position of this map, read once.
            unsafe {
                taken.push(self.pair_at(position).read());
                if !self.is_small() {
                    self.mark(position).write(EMPTY);
                }
            }
        }
        if self.is_small() {
            // SAFETY: see the type.
            unsafe { (*self.0).size = 0 }
        } else {
            self.forget();
        }
        taken
    }

    /// Drops all pairs and the memory behind them. Nobody else reaches the table any more.
    unsafe fn reset(self) {
        // SAFETY: each pair is dropped once, and the memory is not used after that.
        unsafe {
            let mut at = self.first();
            while let Some(position) = at {
                at = self.next(position);
                std::ptr::drop_in_place(self.pair_at(position));
            }
            (*self.0).size = 0;
            if let Some(free) = (*self.0).data_deleter.take()
                && !(*self.0).data.is_null()
            {
                free((*self.0).data.cast());
            }
            (*self.0).data = std::ptr::null_mut();
            (*self.0).slots = SMALL;
        }
    }

    /// Ends an object that nobody else has seen.
    fn dispose(self) {
        // SAFETY: fresh objects are owned by whoever made them.
        drop(unsafe { ObjectRef::from_raw(self.0.cast()) });
    }

    /// Takes over the contents of `other`, a fresh object, and gives the own pairs. The identity of this object stays. The
    /// other is empty then, for the caller to dispose of. Calls no hook and drops no value.
    #[must_use]
    unsafe fn become_table(self, other: Table) -> Vec<Pair> {
        let gone = self.take();
        // SAFETY: both are of this library's making or laid out alike, and not used elsewhere now.
        unsafe {
            self.reset();
            if other.is_small() {
                let bytes = other.slots() as usize * size_of::<Pair>();
                let data = allocate(bytes);
                std::ptr::copy_nonoverlapping((*other.0).data, data, bytes);
                (*self.0).data = data;
                (*self.0).data_deleter = Some(free_data);
                (*self.0).size = (*other.0).size;
                (*self.0).slots = (*other.0).slots;
                (*other.0).size = 0;
            } else {
                (*self.0).data = (*other.0).data;
                (*self.0).data_deleter = (*other.0).data_deleter;
                (*self.0).size = (*other.0).size;
                (*self.0).slots = (*other.0).slots;
                (*self.0).fib_shift = (*other.0).fib_shift;
                (*self.0).head = (*other.0).head;
                (*self.0).tail = (*other.0).tail;
                (*other.0).data = std::ptr::null_mut();
                (*other.0).data_deleter = None;
                (*other.0).size = 0;
                (*other.0).slots = SMALL;
            }
        }
        gone
    }

    /// Whether there is a pair at what was a position once.
    fn is_filled(self, position: u64) -> bool {
        if self.is_small() {
            return position < self.size();
        }
        // SAFETY: a slot of this dense map.
        position < self.slots() && !matches!(unsafe { *self.mark(position) }, EMPTY | PROTECTED)
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
        // SAFETY: a dense map has the field.
        let shift = unsafe { (*self.0).fib_shift };
        self.copied(self.slots(), shift)
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
    ($type:ident, $kind:ident, $index:expr, $name:literal, $other:expr) => {
        impl $type {
            /// An empty one.
            #[allow(clippy::new_without_default)]
            pub fn new() -> $type {
                $type::of(Table::small($index, 2))
            }

            fn of(table: Table) -> $type {
                // SAFETY: a fresh table is owned by whoever made it.
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

        impl Argument for $type {
            const RULE: crate::rule::Rule = VAL_10;

            fn schema() -> Schema {
                Schema::plain($name)
            }

            fn try_from_view(view: AnyView<'_>) -> Option<$type> {
                if let Some(found) = Ref::<$kind>::try_from_view(view) {
                    return Some($type(found));
                }
                if view.type_index() != $other {
                    return None;
                }
                // The other map converts by copying.
                let mut copy = Table::small($index, 2);
                for (key, value) in &pairs_of(view)? {
                    match copy.insert(&mut Pair::of(key.clone(), value.clone())) {
                        Ok(moved) => copy = replace_by(copy, moved),
                        Err(_) => {
                            copy.dispose();
                            return None;
                        }
                    }
                }
                Some($type::of(copy))
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

map_type!(Map, MapKind, index::MAP, "ffi.Map", index::DICT);
map_type!(Dict, DictKind, index::DICT, "ffi.Dict", index::MAP);
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
    pub fn from_untrusted(pairs: Vec<(Any, Any)>) -> Result<Map> {
        Map::within(UNTRUSTED_CHAIN, pairs)
    }

    fn within(longest: u64, pairs: Vec<(Any, Any)>) -> Result<Map> {
        let count = pairs.len() as u64;
        let mut table = if count < SMALL_MAX {
            Table::small(index::MAP, count)
        } else {
            let (slots, shift) = table_size(count);
            Table::dense(index::MAP, slots, shift)
        };
        for (key, value) in pairs {
            match table.insert_within(longest, &mut Pair::of(key, value)) {
                Ok(moved) => table = replace_by(table, moved),
                Err(error) => {
                    table.dispose();
                    return Err(error);
                }
            }
        }
        Ok(Map::of(table))
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
    pub fn set_untrusted(&mut self, key: impl Into<Any>, value: impl Into<Any>) -> Result<()> {
        self.put(UNTRUSTED_CHAIN, key.into(), value.into())
    }

    fn put(&mut self, longest: u64, key: Any, value: Any) -> Result<()> {
        if !self.as_object().is_unique() {
            *self = Map::of(self.table().copy()?);
        }
        let mut fresh = Pair::of(key, value);
        if let Some(next) = self.table().insert_within(longest, &mut fresh)? {
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
    pub fn set_untrusted(&self, key: impl Into<Any>, value: impl Into<Any>) -> Result<()> {
        self.put(UNTRUSTED_CHAIN, key.into(), value.into())
    }

    fn put(&self, longest: u64, key: Any, value: Any) -> Result<()> {
        let table = self.table();
        // Dropped last, when this thread left the dict.
        let mut fresh = Pair::of(key, value);
        let stay = Stay::at(table.0, Purpose::Change)?;
        let left = table.insert_within(longest, &mut fresh)?.map(|next| {
            table.settled(|| {
                let next = replace_in(table, next);
                // SAFETY: the fresh table is ours; this object keeps its identity.
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
                // SAFETY: the position is of the map, which lives for `'a`.
                let pair = unsafe { &*table.pair_at(at) };
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
    // SAFETY: the position is of the map, which `map` holds.
    Ok(Some(table.settled(|| unsafe {
        (&raw mut (*table.pair_at(at)).value).replace(value)
    })))
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
            // SAFETY: there is a pair at the position.
            Some(unsafe { (*self.table().pair_at(at)).copy() })
        })
    }

    /// Steps on; false at the end.
    pub(crate) fn advance(&mut self) -> bool {
        let table = self.table();
        self.at = table.settled(|| self.position().and_then(|at| table.next(at)));
        self.at.is_some()
    }
}

/// How a map lies in memory.
#[cfg(feature = "suite")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MapShape {
    /// Whether the pairs lie in a row.
    pub(crate) small: bool,
    /// Number of slots.
    pub(crate) slots: u64,
    /// Padding of the header.
    pub(crate) padding: u32,
    /// The mark of every slot of a dense map.
    pub(crate) marks: Vec<u8>,
}

#[cfg(feature = "suite")]
impl MapShape {
    /// Of a map of either kind.
    pub(crate) fn of(view: AnyView<'_>) -> Option<MapShape> {
        if !matches!(view.type_index(), index::MAP | index::DICT) {
            return None;
        }
        let table = Table(view.as_raw().ptr().cast());
        Some(table.settled(|| MapShape::of_table(table)))
    }

    fn of_table(table: Table) -> MapShape {
        let small = table.is_small();
        let slots = table.slots();
        let marks = match small {
            true => Vec::new(),
            // SAFETY: slots of a dense map.
            false => (0..slots)
                .map(|slot| unsafe { *table.mark(slot) })
                .collect(),
        };
        // SAFETY: a live map.
        let padding = unsafe { (*table.0).header.padding };
        MapShape {
            small,
            slots,
            padding,
            marks,
        }
    }
}
