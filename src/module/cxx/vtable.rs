//! The vtable of our modules, through which a C++ runtime in this process can call them.
//!
//! The table is written for x86-64, where a result with a destructor is returned through a hidden first argument. On other machines the
//! table only distinguishes our modules from others, and must not be called.
//!
//! A failure, including a panic, is thrown as the C++ class `tvm::ffi::Error`. If libstdc++ is not in the process, and on other
//! machines, the error is set on the thread and the result is empty.

use crate::function::{Error, ErrorKind, catch_panic, set_raised};
use crate::module::Module;
use crate::object::Array;
use crate::value::header::{Header, ObjectRef};
use crate::value::{Any, AnyView, Bytes, RawAny, Str, str_bytes};
use std::ffi::{CString, c_char, c_int, c_void};

type This = *mut c_void;

/// Offset to the top, type information, then the functions; a C++ object points to the third word.
#[repr(C)]
pub(in crate::module) struct ModuleVirtuals {
    pub(super) kind: unsafe extern "C-unwind" fn(This) -> *const c_char,
    pub(super) property_mask: unsafe extern "C-unwind" fn(This) -> c_int,
    pub(super) function:
        unsafe extern "C-unwind" fn(*mut *mut Header, This, *const RawAny) -> *mut *mut Header,
    pub(super) implements: unsafe extern "C-unwind" fn(This, *const RawAny) -> bool,
    pub(super) doc: unsafe extern "C-unwind" fn(*mut RawAny, This, *const RawAny) -> *mut RawAny,
    pub(super) metadata:
        unsafe extern "C-unwind" fn(*mut RawAny, This, *const RawAny) -> *mut RawAny,
    pub(super) write_to_file: unsafe extern "C-unwind" fn(This, *const RawAny, *const RawAny),
    pub(super) write_formats:
        unsafe extern "C-unwind" fn(*mut *mut Header, This) -> *mut *mut Header,
    pub(super) save_to_bytes: unsafe extern "C-unwind" fn(*mut RawAny, This) -> *mut RawAny,
    pub(super) inspect_source:
        unsafe extern "C-unwind" fn(*mut RawAny, This, *const RawAny) -> *mut RawAny,
    pub(super) import_module: unsafe extern "C-unwind" fn(This, *const *mut Header),
    pub(super) clear_imports: unsafe extern "C-unwind" fn(This),
}

#[repr(C)]
struct FullVtable {
    offset_to_top: isize,
    type_information: usize,
    table: ModuleVirtuals,
}

/// One table for all modules of this crate, whose address distinguishes them from C++ modules.
static WHOLE: FullVtable = FullVtable {
    offset_to_top: 0,
    type_information: 0,
    table: ModuleVirtuals {
        kind: kind_of,
        property_mask: mask_of,
        function: function_of,
        implements: implements_of,
        doc: doc_of,
        metadata: metadata_of,
        write_to_file,
        write_formats,
        save_to_bytes,
        inspect_source,
        import_module,
        clear_imports,
    },
};

/// Returns the table of every module of this crate.
pub(in crate::module) fn table() -> &'static ModuleVirtuals {
    // There is no type information: runtimes of TVM identify classes by their type index, and do not use `dynamic_cast`, which would read
    // it.
    debug_assert!(WHOLE.offset_to_top == 0 && WHOLE.type_information == 0);
    &WHOLE.table
}

fn module_of(this: This) -> Option<Module> {
    // SAFETY: virtual functions are called with a live module of this crate.
    unsafe { Module::from_context(this) }
}

fn text_of(cell: *const RawAny) -> String {
    // SAFETY: a `String const&` is the address of a live cell.
    let raw = unsafe { cell.read() };
    // SAFETY: the cell lives for the call, and the view is not kept longer.
    let view = unsafe { AnyView::from_raw(raw) };
    String::from_utf8_lossy(str_bytes(&view).unwrap_or_default()).into_owned()
}

/// Returns the result of `body`, or throws its error. No Rust frame that catches panics may be above this one, because a C++ exception must
/// not pass through it.
fn answer<T: Default>(this: This, body: impl FnOnce(&Module) -> Result<T, Error>) -> T {
    // FUN-07: a panic is caught here, before it reaches a C++ frame.
    let answered =
        catch_panic(|| module_of(this).map_or_else(|| Ok(T::default()), |module| body(&module)));
    let error = match answered {
        Ok(value) => return value,
        Err(error) => error,
    };
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    let error = super::throwing::throw(error);
    // Nothing can be thrown here. C++ gets an empty result and continues. A caller that checks the error of the thread finds it.
    set_raised(error);
    T::default()
}

