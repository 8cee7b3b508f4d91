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

/// Exports functions that return a value. The arguments are references to cells, and an error of `$result` is thrown.
macro_rules! values {
    ($($(#[$doc:meta])+ $symbol:literal $name:ident($($value:ident),+) = $result:expr;)+) => {$(
        $(#[$doc])+
        ///
        /// # Safety
        /// As C++ calls it.
        #[unsafe(export_name = $symbol)]
        pub(crate) unsafe extern "C-unwind" fn $name(out: *mut RawAny, $($value: *const RawAny),+) -> *mut RawAny {
            $(
                // SAFETY: the argument is a reference to a cell, as C++ calls it.
                let $value = unsafe { view($value) };
            )+
            let value = Any::from(or_throw($result));
            // SAFETY: `out` is the place of the result, as C++ calls it.
            unsafe { returned(out, value.into_raw()) }
        }
    )+};
}

values! {
    /// Implements `json::Stringify(Any const&, Optional<int> const&) -> String`.
    "_ZN3tvm3ffi4json9StringifyERKNS0_3AnyERKNS0_8OptionalIivEE"
    json_stringify(value, indent) = cast::<Option<i64>>(indent)
        .map_err(Error::from)
        .and_then(|indent| json::stringify(value, indent.unwrap_or(0)));

    /// Implements `ToJSONGraph(Any const&, Any const&) -> Any`.
    "_ZN3tvm3ffi11ToJSONGraphERKNS0_3AnyES3_"
    to_json_graph(value, metadata) = graph::encode(value, metadata);

    /// Implements `FromJSONGraph(Any const&) -> Any`.
    "_ZN3tvm3ffi13FromJSONGraphERKNS0_3AnyE"
    from_json_graph(graph) = graph::decode(graph);

    /// Implements `DeepCopy(Any const&) -> Any`.
    "_ZN3tvm3ffi8DeepCopyERKNS0_3AnyE"
    deep_copy(value) = copy::deep_copy(value);

    /// Implements `ReprPrint(Any const&) -> String`.
    "_ZN3tvm3ffi9ReprPrintERKNS0_3AnyE"
    repr_print(value) = repr::repr(value);
}

/// Exports functions that return a number. The first arguments are references to cells, the others are flags, and an error of `$result` is
/// thrown.
macro_rules! numbers {
    ($($(#[$doc:meta])+ $symbol:literal $name:ident($($value:ident),+ $(; $($flag:ident),+)?) -> $number:ty = $result:expr;)+) => {$(
        $(#[$doc])+
        ///
        /// # Safety
        /// As C++ calls it.
        #[unsafe(export_name = $symbol)]
        pub(crate) unsafe extern "C-unwind" fn $name($($value: *const RawAny,)+ $($($flag: bool),+)?) -> $number {
            $(
                // SAFETY: the argument is a reference to a cell, as C++ calls it.
                let $value = unsafe { view($value) };
            )+
            or_throw($result)
        }
    )+};
}

numbers! {
    /// Implements `StructuralHash::Hash(Any const&, bool, bool) -> uint64_t`.
    "_ZN3tvm3ffi14StructuralHash4HashERKNS0_3AnyEbb"
    structural_hash(value; map_free_vars, skip) -> u64 = structural::hash(value, map_free_vars, skip);

    /// Implements `StructuralEqual::Equal(Any const&, Any const&, bool, bool) -> bool`.
    "_ZN3tvm3ffi15StructuralEqual5EqualERKNS0_3AnyES4_bb"
    structural_equal(left, right; map_free_vars, skip) -> bool = structural::equal(left, right, map_free_vars, skip);

    /// Implements `RecursiveHash(Any const&) -> int64_t`. Unlike the structural hash, it is signed in C++.
    "_ZN3tvm3ffi13RecursiveHashERKNS0_3AnyE"
    recursive_hash(value) -> i64 = recursive::hash(value).map(|hash| hash as i64);

    /// Implements `RecursiveEq(Any const&, Any const&) -> bool`.
    "_ZN3tvm3ffi11RecursiveEqERKNS0_3AnyES3_"
    recursive_eq(left, right) -> bool = recursive::equal(left, right);

    /// Implements `RecursiveLt(Any const&, Any const&) -> bool`.
    "_ZN3tvm3ffi11RecursiveLtERKNS0_3AnyES3_"
    recursive_lt(left, right) -> bool = recursive::compare(left, right).map(|order| order < 0);

    /// Implements `RecursiveLe(Any const&, Any const&) -> bool`.
    "_ZN3tvm3ffi11RecursiveLeERKNS0_3AnyES3_"
    recursive_le(left, right) -> bool = recursive::compare(left, right).map(|order| order <= 0);

    /// Implements `RecursiveGt(Any const&, Any const&) -> bool`.
    "_ZN3tvm3ffi11RecursiveGtERKNS0_3AnyES3_"
    recursive_gt(left, right) -> bool = recursive::compare(left, right).map(|order| order > 0);

    /// Implements `RecursiveGe(Any const&, Any const&) -> bool`.
    "_ZN3tvm3ffi11RecursiveGeERKNS0_3AnyES3_"
    recursive_ge(left, right) -> bool = recursive::compare(left, right).map(|order| order >= 0);
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
