//! The C interface of 0.8 to 0.20 (`tvm/runtime/c_runtime_api.h`), declared in `include/tvm_c_runtime_api.h`.
//!
//! The rules FUN-13 to FUN-24 are kept here: type codes of results, texts that stay on the thread, callbacks and their
//! resources. Every function returns 0, or -1 with a text that [`TVMGetLastError`] returns on the same thread.
//! Handles of modules, functions and objects are the objects of this crate; handles of arrays are the addresses of
//! their descriptions, as in every release of that time.

use crate::function::{Error, Function, caught, registry};
use crate::module::legacy::{self as convention, Arguments, give_result, view};
use crate::module::{self, Module, last_error};
use crate::object::reflect::{env, frontend};
use crate::tensor::Dtype;
use crate::value::header::{Header, dec_ref, inc_ref};
use crate::value::legacy::{TVMValue, code};
use crate::value::{Any, AnyView, index, types};
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr;

type Handle = *mut c_void;

/// Kind of the failure whose error object the frontend left here.
const FRONTEND_KIND: &str = "EnvErrorAlreadySet";

/// A callback of C: arguments, where its result goes, and what it was made with.
pub type TVMPackedCFunc = unsafe extern "C-unwind" fn(
    args: *mut TVMValue,
    codes: *mut c_int,
    count: c_int,
    result: Handle,
    resource: *mut c_void,
) -> c_int;

/// Ends the resource of a callback.
pub type TVMPackedCFuncFinalizer = unsafe extern "C-unwind" fn(resource: *mut c_void);

thread_local! {
    /// Strings that were given out, valid until the next call of the same function on this thread.
    static KEPT: RefCell<Kept> = RefCell::new(Kept::default());
}

#[derive(Default)]
struct Kept {
    result: Any,
    bytes: Box<[u8]>,
    array: TVMByteArray,
    names: Vec<CString>,
    pointers: Vec<*const c_char>,
}

impl Kept {
    /// A result for a caller of this convention: bytes as a byte array, a data type as its text.
    fn give(&mut self, returned: Any) -> Result<(TVMValue, c_int), Error> {
        match returned.type_index() {
            index::SMALL_BYTES | index::BYTES => {
                self.result = returned;
                let view = self.result.view();
                let bytes = crate::value::bytes_bytes(&view).unwrap_or_default();
                self.bytes = bytes.into();
                self.array.data = self.bytes.as_ptr().cast();
                self.array.size = self.bytes.len();
                let v_handle = (&raw mut self.array).cast();
                Ok((TVMValue { v_handle }, code::BYTES))
            }
            index::DATA_TYPE => {
                // As releases of this interface wrote it: bool is one bit, not a class of its own.
                let crate::value::DLDataType { code, bits, lanes } = returned.as_raw().dtype();
                let text = match code {
                    // Other than from 0.21 on, the bits stand behind the name (VAL-21).
                    Dtype::CUSTOM.. => {
                        let plain = Dtype {
                            code: Dtype::INT,
                            bits,
                            lanes,
                        };
                        let behind = plain.text(convention::SPOKEN)?;
                        let behind = behind.trim_start_matches("int");
                        format!("custom[{}]{behind}", crate::value::custom_name(code)?)
                    }
                    _ => Dtype { code, bits, lanes }.text(convention::SPOKEN)?,
                };
                give_result(Any::from(text), &mut self.result)
            }
            _ => give_result(returned, &mut self.result),
        }
    }
}

/// Runs `body` at the boundary: its error or panic becomes the text of this thread's last failure.
pub(super) fn guard(body: impl FnOnce() -> Result<(), Error>) -> c_int {
    let outcome = caught(|| {
        super::ffi::init();
        body()
    });
    outcome.map_or_else(report, |()| 0)
}

/// Leaves the error as text. The kind stands in front, as frontends of that time take it apart.
#[cold]
#[inline(never)]
fn report(error: Error) -> c_int {
    if error.kind() != FRONTEND_KIND {
        frontend::release();
    }
    let (kind, message) = (error.kind(), error.message());
    if message.starts_with(kind) {
        last_error::set(message);
    } else {
        last_error::set(&format!("{kind}: {message}"));
    }
    -1
}

