//! The operation `function.registry`: the registry of global functions, through the C interface of a runtime.

use crate::conformance::runtime::RawHandle;
use crate::conformance::runtime::case_numbers::number_of;
use crate::conformance::runtime::ffi::api::FfiApi;
use crate::conformance::runtime::ffi::forms::show;
use crate::conformance::runtime::ffi::owned::{OwnedValue, Raised, int_arg};
use crate::conformance::runtime::ffi::{
    Reply, accepted, fresh_prefix, lock_process_state, unsupported,
};
use crate::value::RawAny;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Performs `function.registry` with names of this case only, which are removed at the end.
///
/// FUN-10 to FUN-12. Names get a prefix that nothing else in the process uses. Each registered function returns the number that the case
/// states, so a lookup shows which function it found.
pub(in crate::conformance) fn registry(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    // `finished` counts functions that end on any thread, so no other case may run at the same time.
    let _alone = lock_process_state();
    let prefix = fresh_prefix();
    let results = registered(api, &prefix, args);
    for name in names(api, &prefix)? {
        remove(api, &format!("{prefix}{name}"))?;
    }
    let steps = args.get("value").and_then(Value::as_array);
    let steps = steps.into_iter().flatten();
    // The names of these steps may not begin with the prefix.
    for step in steps.filter(|step| step[0] == "register_safely") {
        let name = step[1].as_str().unwrap_or_default();
        remove(api, &name.replace('*', &prefix))?;
    }
    accepted(results?)
}

/// Runs the steps and returns their results in order. After an error the registered names remain, and the caller removes them.
fn registered(api: &'static FfiApi, prefix: &str, args: &Value) -> Result<Value, Reply> {
    let mut results = Vec::new();
    let mut replaced = BTreeMap::new();
    settle(api)?;
    let before = FINISHED.load(Ordering::SeqCst);
    let ask = |function: &OwnedValue| match api.call(function, &[]) {
        Ok(result) => show(api, &result),
        Err(raised) => Ok(json!(raised.kind)),
    };
    for step in args
        .get("value")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let text = |at: usize| step.get(at).and_then(Value::as_str).unwrap_or_default();
        let name = format!("{prefix}{}", text(1));
        let infixed = text(1).replace('*', prefix);
        results.push(match text(0) {
            "register" => {
                if let Some(old) = api.global(&name) {
                    replaced.insert(name.clone(), old);
                }
                let function = noted_at_its_end(api, number_of(step.get(2))?)?;
                let over = step.get(3).and_then(Value::as_bool).unwrap_or(false);
                api.set_global(&name, &function, over)?;
                Value::Null
            }
            "lookup" => api
                .global(&name)
                .map_or(Ok(Value::Null), |found| ask(&found))?,
            // A lookup reports nothing for a missing name. A function that needs the global does.
            "require" => {
                if let Some(require) = api.suite_function("registry.require") {
                    api.call(&require, &[api.text(&name)?.raw])?;
                }
                api.call_global("ffi.GetGlobalFuncMetadata", &[api.text(&name)?.raw])?;
                api.global(&name)
                    .map_or(Ok(Value::Null), |found| ask(&found))?
            }
            "provide" => {
                let provide = api.suite_function("registry.provide");
                let provide = provide
                    .ok_or_else(|| unsupported("this runtime has no functions that yield"))?;
                let function = noted_at_its_end(api, number_of(step.get(2))?)?;
                api.call(&provide, &[api.text(&name)?.raw, function.raw])?;
                Value::Null
            }
            "register_safely" => {
                let register = api.suite_function("registry.register");
                let register = register
                    .ok_or_else(|| unsupported("this runtime does not distinguish safe callers"))?;
                let function = noted_at_its_end(api, number_of(step.get(2))?)?;
                match api.call(&register, &[api.text(&infixed)?.raw, function.raw]) {
                    Ok(_) => Value::Null,
                    Err(raised) => json!(raised.kind),
                }
            }
            "register_typed" => {
                let register = api.suite_function("registry.register_typed");
                let register = register
                    .ok_or_else(|| unsupported("this runtime registers no typed functions"))?;
                match api.call(&register, &[api.text(&name)?.raw]) {
                    Ok(_) => Value::Null,
                    Err(raised) => json!(raised.kind),
                }
            }
            "is_safe" => {
                let find = api.suite_function("registry.find");
                let find = find
                    .ok_or_else(|| unsupported("this runtime does not distinguish safe callers"))?;
                show(api, &api.call(&find, &[api.text(&infixed)?.raw])?)?
            }
            "call_old" => replaced.get(&name).map_or(Ok(Value::Null), ask)?,
            "describe" => {
                let function = noted_at_its_end(api, number_of(step.get(2))?)?;
                let texts = [text(3), text(4)];
                api.set_global_described(&name, &function, texts)?;
                Value::Null
            }
            "metadata" => {
                let metadata =
                    api.call_global("ffi.GetGlobalFuncMetadata", &[api.text(&name)?.raw])?;
                show(api, &metadata)?
            }
            "schema" => {
                let metadata =
                    api.call_global("ffi.GetGlobalFuncMetadata", &[api.text(&name)?.raw])?;
                match metadata.text() {
                    Some(metadata) => schema_in(&metadata),
                    None => show(api, &metadata)?,
                }
            }
            // Until here, the replaced functions are held for `call_old`.
            "finished" => {
                replaced.clear();
                settle(api)?;
                json!(FINISHED.load(Ordering::SeqCst) - before)
            }
            "remove" => json!(remove(api, &name)?),
            "names" => json!(names(api, prefix)?),
            other => return Err(unsupported(format!("there is no step {other}"))),
        });
    }
    Ok(json!(results))
}

