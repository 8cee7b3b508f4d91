//! The bodies of functions that are not closures: code without captures, and C functions with a context.

use super::guard::guard;
use super::{FunctionObj, Result, SafeCall, Signature, TypedFn};
use crate::value::header::own_object;
use crate::value::{AnyView, RawAny, index};
use std::ffi::c_void;

/// A function without captures.
#[derive(Clone, Copy)]
pub(crate) struct Code {
    /// The types, for metadata and messages (FUN-09).
    pub(crate) signature: &'static Signature,
    /// The code, called with the name that its errors use.
    body: fn(Option<&'static str>, &[AnyView<'_>]) -> Result,
}

impl Code {
    /// Creates the code of an `F` of size 0. It contains no data, so a reference to it can be created anywhere later.
    #[inline]
    pub(crate) fn from_body<P, F: TypedFn<P>>(body: F) -> Code {
        assert!(size_of::<F>() == 0, "it captured something");
        // Not dropped: a body of size 0 may have a destructor, and `invoke_plain` keeps calling it.
        let _kept = std::mem::ManuallyDrop::new(body);
        Code {
            signature: const { &F::SIGNATURE },
            body: invoke_plain::<P, F>,
        }
    }
}

/// A function object without captures: the public part, followed by the code.
#[repr(C)]
pub(super) struct Plain {
    pub(super) public: FunctionObj,
    pub(super) name: Option<&'static str>,
    pub(super) code: Code,
}

// SAFETY: `#[repr(C)]`, `public` first; only its own call reaches the code.
own_object!(unsafe Plain, index::FUNCTION);

impl Plain {
    /// Calls the function after converting or rejecting an argument (FUN-09).
    #[cold]
    #[inline(never)]
    fn convert_and_call(&self, args: &[AnyView<'_>]) -> Result {
        let Code { signature, body } = self.code;
        signature.convert_and_call(self.name, args, &|args| body(self.name, args))
    }
}

/// Calls an `F` of size 0 with converted arguments, as the body of a [`Code`].
fn invoke_plain<P, F: TypedFn<P>>(name: Option<&'static str>, args: &[AnyView<'_>]) -> Result {
    // SAFETY: `Code::from_body` uses this only with an `F` of size 0, and has prevented its drop.
    let body = unsafe { std::ptr::NonNull::<F>::dangling().as_ref() };
    body.invoke(name, args)
}

/// Calls a [`Plain`] function, as its `safe_call` (FUN-01). All plain functions share it, but each closure has its own.
pub(super) unsafe extern "C-unwind" fn call_plain(
    this: *mut c_void,
    args: *const RawAny,
    count: i32,
    result: *mut RawAny,
) -> i32 {
    // SAFETY: the callee gets the object that has this function pointer (FUN-01): only `Function::plain` sets it.
    let plain = unsafe { &*this.cast::<Plain>() };
    // SAFETY: the caller passes `count` cells that live for the call (FUN-01); a negative count means none.
    let args = unsafe { AnyView::slice(args, count.max(0) as usize) };
    let settled = || {
        if plain.code.signature.is_ready(args) {
            (plain.code.body)(plain.name, args)
        } else {
            plain.convert_and_call(args)
        }
    };
    // SAFETY: the caller passes null or a cell for the result (FUN-01).
    unsafe { guard(result, settled) }
}

/// A function object for a C function with a context: the public part, followed by both.
#[repr(C)]
pub(super) struct External {
    pub(super) public: FunctionObj,
    pub(super) context: *mut c_void,
    /// The C function.
    pub(super) call: SafeCall,
    pub(super) finish: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
}

// SAFETY: `#[repr(C)]`, `public` first; only its own call reaches the context.
own_object!(unsafe External, index::FUNCTION);

impl Drop for External {
    fn drop(&mut self) {
        if let Some(finish) = self.finish {
            // SAFETY: called once, when the function can no longer be called (the contract of `from_c`).
            unsafe { finish(self.context) }
        }
    }
}

/// Calls an [`External`] function with the context as first argument, as its `safe_call` (FUN-01).
pub(super) unsafe extern "C-unwind" fn call_external(
    this: *mut c_void,
    args: *const RawAny,
    count: i32,
    result: *mut RawAny,
) -> i32 {
    // SAFETY: the callee gets the object that has this function pointer (FUN-01): only `from_c` sets it.
    let this = unsafe { &*this.cast::<External>() };
    // SAFETY: the function follows the convention for its context (the contract of `from_c`); the other arguments are unchanged.
    unsafe { (this.call)(this.context, args, count, result) }
}
