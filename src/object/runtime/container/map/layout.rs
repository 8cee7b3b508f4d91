//! What a map is in memory: the fixed part, pairs, items, marks, and how far a mark jumps (OBJ-05 to OBJ-07). Inlined C++ of other
//! libraries reads and writes all of it, so nothing here may move.

use crate::value::header::{Header, static_object};
use crate::value::heap::release;
use crate::value::{Any, index};
use std::ffi::c_void;

/// Bit 63 of the slots: the map is small (OBJ-05).
pub(super) const SMALL: u64 = 1 << 63;
/// The most slots of a small map (OBJ-05).
pub(super) const SMALL_MAX: u64 = 4;
/// No slot: before the first and behind the last in the order of insertion.
pub(super) const NOWHERE: u64 = u64::MAX;
/// Mark of an empty slot. Its low seven bits are beyond [`JUMPS`], so no chain goes on from it.
pub(super) const EMPTY: u8 = 0xff;
/// Mark of a slot that is kept free while the chain that ran through it moves.
pub(super) const PROTECTED: u8 = 0xfe;
/// Bit of a mark: the slot is not the first of its chain. Set in [`EMPTY`] and [`PROTECTED`] too, so that no search begins there.
pub(super) const BODY: u8 = 0x80;
/// Bytes of a block: 16 marks, then 16 items. A table of fewer slots has a whole block, too.
pub(super) const BLOCK: usize = 16 + 16 * size_of::<MapItem>();
/// The longest chain for keys that a program chose: any (OBJ-39).
pub(super) const ANY_CHAIN: u64 = u64::MAX;

/// The fixed part of both maps, of which a small map has all but the last field.
#[repr(C)]
pub(crate) struct MapObj {
    /// Counts, index and deleter.
    pub(super) header: Header,
    /// Apart from the header, whose counts others change at any time.
    pub(super) body: MapBody,
    // Only in a dense map; a small one has its pairs there.
    pub(super) order: MapOrder,
}

/// Where the pairs are, and how many.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct MapBody {
    /// The pairs of a small map, the blocks of a dense one; null for a map that was emptied.
    pub(super) data: *mut u8,
    /// Number of pairs.
    pub(super) size: u64,
    /// Number of slots, with [`SMALL`] for a small map.
    pub(super) slots: u64,
    /// Frees `data`, with the allocator of the library that made it; `None` where the pairs lie in the object itself.
    pub(super) data_deleter: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
}

impl MapBody {
    /// No pairs, and no room for any.
    pub(super) const NOTHING: MapBody = MapBody {
        data: std::ptr::null_mut(),
        size: 0,
        slots: SMALL,
        data_deleter: None,
    };
}

/// What a dense map has besides.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct MapOrder {
    /// Shift of the product that makes a hash a slot: 64 minus the binary logarithm of the number of slots.
    pub(super) fib_shift: u32,
    pub(super) padding: u32,
    /// Slot of the first pair in the order of insertion.
    pub(super) head: u64,
    /// Slot of the last pair.
    pub(super) tail: u64,
}

impl MapOrder {
    /// Of a map without pairs.
    pub(super) const fn empty(fib_shift: u32) -> MapOrder {
        MapOrder {
            fib_shift,
            padding: 0,
            head: NOWHERE,
            tail: NOWHERE,
        }
    }
}

/// Bytes before the pairs of a small map, which lie where a dense one has its order.
pub(super) const HEAD: usize = std::mem::offset_of!(MapObj, order);
const _: () = assert!(size_of::<MapObj>() == 80 && HEAD == 56);

/// A key and its value, 32 bytes.
#[repr(C)]
pub(super) struct Pair {
    pub(super) key: Any,
    pub(super) value: Any,
}

impl Pair {
    /// A pair.
    pub(super) const fn of(key: Any, value: Any) -> Pair {
        Pair { key, value }
    }

    /// The same pair, both parts counted once more.
    pub(super) fn copy(&self) -> Pair {
        Pair::of(self.key.clone(), self.value.clone())
    }

    /// The pair itself; two Nones stay, which drop nothing.
    pub(super) fn moved_out(&mut self) -> Pair {
        std::mem::replace(self, Pair::of(Any::none(), Any::none()))
    }
}

/// What a filled slot of a dense map has: the pair, and the slots before and behind it in the order of insertion (OBJ-08).
#[repr(C)]
pub(super) struct MapItem {
    pub(super) pair: Pair,
    /// Slot of the pair before it in the order of insertion, or [`NOWHERE`].
    pub(super) prev: u64,
    /// Slot of the pair behind it, or [`NOWHERE`].
    pub(super) next: u64,
}

const _: () = assert!(size_of::<MapItem>() == 48 && BLOCK == 784);

/// An immutable map object; only a type for references.
#[repr(transparent)]
pub(crate) struct MapKind(Header);
/// A mutable map object; only a type for references.
#[repr(transparent)]
pub(crate) struct DictKind(Header);

static_object!(MapKind, index::MAP);
static_object!(DictKind, index::DICT);

/// How far each mark jumps (OBJ-07): 0 to 15, triangular numbers up to 2628, then about 2.25 times further each time. 0 ends a chain. The
/// same numbers as in TVM's maps before tvm-ffi.
pub(super) static JUMPS: [u64; 126] = jumps();

/// Makes [`JUMPS`] when the crate is compiled.
const fn jumps() -> [u64; 126] {
    // OBJ-07: triangular numbers as well, but each about 1.5 times the root of the one before: upstream's choice, so a list.
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
        // From the triangular number of 6, which is 21, on: those before it are among the first sixteen.
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

/// Deleter of the memory behind the address of a map (OBJ-05). The map carries it, so that another library that grows the map frees this
/// memory with the allocator that it is from.
pub(super) unsafe extern "C-unwind" fn free_data(data: *mut c_void) {
    // SAFETY: the deleter of the tables that `MapTable::dense` and `become_table` make with `allocate`; called once, with the
    // map's last use of one (`MapTable::reset`).
    unsafe { release(data.cast()) }
}

/// Blocks of 16 that so many slots take.
pub(super) fn blocks(slots: u64) -> usize {
    slots.div_ceil(16) as usize
}
