//! Tensors and DLPack.

use super::enter;
use crate::object::Tensor;
use crate::value::header::{Header, ObjectRef};
use crate::value::{AnyView, DLManagedTensor, DLManagedTensorVersioned, DLTensor, cast};

/// Takes over a DLPack tensor.
///
/// # Safety
/// `from` is a live tensor that the caller owns; `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFITensorFromDLPack(
    from: *mut DLManagedTensor,
    require_alignment: i32,
    require_contiguous: i32,
    out: *mut *mut Header,
) -> i32 {
    enter(|| {
        let contiguous = require_contiguous != 0;
        // OBJ-12: a rejected tensor stays with its owner, and its deleter is not called.
        // SAFETY: `from` is a live tensor that the caller owns, by this contract.
        let tensor = unsafe { Tensor::from_dlpack(from, require_alignment.into(), contiguous) }?;
        // SAFETY: `out` is writable, by this contract.
        unsafe { out.write(tensor.into_object().into_raw()) };
        Ok(())
    })
}

/// Takes over a DLPack 1.x tensor.
///
/// # Safety
/// As for [`TVMFFITensorFromDLPack`].
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFITensorFromDLPackVersioned(
    from: *mut DLManagedTensorVersioned,
    require_alignment: i32,
    require_contiguous: i32,
    out: *mut *mut Header,
) -> i32 {
    enter(|| {
        let contiguous = require_contiguous != 0;
        // SAFETY: `from` is a live tensor that the caller owns, by the contract of `TVMFFITensorFromDLPack`.
        let tensor =
            unsafe { Tensor::from_dlpack_versioned(from, require_alignment.into(), contiguous) }?;
        // SAFETY: `out` is writable, by that contract.
        unsafe { out.write(tensor.into_object().into_raw()) };
        Ok(())
    })
}

/// Returns a tensor for a borrowed handle.
///
/// # Safety
/// `handle` is an object.
unsafe fn borrowed(handle: *mut Header) -> crate::function::Result<Tensor> {
    // SAFETY: `handle` is an object, by this contract.
    let object = unsafe { ObjectRef::retain(handle) };
    Ok(cast::<Tensor>(AnyView::from(&object))?)
}

/// Returns a DLPack tensor that holds a reference to `from`.
///
/// # Safety
/// `from` is an object, `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFITensorToDLPack(
    from: *mut Header,
    out: *mut *mut DLManagedTensor,
) -> i32 {
    enter(|| {
        // SAFETY: `from` is an object, by this contract.
        let tensor = unsafe { borrowed(from) }?;
        // SAFETY: `out` is writable, by this contract.
        unsafe { out.write(tensor.to_dlpack()) }
        Ok(())
    })
}

/// Returns a DLPack 1.x tensor that holds a reference to `from`.
///
/// # Safety
/// As for [`TVMFFITensorToDLPack`].
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFITensorToDLPackVersioned(
    from: *mut Header,
    out: *mut *mut DLManagedTensorVersioned,
) -> i32 {
    enter(|| {
        // SAFETY: `from` is an object, by the contract of `TVMFFITensorToDLPack`.
        let tensor = unsafe { borrowed(from) }?;
        // SAFETY: `out` is writable, by that contract.
        unsafe { out.write(tensor.to_dlpack_versioned()) }
        Ok(())
    })
}

/// Creates a tensor with another description over the memory of `source`, which it keeps alive.
///
/// # Safety
/// `source` is an object. `prototype` and its extents are readable and describe memory of `source`. `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFITensorCreateUnsafeView(
    source: *mut Header,
    prototype: *const DLTensor,
    out: *mut *mut Header,
) -> i32 {
    enter(|| {
        // SAFETY: `source` is an object, by this contract.
        let source = unsafe { ObjectRef::retain(source) };
        // SAFETY: `prototype` is readable, by this contract.
        let prototype = unsafe { &*prototype };
        // SAFETY: `prototype` describes memory of `source`, by this contract.
        let view = unsafe { Tensor::view_of(source, prototype) };
        // SAFETY: `out` is writable, by this contract.
        unsafe { out.write(view.into_object().into_raw()) };
        Ok(())
    })
}
