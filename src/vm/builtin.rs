//! The functions `vm.builtin.*` that compiled pipelines call.
//!
//! They are in the global registry, for everybody; a machine calls them without that detour, unless the registry or the
//! library has another function of the name.

use super::closure::Closure;
use super::machine::{Machine, copied, copied_to_scope};
use super::memory::{self, AllocatorKind, Place, Storage};
use super::{
    Fault, VM_28, VM_31, VM_40, VM_41, VM_42, VM_43, VM_44, VM_45, VM_46, VM_47, VM_48, VM_49,
    VM_50, VM_51, VM_52, VM_53, VM_54, VM_55, VM_57,
};
use crate::device::Device;
use crate::function::{Error, Function, registry};
use crate::object::{Array, Shape, Tensor, element_cell, extents_of, item_count, sequence_of};
use crate::rule::{Kind, Rule};
use crate::tensor::Dtype;
use crate::value::header::Ref;
use crate::value::types::key_of;
use crate::value::{Any, AnyView, DLDataType, DLTensor, Object, cast, index};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

type Outcome<T = Any> = Result<T, Fault>;
type Plain = fn(&[AnyView<'_>]) -> Outcome;
type OfMachine = fn(&Machine, &[AnyView<'_>]) -> Outcome;

/// A function of this chapter.
#[derive(Clone, Copy)]
pub(super) enum Builtin {
    /// Needs its arguments alone.
    Plain(Plain),
    /// Its first argument is the machine.
    OfMachine(OfMachine),
}

/// The builtin that changes what others may hold (VM-58).
pub(super) const RESET: &str = "vm.builtin.tuple_reset_item";

/// Every builtin that we have.
const ALL: &[(&str, Builtin)] = &[
    (
        "vm.builtin.alloc_shape_heap",
        Builtin::OfMachine(alloc_shape_heap),
    ),
    (
        "vm.builtin.alloc_storage",
        Builtin::OfMachine(alloc_storage),
    ),
    ("vm.builtin.alloc_tensor", Builtin::Plain(alloc_tensor)),
    ("vm.builtin.call_tir_dyn", Builtin::Plain(call_tir_dyn)),
    (
        "vm.builtin.check_func_info",
        Builtin::Plain(check_func_info),
    ),
    (
        "vm.builtin.check_prim_value_info",
        Builtin::Plain(check_prim_value_info),
    ),
    (
        "vm.builtin.check_shape_info",
        Builtin::Plain(check_shape_info),
    ),
    (
        "vm.builtin.check_string_info",
        Builtin::Plain(check_string_info),
    ),
    (
        "vm.builtin.check_tensor_info",
        Builtin::Plain(check_tensor_info),
    ),
    (
        "vm.builtin.check_tuple_info",
        Builtin::Plain(check_tuple_info),
    ),
    ("vm.builtin.copy", Builtin::Plain(same)),
    (
        "vm.builtin.ensure_zero_offset",
        Builtin::Plain(ensure_zero_offset),
    ),
    (
        "vm.builtin.invoke_closure",
        Builtin::OfMachine(invoke_closure),
    ),
    ("vm.builtin.make_closure", Builtin::Plain(make_closure)),
    (
        "vm.builtin.make_prim_value",
        Builtin::Plain(make_prim_value),
    ),
    ("vm.builtin.make_shape", Builtin::Plain(make_shape)),
    ("vm.builtin.make_tuple", Builtin::Plain(make_tuple)),
    (
        "vm.builtin.match_prim_value",
        Builtin::Plain(match_prim_value),
    ),
    ("vm.builtin.match_shape", Builtin::Plain(match_shape)),
    ("vm.builtin.memory_manager.clear", Builtin::Plain(clear)),
    ("vm.builtin.null_value", Builtin::Plain(null_value)),
    ("vm.builtin.read_if_cond", Builtin::Plain(read_if_cond)),
    ("vm.builtin.reshape", Builtin::Plain(reshape)),
    ("vm.builtin.shape_of", Builtin::Plain(shape_of)),
    (
        "vm.builtin.tensor_to_shape",
        Builtin::Plain(tensor_to_shape),
    ),
    ("vm.builtin.to_device", Builtin::Plain(to_device)),
    ("vm.builtin.tuple_getitem", Builtin::Plain(tuple_getitem)),
    (RESET, Builtin::Plain(tuple_reset_item)),
];

/// Names of the builtins of this crate, sorted.
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|(name, _)| *name).collect()
}

static INSTALLED: OnceLock<Vec<(Function, Builtin)>> = OnceLock::new();

/// Puts the builtins into the registry, where nobody has one of the name; once.
pub(super) fn provide() {
    INSTALLED.get_or_init(|| {
        ALL.iter()
            .map(|(name, builtin)| {
                let function = match *builtin {
                    Builtin::Plain(body) => Function::from_packed(move |args| Ok(body(args)?)),
                    Builtin::OfMachine(body) => {
                        Function::from_packed(move |args| with_machine(args, body))
                    }
                };
                registry::provide(name, function.clone());
                (function, *builtin)
            })
            .collect()
    });
}

impl Builtin {
    /// The builtin that `function` is, if it is one of ours.
    pub(super) fn of(function: &Function) -> Option<Builtin> {
        let address = function.as_object().as_ptr();
        let all = INSTALLED.get()?;
        let found = all
            .iter()
            .find(|(own, _)| std::ptr::eq(own.as_object().as_ptr(), address));
        found.map(|(_, builtin)| *builtin)
    }
}

/// The machines that are alive, by address: what a handle from outside is held against.
static ALIVE: Mutex<BTreeMap<usize, Weak<Machine>>> = Mutex::new(BTreeMap::new());

fn alive() -> MutexGuard<'static, BTreeMap<usize, Weak<Machine>>> {
    ALIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes `machine` known by its address.
pub(super) fn announce(machine: &Arc<Machine>) {
    alive().insert(Arc::as_ptr(machine).addr(), Arc::downgrade(machine));
}

/// Forgets a machine that ends.
pub(super) fn forget(machine: &Machine) {
    alive().remove(&std::ptr::from_ref(machine).addr());
}

fn with_machine(args: &[AnyView<'_>], body: OfMachine) -> crate::function::Result {
    let handle = cast::<*mut c_void>(args.first().copied().unwrap_or(AnyView::none()))?;
    let known = alive().get(&handle.addr()).and_then(Weak::upgrade);
    let machine = known.ok_or_else(|| {
        Error::new(
            "RuntimeError",
            "the first argument is not a machine of this runtime",
        )
    })?;
    Ok(body(&machine, args)?)
}

// Arguments.

fn arg<'a>(args: &[AnyView<'a>], at: usize) -> AnyView<'a> {
    args.get(at).copied().unwrap_or(AnyView::none())
}

