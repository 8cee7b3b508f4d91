//! `graph.script`: the executor of a runtime with the C interface of 0.20 and before, driven through the functions that TVM
//! names, step by step. The kernels are ours, reached by a library of jumps.
//!
//! A foreign runtime has no device but the CPU that a case could use, and no function that writes the payload of a module:
//! cases with either are ours alone.
//!
//! The value has a `graph`, named `tensors`, `steps`, and how the executor is made: `devices` (pairs of type and index,
//! `[[1, 0]]` when absent) and `debug`. With `"bare": true` none is made, and the steps do it.
//!
//! A step is a list: the name of a function of the current module and its arguments. Numbers and texts stand for
//! themselves, `{"device": [TYPE, INDEX]}` for a device; `{"tensor": NAME}` is a named tensor, `{"dtype", "shape", "data"}` a fresh one, `{"params": {NAME: tensor}}`
//! a parameter file, `{"graph": true}` the graph as text, `{"kernels": true}` the module of kernels, `{"self": true}` the
//! current module and `{"other": true}` a second executor of the same graph.
//!
//! | step | does |
//! |---|---|
//! | `["@global", NAME, ...]` | calls a global function |
//! | `["@make", NAME, ...]`, `["@global-make", NAME, ...]` | as a function and as `@global`; the result is the current module from here on |
//! | `["@other", NAME, ...]` | calls a function of the second executor |
//! | `["@has", NAME]` | whether the current module has the function |
//! | `["@show", TENSOR]`, `["@fill", TENSOR, [...]]` | reads, writes a named tensor |
//! | `["@hold", NAME, ...]` | calls a function; its result is `{"held": true}` |
//! | `["@held"]` | what is held, as it is now |
//! | `["@count", NAME, ...]` | calls a function; comma-separated pieces of its text, or the length of its bytes |
//! | `["@log"]` | kernels called since the last time, with the shapes of their arguments |
//! | `["@save"]` | the payload of the current module, as base64 |
//! | `["@kernels"]` | makes the module of kernels the current one |
//! | `["@took", NAME, ...]` | calls a function that measures; which of its times are above 0, and whether they fit what the call took |
//! | `["@report", NAME]` | calls a function that returns a report; the function of each call, and whether it took time |
//! | `["@broken"]` | the rule that the last error was made of, and its kind, of this crate alone |
//! | `["@own", NAME, FORM]` | a function of `own.rs` that takes the graph and the kernels, of this crate alone |
//! | `["@alive"]` | what is alive on the device that counts (type 98), of this crate alone |
//!
//! `{"lookup": {ID: tensor}}` is a function that finds linked parameters, of this crate alone. The answer has a result for every step; `{"error": true}` for one that failed.

use super::forms::{bytes_of, elements, extents, param_file};
use super::{kernels, own, times};
use crate::conformance::adapter::{Rejection, Reply, legacy::modules};
use crate::conformance::device::counted::{self, Count};
use crate::conformance::op;
use crate::conformance::runtime::ffi::{forms::plain_float, unsupported};
use crate::conformance::runtime::legacy::{
    Api, Arg, Held, bytes_arg, c_text, int_arg, null_arg, text_arg,
};
use crate::conformance::runtime::number::{NoNumber, number_of, numbers_in};
use crate::function::Error;
use crate::value::legacy::{TVMValue, code};
use crate::value::{ByteArray, DLDataType, DLDevice, DLTensor, dtype_from_text, dtype_to_text};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::ffi::c_int;
use std::ptr;
use std::time::Instant;

struct Script<'a> {
    api: &'static Api,
    value: &'a Value,
    graph: std::ffi::CString,
    blob: Option<Vec<u8>>,
    kernels: Held,
    tensors: HashMap<String, Lent>,
    current: Option<Held>,
    other: Option<Held>,
    held: Option<Held>,
    count: Option<Count>,
    /// Rule and kind of the last error.
    broken: Value,
}

