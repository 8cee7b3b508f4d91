//! The operations `function.script` and `module.script`: a sequence of calls of registered functions and of functions that they return.
//!
//! The caller uses the C interface and sees results, complete errors, and which of the moved objects were taken.

use super::callbacks;
use crate::conformance::module::linked_library::unsupported_reason;
use crate::conformance::runtime::ffi::api::FfiApi;
use crate::conformance::runtime::ffi::forms::{make, show};
use crate::conformance::runtime::ffi::owned::{OwnedValue, bytes_arg, text_arg};
use crate::conformance::runtime::ffi::{
    Reply, accepted, bytes, fresh_prefix, lock_process_state, unsupported, value_of,
};
use crate::value::{AnyPayload, ByteArray, RawAny, index};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};
use std::ffi::CString;
use std::path::PathBuf;

/// Runs a script without a file.
pub(in crate::conformance) fn script(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    run(api, args, None)
}

/// Runs a script with the data of the request in a file, which is the library of the script.
///
/// The file exists under several extensions, because a loader may choose by extension (MOD-01). It is removed after the script. A library
/// that is still mapped stays usable.
pub(in crate::conformance) fn script_of_library(
    api: &'static FfiApi,
    args: &Value,
) -> Result<Reply, Reply> {
    let data = bytes(args)?;
    runs_here(&data)?;
    let skipped = |error: std::io::Error| Reply::Skipped(error.to_string());
    let folder = tempfile::tempdir().map_err(skipped)?;
    let library = folder.path().join("case.so");
    std::fs::write(&library, data).map_err(skipped)?;
    for other in ["case.dll", "case.dylib", "case.dso", "case.so.1.2"] {
        // One file has all names, so only the extension differs.
        std::fs::hard_link(&library, folder.path().join(other)).map_err(skipped)?;
    }
    let reply = run(api, args, Some(folder.path().to_owned()));
    drop(folder);
    reply
}

/// Checks whether a library can run here. A C++ library also needs the runtime library of its compiler.
fn runs_here(library: &[u8]) -> Result<(), Reply> {
    if let Some(why) = unsupported_reason() {
        return Err(unsupported(why));
    }
    let name = "libstdc++.so.6";
    let mut parts = library.windows(name.len());
    if parts.any(|part| part == name.as_bytes()) {
        if !cfg!(target_env = "gnu") {
            return Err(unsupported(format!(
                "the {name} of the cases is that of glibc"
            )));
        }
        // SAFETY: this is a library of the system, which may be opened and closed at any time.
        let found = unsafe { libloading::Library::new(name) };
        found.map_err(|why| Reply::Skipped(format!("this system has no {name}: {why}")))?;
    }
    Ok(())
}

/// The state of a running script, with its results. A result is kept until the end, or until a step forgets it.
struct CallScript {
    api: &'static FfiApi,
    folder: Option<PathBuf>,
    results: Vec<Option<OwnedValue>>,
    /// Prefix of its `fresh` names.
    prefix: String,
}

impl Drop for CallScript {
    /// Drops the last result first, so that objects of a library end before the library.
    fn drop(&mut self) {
        while self.results.pop().is_some() {}
    }
}

/// An argument: the cell, and its target for the duration of the call.
struct ScriptArgument {
    raw: RawAny,
    _held: Option<OwnedValue>,
    _text: Option<CString>,
    _bytes: Option<Box<(ByteArray, Vec<u8>)>>,
    /// Target of an r-value reference: the address of an object, or null after the object is taken.
    slot: Option<Box<*mut std::ffi::c_void>>,
}

/// Runs the steps while no other case runs, because registered functions and loaded libraries belong to the whole process.
fn run(api: &'static FfiApi, args: &Value, folder: Option<PathBuf>) -> Result<Reply, Reply> {
    let steps = value_of(args).as_array();
    let steps = steps.ok_or_else(|| unsupported("`value` is not a list of steps"))?;
    let _alone = lock_process_state();
    let mut script = CallScript {
        api,
        folder,
        results: Vec::new(),
        prefix: fresh_prefix(),
    };
    let answers: Result<Vec<Value>, Reply> = steps.iter().map(|step| script.step(step)).collect();
    accepted(Value::Array(answers?))
}

impl CallScript {
    /// Performs a step `[function, argument, ...]`. `{"of": n}` is the result of step n, and can be the function or an argument.
    fn step(&mut self, step: &Value) -> Result<Value, Reply> {
        let no_function = || unsupported(format!("{step} names no function"));
        let parts = step.as_array().and_then(|parts| parts.split_first());
        let (mut name, mut passed) = parts.ok_or_else(no_function)?;
        let kind_alone = name == "kind";
        if kind_alone {
            (name, passed) = passed.split_first().ok_or_else(no_function)?;
        }
        if name == "forget" {
            let at = passed.first().and_then(Value::as_u64);
            let at = at.and_then(|at| usize::try_from(at).ok());
            let place = at.and_then(|at| self.results.get_mut(at));
            *place.ok_or_else(|| unsupported(format!("{step} forgets no result")))? = None;
            self.results.push(None);
            return Ok(Value::Null);
        }
        let function = match name.as_str() {
            Some(name) => self
                .api
                .global(name)
                .or_else(|| self.api.suite_function(name))
                .ok_or_else(|| unsupported(format!("this runtime has no function `{name}`")))?,
            None => self.earlier_result(name)?,
        };
        let passed: Result<Vec<ScriptArgument>, Reply> =
            passed.iter().map(|form| self.argument(form)).collect();
        let passed = passed?;
        let cells: Vec<RawAny> = passed.iter().map(|passed| passed.raw).collect();
        let (result, answer) = match self.api.call(&function, &cells) {
            Ok(result) => {
                let shown = show(self.api, &result)?;
                (Some(result), shown)
            }
            // Only the kind is shown if the message comes from the system, for example from the dynamic linker.
            Err(raised) if kind_alone => (None, json!({"raises": [raised.kind]})),
            Err(raised) => (None, json!({"raises": [raised.kind, raised.message]})),
        };
        self.results.push(result);
        let taken: Vec<bool> = passed
            .iter()
            .filter_map(|passed| passed.finish(self.api))
            .collect();
        Ok(match taken.as_slice() {
            [] => answer,
            _ => json!({"result": answer, "taken": taken}),
        })
    }

