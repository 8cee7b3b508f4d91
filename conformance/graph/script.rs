//! `graph.script`: the executor driven through the functions that TVM names, step by step.
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
//!
//! The answer has a result for every step; `{"error": true}` for one that failed.

use super::kernels::{Kernels, place, shown, tensor_json};
use crate::conformance::op::{self, Answer, Op, Refusal, Run};
use crate::function::{Error, registry};
use crate::graph::Graph;
use crate::graph::executor::Executor;
use crate::graph::module::GraphExecutor;
use crate::module::Module;
use crate::object::Tensor;
use crate::rule::Findings;
use crate::tensor::{Dtype, Params, Sizing, TensorRecord};
use crate::value::{Any, AnyView, Bytes, DLDataType, DLDevice, dtype_from_text};
use crate::wire::Writer;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// What a case can ask of an executor.
pub(crate) const OPS: &[Op] = &[Op {
    name: "graph.script",
    help: "value {graph, tensors, devices, debug, steps}: the result of every step",
    run: Run::Here(script),
}];

struct Script {
    graph: Value,
    devices: Vec<(i32, i32)>,
    debug: bool,
    kernels: Kernels,
    tensors: HashMap<String, Tensor>,
    current: Option<Module>,
    other: Option<Module>,
    held: Any,
}

fn script(args: &Value) -> Result<Answer, Refusal> {
    let value = &args["value"];
    let unusable = |error: Error| Refusal::Unsupported(error.to_string());
    let mut tensors = HashMap::new();
    for (name, tensor) in value["tensors"].as_object().into_iter().flatten() {
        tensors.insert(name.clone(), make_tensor(tensor).map_err(unusable)?);
    }
    let number = |value: &Value| value.as_i64().and_then(|number| i32::try_from(number).ok());
    let devices = value["devices"].as_array().map(|pairs| {
        pairs
            .iter()
            .filter_map(|pair| Some((number(&pair[0])?, number(&pair[1])?)))
            .collect()
    });
    let mut script = Script {
        graph: value["graph"].clone(),
        devices: devices.unwrap_or_else(|| vec![(1, 0)]),
        debug: value["debug"] == json!(true),
        kernels: Kernels::default(),
        tensors,
        current: None,
        other: None,
        held: Any::none(),
    };
    let mut results = Vec::new();
    if value["bare"] != json!(true) {
        match script.executor() {
            Ok(made) => script.current = Some(made),
            // The graph cannot be run: no step can.
            Err(error) => return Ok(answer(json!([failed(&error)]))),
        }
    }
    for step in value["steps"].as_array().into_iter().flatten() {
        results.push(script.step(step).unwrap_or_else(|error| failed(&error)));
    }
    // Executors go before the tensors that they were lent.
    drop((script.current.take(), script.other.take()));
    Ok(answer(Value::Array(results)))
}

fn answer(value: Value) -> Answer {
    Answer::new(value, Findings::default())
}

/// Releases differ in the words, and in the kind, of an error. That there is one is what counts.
fn failed(_: &Error) -> Value {
    json!({"error": true})
}

impl Script {
    fn executor(&self) -> Result<Module, Error> {
        let graph = Graph::read(&self.graph.to_string(), &mut Findings::default())?;
        let places = self.devices.iter().map(|(kind, id)| place(*kind, *id));
        let module = self.kernels.module();
        let executor = Executor::new(
            Arc::new(graph),
            &|name| module.function(name, true),
            places.collect::<Result<_, _>>()?,
        )?;
        Ok(Module::new(GraphExecutor::new(executor, self.debug)))
    }

