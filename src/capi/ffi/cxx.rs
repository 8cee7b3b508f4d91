//! What C++ consumers of `libtvm_ffi.so` link beside the C interface: functions by their mangled names, and the type
//! information and virtual table of the two classes whose inline members refer to them.
//!
//! Written for x86-64 System V with libstdc++, where a result that owns something is written through a hidden first
//! argument and no function here takes one by value. An error leaves as a C++ exception of the class `tvm::ffi::Error`;
//! frames of Rust between here and the handler unwind.
//!
//! All functions have one contract, "as C++ calls it": the caller is C++ code that was compiled against the declaration that
//! the function is named for.
//!
//! * A hidden `out` is an uninitialised place for the result, which the function fills unless it throws.
//! * `this` is a live module.
//! * A reference is the address of a live object of the declared class, which stays as it is for the call: a cell for `Any`,
//!   `String` and optional values, a handle for object references. A pointer is null or such an address, which may be written.

use crate::function::{Error, ErrorKind, Result};
use crate::module::cxx::throwing::{self, Exception};
use crate::module::{self, Module, context};
use crate::object::walk::copy;
use crate::object::walk::visit::paths::find_access_paths as find_paths;
use crate::object::{Array, graph, json, recursive, repr, structural};
use crate::value::header::{Header, ObjectRef};
use crate::value::{Any, AnyView, RawAny, Str, cast, str_bytes};
use std::ffi::{c_int, c_void};
use std::mem::ManuallyDrop;

#[link(name = "stdc++")]
unsafe extern "C-unwind" {
    fn __cxa_allocate_exception(size: usize) -> *mut c_void;
    fn __cxa_throw(
        exception: *mut c_void,
        type_information: *const c_void,
        destroy: unsafe extern "C-unwind" fn(*mut c_void),
    ) -> !;
    fn __cxa_pure_virtual();
    #[link_name = "_ZTVN10__cxxabiv117__class_type_infoE"]
    static CLASS_TABLE: [usize; 4];
    #[link_name = "_ZTVN10__cxxabiv121__vmi_class_type_infoE"]
    static VMI_TABLE: [usize; 4];
    #[link_name = "_ZTISt9exception"]
    static STD_EXCEPTION: [usize; 2];
}

/// A word of a table: an address or a number.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Word(*const c_void);

// SAFETY: tables never change.
unsafe impl Sync for Word {}

impl Word {
    const fn number(value: usize) -> Word {
        Word(std::ptr::without_provenance(value))
    }

    const fn of<T>(target: *const T) -> Word {
        Word(target.cast())
    }

    const fn code(function: *const ()) -> Word {
        Word(function.cast())
    }
}

/// The part of a C++ table that objects point at: behind the offset to the top and the type information.
const fn body<T>(table: *const T) -> Word {
    Word(table.cast::<usize>().wrapping_add(2).cast())
}

/// Name of the class, as C++ mangles it.
#[unsafe(export_name = "_ZTSN3tvm3ffi5ErrorE")]
pub(crate) static ERROR_NAME: [u8; 17] = *b"N3tvm3ffi5ErrorE\0";
/// Name of the class, as C++ mangles it.
#[unsafe(export_name = "_ZTSN3tvm3ffi9ModuleObjE")]
pub(crate) static MODULE_NAME: [u8; 21] = *b"N3tvm3ffi9ModuleObjE\0";
static OBJECT_REF_TEXT: [u8; 21] = *b"N3tvm3ffi9ObjectRefE\0";
static OBJECT_TEXT: [u8; 18] = *b"N3tvm3ffi6ObjectE\0";

/// Two 32-bit fields of a type information as one word: flags and number of bases.
const fn flags_and_bases(flags: u32, bases: u32) -> Word {
    Word::number((bases as usize) << 32 | flags as usize)
}

/// Where a public base lies in the class.
const fn public_base_at(offset: usize) -> Word {
    Word::number(offset << 8 | 2)
}

static OBJECT_REF_INFO: [Word; 2] = [
    body(&raw const CLASS_TABLE),
    Word::of(&raw const OBJECT_REF_TEXT),
];
static OBJECT_INFO: [Word; 2] = [
    body(&raw const CLASS_TABLE),
    Word::of(&raw const OBJECT_TEXT),
];

