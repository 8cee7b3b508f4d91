//! Scripts for the C interface of 0.2 to 0.20: callbacks, calls, errors, the registry.
//!
//! The interface is a table of C functions, so one script runs both on the exports of this crate and on a foreign runtime.

use super::legacy_c_functions;
use super::legacy_callbacks::{CallbackState, HOOKS, callback, finish};
use crate::conformance::op::{Handler, Op};
use crate::conformance::runtime::RawHandle;
use crate::conformance::runtime::ffi::forms::{float, float_of};
use crate::conformance::runtime::ffi::{Reply, accepted, unsupported, value_of};
use crate::conformance::runtime::legacy::functions::{Frontend, Interface};
use crate::conformance::runtime::legacy::{LegacyApi, c_text};
use crate::tensor::{Device, Dtype};
use crate::value::ByteArray;
use crate::value::legacy::{TVMValue, code};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_int};
use std::ptr;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

/// All operations that a case about this interface can request.
pub(crate) const OPS: &[Op] = &[Op {
    name: "function.legacy",
    help: "value [step, ...] over the C interface of 0.20 and before, with the steps of spec/function.md: the result of each",
    run: Handler::Legacy(script),
}];

/// Content of the two result places before a call.
const BEFORE: (i64, c_int) = (0x5EED, 77);

/// Performs `function.legacy`.
fn script(api: &'static LegacyApi, args: &Value) -> Result<Reply, Reply> {
    accepted(run(api, value_of(args))?)
}

/// Runs the steps. `Err` names the step that the interface or this driver cannot perform.
///
/// Global names of a script have a unique prefix. After the script its registrations are removed, if the release can do that (FUN-23).
fn run(api: &'static LegacyApi, steps: &Value) -> Result<Value, Reply> {
    static RUN: AtomicU32 = AtomicU32::new(0);
    let mut script = LegacyScript {
        api,
        interface: api.functions,
        prefix: format!("script{}.", RUN.fetch_add(1, Ordering::Relaxed)),
        held: BTreeMap::new(),
        returned: Vec::new(),
        registered: Vec::new(),
        finished: Box::leak(Box::new(AtomicU32::new(0))),
        error: Box::leak(Box::new(AtomicI64::new(1))),
    };
    let steps = steps.as_array().into_iter().flatten();
    let answers = steps.map(|step| {
        let name = step.get(0).and_then(Value::as_str).unwrap_or_default();
        let (answer, returned) = if name.starts_with("TVM") {
            script.c_function(name, step)?
        } else {
            (script.step(step).map_err(unsupported)?, 0)
        };
        script.returned.push(returned);
        Ok(answer)
    });
    answers.collect()
}

/// One script: the functions that it holds, by the names it gives them, and the frontend that it plays.
struct LegacyScript {
    api: &'static LegacyApi,
    interface: Interface,
    prefix: String,
    held: BTreeMap<String, RawHandle>,
    /// Return values of the C functions that steps have called.
    returned: Vec<usize>,
    registered: Vec<CString>,
    /// Number of finished callbacks. It outlives the script, because a runtime may keep a function for ever.
    finished: &'static AtomicU32,
    /// Reference count of the error object of the frontend that this script plays. The script owns one reference.
    error: &'static AtomicI64,
}

impl LegacyScript {
    /// Performs a step that names a C function.
    fn c_function(&self, name: &str, step: &Value) -> Result<(Value, usize), Reply> {
        let forms = step.as_array().map_or(&[][..], |step| &step[1..]);
        let function = |name: &str| self.held.get(name).copied();
        legacy_c_functions::call(self.api.runtime, name, forms, &self.returned, &function)
    }

