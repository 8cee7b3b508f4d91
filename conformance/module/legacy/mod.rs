//! Libraries with a runtime of 0.7 to 0.20, and the runtime as compiled code sees it, through the C interface of that time.
//!
//! The operations are `module.open`, `module.symbols`, `module.life`, `module.environment`, `module.system`, `module.constants` and
//! `module.properties`. The symbols of libraries are addresses of this process, as in `library_file`.

mod constants;
mod environment;

pub(in crate::conformance) use constants::{constants, properties};
pub(in crate::conformance) use environment::environment;

use super::compiled::texts;
use super::library_file::LibraryFile;
use crate::conformance::adapter::legacy::modules;
use crate::conformance::runtime::RawHandle;
use crate::conformance::runtime::case_library::SymbolContent;
use crate::conformance::runtime::case_numbers::number_of;
use crate::conformance::runtime::ffi::{
    Reply, accepted, bytes, c_text, fresh_prefix, unsupported, view_reply,
};
use crate::conformance::runtime::legacy::{
    LegacyApi, LegacyArg, LegacyValue, int_arg, null_arg, text_arg,
};
use crate::module::Dialect;
use crate::release::Layout;
use crate::value::legacy::{TVMValue, code};
use serde_json::{Value, json};
use std::ffi::{CString, c_int};

/// Slot of the context in libraries of 0.7 to 0.20 (MOD-13).
const CONTEXT: &str = Dialect::of(Layout::V0_7).context.text();

/// A compiled function of 0.7 to 0.20.
type CompiledFunction = unsafe extern "C" fn(
    *const TVMValue,
    *const c_int,
    c_int,
    *mut TVMValue,
    *mut c_int,
    RawHandle,
) -> c_int;

/// Functions that each return their index.
const NUMBERS: [CompiledFunction; 8] = [
    number::<0>,
    number::<1>,
    number::<2>,
    number::<3>,
    number::<4>,
    number::<5>,
    number::<6>,
    number::<7>,
];

/// Returns `N` like code of that time: a value and a code in two places (FUN-13).
unsafe extern "C" fn number<const N: i64>(
    _: *const TVMValue,
    _: *const c_int,
    _: c_int,
    result: *mut TVMValue,
    result_code: *mut c_int,
    _: RawHandle,
) -> c_int {
    // SAFETY: a caller of compiled code passes a place for the result.
    unsafe { result.write(TVMValue { v_int64: N }) };
    // SAFETY: a caller of compiled code passes a place for the code of the result.
    unsafe { result_code.write(code::INT) };
    0
}

/// Creates a symbol that leads to a function of this process.
fn jump(body: CompiledFunction) -> SymbolContent {
    SymbolContent::Jump(body as usize)
}

/// Loads a library file with the runtime, and returns its module.
fn load(api: &'static LegacyApi, written: &LibraryFile) -> Result<LegacyValue, Reply> {
    api.load(&c_text(&written.path.to_string_lossy()))
}

/// Creates a library with a function for each name, which returns the number of that name.
fn numbers(api: &'static LegacyApi, functions: &[(String, usize)]) -> Result<LegacyValue, Reply> {
    let mut symbols = vec![(CONTEXT, SymbolContent::Slot)];
    for (name, number) in functions {
        let body = NUMBERS.get(*number);
        let body = body.ok_or_else(|| unsupported("functions here return numbers up to 7"))?;
        symbols.push((name, jump(*body)));
    }
    load(api, &LibraryFile::from_symbols(&symbols, &[])?)
}

/// Reads the functions and numbers of an object in the request.
fn numbered(list: Option<&Value>, prefix: &str) -> Result<Vec<(String, usize)>, Reply> {
    let list = list.and_then(Value::as_object).into_iter().flatten();
    list.map(|(name, number)| Ok((format!("{prefix}{name}"), number_of(number)?)))
        .collect()
}