/// The number of functions from [`noted_at_its_end`] that have ended, on any thread.
static FINISHED: AtomicU64 = AtomicU64::new(0);

/// Waits until replaced and removed functions have ended. While another thread reads the registry, a runtime may delay their end until the
/// next registration. So this function registers further functions until one of them ends.
fn settle(api: &'static FfiApi) -> Result<(), Raised> {
    unsafe extern "C" fn body(_: RawHandle, _: *const RawAny, _: i32, _: *mut RawAny) -> i32 {
        0
    }
    unsafe extern "C" fn finish(this: RawHandle) {
        // SAFETY: `this` is the counter below, and the function owns one reference to it.
        let last = unsafe { Arc::from_raw(this.cast::<AtomicU64>()) };
        last.fetch_add(1, Ordering::SeqCst);
    }
    let ended = Arc::new(AtomicU64::new(0));
    for _ in 0..TRIES {
        let name = fresh_prefix();
        let this = Arc::into_raw(Arc::clone(&ended)).cast_mut().cast();
        let function = api.function_until(this, body, Some(finish))?;
        api.set_global(&name, &function, true)?;
        drop(function);
        remove(api, &name)?;
        if ended.load(Ordering::SeqCst) > 0 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    Ok(())
}

/// Number of attempts after which the runtime is assumed never to end functions.
const TRIES: u32 = 200;

/// Returns the number in `this`. The number is not an address, so the function may end at any time.
unsafe extern "C" fn state_number(
    this: RawHandle,
    _: *const RawAny,
    _: i32,
    out: *mut RawAny,
) -> i32 {
    // SAFETY: `out` is a place for the result.
    unsafe { out.write(int_arg(this as i64)) };
    0
}

/// Creates a function that returns `number`.
pub(in crate::conformance) fn numbered(
    api: &'static FfiApi,
    number: i64,
) -> Result<OwnedValue, Raised> {
    api.function(
        std::ptr::without_provenance_mut(number as usize),
        state_number,
    )
}

/// Like `numbered`, but counts the end of the function.
fn noted_at_its_end(api: &'static FfiApi, number: i64) -> Result<OwnedValue, Raised> {
    unsafe extern "C" fn finish(_: RawHandle) {
        FINISHED.fetch_add(1, Ordering::SeqCst);
    }
    let this = std::ptr::without_provenance_mut(number as usize);
    api.function_until(this, state_number, Some(finish))
}

/// Removes a global function. Returns whether there was one.
pub(in crate::conformance) fn remove(api: &'static FfiApi, name: &str) -> Result<bool, Raised> {
    let name = api.text(name)?;
    let removed = api.call_global("ffi.FunctionRemoveGlobal", &[name.raw])?;
    Ok(removed.raw.int() != 0)
}

/// Returns the schema that metadata contains as text, or the metadata itself if it contains none.
fn schema_in(metadata: &str) -> Value {
    let text = |described: Value| described.get("type_schema")?.as_str().map(str::to_owned);
    let schema = serde_json::from_str(metadata).ok().and_then(text);
    let schema = schema.and_then(|schema| serde_json::from_str(&schema).ok());
    schema.unwrap_or_else(|| json!(metadata))
}

/// Returns the names that begin with `prefix`, without it, in the order of the runtime.
fn names(api: &'static FfiApi, prefix: &str) -> Result<Vec<String>, Raised> {
    let list = api.call_global("ffi.FunctionListGlobalNamesFunctor", &[])?;
    let count = api.call(&list, &[int_arg(-1)])?.raw.int();
    let mut own = Vec::new();
    for at in 0..count {
        let name = api.call(&list, &[int_arg(at)])?.text().unwrap_or_default();
        own.extend(name.strip_prefix(prefix).map(str::to_owned));
    }
    Ok(own)
}