/// Type information of `tvm::ffi::Error`: an `ObjectRef` at 8 and a `std::exception` at 0.
#[unsafe(export_name = "_ZTIN3tvm3ffi5ErrorE")]
pub(crate) static ERROR_INFO: [Word; 7] = [
    body(&raw const VMI_TABLE),
    Word::of(&raw const ERROR_NAME),
    flags_and_bases(0, 2),
    Word::of(&raw const OBJECT_REF_INFO),
    public_base_at(8),
    Word::of(&raw const STD_EXCEPTION),
    public_base_at(0),
];

/// Virtual table of `tvm::ffi::Error`.
#[unsafe(export_name = "_ZTVN3tvm3ffi5ErrorE")]
pub(crate) static ERROR_TABLE: [Word; 5] = [
    Word::number(0),
    Word::of(&raw const ERROR_INFO),
    Word::code(throwing::destroy as *const ()),
    Word::code(throwing::delete as *const ()),
    Word::code(throwing::what as *const ()),
];

/// Type information of `tvm::ffi::ModuleObj`: an `Object` at 8.
#[unsafe(export_name = "_ZTIN3tvm3ffi9ModuleObjE")]
pub(crate) static MODULE_INFO: [Word; 5] = [
    body(&raw const VMI_TABLE),
    Word::of(&raw const MODULE_NAME),
    flags_and_bases(0, 1),
    Word::of(&raw const OBJECT_INFO),
    public_base_at(8),
];

/// Virtual table of the abstract class `tvm::ffi::ModuleObj`. Classes derived from it bring their own copies of all but
/// the last two functions.
#[unsafe(export_name = "_ZTVN3tvm3ffi9ModuleObjE")]
pub(crate) static MODULE_TABLE: [Word; 14] = [
    Word::number(0),
    Word::of(&raw const MODULE_INFO),
    Word::code(__cxa_pure_virtual as *const ()),
    Word::code(base_property_mask as *const ()),
    Word::code(__cxa_pure_virtual as *const ()),
    Word::code(__cxa_pure_virtual as *const ()),
    Word::code(base_no_text as *const ()),
    Word::code(base_no_text as *const ()),
    Word::code(base_write as *const ()),
    Word::code(base_formats as *const ()),
    Word::code(base_save as *const ()),
    Word::code(base_no_text as *const ()),
    Word::code(import_module as *const ()),
    Word::code(clear_imports as *const ()),
];

unsafe extern "C-unwind" fn base_property_mask(_: *mut c_void) -> c_int {
    0
}

unsafe extern "C-unwind" fn base_no_text(
    out: *mut RawAny,
    _: *mut c_void,
    _: *const RawAny,
) -> *mut RawAny {
    // SAFETY: `out` is the place of the result, as C++ calls it; None is the absent optional, and an empty string where
    // one is needed.
    unsafe { give(out, Any::none().into_raw()) }
}

unsafe extern "C-unwind" fn base_write(_: *mut c_void, _: *const RawAny, _: *const RawAny) {
    throw(Error::new(
        ErrorKind::Runtime,
        "this module does not support WriteToFile",
    ))
}

unsafe extern "C-unwind" fn base_save(_: *mut RawAny, _: *mut c_void) -> *mut RawAny {
    throw(Error::new(
        ErrorKind::Runtime,
        "this module does not support SaveToBytes",
    ))
}

unsafe extern "C-unwind" fn base_formats(
    out: *mut *mut Header,
    _: *mut c_void,
) -> *mut *mut Header {
    // SAFETY: `out` is the place of the result, as C++ calls it.
    unsafe { give(out, Array::new(Vec::new()).into_object().into_raw()) }
}

/// Throws an error as C++ does.
fn throw(error: Error) -> ! {
    // SAFETY: the runtime gives memory for an exception of any size.
    let memory = unsafe { __cxa_allocate_exception(size_of::<Exception>()) };
    let exception = Exception {
        table: body(&raw const ERROR_TABLE).0,
        error: error.into_object().into_raw(),
    };
    // SAFETY: `memory` has that size, and the alignment of every type.
    unsafe { memory.cast::<Exception>().write(exception) };
    // SAFETY: `memory` holds an exception with the table of its class, and the type information of that class.
    unsafe { __cxa_throw(memory, (&raw const ERROR_INFO).cast(), throwing::destroy) }
}

fn or_throw<T>(result: Result<T>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => throw(error),
    }
}