/// Runs `module.open`.
pub(in crate::conformance) fn open(api: &'static LegacyApi, args: &Value) -> Result<Reply, Reply> {
    if let Some(why) = super::linked_library::unsupported_reason() {
        return Err(unsupported(why));
    }
    let value = args.get("value").unwrap_or(&Value::Null);
    let written = LibraryFile::from(&bytes(args)?)?;
    let root = load(api, &written)?;
    let shown = modules::kinds_below(api, &root)?;
    if value.get("import").is_some() {
        api.import(&root, &numbers(api, &numbered(value.get("import"), "")?)?)?;
    }
    let mut found = Vec::new();
    for name in texts(value.get("lookups")) {
        found.push(api.function_of(&root, name, true)?.is_some());
    }
    let calls = value.get("calls").and_then(Value::as_array);
    let results = calls
        .into_iter()
        .flatten()
        .map(|call| returned(api, &root, call));
    let results = results.collect::<Result<Vec<Value>, Reply>>()?;
    view_reply(
        "opened",
        json!({"modules": shown, "found": found, "results": results}),
    )
}

/// Returns the result of a function of a library, or its error.
fn returned(api: &'static LegacyApi, root: &LegacyValue, call: &Value) -> Result<Value, Reply> {
    let name = call.get("function").and_then(Value::as_str);
    let name = name.unwrap_or_default();
    let function = api.function_of(root, name, true)?;
    let function = function.ok_or_else(|| unsupported(format!("there is no `{name}`")))?;
    let mut held: Vec<CString> = Vec::new();
    let mut args: Vec<LegacyArg> = Vec::new();
    for arg in call
        .get("args")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        args.push(match arg {
            Value::Null => null_arg(),
            Value::Number(number) if number.is_i64() => int_arg(number_of(arg)?),
            Value::String(text) => {
                let text = c_text(text);
                // The text's heap buffer does not move when the list grows.
                let arg = text_arg(&text);
                held.push(text);
                arg
            }
            _ => {
                return Err(unsupported(format!(
                    "{arg} is not an argument of this interface"
                )));
            }
        });
    }
    match api.call(&function, &args) {
        Ok(result) => value_of(&result),
        // FUN-18: releases add words around the text of the library; up to 0.15 the check that failed, which has its own kind. A text
        // without a kind is a `TVMError`.
        Err(Reply::Reject(rejection)) => {
            let text = &*rejection.message;
            let text = text
                .split_once(" (-1 vs. 0) : ")
                .map_or(text, |(_, left)| left);
            let (kind, message) = match text.split_once(": ") {
                Some((kind, rest)) if kind.ends_with("Error") => (kind, rest),
                _ => ("TVMError", text),
            };
            Ok(json!({"error": [kind, message]}))
        }
        Err(other) => Err(other),
    }
}

/// Returns a result in the form of spec/values.md.
fn value_of(result: &LegacyValue) -> Result<Value, Reply> {
    Ok(match result.code {
        code::INT => json!(result.int()),
        code::NULL => Value::Null,
        code::FLOAT => {
            // SAFETY: the code states that the value is a float.
            let number = unsafe { result.value.v_float64 };
            json!({"float": number})
        }
        code::STR => json!(result.text()?),
        other => return Err(unsupported(format!("a result has the type code {other}"))),
    })
}

