//! The shape heap: integers of one running function, in a tensor on the host.

use super::super::calling::CallingMachine;
use super::super::fault::VmResult;
use super::super::storage::lasting;
use super::arguments::{arg, context, extents, int, is_compact, tensor, wrong_type};
use crate::device::Device;
use crate::object::{Shape, Tensor, extents_of};
use crate::rule::{Kind, Rule};
use crate::value::types::key_of;
use crate::value::{Any, AnyView, DLDataType, DLTensor, cast};
use crate::vm::{VM_45, VM_46, VM_47, VM_48};
use std::cell::Cell;

/// `(machine, n)`: a row of n int64 on the host (VM-48).
pub(super) fn alloc_shape_heap(machine: &dyn CallingMachine, args: &[AnyView<'_>]) -> VmResult {
    let size = int(args, 1)?;
    // VM-48: releases take the last device and fail where that is not the host; for Hexagon they take the first. Here it is the last
    // that is the host, whatever comes behind it: cells are read and written by this processor.
    let int64 = DLDataType::scalar(0, 64);
    lasting(machine.host()?, &[size], int64, "")
}

/// The cells of a heap argument; None is a heap without cells.
///
/// Upstream reads and writes through whatever address the tensor has. Here the heap is held to VM-48 first: a compact row of int64 on
/// the host, on a multiple of eight bytes.
fn heap<'a>(view: AnyView<'a>) -> VmResult<ShapeHeap<'a>> {
    // Compilers make no heap for a function that stores no extent, and pass None in its place.
    if view.is_none() {
        // VM-48: any code that names a cell of it is then missing its cell.
        let cells = &[][..];
        return Ok(ShapeHeap { cells, view });
    }
    let usable = tensor(view).filter(|dl| {
        (dl.dtype.code, dl.dtype.bits, dl.dtype.lanes) == (0, 64, 1)
            && Device::from(dl.device).is_host()
            && extents(dl).len() == 1
            && is_compact(dl)
            && !dl.data.is_null()
            && first_cell(dl).addr().is_multiple_of(8)
    });
    let Some(dl) = usable else {
        return wrong_type(VM_48, "a shape heap is a row of int64 on the host".into());
    };
    // VM-48: a negative extent has no cells; as an unsigned length it would reach all of memory.
    let count = usize::try_from(extents(dl)[0]).unwrap_or(0);
    // SAFETY: a compact row of `count` aligned integers on the host, as just seen, that the argument's caller keeps for the
    // call; cells may be written by others of this thread, and a heap belongs to one running function.
    let cells = unsafe { std::slice::from_raw_parts(first_cell(dl), count) };
    Ok(ShapeHeap { cells, view })
}

/// The cells of a shape heap.
struct ShapeHeap<'a> {
    /// Cells, because a heap is reached through its tensor as well while they are borrowed.
    cells: &'a [Cell<i64>],
    /// What they are the cells of.
    view: AnyView<'a>,
}

impl ShapeHeap<'_> {
    /// Cell `at` (VM-48).
    fn cell(&self, at: i64) -> VmResult<&Cell<i64>> {
        let found = usize::try_from(at).ok().and_then(|at| self.cells.get(at));
        found.ok_or_else(|| {
            let count = self.cells.len();
            let message = format!("the shape heap has no cell {at}, it has {count}");
            VM_48.rejected(Kind::Missing, message).into()
        })
    }

    /// Stores `value` in cell `at`, unless the tensor is read-only (OBJ-12).
    fn store(&self, at: i64, value: i64) -> VmResult<()> {
        let cell = self.cell(at)?;
        // OBJ-12: the flag is of the tensor object; a borrowed `DLTensor*` has no place for one.
        if let Ok(tensor) = cast::<Tensor>(self.view) {
            tensor.check_writable()?;
        }
        cell.set(value);
        Ok(())
    }
}

/// Where the cells begin: `data` and `byte_offset` together.
fn first_cell(heap: &DLTensor) -> *const Cell<i64> {
    // VM-48: releases use `data` alone. A heap that begins further on is then another one to them.
    heap.data
        .wrapping_byte_add(heap.byte_offset as usize)
        .cast_const()
        .cast()
}

/// Matches a value by code: 0 equals the operand, 1 is stored in a cell, 2 is anything, 3 equals a cell (VM-45). Another code breaks
/// `rule`.
fn match_one(
    rule: Rule,
    value: i64,
    heap: &ShapeHeap<'_>,
    (code, operand): (i64, i64),
    describe: impl Fn() -> String,
) -> VmResult<()> {
    let expected = match code {
        0 => operand,
        1 => return heap.store(operand, value),
        2 => return Ok(()),
        3 => heap.cell(operand)?.get(),
        _ => return wrong_type(rule, format!("there is no code {code} to match a value by")),
    };
    rule.demand(Kind::Malformed, value == expected, || {
        format!("{} is {value}, expected {expected}", describe())
    })?;
    Ok(())
}