    fn step(&mut self, step: &Value) -> Result<Value, Error> {
        let words = step.as_array().map(Vec::as_slice).unwrap_or_default();
        let [what, rest @ ..] = words else {
            return Err(Error::new("ValueError", "a step is a list"));
        };
        match (what.as_str().unwrap_or_default(), rest) {
            ("@global", [name, args @ ..]) => {
                let result = self.global(name, args)?;
                Ok(shown(result.view()))
            }
            ("@global-make", [name, args @ ..]) => {
                let result = self.global(name, args)?;
                self.become_current(&result)
            }
            ("@make", [name, args @ ..]) => {
                let result = self.call(&self.now()?, name, args)?;
                self.become_current(&result)
            }
            ("@other", [name, args @ ..]) => {
                let other = self.second()?;
                let result = self.call(&other, name, args)?;
                Ok(shown(result.view()))
            }
            ("@has", [name]) => {
                let name = name.as_str().unwrap_or_default();
                Ok(json!(self.now()?.function(name, false)?.is_some()))
            }
            ("@show", [name]) => Ok(tensor_json(self.named(name)?)),
            ("@fill", [name, data]) => {
                let tensor = self.named(name)?;
                tensor
                    .fill(&bytes_of(data, tensor.dl().dtype))
                    .map(|()| Value::Null)
            }
            ("@hold", [name, args @ ..]) => {
                self.held = self.call(&self.now()?, name, args)?;
                Ok(json!({"held": true}))
            }
            ("@held", []) => Ok(shown(self.held.view())),
            ("@count", [name, args @ ..]) => {
                let result = self.call(&self.now()?, name, args)?;
                Ok(match shown(result.view()) {
                    Value::String(text) => json!(text.split_terminator(',').count()),
                    other => other,
                })
            }
            ("@log", []) => Ok(self.kernels.take_log()),
            ("@save", []) => Ok(op::base64(&self.now()?.save_to_bytes()?)),
            (_, args) => {
                let result = self.call(&self.now()?, what, args)?;
                Ok(shown(result.view()))
            }
        }
    }

    fn now(&self) -> Result<Module, Error> {
        let none = || Error::new("ValueError", "there is no module yet");
        self.current.clone().ok_or_else(none)
    }

    fn second(&mut self) -> Result<Module, Error> {
        if self.other.is_none() {
            self.other = Some(self.executor()?);
        }
        self.other
            .clone()
            .ok_or_else(|| Error::new("ValueError", "no second executor"))
    }

    fn become_current(&mut self, result: &Any) -> Result<Value, Error> {
        let module = result
            .as_object()
            .and_then(|object| Module::from_object(object.clone()).ok());
        self.current = module;
        Ok(shown(result.view()))
    }

    fn named(&self, name: &Value) -> Result<&Tensor, Error> {
        let name = name.as_str().unwrap_or_default();
        let none = || Error::new("ValueError", format!("there is no tensor `{name}`"));
        self.tensors.get(name).ok_or_else(none)
    }

    fn global(&mut self, name: &Value, args: &[Value]) -> Result<Any, Error> {
        let function = registry::require(name.as_str().unwrap_or_default())?;
        let args = self.arguments(args)?;
        function.call(&args.iter().map(Any::view).collect::<Vec<_>>())
    }

    fn call(&mut self, module: &Module, name: &Value, args: &[Value]) -> Result<Any, Error> {
        let name = name.as_str().unwrap_or_default();
        let none = || Error::new("AttributeError", format!("no function `{name}`"));
        let function = module.function(name, false)?.ok_or_else(none)?;
        let args = self.arguments(args)?;
        let views: Vec<AnyView<'_>> = args.iter().map(Any::view).collect();
        function.call(&views)
    }

    fn arguments(&mut self, args: &[Value]) -> Result<Vec<Any>, Error> {
        args.iter().map(|arg| self.argument(arg)).collect()
    }