/// # Safety
///
/// `text` must be null or a C string.
pub(super) unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str, Error> {
    if text.is_null() {
        return Err(Error::new("ValueError", format!("{what} is null")));
    }
    // SAFETY: `text` is not null, so a C string, by this contract.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str()
        .map_err(|_| Error::new("ValueError", format!("{what} is not UTF-8")))
}

/// # Safety
///
/// `place` must be null or valid for a write.
pub(super) unsafe fn put<T>(place: *mut T, value: T) -> Result<(), Error> {
    if place.is_null() {
        return Err(Error::new("ValueError", "the place for the result is null"));
    }
    // SAFETY: `place` is not null, so valid for a write, by this contract.
    unsafe { place.write(value) };
    Ok(())
}

/// The views of `count` arguments.
///
/// # Safety
///
/// `values` and `codes` must hold that many, or `count` be 0; each value is what its code says, and lives for `'a`.
unsafe fn views<'a>(
    values: *const TVMValue,
    codes: *const c_int,
    count: c_int,
) -> Result<Vec<AnyView<'a>>, Error> {
    let count = usize::try_from(count)
        .map_err(|_| Error::new("ValueError", "a negative number of arguments"))?;
    if count == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: `values` holds `count` of them, by this contract.
    let values = unsafe { std::slice::from_raw_parts(values, count) };
    // SAFETY: `codes` holds `count` of them, by this contract.
    let codes = unsafe { std::slice::from_raw_parts(codes, count) };
    // SAFETY: each value is what its code says and lives for `'a`, by this contract.
    let each = values
        .iter()
        .zip(codes)
        .map(|(value, code)| unsafe { view(*value, *code) });
    each.collect()
}

/// The text of the last failure on this thread; empty when there was none.
#[unsafe(no_mangle)]
pub extern "C" fn TVMGetLastError() -> *const c_char {
    last_error::pointer()
}

/// Leaves `message` as the failure of this thread: what a callback does before it returns -1.
///
/// # Safety
///
/// `message` must be null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMAPISetLastError(message: *const c_char) {
    if message.is_null() {
        return;
    }
    // SAFETY: `message` is not null, so a C string, by this contract.
    let message = unsafe { CStr::from_ptr(message) };
    frontend::release();
    last_error::set(&message.to_string_lossy());
}

/// Loads a module from a file; `format` is ignored, the extension says what it is.
///
/// # Safety
///
/// Both texts must be C strings, `out` a place for a handle, and the file code that keeps the contract of [`module::load`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMModLoadFromFile(
    file_name: *const c_char,
    _format: *const c_char,
    out: *mut Handle,
) -> c_int {
    guard(|| {
        // SAFETY: `file_name` is a C string, by this contract.
        let path = unsafe { text(file_name, "the file name") }?;
        // SAFETY: the file keeps the contract of `module::load`, by this contract.
        let module = unsafe { module::load_named(path) }?;
        // SAFETY: `out` is a place for a handle, by this contract.
        unsafe { put(out, module.into_object().into_raw().cast()) }
    })
}

/// Makes `module` import `dependency`.
///
/// # Safety
///
/// Both must be handles of modules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMModImport(module: Handle, dependency: Handle) -> c_int {
    guard(|| {
        // SAFETY: `module` is the handle of a module, by this contract.
        let module = unsafe { convention::module(module) }?;
        // SAFETY: `dependency` is the handle of a module, by this contract.
        let dependency = unsafe { convention::module(dependency) }?;
        module.import(dependency)
    })
}

/// The function `name` of a module; a null handle when there is none.
///
/// # Safety
///
/// `module` must be the handle of a module, `name` a C string, `out` a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMModGetFunction(
    module: Handle,
    name: *const c_char,
    query_imports: c_int,
    out: *mut Handle,
) -> c_int {
    guard(|| {
        // SAFETY: `module` is the handle of a module, by this contract.
        let module = unsafe { convention::module(module) }?;
        // SAFETY: `name` is a C string, by this contract.
        let name = unsafe { text(name, "the name") }?;
        let function = module.function(name, query_imports != 0)?;
        let handle = function.map_or(ptr::null_mut(), |function| {
            function.into_object().into_raw()
        });
        // SAFETY: `out` is a place for it, by this contract.
        unsafe { put(out, handle.cast()) }
    })
}