unsafe fn write_result<T>(place: *mut T, value: T) -> *mut T {
    // SAFETY: the hidden argument is an uninitialised place for the result.
    unsafe { place.write(value) };
    place
}

unsafe extern "C-unwind" fn kind_of(this: This) -> *const c_char {
    intern(&answer(this, |module| Ok(module.kind())))
}

/// Returns a C string of `text` that is never freed; there are only few kinds.
fn intern(text: &str) -> *const c_char {
    use std::sync::{Mutex, PoisonError};
    static KNOWN: Mutex<Vec<CString>> = Mutex::new(Vec::new());
    // C++ may keep the address longer than the module lives.
    let text = CString::new(text).unwrap_or_default();
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known.iter().find(|known| **known == text) {
        return known.as_ptr();
    }
    let address = text.as_ptr();
    known.push(text);
    address
}

unsafe extern "C-unwind" fn mask_of(this: This) -> c_int {
    answer(this, |module| Ok(module.property_mask() as c_int))
}

/// Returns null, the empty optional of C++, if there is no such function.
unsafe extern "C-unwind" fn function_of(
    place: *mut *mut Header,
    this: This,
    name: *const RawAny,
) -> *mut *mut Header {
    let found = answer(this, |module| module.function(&text_of(name), false));
    let raw = found.map_or(std::ptr::null_mut(), |function| {
        function.into_object().into_raw()
    });
    // SAFETY: see `write_result`.
    unsafe { write_result(place, raw) }
}

unsafe extern "C-unwind" fn implements_of(this: This, name: *const RawAny) -> bool {
    answer(this, |module| module.implements(&text_of(name), false))
}

unsafe extern "C-unwind" fn doc_of(
    place: *mut RawAny,
    this: This,
    name: *const RawAny,
) -> *mut RawAny {
    let doc = answer(this, |module| module.doc(&text_of(name), false));
    // SAFETY: see `write_result`.
    unsafe { write_result(place, Any::from(doc).into_raw()) }
}

unsafe extern "C-unwind" fn metadata_of(
    place: *mut RawAny,
    this: This,
    name: *const RawAny,
) -> *mut RawAny {
    let metadata = answer(this, |module| module.metadata(&text_of(name), false));
    // SAFETY: see `write_result`.
    unsafe { write_result(place, Any::from(metadata).into_raw()) }
}

unsafe extern "C-unwind" fn write_to_file(this: This, path: *const RawAny, format: *const RawAny) {
    answer(this, |module| match module.implementation() {
        Some(own) => own.write_to_file(&text_of(path), &text_of(format)),
        None => Ok(()),
    });
}

/// Returns an array of texts, in the order of the kind.
unsafe extern "C-unwind" fn write_formats(place: *mut *mut Header, this: This) -> *mut *mut Header {
    let formats = answer(this, |module| {
        let own = module.implementation();
        Ok(own.map(|own| own.write_formats()).unwrap_or_default())
    });
    let array: Array = formats.into_iter().map(Any::from).collect();
    let array = array.into_object().into_raw();
    // SAFETY: see `write_result`.
    unsafe { write_result(place, array) }
}

unsafe extern "C-unwind" fn save_to_bytes(place: *mut RawAny, this: This) -> *mut RawAny {
    let bytes = answer(this, Module::save_to_bytes);
    // SAFETY: see `write_result`.
    unsafe { write_result(place, Any::from(Bytes::new(bytes)).into_raw()) }
}

unsafe extern "C-unwind" fn inspect_source(
    place: *mut RawAny,
    this: This,
    format: *const RawAny,
) -> *mut RawAny {
    let text = answer(this, |module| module.source(&text_of(format)));
    // SAFETY: see `write_result`.
    unsafe { write_result(place, Any::from(Str::new(text)).into_raw()) }
}

/// Imports a module (MOD-10), which is a C++ reference to a handle that the caller keeps.
unsafe extern "C-unwind" fn import_module(this: This, other: *const *mut Header) {
    answer(this, |module| {
        // SAFETY: a `Module const&` is the address of a handle that is not null.
        let other = unsafe { other.read() };
        // SAFETY: the handle is a reference to a live object.
        let other = unsafe { ObjectRef::retain(other) };
        let no_module = |_| Error::new(ErrorKind::Type, "only a module can be imported");
        // MOD-10: uses our own import function, which also detects a cycle through a C++ module.
        module.import(Module::from_object(other).map_err(no_module)?)
    });
}

unsafe extern "C-unwind" fn clear_imports(this: This) {
    answer(this, Module::clear_imports);
}
