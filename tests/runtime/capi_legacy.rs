//! The C interface of 0.8 to 0.20 as a C program uses it, from Rust and without a library, so that an interpreter can watch.
#![cfg(feature = "runtime")]
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "sequences of calls as a C program makes them, with handles from the calls before"
)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use tvmspec::capi::backend::*;
use tvmspec::capi::legacy::*;
use tvmspec::function::{Error, ErrorKind, Function, registry};
use tvmspec::module::parallel::GroupEnv;
use tvmspec::value::legacy::{TVMValue, code};
use tvmspec::value::{Any, AnyView, DLTensor, Header, ObjectRef, index};

static FINISHED: AtomicU32 = AtomicU32::new(0);

unsafe extern "C-unwind" fn finish(resource: *mut c_void) {
    drop(unsafe { Box::from_raw(resource.cast::<i64>()) });
    FINISHED.fetch_add(1, Ordering::Relaxed);
}

/// Returns an integer with its resource added, a text as it is; fails for anything else.
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

fn call(function: *mut c_void, mut value: TVMValue, mut of: c_int) -> (c_int, TVMValue, c_int) {
    let (mut result, mut result_code) = (TVMValue::ZERO, code::NULL);
    let done = unsafe {
        TVMFuncCall(
            function,
            &mut value,
            &mut of,
            1,
            &mut result,
            &mut result_code,
        )
    };
    (done, result, result_code)
}