/// Drops the caller's reference of a module.
///
/// # Safety
///
/// `module` must be a handle that the caller owns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMModFree(module: Handle) -> c_int {
    // SAFETY: `module` is a handle that the caller owns, by this contract.
    unsafe { TVMObjectFree(module) }
}

/// Drops the caller's reference of a function.
///
/// # Safety
///
/// `function` must be a handle that the caller owns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFuncFree(function: Handle) -> c_int {
    // SAFETY: `function` is a handle that the caller owns, by this contract.
    unsafe { TVMObjectFree(function) }
}

/// Calls a function. A string in the result is valid until the next call on this thread; a handle in it belongs to the caller.
///
/// # Safety
///
/// `function` must be the handle of a function, `values` and `codes` hold `count` arguments that it takes, the last two be
/// places for the result.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFuncCall(
    function: Handle,
    values: *mut TVMValue,
    codes: *mut c_int,
    count: c_int,
    result: *mut TVMValue,
    result_code: *mut c_int,
) -> c_int {
    guard(|| {
        // SAFETY: `function` is the handle of a function, by this contract.
        let function = unsafe { convention::function(function) }?;
        // SAFETY: `values` and `codes` hold `count` arguments, by this contract.
        let args = unsafe { views(values, codes, count) }?;
        let returned = function.call(&args)?;
        // Strings and bytes stay here until the next call on this thread.
        let (value, code) = KEPT.with_borrow_mut(|kept| kept.give(returned))?;
        // SAFETY: `result` is a place for the result, by this contract; compiled code that wants no result passes places all the same.
        unsafe { put(result, value) }?;
        // SAFETY: `result_code` is a place for the code of the result, by this contract.
        unsafe { put(result_code, code) }
    })
}

fn is_lent(value: &Any) -> bool {
    let kinds = [
        index::SMALL_STR,
        index::STR,
        index::SMALL_BYTES,
        index::BYTES,
    ];
    kinds.contains(&value.type_index())
}

/// Sets the result of a callback; the value is copied, a handle counted.
///
/// # Safety
///
/// `result` must be what the callback was given, and `value` and `code` hold `count` values, at least one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMCFuncSetReturn(
    result: Handle,
    value: *mut TVMValue,
    code: *mut c_int,
    count: c_int,
) -> c_int {
    guard(|| {
        if count != 1 {
            return Err(Error::new(
                "ValueError",
                format!("a callback returns 1 value, not {count}"),
            ));
        }
        // SAFETY: `value` and `code` hold one value, by this contract.
        let returned = unsafe { views(value, code, 1) }?;
        // SAFETY: `result` is what the callback was given, by this contract: the `Any` of `TVMFuncCreateFromCFunc`.
        unsafe { *result.cast::<Any>() = returned[0].to_any() };
        Ok(())
    })
}

/// Turns an argument of a callback into a value that it owns.
///
/// # Safety
///
/// `value` and `code` must hold one argument of the callback, and be writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMCbArgToReturn(value: *mut TVMValue, code: *mut c_int) -> c_int {
    guard(|| {
        // SAFETY: `value` and `code` hold one argument, by this contract.
        let owned = unsafe { views(value, code, 1) }?[0].to_any();
        if is_lent(&owned) {
            return Err(Error::new(
                "ValueError",
                "text and bytes of an argument have no owner: copy them",
            ));
        }
        let mut kept = Any::none();
        let (now, now_code) = give_result(owned, &mut kept)?;
        // SAFETY: `value` holds an argument of the callback, by this contract, which may be written.
        unsafe { put(value, now) }?;
        // SAFETY: `code` holds the code of that argument, by this contract, which may be written.
        unsafe { put(code, now_code) }
    })
}

