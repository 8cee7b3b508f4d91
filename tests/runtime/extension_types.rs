//! Types of extensions (VAL-22): from Rust, from C++, and between the two.
#![cfg(feature = "runtime")]

use crate::support::skip::skipped;
use std::ffi::{CStr, c_int, c_void};
use std::path::Path;
use std::process::Command;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tvmspec::capi::legacy::*;
use tvmspec::function::{Function, registry};
use tvmspec::rule::{Kind, Violation};
use tvmspec::value::header::{dec_weak, inc_weak};
use tvmspec::value::legacy::{TVMValue, code};
use tvmspec::value::{Any, Extension, cast, register_extension};

/// A value with a shared counter, which says how many copies exist.
#[derive(Clone)]
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn copies(&self) -> usize {
        Arc::strong_count(&self.0)
    }
}

fn rule_and_kind(broken: &Violation) -> (&str, Kind) {
    (broken.rule().id(), broken.kind())
}

#[test]
fn a_rust_type_has_one_code_and_a_code_one_type() {
    #[derive(Clone, Debug, PartialEq)]
    struct First(u8);
    #[derive(Clone)]
    struct Second;
    let unknown = Extension::new(First(1)).unwrap_err();
    assert_eq!(rule_and_kind(&unknown), ("VAL-22", Kind::Missing));
    for outside in [-1, 0, 15, 128, i32::MIN, i32::MAX] {
        let broken = register_extension::<First>(outside).unwrap_err();
        assert_eq!(
            rule_and_kind(&broken),
            ("VAL-22", Kind::Missing),
            "{outside}"
        );
    }
    register_extension::<First>(16).unwrap();
    register_extension::<First>(16).unwrap();
    register_extension::<Second>(127).unwrap();
    let twice = register_extension::<First>(30).unwrap_err();
    assert_eq!(rule_and_kind(&twice), ("VAL-22", Kind::Duplicate));
    let taken = register_extension::<Counted>(16).unwrap_err();
    assert_eq!(rule_and_kind(&taken), ("VAL-22", Kind::Duplicate));

    let first = Extension::new(First(7)).unwrap();
    assert_eq!((first.code(), first.get::<First>()), (16, Some(&First(7))));
    assert!(first.get::<Second>().is_none());
    assert_eq!(Extension::new(Second).unwrap().code(), 127);
    assert_eq!(format!("{first:?}"), "<extension 16>");
    // Converting to a value and back gives the same handle.
    let value = Any::from(first.clone());
    let back: Extension = cast(value.view()).unwrap();
    assert_eq!(back.handle(), first.handle());
    // A value of another type is not an extension.
    let not = cast::<Extension>(Any::from(16i64).view()).unwrap_err();
    assert_eq!(not.rule().id(), "VAL-22");
    let text = Any::from("sixteen characters");
    assert!(cast::<Extension>(text.view()).is_err());
}

/// Calls a function with one value, as C does.
fn call(function: &Function, value: *mut c_void, of: c_int) -> Result<(TVMValue, c_int), String> {
    let (mut value, mut of) = (TVMValue { v_handle: value }, of);
    let (mut result, mut result_code) = (TVMValue::ZERO, code::NULL);
    let handle = function.clone().into_object().into_raw().cast();
    // SAFETY: the arguments are the handle of a function, one argument, and places for the result.
    let returned = unsafe {
        TVMFuncCall(
            handle,
            &mut value,
            &mut of,
            1,
            &mut result,
            &mut result_code,
        )
    };
    // SAFETY: this function owns the handle.
    unsafe { TVMFuncFree(handle) };
    match returned {
        0 => Ok((result, result_code)),
        // SAFETY: the text belongs to the failure, and this thread keeps it.
        _ => Err(unsafe { CStr::from_ptr(TVMGetLastError()) }
            .to_string_lossy()
            .into_owned()),
    }
}