    /// Performs one step from the table in `spec/function.md`. For most steps the answer is the return code of the C function.
    fn step(&mut self, step: &Value) -> Result<Value, String> {
        let text = |at: usize| step.get(at).and_then(Value::as_str).unwrap_or_default();
        let api = self.interface;
        Ok(match text(0) {
            "callback" => json!(self.callback(text(1), text(2), text(3))),
            "call" => self.call(text(1), step.get(2).unwrap_or(&Value::Null))?,
            "register" => {
                let over = step.get(3).and_then(Value::as_bool).unwrap_or(false);
                let (name, function) = (self.global(text(1)), self.handle(text(2))?);
                self.registered.push(name.clone());
                // SAFETY: the arguments are a text and a function.
                json!(unsafe { (api.register)(name.as_ptr(), function, c_int::from(over)) })
            }
            "find" => {
                let mut found = ptr::null_mut();
                // SAFETY: the arguments are a text and a place for a handle.
                let code = unsafe { (api.find)(self.global(text(1)).as_ptr(), &raw mut found) };
                if !found.is_null() {
                    self.hold(text(2), found);
                }
                json!({"code": code, "found": !found.is_null()})
            }
            "remove" => {
                let remove = api.remove.ok_or("this release cannot remove a global")?;
                // SAFETY: the argument is a text.
                json!(unsafe { remove(self.global(text(1)).as_ptr()) })
            }
            "names" => self.names()?,
            // FUN-15: only a part of the text is compared, because releases add lines around it.
            "error" => {
                // SAFETY: the function takes no arguments.
                let last = unsafe { (api.last_error)() };
                // SAFETY: the result is a text of the runtime, valid until the next failure.
                let last = unsafe { CStr::from_ptr(last) };
                json!(last.to_string_lossy().contains(text(1)))
            }
            "frontend" => {
                let frontend = self.frontend()?;
                for (name, hook) in HOOKS {
                    // SAFETY: the arguments are a text and the function of that name.
                    if unsafe { (frontend.register)(name.as_ptr(), hook()) } != 0 {
                        return Err("a hook of the frontend was rejected".into());
                    }
                }
                // SAFETY: the arguments are a text and null.
                json!(unsafe { (frontend.register)(c"Py_Nothing".as_ptr(), ptr::null_mut()) })
            }
            "held" => {
                // SAFETY: the function takes no arguments.
                let held = unsafe { (self.frontend()?.error)() };
                let own = ptr::from_ref(self.error).cast_mut().cast();
                json!({"error": held == own, "references": self.error.load(Ordering::Relaxed)})
            }
            "drop" => {
                // SAFETY: the function takes no arguments.
                unsafe { (self.frontend()?.drop_error)() };
                Value::Null
            }
            "free" => {
                let handle = self
                    .held
                    .remove(text(1))
                    .ok_or("no function of that name")?;
                // SAFETY: this script owns the handle.
                unsafe { (api.free)(handle) };
                Value::Null
            }
            "finished" => json!(self.finished.load(Ordering::Relaxed)),
            other => return Err(format!("there is no step {other}")),
        })
    }

    /// Returns the functions for the error object of a frontend (FUN-25), which exist since 0.14.
    fn frontend(&self) -> Result<Frontend, String> {
        let frontend = self.interface.frontend;
        frontend.ok_or_else(|| "this release keeps no error of a frontend".into())
    }

    /// Returns the full name of a global of this script. The prefix keeps scripts apart, also two runs of one script.
    fn global(&self, name: &str) -> CString {
        c_text(&format!("{}{name}", self.prefix))
    }

    /// Returns a function that the script holds.
    fn handle(&self, name: &str) -> Result<RawHandle, String> {
        let held = self.held.get(name);
        held.copied()
            .ok_or_else(|| format!("the script has no function {name}"))
    }

    /// Takes ownership of a handle. An earlier handle with this name is freed.
    fn hold(&mut self, name: &str, handle: RawHandle) {
        if let Some(before) = self.held.insert(name.to_owned(), handle) {
            // SAFETY: this script owns the handle.
            unsafe { (self.interface.free)(before) };
        }
    }

    /// Makes a function from a callback that does `what` (FUN-17 to FUN-20). The resource is finished with it, and the finisher is counted.
    fn callback(&mut self, name: &str, what: &str, text: &str) -> c_int {
        let made = Box::new(CallbackState {
            interface: self.interface,
            what: what.to_owned(),
            text: c_text(text),
            finished: self.finished,
            error: self.error,
        });
        let mut out = ptr::null_mut();
        let resource = Box::into_raw(made).cast();
        // SAFETY: the callback takes a resource of this type, and `finish` frees it.
        let code =
            unsafe { (self.interface.create)(callback, resource, Some(finish), &raw mut out) };
        if code == 0 {
            self.hold(name, out);
        }
        code
    }