/// Makes a function of a callback.
///
/// # Safety
///
/// `callback` must be callable with `resource` from any thread until `finish` was called, once; `out` must be a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFuncCreateFromCFunc(
    callback: TVMPackedCFunc,
    resource: *mut c_void,
    finish: Option<TVMPackedCFuncFinalizer>,
    out: *mut Handle,
) -> c_int {
    guard(|| {
        let resource = Resource { resource, finish };
        let function = Function::from_packed(move |args| {
            let resource = &resource;
            let mut passed = Arguments::of(args)?;
            let mut result = Any::none();
            last_error::take();
            // SAFETY: `callback` is callable with `resource` from any thread, by this contract; the arrays hold the arguments.
            let returned = unsafe {
                callback(
                    passed.values.as_mut_ptr(),
                    passed.codes.as_mut_ptr(),
                    c_int::try_from(args.len()).unwrap_or(c_int::MAX),
                    (&raw mut result).cast(),
                    resource.resource,
                )
            };
            if returned == 0 {
                Ok(result)
            } else {
                Err(convention::failure(returned))
            }
        });
        // SAFETY: `out` is a place for it, by this contract.
        unsafe { put(out, function.into_object().into_raw().cast()) }
    })
}

struct Resource {
    resource: *mut c_void,
    finish: Option<TVMPackedCFuncFinalizer>,
}

// SAFETY: `TVMFuncCreateFromCFunc` makes it, by whose contract the resource may be used from any thread.
unsafe impl Send for Resource {}
// SAFETY: as for `Send`: several threads may use the resource at once.
unsafe impl Sync for Resource {}

impl Drop for Resource {
    fn drop(&mut self) {
        if let Some(finish) = self.finish {
            // SAFETY: `finish` may be called once, by the contract of `TVMFuncCreateFromCFunc`; the callback is not called any more.
            unsafe { finish(self.resource) }
        }
    }
}

/// Registers a global function.
///
/// # Safety
///
/// `name` must be a C string, `function` the handle of a function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFuncRegisterGlobal(
    name: *const c_char,
    function: Handle,
    override_existing: c_int,
) -> c_int {
    guard(|| {
        // SAFETY: `name` is a C string, by this contract.
        let name = unsafe { text(name, "the name") }?;
        // SAFETY: `function` is the handle of a function, by this contract.
        let function = unsafe { convention::function(function) }?;
        registry::register(name, function, override_existing != 0)
    })
}

/// The global function `name`; a null handle when there is none.
///
/// # Safety
///
/// `name` must be a C string, `out` a place for a handle. Who calls the function passes what it takes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFuncGetGlobal(name: *const c_char, out: *mut Handle) -> c_int {
    guard(|| {
        // SAFETY: `name` is a C string, by this contract.
        let name = unsafe { text(name, "the name") }?;
        // SAFETY: who calls the function passes what it takes, by this contract.
        let found = unsafe { registry::lookup_raw(name.as_bytes()) };
        let handle = found.map_or(ptr::null_mut(), |function| {
            function.into_object().into_raw()
        });
        // SAFETY: `out` is a place for it, by this contract.
        unsafe { put(out, handle.cast()) }
    })
}

/// The names of all global functions, valid until the next call of this on the same thread.
///
/// # Safety
///
/// Both must be places for the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFuncListGlobalNames(
    out_size: *mut c_int,
    out_array: *mut *const *const c_char,
) -> c_int {
    guard(|| {
        let names = registry::names()
            .into_iter()
            .filter_map(|name| CString::new(name).ok())
            .collect();
        let (count, pointers) = KEPT.with_borrow_mut(|kept| {
            kept.names = names;
            kept.pointers = kept.names.iter().map(|name| name.as_ptr()).collect();
            (kept.pointers.len(), kept.pointers.as_ptr())
        });
        // SAFETY: `out_size` is a place for the result, by this contract.
        unsafe { put(out_size, c_int::try_from(count).unwrap_or(c_int::MAX)) }?;
        // SAFETY: `out_array` is a place for the result, by this contract.
        unsafe { put(out_array, pointers) }
    })
}

/// Removes a global function.
///
/// # Safety
///
/// `name` must be a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFuncRemoveGlobal(name: *const c_char) -> c_int {
    guard(|| {
        // SAFETY: `name` is a C string, by this contract.
        let name = unsafe { text(name, "the name") }?;
        registry::remove(name);
        Ok(())
    })
}

/// The index of an object's type.
///
/// # Safety
///
/// `object` must be the handle of an object, `out` a place for the index.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMObjectGetTypeIndex(object: Handle, out: *mut c_uint) -> c_int {
    guard(|| {
        if object.is_null() {
            return Err(Error::new("ValueError", "a null handle"));
        }
        // SAFETY: `object` is not null, so the handle of an object, by this contract.
        let type_index = unsafe { (*object.cast::<Header>()).type_index };
        // SAFETY: `out` is a place for it, by this contract.
        unsafe { put(out, type_index.unsigned_abs()) }
    })
}

