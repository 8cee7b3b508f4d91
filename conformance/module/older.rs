//! What a runtime of 0.7 to 0.20 makes of a library, and what compiled code sees of it: `module.open`, `module.symbols`,
//! `module.life`, `module.environment`, `module.system`, `module.constants` and `module.properties` by the C interface of that
//! time. Libraries are written around addresses of this process, as in `library_file`.

use super::compiled::texts;
use super::constants::symbols_of;
use super::library_file::LibraryFile;
use crate::conformance::adapter::legacy::modules;
use crate::conformance::case::golden;
use crate::conformance::runtime::RawHandle;
use crate::conformance::runtime::ffi::{
    Reply, accepted, bytes, c_text, fresh_prefix, seen, unsupported,
};
use crate::conformance::runtime::legacy::{
    LegacyApi, LegacyArg, LegacyValue, int_arg, null_arg, text_arg,
};
use crate::conformance::runtime::number::number_of;
use crate::conformance::runtime::shell::SymbolContent;
use crate::module::Dialect;
use crate::release::Layout;
use crate::value::legacy::{TVMValue, code};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::ffi::{CString, c_int};

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

/// Functions that return a number, each its place.
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

fn jump(body: CompiledFunction) -> SymbolContent {
    SymbolContent::Jump(body as usize)
}

fn load(api: &'static LegacyApi, written: &LibraryFile) -> Result<LegacyValue, Reply> {
    api.load(&c_text(&written.path.to_string_lossy()))
}

/// A library with a function for each name, which returns the number beside it.
fn numbers(api: &'static LegacyApi, functions: &[(String, usize)]) -> Result<LegacyValue, Reply> {
    let mut symbols = vec![(CONTEXT, SymbolContent::Slot)];
    for (name, number) in functions {
        let body = NUMBERS.get(*number);
        let body = body.ok_or_else(|| unsupported("functions here return numbers up to 7"))?;
        symbols.push((name, jump(*body)));
    }
    load(api, &LibraryFile::of(&symbols, &[])?)
}

/// The functions and numbers of an object of the request.
fn numbered(list: Option<&Value>, prefix: &str) -> Result<Vec<(String, usize)>, Reply> {
    let list = list.and_then(Value::as_object).into_iter().flatten();
    list.map(|(name, number)| Ok((format!("{prefix}{name}"), number_of(number)?)))
        .collect()
}

/// `module.open`.
pub(in crate::conformance) fn open(api: &'static LegacyApi, args: &Value) -> Result<Reply, Reply> {
    if let Some(why) = super::opened::why_not_here() {
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
    for name in texts(value.get("asks")) {
        found.push(api.function_of(&root, name, true)?.is_some());
    }
    let calls = value.get("calls").and_then(Value::as_array);
    let results = calls
        .into_iter()
        .flatten()
        .map(|call| returned(api, &root, call));
    let results = results.collect::<Result<Vec<Value>, Reply>>()?;
    seen(
        "opened",
        json!({"modules": shown, "found": found, "results": results}),
    )
}

/// What a function of a library returns, or the error that it leaves.
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
                // The characters stay where they are when the list grows.
                let arg = text_arg(&text);
                held.push(text);
                arg
            }
            _ => {
                return Err(unsupported(format!(
                    "{arg} is no argument of this interface"
                )));
            }
        });
    }
    match api.call(&function, &args) {
        Ok(result) => value_of(&result),
        // FUN-18: releases put words around what the library left, up to 0.15 the check that its result failed, with a kind of
        // its own. A text without a kind in front of it is a `TVMError`.
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

/// A result in the form of spec/values.md.
fn value_of(result: &LegacyValue) -> Result<Value, Reply> {
    Ok(match result.code {
        code::INT => json!(result.int()),
        code::NULL => Value::Null,
        code::FLOAT => {
            // SAFETY: the code says that it is a float.
            let number = unsafe { result.value.v_float64 };
            json!({"float": number})
        }
        code::STR => json!(result.text()?),
        other => return Err(unsupported(format!("a result has the type code {other}"))),
    })
}

/// `module.symbols`: which function is found under a name, and which slots the runtime filled.
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
    let written = LibraryFile::of(&symbols, &data)?;
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
    seen("function", json!({"function": found, "slots": filled}))
}

/// `module.life`: whether the library stays while a function of it does, and no longer.
pub(in crate::conformance) fn life(api: &'static LegacyApi, args: &Value) -> Result<Reply, Reply> {
    if texts(args.pointer("/value/globals")).next().is_some() {
        return Err(unsupported("modules of this interface have no globals"));
    }
    let written = LibraryFile::of(
        &[("f", jump(NUMBERS[0])), (CONTEXT, SymbolContent::Slot)],
        &[],
    )?;
    let function = {
        let module = load(api, &written)?;
        api.function_of(&module, "f", false)?
    };
    let with_function = written.is_mapped()?;
    drop(function);
    let after = written.is_mapped()?;
    accepted(json!({"with_function": with_function, "after": after}))
}

