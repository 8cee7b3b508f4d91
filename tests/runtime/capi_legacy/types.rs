//! Types by their keys and indices, and objects of unknown types.

use super::{call, last_error, registered};
use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use tvmspec::capi::legacy::*;
use tvmspec::value::legacy::{TVMValue, code};
use tvmspec::value::{Any, Header, ObjectRef, index};

unsafe extern "C-unwind" fn echo(
    args: *mut TVMValue,
    codes: *mut c_int,
    _: c_int,
    result: *mut c_void,
    _: *mut c_void,
) -> c_int {
    unsafe { TVMCFuncSetReturn(result, args, codes, 1) }
}

/// Calls `resource`, which returns a text, and then returns the name of a type.
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
    let v_type = tvmspec::tensor::Dtype::scalar(150, 32);
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

unsafe extern "C-unwind" fn never_ends(_: *mut Header, _: c_int) {}

#[test]
fn an_object_of_no_other_type_is_an_object() {
    let object = Box::leak(Box::new(Header::new(index::OBJECT, never_ends)));
    let object = unsafe { ObjectRef::from_raw(object) };
    let strong = object.header().strong_count();

    // The object is the argument of a callback, which returns it.
    let mut echoes = ptr::null_mut();
    let made = unsafe { TVMFuncCreateFromCFunc(echo, ptr::null_mut(), None, &mut echoes) };
    assert_eq!(made, 0);
    let v_handle = object.as_ptr().cast();
    let (done, result, of) = call(echoes, TVMValue { v_handle }, code::OBJECT);
    assert_eq!((done, of), (0, code::OBJECT), "{}", last_error());
    assert_eq!(unsafe { result.v_handle }, v_handle);
    assert_eq!(object.header().strong_count(), strong + 1);
    assert_eq!(unsafe { TVMObjectFree(result.v_handle) }, 0);

    // The object is the result of a function, and an argument passed by an r-value reference.
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
