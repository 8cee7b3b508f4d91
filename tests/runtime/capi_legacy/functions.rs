//! Functions and callbacks, and their failures.

use super::{call, last_error, registered};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use tvmspec::capi::legacy::*;
use tvmspec::function::{Error, ErrorKind, registry};
use tvmspec::value::legacy::{TVMValue, code};

static FINISHED: AtomicU32 = AtomicU32::new(0);

unsafe extern "C-unwind" fn finish(resource: *mut c_void) {
    drop(unsafe { Box::from_raw(resource.cast::<i64>()) });
    FINISHED.fetch_add(1, Ordering::Relaxed);
}

/// Adds its resource to an integer, returns a text unchanged, and fails for any other value.
unsafe extern "C-unwind" fn answers(
    args: *mut TVMValue,
    codes: *mut c_int,
    _: c_int,
    result: *mut c_void,
    resource: *mut c_void,
) -> c_int {
    unsafe {
        match *codes {
            code::INT => (*args).v_int64 += *resource.cast::<i64>(),
            code::STR => {}
            _ => {
                TVMAPISetLastError(c"ValueError: not that".as_ptr());
                return -1;
            }
        }
        TVMCFuncSetReturn(result, args, codes, 1)
    }
}

#[test]
fn a_callback_is_registered_found_called_and_released() {
    let name = c"test.capi.answers";
    let resource = Box::into_raw(Box::new(40i64)).cast();
    let (mut made, mut found) = (ptr::null_mut(), ptr::null_mut());
    unsafe {
        let code = TVMFuncCreateFromCFunc(answers, resource, Some(finish), &mut made);
        assert_eq!(code, 0);
        assert_eq!(TVMFuncRegisterGlobal(name.as_ptr(), made, 0), 0);
        assert_eq!(TVMFuncGetGlobal(name.as_ptr(), &mut found), 0);
    }
    let (done, result, kind) = call(found, TVMValue { v_int64: 2 }, code::INT);
    assert_eq!((done, unsafe { result.v_int64 }, kind), (0, 42, code::INT));
    let text = c"a text that is longer than a cell";
    let v_str = text.as_ptr();
    let (done, result, kind) = call(found, TVMValue { v_str }, code::STR);
    assert_eq!((done, kind), (0, code::STR));
    assert_eq!(unsafe { CStr::from_ptr(result.v_str) }, text);
    assert_eq!(call(found, TVMValue { v_float64: 1.0 }, code::FLOAT).0, -1);
    assert!(last_error().contains("not that"), "{}", last_error());

    let (mut count, mut names) = (0, ptr::null::<*const c_char>());
    unsafe {
        assert_eq!(TVMFuncListGlobalNames(&mut count, &mut names), 0);
        let listed = (0..count as usize).map(|at| CStr::from_ptr(*names.add(at)));
        assert_eq!(listed.filter(|listed| *listed == name).count(), 1);
        assert_eq!(TVMFuncRemoveGlobal(name.as_ptr()), 0);
        assert_eq!(TVMFuncFree(found), 0);
        assert_eq!(FINISHED.load(Ordering::Relaxed), 0);
        assert_eq!(TVMFuncFree(made), 0);
    }
    assert_eq!(FINISHED.load(Ordering::Relaxed), 1);
}

#[test]
fn an_error_that_the_frontend_holds_is_code_2() {
    let name = c"test.capi.holds";
    let held = |_: &[tvmspec::value::AnyView<'_>]| {
        let kind = tvmspec::function::ErrorKind::Frontend;
        Err(tvmspec::function::Error::new(kind, "a signal"))
    };
    let held = tvmspec::function::Function::from_packed(held);
    tvmspec::function::registry::register(name.to_str().unwrap(), held, false).unwrap();
    let mut found = ptr::null_mut();
    unsafe {
        TVMAPISetLastError(c"before".as_ptr());
        assert_eq!(TVMFuncGetGlobal(name.as_ptr(), &mut found), 0);
    }
    assert_eq!(call(found, TVMValue { v_int64: 1 }, code::INT).0, -2);
    assert_eq!(last_error(), "before");
    assert_eq!(unsafe { TVMFuncFree(found) }, 0);
}

#[test]
fn a_call_without_arguments_has_no_arrays() {
    let counts = registered(c"test.capi.counts", |args| Ok((args.len() as i64).into()));
    let bare = |function: *mut c_void, count: c_int| {
        let (mut result, mut of) = (TVMValue::ZERO, code::NULL);
        let (values, codes) = (ptr::null_mut(), ptr::null_mut());
        let done = unsafe { TVMFuncCall(function, values, codes, count, &mut result, &mut of) };
        (done, unsafe { result.v_int64 }, of)
    };
    assert_eq!(bare(counts, 0), (0, 0, code::INT));
    assert_eq!(bare(counts, -1).0, -1);
    // Null is not a function.
    assert_eq!(bare(ptr::null_mut(), 0).0, -1);
    assert!(last_error().contains("null"), "{}", last_error());
    assert_eq!(unsafe { TVMFuncFree(counts) }, 0);
}

unsafe extern "C-unwind" fn fails_quietly(
    _: *mut TVMValue,
    _: *mut c_int,
    _: c_int,
    _: *mut c_void,
    _: *mut c_void,
) -> c_int {
    -1
}

