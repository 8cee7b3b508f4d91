//! A runtime of 0.21 with the C functions of 0.20. Values and calls are translated, so that it runs the cases of the earlier
//! releases.
//!
//! 0.21 calls functions as tvm-ffi does. Its objects, type indices and modules exist in no other release:
//!
//! | in 0.20                         | in 0.21                                                                     |
//! |---------------------------------|------------------------------------------------------------------------------|
//! | a code next to eight bytes      | `TVMFFIAny`, with other indices for arrays, maps, shapes and tensors          |
//! | a tensor as its description     | a tensor as its object, 16 bytes before the description                       |
//! | `TVMMod*`                       | functions `runtime.Module*` of the registry                                   |
//! | a text of the last error        | an error object, which the caller takes from the thread                       |

mod registry;
mod values;

use super::super::{RawHandle, Runtime, newer};
use crate::capi::legacy::{TVMPackedCFunc, TVMPackedCFuncFinalizer};
use crate::conformance::runtime::Libraries;
use crate::release::Layout;
use crate::tensor::{Device, Dtype};
use crate::value::legacy::{TVMValue, code};
use crate::value::{AnyPayload, ByteArray, RawAny, index};
use registry::{find, names, register, remove};
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;
use values::{HEADER, content, to_legacy_argument, to_legacy_result, view, without_nul};

type SafeCall = unsafe extern "C" fn(RawHandle, *const RawAny, c_int, *mut RawAny) -> c_int;

/// The functions of 0.21 that are called.
struct Functions {
    find: unsafe extern "C" fn(*const ByteArray, *mut RawHandle) -> c_int,
    set: unsafe extern "C" fn(*const ByteArray, RawHandle, c_int) -> c_int,
    call: SafeCall,
    create: unsafe extern "C" fn(
        RawHandle,
        SafeCall,
        Option<unsafe extern "C" fn(RawHandle)>,
        *mut RawHandle,
    ) -> c_int,
    own: unsafe extern "C" fn(*const RawAny, *mut RawAny) -> c_int,
    free: unsafe extern "C" fn(RawHandle) -> c_int,
    raised: unsafe extern "C" fn(*mut RawHandle),
    raise: unsafe extern "C" fn(*const c_char, *const c_char),
    dtype_text: unsafe extern "C" fn(*const Dtype, *mut RawHandle) -> c_int,
}

/// The functions of the runtime, of which a process has only one.
static FUNCTIONS: OnceLock<Functions> = OnceLock::new();

thread_local! {
    /// The text of the last error, which remains until the next.
    static ERROR: RefCell<CString> = RefCell::default();
}

/// The libraries of 0.21, which provide the functions of 0.20 by translation.
pub(in crate::conformance) struct Transition(Libraries);

impl Transition {
    /// Returns whether these are libraries of 0.21. They call functions as tvm-ffi does, and have no function that decrements a
    /// reference count.
    pub(in crate::conformance) fn is_release_0_21(libraries: &Libraries) -> bool {
        let has = |name: &str| libraries.symbol(name).is_some();
        has("TVMFFIFunctionCall") && !has("TVMFuncCall") && !has("TVMFFIObjectDecRef")
    }

    /// Wraps the libraries, whose functions this process then calls; `None` if one is missing.
    pub(in crate::conformance) fn new(libraries: Libraries) -> Option<Transition> {
        let runtime: &dyn Runtime = &libraries;
        let functions = Functions {
            find: newer!(runtime, "TVMFFIFunctionGetGlobal")?,
            set: newer!(runtime, "TVMFFIFunctionSetGlobal")?,
            call: newer!(runtime, "TVMFFIFunctionCall")?,
            create: newer!(runtime, "TVMFFIFunctionCreate")?,
            own: newer!(runtime, "TVMFFIAnyViewToOwnedAny")?,
            free: newer!(runtime, "TVMFFIObjectFree")?,
            raised: newer!(runtime, "TVMFFIErrorMoveFromRaised")?,
            raise: newer!(runtime, "TVMFFIErrorSetRaisedFromCStr")?,
            dtype_text: newer!(runtime, "TVMFFIDataTypeToString")?,
        };
        FUNCTIONS.get_or_init(|| functions);
        Some(Transition(libraries))
    }
}