/// The index of a type key.
///
/// # Safety
///
/// `key` must be a C string, `out` a place for the index.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMObjectTypeKey2Index(key: *const c_char, out: *mut c_uint) -> c_int {
    guard(|| {
        // SAFETY: `key` is a C string, by this contract.
        let key = unsafe { text(key, "the type key") }?;
        let found = types::index_of(key).ok_or_else(|| {
            Error::new(
                "ValueError",
                format!("Cannot find type {key}: it is not registered"),
            )
        })?;
        // SAFETY: `out` is a place for it, by this contract.
        unsafe { put(out, found.unsigned_abs()) }
    })
}

/// The key of a type index, as memory of C's `malloc` that the caller frees.
///
/// # Safety
///
/// `out` must be a place for the text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMObjectTypeIndex2Key(
    type_index: c_uint,
    out: *mut *mut c_char,
) -> c_int {
    guard(|| {
        let known = c_int::try_from(type_index).ok().and_then(types::info);
        let known = known.ok_or_else(|| {
            Error::new(
                "ValueError",
                format!("type index {type_index} is not registered"),
            )
        })?;
        // SAFETY: `out` is a place for it, by this contract.
        unsafe { put(out, c_copy(known.key().as_bytes())) }
    })
}

/// Whether `child` is `parent` or derives from it.
///
/// # Safety
///
/// `out` must be a place for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMObjectDerivedFrom(child: u32, parent: u32, out: *mut c_int) -> c_int {
    guard(|| {
        let both = (c_int::try_from(child), c_int::try_from(parent));
        let derived = matches!(both, (Ok(child), Ok(parent)) if types::is_instance(child, parent));
        // SAFETY: `out` is a place for it, by this contract.
        unsafe { put(out, c_int::from(derived)) }
    })
}

/// Counts a reference of an object.
///
/// # Safety
///
/// `object` must be null or the handle of an object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMObjectRetain(object: Handle) -> c_int {
    // SAFETY: `object` is null or the handle of an object, by this contract.
    unsafe { inc_ref(object.cast()) };
    0
}

/// Drops the caller's reference of an object.
///
/// # Safety
///
/// `object` must be null or a handle that the caller owns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMObjectFree(object: Handle) -> c_int {
    guard(|| {
        // SAFETY: `object` is null or a handle that the caller owns, by this contract.
        unsafe { dec_ref(object.cast()) };
        Ok(())
    })
}

/// The function that compiled code of `module` means by `name`. The handle is borrowed: the module keeps it (MOD-13).
///
/// # Safety
///
/// `module` must be what a loader wrote into the library's context, `name` a C string, `out` a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMBackendGetFuncFromEnv(
    module: Handle,
    name: *const c_char,
    out: *mut Handle,
) -> c_int {
    guard(|| {
        // SAFETY: `module` is what a loader wrote into the library's context, by this contract.
        let module = unsafe { Module::from_context_or_handle(module) };
        // SAFETY: `name` is a C string, by this contract.
        let name = unsafe { text(name, "the name") }?;
        let module = module.ok_or_else(|| {
            Error::new("RuntimeError", "this library has no module to look through")
        })?;
        // SAFETY: only compiled code of a loaded library has `module`, and the contract of `module::load` covers its calls.
        let function = unsafe { module.environment(name, convention::SPOKEN) }?;
        module.keep_alive(&function);
        // SAFETY: `out` is a place for it, by this contract.
        unsafe { put(out, function.as_object().as_ptr().cast()) }
    })
}

/// A byte array as the interface passes it.
#[repr(C)]
pub struct TVMByteArray {
    /// First byte.
    pub data: *const c_char,
    /// Number of bytes.
    pub size: usize,
}

impl Default for TVMByteArray {
    fn default() -> TVMByteArray {
        TVMByteArray {
            data: ptr::null(),
            size: 0,
        }
    }
}

/// Frees a byte array. Those in results of [`TVMFuncCall`] belong to the thread: for them this does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn TVMByteArrayFree(_array: *mut TVMByteArray) -> c_int {
    0
}

