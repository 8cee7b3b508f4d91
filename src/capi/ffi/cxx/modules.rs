//! The members of `Module` and `ModuleObj`, which C++ calls by their mangled names.

use super::{or_throw, returned, text, throw};
use crate::function::{Error, ErrorKind};
use crate::module::{self, Module, context};
use crate::value::header::{Header, ObjectRef};
use crate::value::{Any, AnyView, RawAny, Str};
use std::ffi::c_void;

/// Implements `Module::LoadFromFile(String const&) -> Module`.
///
/// # Safety
/// As C++ calls it, for a file that keeps the contract of [`module::load`].
#[unsafe(export_name = "_ZN3tvm3ffi6Module12LoadFromFileERKNS0_6StringE")]
pub(crate) unsafe extern "C-unwind" fn load_from_file(
    out: *mut *mut Header,
    path: *const RawAny,
) -> *mut *mut Header {
    // SAFETY: `path` is a reference to a cell, as C++ calls it.
    let path = unsafe { text(path) };
    // SAFETY: the file keeps the contract of `module::load`, by this contract.
    let module = or_throw(unsafe { module::load_named(&path) });
    // SAFETY: `out` is the place of the result, as C++ calls it.
    unsafe { returned(out, module.into_object().into_raw()) }
}

/// Implements `Module::VisitContextSymbols(TypedFunction<void(String, void*)> const&)`.
///
/// # Safety
/// As C++ calls it.
#[unsafe(export_name = "_ZN3tvm3ffi6Module19VisitContextSymbolsERKNS0_13TypedFunctionIFvNS0_6StringEPvEEE")]
pub(crate) unsafe extern "C-unwind" fn visit_context_symbols(callback: *const *mut Header) {
    // SAFETY: `callback` is a reference to a handle, as C++ calls it.
    let callback = unsafe { callback.read() };
    // SAFETY: a `TypedFunction` is the handle of an object, as C++ calls it; its type is checked nevertheless.
    let object = unsafe { ObjectRef::retain(callback) };
    let Ok(function) = crate::function::Function::from_object(object) else {
        return;
    };
    for (name, address) in context::added() {
        let name = Str::new(&name);
        // SAFETY: the address of a symbol that was added under this name; `context::register` requires it to be valid.
        let address = unsafe { AnyView::handle(address) };
        or_throw(function.call_packed(&[(&name).into(), address]).map(drop));
    }
}

/// Returns the module that a virtual function is called on.
///
/// # Safety
/// `this` is a live module.
unsafe fn module_at(this: *mut c_void) -> Module {
    // SAFETY: `this` is a live module, by this contract.
    match unsafe { Module::from_context(this) } {
        Some(module) => module,
        None => throw(Error::new(ErrorKind::Runtime, "the module is null")),
    }
}

/// Implements `ModuleObj::GetFunction(String const&, bool) -> Optional<Function>`.
///
/// # Safety
/// As C++ calls it.
#[unsafe(export_name = "_ZN3tvm3ffi9ModuleObj11GetFunctionERKNS0_6StringEb")]
pub(crate) unsafe extern "C-unwind" fn module_get_function(
    out: *mut *mut Header,
    this: *mut c_void,
    name: *const RawAny,
    deep: bool,
) -> *mut *mut Header {
    // SAFETY: `this` is a live module, as C++ calls it.
    let module = unsafe { module_at(this) };
    // SAFETY: `name` is a reference to a cell, as C++ calls it.
    let name = unsafe { text(name) };
    let found = or_throw(module.function(&name, deep));
    // In C++, an optional reference is only the handle, and null is the empty optional.
    let handle = found.map_or(std::ptr::null_mut(), |function| {
        function.into_object().into_raw()
    });
    // SAFETY: `out` is the place of the result, as C++ calls it.
    unsafe { returned(out, handle) }
}

