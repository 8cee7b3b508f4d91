//! Copies of tensors between devices.

use super::allocator::VmDevice;
use super::storage::allocate_unpooled;
use crate::device::tensor::copy;
use crate::function::Error;
use crate::object::{Array, Tensor, sequence_of};
use crate::value::{Any, AnyView, DLTensor, cast, index};

/// Returns `value` with every tensor on the device of `place`, also inside tuples. Tensors elsewhere and borrowed tensors are
/// copied.
pub(super) fn on_device(value: AnyView<'_>, place: &VmDevice) -> Result<Any, Error> {
    if let Some(items) = sequence_of(value) {
        let items: Result<Vec<Any>, Error> = items
            .iter()
            .map(|item| on_device(item.view(), place))
            .collect();
        return Ok(items?.into_iter().collect::<Array>().into());
    }
    if !matches!(value.type_index(), index::TENSOR | index::DLTENSOR_PTR) {
        return Ok(value.to_any());
    }
    let from = cast::<*mut DLTensor>(value)?;
    // SAFETY: an argument of this type points to a description that lives as long as the view.
    let from = unsafe { &*from };
    // VM-62: a borrowed tensor is copied even if it is on the device, because its owner may free it before it is used.
    if value.type_index() == index::TENSOR && from.device == place.device {
        return Ok(value.to_any());
    }
    // SAFETY: an argument describes memory that its caller keeps for the call.
    unsafe { copied(from, place) }
}

/// Copies `from` to the device of `place`.
///
/// # Safety
///
/// `from` describes memory that stays valid for the call; its extents and strides are readable.
pub(super) unsafe fn copied(from: &DLTensor, place: &VmDevice) -> Result<Any, Error> {
    // SAFETY: the caller keeps the requirements of this function, which are the same.
    unsafe { copied_to_scope(from, place, "") }
}

/// Copies as [`copied`] does, to memory of `scope`.
///
/// # Safety
///
/// As for [`copied`].
pub(super) unsafe fn copied_to_scope(
    from: &DLTensor,
    place: &VmDevice,
    scope: &str,
) -> Result<Any, Error> {
    // SAFETY: the extents of `from` are readable.
    let shape = unsafe { from.shape() };
    let tensor = allocate_unpooled(place, shape, from.dtype, scope)?;
    let to = cast::<Tensor>(tensor.view())?;
    // SAFETY: `from` stays for the call, the fresh tensor owns its memory; `copy` compares sizes and strides.
    unsafe { copy(from, to.dl()) }?;
    Ok(tensor)
}
