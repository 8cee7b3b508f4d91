//! The memory layout of a map: the fixed part, pairs, items, marks, and the distance that each mark encodes (OBJ-05 to OBJ-07). Inlined
//! C++ in other libraries reads and writes all of it, so no field may move.

use crate::value::header::{Header, static_object};
use crate::value::heap::release;
use crate::value::{Any, index};
use std::ffi::c_void;

/// Bit 63 of the number of slots: the map is small (OBJ-05).
pub(super) const SMALL: u64 = 1 << 63;
/// Maximum number of slots of a small map (OBJ-05).
pub(super) const SMALL_MAX: u64 = 4;
/// No slot: the neighbour of the first and of the last item in order of insertion.
pub(super) const NOWHERE: u64 = u64::MAX;
/// The mark of an empty slot. Its low seven bits are beyond [`JUMPS`], so no chain continues from it.
pub(super) const EMPTY: u8 = 0xff;
/// The mark of a slot that stays reserved while the chain that ran through it moves.
pub(super) const PROTECTED: u8 = 0xfe;
/// A bit of a mark: the slot is not the first of its chain. Also set in [`EMPTY`] and [`PROTECTED`], so that no search begins there.
pub(super) const BODY: u8 = 0x80;
/// Bytes of a block: 16 marks, then 16 items. A table with fewer slots also has a whole block.
pub(super) const BLOCK: usize = 16 + 16 * size_of::<MapItem>();
/// No limit on the length of a chain, for keys that a program chose (OBJ-39).
pub(super) const ANY_CHAIN: u64 = u64::MAX;

/// The fixed part of both kinds of map. A small map has all fields except the last.
#[repr(C)]
pub(crate) struct MapObj {
    /// Reference counts, type index and deleter.
    pub(super) header: Header,
    /// Separate from the header, whose counts others change at any time.
    pub(super) body: MapBody,
    // Only in a dense map. A small map has its pairs here.
    pub(super) order: MapOrder,
}

/// Location and number of the pairs.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct MapBody {
    /// The pairs of a small map or the blocks of a dense one. Null for a map that was emptied.
    pub(super) data: *mut u8,
    /// Number of pairs.
    pub(super) size: u64,
    /// Number of slots, combined with [`SMALL`] for a small map.
    pub(super) slots: u64,
    /// Frees `data` with the allocator of the library that allocated it. `None` if the pairs are inside the object itself.
    pub(super) data_deleter: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
}

impl MapBody {
    /// A body without pairs or room for any.
    pub(super) const NOTHING: MapBody = MapBody {
        data: std::ptr::null_mut(),
        size: 0,
        slots: SMALL,
        data_deleter: None,
    };
}

/// The additional part of a dense map.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct MapOrder {
    /// Shift that turns a product into a slot: 64 minus the binary logarithm of the number of slots.
    pub(super) fib_shift: u32,
    pub(super) padding: u32,
    /// Slot of the first pair in order of insertion.
    pub(super) head: u64,
    /// Slot of the last pair.
    pub(super) tail: u64,
}

impl MapOrder {
    /// Returns the order of a map without pairs.
    pub(super) const fn empty(fib_shift: u32) -> MapOrder {
        MapOrder {
            fib_shift,
            padding: 0,
            head: NOWHERE,
            tail: NOWHERE,
        }
    }
}

/// Number of bytes before the pairs of a small map. They start at the offset where a dense map has its order.
pub(super) const HEAD: usize = std::mem::offset_of!(MapObj, order);
const _: () = assert!(size_of::<MapObj>() == 80 && HEAD == 56);

/// A key and its value, 32 bytes.
#[repr(C)]
pub(super) struct Pair {
    pub(super) key: Any,
    pub(super) value: Any,
}

impl Pair {
    /// Creates a pair.
    pub(super) const fn of(key: Any, value: Any) -> Pair {
        Pair { key, value }
    }

    /// Returns a copy of the pair with a new reference to each part.
    pub(super) fn copy(&self) -> Pair {
        Pair::of(self.key.clone(), self.value.clone())
    }

    /// Takes the pair out and leaves two Nones, whose drop does nothing.
    pub(super) fn moved_out(&mut self) -> Pair {
        std::mem::replace(self, Pair::of(Any::none(), Any::none()))
    }
}

/// The content of a filled slot of a dense map: the pair, and the slots before and after it in order of insertion (OBJ-08).
#[repr(C)]
pub(super) struct MapItem {
    pub(super) pair: Pair,
    /// Slot of the previous pair in order of insertion, or [`NOWHERE`].
    pub(super) prev: u64,
    /// Slot of the next pair, or [`NOWHERE`].
    pub(super) next: u64,
}

const _: () = assert!(size_of::<MapItem>() == 48 && BLOCK == 784);

/// An immutable map object. Used only as a type parameter of references.
#[repr(transparent)]
pub(crate) struct MapKind(Header);
/// A mutable map object. Used only as a type parameter of references.
#[repr(transparent)]
pub(crate) struct DictKind(Header);

static_object!(MapKind, index::MAP);
static_object!(DictKind, index::DICT);

/// The distance that each mark encodes (OBJ-07): 0 to 15, then triangular numbers up to 2628, then about 2.25 times more each time.
/// Distance 0 ends a chain. TVM's maps before tvm-ffi use the same numbers.
pub(super) static JUMPS: [u64; 126] = jumps();

/// Returns the number of items of a triangle with this side.
const fn triangular(side: u64) -> u64 {
    side * (side + 1) / 2
}

/// Computes [`JUMPS`] at compile time.
const fn jumps() -> [u64; 126] {
    // OBJ-07: each side is about 1.5 times the one before. Upstream chose them, so they are listed.
    const FAR_SIDES: [u64; 43] = [
        130, 195, 292, 438, 657, 986, 1478, 2217, 3326, 4988, 7482, 11223, 16835, 25252, 37877,
        56816, 85223, 127835, 191752, 287627, 431440, 647160, 970740, 1456110, 2184165, 3276247,
        4914370, 7371555, 11057333, 16585999, 24878998, 37318497, 55977745, 83966618, 125949926,
        188924889, 283387334, 425081001, 637621501, 956432251, 1434648376, 2151972564, 3227958845,
    ];
    let mut table = [0; 126];
    let mut at = 0;
    while at < 16 {
        table[at] = at as u64;
        at += 1;
    }
    while at < 83 {
        // Starts at 21, the triangular number of 6. The smaller ones are among the first sixteen entries.
        table[at] = triangular(at as u64 - 10);
        at += 1;
    }
    while at < 126 {
        table[at] = triangular(FAR_SIDES[at - 83]);
        at += 1;
    }
    table
}

/// Frees the memory that a map's address refers to (OBJ-05). The map stores this deleter, so that another library that grows the map uses
/// the right allocator to free it.
pub(super) unsafe extern "C-unwind" fn free_data(data: *mut c_void) {
    // SAFETY: the deleter of the tables that `MapTable::dense` and `become_table` allocate with `allocate`; called once, after the map's
    // last use of the table (`MapTable::reset`).
    unsafe { release(data.cast()) }
}

/// Returns the number of blocks of 16 slots for this number of slots.
pub(super) fn blocks(slots: u64) -> usize {
    slots.div_ceil(16) as usize
}