/// Ends the process with the last failure of this thread: the caller has no way to go on (0.15 on).
#[unsafe(no_mangle)]
pub extern "C" fn TVMThrowLastError() {
    // SAFETY: `pointer` is never null and ends with a NUL.
    let text = unsafe { CStr::from_ptr(last_error::pointer()) };
    eprintln!("{}", text.to_string_lossy());
    std::process::abort()
}

/// The backtrace of the last failure: empty, this crate keeps none for this interface (0.15 on).
#[unsafe(no_mangle)]
pub extern "C" fn TVMGetLastBacktrace() -> *const c_char {
    c"".as_ptr()
}

/// Leaves an error object of the frontend on this thread (0.14 on): what a callback of Python does before it returns -1.
/// The object is counted until another failure takes its place or the frontend drops it (FUN-25).
///
/// # Safety
///
/// `error` must be null or a live object for the functions that [`TVMBackendRegisterEnvCAPI`] was given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMAPISetLastPythonError(error: *mut c_void) {
    // SAFETY: `error` is null or an object of the frontend, by this contract.
    let held = unsafe { frontend::hold(error) };
    let text = match held {
        true => "the frontend holds the error of this call",
        false => "the frontend left an error and registered no functions to hold it",
    };
    last_error::set(&format!("{FRONTEND_KIND}: {text}"));
}

/// The error object that the frontend left on this thread, or null (0.14 on). It is borrowed: the frontend counts it once
/// more where it keeps it, before [`TVMDropLastPythonError`].
#[unsafe(no_mangle)]
pub extern "C" fn TVMGetLastPythonError() -> *mut c_void {
    frontend::held()
}

/// Forgets the error object that the frontend left on this thread (0.14 on).
#[unsafe(no_mangle)]
pub extern "C" fn TVMDropLastPythonError() {
    frontend::release();
}

/// Registers a function of the frontend under CPython's name for it: `Py_IncRef`, `Py_DecRef`, `PyGILState_Ensure`,
/// `PyGILState_Release`, `PyErr_CheckSignals`. A name that is none of these is refused.
///
/// # Safety
///
/// `name` must be a C string, `address` null or that function, callable from any thread until the process ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMBackendRegisterEnvCAPI(
    name: *const c_char,
    address: *mut c_void,
) -> c_int {
    guard(|| {
        // SAFETY: `name` is a C string, by this contract.
        let name = unsafe { text(name, "the name") }?;
        // SAFETY: `address` is null or the function of that name, by this contract.
        match unsafe { frontend::register_count(name.as_bytes(), address) } {
            true => Ok(()),
            // SAFETY: `address` is null or the function of that name, by this contract.
            false => unsafe { env::register_hook(name.as_bytes(), address) },
        }
    })
}

unsafe extern "C" {
    fn malloc(size: usize) -> *mut c_void;
}

/// A copy with a NUL behind, from C's allocator.
fn c_copy(bytes: &[u8]) -> *mut c_char {
    // SAFETY: `malloc` allocates any size that is not 0, or returns null.
    let copy = unsafe { malloc(bytes.len() + 1) }.cast::<u8>();
    if !copy.is_null() {
        // SAFETY: the block is new and holds one byte more than `bytes`.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), copy, bytes.len()) };
        // SAFETY: the block holds one byte more than `bytes`.
        let end = unsafe { copy.add(bytes.len()) };
        // SAFETY: the last byte of the block.
        unsafe { end.write(0) };
    }
    copy.cast()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::DLDataType;

    #[test]
    fn a_data_type_comes_back_in_the_words_of_its_time() {
        for (code, bits, text) in [(1, 1, "bool"), (2, 32, "float32"), (1, 8, "uint8")] {
            let lanes = 1;
            // It keeps the text that it gives.
            let mut kept = Kept::default();
            let dtype = Any::from(DLDataType { code, bits, lanes });
            let (value, code) = kept.give(dtype).unwrap();
            assert_eq!(code, super::code::STR);
            // SAFETY: the code says that it is a text.
            let given = unsafe { value.v_str };
            // SAFETY: a C string, which `kept` holds.
            let given = unsafe { CStr::from_ptr(given) };
            assert_eq!(given.to_str(), Ok(text));
        }
    }
}
