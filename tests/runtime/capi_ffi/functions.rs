//! Functions: callbacks, signals, and handles that are made once.

use super::{ENDED, context, ended, own, raised};
use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};
use tvmspec::capi::ffi::env::*;
use tvmspec::capi::ffi::error::*;
use tvmspec::capi::ffi::function::*;
use tvmspec::capi::ffi::module::*;
use tvmspec::capi::ffi::object::*;
use tvmspec::function::FunctionObj;
use tvmspec::value::header::Header;
use tvmspec::value::{Any, ByteArray, RawAny, index};

/// Adds its context to an integer, and raises an error for any other value.
unsafe extern "C-unwind" fn adds(
    context: *mut c_void,
    args: *const RawAny,
    count: i32,
    result: *mut RawAny,
) -> i32 {
    let by = unsafe { (*context.cast::<(usize, i64)>()).1 };
    let first = unsafe { *args };
    if count != 1 || first.type_index() != index::INT {
        let (kind, parts) = (
            c"TypeError",
            [c"not ".as_ptr(), ptr::null(), c"so".as_ptr()],
        );
        unsafe { TVMFFIErrorSetRaisedFromCStrParts(kind.as_ptr(), parts.as_ptr(), 3) };
        return -1;
    }
    unsafe { result.write(Any::from(first.int() + by).into_raw()) };
    0
}

#[test]
fn a_callback_is_registered_found_called_and_released() {
    let name = ByteArray::of(b"test.capi.adds");
    let mut made = ptr::null_mut();
    let mut found: *mut Header = ptr::null_mut();
    unsafe {
        let code = TVMFFIFunctionCreate(context(0, 40), adds, Some(ended), &mut made);
        assert_eq!(code, 0);
        assert_eq!(TVMFFIFunctionSetGlobal(&name, made, 0), 0);
        assert_eq!(TVMFFIFunctionSetGlobal(&name, made, 0), -1);
    }
    assert!(raised().message().contains("already registered"));
    let arguments = [
        Any::from(2i64),
        Any::from("a text on the heap, which is no integer"),
    ];
    unsafe {
        assert_eq!(TVMFFIFunctionGetGlobal(&name, &mut found), 0);
        let mut result = RawAny::NONE;
        let found = found.cast::<FunctionObj>();
        let code = TVMFFIFunctionCall(found.cast(), arguments[0].as_raw(), 1, &mut result);
        assert_eq!((code, own(result).as_raw().int()), (0, 42));
        let mut result = RawAny::NONE;
        let code = TVMFFIFunctionCall(found.cast(), arguments[1].as_raw(), 1, &mut result);
        assert_eq!(code, -1);
    }
    let error = raised();
    assert_eq!(
        (error.kind().as_str(), error.message()),
        ("TypeError", "not so")
    );
    assert!(tvmspec::function::registry::remove("test.capi.adds"));
    unsafe {
        TVMFFIObjectIncRef(made);
        TVMFFIObjectDecRef(made);
        TVMFFIObjectDecRef(found);
        assert_eq!(ENDED[0].load(Ordering::Relaxed), 0);
        TVMFFIObjectDecRef(made);
    }
    assert_eq!(ENDED[0].load(Ordering::Relaxed), 1);
}

unsafe extern "C" fn has_a_signal() -> std::ffi::c_int {
    -1
}

#[test]
fn a_frontend_that_registered_it_is_asked_for_signals() {
    let name = c"PyErr_CheckSignals".as_ptr();
    assert_eq!(TVMFFIEnvCheckSignals(), 0);
    unsafe {
        assert_eq!(TVMFFIEnvRegisterCAPI(name, has_a_signal as *mut c_void), 0);
        assert_eq!(TVMFFIEnvCheckSignals(), -1);
        assert_eq!(TVMFFIEnvRegisterCAPI(name, ptr::null_mut()), 0);
    }
    assert_eq!(TVMFFIEnvCheckSignals(), 0);
}

#[test]
fn code_of_a_library_without_a_module_finds_nothing() {
    let mut found = ptr::null_mut();
    let code = unsafe {
        TVMFFIEnvModLookupFromImports(ptr::null_mut(), c"ffi.Array".as_ptr(), &mut found)
    };
    assert_eq!((code, found.is_null()), (-1, true));
    assert_eq!(raised().kind(), "RuntimeError");
}

