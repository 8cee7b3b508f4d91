//! Memory layout of the objects of a runtime, as C++ headers read it without a call: `object.layout`, `object.hash`.

use crate::conformance::adapter::view::{HOME_SLOTS, view};
use crate::conformance::runtime::ffi::api::FfiApi;
use crate::conformance::runtime::ffi::forms::make;
use crate::conformance::runtime::ffi::owned::{OwnedValue, int_arg};
use crate::conformance::runtime::ffi::{Reply, accepted, unsupported, view_reply};
use crate::value::{Header, RawAny, index};
use serde_json::{Value, json};
use std::ffi::c_void;

/// Fields after the header of an array or list.
#[derive(Clone, Copy)]
#[repr(C)]
struct Sequence {
    data: *const RawAny,
    size: i64,
    capacity: i64,
    data_deleter: *const c_void,
}

/// Fields after the header of a map or dict. In a small map the pairs follow them.
#[derive(Clone, Copy)]
#[repr(C)]
struct Table {
    data: *const u8,
    size: u64,
    /// Number of slots. The highest bit marks a small map.
    slots: u64,
    data_deleter: *const c_void,
}

/// Fields after the header of a map that is not small.
#[derive(Clone, Copy)]
#[repr(C)]
struct Dense {
    table: Table,
    fib_shift: u32,
    padding: u32,
    first: u64,
    last: u64,
}

const SMALL: u64 = 1 << 63;
const BLOCK: usize = 16;
const ITEM: usize = 48;

/// Performs `object.layout`.
pub(in crate::conformance) fn layout(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    accepted(shape_of(&make(
        api,
        args.get("value").unwrap_or(&Value::Null),
    )?)?)
}

/// Shows the current memory layout of a container.
pub(super) fn shape_of(held: &OwnedValue) -> Result<Value, Reply> {
    match held.raw.type_index {
        index::ARRAY | index::LIST => {
            // SAFETY: the tag says which fields follow the header.
            let sequence = unsafe { *held.cell::<Sequence>() };
            let behind = size_of::<Header>() + size_of::<Sequence>();
            let inline = sequence.data as usize == held.pointer() as usize + behind;
            Ok(json!({"size": sequence.size, "capacity": sequence.capacity, "inline": inline}))
        }
        index::MAP | index::DICT => {
            // SAFETY: the tag says which fields follow the header.
            let table = unsafe { *held.cell::<Table>() };
            // SAFETY: an object begins with a header.
            let padding = unsafe { (*held.pointer().cast::<Header>()).padding };
            let small = table.slots & SMALL != 0;
            let slots = table.slots & !SMALL;
            if slots > HOME_SLOTS {
                return Err(unsupported("a map of a case has no more than 4096 slots"));
            }
            let dense = 0..if small { 0 } else { slots as usize };
            let mark = |slot: usize| {
                let offset = slot / BLOCK * (BLOCK + BLOCK * ITEM) + slot % BLOCK;
                // SAFETY: each block has 16 marks followed by its 16 items, and there are blocks for all slots.
                unsafe { *table.data.wrapping_add(offset) }
            };
            let marks: Vec<u8> = dense.map(mark).collect();
            Ok(json!({"small": small, "slots": slots, "padding": padding, "marks": marks}))
        }
        other => Err(unsupported(format!(
            "a value with type index {other} has no slots"
        ))),
    }
}

/// Performs `object.hash`. No C function returns the hash of a key, so the operation looks at a map.
///
/// The first key of a map lies in the slot that its hash selects, and the map keeps the slot of its first element. If a runtime provides
/// the hash itself, its hash must agree with that slot.
pub(in crate::conformance) fn home(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let key = make(api, args.get("value").unwrap_or(&Value::Null))?;
    let mut pairs = vec![key.raw, RawAny::NONE];
    // The map is more than half full, so it has exactly the number of slots that the view expects.
    for other in 0..HOME_SLOTS as i64 * 3 / 4 {
        pairs.extend([int_arg(1_000_000 + other), RawAny::NONE]);
    }
    let map: OwnedValue = api.call_global("ffi.Map", &pairs)?;
    // SAFETY: a map of more than four elements is not small.
    let dense = unsafe { *map.cell::<Dense>() };
    if dense.table.slots != HOME_SLOTS {
        return Err(unsupported(format!(
            "a map of {} elements has {} slots here, not {HOME_SLOTS}",
            pairs.len() / 2,
            dense.table.slots
        )));
    }
    let home = json!(dense.first);
    let Some(hash) = api.suite_function("object.hash") else {
        return view_reply("home", home);
    };
    let hash = json!(api.call(&hash, &[key.raw])?.text());
    if view("home", &hash) == Some(home.clone()) {
        accepted(hash)
    } else {
        accepted(json!({"hash": hash, "home": home}))
    }
}
