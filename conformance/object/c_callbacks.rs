//! Callbacks, contexts and allocators that the suite passes to C functions of tvm-ffi.

use super::probe::Alive;
use crate::conformance::runtime::RawHandle;
use crate::value::dlpack::DLTensor;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::ffi::{c_char, c_int};
use std::ptr::null_mut;

/// The C struct `TVMFFICustomAllocator`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct CustomAllocator {
    pub(super) allocate: unsafe extern "C" fn(usize, usize, i32, RawHandle) -> RawHandle,
    pub(super) context: RawHandle,
}

// SAFETY: the context is never dereferenced.
unsafe impl Sync for CustomAllocator {}

pub(super) static OWN_ALLOCATOR: CustomAllocator = CustomAllocator {
    allocate: own_allocate,
    context: null_mut(),
};

unsafe extern "C" fn own_allocate(_: usize, _: usize, _: i32, _: RawHandle) -> RawHandle {
    null_mut()
}

/// A function that reports an error. Its parameters are context, kind and message.
pub(super) type SetError = unsafe extern "C" fn(RawHandle, *const c_char, *const c_char);
/// The C type `DLPackManagedTensorAllocator`.
pub(super) type Allocator =
    unsafe extern "C" fn(*mut DLTensor, *mut RawHandle, RawHandle, SetError) -> c_int;

pub(super) unsafe extern "C" fn allocate_none(
    _: *mut DLTensor,
    _: *mut RawHandle,
    context: RawHandle,
    set_error: SetError,
) -> c_int {
    // SAFETY: the context belongs to this function, and the texts are copied.
    unsafe { set_error(context, c"ValueError".as_ptr(), c"no memory".as_ptr()) };
    5
}

/// Shows the owner of an allocator: null for none, `"own"` for the allocator of this suite, `"another"` for any other one.
pub(super) fn allocator(own: Option<Allocator>) -> Value {
    match own {
        None => Value::Null,
        Some(own) if std::ptr::fn_addr_eq(own, allocate_none as Allocator) => json!("own"),
        Some(_) => json!("another"),
    }
}

/// Ends a context that was made for `"alive"`.
pub(super) unsafe extern "C" fn finish(context: RawHandle) {
    if !context.is_null() {
        // SAFETY: `AddressArgument` made the context, and it is ended once.
        unsafe { Box::from_raw(context.cast::<Alive>()) }.count_dropped();
    }
}

pub(super) unsafe extern "C" fn makes(out: *mut RawHandle) -> c_int {
    // SAFETY: `out` is a place for a handle.
    unsafe { out.write(std::ptr::without_provenance_mut(64)) };
    0
}

pub(super) unsafe extern "C" fn makes_none(_: *mut RawHandle) -> c_int {
    0
}

pub(super) unsafe extern "C" fn fails(_: *mut RawHandle) -> c_int {
    7
}

pub(super) unsafe extern "C" fn ends(_: RawHandle) -> c_int {
    0
}

pub(super) unsafe extern "C" fn end_fails(_: RawHandle) -> c_int {
    9
}

thread_local! {
    /// The calls of an interpreter on this thread, in order (FUN-39).
    pub(super) static LOCK: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Notes a call of the interpreter.
fn called(what: impl Into<String>) {
    LOCK.with_borrow_mut(|calls| calls.push(what.into()));
}

/// Stands for `PyErr_CheckSignals` when no signal is pending.
pub(super) unsafe extern "C" fn report_no_signal() -> c_int {
    called("check");
    0
}

/// Stands for `PyErr_CheckSignals` when a signal is pending.
pub(super) unsafe extern "C" fn signal() -> c_int {
    called("check");
    -1
}

/// Stands for `PyGILState_Ensure`.
pub(super) unsafe extern "C" fn ensure() -> c_int {
    called("ensure");
    1
}

/// Stands for `PyGILState_Release`.
pub(super) unsafe extern "C" fn release(state: c_int) {
    called(format!("release {state}"));
}