    fn argument(&mut self, arg: &Value) -> Result<Any, Error> {
        let members = match arg {
            Value::Number(number) => return Ok(number.as_i64().unwrap_or_default().into()),
            Value::String(text) => return Ok(text.as_str().into()),
            Value::Object(members) => members,
            _ => return Ok(Any::none()),
        };
        Ok(match members.iter().next() {
            Some((key, Value::String(name))) if key == "tensor" => {
                self.named(&json!(name))?.clone().into()
            }
            Some((key, Value::Object(params))) if key == "params" => param_file(params)?.into(),
            Some((key, pair)) if key == "device" => {
                let number = |at: usize| pair[at].as_i64().and_then(|it| it.try_into().ok());
                Any::from(DLDevice {
                    device_type: number(0).unwrap_or(0),
                    device_id: number(1).unwrap_or(0),
                })
            }
            Some((key, _)) if key == "graph" => self.graph.to_string().into(),
            Some((key, _)) if key == "kernels" => self.kernels.module().into(),
            Some((key, _)) if key == "self" => self.now()?.into(),
            Some((key, _)) if key == "other" => self.second()?.into(),
            _ => make_tensor(arg)?.into(),
        })
    }
}

/// The parameter file of named tensors.
pub(in crate::conformance) fn param_file(params: &Map<String, Value>) -> Result<Bytes, Error> {
    let mut records = Vec::new();
    for (name, value) in params {
        let tensor = make_tensor(value)?;
        let dtype = tensor.dl().dtype;
        let dtype = Dtype::from(dtype);
        let data = Cow::Owned(tensor.to_bytes()?);
        let record = TensorRecord::new(dtype, tensor.shape(), data, Sizing::V0_7)?;
        records.push((Cow::Borrowed(name.as_str()), record));
    }
    let mut out = Writer::new();
    Params::new(records).write(&mut out);
    Ok(Bytes::new(out.into_bytes()))
}

/// `{"dtype", "shape", "data"}` on the host; `"skew": n` moves its first element n bytes from where it is aligned.
fn make_tensor(value: &Value) -> Result<Tensor, Error> {
    let dtype = dtype_from_text(value["dtype"].as_str().unwrap_or_default())?;
    let extents = value["shape"].as_array().into_iter().flatten();
    let shape: Vec<i64> = extents.filter_map(Value::as_i64).collect();
    let data = bytes_of(&value["data"], dtype);
    let Some(skew) = value["skew"].as_u64() else {
        let tensor = Tensor::empty(&shape, dtype)?;
        tensor.fill(&data)?;
        return Ok(tensor);
    };
    let bytes = i64::try_from(data.len()).unwrap_or(i64::MAX);
    let whole = Tensor::empty(
        &[bytes.saturating_add(skew.cast_signed())],
        DLDataType {
            code: 1,
            bits: 8,
            lanes: 1,
        },
    )?;
    let mut padded = vec![0; usize::try_from(skew).unwrap_or(0)];
    padded.extend(data);
    whole.fill(&padded)?;
    let dl = crate::value::DLTensor {
        dtype,
        ndim: i32::try_from(shape.len()).unwrap_or(0),
        shape: shape.as_ptr().cast_mut(),
        strides: std::ptr::null_mut(),
        byte_offset: skew,
        ..*whole.dl()
    };
    // SAFETY: the memory is `whole`'s, which goes when the tensor does; the shape is copied.
    Ok(unsafe { Tensor::over(dl, Box::new(move || drop(whole))) })
}

/// Numbers as the bytes of a type.
pub(in crate::conformance) fn bytes_of(data: &Value, dtype: DLDataType) -> Vec<u8> {
    let numbers = data.as_array().into_iter().flatten();
    let mut bytes = Vec::new();
    for number in numbers {
        let (real, whole) = (number.as_f64().unwrap_or(0.0), number.as_i64().unwrap_or(0));
        match (dtype.code, dtype.bits) {
            (2, 32) => bytes.extend((real as f32).to_le_bytes()),
            (2, 64) => bytes.extend(real.to_le_bytes()),
            (_, bits) => {
                let width = usize::from(bits).div_ceil(8).min(8);
                bytes.extend(&whole.to_le_bytes()[..width]);
            }
        }
    }
    bytes
}