#[test]
fn values_of_a_rust_type_pass_through_c() {
    const CODE: c_int = 70;
    register_extension::<Counted>(CODE).unwrap();
    let counted = Counted(Arc::default());
    let watched = counted.clone();
    // C has a handle that it owns.
    let owned = Extension::new(counted).unwrap();
    assert_eq!(watched.copies(), 2);

    // An argument that the function reads is copied for that time. One that it only passes on is not copied.
    let looks = Function::named(None, |extension: Extension| {
        let value = extension.get::<Counted>().unwrap();
        value.0.fetch_add(1, Ordering::Relaxed);
        value.copies() as i64
    });
    let (seen, of) = call(&looks, owned.handle(), CODE).unwrap();
    // SAFETY: the code says that it is an integer.
    assert_eq!((unsafe { seen.v_int64 }, of), (3, code::INT));
    assert_eq!(
        (watched.copies(), watched.0.load(Ordering::Relaxed)),
        (2, 1)
    );
    let counts = Function::from_packed(move |args| Ok(Any::from(args.len() as i64)));
    call(&counts, owned.handle(), CODE).unwrap();
    assert_eq!(watched.copies(), 2);

    // The caller owns a result. It is moved if nothing else holds it, and copied otherwise.
    let makes = {
        let watched = watched.clone();
        Function::from_packed(move |_| Ok(Extension::new(watched.clone())?.into()))
    };
    let (made, of) = call(&makes, ptr::null_mut(), code::NULL).unwrap();
    assert_eq!((of, watched.copies()), (CODE, 4));
    let keeps = {
        let owned = owned.clone();
        Function::from_packed(move |_| Ok(owned.clone().into()))
    };
    let (copied, of) = call(&keeps, ptr::null_mut(), code::NULL).unwrap();
    assert_eq!((of, watched.copies()), (CODE, 5));
    // SAFETY: a value with an extension code holds a handle.
    let made = unsafe { made.v_handle };
    // SAFETY: a value with an extension code holds a handle.
    let copied = unsafe { copied.v_handle };
    assert!(copied != owned.handle());
    for handle in [made, copied] {
        // SAFETY: a call returned this handle, which has this code.
        assert_eq!(unsafe { TVMExtTypeFree(handle, CODE) }, 0);
    }
    assert_eq!(watched.copies(), 3);

    // Null is neither copied nor destroyed.
    let returns = Function::from_packed(|args| Ok(args[0].to_any()));
    let (null, of) = call(&returns, ptr::null_mut(), CODE).unwrap();
    // SAFETY: a value with an extension code holds a handle.
    assert_eq!((unsafe { null.v_handle }, of), (ptr::null_mut(), CODE));
    // SAFETY: the handle is null.
    assert_eq!(unsafe { TVMExtTypeFree(ptr::null_mut(), CODE) }, 0);
    // A code without a type is not valid for an argument (VAL-19), and its values cannot be destroyed (VAL-22).
    let rejected = call(&returns, owned.handle(), CODE + 1).err().unwrap();
    assert!(rejected.contains("no value has type code 71"), "{rejected}");
    for unknown in [CODE + 1, 15, 128] {
        // SAFETY: nothing is destroyed.
        assert_eq!(unsafe { TVMExtTypeFree(owned.handle(), unknown) }, -1);
    }
    drop((owned, keeps, makes));
    assert_eq!(watched.copies(), 1);
}