/// Writes a result and returns its place, as C++ expects.
///
/// # Safety
/// `place` is an uninitialised place for the result.
unsafe fn give<T>(place: *mut T, value: T) -> *mut T {
    // SAFETY: `place` is uninitialised and writable, by this contract.
    unsafe { place.write(value) };
    place
}

/// The value behind a reference.
///
/// # Safety
/// `cell` is a reference to a cell that lives for `'a`.
unsafe fn view<'a>(cell: *const RawAny) -> AnyView<'a> {
    // SAFETY: `cell` is a reference to a cell, by this contract.
    let cell = unsafe { cell.read() };
    // SAFETY: the cell lives for `'a`, by this contract.
    unsafe { AnyView::from_raw(cell) }
}

/// The text of a string behind a reference.
///
/// # Safety
/// `cell` is a reference to a cell.
unsafe fn text(cell: *const RawAny) -> String {
    // SAFETY: `cell` is a reference to a cell, by this contract, which lives for the call.
    let view: AnyView<'_> = unsafe { view(cell) };
    String::from_utf8_lossy(str_bytes(&view).unwrap_or_default()).into_owned()
}

/// `json::Parse(String const&, String*) -> Any`: throws only when there is no place for the message.
///
/// # Safety
/// As C++ calls it.
#[unsafe(export_name = "_ZN3tvm3ffi4json5ParseERKNS0_6StringEPS2_")]
pub(crate) unsafe extern "C-unwind" fn json_parse(
    out: *mut RawAny,
    source: *const RawAny,
    message: *mut RawAny,
) -> *mut RawAny {
    // SAFETY: `source` is a reference to a cell, as C++ calls it.
    let source: AnyView<'_> = unsafe { view(source) };
    let parsed = json::parse(str_bytes(&source).unwrap_or_default());
    let value = if message.is_null() {
        or_throw(parsed)
    } else {
        let (value, said) = match parsed {
            Ok(value) => (value, Str::new("")),
            Err(error) => (Any::none(), Str::new(error.message())),
        };
        // SAFETY: `message` is not null, so the address of a string that may be written, as C++ calls it.
        drop(unsafe { message.cast::<Any>().replace(said.into()) });
        value
    };
    // SAFETY: `out` is the place of the result, as C++ calls it.
    unsafe { give(out, value.into_raw()) }
}

/// `json::Stringify(Any const&, Optional<int> const&) -> String`
///
/// # Safety
/// As C++ calls it.
#[unsafe(export_name = "_ZN3tvm3ffi4json9StringifyERKNS0_3AnyERKNS0_8OptionalIivEE")]
pub(crate) unsafe extern "C-unwind" fn json_stringify(
    out: *mut RawAny,
    value: *const RawAny,
    indent: *const RawAny,
) -> *mut RawAny {
    // SAFETY: `indent` is a reference to a cell, as C++ calls it.
    let indent = unsafe { view(indent) };
    let indent = or_throw(cast::<Option<i64>>(indent).map_err(Error::from));
    // SAFETY: `value` is a reference to a cell, as C++ calls it.
    let value = unsafe { view(value) };
    let text = or_throw(json::stringify(value, indent.unwrap_or(0)));
    // SAFETY: `out` is the place of the result, as C++ calls it.
    unsafe { give(out, Any::from(text).into_raw()) }
}

/// `std::optional<int>`, which `Optional<int>` is up to tvm-ffi 0.1.12; from 0.1.13 on that is a cell.
#[repr(C)]
pub(crate) struct OptionalInt {
    value: c_int,
    engaged: bool,
}

/// `json::Stringify(Any const&, Optional<int>) -> String`, as it is up to tvm-ffi 0.1.12: TVM 0.22 to 0.25 link to it. The
/// class has a copy constructor of its own, so that it is passed by its address.
///
/// # Safety
/// As C++ calls it.
#[unsafe(export_name = "_ZN3tvm3ffi4json9StringifyERKNS0_3AnyENS0_8OptionalIivEE")]
pub(crate) unsafe extern "C-unwind" fn json_stringify_by_value(
    out: *mut RawAny,
    value: *const RawAny,
    indent: *const OptionalInt,
) -> *mut RawAny {
    // SAFETY: `indent` is an argument passed by its address, which lives for the call, as C++ calls it.
    let indent = unsafe { &*indent };
    let indent = indent.engaged.then_some(indent.value);
    // SAFETY: `value` is a reference to a cell, as C++ calls it.
    let value: AnyView<'_> = unsafe { view(value) };
    let text = or_throw(json::stringify(value, indent.map_or(0, i64::from)));
    // SAFETY: `out` is the place of the result, as C++ calls it.
    unsafe { give(out, Any::from(text).into_raw()) }
}

