//! `module.constants` and `module.properties` with the C interface of 0.7 to 0.20.

use super::super::constants::symbols_of;
use super::super::library_file::LibraryFile;
use super::{CONTEXT, CompiledFunction, NUMBERS, jump, load, number};
use crate::conformance::adapter::legacy::modules;
use crate::conformance::golden::golden;
use crate::conformance::runtime::RawHandle;
use crate::conformance::runtime::case_library::SymbolContent;
use crate::conformance::runtime::case_numbers::number_of;
use crate::conformance::runtime::ffi::{Reply, accepted, bytes, unsupported};
use crate::conformance::runtime::legacy::{LegacyApi, LegacyArg, int_arg};
use crate::value::legacy::TVMValue;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::ffi::c_int;

thread_local! {
    /// Extents of the constants that were passed to initializers, after the number of the initializer.
    static PASSED: RefCell<Vec<(usize, Value)>> = const { RefCell::new(Vec::new()) };
    /// Runtime of the case, because the initializer gets no data of ours.
    static PASSED_BY: RefCell<Option<&'static LegacyApi>> = const { RefCell::new(None) };
}

/// Functions that record their argument, each under its own number.
const INITIALISERS: [CompiledFunction; 4] = [
    initialise::<0>,
    initialise::<1>,
    initialise::<2>,
    initialise::<3>,
];

/// Records the extents of its argument, the array of constants, under `N`.
unsafe extern "C" fn initialise<const N: usize>(
    values: *const TVMValue,
    codes: *const c_int,
    count: c_int,
    result: *mut TVMValue,
    result_code: *mut c_int,
    _: RawHandle,
) -> c_int {
    let Some(api) = PASSED_BY.with_borrow(|api| *api).filter(|_| count == 1) else {
        return -1;
    };
    // SAFETY: there is one argument.
    let value = unsafe { values.read() };
    // SAFETY: there is one argument, and each argument has a code.
    let Ok(shapes) = shapes_of(api, (value, unsafe { codes.read() })) else {
        return -1;
    };
    PASSED.with_borrow_mut(|passed| passed.push((N, shapes)));
    // SAFETY: the caller provides these places.
    unsafe {
        number::<0>(
            values,
            codes,
            count,
            result,
            result_code,
            std::ptr::null_mut(),
        )
    }
}

/// Returns the extents of each tensor of an array.
fn shapes_of(api: &'static LegacyApi, array: LegacyArg) -> Result<Value, Reply> {
    let size = api.call_global("runtime.ArraySize", &[array])?.int();
    let shapes = (0..size).map(|at| {
        let tensor = api.call_global("runtime.ArrayGetItem", &[array, int_arg(at)])?;
        let described = tensor.tensor();
        let described = described.ok_or_else(|| unsupported("a constant is not a tensor"))?;
        // SAFETY: a tensor has as many extents as dimensions.
        Ok(json!(unsafe { described.shape() }))
    });
    Ok(json!(shapes.collect::<Result<Vec<Value>, Reply>>()?))
}

/// Runs `module.constants`: a payload of kind `const_loader`, which imports a module that records its arguments.
pub(in crate::conformance) fn constants(
    api: &'static LegacyApi,
    args: &Value,
) -> Result<Reply, Reply> {
    let payload = bytes(args)?;
    let name = args.get("name").and_then(Value::as_str).unwrap_or_default();
    if name.starts_with("get_const_var_") {
        return Err(unsupported(
            "a map of constants does not show through this interface",
        ));
    }
    let root = modules::stored(api, constants_kind(api)?, &payload)?;
    let mut functions = symbols_of(&payload);
    // PAY-37: a function that is listed twice counts once. Removed before the initializers are counted, because it would take two of the
    // four.
    functions.dedup();
    if !functions.iter().any(|symbol| symbol == name) {
        functions.push(name.to_owned());
    }
    if functions.len() > INITIALISERS.len() {
        return Err(unsupported(
            "more functions than there are initialisers to distinguish them",
        ));
    }
    let names: Vec<String> = functions
        .iter()
        .map(|name| format!("__init_{name}"))
        .collect();
    let mut symbols = vec![(CONTEXT, SymbolContent::Slot)];
    for ((name, function), body) in names.iter().zip(&functions).zip(INITIALISERS) {
        symbols.push((name, jump(body)));
        symbols.push((function, jump(NUMBERS[1])));
    }
    let written = LibraryFile::from_symbols(&symbols, &[])?;
    api.import(&root, &load(api, &written)?)?;
    PASSED_BY.set(Some(api));
    PASSED.take();
    for _ in 0..number_of::<i64>(args.get("times"))? {
        api.function_of(&root, name, true)?;
    }
    let passed = PASSED.take().into_iter();
    let passed = passed.map(|(number, shapes)| json!([functions[number], shapes]));
    accepted(json!({"initialised": passed.collect::<Vec<Value>>()}))
}

/// Returns the kind of which a runtime reads constants. Its loader had the kind `metadata` before `const_loader`.
fn constants_kind(api: &'static LegacyApi) -> Result<&'static str, Reply> {
    for kind in ["const_loader", "metadata"] {
        if api.global(&modules::loader_of(kind))?.is_some() {
            return Ok(kind);
        }
    }
    Err(unsupported("this runtime has no loader of constants"))
}

/// Runs `module.properties` for the kinds that can be created from a library or a payload.
pub(in crate::conformance) fn properties(
    api: &'static LegacyApi,
    args: &Value,
) -> Result<Reply, Reply> {
    let kind = args.pointer("/value/kind").and_then(Value::as_str);
    let module = match kind.unwrap_or_default() {
        "library" => modules::empty(api)?,
        "const_loader" => {
            let payload = golden("payload/const-loader-minimal.bin");
            let payload = payload.ok_or_else(|| unsupported("there is no payload of constants"))?;
            modules::stored(api, constants_kind(api)?, payload)?
        }
        other => {
            return Err(unsupported(format!(
                "a module of kind `{other}` cannot be created without a payload"
            )));
        }
    };
    let mask = api.call_global("runtime.ModuleGetPropertyMask", &[module.arg()])?;
    accepted(json!(mask.int()))
}