#[test]
fn a_failure_has_its_own_text_once() {
    let mut quiet = ptr::null_mut();
    unsafe {
        let made = TVMFuncCreateFromCFunc(fails_quietly, ptr::null_mut(), None, &mut quiet);
        assert_eq!(made, 0);
        TVMAPISetLastError(c"ValueError: an old text".as_ptr());
    }
    assert_eq!(call(quiet, TVMValue { v_int64: 1 }, code::INT).0, -1);
    assert!(!last_error().contains("an old text"), "{}", last_error());
    // A frontend removes the kind from the start of the text once.
    let named = registered(c"test.capi.named", |_| {
        Err(Error::new(ErrorKind::Value, "ValueError: 3 is too much"))
    });
    assert_eq!(call(named, TVMValue { v_int64: 1 }, code::INT).0, -1);
    assert_eq!(last_error(), "ValueError: 3 is too much");
    for function in [quiet, named] {
        assert_eq!(unsafe { TVMFuncFree(function) }, 0);
    }
}

static COUNTED: [AtomicU32; 2] = [AtomicU32::new(0), AtomicU32::new(0)];

unsafe extern "C" fn count_in(error: *mut c_void) {
    assert!(!error.is_null());
    COUNTED[0].fetch_add(1, Ordering::Relaxed);
}

unsafe extern "C" fn count_out(error: *mut c_void) {
    assert!(!error.is_null());
    COUNTED[1].fetch_add(1, Ordering::Relaxed);
}

#[test]
fn an_error_of_the_frontend_is_counted_while_it_can_be() {
    let counted = || {
        COUNTED
            .each_ref()
            .map(|count| count.load(Ordering::Relaxed))
    };
    let register = |name: &CStr, address: *mut c_void| {
        assert_eq!(
            unsafe { TVMBackendRegisterEnvCAPI(name.as_ptr(), address) },
            0
        );
    };
    let own: *mut c_void = (&raw const COUNTED).cast_mut().cast();
    // Without a function that counts, the error is not held.
    unsafe { TVMAPISetLastPythonError(own) };
    assert!(TVMGetLastPythonError().is_null());
    register(c"Py_IncRef", count_in as *mut c_void);
    unsafe { TVMAPISetLastPythonError(own) };
    assert!(TVMGetLastPythonError().is_null());
    register(c"Py_DecRef", count_out as *mut c_void);
    // Null is not held either.
    unsafe { TVMAPISetLastPythonError(ptr::null_mut()) };
    assert!(TVMGetLastPythonError().is_null());
    assert_eq!(counted(), [0, 0]);
    unsafe { TVMAPISetLastPythonError(own) };
    assert_eq!((TVMGetLastPythonError(), counted()), (own, [1, 0]));
    // A frontend that ends unregisters its counting functions. The error that it left has no owner from then on.
    register(c"Py_DecRef", ptr::null_mut());
    TVMDropLastPythonError();
    assert!(TVMGetLastPythonError().is_null());
    assert_eq!(counted(), [1, 0]);
    register(c"Py_IncRef", ptr::null_mut());
}

unsafe extern "C-unwind" fn fails_with(
    args: *mut TVMValue,
    _: *mut c_int,
    _: c_int,
    _: *mut c_void,
    _: *mut c_void,
) -> c_int {
    unsafe { TVMAPISetLastError((*args).v_str) };
    -1
}

/// Returns the error of a C callback that left `text`.
fn error_of(text: &str) -> Error {
    let mut made = ptr::null_mut();
    let name = c"test.capi.fails_with";
    unsafe {
        let code = TVMFuncCreateFromCFunc(fails_with, ptr::null_mut(), None, &mut made);
        assert_eq!(code, 0);
        assert_eq!(TVMFuncRegisterGlobal(name.as_ptr(), made, 1), 0);
        assert_eq!(TVMFuncFree(made), 0);
    }
    let function = registry::lookup("test.capi.fails_with").unwrap();
    function.call((text,)).unwrap_err()
}

#[test]
fn a_text_is_taken_apart_as_releases_do() {
    // The expected values are those of `TVMGetLastError` of 0.8.0 and 0.19.0 for callbacks that left these texts.
    for (text, parsed) in [
        ("plain text", "TVMError: plain text"),
        ("ValueError: with kind", "ValueError: with kind"),
        (
            "EnvErrorAlreadySet: no object",
            "TVMError: EnvErrorAlreadySet: no object",
        ),
        ("Two words: no kind", "TVMError: Two words: no kind"),
        (
            "[12:00:00] file.cc:7: Check failed: a == b (1 vs. 2) : TypeError: inside",
            "TypeError: Check failed: a == b (1 vs. 2) : inside",
        ),
        (
            "[12:00:00] file.cc:7: InternalError: inside",
            "InternalError: inside",
        ),
        ("", "TVMError: "),
        ("  ValueError:   blanks", "ValueError: blanks"),
        ("first\nsecond", "TVMError: first\nsecond"),
        ("a.b_c9: dotted", "a.b_c9: dotted"),
        (
            "Check failed: (x) is false: y",
            "TVMError: Check failed: (x) is false: y",
        ),
    ] {
        assert_eq!(error_of(text).to_string(), parsed, "{text}");
    }
    let error = error_of("[12:00:00] file.cc:7: InternalError: inside");
    assert_eq!(error.backtrace(), "  File \"file.cc\", line 7\n");
    for odd in [
        "[",
        "[x",
        "[x y",
        "[x y:",
        "[x y:z: a",
        "[x :1:",
        ": a",
        ":",
    ] {
        assert!(!error_of(odd).kind().as_str().is_empty(), "{odd}");
    }
}
