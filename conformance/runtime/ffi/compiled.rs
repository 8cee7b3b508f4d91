//! What compiled code calls of the tvm-ffi C interface, and the tensors that a caller hands it.

use super::api::{FfiApi, FfiCallback};
use super::owned::{OwnedValue, Raised};
use crate::conformance::runtime::RawHandle;
use crate::value::dlpack::{DLManagedTensor, DLManagedTensorVersioned};
use crate::value::{AnyPayload, RawAny, index};
use std::ffi::{CStr, c_int};
use std::ptr;

impl FfiApi {
    /// What compiled code gets that looks for `name` from the module whose context is `context`.
    ///
    /// # Safety
    ///
    /// `context` is what the runtime wrote into a library that is still loaded.
    pub(in crate::conformance) unsafe fn looked_up(
        &'static self,
        context: RawHandle,
        name: &CStr,
    ) -> Result<OwnedValue, Raised> {
        let mut handle = ptr::null_mut();
        // SAFETY: a context of a library that is still loaded, by this contract, a name, and a place.
        let code = unsafe { (self.imported)(context, name.as_ptr(), &raw mut handle) };
        self.check(code)?;
        // The runtime keeps what it returned, for as long as the module lives.
        Ok(self.share(RawAny::of(index::FUNCTION, AnyPayload { ptr: handle })))
    }

    /// Initialises what `place` stands for, once; `None` where the runtime has no function for that.
    pub(in crate::conformance) fn once(
        &self,
        place: &mut RawHandle,
        body: unsafe extern "C" fn(*mut RawHandle) -> c_int,
    ) -> Option<c_int> {
        // SAFETY: a place that lives for the call, and a function fit for it.
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

    /// A tensor on the CPU that owns `tensor`, which comes as DLPack wants it.
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

    /// The same, as DLPack 1.x has it. What is rejected stays the caller's.
    pub(in crate::conformance) fn tensor_1(
        &'static self,
        tensor: *mut DLManagedTensorVersioned,
        alignment: i32,
        contiguous: bool,
    ) -> Result<OwnedValue, Raised> {
        let mut handle = ptr::null_mut();
        // SAFETY: a managed tensor of the caller's, and a place for the handle.
        let code = unsafe {
            (self.from_dlpack_1)(tensor, alignment, i32::from(contiguous), &raw mut handle)
        };
        self.check(code)?;
        Ok(self.object(index::TENSOR, handle))
    }
}
