//! `function.registry`: the registry of global functions, driven through the C interface of a runtime.

use crate::conformance::runtime::RawHandle;
use crate::conformance::runtime::ffi::api::FfiApi;
use crate::conformance::runtime::ffi::forms::show;
use crate::conformance::runtime::ffi::owned::{OwnedValue, Raised, int_arg};
use crate::conformance::runtime::ffi::{Reply, accepted, alone, fresh_prefix, unsupported};
use crate::conformance::runtime::number::number_of;
use crate::value::RawAny;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// `function.registry`: names of this case alone, which are removed at the end.
///
/// FUN-10 to FUN-12. A name is prefixed, so that nothing of the process has it; what a step registers returns the number that the case states,
/// by which a lookup shows which function it found.
pub(in crate::conformance) fn registry(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    // `finished` counts what ends on any thread: of a case that runs meanwhile as well.
    let _alone = alone();
    let prefix = fresh_prefix();
    let results = registered(api, &prefix, args);
    for name in names(api, &prefix)? {
        remove(api, &format!("{prefix}{name}"))?;
    }
    let steps = args.get("value").and_then(Value::as_array);
    let steps = steps.into_iter().flatten();
    // Their names need not begin with the prefix.
    for step in steps.filter(|step| step[0] == "register_safely") {
        let name = step[1].as_str().unwrap_or_default();
        remove(api, &name.replace('*', &prefix))?;
    }
    accepted(results?)
}

/// The steps, whose results are in their order. What is registered stays on an error, for the caller to remove.
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
            // To look up says nothing of a name that is not there; what needs the function does.
            "require" => {
                if let Some(require) = api.brought("registry.require") {
                    api.call(&require, &[api.text(&name)?.raw])?;
                }
                api.call_global("ffi.GetGlobalFuncMetadata", &[api.text(&name)?.raw])?;
                api.global(&name)
                    .map_or(Ok(Value::Null), |found| ask(&found))?
            }
            "provide" => {
                let provide = api.brought("registry.provide");
                let provide = provide
                    .ok_or_else(|| unsupported("this runtime has no functions that yield"))?;
                let function = noted_at_its_end(api, number_of(step.get(2))?)?;
                api.call(&provide, &[api.text(&name)?.raw, function.raw])?;
                Value::Null
            }
            "register_safely" => {
                let register = api.brought("registry.register");
                let register = register
                    .ok_or_else(|| unsupported("this runtime does not distinguish safe callers"))?;
                let function = noted_at_its_end(api, number_of(step.get(2))?)?;
                match api.call(&register, &[api.text(&infixed)?.raw, function.raw]) {
                    Ok(_) => Value::Null,
                    Err(raised) => json!(raised.kind),
                }
            }
            "register_typed" => {
                let register = api.brought("registry.register_typed");
                let register = register
                    .ok_or_else(|| unsupported("this runtime registers no typed functions"))?;
                match api.call(&register, &[api.text(&name)?.raw]) {
                    Ok(_) => Value::Null,
                    Err(raised) => json!(raised.kind),
                }
            }
            "is_safe" => {
                let find = api.brought("registry.find");
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
            // What was replaced is held for `call_old` until here.
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

/// How many functions of [`noted_at_its_end`] have ended, on whichever thread.
static FINISHED: AtomicU64 = AtomicU64::new(0);

/// Waits until what is replaced or removed has ended: while another thread reads the registry, a runtime may leave that to the
/// next registration, and one that is due by then ends with it.
fn settle(api: &'static FfiApi) -> Result<(), Raised> {
    unsafe extern "C" fn body(_: RawHandle, _: *const RawAny, _: i32, _: *mut RawAny) -> i32 {
        0
    }
    unsafe extern "C" fn finish(this: RawHandle) {
        // SAFETY: the counter below, one reference of which is that of the function.
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

/// After so many a runtime is one that does not end functions.
const TRIES: u32 = 200;

/// Returns the number that `this` is: no memory, so that the function may end whenever the runtime likes.
unsafe extern "C" fn state_number(
    this: RawHandle,
    _: *const RawAny,
    _: i32,
    out: *mut RawAny,
) -> i32 {
    // SAFETY: a place for the result.
    unsafe { out.write(int_arg(this as i64)) };
    0
}

/// A function that returns `number`.
pub(in crate::conformance) fn numbered(
    api: &'static FfiApi,
    number: i64,
) -> Result<OwnedValue, Raised> {
    api.function(
        std::ptr::without_provenance_mut(number as usize),
        state_number,
    )
}

/// The same, whose end is counted.
fn noted_at_its_end(api: &'static FfiApi, number: i64) -> Result<OwnedValue, Raised> {
    unsafe extern "C" fn finish(_: RawHandle) {
        FINISHED.fetch_add(1, Ordering::SeqCst);
    }
    let this = std::ptr::without_provenance_mut(number as usize);
    api.function_until(this, state_number, Some(finish))
}

/// Removes a global function; whether there was one.
pub(in crate::conformance) fn remove(api: &'static FfiApi, name: &str) -> Result<bool, Raised> {
    let name = api.text(name)?;
    let removed = api.call_global("ffi.FunctionRemoveGlobal", &[name.raw])?;
    Ok(removed.raw.int() != 0)
}

/// The schema that metadata has as text; the metadata itself where it has none.
fn schema_in(metadata: &str) -> Value {
    let text = |described: Value| described.get("type_schema")?.as_str().map(str::to_owned);
    let schema = serde_json::from_str(metadata).ok().and_then(text);
    let schema = schema.and_then(|schema| serde_json::from_str(&schema).ok());
    schema.unwrap_or_else(|| json!(metadata))
}

/// The names behind `prefix`, in the order of the runtime.
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