pub(in crate::conformance) fn script(api: &'static Api, args: &Value) -> Result<Reply, Reply> {
    kernels::begin(api);
    let value = args.get("value").unwrap_or(&Value::Null);
    let balance = value["balance"] == json!(true);
    let counts = value["devices"].as_array().into_iter().flatten();
    let counts = balance
        || counts
            .into_iter()
            .any(|pair| pair[0] == json!(counted::KIND));
    let blob = blob(value).map_err(wrong_case)?;
    for (id, tensor) in value["linked"].as_object().into_iter().flatten() {
        let id = id.parse().map_err(|_| NoNumber::at(&json!(id)))?;
        let bytes = match tensor {
            Value::Null => None,
            form => Some(bytes_of(&form["data"], dtype_of(form)?).map_err(wrong_case)?),
        };
        kernels::link(id, bytes.as_deref());
    }
    let mut script = Script {
        api,
        value,
        graph: c_text(&value["graph"].to_string()),
        kernels: kernels::library(api, extras(value, blob.as_deref()))?,
        blob,
        tensors: HashMap::new(),
        current: None,
        other: None,
        held: None,
        count: match counts.then(Count::begin).transpose() {
            Ok(_) if counts && !ours(api) => {
                return Err(unsupported("the device that counts is one of this crate"));
            }
            count => count.map_err(|error| Reply::Skipped(error.to_string()))?,
        },
        broken: Value::Null,
    };
    for (name, tensor) in value["tensors"].as_object().into_iter().flatten() {
        script.tensors.insert(name.clone(), Lent::new(api, tensor)?);
    }
    if value["bare"] != json!(true) {
        match script.executor() {
            Ok(made) => script.current = Some(made),
            // Without an executor the steps can ask for the error alone.
            Err(Reply::Reject(_)) => {
                let mut results = vec![json!({"error": true})];
                let asked = value["steps"]
                    .as_array()
                    .is_some_and(|steps| steps.contains(&json!(["@broken"])));
                if asked && !ours(api) {
                    return Err(unsupported("it does not say which rule"));
                }
                results.extend(asked.then(own::broken));
                return Ok(answer(Value::Array(results)));
            }
            Err(other) => return Err(other),
        }
    }
    let mut results = Vec::new();
    for step in value["steps"].as_array().into_iter().flatten() {
        results.push(match script.step(step) {
            // Releases differ in the words of an error. That there is one is what counts.
            Err(Reply::Reject(_)) => {
                script.broken = own::broken();
                json!({"error": true})
            }
            said => said?,
        });
    }
    // Executors go before the tensors that they were lent.
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

/// Whether the runtime is this crate.
fn ours(api: &'static Api) -> bool {
    api.brought("graph.show").is_some()
}

/// The bytes of `blob`, which is base64 in pieces.
pub(super) fn blob(form: &Value) -> Result<Option<Vec<u8>>, Error> {
    let Some(pieces) = form["blob"].as_array() else {
        return Ok(None);
    };
    let text: String = pieces.iter().filter_map(Value::as_str).collect();
    let bytes = BASE64_STANDARD.decode(text);
    let wrong = |wrong: base64::DecodeError| Error::new("ValueError", wrong.to_string());
    bytes.map(Some).map_err(wrong)
}

fn extras<'a>(value: &Value, blob: Option<&'a [u8]>) -> kernels::Extras<'a> {
    let linked = value["linked"].is_object();
    kernels::Extras { blob, linked }
}

fn wrong_case(error: impl std::fmt::Display) -> Reply {
    Reply::ProtocolError(error.to_string())
}

fn dtype_of(form: &Value) -> Result<DLDataType, Reply> {
    let text = form["dtype"].as_str().unwrap_or_default();
    dtype_from_text(text).map_err(|error| unsupported(error.to_string()))
}

fn answer(value: Value) -> Reply {
    Reply::Ok {
        value,
        findings: None,
    }
}

