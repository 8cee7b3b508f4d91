//! What the suite passes to C functions of tvm-ffi that call back.

use super::probe::Alive;
use crate::conformance::runtime::RawHandle;
use crate::value::dlpack::DLTensor;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::ffi::{c_char, c_int};
use std::ptr::null_mut;

/// `TVMFFICustomAllocator`
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct CustomAllocator {
    pub(super) allocate: unsafe extern "C" fn(usize, usize, i32, RawHandle) -> RawHandle,
    pub(super) context: RawHandle,
}

// SAFETY: nobody follows its context.
unsafe impl Sync for CustomAllocator {}

pub(super) static OWN_ALLOCATOR: CustomAllocator = CustomAllocator {
    allocate: own_allocate,
    context: null_mut(),
};

unsafe extern "C" fn own_allocate(_: usize, _: usize, _: i32, _: RawHandle) -> RawHandle {
    null_mut()
}

/// Reports an error: context, kind, message.
pub(super) type SetError = unsafe extern "C" fn(RawHandle, *const c_char, *const c_char);
/// `DLPackManagedTensorAllocator`
pub(super) type Allocator =
    unsafe extern "C" fn(*mut DLTensor, *mut RawHandle, RawHandle, SetError) -> c_int;

pub(super) unsafe extern "C" fn allocate_none(
    _: *mut DLTensor,
    _: *mut RawHandle,
    context: RawHandle,
    set_error: SetError,
) -> c_int {
    // SAFETY: the context belongs to it, and the texts are copied.
    unsafe { set_error(context, c"ValueError".as_ptr(), c"no memory".as_ptr()) };
    -1
}

/// Whose an allocator is.
pub(super) fn allocator(own: Option<Allocator>) -> Value {
    match own {
        None => Value::Null,
        Some(own) if std::ptr::fn_addr_eq(own, allocate_none as Allocator) => json!("own"),
        Some(_) => json!("another"),
    }
}

/// The end of a context `"alive"`.
pub(super) unsafe extern "C" fn finish(context: RawHandle) {
    if !context.is_null() {
        // SAFETY: `AddressArgument` made the context, which is finished once.
        unsafe { Box::from_raw(context.cast::<Alive>()) }.less();
    }
}

pub(super) unsafe extern "C" fn makes(out: *mut RawHandle) -> c_int {
    // SAFETY: a place for a handle.
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

/// `PyErr_CheckSignals` without a signal.
pub(super) unsafe extern "C" fn quiet() -> c_int {
    called("check");
    0
}

/// `PyErr_CheckSignals` with one.
pub(super) unsafe extern "C" fn signal() -> c_int {
    called("check");
    -1
}

/// `PyGILState_Ensure`
pub(super) unsafe extern "C" fn ensure() -> c_int {
    called("ensure");
    1
}

/// `PyGILState_Release`
pub(super) unsafe extern "C" fn release(state: c_int) {
    called(format!("release {state}"));
}