    /// Returns another reference to an earlier result.
    fn earlier_result(&self, form: &Value) -> Result<OwnedValue, Reply> {
        let at = form.get("of").and_then(Value::as_u64);
        let at = at.and_then(|at| usize::try_from(at).ok());
        let result = at.and_then(|at| self.results.get(at));
        let result = result.and_then(Option::as_ref);
        let result =
            result.ok_or_else(|| unsupported(format!("{form} is not an earlier result")))?;
        Ok(self.api.share(result.raw))
    }

    /// Makes a value: an earlier result or a value of the chapters.
    fn value(&self, form: &Value) -> Result<OwnedValue, Reply> {
        if form.get("of").is_some() {
            self.earlier_result(form)
        } else {
            make(self.api, form)
        }
    }

    /// Makes an argument as a C caller passes it.
    ///
    /// `raw` is a C string, `view` a borrowed byte array, and `moved` an r-value reference (VAL-09). `path` is a file of the script.
    /// `callback` and `fresh` are a function and a name of the suite.
    fn argument(&self, form: &Value) -> Result<ScriptArgument, Reply> {
        let text = |name: &str| form.get(name).and_then(Value::as_str);
        if let Some(raw) = form.get("raw") {
            let bytes = match raw.as_str() {
                Some(text) => text.as_bytes().to_vec(),
                None => bytes_at(raw, "bytes")?,
            };
            let text = CString::new(bytes).map_err(|why| unsupported(why.to_string()))?;
            return Ok(ScriptArgument {
                raw: text_arg(&text),
                _text: Some(text),
                ..ScriptArgument::default()
            });
        }
        if form.get("view").is_some() {
            let bytes = bytes_at(form, "view")?;
            let both = Box::new((ByteArray::of(&bytes), bytes));
            return Ok(ScriptArgument {
                raw: bytes_arg(&both.0),
                _bytes: Some(both),
                ..ScriptArgument::default()
            });
        }
        if let Some(inner) = form.get("moved") {
            let held = self.value(inner)?;
            let slot = if held.raw.type_index >= index::OBJECT_BEGIN {
                Box::new(held.pointer())
            } else {
                return Err(unsupported(format!("{inner} is not an object")));
            };
            // VAL-09: from here on the slot owns the reference. A callee that does not take it leaves it there.
            std::mem::forget(held);
            let ptr = std::ptr::from_ref(&*slot).cast_mut().cast();
            return Ok(ScriptArgument {
                raw: RawAny::of(index::RVALUE_REF, AnyPayload { ptr }),
                slot: Some(slot),
                ..ScriptArgument::default()
            });
        }
        let held = match (text("path"), text("callback")) {
            (Some(name), _) => {
                let folder = self.folder.as_ref();
                let folder = folder.ok_or_else(|| unsupported("this script has no files"))?;
                self.api.text(&folder.join(name).to_string_lossy())?
            }
            (_, Some(name)) => callbacks::converting(self.api, name)?,
            _ => match text("fresh") {
                Some(name) => self.api.text(&format!("{}{name}", self.prefix))?,
                None => self.value(form)?,
            },
        };
        Ok(ScriptArgument {
            raw: held.raw,
            _held: Some(held),
            ..ScriptArgument::default()
        })
    }
}

/// Decodes the base64 bytes under `name`.
fn bytes_at(form: &Value, name: &str) -> Result<Vec<u8>, Reply> {
    let text = form.get(name).and_then(Value::as_str).unwrap_or_default();
    let bytes = BASE64_STANDARD.decode(text);
    bytes.map_err(|why| unsupported(why.to_string()))
}

impl Default for ScriptArgument {
    fn default() -> ScriptArgument {
        ScriptArgument {
            raw: RawAny::NONE,
            _held: None,
            _text: None,
            _bytes: None,
            slot: None,
        }
    }
}

impl ScriptArgument {
    /// Returns whether a moved object was taken. An object that was not taken is dropped here.
    fn finish(&self, api: &'static FfiApi) -> Option<bool> {
        // Read through a pointer, because the callee may have changed the slot.
        let slot: *const *mut std::ffi::c_void = &raw const **self.slot.as_ref()?;
        // SAFETY: the box is alive.
        let left = unsafe { slot.read_volatile() };
        if !left.is_null() {
            // SAFETY: the slot owned a reference that the callee did not take.
            unsafe { api.drop_one(left) };
        }
        Some(left.is_null())
    }
}