impl Script<'_> {
    fn executor(&self) -> Result<Held, Reply> {
        let devices = self.value["devices"].as_array().cloned();
        let devices = devices.unwrap_or_else(|| vec![json!([1, 0])]);
        let debug = self.value["debug"] == json!(true);
        let mut args = vec![text_arg(&self.graph), self.kernels.arg()];
        let pairs = devices.iter().flat_map(|pair| [&pair[0], &pair[1]]);
        let places = pairs.map(|number| Ok(int_arg(number_of(number)?)));
        let places: Vec<Arg> = places.collect::<Result<_, Reply>>()?;
        if devices.iter().any(|pair| pair[0] != json!(1)) {
            let create = self.api.brought("graph.create");
            let create = create
                .ok_or_else(|| unsupported("the second device is one that this crate simulates"))?;
            args.push(int_arg(debug.into()));
            args.extend(places);
            return self.api.call(&create, &args);
        }
        args.extend(places);
        // The executor is called a runtime up to 0.7.
        let [name, of_0_7] = match debug {
            true => [
                "tvm.graph_executor_debug.create",
                "tvm.graph_runtime_debug.create",
            ],
            false => ["tvm.graph_executor.create", "tvm.graph_runtime.create"],
        };
        let is_there = |name: &str| Ok::<bool, Reply>(self.api.global(name)?.is_some());
        let old = !is_there(name)? && is_there(of_0_7)?;
        self.api.call_global(if old { of_0_7 } else { name }, &args)
    }

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
                self.second()?;
                let other = self.other.take();
                let before = std::mem::replace(&mut self.current, other);
                let said = self.call(name, args);
                self.other = std::mem::replace(&mut self.current, before);
                shown(self.api, &said?)
            }
            ("@has", [name]) => {
                let name = name.as_str().unwrap_or_default();
                let found = self.api.function_of(self.now()?, name, false)?;
                Ok(json!(found.is_some()))
            }
            ("@show", [name]) => Ok(self.named(name)?.shown()),
            ("@fill", [name, data]) => {
                self.named(name)?.fill(data)?;
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
                let given = self.call(name, args)?;
                Ok(match shown(self.api, &given)? {
                    Value::String(text) => json!(text.split_terminator(',').count()),
                    other => other,
                })
            }
            ("@broken", []) if ours(self.api) => Ok(self.broken.clone()),
            ("@broken", []) => Err(unsupported("it does not say which rule")),
            ("@alive", []) => match &self.count {
                Some(count) => Ok(count.shown()),
                None => Err(unsupported("nothing is counted")),
            },
            ("@own", [name, form]) => {
                let own = format!("graph.{}", name.as_str().unwrap_or_default());
                let own = self.api.brought(&own);
                let own = own.ok_or_else(|| unsupported("no C function does it"))?;
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
                let given = self.call(name, args)?;
                times::shown(name, args, &given, start.elapsed())
            }
            ("@report", [name]) => times::report(&self.call(name, &[])?.text()?),
            ("@save", []) => {
                let save = self.api.brought("graph.save");
                let none = || unsupported("no function gives the payload of a module");
                let saved = self
                    .api
                    .call(&save.ok_or_else(none)?, &[self.now()?.arg()])?;
                Ok(op::base64(saved.bytes().unwrap_or_default()))
            }
            (name, args) => shown(self.api, &self.call(&json!(name), args)?),
        }
    }

    fn now(&self) -> Result<&Held, Reply> {
        let none = || unsupported("there is no module yet");
        self.current.as_ref().ok_or_else(none)
    }

    fn second(&mut self) -> Result<&Held, Reply> {
        if self.other.is_none() {
            self.other = Some(self.executor()?);
        }
        self.other
            .as_ref()
            .ok_or_else(|| unsupported("there is no second executor"))
    }

    fn become_current(&mut self, made: Held) -> Result<Value, Reply> {
        let said = shown(self.api, &made)?;
        self.current = Some(made);
        Ok(said)
    }

    fn named(&self, name: &Value) -> Result<&Lent, Reply> {
        let name = name.as_str().unwrap_or_default();
        let none = || unsupported(format!("there is no tensor `{name}`"));
        self.tensors.get(name).ok_or_else(none)
    }

    fn global(&mut self, name: &Value, args: &[Value]) -> Result<Held, Reply> {
        let name = name.as_str().unwrap_or_default();
        let made = self.arguments(args)?;
        // A factory keeps its parameters: it wants arrays, not views.
        let owned = |made: &Made| match made {
            Made::Tensor(tensor) => tensor.array.arg(),
            other => other.arg(),
        };
        let args: Vec<Arg> = made.iter().map(owned).collect();
        self.api.call_global(name, &args)
    }

    /// A function that is not there fails as a call does: frontends raise an error for both.
    fn call(&mut self, name: &Value, args: &[Value]) -> Result<Held, Reply> {
        let name = name.as_str().unwrap_or_default();
        let function = self.api.function_of(self.now()?, name, false)?;
        let none = || Reply::Reject(Rejection::default());
        let function = function.ok_or_else(none)?;
        let made = self.arguments(args)?;
        let args: Vec<Arg> = made.iter().map(Made::arg).collect();
        self.api.call(&function, &args)
    }

    fn arguments(&mut self, args: &[Value]) -> Result<Vec<Made>, Reply> {
        args.iter().map(|arg| self.argument(arg)).collect()
    }

    fn argument(&mut self, arg: &Value) -> Result<Made, Reply> {
        let members = match arg {
            Value::Number(_) => return Ok(Made::Plain(int_arg(number_of(arg)?))),
            Value::String(text) => return Ok(Made::Text(c_text(text))),
            Value::Object(members) => members,
            _ => return Ok(Made::Plain(null_arg())),
        };
        Ok(match members.iter().next() {
            Some((key, name)) if key == "tensor" => Made::Plain(self.named(name)?.arg()),
            Some((key, Value::Object(params))) if key == "params" => {
                let file = param_file(params).map_err(|error| unsupported(error.to_string()))?;
                Made::bytes(file.as_bytes().to_vec())
            }
            Some((key, pair)) if key == "device" => {
                let v_device = DLDevice {
                    device_type: number_of(&pair[0])?,
                    device_id: number_of(&pair[1])?,
                };
                Made::Plain((TVMValue { v_device }, code::DEVICE))
            }
            Some((key, known)) if key == "lookup" => {
                let make = self.api.brought("graph.lookup");
                let make = make.ok_or_else(|| unsupported("no C function makes a lookup"))?;
                Made::Held(
                    self.api
                        .call(&make, &[text_arg(&c_text(&known.to_string()))])?,
                )
            }
            Some((key, _)) if key == "graph" => Made::Plain(text_arg(&self.graph)),
            Some((key, _)) if key == "kernels" => Made::Plain(self.kernels.arg()),
            Some((key, _)) if key == "self" => Made::Plain(self.now()?.arg()),
            Some((key, _)) if key == "other" => Made::Plain(self.second()?.arg()),
            _ => Made::Tensor(Lent::new(self.api, arg)?),
        })
    }
}