    /// Calls a function. Returns its result, or the code and whether both result places are unchanged (FUN-14).
    fn call(&mut self, name: &str, args: &Value) -> Result<Value, String> {
        let function = self.handle(name)?;
        let mut kept = ArgumentStorage::default();
        let args = args.as_array().into_iter().flatten();
        let pairs: Result<Vec<_>, String> = args.map(|arg| self.argument(arg, &mut kept)).collect();
        let (mut values, mut codes): (Vec<TVMValue>, Vec<c_int>) = pairs?.into_iter().unzip();
        let (mut result, mut result_code) = (TVMValue { v_int64: BEFORE.0 }, BEFORE.1);
        // SAFETY: the arguments are a function, values with as many codes, and two places for the result.
        let code = unsafe {
            (self.interface.call)(
                function,
                values.as_mut_ptr(),
                codes.as_mut_ptr(),
                c_int::try_from(values.len()).unwrap_or(c_int::MAX),
                &raw mut result,
                &raw mut result_code,
            )
        };
        if code != 0 {
            // SAFETY: all bytes of the place were initialized above.
            let kept = (unsafe { result.v_int64 }, result_code) == BEFORE;
            return Ok(json!({"code": code, "places_kept": kept}));
        }
        // SAFETY: `result_code` names the written member, and this function owns any handle.
        Ok(unsafe { self.result(result, result_code) })
    }

    /// Makes an argument with its code. The target of a pointer lives in `kept` for the call.
    fn argument(
        &self,
        arg: &Value,
        kept: &mut ArgumentStorage,
    ) -> Result<(TVMValue, c_int), String> {
        let member = |name: &str| arg.get(name);
        let pair = |value: &Value| -> Option<(i32, i32)> {
            Some((
                value.get(0)?.as_i64()?.try_into().ok()?,
                value.get(1)?.as_i64()?.try_into().ok()?,
            ))
        };
        if let Some(v_int64) = arg.as_i64() {
            return Ok((TVMValue { v_int64 }, code::INT));
        }
        if let Some(text) = arg.as_str() {
            kept.texts.push(c_text(text));
            let v_str = kept.texts[kept.texts.len() - 1].as_ptr();
            return Ok((TVMValue { v_str }, code::STR));
        }
        if arg.is_null() {
            let v_handle = ptr::null_mut();
            return Ok((TVMValue { v_handle }, code::NULL));
        }
        if let Some(v_float64) = member("float").and_then(float_of) {
            return Ok((TVMValue { v_float64 }, code::FLOAT));
        }
        if let Some(bytes) = member("bytes").and_then(Value::as_str) {
            let bytes = STANDARD.decode(bytes).map_err(|error| error.to_string())?;
            kept.bytes.push(bytes.into_boxed_slice());
            let bytes = &kept.bytes[kept.bytes.len() - 1];
            kept.arrays.push(Box::new(ByteArray {
                data: bytes.as_ptr().cast(),
                size: bytes.len(),
            }));
            let array = &raw const *kept.arrays[kept.arrays.len() - 1];
            let v_handle = array.cast_mut().cast();
            return Ok((TVMValue { v_handle }, code::BYTES));
        }
        if let Some((device_type, device_id)) = member("device").and_then(pair) {
            let v_device = Device {
                kind: device_type,
                id: device_id,
            };
            return Ok((TVMValue { v_device }, code::DEVICE));
        }
        if let Some([kind, bits, lanes]) = member("dtype").and_then(triple) {
            let v_type = Dtype {
                code: kind.try_into().unwrap_or(u8::MAX),
                bits: bits.try_into().unwrap_or(u8::MAX),
                lanes,
            };
            return Ok((TVMValue { v_type }, code::DATA_TYPE));
        }
        if let Some(name) = member("function").and_then(Value::as_str) {
            let v_handle = self.handle(name)?;
            return Ok((TVMValue { v_handle }, code::FUNCTION));
        }
        Err(format!("no argument is written {arg}"))
    }