fn last_error() -> String {
    unsafe { CStr::from_ptr(TVMGetLastError()) }
        .to_string_lossy()
        .into_owned()
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

unsafe extern "C-unwind" fn echo(
    args: *mut TVMValue,
    codes: *mut c_int,
    _: c_int,
    result: *mut c_void,
    _: *mut c_void,
) -> c_int {
    unsafe { TVMCFuncSetReturn(result, args, codes, 1) }
}

/// Calls `resource`, which returns a text, before it returns the name of a type.
unsafe extern "C-unwind" fn names_a_type(
    _: *mut TVMValue,
    _: *mut c_int,
    _: c_int,
    result: *mut c_void,
    resource: *mut c_void,
) -> c_int {
    let v_str = c"a text of a call within".as_ptr();
    assert_eq!(call(resource, TVMValue { v_str }, code::STR).0, 0);
    let v_str = c"posit".as_ptr();
    let (mut name, mut of) = (TVMValue { v_str }, code::STR);
    unsafe { TVMCFuncSetReturn(result, &mut name, &mut of, 1) }
}

#[test]
fn the_name_of_a_custom_type_comes_of_a_function_that_calls() {
    let name = c"runtime._datatype_get_type_name";
    let (mut echoes, mut names) = (ptr::null_mut(), ptr::null_mut());
    unsafe {
        let made = TVMFuncCreateFromCFunc(echo, ptr::null_mut(), None, &mut echoes);
        assert_eq!(made, 0);
        let made = TVMFuncCreateFromCFunc(names_a_type, echoes, None, &mut names);
        assert_eq!(made, 0);
        assert_eq!(TVMFuncRegisterGlobal(name.as_ptr(), names, 1), 0);
    }
    let v_type = tvmspec::value::DLDataType {
        code: 150,
        bits: 32,
        lanes: 1,
    };
    let (done, result, of) = call(echoes, TVMValue { v_type }, code::DATA_TYPE);
    assert_eq!((done, of), (0, code::STR), "{}", last_error());
    let text = unsafe { CStr::from_ptr(result.v_str) };
    assert_eq!(text, c"custom[posit]32");
    unsafe {
        assert_eq!(TVMFuncRemoveGlobal(name.as_ptr()), 0);
        assert_eq!(TVMFuncFree(names), 0);
        assert_eq!(TVMFuncFree(echoes), 0);
    }
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

/// `body` as a function of the old interface, under `name`.
fn registered(
    name: &CStr,
    body: impl Fn(&[AnyView<'_>]) -> Result<Any, Error> + Send + Sync + 'static,
) -> *mut c_void {
    let function = Function::from_packed(body);
    registry::register(name.to_str().unwrap(), function, true).unwrap();
    let mut found = ptr::null_mut();
    assert_eq!(unsafe { TVMFuncGetGlobal(name.as_ptr(), &mut found) }, 0);
    found
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
    // Nor is null a function.
    assert_eq!(bare(ptr::null_mut(), 0).0, -1);
    assert!(last_error().contains("null"), "{}", last_error());
    assert_eq!(unsafe { TVMFuncFree(counts) }, 0);
}

unsafe extern "C-unwind" fn never_ends(_: *mut Header, _: c_int) {}

#[test]
fn an_object_of_no_other_type_is_an_object() {
    let object = Box::leak(Box::new(Header::new(index::OBJECT, never_ends)));
    let object = unsafe { ObjectRef::from_raw(object) };
    let strong = object.header().strong_count();

    // As an argument of a callback, which returns it.
    let mut echoes = ptr::null_mut();
    let made = unsafe { TVMFuncCreateFromCFunc(echo, ptr::null_mut(), None, &mut echoes) };
    assert_eq!(made, 0);
    let v_handle = object.as_ptr().cast();
    let (done, result, of) = call(echoes, TVMValue { v_handle }, code::OBJECT);
    assert_eq!((done, of), (0, code::OBJECT), "{}", last_error());
    assert_eq!(unsafe { result.v_handle }, v_handle);
    assert_eq!(object.header().strong_count(), strong + 1);
    assert_eq!(unsafe { TVMObjectFree(result.v_handle) }, 0);

    // As the result of a function, and as what it was handed to move.
    let kept = Any::from(object.clone());
    let answers = registered(c"test.capi.object", move |_| Ok(kept.clone()));
    let (done, result, of) = call(answers, TVMValue { v_int64: 1 }, code::INT);
    assert_eq!((done, of), (0, code::OBJECT), "{}", last_error());
    assert_eq!(unsafe { result.v_handle }, v_handle);
    assert_eq!(unsafe { TVMObjectFree(result.v_handle) }, 0);
    let kinds = registered(c"test.capi.kind", |args| {
        Ok(i64::from(args[0].type_index()).into())
    });
    let mut slot: *mut c_void = v_handle;
    let v_handle = (&raw mut slot).cast();
    let (done, result, of) = call(kinds, TVMValue { v_handle }, code::RVALUE);
    assert_eq!((done, of), (0, code::INT), "{}", last_error());
    let kind = unsafe { result.v_int64 };
    assert!(
        [index::RVALUE_REF, index::OBJECT]
            .map(i64::from)
            .contains(&kind),
        "{kind}"
    );
    for function in [echoes, answers, kinds] {
        assert_eq!(unsafe { TVMFuncFree(function) }, 0);
    }
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
    // A frontend takes the kind off the front once.
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
    // Nothing to count with: it is not held.
    unsafe { TVMAPISetLastPythonError(own) };
    assert!(TVMGetLastPythonError().is_null());
    register(c"Py_IncRef", count_in as *mut c_void);
    unsafe { TVMAPISetLastPythonError(own) };
    assert!(TVMGetLastPythonError().is_null());
    register(c"Py_DecRef", count_out as *mut c_void);
    // Nor is nothing held.
    unsafe { TVMAPISetLastPythonError(ptr::null_mut()) };
    assert!(TVMGetLastPythonError().is_null());
    assert_eq!(counted(), [0, 0]);
    unsafe { TVMAPISetLastPythonError(own) };
    assert_eq!((TVMGetLastPythonError(), counted()), (own, [1, 0]));
    // A frontend that ends takes back what counts; what it left has no owner then.
    register(c"Py_DecRef", ptr::null_mut());
    TVMDropLastPythonError();
    assert!(TVMGetLastPythonError().is_null());
    assert_eq!(counted(), [1, 0]);
    register(c"Py_IncRef", ptr::null_mut());
}

#[test]
fn an_array_is_made_filled_shared_and_freed() {
    let mut bytes: Vec<u8> = (0..24).collect();
    let mut array = ptr::null_mut();
    let mut managed = ptr::null_mut();
    let mut back = ptr::null_mut();
    let mut other = ptr::null_mut();
    let mut read = [0u8; 24];
    unsafe {
        let shape = [2i64, 3];
        for place in [&mut array, &mut other] {
            assert_eq!(
                TVMArrayAlloc(shape.as_ptr(), 2, 2, 32, 1, 1, 0, place),
                0,
                "{}",
                last_error()
            );
        }
        // Memory of a device that there is not is none of the host either.
        let code = TVMArrayAlloc(shape.as_ptr(), 2, 2, 32, 1, 77, 0, &mut back);
        assert!(code == -1 && back.is_null());
        let data = bytes.as_mut_ptr().cast();
        assert_eq!(TVMArrayCopyFromBytes(array, data, 24), 0);
        assert_eq!(TVMArrayCopyFromBytes(array, data, 23), -1);
        let inside = (*array.cast::<DLTensor>()).data.cast::<u8>();
        let inside = inside.wrapping_add((*array.cast::<DLTensor>()).byte_offset as usize);
        assert_eq!(std::slice::from_raw_parts(inside, 24), &bytes[..]);
        assert_eq!(TVMArrayCopyFromTo(array, other, ptr::null_mut()), 0);
        assert_eq!(TVMArrayToDLPack(array, &mut managed), 0);
        assert_eq!(TVMArrayFree(array), 0);
        assert_eq!(TVMArrayFromDLPack(managed, &mut back), 0);
        for array in [other, back] {
            read.fill(0);
            assert_eq!(TVMArrayCopyToBytes(array, read.as_mut_ptr().cast(), 24), 0);
            assert_eq!(read[..], bytes[..]);
            assert_eq!(TVMArrayFree(array), 0);
        }
    }
}

struct Numbers {
    seen: [AtomicU32; 4],
}

unsafe extern "C" fn task(at: c_int, group: *mut GroupEnv, data: *mut c_void) -> c_int {
    let numbers = unsafe { &*data.cast::<Numbers>() };
    numbers.seen[at as usize].fetch_add(1, Ordering::Relaxed);
    let code = unsafe { TVMBackendParallelBarrier(at, group) };
    let count = unsafe { (*group).num_task } as usize;
    let all = numbers.seen[..count]
        .iter()
        .all(|seen| seen.load(Ordering::Relaxed) == 1);
    if code == 0 && all { 0 } else { -1 }
}

unsafe extern "C" fn count_up(data: *mut c_void) -> c_int {
    unsafe { &*data.cast::<AtomicU32>() }.fetch_add(1, Ordering::Relaxed);
    0
}

#[test]
fn compiled_code_has_workspace_workers_and_runs_once() {
    let (mut once, count) = (ptr::null_mut(), AtomicU32::new(0));
    let counter = (&raw const count).cast_mut().cast();
    let numbers = Numbers {
        seen: Default::default(),
    };
    unsafe {
        let first = TVMBackendAllocWorkspace(1, 0, 100, 2, 32);
        let second = TVMBackendAllocWorkspace(1, 0, 100, 2, 32);
        assert!(!first.is_null() && !second.is_null() && first != second);
        first.cast::<u8>().write_bytes(1, 100);
        second.cast::<u8>().write_bytes(2, 100);
        // Of a device that there is not, which has no workspace to free.
        assert_eq!(TVMBackendFreeWorkspace(77, 0, second), -1);
        assert_eq!(second.cast::<[u8; 100]>().read(), [2; 100]);
        assert_eq!(TVMBackendFreeWorkspace(1, 0, second), 0);
        assert_eq!(TVMBackendFreeWorkspace(1, 0, first), 0);
        for _ in 0..2 {
            assert_eq!(TVMBackendRunOnce(&mut once, count_up, counter, 0), 0);
        }
        let data = (&raw const numbers).cast_mut().cast();
        assert_eq!(
            TVMBackendParallelLaunch(task, data, 2),
            0,
            "{}",
            last_error()
        );
    }
    assert_eq!(count.load(Ordering::Relaxed), 1);
}

#[test]
fn types_have_keys_and_indices() {
    let (mut object, mut function, mut derived) = (0, 0, 0);
    let mut key = ptr::null_mut();
    let mut none = 0;
    unsafe {
        assert_eq!(
            TVMObjectTypeKey2Index(c"ffi.Object".as_ptr(), &mut object),
            0
        );
        assert_eq!(
            TVMObjectTypeKey2Index(c"ffi.Function".as_ptr(), &mut function),
            0
        );
        assert_eq!(TVMObjectTypeKey2Index(c"no.Such".as_ptr(), &mut none), -1);
        assert_eq!(TVMObjectDerivedFrom(function, object, &mut derived), 0);
        assert_eq!(TVMObjectTypeIndex2Key(function, &mut key), 0);
        assert_eq!(CStr::from_ptr(key), c"ffi.Function");
        free(key.cast());
    }
    assert_eq!(derived, 1);
}

unsafe extern "C" {
    fn free(memory: *mut c_void);
}

/// An initialiser that comes back to its own handle, and to another.
struct ComesBack {
    own: *mut c_void,
    other: *mut c_void,
    calls: u32,
}

unsafe extern "C" fn comes_back(data: *mut c_void) -> c_int {
    let data = data.cast::<ComesBack>();
    unsafe { (*data).calls += 1 };
    let own = unsafe { TVMBackendRunOnce(&raw mut (*data).own, comes_back, data.cast(), 0) };
    let other = unsafe { TVMBackendRunOnce(&raw mut (*data).other, comes_back, data.cast(), 0) };
    own | other
}

#[test]
fn an_initialiser_may_come_back() {
    let (sender, receiver) = std::sync::mpsc::channel();
    // On a thread of its own: before, it waited for itself.
    std::thread::spawn(move || {
        let mut data = ComesBack {
            own: ptr::null_mut(),
            other: ptr::null_mut(),
            calls: 0,
        };
        let place = &raw mut data;
        let code = unsafe { TVMBackendRunOnce(&raw mut (*place).own, comes_back, place.cast(), 0) };
        sender.send((code, data.calls, data.own.is_null())).unwrap();
    });
    let within = std::time::Duration::from_secs(20);
    // Once for each handle: the second call finds both running.
    assert_eq!(receiver.recv_timeout(within).unwrap(), (0, 2, false));
}