/// `ToJSONGraph(Any const&, Any const&) -> Any`
///
/// # Safety
/// As C++ calls it.
#[unsafe(export_name = "_ZN3tvm3ffi11ToJSONGraphERKNS0_3AnyES3_")]
pub(crate) unsafe extern "C-unwind" fn to_json_graph(
    out: *mut RawAny,
    value: *const RawAny,
    metadata: *const RawAny,
) -> *mut RawAny {
    // SAFETY: `value` is a reference to a cell, as C++ calls it.
    let value = unsafe { view(value) };
    // SAFETY: `metadata` is a reference to a cell, as C++ calls it.
    let metadata = unsafe { view(metadata) };
    let graph = or_throw(graph::encode(value, metadata));
    // SAFETY: `out` is the place of the result, as C++ calls it.
    unsafe { give(out, graph.into_raw()) }
}

/// `FromJSONGraph(Any const&) -> Any`
///
/// # Safety
/// As C++ calls it.
#[unsafe(export_name = "_ZN3tvm3ffi13FromJSONGraphERKNS0_3AnyE")]
pub(crate) unsafe extern "C-unwind" fn from_json_graph(
    out: *mut RawAny,
    graph: *const RawAny,
) -> *mut RawAny {
    // SAFETY: `graph` is a reference to a cell, as C++ calls it.
    let graph = unsafe { view(graph) };
    let value = or_throw(graph::decode(graph));
    // SAFETY: `out` is the place of the result, as C++ calls it.
    unsafe { give(out, value.into_raw()) }
}

/// `StructuralHash::Hash(Any const&, bool, bool) -> uint64_t`
///
/// # Safety
/// As C++ calls it.
#[unsafe(export_name = "_ZN3tvm3ffi14StructuralHash4HashERKNS0_3AnyEbb")]
pub(crate) unsafe extern "C-unwind" fn structural_hash(
    value: *const RawAny,
    map_free_vars: bool,
    skip: bool,
) -> u64 {
    // SAFETY: `value` is a reference to a cell, as C++ calls it.
    let value = unsafe { view(value) };
    or_throw(structural::hash(value, map_free_vars, skip))
}

/// `StructuralEqual::Equal(Any const&, Any const&, bool, bool) -> bool`
///
/// # Safety
/// As C++ calls it.
#[unsafe(export_name = "_ZN3tvm3ffi15StructuralEqual5EqualERKNS0_3AnyES4_bb")]
pub(crate) unsafe extern "C-unwind" fn structural_equal(
    left: *const RawAny,
    right: *const RawAny,
    map_free_vars: bool,
    skip: bool,
) -> bool {
    // SAFETY: `left` is a reference to a cell, as C++ calls it.
    let left = unsafe { view(left) };
    // SAFETY: `right` is a reference to a cell, as C++ calls it.
    let right = unsafe { view(right) };
    or_throw(structural::equal(left, right, map_free_vars, skip))
}

/// `StructuralEqual::GetFirstMismatch(...) -> Optional<Tuple<AccessPath, AccessPath>>`
///
/// # Safety
/// As C++ calls it.
#[unsafe(export_name = "_ZN3tvm3ffi15StructuralEqual16GetFirstMismatchERKNS0_3AnyES4_bb")]
pub(crate) unsafe extern "C-unwind" fn first_mismatch(
    out: *mut *mut Header,
    left: *const RawAny,
    right: *const RawAny,
    map_free_vars: bool,
    skip: bool,
) -> *mut *mut Header {
    // SAFETY: `left` is a reference to a cell, as C++ calls it.
    let left = unsafe { view(left) };
    // SAFETY: `right` is a reference to a cell, as C++ calls it.
    let right = unsafe { view(right) };
    let found = structural::first_mismatch(left, right, map_free_vars, skip);
    let pair = structural::mismatch_value(or_throw(found));
    let handle = pair
        .into_object()
        .map_or(std::ptr::null_mut(), ObjectRef::into_raw);
    // SAFETY: `out` is the place of the result, as C++ calls it.
    unsafe { give(out, handle) }
}