impl Runtime for Transition {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn loads(&self, layout: Layout) -> bool {
        layout == Layout::V0_21
    }

    fn symbol(&self, name: &str) -> Option<*mut c_void> {
        let address = match name {
            "TVMFuncCall" => call as *const (),
            "TVMFuncCreateFromCFunc" => create as *const (),
            "TVMCFuncSetReturn" => set_callback_result as *const (),
            "TVMCbArgToReturn" => own_argument as *const (),
            "TVMFuncRegisterGlobal" => register as *const (),
            "TVMFuncGetGlobal" => find as *const (),
            "TVMFuncListGlobalNames" => names as *const (),
            "TVMFuncRemoveGlobal" => remove as *const (),
            "TVMFuncFree" | "TVMModFree" | "TVMObjectFree" => free_object as *const (),
            "TVMArrayFree" => free_array as *const (),
            "TVMArrayAlloc" => make_array as *const (),
            "TVMGetLastError" => last_error as *const (),
            "TVMAPISetLastError" => set_last_error as *const (),
            "TVMModLoadFromFile" => load as *const (),
            "TVMModImport" => import as *const (),
            "TVMModGetFunction" => function_of as *const (),
            // The functions that compiled code calls kept their names and types.
            _ => return self.0.symbol(name),
        };
        Some(address.cast_mut().cast())
    }
}

fn functions() -> &'static Functions {
    FUNCTIONS.get().expect("a runtime of 0.21 was opened")
}

fn drop_object(object: RawHandle) {
    // SAFETY: the caller owns one reference.
    unsafe { (functions().free)(object) };
}

/// Keeps the error that a call left on this thread as a text.
fn fail() -> c_int {
    let mut error = ptr::null_mut();
    // SAFETY: a valid out pointer.
    unsafe { (functions().raised)(&raw mut error) };
    let mut text = b"a call failed and left no error".to_vec();
    if !error.is_null() {
        // SAFETY: an error begins with its kind and its message, after the header.
        let kind = unsafe { content(error) };
        // SAFETY: as above.
        let message = unsafe { content(error.wrapping_byte_add(size_of::<ByteArray>())) };
        text = [kind, b": ", message].concat();
        drop_object(error);
    }
    keep_error(text)
}

fn keep_error(text: Vec<u8>) -> c_int {
    ERROR.set(without_nul(text));
    -1
}

/// Calls a function of 0.21.
fn call_ffi_function(function: RawHandle, args: &[RawAny]) -> Result<RawAny, c_int> {
    let mut out = RawAny::NONE;
    let count = c_int::try_from(args.len()).unwrap_or(c_int::MAX);
    // SAFETY: a function, that many arguments, and an out pointer.
    match unsafe { (functions().call)(function, args.as_ptr(), count, &raw mut out) } {
        0 => Ok(out),
        _ => Err(fail()),
    }
}

/// Calls the function of this name in the registry.
fn called_global(name: &str, args: &[RawAny]) -> Result<RawAny, c_int> {
    let mut function = ptr::null_mut();
    // SAFETY: a name and an out pointer.
    let code = unsafe { (functions().find)(&ByteArray::of(name.as_bytes()), &raw mut function) };
    if code != 0 || function.is_null() {
        return Err(keep_error(
            format!("there is no function `{name}`").into_bytes(),
        ));
    }
    let result = call_ffi_function(function, args);
    drop_object(function);
    result
}

/// Writes the object of a result to `out`, or null for other results.
///
/// # Safety
///
/// `out` is valid for a write.
unsafe fn hand_over(result: Result<RawAny, c_int>, out: *mut RawHandle) -> c_int {
    match result {
        Ok(any) => {
            let object = if any.is_object() {
                any.ptr()
            } else {
                ptr::null_mut()
            };
            // SAFETY: a valid out pointer, by this function's contract.
            unsafe { out.write(object) };
            0
        }
        Err(code) => code,
    }
}

