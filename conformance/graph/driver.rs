//! The operation `graph.script`: the executor of a runtime with the C interface of 0.20 and before, driven step by step through the
//! functions that TVM names. The kernels belong to the suite, and a library of trampolines calls them.
//!
//! A foreign runtime has no device except the CPU that a case could use, and no function that writes the payload of a module. Cases
//! with either are for this crate only.
//!
//! The value has a `graph`, named `tensors` and `steps`. `devices` (pairs of type and index, default `[[1, 0]]`) and `debug` state
//! how the executor is created. With `"bare": true` none is created, and the steps do it.
//!
//! A step is a list: the name of a function of the current module and its arguments. Numbers and texts stand for themselves. The
//! other arguments are objects:
//!
//! * `{"device": [TYPE, INDEX]}` is a device
//! * `{"tensor": NAME}` is a named tensor, `{"dtype", "shape", "data"}` a fresh one
//! * `{"params": {NAME: tensor}}` is a parameter file
//! * `{"graph": true}` is the graph as text, `{"kernels": true}` the module of kernels
//! * `{"self": true}` is the current module, `{"other": true}` a second executor of the same graph
//!
//! | step | action |
//! |---|---|
//! | `["@global", NAME, ...]` | calls a global function |
//! | `["@make", NAME, ...]`, `["@global-make", NAME, ...]` | like a function and like `@global`; the result becomes the current module |
//! | `["@other", NAME, ...]` | calls a function of the second executor |
//! | `["@has", NAME]` | returns whether the current module has the function |
//! | `["@show", TENSOR]`, `["@fill", TENSOR, [...]]` | reads, writes a named tensor |
//! | `["@hold", NAME, ...]` | calls a function and keeps its result; returns `{"held": true}` |
//! | `["@held"]` | returns the kept result, as it is now |
//! | `["@count", NAME, ...]` | calls a function; returns the number of comma-separated pieces of its text, or the length of its bytes |
//! | `["@log"]` | returns the kernels called since the last time, with the shapes of their arguments |
//! | `["@save"]` | returns the payload of the current module, as base64 |
//! | `["@kernels"]` | makes the module of kernels the current one |
//! | `["@took", NAME, ...]` | calls a function that measures; returns which times are above 0, and whether they fit into the call |
//! | `["@report", NAME]` | calls a function that returns a report; returns the function of each call, and whether it took time |
//! | `["@broken"]` | returns the rule and the kind of the last error; only for this crate |
//! | `["@own", NAME, FORM]` | calls a function of `rust_interface.rs` with the graph and the kernels; only for this crate |
//! | `["@alive"]` | returns the live memory on the device that counts (type 98); only for this crate |
//!
//! `{"lookup": {ID: tensor}}` is a function that finds linked parameters, only for this crate. The answer has a result for every
//! step, and `{"error": true}` for one that failed.

use super::forms::{bytes_of, param_file};
use super::results::shown;
use super::tensors::{ViewedTensor, dtype_of, wrong_case};
use super::{kernels, rust_interface, timing_results};
use crate::conformance::adapter::{Rejection, Reply};
use crate::conformance::device::counting_device::{self, UsageCount};
use crate::conformance::op;
use crate::conformance::runtime::case_numbers::{NoNumber, number_of};
use crate::conformance::runtime::ffi::unsupported;
use crate::conformance::runtime::legacy::{
    LegacyApi, LegacyArg, LegacyValue, bytes_arg, c_text, int_arg, null_arg, text_arg,
};
use crate::function::Error;
use crate::tensor::Device;
use crate::value::ByteArray;
use crate::value::legacy::{TVMValue, code};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Instant;

/// The running script: one executor, perhaps a second one of the same graph, and the values that the steps refer to by name.
///
/// The order of the fields is the order in which they are dropped, because executors borrow tensors that were set without a copy.
struct ExecutorScript<'a> {
    api: &'static LegacyApi,
    value: &'a Value,
    graph: std::ffi::CString,
    blob: Option<Vec<u8>>,
    kernels: LegacyValue,
    tensors: HashMap<String, ViewedTensor>,
    current: Option<LegacyValue>,
    other: Option<LegacyValue>,
    held: Option<LegacyValue>,
    count: Option<UsageCount>,
    /// The rule and kind of the last error.
    broken: Value,
}

