//! Builtins for storage, for tensors in it, and for the use of tensors.

use super::super::allocator::{AllocatorKind, VmDevice, clear_pools};
use super::super::copies::{copied, copied_to_scope};
use super::super::error::VmResult;
use super::super::machine_interface::CallingMachine;
use super::super::storage::VmStorage;
use super::arguments::{arg, extents, int, is_compact, shape_arg, tensor, wrong_type, wrong_value};
use crate::device::Device;
use crate::function::Error;
use crate::object::container::tensor::copying;
use crate::object::{Shape, Tensor};
use crate::rule::Kind;
use crate::tensor::{Dtype, Packing};
use crate::value::header::Ref;
use crate::value::{Any, AnyView, DLTensor, cast, index};
use crate::vm::{VM_31, VM_33, VM_50, VM_51, VM_52, VM_53, VM_55};

/// Allocates memory of the product of the extents times the bytes of the type (VM-31); arguments: `(machine, shape, device, type[,
/// scope])`.
pub(super) fn alloc_storage(machine: &dyn CallingMachine, args: &[AnyView<'_>]) -> VmResult {
    let [_, shape, place, dtype, rest @ ..] = args else {
        return wrong_type(
            VM_31,
            "alloc_storage takes the machine, a shape, a device, a type".into(),
        );
    };
    let shape = shape_arg(VM_31, "the size of storage is a shape, not", *shape)?;
    let place = machine.device(cast::<i64>(*place)?)?;
    let dtype = cast::<Dtype>(*dtype)?;
    let scope = match rest {
        [scope, ..] => cast::<String>(*scope)?,
        [] => String::new(),
    };
    // VM-31: without a scope it is the default one.
    Ok(VmStorage::take(place, shape, dtype, &scope)?.into())
}

/// Creates a tensor at that byte of the storage, which it keeps alive (VM-33); arguments: `(storage, offset, shape, type[,
/// scope])`. The scope is passed from 0.23 on.
pub(super) fn alloc_tensor(args: &[AnyView<'_>]) -> VmResult {
    let [storage, offset, shape, dtype, rest @ ..] = args else {
        return wrong_type(
            VM_33,
            "alloc_tensor takes a storage, an offset, a shape, a type".into(),
        );
    };
    let object = storage
        .as_object()
        .filter(|object| object.is::<VmStorage>());
    let Some(object) = object else {
        return wrong_value(VM_33, "a tensor is cut from storage, not from", *storage);
    };
    let shape = shape_arg(VM_33, "the shape of a tensor is a shape, not", *shape)?;
    let (offset, dtype) = (cast::<i64>(*offset)?, cast::<Dtype>(*dtype)?);
    let scope = match rest {
        [scope, ..] => cast::<String>(*scope)?,
        [] => String::new(),
    };
    // SAFETY: just checked to be a storage; `into_raw` transfers its reference.
    let storage: Ref<VmStorage> = unsafe { Ref::from_raw(object.clone().into_raw()) };
    // VM-33: on the host, a scope has no effect. No device here creates a view in another scope.
    let plain = storage.is_on_host() || matches!(scope.as_str(), "" | "global");
    VM_33.demand(Kind::Unsupported, plain, || {
        format!("no tensor of scope `{scope}` is cut from storage of a device")
    })?;
    VmStorage::tensor_of_code(&storage, offset, shape, dtype)
}

/// Implements `memory_manager.clear`: returns the free blocks of all machines' pools to the devices (VM-32).
///
/// It has no machine as an argument, so it applies to the whole process, as in upstream.
pub(super) fn clear(_: &[AnyView<'_>]) -> VmResult {
    clear_pools();
    Ok(Any::none())
}

/// Returns the extents of a tensor (VM-51); arguments: `(tensor)`. A borrowed tensor is accepted, as from 0.24 on.
pub(super) fn shape_of(args: &[AnyView<'_>]) -> VmResult {
    // VM-51: up to 0.23 upstream rejects a borrowed tensor. Here it is accepted for every release.
    match tensor(arg(args, 0)) {
        Some(dl) => Ok(Shape::new(extents(dl)).into()),
        _ => wrong_value(VM_51, "only a tensor has a shape, not", arg(args, 0)),
    }
}

/// Creates a view of the same bytes, which may not be larger (VM-50); arguments: `(tensor, shape)`.
pub(super) fn reshape(args: &[AnyView<'_>]) -> VmResult {
    let value = cast::<Tensor>(arg(args, 0))?;
    let shape = shape_arg(
        VM_50,
        "a tensor is reshaped to a shape, not to",
        arg(args, 1),
    )?;
    let dl = value.dl();
    // If elements of less than a byte are packed, more of them fit into the same bytes. Compiled code that uses a byte for each
    // (DEV-15) would then write past the end.
    let bytes = |shape: &[i64]| Packing::Each.bytes(dl.dtype, shape);
    // VM-50: upstream accepts a negative extent next to one of 0. Here such a shape has no size and is rejected.
    let fits = bytes(shape)
        .zip(bytes(extents(dl)))
        .is_some_and(|(new, old)| new <= old);
    if !is_compact(dl) || !fits {
        return wrong_type(
            VM_50,
            format!(
                "a tensor of shape {:?} is not reshaped to {shape:?}",
                extents(dl)
            ),
        );
    }
    let view = DLTensor {
        ndim: shape.len() as i32,
        shape: shape.as_ptr().cast_mut(),
        // OBJ-12: null strides mean compact elements. The strides of `dl` belong to the extents of `dl`.
        strides: std::ptr::null_mut(),
        ..*dl
    };
    // SAFETY: the new extents cover no more than the old, as just checked, whose memory `value` keeps; they are copied.
    Ok(unsafe { Tensor::view_of(value.clone().into_object(), &view) }.into())
}

/// Returns the tensor, or a copy whose `byte_offset` is 0, for kernels that use only `data`; arguments: `(tensor)`. From 0.18 on.
pub(super) fn ensure_zero_offset(args: &[AnyView<'_>]) -> VmResult {
    let value = cast::<Tensor>(arg(args, 0))?;
    let dl = value.dl();
    if dl.byte_offset == 0 {
        return Ok(value.into());
    }
    // Naive, because this allocator ends with the call, so a pool would be useless.
    let place = VmDevice::new(dl.device, AllocatorKind::Naive)?;
    // SAFETY: the memory of `value`, which lives for the call.
    unsafe { copied(dl, &place) }
}

/// Copies a tensor; arguments: `(tensor, device type, device id[, scope])`. The copy is complete when the call returns, and is made
/// even if the tensor is already there (VM-55).
pub(super) fn to_device(args: &[AnyView<'_>]) -> VmResult {
    let value = cast::<Tensor>(arg(args, 0))?;
    let number = |at: usize| {
        let number = int(args, at)?;
        i32::try_from(number).map_err(|_| {
            let message = format!("{number} is not a type or index of a device");
            Error::from(VM_55.rejected(Kind::Type, message))
        })
    };
    let device = Device::new(number(1)?, number(2)?);
    // VM-55: the scope is passed from 0.23 on; up to 0.22 the copy is in the default one.
    let scope = args.get(3).map(|scope| cast::<String>(*scope));
    let scope = scope.transpose()?.unwrap_or_default();
    let place = VmDevice::new(device, AllocatorKind::Naive)?;
    // SAFETY: the memory of `value`, which lives for the call.
    unsafe { copied_to_scope(value.dl(), &place, &scope) }
}

/// Returns the integers of a compact tensor, through a copy on the host.
///
/// Returns `None` for elements that are not integers or bools of one lane, and for widths other than 1, 8, 16, 32 and 64 bits.
/// Elements of 8 bits are read as unsigned.
fn integers(dl: &DLTensor) -> VmResult<Option<Vec<i64>>> {
    // The codes of DLPack for int, uint and bool.
    if !matches!(dl.dtype.code, 0 | 1 | 6) || dl.dtype.lanes != 1 {
        return Ok(None);
    }
    // A tensor on the host is also copied, because this is a description, and only a tensor object returns its bytes.
    let host = VmDevice::new(Device::CPU, AllocatorKind::Naive)?;
    // SAFETY: an argument describes memory that its caller keeps for the call.
    let copy = unsafe { copied(dl, &host) }?;
    let copy = cast::<Tensor>(copy.view())?;
    let bytes = copy.to_bytes()?;
    Ok(match dl.dtype.bits {
        // VM-53: bools of every release take a byte each. Only the difference between 0 and other values matters.
        1 | 8 => Some(bytes.iter().map(|byte| i64::from(*byte)).collect()),
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

/// Creates a shape of a row of int16, int32 or int64, on any device (VM-52); arguments: `(tensor)`.
pub(super) fn tensor_to_shape(args: &[AnyView<'_>]) -> VmResult {
    let found = tensor(arg(args, 0))
        // VM-52: only signed types. VM-53 reads flags of other types through the same function.
        .filter(|dl| dl.ndim == 1 && dl.dtype.code == 0 && matches!(dl.dtype.bits, 16 | 32 | 64));
    let read = found.map(integers).transpose()?.flatten();
    match read {
        Some(extents) => Ok(Shape::new(&extents).into()),
        _ => wrong_type(
            VM_52,
            "a shape is made of a row of int16, int32 or int64".into(),
        ),
    }
}

/// Returns whether a bool, an integer, or the first element of a tensor is not 0 (VM-53); arguments: `(value)`. Upstream accepts a
/// bool that is not a tensor from 0.18 on.
pub(super) fn read_if_cond(args: &[AnyView<'_>]) -> VmResult {
    read_condition(args, byte_in_place)
}

/// Reads the condition as [`read_if_cond`] does, synchronized with safe code that writes to the tensor.
pub(super) fn read_if_cond_in_order(args: &[AnyView<'_>]) -> VmResult {
    read_condition(args, |dl| {
        let _alone = copying();
        byte_in_place(dl)
    })
}

/// Implements VM-53. `byte` reads the tensors that need no copy.
fn read_condition(args: &[AnyView<'_>], byte: impl FnOnce(&DLTensor) -> Option<u8>) -> VmResult {
    let value = arg(args, 0);
    if matches!(value.type_index(), index::INT | index::BOOL) {
        return Ok((value.as_raw().int() != 0).into());
    }
    let Some(dl) = tensor(value) else {
        return wrong_value(
            VM_53,
            "a condition is a bool, an integer or a tensor, not",
            value,
        );
    };
    if let Some(byte) = byte(dl) {
        return Ok((byte != 0).into());
    }
    match integers(dl)?.as_deref() {
        Some([first, ..]) => Ok((*first != 0).into()),
        // VM-53: this includes a tensor without elements, whose first element upstream reads.
        _ => wrong_type(
            VM_53,
            format!(
                "a condition is a tensor of integers with an element, not of {}",
                dl.dtype
            ),
        ),
    }
}

/// Reads a scalar of one byte on the host in place, without a copy. The `uint1` of releases up to 0.22 is also one byte. Returns
/// `None` for any other tensor, which `integers` copies.
fn byte_in_place(dl: &DLTensor) -> Option<u8> {
    let plain = dl.device == Device::CPU
        && matches!(
            (dl.dtype.code, dl.dtype.bits, dl.dtype.lanes, dl.ndim),
            (0 | 1 | 6, 1 | 8, 1, 0)
        );
    if plain && !dl.data.is_null() {
        // VM-53: the first element is at `byte_offset`, which upstream ignores here.
        let first = dl.data.cast::<u8>().wrapping_add(dl.byte_offset as usize);
        // SAFETY: a scalar with one lane on the host, which has one byte: `plain` has checked type and rank. The argument's caller
        // keeps it during the call. Nothing writes to it during that time, either by the contract of `module::load` or because of the
        // lock (`copying`).
        return Some(unsafe { first.read() });
    }
    None
}

/// Returns None. A compiler stores it in a register to release the old value of the register (VM-56).
pub(super) fn null_value(_: &[AnyView<'_>]) -> VmResult {
    Ok(Any::none())
}

/// Implements `copy(value)`: returns the same object (VM-56), to join the branches of an if in one register.
pub(super) fn copy(args: &[AnyView<'_>]) -> VmResult {
    Ok(arg(args, 0).to_any())
}