unsafe extern "C-unwind" fn call(
    function: RawHandle,
    values: *mut TVMValue,
    codes: *mut c_int,
    count: c_int,
    value: *mut TVMValue,
    type_code: *mut c_int,
) -> c_int {
    let count = usize::try_from(count).unwrap_or(0);
    let args: Vec<RawAny> = (0..count)
        .map(|at| {
            // SAFETY: there are `count` values.
            let value = unsafe { values.wrapping_add(at).read() };
            // SAFETY: there is a code for every value.
            let code = unsafe { codes.wrapping_add(at).read() };
            // SAFETY: each value has the type of its code, as the caller of `TVMFuncCall` promises.
            unsafe { view((value, code)) }
        })
        .collect();
    match call_ffi_function(function, &args).and_then(to_legacy_result) {
        Ok((result, code)) => {
            // SAFETY: two out pointers.
            unsafe { value.write(result) };
            // SAFETY: as above.
            unsafe { type_code.write(code) };
            0
        }
        Err(code) => code,
    }
}

/// A callback of the suite, called by a function of 0.21.
struct Callback {
    body: TVMPackedCFunc,
    this: RawHandle,
    finish: Option<TVMPackedCFuncFinalizer>,
}

unsafe extern "C" fn create(
    body: TVMPackedCFunc,
    this: RawHandle,
    finish: Option<TVMPackedCFuncFinalizer>,
    out: *mut RawHandle,
) -> c_int {
    let callback = Box::into_raw(Box::new(Callback { body, this, finish }));
    // SAFETY: `run` and `free_callback` are made for a callback, and `out` is an out pointer.
    match unsafe { (functions().create)(callback.cast(), run, Some(free_callback), out) } {
        0 => 0,
        _ => fail(),
    }
}

/// Runs a callback, which leaves its result in the cell of the call, or its error as a text.
unsafe extern "C" fn run(
    this: RawHandle,
    args: *const RawAny,
    count: c_int,
    out: *mut RawAny,
) -> c_int {
    // SAFETY: made by `create`, and alive until `free_callback`.
    let callback = unsafe { &*this.cast::<Callback>() };
    let number = usize::try_from(count).unwrap_or(0);
    let (mut values, mut codes): (Vec<_>, Vec<_>) = (0..number)
        .map(|at| {
            // SAFETY: there are `count` arguments, which live for the call.
            let arg = unsafe { &*args.wrapping_add(at) };
            // SAFETY: as above.
            unsafe { to_legacy_argument(arg) }
        })
        .unzip();
    // SAFETY: the cell of the call.
    unsafe { out.write(RawAny::NONE) };
    // SAFETY: `count` values and codes, the cell as the handle of the result, and the context of the callback.
    let code = unsafe {
        (callback.body)(
            values.as_mut_ptr(),
            codes.as_mut_ptr(),
            count,
            out.cast(),
            callback.this,
        )
    };
    if code != 0 {
        let text = ERROR.with_borrow(Clone::clone);
        // SAFETY: two NUL-terminated strings that are copied.
        unsafe { (functions().raise)(c"RuntimeError".as_ptr(), text.as_ptr()) };
        return -1;
    }
    0
}

unsafe extern "C" fn free_callback(this: RawHandle) {
    // SAFETY: made by `create`; a function ends once.
    let callback = unsafe { Box::from_raw(this.cast::<Callback>()) };
    if let Some(finish) = callback.finish {
        // SAFETY: the finalizer belongs to the context of the callback.
        unsafe { finish(callback.this) };
    }
}

unsafe extern "C" fn set_callback_result(
    result: RawHandle,
    values: *mut TVMValue,
    codes: *mut c_int,
    count: c_int,
) -> c_int {
    if count != 1 {
        return keep_error(b"ValueError: a callback sets one result".to_vec());
    }
    // SAFETY: one value.
    let value = unsafe { values.read() };
    // SAFETY: there is also one code.
    let code = unsafe { codes.read() };
    // SAFETY: the value has the type of its code, as the caller promises.
    let view = unsafe { view((value, code)) };
    // SAFETY: a value and the cell of the call that `run` passes as the handle.
    match unsafe { (functions().own)(&raw const view, result.cast()) } {
        0 => 0,
        _ => fail(),
    }
}