/// `extension_types.cc` is loaded into this process, as a library of those releases is loaded beside a runtime.
#[test]
fn values_of_a_type_of_cxx() {
    let folder = tempfile::tempdir().unwrap();
    let (root, library) = (
        Path::new(env!("CARGO_MANIFEST_DIR")),
        folder.path().join("extension.so"),
    );
    let built = Command::new("g++")
        .args(["-std=c++11", "-Wall", "-shared", "-fPIC", "-O1", "-I"])
        .arg(root.join("include"))
        .arg("-o")
        .args([&library, &root.join("tests/runtime/extension_types.cc")])
        .status();
    match built {
        Ok(status) => assert!(status.success(), "extension_types.cc does not compile"),
        Err(why) => return skipped(format_args!("there is no g++: {why}")),
    }
    if !cfg!(target_os = "linux") {
        return skipped("the library finds this process's functions on Linux");
    }
    // SAFETY: this is a library of this project without initialisers.
    let library = unsafe { libloading::Library::new(library) }.unwrap();
    type Counts = unsafe extern "C" fn() -> c_int;
    let number = |name: &str| {
        // SAFETY: each function of the library has this type.
        let function = unsafe { library.get::<Counts>(name) }.unwrap();
        // SAFETY: the functions take no arguments.
        unsafe { function() }
    };
    let failed = number("extension_types_from_cxx");
    assert_eq!(
        failed, 0,
        "line {failed} of extension_types.cc does not hold"
    );
    assert_eq!(number("extension_types_alive"), 0);

    // Rust owns a value of a C++ type. It has no Rust type, and its handle is destroyed with it.
    let same = registry::lookup("test.extension.same").unwrap();
    assert_eq!(number("extension_types_cloned"), 2);
    let kept = Function::from_packed(|args| Ok(args[0].to_any()));
    let (null, of) = call(&kept, ptr::null_mut(), 17).unwrap();
    // SAFETY: a value with an extension code holds a handle.
    assert_eq!((unsafe { null.v_handle }, of), (ptr::null_mut(), 17));
    drop(same);
    registry::remove("test.extension.same");
    assert_eq!(number("extension_types_alive"), 0);
    // The table keeps the pair of functions, so the library must stay loaded.
    std::mem::forget(library);
}

unsafe extern "C" {
    /// Calls `ExtTypeVTable::RegisterInternal(int, ExtTypeVTable const&)`.
    #[link_name = "_ZN3tvm7runtime13ExtTypeVTable16RegisterInternalEiRKS1_"]
    fn register_table(
        type_code: c_int,
        table: *const [unsafe extern "C" fn(*mut c_void); 2],
    ) -> *const c_void;
}

unsafe extern "C" fn no_function(_: *mut c_void) {
    unreachable!("nothing was registered");
}

/// VAL-22: safe code has made values of the Rust type, and C functions would take them for values of a C type.
#[test]
fn no_table_of_cxx_takes_the_code_of_a_rust_type() {
    #[derive(Clone)]
    struct Shared(Arc<()>);
    register_extension::<Shared>(126).unwrap();
    let table = [no_function as unsafe extern "C" fn(*mut c_void); 2];
    // SAFETY: neither of the two functions is called.
    assert!(unsafe { register_table(126, &table) }.is_null());

    // A weak reference may become a strong one. The handle is copied while a weak reference exists.
    let counted = Shared(Arc::default());
    let value = Any::from(Extension::new(counted.clone()).unwrap());
    let object = value.into_object().unwrap();
    let pointer = object.as_ptr();
    // SAFETY: the object is alive.
    unsafe { inc_weak(pointer) };
    let last = Mutex::new(Some(Any::from(object)));
    let gives = Function::from_packed(move |_| Ok(last.lock().unwrap().take().unwrap()));
    let (made, of) = call(&gives, ptr::null_mut(), code::NULL).unwrap();
    assert_eq!((of, Arc::strong_count(&counted.0)), (126, 2));
    // SAFETY: the code is an extension code, so the value is a handle.
    let handle = unsafe { made.v_handle };
    // SAFETY: the handle has this code, and the caller owns it.
    assert_eq!(unsafe { TVMExtTypeFree(handle, of) }, 0);
    // SAFETY: this is the weak reference from above.
    unsafe { dec_weak(pointer) };
    assert_eq!(Arc::strong_count(&counted.0), 1);
}