/// `(value, heap, n, code, operand, ..., text)`: the value has n extents, and each is as its code says (VM-45).
pub(super) fn match_shape(args: &[AnyView<'_>]) -> VmResult {
    let [value, row, size, rest @ ..] = args else {
        return wrong_type(VM_45, "match_shape takes a value, a heap, a size".into());
    };
    // VM-45: releases accept a borrowed tensor from 0.23 on. Here it is accepted without regard to the release.
    let shape = match tensor(*value) {
        Some(dl) => extents(dl),
        None => match extents_of(*value) {
            Some(extents) => extents,
            None => {
                return wrong_type(
                    VM_45,
                    format!(
                        "{}has no shape: `{}`",
                        context(args),
                        key_of(value.type_index())
                    ),
                );
            }
        },
    };
    let row = heap(*row)?;
    let (size, codes) = codes(VM_45, *size, rest)?;
    // VM-45: another number of extents is of the wrong type; only extents that differ are malformed.
    if shape.len() != size {
        return wrong_type(
            VM_45,
            format!(
                "{}match_cast shape size mismatch: {} extents, expected {size}",
                context(args),
                shape.len()
            ),
        );
    }
    // VM-45: in order: a later extent may be compared with a cell that an earlier one was stored in.
    for (at, (extent, pair)) in shape.iter().zip(codes.chunks_exact(2)).enumerate() {
        let pair = (cast::<i64>(pair[0])?, cast::<i64>(pair[1])?);
        match_one(VM_45, *extent, &row, pair, || {
            format!("{}match_cast error, shape[{at}]", context(args))
        })?;
    }
    Ok(Any::none())
}

/// How many extents there are, and the codes for them: pairs of a code and its operand. The text behind them stays out.
fn codes<'a, 'v>(
    rule: Rule,
    size: AnyView<'v>,
    rest: &'a [AnyView<'v>],
) -> VmResult<(usize, &'a [AnyView<'v>])> {
    let size = cast::<i64>(size)?;
    // The size is any integer of the code: neither -1 nor 2^63 - 1 may get as far as an index.
    let extents = usize::try_from(size).ok();
    let found = extents.and_then(|extents| Some((extents, rest.get(..extents.checked_mul(2)?)?)));
    match found {
        Some(found) => Ok(found),
        None => wrong_type(rule, format!("there are too few codes for {size} extents")),
    }
}

/// `(value, heap, code, operand, text)`: as [`match_shape`], of one integer (VM-47).
pub(super) fn match_prim_value(args: &[AnyView<'_>]) -> VmResult {
    let row = heap(arg(args, 1))?;
    let pair = (int(args, 2)?, int(args, 3)?);
    match_one(VM_47, int(args, 0)?, &row, pair, || {
        format!("{}match_cast error, the value", context(args))
    })?;
    Ok(Any::none())
}

/// A value by code: 0 is the operand itself, 1 a cell of the heap (VM-46). Another code breaks `rule`.
fn make_one(rule: Rule, heap: &ShapeHeap<'_>, code: i64, operand: i64) -> VmResult<i64> {
    match code {
        0 => Ok(operand),
        1 => Ok(heap.cell(operand)?.get()),
        _ => wrong_type(rule, format!("there is no code {code} to make a value by")),
    }
}

/// `(heap, n, code, operand, ...)`: a shape of n extents (VM-46).
pub(super) fn make_shape(args: &[AnyView<'_>]) -> VmResult {
    let [row, size, rest @ ..] = args else {
        return wrong_type(VM_46, "make_shape takes a heap and a size".into());
    };
    let row = heap(*row)?;
    let (size, codes) = codes(VM_46, *size, rest)?;
    let one =
        |pair: &[AnyView<'_>]| make_one(VM_46, &row, cast::<i64>(pair[0])?, cast::<i64>(pair[1])?);
    // Up to eight extents are collected without memory of their own: models make shapes in every call.
    if size <= 8 {
        let mut extents = [0i64; 8];
        for (extent, pair) in extents.iter_mut().zip(codes.chunks_exact(2)) {
            *extent = one(pair)?;
        }
        return Ok(Shape::new(&extents[..size]).into());
    }
    let extents: Vec<i64> = codes.chunks_exact(2).map(one).collect::<VmResult<_>>()?;
    Ok(Shape::new(&extents).into())
}

/// `(heap, code, operand)`: as [`make_shape`], of one integer (VM-47).
pub(super) fn make_prim_value(args: &[AnyView<'_>]) -> VmResult {
    let row = heap(arg(args, 0))?;
    Ok(make_one(VM_47, &row, int(args, 1)?, int(args, 2)?)?.into())
}