unsafe extern "C" fn own_argument(value: *mut TVMValue, type_code: *mut c_int) -> c_int {
    // SAFETY: a value.
    let before = unsafe { value.read() };
    // SAFETY: its code is valid too.
    let code = unsafe { type_code.read() };
    // SAFETY: the value has the type of its code, as the caller promises.
    let view = unsafe { view((before, code)) };
    if view.is_object() {
        let mut owned = RawAny::NONE;
        // SAFETY: a value and an out pointer. The object is the same, with one reference more.
        unsafe { (functions().own)(&raw const view, &raw mut owned) };
    }
    0
}

unsafe extern "C" fn free_object(object: RawHandle) -> c_int {
    drop_object(object);
    0
}

unsafe extern "C" fn free_array(array: RawHandle) -> c_int {
    drop_object(array.wrapping_byte_sub(HEADER));
    0
}

unsafe extern "C" fn make_array(
    shape: *const i64,
    rank: c_int,
    class: c_int,
    bits: c_int,
    lanes: c_int,
    device_type: c_int,
    device_id: c_int,
    out: *mut RawHandle,
) -> c_int {
    let extents = (0..usize::try_from(rank).unwrap_or(0)).map(|at| {
        // SAFETY: a shape of that rank.
        let int = unsafe { shape.wrapping_add(at).read() };
        RawAny::of(index::INT, AnyPayload { int })
    });
    let extents: Vec<RawAny> = extents.collect();
    // All eight bytes are written, because a data type has only four.
    let mut dtype = RawAny::of(index::DATA_TYPE, AnyPayload { bits: 0 });
    dtype.payload.dtype = Dtype {
        code: class as u8,
        bits: bits as u8,
        lanes: lanes as u16,
    };
    let device = Device {
        kind: device_type,
        id: device_id,
    };
    let device = RawAny::of(index::DEVICE, AnyPayload { device });
    let made = called_global("ffi.Shape", &extents).and_then(|shape| {
        let args = [shape, dtype, device, RawAny::NONE];
        called_global("runtime.TVMArrayAllocWithScope", &args)
    });
    match made {
        Ok(array) => {
            // SAFETY: a valid out pointer.
            unsafe { out.write(array.ptr().wrapping_byte_add(HEADER)) };
            0
        }
        Err(code) => code,
    }
}

unsafe extern "C" fn last_error() -> *const c_char {
    ERROR.with_borrow(|text| text.as_ptr())
}

unsafe extern "C" fn set_last_error(text: *const c_char) {
    // SAFETY: a NUL-terminated string, by the contract of `TVMAPISetLastError`.
    let text = unsafe { CStr::from_ptr(text) };
    ERROR.set(text.to_owned());
}

unsafe extern "C" fn load(
    path: *const c_char,
    format: *const c_char,
    out: *mut RawHandle,
) -> c_int {
    let args = [path, format].map(|text| {
        let v_str = text.cast();
        // SAFETY: two NUL-terminated strings, by the contract of `TVMModLoadFromFile`.
        unsafe { view((TVMValue { v_str }, code::STR)) }
    });
    // SAFETY: a valid out pointer.
    unsafe { hand_over(called_global("runtime.ModuleLoadFromFile", &args), out) }
}

/// Returns a module as an argument.
fn module(ptr: RawHandle) -> RawAny {
    RawAny::of(index::MODULE, AnyPayload { ptr })
}

unsafe extern "C" fn import(into: RawHandle, other: RawHandle) -> c_int {
    let args = [module(into), module(other)];
    called_global("runtime.ModuleImport", &args).map_or_else(|code| code, |_| 0)
}

unsafe extern "C" fn function_of(
    of: RawHandle,
    name: *const c_char,
    deep: c_int,
    out: *mut RawHandle,
) -> c_int {
    let v_str = name.cast();
    // SAFETY: a NUL-terminated string, by the contract of `TVMModGetFunction`.
    let name = unsafe { view((TVMValue { v_str }, code::STR)) };
    let deep = RawAny::of(
        index::BOOL,
        AnyPayload {
            int: i64::from(deep != 0),
        },
    );
    let found = called_global("runtime.ModuleGetFunction", &[module(of), name, deep]);
    // SAFETY: a valid out pointer.
    unsafe { hand_over(found, out) }
}