/// An argument, with what it points to.
enum Made {
    Plain(Arg),
    Text(std::ffi::CString),
    Bytes(
        Box<ByteArray>,
        #[expect(dead_code, reason = "what the array points to")] Vec<u8>,
    ),
    Tensor(Lent),
    Held(Held),
}

impl Made {
    fn bytes(bytes: Vec<u8>) -> Made {
        Made::Bytes(Box::new(ByteArray::of(&bytes)), bytes)
    }

    fn arg(&self) -> Arg {
        match self {
            Made::Plain(arg) => *arg,
            Made::Text(text) => text_arg(text),
            Made::Bytes(array, _) => bytes_arg(array),
            Made::Tensor(tensor) => tensor.arg(),
            Made::Held(held) => held.arg(),
        }
    }
}

/// A tensor in memory of the runtime, and a view of it that is lent. With a `skew` the view begins that many bytes later.
struct Lent {
    array: Held,
    view: Box<DLTensor>,
    _shape: Box<[i64]>,
    _strides: Option<Box<[i64]>>,
}

impl Lent {
    fn new(api: &'static Api, form: &Value) -> Result<Lent, Reply> {
        let dtype = dtype_of(form)?;
        let mut shape: Box<[i64]> = extents(form).map_err(wrong_case)?.into();
        let mut strides: Option<Box<[i64]>> = match form.get("strides") {
            Some(strides) => Some(numbers_in(strides)?.into()),
            None => None,
        };
        let skew = form["skew"].as_u64();
        let array = match skew {
            None => api.array(&shape, dtype)?,
            Some(skew) => {
                let item = i64::from(dtype.bits) * i64::from(dtype.lanes) / 8;
                let size = shape.iter().product::<i64>() * item + skew.cast_signed();
                let (code, bits, lanes) = (1, 8, 1);
                api.array(&[size], DLDataType { code, bits, lanes })?
            }
        };
        let whole = array
            .tensor()
            .ok_or_else(|| unsupported("no tensor was made"))?;
        let view = Box::new(DLTensor {
            ndim: c_int::try_from(shape.len()).map_err(|_| NoNumber::at(&form["shape"]))?,
            dtype,
            shape: shape.as_mut_ptr(),
            strides: strides
                .as_mut()
                .map_or(ptr::null_mut(), |strides| strides.as_mut_ptr()),
            byte_offset: skew.unwrap_or(0),
            ..*whole
        });
        let lent = Lent {
            array,
            view,
            _shape: shape,
            _strides: strides,
        };
        lent.fill(&form["data"])?;
        Ok(lent)
    }

    fn arg(&self) -> Arg {
        let v_handle = ptr::from_ref(&*self.view).cast_mut().cast();
        (TVMValue { v_handle }, code::DLTENSOR)
    }

    fn fill(&self, data: &Value) -> Result<(), Reply> {
        let bytes = bytes_of(data, self.view.dtype);
        let bytes = bytes.map_err(wrong_case)?;
        if let Some(memory) = memory(&self.view)
            && bytes.len() <= memory.1
        {
            // SAFETY: the memory of the view has that many bytes, and is the runtime's.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), memory.0, bytes.len()) };
        }
        Ok(())
    }