/// Runs `module.symbols`: returns the function that is found under a name, and the slots that the runtime filled.
pub(in crate::conformance) fn symbols(
    api: &'static LegacyApi,
    args: &Value,
) -> Result<Reply, Reply> {
    let value = args.get("value").unwrap_or(&Value::Null);
    if texts(value.get("needs")).next().is_some() {
        return Err(unsupported(
            "this adapter writes no library that needs others",
        ));
    }
    let exports: Vec<&str> = texts(value.get("exports")).collect();
    if exports.len() > NUMBERS.len() {
        return Err(unsupported(
            "more symbols than there are functions to distinguish them",
        ));
    }
    let bodies = exports.iter().zip(NUMBERS);
    let mut symbols: Vec<(&str, SymbolContent)> =
        bodies.map(|(name, body)| (*name, jump(body))).collect();
    let slots = || texts(value.get("slots")).filter(|slot| *slot != CONTEXT);
    symbols.extend(slots().map(|slot| (slot, SymbolContent::Slot)));
    symbols.push((CONTEXT, SymbolContent::Slot));
    let data = value.get("text").and_then(Value::as_object);
    let data = data.into_iter().flatten().map(|(name, text)| {
        let text = text.as_str().unwrap_or_default();
        (&**name, [text.as_bytes(), b"\0"].concat())
    });
    let data: Vec<(&str, Vec<u8>)> = data.collect();
    let data: Vec<(&str, &[u8])> = data.iter().map(|(name, text)| (*name, &**text)).collect();
    let written = LibraryFile::from_symbols(&symbols, &data)?;
    let module = load(api, &written)?;
    let name = value.get("name").and_then(Value::as_str).unwrap_or("f");
    let found = match api.function_of(&module, name, false)? {
        None => None,
        Some(function) => {
            let number = usize::try_from(api.call(&function, &[])?.int());
            number.ok().and_then(|number| exports.get(number))
        }
    };
    let mut filled = Vec::new();
    for slot in slots() {
        if !written.slot(slot)?.is_null() {
            filled.push(slot);
        }
    }
    filled.sort_unstable();
    view_reply("function", json!({"function": found, "slots": filled}))
}

/// Runs `module.life`: returns whether the library stays loaded while a function of it exists, and no longer.
pub(in crate::conformance) fn life(api: &'static LegacyApi, args: &Value) -> Result<Reply, Reply> {
    if texts(args.pointer("/value/globals")).next().is_some() {
        return Err(unsupported("modules of this interface have no globals"));
    }
    let written = LibraryFile::from_symbols(
        &[("f", jump(NUMBERS[0])), (CONTEXT, SymbolContent::Slot)],
        &[],
    )?;
    let function = {
        let module = load(api, &written)?;
        api.function_of(&module, "f", false)?
    };
    // The module was dropped, so that only the function can keep the library.
    let with_function = written.is_mapped()?;
    drop(function);
    let after = written.is_mapped()?;
    accepted(json!({"with_function": with_function, "after": after}))
}

/// Runs `module.system`. Symbols stay registered for the life of the process, so that they get a name that no other case has.
pub(in crate::conformance) fn system(
    api: &'static LegacyApi,
    args: &Value,
) -> Result<Reply, Reply> {
    let text = |name: &str| {
        args.pointer(&format!("/value/{name}"))
            .and_then(Value::as_str)
    };
    if text("before").is_some() {
        return Err(unsupported("function names have no prefix before 0.22"));
    }
    let (prefix, fresh) = (text("prefix").unwrap_or_default(), fresh_prefix());
    let mut known: Vec<&str> = Vec::new();
    let list = args.pointer("/value/register").and_then(Value::as_array);
    for pair in list.into_iter().flatten() {
        let part = |at: usize| pair.get(at).and_then(Value::as_str);
        let (Some(symbol), Some(code)) = (part(0), part(1)) else {
            return Err(unsupported("`register` is not a list of pairs of names"));
        };
        let (behind, rest) = match symbol.strip_prefix(prefix) {
            Some(rest) => (prefix, rest),
            None => ("", symbol),
        };
        let place = known.iter().position(|known| *known == code);
        let place = place.unwrap_or_else(|| {
            known.push(code);
            known.len() - 1
        });
        let body = NUMBERS.get(place);
        let body = body.ok_or_else(|| unsupported("more functions than can be distinguished"))?;
        api.system_symbol(
            &c_text(&format!("{behind}{fresh}{rest}")),
            *body as RawHandle,
        )?;
    }
    let module = api.call_global("runtime.SystemLib", &[text_arg(&c_text(prefix))])?;
    let name = format!("{fresh}{}", text("name").unwrap_or_default());
    let found = match api.function_of(&module, &name, false)? {
        None => None,
        Some(function) => {
            let number = usize::try_from(api.call(&function, &[])?.int());
            number.ok().and_then(|number| known.get(number))
        }
    };
    view_reply("entry", json!(found))
}