/// Implements `ModuleObj::GetFunctionMetadata(String const&, bool) -> Optional<String>`.
///
/// # Safety
/// As C++ calls it.
#[unsafe(export_name = "_ZN3tvm3ffi9ModuleObj19GetFunctionMetadataERKNS0_6StringEb")]
pub(crate) unsafe extern "C-unwind" fn module_get_metadata(
    out: *mut RawAny,
    this: *mut c_void,
    name: *const RawAny,
    deep: bool,
) -> *mut RawAny {
    // SAFETY: `this` is a live module, as C++ calls it.
    let module = unsafe { module_at(this) };
    // SAFETY: `name` is a reference to a cell, as C++ calls it.
    let name = unsafe { text(name) };
    let found = or_throw(module.metadata(&name, deep));
    // SAFETY: `out` is the place of the result, as C++ calls it.
    unsafe { returned(out, Any::from(found).into_raw()) }
}

/// Implements `ModuleObj::GetFunctionDoc(String const&, bool) -> Optional<String>`.
///
/// # Safety
/// As C++ calls it.
#[unsafe(export_name = "_ZN3tvm3ffi9ModuleObj14GetFunctionDocERKNS0_6StringEb")]
pub(crate) unsafe extern "C-unwind" fn module_get_doc(
    out: *mut RawAny,
    this: *mut c_void,
    name: *const RawAny,
    deep: bool,
) -> *mut RawAny {
    // SAFETY: `this` is a live module, as C++ calls it.
    let module = unsafe { module_at(this) };
    // SAFETY: `name` is a reference to a cell, as C++ calls it.
    let name = unsafe { text(name) };
    let found = or_throw(module.doc(&name, deep));
    // SAFETY: `out` is the place of the result, as C++ calls it.
    unsafe { returned(out, Any::from(found).into_raw()) }
}

/// Implements `ModuleObj::ImplementsFunction(String const&, bool) -> bool`.
///
/// # Safety
/// As C++ calls it.
#[unsafe(export_name = "_ZN3tvm3ffi9ModuleObj18ImplementsFunctionERKNS0_6StringEb")]
pub(crate) unsafe extern "C-unwind" fn module_implements(
    this: *mut c_void,
    name: *const RawAny,
    deep: bool,
) -> bool {
    // SAFETY: `this` is a live module, as C++ calls it.
    let module = unsafe { module_at(this) };
    // SAFETY: `name` is a reference to a cell, as C++ calls it.
    let name = unsafe { text(name) };
    or_throw(module.implements(&name, deep))
}

/// Implements `ModuleObj::ImportModule(Module const&)`.
///
/// # Safety
/// As C++ calls it.
#[unsafe(export_name = "_ZN3tvm3ffi9ModuleObj12ImportModuleERKNS0_6ModuleE")]
pub(crate) unsafe extern "C-unwind" fn import_module(this: *mut c_void, other: *const *mut Header) {
    // SAFETY: `this` is a live module, as C++ calls it.
    let module = unsafe { module_at(this) };
    // SAFETY: `other` is a reference to a handle, as C++ calls it.
    let other = unsafe { other.read() };
    // SAFETY: a `Module` is the handle of an object that lives for the call, as C++ calls it.
    let other = unsafe { ObjectRef::retain(other) };
    let Ok(other) = Module::from_object(other) else {
        throw(Error::new(ErrorKind::Type, "only a module can be imported"));
    };
    or_throw(module.import_in_object(other));
}

/// Implements `ModuleObj::ClearImports()`.
///
/// # Safety
/// As C++ calls it.
#[unsafe(export_name = "_ZN3tvm3ffi9ModuleObj12ClearImportsEv")]
pub(crate) unsafe extern "C-unwind" fn clear_imports(this: *mut c_void) {
    // SAFETY: `this` is a live module, as C++ calls it.
    let module = unsafe { module_at(this) };
    or_throw(module.clear_imports_in_object());
}