/// `VisitErrorContext::FindAccessPaths(ObjectRef const&, VisitErrorContext const&, bool) -> Array<AccessPath>`
///
/// # Safety
/// As C++ calls it.
#[unsafe(export_name = "_ZN3tvm3ffi17VisitErrorContext15FindAccessPathsERKNS0_9ObjectRefERKS1_b")]
pub(crate) unsafe extern "C-unwind" fn find_access_paths(
    out: *mut *mut Header,
    root: *const *mut Header,
    context: *const *mut Header,
    allow_prefix: bool,
) -> *mut *mut Header {
    // SAFETY: `root` is a reference to a handle, as C++ calls it.
    let root = unsafe { root.read() };
    // SAFETY: null or an object that lives for the call, as C++ calls it; the reference is never dropped here.
    let root = unsafe { ObjectRef::from_nullable(root) }.map(ManuallyDrop::new);
    // SAFETY: `context` is a reference to a handle, as C++ calls it.
    let context = unsafe { context.read() };
    // SAFETY: a `VisitErrorContext` is the handle of an object, as C++ calls it; its type is checked all the same.
    let context = unsafe { ObjectRef::retain(context) }.downcast();
    let found = match (&root, &context) {
        (Some(root), Ok(context)) => find_paths(root, context, allow_prefix),
        _ => Ok(Array::new(Vec::new())),
    };
    let found = or_throw(found).into_object();
    // SAFETY: `out` is the place of the result, as C++ calls it.
    unsafe { give(out, found.into_raw()) }
}

/// `DeepCopy(Any const&) -> Any`
///
/// # Safety
/// As C++ calls it.
#[unsafe(export_name = "_ZN3tvm3ffi8DeepCopyERKNS0_3AnyE")]
pub(crate) unsafe extern "C-unwind" fn deep_copy(
    out: *mut RawAny,
    value: *const RawAny,
) -> *mut RawAny {
    // SAFETY: `value` is a reference to a cell, as C++ calls it.
    let value = unsafe { view(value) };
    let copy = or_throw(copy::deep_copy(value));
    // SAFETY: `out` is the place of the result, as C++ calls it.
    unsafe { give(out, copy.into_raw()) }
}

/// `ReprPrint(Any const&) -> String`
///
/// # Safety
/// As C++ calls it.
#[unsafe(export_name = "_ZN3tvm3ffi9ReprPrintERKNS0_3AnyE")]
pub(crate) unsafe extern "C-unwind" fn repr_print(
    out: *mut RawAny,
    value: *const RawAny,
) -> *mut RawAny {
    // SAFETY: `value` is a reference to a cell, as C++ calls it.
    let value = unsafe { view(value) };
    let text = or_throw(repr::repr(value));
    // SAFETY: `out` is the place of the result, as C++ calls it.
    unsafe { give(out, Any::from(text).into_raw()) }
}

/// `RecursiveHash(Any const&) -> int64_t`
///
/// # Safety
/// As C++ calls it.
#[unsafe(export_name = "_ZN3tvm3ffi13RecursiveHashERKNS0_3AnyE")]
pub(crate) unsafe extern "C-unwind" fn recursive_hash(value: *const RawAny) -> i64 {
    // SAFETY: `value` is a reference to a cell, as C++ calls it.
    let value = unsafe { view(value) };
    or_throw(recursive::hash(value)) as i64
}

/// `RecursiveEq(Any const&, Any const&) -> bool`
///
/// # Safety
/// As C++ calls it.
#[unsafe(export_name = "_ZN3tvm3ffi11RecursiveEqERKNS0_3AnyES3_")]
pub(crate) unsafe extern "C-unwind" fn recursive_eq(
    left: *const RawAny,
    right: *const RawAny,
) -> bool {
    // SAFETY: `left` is a reference to a cell, as C++ calls it.
    let left = unsafe { view(left) };
    // SAFETY: `right` is a reference to a cell, as C++ calls it.
    let right = unsafe { view(right) };
    or_throw(recursive::equal(left, right))
}

