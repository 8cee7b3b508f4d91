//! The bodies of functions that are no closures: code without captures, and C with a context.

use super::guard::guard;
use super::{FunctionObj, Result, SafeCall, Signature, TypedFn};
use crate::value::{AnyView, RawAny, index};
use std::ffi::c_void;

/// A function that captured nothing.
#[derive(Clone, Copy)]
pub(crate) struct Code {
    /// Its types, for metadata and messages (FUN-09).
    pub(crate) signature: &'static Signature,
    /// What it does, called with the name that its errors use.
    body: fn(Option<&'static str>, &[AnyView<'_>]) -> Result,
}

impl Code {
    /// Of an `F` of no bytes: there is nothing in it, so it can be had from nothing from now on.
    #[inline]
    pub(crate) fn of<P, F: TypedFn<P>>(body: F) -> Code {
        assert!(size_of::<F>() == 0, "it captured something");
        // Not dropped: a body of no bytes may have a destructor, and `invoke_plain` goes on calling it.
        let _kept = std::mem::ManuallyDrop::new(body);
        Code {
            signature: const { &F::SIGNATURE },
            body: invoke_plain::<P, F>,
        }
    }
}

/// A function that captured nothing, behind the public part.
#[repr(C)]
pub(super) struct Plain {
    pub(super) public: FunctionObj,
    pub(super) name: Option<&'static str>,
    pub(super) code: Code,
}

// SAFETY: `#[repr(C)]`, `public` first; its own call alone reaches the code.
own_object!(unsafe Plain, index::FUNCTION);

impl Plain {
    /// The call where an argument is converted first, or rejected (FUN-09).
    #[cold]
    #[inline(never)]
    fn settle(&self, args: &[AnyView<'_>]) -> Result {
        let Code { signature, body } = self.code;
        signature.settle_slowly(self.name, args, &|args| body(self.name, args))
    }
}

/// The body of a [`Code`]: an `F` of no bytes, called with converted arguments.
fn invoke_plain<P, F: TypedFn<P>>(name: Option<&'static str>, args: &[AnyView<'_>]) -> Result {
    // SAFETY: `Code::of` comes here only with an `F` of no bytes, and has kept one from being dropped.
    let body = unsafe { std::ptr::NonNull::<F>::dangling().as_ref() };
    body.invoke(name, args)
}

/// The `safe_call` of a [`Plain`] function (FUN-01): one for all of them, where each closure has its own.
pub(super) unsafe extern "C-unwind" fn call_plain(
    this: *mut c_void,
    args: *const RawAny,
    count: i32,
    result: *mut RawAny,
) -> i32 {
    // SAFETY: the callee gets the object that carries this function pointer (FUN-01): only `Function::plain` sets it.
    let plain = unsafe { &*this.cast::<Plain>() };
    // SAFETY: the caller passes `count` cells that live for the call (FUN-01); a negative count is that of nothing.
    let args = unsafe { AnyView::slice(args, count.max(0) as usize) };
    let settled = || {
        if plain.code.signature.is_ready(args) {
            (plain.code.body)(plain.name, args)
        } else {
            plain.settle(args)
        }
    };
    // SAFETY: the caller passes null or a cell for the result (FUN-01).
    unsafe { guard(result, settled) }
}

/// A function of C with a context, behind the public part.
#[repr(C)]
pub(super) struct External {
    pub(super) public: FunctionObj,
    pub(super) context: *mut c_void,
    /// The C function.
    pub(super) call: SafeCall,
    pub(super) finish: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
}

// SAFETY: `#[repr(C)]`, `public` first; its own call alone reaches the context.
own_object!(unsafe External, index::FUNCTION);

impl Drop for External {
    fn drop(&mut self) {
        if let Some(finish) = self.finish {
            // SAFETY: called once, when the function can no longer be called (the contract of `from_c`).
            unsafe { finish(self.context) }
        }
    }
}

/// The `safe_call` of an [`External`] function: the same call with the context in front (FUN-01).
pub(super) unsafe extern "C-unwind" fn call_external(
    this: *mut c_void,
    args: *const RawAny,
    count: i32,
    result: *mut RawAny,
) -> i32 {
    // SAFETY: the callee gets the object that carries this function pointer (FUN-01): only `from_c` sets it.
    let this = unsafe { &*this.cast::<External>() };
    // SAFETY: follows the convention for its context (the contract of `from_c`); the rest is passed on.
    unsafe { (this.call)(this.context, args, count, result) }
}