#[test]
fn null_is_no_function_of_a_name() {
    let name = ByteArray::of(b"test.capi.null");
    let code = unsafe { TVMFFIFunctionSetGlobal(&name, ptr::null_mut(), 0) };
    assert_eq!(code, -1);
    assert_eq!(raised().kind(), "TypeError");
}

/// The number of handles that were made.
static MADE: AtomicI32 = AtomicI32::new(0);

unsafe extern "C-unwind" fn make(out: *mut *mut c_void) -> i32 {
    MADE.fetch_add(1, Ordering::Relaxed);
    unsafe { out.write(Box::into_raw(Box::new(5u64)).cast()) };
    0
}

unsafe extern "C-unwind" fn end(made: *mut c_void) -> i32 {
    drop(unsafe { Box::from_raw(made.cast::<u64>()) });
    0
}

#[test]
fn a_handle_is_made_once_by_many() {
    struct Place(*mut *mut c_void);
    unsafe impl Sync for Place {}
    let mut slot = ptr::null_mut();
    let place = Place(&raw mut slot);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let place = &place;
                assert_eq!(unsafe { TVMFFIHandleInitOnce(place.0, make) }, 0);
            });
        }
    });
    assert_eq!(MADE.load(Ordering::Relaxed), 1);
    unsafe { assert_eq!(TVMFFIHandleDeinitOnce(place.0, end), 0) };
    assert!(slot.is_null());
}

/// A library binary of layout 0.22: `_lib`, which imports a module of kind `tests.turns` without a payload.
static SYSTEM_BLOB: &[u8] = b"W\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\
    \0\0\x01\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0_lib\x0b\0\0\0\0\0\0\0tests.turns\0\0\0\0\0\0\0\0";

#[test]
fn code_that_is_called_once_may_come_back() {
    const NAME: &CStr = c"turns___tvm_ffi__library_bin";
    let blob = SYSTEM_BLOB.as_ptr().cast_mut().cast();
    assert_eq!(
        unsafe { TVMFFIEnvModRegisterSystemLibSymbol(NAME.as_ptr(), blob) },
        0
    );
    tvmspec::module::register_loader("tests.turns", |_| {
        // The library itself is not registered yet, but another one is.
        let own = tvmspec::module::system_library("turns_").unwrap_err();
        assert!(own.reason().ends_with(" [MOD-17]"), "{}", own.reason());
        tvmspec::module::system_library("turns.other_")
    });
    // This runs on a separate thread, because an earlier version waited for itself.
    within_seconds(|| {
        let system = tvmspec::module::system_library("turns_").unwrap();
        assert_eq!(system.imports().len(), 1);
        assert_eq!(system, tvmspec::module::system_library("turns_").unwrap());
    });
}

/// Runs `body` on a separate thread, and fails if it takes more than 20 seconds.
fn within_seconds(body: impl FnOnce() + Send + 'static) {
    let (sender, receiver) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        body();
        sender.send(()).unwrap();
    });
    let waited = receiver.recv_timeout(std::time::Duration::from_secs(20));
    assert_ne!(
        waited,
        Err(std::sync::mpsc::RecvTimeoutError::Timeout),
        "it waits for itself"
    );
    thread.join().unwrap();
}

/// The outer handle of [`an_initialiser_may_initialise_another_handle`].
static OUTER: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

static INNER: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

unsafe extern "C-unwind" fn make_inner(out: *mut *mut c_void) -> i32 {
    unsafe { out.write(Box::into_raw(Box::new(6u64)).cast()) };
    0
}

unsafe extern "C-unwind" fn make_outer(out: *mut *mut c_void) -> i32 {
    let own = unsafe { TVMFFIHandleInitOnce(OUTER.as_ptr(), make_outer) };
    let other = unsafe { TVMFFIHandleInitOnce(INNER.as_ptr(), make_inner) };
    let taken = unsafe { TVMFFIHandleDeinitOnce(INNER.as_ptr(), end) };
    let made = (own, other, taken) == (-1, 0, 0);
    unsafe { out.write(ptr::without_provenance_mut(usize::from(made))) };
    0
}

#[test]
fn an_initialiser_may_initialise_another_handle() {
    within_seconds(|| {
        assert_eq!(
            unsafe { TVMFFIHandleInitOnce(OUTER.as_ptr(), make_outer) },
            0
        );
        assert_eq!(OUTER.load(Ordering::Relaxed).addr(), 1);
        assert!(INNER.load(Ordering::Relaxed).is_null());
    });
}