macro_rules! orders {
    ($($name:ident $symbol:literal $operator:tt)*) => {$(
        /// An order by contents.
        ///
        /// # Safety
        /// As C++ calls it.
        #[unsafe(export_name = $symbol)]
        pub unsafe extern "C-unwind" fn $name(left: *const RawAny, right: *const RawAny) -> bool {
            // SAFETY: `left` is a reference to a cell, as C++ calls it.
            let left = unsafe { view(left) };
            // SAFETY: `right` is a reference to a cell, as C++ calls it.
            let right = unsafe { view(right) };
            or_throw(recursive::compare(left, right)) $operator 0
        }
    )*};
}

orders! {
    recursive_lt "_ZN3tvm3ffi11RecursiveLtERKNS0_3AnyES3_" <
    recursive_le "_ZN3tvm3ffi11RecursiveLeERKNS0_3AnyES3_" <=
    recursive_gt "_ZN3tvm3ffi11RecursiveGtERKNS0_3AnyES3_" >
    recursive_ge "_ZN3tvm3ffi11RecursiveGeERKNS0_3AnyES3_" >=
}

/// `Module::LoadFromFile(String const&) -> Module`
///
/// # Safety
/// As C++ calls it, of a file that keeps the contract of [`module::load`].
#[unsafe(export_name = "_ZN3tvm3ffi6Module12LoadFromFileERKNS0_6StringE")]
pub unsafe extern "C-unwind" fn load_from_file(
    out: *mut *mut Header,
    path: *const RawAny,
) -> *mut *mut Header {
    // SAFETY: `path` is a reference to a cell, as C++ calls it.
    let path = unsafe { text(path) };
    // SAFETY: the file keeps the contract of `module::load`, by this contract.
    let module = or_throw(unsafe { module::load_named(&path) });
    // SAFETY: `out` is the place of the result, as C++ calls it.
    unsafe { give(out, module.into_object().into_raw()) }
}

/// `Module::VisitContextSymbols(TypedFunction<void(String, void*)> const&)`
///
/// # Safety
/// As C++ calls it.
#[unsafe(export_name = "_ZN3tvm3ffi6Module19VisitContextSymbolsERKNS0_13TypedFunctionIFvNS0_6StringEPvEEE")]
pub(crate) unsafe extern "C-unwind" fn visit_context_symbols(callback: *const *mut Header) {
    // SAFETY: `callback` is a reference to a handle, as C++ calls it.
    let callback = unsafe { callback.read() };
    // SAFETY: a `TypedFunction` is the handle of an object, as C++ calls it; its type is checked all the same.
    let object = unsafe { ObjectRef::retain(callback) };
    let Ok(function) = crate::function::Function::from_object(object) else {
        return;
    };
    for (name, address) in context::added() {
        let name = Str::new(&name);
        // SAFETY: the address of a symbol that was added under this name.
        let address = unsafe { AnyView::handle(address) };
        or_throw(function.call(&[(&name).into(), address]).map(drop));
    }
}

/// The module that a virtual function is called on.
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

/// `ModuleObj::GetFunction(String const&, bool) -> Optional<Function>`
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
    let handle = found.map_or(std::ptr::null_mut(), |function| {
        function.into_object().into_raw()
    });
    // SAFETY: `out` is the place of the result, as C++ calls it.
    unsafe { give(out, handle) }
}

/// `ModuleObj::GetFunctionMetadata(String const&, bool) -> Optional<String>`
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
    unsafe { give(out, Any::from(found).into_raw()) }
}

/// `ModuleObj::GetFunctionDoc(String const&, bool) -> Optional<String>`
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
    unsafe { give(out, Any::from(found).into_raw()) }
}

/// `ModuleObj::ImplementsFunction(String const&, bool) -> bool`
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

/// `ModuleObj::ImportModule(Module const&)`
///
/// # Safety
/// As C++ calls it.
#[unsafe(export_name = "_ZN3tvm3ffi9ModuleObj12ImportModuleERKNS0_6ModuleE")]
pub unsafe extern "C-unwind" fn import_module(this: *mut c_void, other: *const *mut Header) {
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

/// `ModuleObj::ClearImports()`
///
/// # Safety
/// As C++ calls it.
#[unsafe(export_name = "_ZN3tvm3ffi9ModuleObj12ClearImportsEv")]
pub unsafe extern "C-unwind" fn clear_imports(this: *mut c_void) {
    // SAFETY: `this` is a live module, as C++ calls it.
    let module = unsafe { module_at(this) };
    or_throw(module.clear_imports_in_object());
}