/// Runs the steps of `value`. The answer is the list of their results.
pub(in crate::conformance) fn script(
    api: &'static LegacyApi,
    args: &Value,
) -> Result<Reply, Reply> {
    kernels::begin(api);
    let value = args.get("value").unwrap_or(&Value::Null);
    let balance = value["balance"] == json!(true);
    let counts = value["devices"].as_array().into_iter().flatten();
    let counts = balance
        || counts
            .into_iter()
            .any(|pair| pair[0] == json!(counting_device::KIND));
    let blob = blob(value).map_err(wrong_case)?;
    for (id, tensor) in value["linked"].as_object().into_iter().flatten() {
        let id = id.parse().map_err(|_| NoNumber::for_form(&json!(id)))?;
        let bytes = match tensor {
            Value::Null => None,
            form => Some(bytes_of(&form["data"], dtype_of(form)?).map_err(wrong_case)?),
        };
        kernels::link(id, bytes.as_deref());
    }
    let mut script = ExecutorScript {
        api,
        value,
        graph: c_text(&value["graph"].to_string()),
        kernels: kernels::library(api, extras(value, blob.as_deref()))?,
        blob,
        tensors: HashMap::new(),
        current: None,
        other: None,
        held: None,
        count: match counts.then(UsageCount::begin).transpose() {
            Ok(_) if counts && !is_this_crate(api) => {
                return Err(unsupported("the device that counts is one of this crate"));
            }
            count => count.map_err(|error| Reply::Skipped(error.to_string()))?,
        },
        broken: Value::Null,
    };
    for (name, tensor) in value["tensors"].as_object().into_iter().flatten() {
        script
            .tensors
            .insert(name.clone(), ViewedTensor::new(api, tensor)?);
    }
    if value["bare"] != json!(true) {
        match script.executor() {
            Ok(made) => script.current = Some(made),
            // Without an executor the steps can only ask for the error.
            Err(Reply::Reject(_)) => {
                let mut results = vec![json!({"error": true})];
                let has_step = value["steps"]
                    .as_array()
                    .is_some_and(|steps| steps.contains(&json!(["@broken"])));
                if has_step && !is_this_crate(api) {
                    return Err(unsupported("the error does not name the rule"));
                }
                results.extend(has_step.then(rust_interface::broken));
                return Ok(answer(Value::Array(results)));
            }
            Err(other) => return Err(other),
        }
    }
    let mut results = Vec::new();
    for step in value["steps"].as_array().into_iter().flatten() {
        results.push(match script.step(step) {
            // The messages of releases differ. Only the presence of an error is compared.
            Err(Reply::Reject(_)) => {
                script.broken = rust_interface::broken();
                json!({"error": true})
            }
            result => result?,
        });
    }
    // Executors are freed before the tensors that they borrow.
    drop((
        script.current.take(),
        script.other.take(),
        script.held.take(),
    ));
    let results = Value::Array(results);
    let count = script.count.take();
    drop(script);
    Ok(answer(match count.filter(|_| balance) {
        Some(count) => json!({"results": results, "alive": count.shown()}),
        None => results,
    }))
}

/// Returns whether the runtime is this crate.
///
/// Only this crate states the broken rule. For releases only the presence of an error counts, because their messages all differ.
fn is_this_crate(api: &'static LegacyApi) -> bool {
    api.suite_function("graph.show").is_some()
}

/// Returns the bytes of `blob`, which is base64 in pieces.
pub(super) fn blob(form: &Value) -> Result<Option<Vec<u8>>, Error> {
    let Some(pieces) = form["blob"].as_array() else {
        return Ok(None);
    };
    let text: String = pieces.iter().filter_map(Value::as_str).collect();
    let bytes = BASE64_STANDARD.decode(text);
    let wrong = |wrong: base64::DecodeError| Error::new("ValueError", wrong.to_string());
    bytes.map(Some).map_err(wrong)
}

