//! Functions on values by their mangled names: JSON, the graphs of objects, structural and recursive comparison, copies, text.

use super::{or_throw, returned, view};
use crate::function::Error;
use crate::object::walk::copy;
use crate::object::walk::visit::paths::find_access_paths as find_paths;
use crate::object::{Array, graph, json, recursive, repr, structural};
use crate::value::header::{Header, ObjectRef};
use crate::value::{Any, AnyView, RawAny, Str, cast, str_bytes};
use std::ffi::c_int;
use std::mem::ManuallyDrop;

/// Implements `json::Parse(String const&, String*) -> Any`. Throws only if there is no place for the message.
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
    // A C++ caller that passes a place for the message expects no exception. The place contains a live string, which is replaced and
    // dropped.
    let value = if message.is_null() {
        or_throw(parsed)
    } else {
        let (value, text) = match parsed {
            Ok(value) => (value, Str::new("")),
            Err(error) => (Any::none(), Str::new(error.message())),
        };
        // SAFETY: `message` is not null, so the address of a writable string, as C++ calls it.
        drop(unsafe { message.cast::<Any>().replace(text.into()) });
        value
    };
    // SAFETY: `out` is the place of the result, as C++ calls it.
    unsafe { returned(out, value.into_raw()) }
}

/// Implements `json::Stringify(Any const&, Optional<int> const&) -> String`.
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
    unsafe { returned(out, Any::from(text).into_raw()) }
}

/// `std::optional<int>`, the layout of `Optional<int>` up to tvm-ffi 0.1.12. From 0.1.13 on `Optional<int>` is a cell.
#[repr(C)]
pub(crate) struct OptionalInt {
    value: c_int,
    engaged: bool,
}

/// Implements `json::Stringify(Any const&, Optional<int>) -> String` of tvm-ffi up to 0.1.12, to which TVM 0.22 to 0.25 link. The class has
/// a copy constructor, so it is passed by address.
///
/// # Safety
/// As C++ calls it.
#[unsafe(export_name = "_ZN3tvm3ffi4json9StringifyERKNS0_3AnyENS0_8OptionalIivEE")]
pub(crate) unsafe extern "C-unwind" fn json_stringify_by_value(
    out: *mut RawAny,
    value: *const RawAny,
    indent: *const OptionalInt,
) -> *mut RawAny {
    // SAFETY: `indent` is an argument passed by address, which lives for the call, as C++ calls it.
    let indent = unsafe { &*indent };
    let indent = indent.engaged.then_some(indent.value);
    // SAFETY: `value` is a reference to a cell, as C++ calls it.
    let value: AnyView<'_> = unsafe { view(value) };
    // OBJ-17: without an indent the text is compact, as with 0.
    let text = or_throw(json::stringify(value, indent.map_or(0, i64::from)));
    // SAFETY: `out` is the place of the result, as C++ calls it.
    unsafe { returned(out, Any::from(text).into_raw()) }
}

/// Implements `ToJSONGraph(Any const&, Any const&) -> Any`.
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
    unsafe { returned(out, graph.into_raw()) }
}

/// Implements `FromJSONGraph(Any const&) -> Any`.
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
    unsafe { returned(out, value.into_raw()) }
}

/// Implements `StructuralHash::Hash(Any const&, bool, bool) -> uint64_t`.
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

/// Implements `StructuralEqual::Equal(Any const&, Any const&, bool, bool) -> bool`.
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

/// Implements `StructuralEqual::GetFirstMismatch(...) -> Optional<Tuple<AccessPath, AccessPath>>`.
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
    unsafe { returned(out, handle) }
}

/// Implements `VisitErrorContext::FindAccessPaths(ObjectRef const&, VisitErrorContext const&, bool) -> Array<AccessPath>`.
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
    // SAFETY: null or an object that lives for the call, as C++ calls it; this function never drops the reference.
    let root = unsafe { ObjectRef::from_nullable(root) }.map(ManuallyDrop::new);
    // SAFETY: `context` is a reference to a handle, as C++ calls it.
    let context = unsafe { context.read() };
    // SAFETY: a `VisitErrorContext` is the handle of an object, as C++ calls it; its type is checked nevertheless.
    let context = unsafe { ObjectRef::retain(context) }.downcast();
    // A null root has no parts, and a context of another type has no paths. Both give an empty array without an exception.
    let found = match (&root, &context) {
        (Some(root), Ok(context)) => find_paths(root, context, allow_prefix),
        _ => Ok(Array::new(Vec::new())),
    };
    let found = or_throw(found).into_object();
    // SAFETY: `out` is the place of the result, as C++ calls it.
    unsafe { returned(out, found.into_raw()) }
}

/// Implements `DeepCopy(Any const&) -> Any`.
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
    unsafe { returned(out, copy.into_raw()) }
}

/// Implements `ReprPrint(Any const&) -> String`.
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
    unsafe { returned(out, Any::from(text).into_raw()) }
}

/// Implements `RecursiveHash(Any const&) -> int64_t`.
///
/// # Safety
/// As C++ calls it.
#[unsafe(export_name = "_ZN3tvm3ffi13RecursiveHashERKNS0_3AnyE")]
pub(crate) unsafe extern "C-unwind" fn recursive_hash(value: *const RawAny) -> i64 {
    // SAFETY: `value` is a reference to a cell, as C++ calls it.
    let value = unsafe { view(value) };
    // The result has 64 bits too, but in C++ it is signed, unlike the structural hash above.
    or_throw(recursive::hash(value)) as i64
}

/// Implements `RecursiveEq(Any const&, Any const&) -> bool`.
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
        /// Compares two values by content for order.
        ///
        /// # Safety
        /// As C++ calls it.
        #[unsafe(export_name = $symbol)]
        pub(crate) unsafe extern "C-unwind" fn $name(left: *const RawAny, right: *const RawAny) -> bool {
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
