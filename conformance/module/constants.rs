//! `module.constants`: the constants that a payload of kind `const_loader` passes to each initializer.
//!
//! Initializers are functions of this process with the names that compiled code would use. Each records its constants under its number.

use super::library_file::{PREFIX, lookup};
use super::loading::stored;
use crate::conformance::runtime::RawHandle;
use crate::conformance::runtime::case_numbers::number_of;
use crate::conformance::runtime::ffi::api::{FfiApi, FfiCallback};
use crate::conformance::runtime::ffi::forms::show;
use crate::conformance::runtime::ffi::owned::{OwnedValue, int_arg};
use crate::conformance::runtime::ffi::{
    NUMBERS, Reply, accepted, bytes, c_text, fresh_prefix, system_library, unsupported,
};
use crate::payload::{self, Field};
use crate::release::Layout;
use crate::rule::Findings;
use crate::value::{RawAny, index};
use crate::wire::Cursor;
use serde_json::{Value, json};
use std::cell::RefCell;

/// Runs `module.constants`: a payload of kind `const_loader`, which imports a module that records its arguments.
///
/// MOD-19: initializers are called at the first lookup and never again, each with its own constants in their order. `times` is the number
/// of lookups.
pub(super) fn constants(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let payload = bytes(args)?;
    let root = stored(api, "const_loader", &payload)?;
    let name = args.get("name").and_then(Value::as_str).unwrap_or_default();
    let mut functions = symbols_of(&payload);
    // PAY-37: a function that is listed twice counts once.
    functions.dedup();
    let all = name.starts_with(ALL_CONSTANTS);
    if !all && !functions.iter().any(|symbol| symbol == name) {
        functions.push(name.to_owned());
    }
    if functions.len() > INITIALISERS.len() {
        return Err(unsupported(
            "more functions than there are initialisers to tell them apart",
        ));
    }
    let behind = fresh_prefix();
    for (function, body) in functions.iter().zip(INITIALISERS) {
        api.system_symbol(&c_text(&format!("{PREFIX}{behind}__init_{function}")), body)?;
        api.system_symbol(&c_text(&format!("{PREFIX}{behind}{function}")), NUMBERS[1])?;
    }
    let taker = system_library(api, &behind)?;
    api.call_global("ffi.ModuleImportModule", &[root.raw, taker.raw])?;
    HANDED_BY.set(Some(api));
    HANDED.take();
    let mut found = None;
    for _ in 0..number_of::<i64>(args.get("times"))? {
        found = Some(lookup(api, &root, name, true)?);
    }
    let mut initialised = Vec::new();
    for (number, list) in HANDED.take() {
        let size = api.call_global("ffi.ArraySize", &[list.raw])?.raw.int();
        let shape = |at: i64| -> Result<Value, Reply> {
            let tensor = api.call_global("ffi.ArrayGetItem", &[list.raw, int_arg(at)])?;
            let described = tensor.dltensor();
            let described = described.ok_or_else(|| unsupported("a constant is not a tensor"))?;
            // SAFETY: a tensor has as many extents as dimensions.
            Ok(json!(unsafe { described.shape() }))
        };
        let shapes = (0..size)
            .map(shape)
            .collect::<Result<Vec<Value>, Reply>>()?;
        initialised.push(json!([functions[number], shapes]));
    }
    let mut members = json!({"initialised": initialised});
    if all {
        members["all"] = match found.filter(|found| found.raw.type_index == index::FUNCTION) {
            Some(function) => keys_of(&show(api, &api.call(&function, &[])?)?),
            None => Value::Null,
        };
    }
    accepted(members)
}

/// Returns the functions that a payload has constants for, as far as it can be read.
pub(super) fn symbols_of(payload: &[u8]) -> Vec<String> {
    let read = payload::read(
        "const_loader",
        Layout::V0_22,
        &mut Cursor::new(payload),
        &mut Findings::default(),
    );
    match read
        .as_ref()
        .ok()
        .and_then(|payload| payload.field("symbols"))
    {
        Some(Field::Symbols(symbols)) => symbols.iter().map(|(name, _)| name.to_string()).collect(),
        _ => Vec::new(),
    }
}

/// Returns the keys of a map in the form of spec/values.md, sorted because no rule orders them; null for another value.
fn keys_of(map: &Value) -> Value {
    let Some(pairs) = map.get("map").and_then(Value::as_array) else {
        return Value::Null;
    };
    let mut keys: Vec<Value> = pairs
        .iter()
        .filter_map(|pair| pair.get(0).cloned())
        .collect();
    keys.sort_by_key(Value::to_string);
    Value::Array(keys)
}

/// Prefix of the function whose result is the map of all constants, in every release that has one (MOD-19).
const ALL_CONSTANTS: &str = "get_const_var_";

thread_local! {
    /// Constants that were passed to initializers, with the number of the initializer.
    static HANDED: RefCell<Vec<(usize, OwnedValue)>> = const { RefCell::new(Vec::new()) };
    /// Runtime of the case, because the initializer gets no data of ours.
    static HANDED_BY: RefCell<Option<&'static FfiApi>> = const { RefCell::new(None) };
}

/// Functions that record their argument, each under its own number.
const INITIALISERS: [FfiCallback; 4] = [
    initialise::<0>,
    initialise::<1>,
    initialise::<2>,
    initialise::<3>,
];

/// Records its argument, the array of constants, under `N`.
unsafe extern "C" fn initialise<const N: usize>(
    _: RawHandle,
    args: *const RawAny,
    count: i32,
    out: *mut RawAny,
) -> i32 {
    let Some(api) = HANDED_BY.with_borrow(|api| *api).filter(|_| count == 1) else {
        return -1;
    };
    // SAFETY: there is one argument.
    let argument = unsafe { *args };
    // SAFETY: a call has a place for its result.
    let out = unsafe { &mut *out };
    HANDED.with_borrow_mut(|handed| handed.push((N, api.share(argument))));
    *out = int_arg(0);
    0
}