fn int(args: &[AnyView<'_>], at: usize) -> Outcome<i64> {
    Ok(cast::<i64>(arg(args, at))?)
}

/// The text that a compiler puts behind the arguments for messages; empty when there is none.
fn context(args: &[AnyView<'_>], at: usize) -> String {
    cast::<String>(arg(args, at))
        .map_or_else(|_| String::new(), |text| text.trim_end().to_owned() + " ")
}

/// The description behind a tensor argument.
fn tensor<'a>(view: AnyView<'a>) -> Option<&'a DLTensor> {
    if !matches!(view.type_index(), index::TENSOR | index::DLTENSOR_PTR) {
        return None;
    }
    let pointer = cast::<*mut DLTensor>(view).ok()?;
    // SAFETY: an argument of this type points to a description that lives as long as the view.
    unsafe { pointer.as_ref() }
}

/// The extents of a description that [`tensor`] or a tensor object gave.
fn extents(dl: &DLTensor) -> &[i64] {
    // SAFETY: the description of an argument has readable extents; only `unsafe` code makes others.
    unsafe { dl.shape() }
}

#[cold]
fn refuse<T>(rule: Rule, message: String) -> Outcome<T> {
    Err(rule.refused(Kind::Type, message).into())
}

// Storage.

fn alloc_storage(machine: &Machine, args: &[AnyView<'_>]) -> Outcome {
    let [_, shape, place, dtype, rest @ ..] = args else {
        return refuse(
            VM_31,
            "alloc_storage takes the machine, a shape, a device, a type".into(),
        );
    };
    let Some(shape) = extents_of(*shape) else {
        return refuse(
            VM_31,
            format!(
                "the size of storage is a shape, not `{}`",
                key_of(shape.type_index())
            ),
        );
    };
    let place = machine.place(cast::<i64>(*place)?)?;
    let dtype = Dtype::from(cast::<DLDataType>(*dtype)?);
    let scope = match rest {
        [scope, ..] => cast::<String>(*scope)?,
        [] => String::new(),
    };
    Ok(Storage::take(place, shape, dtype, &scope)?.into())
}

fn alloc_tensor(args: &[AnyView<'_>]) -> Outcome {
    let [storage, offset, shape, dtype, rest @ ..] = args else {
        return refuse(
            super::VM_33,
            "alloc_tensor takes a storage, an offset, a shape, a type".into(),
        );
    };
    let object = storage.as_object().filter(|object| object.is::<Storage>());
    let Some(object) = object else {
        return refuse(
            super::VM_33,
            format!(
                "a tensor is cut from storage, not from `{}`",
                key_of(storage.type_index())
            ),
        );
    };
    let Some(shape) = extents_of(*shape) else {
        return refuse(
            super::VM_33,
            format!(
                "the shape of a tensor is a shape, not `{}`",
                key_of(shape.type_index())
            ),
        );
    };
    let (offset, dtype) = (cast::<i64>(*offset)?, cast::<DLDataType>(*dtype)?);
    let scope = rest.first().map(|scope| cast::<String>(*scope));
    let scope = scope.transpose()?.unwrap_or_default();
    // SAFETY: just checked to be a storage; `into_raw` hands its reference over.
    let storage: Ref<Storage> = unsafe { Ref::from_raw(object.clone().into_raw()) };
    // On the host a scope changes nothing; no device here has views in another.
    let plain = storage.is_on_host() || matches!(scope.as_str(), "" | "global");
    super::VM_33.demand(Kind::Unsupported, plain, || {
        format!("no tensor of scope `{scope}` is cut from storage of a device")
    })?;
    Storage::tensor(&storage, offset, shape, dtype)
}

fn clear(_: &[AnyView<'_>]) -> Outcome {
    memory::clear_pools();
    Ok(Any::none())
}

// The shape heap: integers of one running function, in a tensor on the host.

fn alloc_shape_heap(machine: &Machine, args: &[AnyView<'_>]) -> Outcome {
    let size = int(args, 1)?;
    let int64 = DLDataType::scalar(0, 64);
    memory::lasting(machine.host()?, &[size], int64, "")
}

/// The cells of a heap argument; none when it is nothing.
fn heap<'a>(view: AnyView<'a>) -> Outcome<&'a [std::cell::Cell<i64>]> {
    if view.is_none() {
        return Ok(&[]);
    }
    let usable = tensor(view).filter(|dl| {
        (dl.dtype.code, dl.dtype.bits, dl.dtype.lanes) == (0, 64, 1)
            && Device::from(dl.device).is_host()
            && extents(dl).len() == 1
            && is_compact(dl)
            && !dl.data.is_null()
            && (dl.data as usize + dl.byte_offset as usize).is_multiple_of(8)
    });
    let Some(dl) = usable else {
        return refuse(VM_48, "a shape heap is a row of int64 on the host".into());
    };
    let count = usize::try_from(extents(dl)[0]).unwrap_or(0);
    let first = dl.data.wrapping_byte_add(dl.byte_offset as usize);
    // SAFETY: a compact row of `count` aligned integers on the host, as just seen, that the argument's caller keeps for the
    // call; cells may be written by others of this thread, and a heap belongs to one running function.
    Ok(unsafe { std::slice::from_raw_parts(first.cast(), count) })
}

/// Whether the elements of a description that [`tensor`] or a tensor object gave lie in one piece.
fn is_compact(dl: &DLTensor) -> bool {
    // SAFETY: as for `extents`, and so are its strides.
    unsafe { dl.is_contiguous() }
}

/// Cell `at` of a heap (VM-48).
fn cell(heap: &[std::cell::Cell<i64>], at: i64) -> Outcome<&std::cell::Cell<i64>> {
    let found = usize::try_from(at).ok().and_then(|at| heap.get(at));
    found.ok_or_else(|| {
        let message = format!("the shape heap has no cell {at}, it has {}", heap.len());
        VM_48.refused(Kind::Missing, message).into()
    })
}

/// How a value is matched: the codes of `match_shape` and `match_prim_value`.
fn match_one(
    rule: Rule,
    value: i64,
    heap: &[std::cell::Cell<i64>],
    (code, operand): (i64, i64),
    describe: impl Fn() -> String,
) -> Outcome<()> {
    let expected = match code {
        0 => operand,
        1 => {
            cell(heap, operand)?.set(value);
            return Ok(());
        }
        2 => return Ok(()),
        3 => cell(heap, operand)?.get(),
        _ => return refuse(rule, format!("there is no code {code} to match a value by")),
    };
    rule.demand(Kind::Malformed, value == expected, || {
        format!("{} is {value}, expected {expected}", describe())
    })?;
    Ok(())
}

fn match_shape(args: &[AnyView<'_>]) -> Outcome {
    let [value, row, size, rest @ ..] = args else {
        return refuse(VM_45, "match_shape takes a value, a heap, a size".into());
    };
    let shape = match tensor(*value) {
        Some(dl) => extents(dl),
        None => match extents_of(*value) {
            Some(extents) => extents,
            None => {
                return refuse(
                    VM_45,
                    format!(
                        "{}has no shape: `{}`",
                        context(args, args.len().wrapping_sub(1)),
                        key_of(value.type_index())
                    ),
                );
            }
        },
    };
    let row = heap(*row)?;
    let size = usize::try_from(cast::<i64>(*size)?).unwrap_or(usize::MAX);
    let Some(codes) = size.checked_mul(2).and_then(|count| rest.get(..count)) else {
        return refuse(
            VM_45,
            format!("match_shape of {size} extents has too few codes"),
        );
    };
    let last = 3 + codes.len();
    if shape.len() != size {
        return refuse(
            VM_45,
            format!(
                "{}match_cast shape size mismatch: {} extents, expected {size}",
                context(args, last),
                shape.len()
            ),
        );
    }
    for (at, (extent, pair)) in shape.iter().zip(codes.chunks_exact(2)).enumerate() {
        let pair = (cast::<i64>(pair[0])?, cast::<i64>(pair[1])?);
        match_one(VM_45, *extent, row, pair, || {
            format!("{}match_cast error, shape[{at}]", context(args, last))
        })?;
    }
    Ok(Any::none())
}

fn match_prim_value(args: &[AnyView<'_>]) -> Outcome {
    let row = heap(arg(args, 1))?;
    let pair = (int(args, 2)?, int(args, 3)?);
    match_one(VM_47, int(args, 0)?, row, pair, || {
        format!("{}match_cast error, the value", context(args, 4))
    })?;
    Ok(Any::none())
}

/// A value by code: 0 is the operand itself, 1 a cell of the heap.
fn make_one(rule: Rule, heap: &[std::cell::Cell<i64>], code: i64, operand: i64) -> Outcome<i64> {
    match code {
        0 => Ok(operand),
        1 => Ok(cell(heap, operand)?.get()),
        _ => refuse(rule, format!("there is no code {code} to make a value by")),
    }
}

fn make_shape(args: &[AnyView<'_>]) -> Outcome {
    let [row, size, rest @ ..] = args else {
        return refuse(VM_46, "make_shape takes a heap and a size".into());
    };
    let row = heap(*row)?;
    let size = usize::try_from(cast::<i64>(*size)?).unwrap_or(usize::MAX);
    let Some(codes) = size.checked_mul(2).and_then(|count| rest.get(..count)) else {
        return refuse(
            VM_46,
            format!("make_shape of {size} extents has too few codes"),
        );
    };
    let one =
        |pair: &[AnyView<'_>]| make_one(VM_46, row, cast::<i64>(pair[0])?, cast::<i64>(pair[1])?);
    if size <= 8 {
        let mut extents = [0i64; 8];
        for (extent, pair) in extents.iter_mut().zip(codes.chunks_exact(2)) {
            *extent = one(pair)?;
        }
        return Ok(Shape::new(&extents[..size]).into());
    }
    let extents: Vec<i64> = codes.chunks_exact(2).map(one).collect::<Outcome<_>>()?;
    Ok(Shape::new(&extents).into())
}

fn make_prim_value(args: &[AnyView<'_>]) -> Outcome {
    let row = heap(arg(args, 0))?;
    Ok(make_one(VM_47, row, int(args, 1)?, int(args, 2)?)?.into())
}

// Checks of arguments.

/// Whether `kept`, under a rule of this chapter, with the context argument in front of the message.
fn check(
    rule: Rule,
    kept: bool,
    args: &[AnyView<'_>],
    at: usize,
    message: impl FnOnce() -> String,
) -> Outcome<()> {
    rule.demand(Kind::Type, kept, || {
        format!("{}{}", context(args, at), message())
    })?;
    Ok(())
}

fn check_tensor_info(args: &[AnyView<'_>]) -> Outcome {
    let rank = cast::<i64>(arg(args, 1))?;
    // The type is optional, and was left out altogether by older compilers.
    let (dtype, last) = match args.len() {
        0..=3 => (None, 2),
        _ => (cast::<Option<DLDataType>>(arg(args, 2))?, 3),
    };
    let Some(dl) = tensor(arg(args, 0)) else {
        check(VM_40, false, args, last, || {
            format!(
                "expect a Tensor but get {}",
                key_of(arg(args, 0).type_index())
            )
        })?;
        return Ok(Any::none());
    };
    check(
        VM_40,
        rank == -1 || i64::from(dl.ndim) == rank,
        args,
        last,
        || format!("expect Tensor with ndim {rank} but get {}", dl.ndim),
    )?;
    let same = dtype.is_none_or(|dtype| Dtype::from(dtype) == Dtype::from(dl.dtype));
    check(VM_40, same, args, last, || {
        let wanted = dtype.map(|dtype| Dtype::from(dtype).to_string());
        format!(
            "expect Tensor with dtype {} but get {}",
            wanted.unwrap_or_default(),
            Dtype::from(dl.dtype)
        )
    })?;
    Ok(Any::none())
}

fn check_shape_info(args: &[AnyView<'_>]) -> Outcome {
    let rank = int(args, 1)?;
    let found = extents_of(arg(args, 0));
    check(VM_41, found.is_some(), args, 2, || {
        format!(
            "expect a Shape but get {}",
            key_of(arg(args, 0).type_index())
        )
    })?;
    let count = found.map_or(-1, |extents| extents.len() as i64);
    check(VM_41, rank == -1 || rank == count, args, 2, || {
        format!("expect Shape with ndim {rank} but get {count}")
    })?;
    Ok(Any::none())
}

fn check_tuple_info(args: &[AnyView<'_>]) -> Outcome {
    let size = int(args, 1)?;
    let found = item_count(arg(args, 0));
    check(VM_42, found.is_some(), args, 2, || {
        format!(
            "expect a Tuple but get {}",
            key_of(arg(args, 0).type_index())
        )
    })?;
    let count = found.map_or(-1, |count| count as i64);
    check(VM_42, size == count, args, 2, || {
        format!("expect a Tuple with {size} elements, but get a Tuple with {count} elements.")
    })?;
    Ok(Any::none())
}

fn check_prim_value_info(args: &[AnyView<'_>]) -> Outcome {
    let value = arg(args, 0);
    let dtype = Dtype::from(cast::<DLDataType>(arg(args, 1))?);
    let kept = match dtype.code {
        // bool, int, uint: each converts from the others.
        0 | 1 | 6 => matches!(value.type_index(), index::INT | index::BOOL),
        2 => matches!(value.type_index(), index::INT | index::BOOL | index::FLOAT),
        3 if dtype.bits != 0 || dtype.lanes != 0 => cast::<*mut c_void>(value).is_ok(),
        _ => false,
    };
    check(VM_43, kept, args, 2, || {
        format!(
            "expect a value of {dtype} but get {}",
            key_of(value.type_index())
        )
    })?;
    Ok(Any::none())
}

fn check_func_info(args: &[AnyView<'_>]) -> Outcome {
    let kept = arg(args, 0).as_object().is_some_and(|object| {
        object.type_index() == index::FUNCTION || Closure::matches(object.type_index())
    });
    check(VM_44, kept, args, 1, || {
        format!(
            "expect a Function but get {}",
            key_of(arg(args, 0).type_index())
        )
    })?;
    Ok(Any::none())
}

fn check_string_info(args: &[AnyView<'_>]) -> Outcome {
    let kept = cast::<String>(arg(args, 0)).is_ok();
    check(VM_57, kept, args, 1, || {
        format!(
            "expect a String but get {}",
            key_of(arg(args, 0).type_index())
        )
    })?;
    Ok(Any::none())
}

// Closures and calls.

fn make_closure(args: &[AnyView<'_>]) -> Outcome {
    let Some((closure, rest)) = args.split_first() else {
        return refuse(VM_28, "make_closure takes a function and arguments".into());
    };
    let Some(inner) = closure
        .as_object()
        .and_then(|object| object.get::<Closure>())
    else {
        return refuse(
            VM_28,
            format!(
                "a closure is made of a function of the executable, not of `{}`",
                key_of(closure.type_index())
            ),
        );
    };
    let last = rest.iter().map(|value| value.to_any()).collect();
    Ok(inner.bind(&inner.name, last, true).into())
}

fn invoke_closure(machine: &Machine, args: &[AnyView<'_>]) -> Outcome {
    let [_, closure, rest @ ..] = args else {
        return refuse(
            super::VM_29,
            "invoke_closure takes the machine, a closure, its arguments".into(),
        );
    };
    machine.invoke(*closure, rest)
}

fn call_tir_dyn(args: &[AnyView<'_>]) -> Outcome {
    let [function, middle @ .., last] = args else {
        return refuse(
            VM_54,
            "call_tir_dyn takes a function, its tensors, a shape".into(),
        );
    };
    let Some(extents) = extents_of(*last) else {
        return refuse(
            VM_54,
            format!(
                "the last argument of call_tir_dyn is a shape, not `{}`",
                key_of(last.type_index())
            ),
        );
    };
    let function = cast::<Function>(*function)?;
    let mut all: Vec<AnyView<'_>> = middle.to_vec();
    all.extend(extents.iter().map(|extent| AnyView::from(*extent)));
    Ok(function.call(&all)?)
}

// Tensors and shapes.

fn shape_of(args: &[AnyView<'_>]) -> Outcome {
    match tensor(arg(args, 0)) {
        Some(dl) => Ok(Shape::new(extents(dl)).into()),
        _ => refuse(
            VM_51,
            format!(
                "only a tensor has a shape, not `{}`",
                key_of(arg(args, 0).type_index())
            ),
        ),
    }
}

fn reshape(args: &[AnyView<'_>]) -> Outcome {
    let value = cast::<Tensor>(arg(args, 0))?;
    let Some(shape) = extents_of(arg(args, 1)) else {
        return refuse(
            VM_50,
            format!(
                "a tensor is reshaped to a shape, not to `{}`",
                key_of(arg(args, 1).type_index())
            ),
        );
    };
    let dl = value.dl();
    let bytes = |shape: &[i64]| {
        crate::device::byte_size(shape, Dtype::from(dl.dtype), crate::release::Release::LAST)
    };
    let fits = bytes(shape)
        .zip(bytes(extents(dl)))
        .is_some_and(|(new, old)| new <= old);
    // More elements of fewer bits than a byte may fill no more bytes, but a graph gives each a byte (DEV-15).
    // The extents before one of 0 may have a product beyond any integer.
    let count = |shape: &[i64]| {
        let mut extents = shape.iter();
        extents.try_fold(1_u128, |count, extent| {
            count.checked_mul(u128::try_from(*extent).ok()?)
        })
    };
    let counts = count(shape).zip(count(extents(dl)));
    let fits = fits && counts.is_some_and(|(new, old)| new <= old);
    if !is_compact(dl) || !fits {
        return refuse(
            VM_50,
            format!(
                "a tensor of shape {:?} is not reshaped to {shape:?}",
                extents(dl)
            ),
        );
    }
    let mut dims = shape.to_vec();
    let mut view = *dl;
    view.ndim = dims.len() as i32;
    view.shape = dims.as_mut_ptr();
    view.strides = std::ptr::null_mut();
    // SAFETY: the new extents cover no more than the old, as just seen, whose memory `value` keeps; they are copied.
    Ok(unsafe { Tensor::view_of(value.clone().into_object(), &view) }.into())
}

fn ensure_zero_offset(args: &[AnyView<'_>]) -> Outcome {
    let value = cast::<Tensor>(arg(args, 0))?;
    let dl = value.dl();
    if dl.byte_offset == 0 {
        return Ok(value.into());
    }
    let place = Place::new(Device::from(dl.device), AllocatorKind::Naive)?;
    // SAFETY: the memory of `value`, which lives for the call.
    unsafe { copied(dl, &place) }
}

fn to_device(args: &[AnyView<'_>]) -> Outcome {
    let value = cast::<Tensor>(arg(args, 0))?;
    let number = |at: usize| {
        let number = int(args, at)?;
        i32::try_from(number).map_err(|_| {
            let message = format!("{number} is no type or index of a device");
            Fault::from(VM_55.refused(Kind::Type, message))
        })
    };
    let device = Device::new(number(1)?, number(2)?);
    let scope = args.get(3).map(|scope| cast::<String>(*scope));
    let scope = scope.transpose()?.unwrap_or_default();
    let place = Place::new(device, AllocatorKind::Naive)?;
    // SAFETY: the memory of `value`, which lives for the call.
    unsafe { copied_to_scope(value.dl(), &place, &scope) }
}

/// The integers of a compact tensor on the host, or of a copy of it there.
fn integers(dl: &DLTensor) -> Outcome<Option<Vec<i64>>> {
    if !matches!(dl.dtype.code, 0 | 1 | 6) || dl.dtype.lanes != 1 {
        return Ok(None);
    }
    let host = Place::new(Device::CPU, AllocatorKind::Naive)?;
    // SAFETY: an argument describes memory that its caller keeps for the call.
    let copy = unsafe { copied(dl, &host) }?;
    let copy = cast::<Tensor>(copy.view())?;
    let bytes = copy.to_bytes()?;
    let signed = dl.dtype.code == 0;
    Ok(match dl.dtype.bits {
        // Booleans of every era take a byte each.
        1 | 8 => Some(
            bytes
                .iter()
                .map(|byte| {
                    if signed {
                        i64::from(*byte as i8)
                    } else {
                        i64::from(*byte)
                    }
                })
                .collect(),
        ),
        16 => Some(
            bytes
                .chunks_exact(2)
                .map(|two| i64::from(i16::from_le_bytes([two[0], two[1]])))
                .collect(),
        ),
        32 => Some(
            bytes
                .chunks_exact(4)
                .map(|four| i64::from(i32::from_le_bytes([four[0], four[1], four[2], four[3]])))
                .collect(),
        ),
        64 => Some(
            bytes
                .chunks_exact(8)
                .map(|eight| i64::from_le_bytes(std::array::from_fn(|at| eight[at])))
                .collect(),
        ),
        _ => None,
    })
}

fn tensor_to_shape(args: &[AnyView<'_>]) -> Outcome {
    let found =
        tensor(arg(args, 0)).filter(|dl| dl.ndim == 1 && dl.dtype.code == 0 && dl.dtype.bits >= 16);
    let read = found.map(integers).transpose()?.flatten();
    match read {
        Some(extents) => Ok(Shape::new(&extents).into()),
        _ => refuse(
            VM_52,
            "a shape is made of a row of int16, int32 or int64".into(),
        ),
    }
}

fn read_if_cond(args: &[AnyView<'_>]) -> Outcome {
    let value = arg(args, 0);
    if matches!(value.type_index(), index::INT | index::BOOL) {
        return Ok((value.as_raw().int() != 0).into());
    }
    let Some(dl) = tensor(value) else {
        return refuse(
            VM_53,
            format!(
                "a condition is a bool, an integer or a tensor, not `{}`",
                key_of(value.type_index())
            ),
        );
    };
    let plain = Device::from(dl.device) == Device::CPU
        && matches!(
            (dl.dtype.code, dl.dtype.bits, dl.dtype.lanes, dl.ndim),
            (0 | 1 | 6, 1 | 8, 1, 0)
        );
    if plain && !dl.data.is_null() {
        let first = dl.data.cast::<u8>().wrapping_add(dl.byte_offset as usize);
        // SAFETY: a scalar of one lane on the host, which has one byte: `plain` has seen type and rank, and the argument's
        // caller keeps it for the call.
        let byte = unsafe { first.read() };
        return Ok((byte != 0).into());
    }
    match integers(dl)?.as_deref() {
        Some([first, ..]) => Ok((*first != 0).into()),
        _ => refuse(
            VM_53,
            format!(
                "a condition is a tensor of integers with an element, not of {}",
                Dtype::from(dl.dtype)
            ),
        ),
    }
}

fn null_value(_: &[AnyView<'_>]) -> Outcome {
    Ok(Any::none())
}

fn same(args: &[AnyView<'_>]) -> Outcome {
    Ok(arg(args, 0).to_any())
}

// Tuples.

fn make_tuple(args: &[AnyView<'_>]) -> Outcome {
    Ok(Array::new(args.iter().map(|value| value.to_any())).into())
}

fn tuple_getitem(args: &[AnyView<'_>]) -> Outcome {
    let at = int(args, 1)?;
    let items = sequence_of(arg(args, 0));
    let found = items
        .as_deref()
        .and_then(|items| items.get(usize::try_from(at).ok()?));
    match found {
        Some(value) => Ok(value.clone()),
        _ => {
            let count = items.as_deref().map_or(0, <[Any]>::len);
            Err(VM_49
                .refused(
                    Kind::Missing,
                    format!("there is no element {at} in a tuple of {count}"),
                )
                .into())
        }
    }
}

/// [`tuple_reset_item`] that leaves a tuple alone which somebody else holds: they may be looking at the element. Its memory is
/// free once they let the tuple go.
pub(super) fn reset_item_held_alone(args: &[AnyView<'_>]) -> Outcome {
    let tuple = arg(args, 0).to_any();
    // The argument's holder, and the reference counted here.
    let held = tuple
        .as_object()
        .map_or(0, |object| object.header().strong_count());
    let inside =
        usize::try_from(int(args, 1)?).is_ok_and(|at| element_cell(tuple.view(), at).is_some());
    if held > 2 && inside {
        return Ok(Any::none());
    }
    drop(tuple);
    tuple_reset_item(args)
}

/// Drops an element of a tuple in place, so that its memory can be used again: every holder of the tuple sees it go.
fn tuple_reset_item(args: &[AnyView<'_>]) -> Outcome {
    let at = int(args, 1)?;
    let tuple = arg(args, 0);
    let found = usize::try_from(at).ok();
    let Some(found) = found.and_then(|at| element_cell(tuple, at)) else {
        let count = item_count(tuple).unwrap_or(0);
        return Err(VM_49
            .refused(
                Kind::Missing,
                format!("there is no element {at} in a tuple of {count}"),
            )
            .into());
    };
    // SAFETY: the cell is an owned value of the tuple. Who calls this promises that nobody looks at the element
    // (`registry::lookup_raw`); the compiler does so where it has a machine call it.
    let old = unsafe { found.replace(Any::none()) };
    drop(old);
    Ok(Any::none())
}
