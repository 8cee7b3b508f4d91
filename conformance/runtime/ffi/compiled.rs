//! The functions of the tvm-ffi C interface that compiled code calls, and the tensors that a caller passes to it.

use super::api::{FfiApi, FfiCallback};
use super::owned::{OwnedValue, Raised};
use crate::conformance::runtime::RawHandle;
use crate::value::dlpack::{DLManagedTensor, DLManagedTensorVersioned};
use crate::value::{AnyPayload, RawAny, index};
use std::ffi::{CStr, c_int};
use std::ptr;

impl FfiApi {
    /// Returns what compiled code finds under `name` in the module whose context is `context`.
    ///
    /// # Safety
    ///
    /// The runtime wrote `context` into a library that is still loaded.
    pub(in crate::conformance) unsafe fn look_up_import(
        &'static self,
        context: RawHandle,
        name: &CStr,
    ) -> Result<OwnedValue, Raised> {
        let mut handle = ptr::null_mut();
        // SAFETY: a context of a library that is still loaded, by this function's contract, a name, and an out pointer.
        let code = unsafe { (self.imported)(context, name.as_ptr(), &raw mut handle) };
        self.check(code)?;
        // The runtime keeps the function that it returned, as long as the module lives.
        Ok(self.share(RawAny::of(index::FUNCTION, AnyPayload { ptr: handle })))
    }

    /// Initializes the handle in `place` once; `None` if the runtime has no function for it.
    pub(in crate::conformance) fn init_handle_once(
        &self,
        place: &mut RawHandle,
        body: unsafe extern "C" fn(*mut RawHandle) -> c_int,
    ) -> Option<c_int> {
        // SAFETY: a pointer slot that lives for the call, and a function that may fill it.
        self.once.map(|once| unsafe { once(place, body) })
    }

    /// Makes `body` a symbol of the system library.
    pub(in crate::conformance) fn system_symbol(
        &'static self,
        name: &CStr,
        body: FfiCallback,
    ) -> Result<(), Raised> {
        // SAFETY: a name, and a function that stays.
        let code = unsafe { (self.symbol)(name.as_ptr(), body as RawHandle) };
        self.check(code)
    }

    /// Creates a tensor on the CPU that owns `tensor`, which has the form of DLPack.
    pub(in crate::conformance) fn tensor(
        &'static self,
        tensor: *mut DLManagedTensor,
    ) -> Result<OwnedValue, Raised> {
        let mut handle = ptr::null_mut();
        // SAFETY: `tensor` is managed: its deleter is called once.
        let code = unsafe { (self.from_dlpack)(tensor, 0, 0, &raw mut handle) };
        self.check(code)?;
        Ok(self.object(index::TENSOR, handle))
    }

    /// Creates a tensor from the form of DLPack 1.x. A rejected one still belongs to the caller.
    pub(in crate::conformance) fn tensor_1(
        &'static self,
        tensor: *mut DLManagedTensorVersioned,
        alignment: i32,
        contiguous: bool,
    ) -> Result<OwnedValue, Raised> {
        let mut handle = ptr::null_mut();
        // SAFETY: a managed tensor of the caller's, and an out pointer for the handle.
        let code = unsafe {
            (self.from_dlpack_1)(tensor, alignment, i32::from(contiguous), &raw mut handle)
        };
        self.check(code)?;
        Ok(self.object(index::TENSOR, handle))
    }
}
