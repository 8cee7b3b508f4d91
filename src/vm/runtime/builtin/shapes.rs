//! The shape heap: integers of one running function, in a tensor on the host.

use super::super::error::VmResult;
use super::super::machine_interface::CallingMachine;
use super::super::storage::allocate_unpooled;
use super::arguments::{arg, context, extents, int, is_compact, tensor, wrong_type};
use crate::object::{Shape, Tensor, extents_of};
use crate::rule::{Kind, Rule};
use crate::tensor::Dtype;
use crate::value::types::key_of;
use crate::value::{Any, AnyView, DLTensor, cast};
use crate::vm::{VM_45, VM_46, VM_47, VM_48};
use std::cell::Cell;

/// Allocates a row of n int64 on the host (VM-48); arguments: `(machine, n)`.
pub(super) fn alloc_shape_heap(machine: &dyn CallingMachine, args: &[AnyView<'_>]) -> VmResult {
    let size = int(args, 1)?;
    // VM-48: upstream uses the last device, and fails if it is not the host. For Hexagon it uses the first device. Here the last device
    // that is the host is used, because this processor reads and writes the cells.
    let int64 = Dtype::INT64;
    allocate_unpooled(machine.host()?, &[size], int64, "")
}

/// Returns the cells of a heap argument; None is a heap without cells.
///
/// Upstream reads and writes at any address that the tensor has. Here VM-48 is checked first: a compact row of int64 on the host,
/// aligned to eight bytes.
fn heap<'a>(view: AnyView<'a>) -> VmResult<ShapeHeap<'a>> {
    // Compilers allocate no heap for a function that stores no extent, and pass None instead.
    if view.is_none() {
        // VM-48: code that names a cell of it gets the error of a missing cell.
        let cells = &[][..];
        return Ok(ShapeHeap { cells, view });
    }
    let usable = tensor(view).filter(|dl| {
        (dl.dtype.code, dl.dtype.bits, dl.dtype.lanes) == (0, 64, 1)
            && dl.device.is_host()
            && extents(dl).len() == 1
            && is_compact(dl)
            && !dl.data.is_null()
            && first_cell(dl).addr().is_multiple_of(8)
    });
    let Some(dl) = usable else {
        return wrong_type(VM_48, "a shape heap is a row of int64 on the host".into());
    };
    // VM-48: a negative extent means no cells. As an unsigned length it would cover all of memory.
    let count = usize::try_from(extents(dl)[0]).unwrap_or(0);
    // SAFETY: a compact row of `count` aligned integers on the host, as just checked, that the argument's caller keeps for the
    // call; cells may be written by others of this thread, and a heap belongs to one running function.
    let cells = unsafe { std::slice::from_raw_parts(first_cell(dl), count) };
    Ok(ShapeHeap { cells, view })
}

/// The cells of a shape heap.
struct ShapeHeap<'a> {
    /// The cells. `Cell`, because the heap is also accessible through its tensor while this borrow lives.
    cells: &'a [Cell<i64>],
    /// The argument that the cells belong to.
    view: AnyView<'a>,
}

impl ShapeHeap<'_> {
    /// Returns cell `at` (VM-48).
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
        // OBJ-12: only a tensor object has the flag; a borrowed `DLTensor*` does not.
        if let Ok(tensor) = cast::<Tensor>(self.view) {
            tensor.check_writable()?;
        }
        cell.set(value);
        Ok(())
    }
}

/// Returns the address of the first cell: `data` plus `byte_offset`.
fn first_cell(heap: &DLTensor) -> *const Cell<i64> {
    // VM-48: upstream uses only `data`, and so the wrong address if the heap has an offset.
    heap.data
        .wrapping_byte_add(heap.byte_offset as usize)
        .cast_const()
        .cast()
}

/// Matches a value by its code (VM-45): 0 equals the operand, 1 is stored in a cell, 2 is anything, 3 equals a cell. Another code
/// breaks `rule`.
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

/// Checks that the value has n extents, and that each matches its code (VM-45); arguments: `(value, heap, n, code, operand, ...,
/// text)`.
pub(super) fn match_shape(args: &[AnyView<'_>]) -> VmResult {
    let [value, row, size, rest @ ..] = args else {
        return wrong_type(VM_45, "match_shape takes a value, a heap, a size".into());
    };
    // VM-45: upstream accepts a borrowed tensor from 0.23 on. Here it is accepted for every release.
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
    // VM-45: a wrong number of extents is an error of kind type; an extent that differs is malformed.
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
    // VM-45: in order, because a later extent may be compared with a cell that an earlier one was stored in.
    for (at, (extent, pair)) in shape.iter().zip(codes.chunks_exact(2)).enumerate() {
        let pair = (cast::<i64>(pair[0])?, cast::<i64>(pair[1])?);
        match_one(VM_45, *extent, &row, pair, || {
            format!("{}match_cast error, shape[{at}]", context(args))
        })?;
    }
    Ok(Any::none())
}

/// Returns the number of extents and their codes, as pairs of a code and its operand. The text after them is not included.
fn codes<'a, 'v>(
    rule: Rule,
    size: AnyView<'v>,
    rest: &'a [AnyView<'v>],
) -> VmResult<(usize, &'a [AnyView<'v>])> {
    let size = cast::<i64>(size)?;
    // The size may be any integer of the code, so values such as -1 or 2^63 - 1 must not be used as an index.
    let extents = usize::try_from(size).ok();
    let found = extents.and_then(|extents| Some((extents, rest.get(..extents.checked_mul(2)?)?)));
    match found {
        Some(found) => Ok(found),
        None => wrong_type(rule, format!("there are too few codes for {size} extents")),
    }
}

/// Checks one integer as [`match_shape`] does (VM-47); arguments: `(value, heap, code, operand, text)`.
pub(super) fn match_prim_value(args: &[AnyView<'_>]) -> VmResult {
    let row = heap(arg(args, 1))?;
    let pair = (int(args, 2)?, int(args, 3)?);
    match_one(VM_47, int(args, 0)?, &row, pair, || {
        format!("{}match_cast error, the value", context(args))
    })?;
    Ok(Any::none())
}

/// Returns a value by its code (VM-46): 0 is the operand itself, 1 a cell of the heap. Another code breaks `rule`.
fn make_one(rule: Rule, heap: &ShapeHeap<'_>, code: i64, operand: i64) -> VmResult<i64> {
    match code {
        0 => Ok(operand),
        1 => Ok(heap.cell(operand)?.get()),
        _ => wrong_type(rule, format!("there is no code {code} to make a value by")),
    }
}

/// Creates a shape of n extents (VM-46); arguments: `(heap, n, code, operand, ...)`.
pub(super) fn make_shape(args: &[AnyView<'_>]) -> VmResult {
    let [row, size, rest @ ..] = args else {
        return wrong_type(VM_46, "make_shape takes a heap and a size".into());
    };
    let row = heap(*row)?;
    let (size, codes) = codes(VM_46, *size, rest)?;
    let one =
        |pair: &[AnyView<'_>]| make_one(VM_46, &row, cast::<i64>(pair[0])?, cast::<i64>(pair[1])?);
    // Up to eight extents are collected without an allocation, because models create shapes in every call.
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

/// Creates one integer as [`make_shape`] does (VM-47); arguments: `(heap, code, operand)`.
pub(super) fn make_prim_value(args: &[AnyView<'_>]) -> VmResult {
    let row = heap(arg(args, 0))?;
    Ok(make_one(VM_47, &row, int(args, 1)?, int(args, 2)?)?.into())
}