/// Returns the additional content of the kernels' library: a library binary, and linked parameters.
fn extras<'a>(value: &Value, blob: Option<&'a [u8]>) -> kernels::Extras<'a> {
    let linked = value["linked"].is_object();
    kernels::Extras { blob, linked }
}

/// Returns an answer without findings, because executors of releases have none.
fn answer(value: Value) -> Reply {
    Reply::Ok {
        value,
        findings: None,
    }
}

impl ExecutorScript<'_> {
    /// Creates an executor of the graph on the devices of the case, as frontends do (GRF-43): the graph as text, the module, then
    /// the type and number of each device.
    ///
    /// A simulated device belongs to this crate and cannot be passed through the C interface of a release. Such a case is
    /// unsupported there.
    fn executor(&self) -> Result<LegacyValue, Reply> {
        let devices = self.value["devices"].as_array().cloned();
        let devices = devices.unwrap_or_else(|| vec![json!([1, 0])]);
        let debug = self.value["debug"] == json!(true);
        let mut args = vec![text_arg(&self.graph), self.kernels.arg()];
        let pairs = devices.iter().flat_map(|pair| [&pair[0], &pair[1]]);
        let places = pairs.map(|number| Ok(int_arg(number_of(number)?)));
        let places: Vec<LegacyArg> = places.collect::<Result<_, Reply>>()?;
        if devices.iter().any(|pair| pair[0] != json!(1)) {
            let create = self.api.suite_function("graph.create");
            let create = create
                .ok_or_else(|| unsupported("the second device is one that this crate simulates"))?;
            args.push(int_arg(debug.into()));
            args.extend(places);
            return self.api.call(&create, &args);
        }
        args.extend(places);
        // Up to 0.7 the executor is called a runtime.
        let [name, of_0_7] = if debug {
            [
                "tvm.graph_executor_debug.create",
                "tvm.graph_runtime_debug.create",
            ]
        } else {
            ["tvm.graph_executor.create", "tvm.graph_runtime.create"]
        };
        let is_there = |name: &str| Ok::<bool, Reply>(self.api.global(name)?.is_some());
        let old = !is_there(name)? && is_there(of_0_7)?;
        self.api.call_global(if old { of_0_7 } else { name }, &args)
    }

    /// Runs one step. Names that begin with `@` belong to the driver, and all others are functions of the current module.
    ///
    /// `@make` and `@kernels` change the current module: a factory (GRF-49) creates an executor but is not one.
    fn step(&mut self, step: &Value) -> Result<Value, Reply> {
        let words = step.as_array().map(Vec::as_slice).unwrap_or_default();
        let [what, rest @ ..] = words else {
            return Err(unsupported("a step is a list"));
        };
        let what = what.as_str().unwrap_or_default();
        match (what, rest) {
            ("@global", [name, args @ ..]) => shown(self.api, &self.global(name, args)?),
            ("@global-make", [name, args @ ..]) => {
                let made = self.global(name, args)?;
                self.become_current(made)
            }
            ("@make", [name, args @ ..]) => {
                let made = self.call(name, args)?;
                self.become_current(made)
            }
            ("@other", [name, args @ ..]) => {
                self.second_executor()?;
                let other = self.other.take();
                // The second executor is current only for this call, even if the call fails.
                let before = std::mem::replace(&mut self.current, other);
                let result = self.call(name, args);
                self.other = std::mem::replace(&mut self.current, before);
                shown(self.api, &result?)
            }
            ("@has", [name]) => {
                let name = name.as_str().unwrap_or_default();
                let found = self.api.function_of(self.current_module()?, name, false)?;
                Ok(json!(found.is_some()))
            }
            ("@show", [name]) => Ok(self.case_tensor(name)?.shown()),
            ("@fill", [name, data]) => {
                self.case_tensor(name)?.fill(data)?;
                Ok(Value::Null)
            }
            ("@hold", [name, args @ ..]) => {
                self.held = Some(self.call(name, args)?);
                Ok(json!({"held": true}))
            }
            ("@held", []) => match &self.held {
                Some(held) => shown(self.api, held),
                None => Ok(Value::Null),
            },
            ("@count", [name, args @ ..]) => {
                let result = self.call(name, args)?;
                Ok(match shown(self.api, &result)? {
                    Value::String(text) => json!(text.split_terminator(',').count()),
                    other => other,
                })
            }
            ("@broken", []) if is_this_crate(self.api) => Ok(self.broken.clone()),
            ("@broken", []) => Err(unsupported("the error does not name the rule")),
            ("@alive", []) => match &self.count {
                Some(count) => Ok(count.shown()),
                None => Err(unsupported("nothing is counted")),
            },
            ("@own", [name, form]) => {
                let own = format!("graph.{}", name.as_str().unwrap_or_default());
                let own = self.api.suite_function(&own);
                let own = own.ok_or_else(|| unsupported("no C function exists for this"))?;
                let form = c_text(&form.to_string());
                let args = [text_arg(&self.graph), self.kernels.arg(), text_arg(&form)];
                let text = self.api.call(&own, &args)?.text()?;
                serde_json::from_str(&text).map_err(|wrong| unsupported(wrong.to_string()))
            }
            ("@log", []) => Ok(Value::Array(kernels::take_log())),
            ("@kernels", []) => {
                let extras = extras(self.value, self.blob.as_deref());
                self.become_current(kernels::library(self.api, extras)?)
            }
            ("@took", [name, args @ ..]) => {
                let start = Instant::now();
                let result = self.call(name, args)?;
                timing_results::shown(name, args, &result, start.elapsed())
            }
            ("@report", [name]) => timing_results::report(&self.call(name, &[])?.text()?),
            ("@save", []) => {
                let save = self.api.suite_function("graph.save");
                let none = || unsupported("no function returns the payload of a module");
                let saved = self
                    .api
                    .call(&save.ok_or_else(none)?, &[self.current_module()?.arg()])?;
                Ok(op::base64(saved.bytes().unwrap_or_default()))
            }
            (name, args) => shown(self.api, &self.call(&json!(name), args)?),
        }
    }

    /// Returns the module that steps call, which is the last one that was created.
    fn current_module(&self) -> Result<&LegacyValue, Reply> {
        let none = || unsupported("there is no module yet");
        self.current.as_ref().ok_or_else(none)
    }

    /// Returns the second executor, which is created when a step first needs it. Most cases have none, and it allocates its own
    /// memory.
    fn second_executor(&mut self) -> Result<&LegacyValue, Reply> {
        if self.other.is_none() {
            self.other = Some(self.executor()?);
        }
        self.other
            .as_ref()
            .ok_or_else(|| unsupported("there is no second executor"))
    }

    /// Makes a module the current one, and returns it as JSON. The old one is freed unless something else holds it.
    fn become_current(&mut self, made: LegacyValue) -> Result<Value, Reply> {
        let result = shown(self.api, &made)?;
        self.current = Some(made);
        Ok(result)
    }

    /// Returns a tensor of the case. It keeps its memory through all steps, so that a case sees later writes of an executor.
    fn case_tensor(&self, name: &Value) -> Result<&ViewedTensor, Reply> {
        let name = name.as_str().unwrap_or_default();
        let none = || unsupported(format!("there is no tensor `{name}`"));
        self.tensors.get(name).ok_or_else(none)
    }

    /// Calls a global function, such as one that creates an executor or loads parameters.
    fn global(&mut self, name: &Value, args: &[Value]) -> Result<LegacyValue, Reply> {
        let name = name.as_str().unwrap_or_default();
        let made = self.arguments(args)?;
        // A factory keeps its parameters, so it needs arrays and not views.
        let owned = |made: &PreparedArg| match made {
            PreparedArg::Tensor(tensor) => tensor.array.arg(),
            other => other.arg(),
        };
        let args: Vec<LegacyArg> = made.iter().map(owned).collect();
        self.api.call_global(name, &args)
    }

    /// Calls a function of the module. A missing function is an error like that of a call, because frontends raise an error for
    /// both.
    fn call(&mut self, name: &Value, args: &[Value]) -> Result<LegacyValue, Reply> {
        let name = name.as_str().unwrap_or_default();
        let function = self.api.function_of(self.current_module()?, name, false)?;
        let none = || Reply::Reject(Rejection::default());
        let function = function.ok_or_else(none)?;
        let made = self.arguments(args)?;
        let args: Vec<LegacyArg> = made.iter().map(PreparedArg::arg).collect();
        self.api.call(&function, &args)
    }

    /// Prepares each argument together with the memory that it points to, which lives until the call returns.
    fn arguments(&mut self, args: &[Value]) -> Result<Vec<PreparedArg>, Reply> {
        args.iter().map(|arg| self.argument(arg)).collect()
    }

    /// Prepares one argument: a number, a text, null, a tensor that is created here, or an object with one member. `tensor` has a
    /// name, `params` is the file of these parameters (TEN-40), and `lookup` is a function that finds only these names. The others
    /// are `device`, `graph`, `kernels`, `self`, `other`.
    fn argument(&mut self, arg: &Value) -> Result<PreparedArg, Reply> {
        let members = match arg {
            Value::Number(_) => return Ok(PreparedArg::Plain(int_arg(number_of(arg)?))),
            Value::String(text) => return Ok(PreparedArg::Text(c_text(text))),
            Value::Object(members) => members,
            _ => return Ok(PreparedArg::Plain(null_arg())),
        };
        Ok(match members.iter().next() {
            Some((key, name)) if key == "tensor" => {
                PreparedArg::Plain(self.case_tensor(name)?.arg())
            }
            Some((key, Value::Object(params))) if key == "params" => {
                let file = param_file(params).map_err(|error| unsupported(error.to_string()))?;
                PreparedArg::bytes(file.as_bytes().to_vec())
            }
            Some((key, pair)) if key == "device" => {
                let v_device = Device {
                    kind: number_of(&pair[0])?,
                    id: number_of(&pair[1])?,
                };
                PreparedArg::Plain((TVMValue { v_device }, code::DEVICE))
            }
            Some((key, known)) if key == "lookup" => {
                let make = self.api.suite_function("graph.lookup");
                let make = make.ok_or_else(|| unsupported("no C function makes a lookup"))?;
                PreparedArg::LegacyValue(
                    self.api
                        .call(&make, &[text_arg(&c_text(&known.to_string()))])?,
                )
            }
            Some((key, _)) if key == "graph" => PreparedArg::Plain(text_arg(&self.graph)),
            Some((key, _)) if key == "kernels" => PreparedArg::Plain(self.kernels.arg()),
            Some((key, _)) if key == "self" => PreparedArg::Plain(self.current_module()?.arg()),
            Some((key, _)) if key == "other" => PreparedArg::Plain(self.second_executor()?.arg()),
            _ => PreparedArg::Tensor(ViewedTensor::new(self.api, arg)?),
        })
    }
}

/// An argument, with the memory that it points to.
enum PreparedArg {
    Plain(LegacyArg),
    Text(std::ffi::CString),
    Bytes(
        Box<ByteArray>,
        #[expect(dead_code, reason = "the array points to these bytes")] Vec<u8>,
    ),
    Tensor(ViewedTensor),
    LegacyValue(LegacyValue),
}

impl PreparedArg {
    /// Creates a byte array, boxed because the address of its description is passed.
    fn bytes(bytes: Vec<u8>) -> PreparedArg {
        PreparedArg::Bytes(Box::new(ByteArray::of(&bytes)), bytes)
    }

    /// Returns the value and its code (VAL-19), which borrow from `self`.
    fn arg(&self) -> LegacyArg {
        match self {
            PreparedArg::Plain(arg) => *arg,
            PreparedArg::Text(text) => text_arg(text),
            PreparedArg::Bytes(array, _) => bytes_arg(array),
            PreparedArg::Tensor(tensor) => tensor.arg(),
            PreparedArg::LegacyValue(held) => held.arg(),
        }
    }
}