    fn shown(&self) -> Value {
        tensor_shown(&self.view)
    }
}

/// First byte and size of a compact tensor on the CPU.
fn memory(tensor: &DLTensor) -> Option<(*mut u8, usize)> {
    // SAFETY: a tensor that is alive.
    let shape = unsafe { tensor.shape() };
    let item = usize::from(tensor.dtype.bits) * usize::from(tensor.dtype.lanes);
    let size = shape.iter().try_fold(item.div_ceil(8), |size, extent| {
        size.checked_mul(usize::try_from(*extent).ok()?)
    });
    let offset = usize::try_from(tensor.byte_offset).ok()?;
    Some((tensor.data.cast::<u8>().wrapping_add(offset), size?))
}

fn tensor_shown(tensor: &DLTensor) -> Value {
    let DLDataType { code, bits, .. } = tensor.dtype;
    let dtype = dtype_to_text(tensor.dtype).unwrap_or_default();
    // SAFETY: a tensor that is alive.
    let shape = unsafe { tensor.shape() };
    if tensor.device.device_type != DLDevice::CPU.device_type {
        let device = [tensor.device.device_type, tensor.device.device_id];
        return json!({"dtype": dtype, "shape": shape, "device": device});
    }
    let bytes = match memory(tensor) {
        Some((_, 0)) | None => &[][..],
        // SAFETY: the tensor is alive and has so many bytes; it is on the CPU.
        Some((first, size)) => unsafe { std::slice::from_raw_parts(first, size) },
    };
    json!({
        "dtype": dtype,
        "shape": shape,
        "data": elements(bytes, code, bits),
    })
}

/// A result, as the chapter shows it.
fn shown(api: &'static Api, given: &Held) -> Result<Value, Reply> {
    Ok(match given.code {
        code::NULL => Value::Null,
        code::INT => json!(given.int()),
        code::BOOL => json!(given.int() != 0),
        // SAFETY: the code says that it is a float.
        code::FLOAT => plain_float(unsafe { given.value.v_float64 }),
        code::STR => json!(given.text()?),
        code::BYTES => json!({"bytes": given.bytes().map_or(0, <[u8]>::len)}),
        code::MODULE => json!({"module": executor_kind(modules::kind_of(api, given)?)}),
        code::NDARRAY | code::DLTENSOR => given.tensor().map_or(Value::Null, tensor_shown),
        code::OBJECT => object_shown(api, given)?,
        other => json!({"code": other}),
    })
}

/// Cases name the kinds of 0.8 and later.
fn executor_kind(kind: String) -> String {
    match kind.as_str() {
        "GraphRuntime" => "GraphExecutor".to_owned(),
        "GraphRuntimeFactory" => "GraphExecutorFactory".to_owned(),
        _ => kind,
    }
}

/// Containers, by what functions about them take the object.
fn object_shown(api: &'static Api, given: &Held) -> Result<Value, Reply> {
    if let Some(show) = api.brought("graph.show") {
        let text = api.call(&show, &[given.arg()])?.text()?;
        return serde_json::from_str(&text).map_err(|wrong| unsupported(wrong.to_string()));
    }
    let of = |name: &str, more: &[Arg]| api.call_global(name, &[&[given.arg()], more].concat());
    if let Ok(text) = of("runtime.GetFFIString", &[]) {
        return Ok(json!(text.text()?));
    }
    // Unlike the others `MapItems` does not look at what it is given.
    if of("runtime.MapSize", &[]).is_ok() {
        let items = shown(api, &of("runtime.MapItems", &[])?)?;
        let items = items.as_array().cloned().unwrap_or_default();
        let pairs = items.chunks_exact(2).map(|pair| {
            let name = pair[0].as_str().unwrap_or_default().to_owned();
            (name, pair[1].clone())
        });
        return Ok(Value::Object(pairs.collect::<Map<_, _>>()));
    }
    for (size, item) in [
        ("runtime.ArraySize", "runtime.ArrayGetItem"),
        ("runtime.GetShapeTupleSize", "runtime.GetShapeTupleElem"),
    ] {
        if let Ok(size) = of(size, &[]) {
            let items = (0..size.int()).map(|at| shown(api, &of(item, &[int_arg(at)])?));
            return Ok(Value::Array(items.collect::<Result<_, Reply>>()?));
        }
    }
    Err(unsupported("a result is an object that no function shows"))
}
