//! Tensors and DLPack.

use super::enter;
use crate::object::Tensor;
use crate::value::header::{Header, ObjectRef};
use crate::value::{AnyView, DLManagedTensor, DLManagedTensorVersioned, DLTensor, cast};

/// Takes over a DLPack tensor.
///
/// # Safety
/// `from` belongs to the caller; `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFITensorFromDLPack(
    from: *mut DLManagedTensor,
    require_alignment: i32,
    require_contiguous: i32,
    out: *mut *mut Header,
) -> i32 {
    enter(|| {
        // SAFETY: says the caller.
        unsafe {
            let tensor =
                Tensor::from_dlpack(from, require_alignment.into(), require_contiguous != 0)?;
            out.write(tensor.into_object().into_raw());
        }
        Ok(())
    })
}

/// Takes over a DLPack 1.x tensor.
///
/// # Safety
/// As [`TVMFFITensorFromDLPack`].
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFITensorFromDLPackVersioned(
    from: *mut DLManagedTensorVersioned,
    require_alignment: i32,
    require_contiguous: i32,
    out: *mut *mut Header,
) -> i32 {
    enter(|| {
        // SAFETY: says the caller.
        unsafe {
            let tensor = Tensor::from_dlpack_versioned(
                from,
                require_alignment.into(),
                require_contiguous != 0,
            )?;
            out.write(tensor.into_object().into_raw());
        }
        Ok(())
    })
}

unsafe fn borrowed(handle: *mut Header) -> crate::function::Result<Tensor> {
    // SAFETY: an object, says the caller.
    let object = unsafe { ObjectRef::retain(handle) };
    Ok(cast::<Tensor>(AnyView::from(&object))?)
}

/// Gives out a DLPack tensor that holds a reference of `from`.
///
/// # Safety
/// `from` is an object, `out` writable.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFITensorToDLPack(
    from: *mut Header,
    out: *mut *mut DLManagedTensor,
) -> i32 {
    enter(|| {
        // SAFETY: says the caller.
        unsafe { out.write(borrowed(from)?.to_dlpack()) }
        Ok(())
    })
}

/// Gives out a DLPack 1.x tensor that holds a reference of `from`.
///
/// # Safety
/// As [`TVMFFITensorToDLPack`].
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFITensorToDLPackVersioned(
    from: *mut Header,
    out: *mut *mut DLManagedTensorVersioned,
) -> i32 {
    enter(|| {
        // SAFETY: says the caller.
        unsafe { out.write(borrowed(from)?.to_dlpack_versioned()) }
        Ok(())
    })
}

/// A tensor with another description over the memory of `source`, which it keeps alive.
///
/// # Safety
/// `prototype` describes memory of `source`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFITensorCreateUnsafeView(
    source: *mut Header,
    prototype: *const DLTensor,
    out: *mut *mut Header,
) -> i32 {
    enter(|| {
        // SAFETY: says the caller.
        unsafe {
            let source = ObjectRef::retain(source);
            let view = Tensor::view_of(source, &*prototype);
            out.write(view.into_object().into_raw());
        }
        Ok(())
    })
}