/// `module.environment`: what a library finds that looks for functions, as compiled code does.
pub(in crate::conformance) fn environment(
    api: &'static LegacyApi,
    args: &Value,
) -> Result<Reply, Reply> {
    let prefix = fresh_prefix();
    let mut registered = Vec::new();
    let found = environment_steps(api, &prefix, args, &mut registered);
    if api.can_remove() {
        for name in registered {
            api.remove(&name)?;
        }
    }
    accepted(found?)
}

fn environment_steps(
    api: &'static LegacyApi,
    prefix: &str,
    args: &Value,
    registered: &mut Vec<String>,
) -> Result<Value, Reply> {
    let value = args.get("value").unwrap_or(&Value::Null);
    let own = numbered(value.get("own"), prefix)?;
    let mut symbols = vec![(CONTEXT, SymbolContent::Slot)];
    for (name, number) in &own {
        let body = NUMBERS.get(*number);
        let body = body.ok_or_else(|| unsupported("functions here return numbers up to 7"))?;
        symbols.push((name, jump(*body)));
    }
    let written = LibraryFile::of(&symbols, &[])?;
    let root = load(api, &written)?;
    let context = written.slot(CONTEXT)?;
    let mut found = Vec::new();
    let steps = value.get("steps").and_then(Value::as_array);
    for step in steps.into_iter().flatten() {
        if step.get("import").is_some() {
            let module = numbers(api, &numbered(step.get("import"), prefix)?)?;
            api.import(&root, &module)?;
        }
        if step.get("import_below").is_some() {
            let between = numbers(api, &[])?;
            let module = numbers(api, &numbered(step.get("import_below"), prefix)?)?;
            api.import(&between, &module)?;
            api.import(&root, &between)?;
        }
        if step.get("clear").is_some() {
            api.call_global("runtime.ModuleClearImports", &[root.arg()])?;
        }
        for (name, number) in numbered(step.get("register"), prefix)? {
            // A few bytes for the life of a worker.
            let this: &'static Registered = Box::leak(Box::new(Registered { api, number }));
            let function = api.function(give_number, this)?;
            api.register(&name, &function, true)?;
            registered.push(name);
        }
        if let Some(name) = step.get("lookup").and_then(Value::as_str) {
            let name = c_text(&format!("{prefix}{name}"));
            // SAFETY: `root` keeps the library, and what the runtime wrote there is its context.
            found.push(match unsafe { api.looked_up(context, &name) } {
                Ok(function) => json!(api.call(&function, &[])?.int()),
                Err(Reply::Reject(_)) => json!("missing"),
                Err(other) => return Err(other),
            });
        }
    }
    Ok(json!(found))
}

/// What a function of the registry is made with.
struct Registered {
    api: &'static LegacyApi,
    number: usize,
}

unsafe extern "C-unwind" fn give_number(
    _: *mut TVMValue,
    _: *mut c_int,
    _: c_int,
    result: RawHandle,
    this: RawHandle,
) -> c_int {
    // SAFETY: it was made with a `Registered`, which is never freed.
    let this = unsafe { &*this.cast::<Registered>() };
    // SAFETY: the result is that of this callback.
    unsafe { this.api.give(result, int_arg(this.number as i64)) }
}

/// `module.system`: symbols stay for the life of the process, so they get a name that no other case has.
pub(in crate::conformance) fn system(
    api: &'static LegacyApi,
    args: &Value,
) -> Result<Reply, Reply> {
    let text = |name: &str| {
        args.pointer(&format!("/value/{name}"))
            .and_then(Value::as_str)
    };
    if text("before").is_some() {
        return Err(unsupported(
            "functions have no prefix of their own before 0.22",
        ));
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
    seen("entry", json!(found))
}

thread_local! {
    /// The extents of the constants that initialisers were passed, behind the number of the initialiser.
    static PASSED: RefCell<Vec<(usize, Value)>> = const { RefCell::new(Vec::new()) };
    static PASSED_BY: RefCell<Option<&'static LegacyApi>> = const { RefCell::new(None) };
}

const INITIALISERS: [CompiledFunction; 4] = [
    initialise::<0>,
    initialise::<1>,
    initialise::<2>,
    initialise::<3>,
];

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
    // SAFETY: there is one argument, and each has a code.
    let Ok(shapes) = shapes_of(api, (value, unsafe { codes.read() })) else {
        return -1;
    };
    PASSED.with_borrow_mut(|passed| passed.push((N, shapes)));
    // SAFETY: the places are those of the caller.
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

/// The extents of each tensor of an array.
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

/// `module.constants`: a payload of kind `const_loader`, and below it a module that notes what it is passed.
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
    // PAY-37: one that is listed twice is one function.
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
    let written = LibraryFile::of(&symbols, &[])?;
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

/// The kind that a runtime reads constants under: its loader had the first name before it had the second.
fn constants_kind(api: &'static LegacyApi) -> Result<&'static str, Reply> {
    for kind in ["const_loader", "metadata"] {
        if api.global(&modules::loader_of(kind))?.is_some() {
            return Ok(kind);
        }
    }
    Err(unsupported("this runtime has no loader of constants"))
}

/// `module.properties` of the kinds that can be made from a library or a payload.
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
                "a module of kind `{other}` cannot be made from nothing"
            )));
        }
    };
    let mask = api.call_global("runtime.ModuleGetPropertyMask", &[module.arg()])?;
    accepted(json!(mask.int()))
}