    /// Shows a result as the case states it: its code (FUN-13) and the value of the eight bytes by that code. Text and bytes are borrowed
    /// from the thread (FUN-16), so they are copied before any other call.
    ///
    /// # Safety
    ///
    /// `value` has the type of `code`, and the caller owns the handles in it.
    unsafe fn result(&self, value: TVMValue, result_code: c_int) -> Value {
        let shown = match result_code {
            // SAFETY: the value has the type of the code, by this contract.
            code::INT => json!(unsafe { value.v_int64 }),
            // SAFETY: the value has the type of the code, by this contract. A bool is passed as an integer.
            code::BOOL => json!(unsafe { value.v_int64 } != 0),
            // SAFETY: the value has the type of the code, by this contract.
            code::FLOAT => json!({"float": float(unsafe { value.v_float64 })}),
            code::STR => {
                // SAFETY: the value has the type of the code, by this contract.
                let text = unsafe { value.v_str };
                // SAFETY: a text of the runtime ends with NUL.
                json!(unsafe { CStr::from_ptr(text) }.to_string_lossy())
            }
            code::BYTES => {
                // SAFETY: the value is the address of a byte array, by this contract.
                let array = unsafe { value.v_handle }.cast::<ByteArray>();
                // SAFETY: the array is valid until the next call on this thread.
                let array = unsafe { &*array };
                let bytes = match array.size {
                    0 => &[][..],
                    // SAFETY: the array has `size` bytes, which are valid as long as the array.
                    size => unsafe { std::slice::from_raw_parts(array.data.cast::<u8>(), size) },
                };
                json!({"bytes": STANDARD.encode(bytes)})
            }
            code::DEVICE => {
                // SAFETY: the value has the type of the code, by this contract.
                let device = unsafe { value.v_device };
                json!({"device": [device.kind, device.id]})
            }
            code::FUNCTION => {
                // SAFETY: the value has the type of the code, by this contract.
                let function = unsafe { value.v_handle };
                // FUN-13: functions have a separate code. The driver cannot see which function it is.
                // SAFETY: a function result belongs to the caller, and is not used after this call.
                unsafe { (self.interface.free)(function) };
                json!("function")
            }
            _ => Value::Null,
        };
        json!({"type_code": result_code, "value": shown})
    }

    /// Lists the names of this script without their prefix. They are sorted, because a release may list them in any order.
    fn names(&self) -> Result<Value, String> {
        let (mut count, mut names) = (0, ptr::null());
        // SAFETY: both arguments are places.
        if unsafe { (self.interface.names)(&raw mut count, &raw mut names) } != 0 {
            return Err("the names could not be listed".into());
        }
        let names: Vec<String> = (0..usize::try_from(count).unwrap_or(0))
            .map(|at| {
                // SAFETY: the array holds `count` texts until the next listing on this thread.
                let name = unsafe { *names.wrapping_add(at) };
                // SAFETY: a name ends with NUL.
                let name = unsafe { CStr::from_ptr(name) };
                name.to_string_lossy().into_owned()
            })
            .collect();
        let own = names
            .iter()
            .filter_map(|name| name.strip_prefix(&self.prefix));
        let mut own: Vec<&str> = own.collect();
        own.sort_unstable();
        Ok(json!(own))
    }
}

impl Drop for LegacyScript {
    fn drop(&mut self) {
        for name in &self.registered {
            if let Some(remove) = self.interface.remove {
                // SAFETY: the argument is a text.
                unsafe { remove(name.as_ptr()) };
            }
        }
        for handle in self.held.values() {
            // SAFETY: this script owns the handle.
            unsafe { (self.interface.free)(*handle) };
        }
    }
}

/// The targets of arguments.
#[derive(Default)]
struct ArgumentStorage {
    texts: Vec<CString>,
    bytes: Vec<Box<[u8]>>,
    #[expect(clippy::vec_box, reason = "their addresses are passed on")]
    arrays: Vec<Box<ByteArray>>,
}

/// Returns code, bits and lanes of a data type, each at most 16 bits wide.
fn triple(value: &Value) -> Option<[u16; 3]> {
    let one = |at: usize| value.get(at)?.as_u64()?.try_into().ok();
    Some([one(0)?, one(1)?, one(2)?])
}
