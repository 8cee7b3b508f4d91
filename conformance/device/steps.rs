//! Steps of programs and scripts: each is a call of a device, written as JSON, with names instead of handles.

use super::staging::Staging;
use super::step_forms;
use crate::conformance::behaviour::Failure;
use crate::conformance::form;
use crate::device::{
    Attribute, CopyRequest, Device, DeviceApi, Dtype, Error, Space, Stream, TensorRef,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt;

/// One step: a list of its name and its arguments, such as `["alloc", "a", 64]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step(pub(super) Vec<Value>);

/// The reason why a step did not complete.
pub(super) enum Stop {
    /// The step is invalid on every device, for this reason.
    Malformed(String),
    /// A call failed.
    Failed(Error),
    /// A rule is broken, or the device lacks a requirement of the program.
    Judged(Failure),
}

/// The result of a step, for scripts that compare results.
pub(super) type StepResult = Result<Value, Stop>;

impl Stop {
    /// Prefixes the message about a wrong step with its place.
    pub(super) fn with_location(self, place: impl fmt::Display) -> Stop {
        match self {
            Stop::Malformed(why) => Stop::Malformed(format!("{place}{why}")),
            other => other,
        }
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Judged(failure)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Value::Array(self.0.clone()))
    }
}

impl Step {
    /// Reads a list of steps.
    pub(super) fn list(steps: &Value) -> Result<Vec<Step>, Stop> {
        let malformed = || Stop::Malformed(format!("{steps} is not a list of steps"));
        let steps = steps.as_array().ok_or_else(malformed)?;
        let numbered = |(step, number): (&Value, usize)| {
            Step::read(step).map_err(|stop| stop.with_location(format_args!("step {number} ")))
        };
        steps.iter().zip(1..).map(numbered).collect()
    }

    /// Reads a step whose arguments have the form that it demands.
    pub(super) fn read(step: &Value) -> Result<Step, Stop> {
        let members = step.as_array().map(Vec::as_slice).unwrap_or_default();
        step_forms::check(members)?;
        Ok(Step(members.to_vec()))
    }

    /// Returns the member at this position.
    pub(super) fn get(&self, at: usize) -> Option<&Value> {
        self.0.get(at)
    }

    /// Returns the member at this position.
    pub(super) fn value(&self, at: usize) -> Result<&Value, Stop> {
        self.get(at).ok_or_else(|| self.lacks(at, "a value"))
    }

    /// Returns the name of the step.
    pub(super) fn op(&self) -> &str {
        self.name(0).unwrap_or("")
    }

    /// Returns the text at this position.
    pub(super) fn text(&self, at: usize) -> Result<&str, Stop> {
        self.name(at).ok_or_else(|| self.lacks(at, "a text"))
    }

    /// Returns the text at this position, if there is one.
    pub(super) fn name(&self, at: usize) -> Option<&str> {
        self.get(at).and_then(Value::as_str)
    }

    /// Returns the number at this position.
    pub(super) fn number(&self, at: usize) -> Result<usize, Stop> {
        let number = self.get(at).and_then(Value::as_u64);
        let number = number.and_then(|number| usize::try_from(number).ok());
        number.ok_or_else(|| self.lacks(at, "a count"))
    }

    fn lacks(&self, at: usize, what: &str) -> Stop {
        Stop::Malformed(format!("`{}`: argument {at} is not {what}", self.op()))
    }
}

/// A tensor in a step: `{"data": NAME, "shape": [..]}`. `strides`, `offset` and `dtype` are needed unless it is a compact tensor of
/// bytes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StepTensor {
    data: Option<String>,
    shape: Vec<i64>,
    strides: Option<Vec<i64>>,
    /// The number of bytes before the first element.
    #[serde(default)]
    pub(super) offset: usize,
    #[serde(default, deserialize_with = "form::from_text_if_any")]
    dtype: Option<Dtype>,
}

impl StepTensor {
    /// Reads the tensor at a position of a step.
    pub(super) fn read(value: &Value) -> Result<StepTensor, Stop> {
        let wrong = |error| Stop::Malformed(format!("a tensor: {error}"));
        serde_path_to_error::deserialize(value).map_err(wrong)
    }

    /// Returns the name of its space.
    pub(super) fn name(&self) -> Result<&str, Stop> {
        let missing = || Stop::Malformed("a tensor without `data`".into());
        self.data.as_deref().ok_or_else(missing)
    }

    /// Returns its bytes.
    pub(super) fn nbytes(&self) -> Result<usize, Stop> {
        let nbytes = self.tensor_ref(Space::NULL, Device::CPU).nbytes();
        nbytes.ok_or_else(|| Stop::Malformed(format!("a tensor of {:?} has no size", self.shape)))
    }

    fn dtype(&self) -> Dtype {
        self.dtype.unwrap_or(Dtype::UINT8)
    }

    /// Returns the tensor in the form of the interface.
    fn tensor_ref(&self, data: Space, device: Device) -> TensorRef<'_> {
        TensorRef {
            data,
            device,
            dtype: self.dtype(),
            shape: &self.shape,
            strides: self.strides.as_deref(),
            byte_offset: self.offset as u64,
        }
    }
}

/// Parses a data type; the default is bytes.
fn dtype(name: Option<&str>) -> Result<Dtype, Stop> {
    let parsed = name.map(crate::value::dtype_from_text).transpose();
    let parsed = parsed.map_err(|broken| Stop::Malformed(broken.to_string()))?;
    Ok(parsed.unwrap_or(Dtype::UINT8))
}

/// One end of a copy: a space or a host buffer, the first byte there, and the device of the memory.
pub(super) type CopyEnd = (Space, usize, Device);

/// A device, and everything that steps have named so far.
pub(super) struct NamedCalls<'a> {
    /// The interface of the device.
    pub(super) api: &'a dyn DeviceApi,
    /// The device that steps use.
    pub(super) device: Device,
    /// The spaces and workspace, each with its device. A name remains when its space is freed.
    pub(super) spaces: HashMap<String, (Space, Device)>,
    /// The streams, each with its device.
    pub(super) streams: HashMap<String, (Stream, Device)>,
    /// The host buffers.
    pub(super) hosts: HashMap<String, Staging>,
    /// True if an unknown stream means the default one, as in `device.simulate`.
    pub(super) any_stream: bool,
}

impl<'a> NamedCalls<'a> {
    /// Creates an empty set of names.
    pub(super) fn new(api: &'a dyn DeviceApi, device: Device) -> NamedCalls<'a> {
        NamedCalls {
            api,
            device,
            spaces: HashMap::new(),
            streams: HashMap::new(),
            hosts: HashMap::new(),
            any_stream: false,
        }
    }

    /// Makes the call of a step.
    pub(super) fn call(&mut self, step: &Step) -> StepResult {
        let (api, device) = (self.api, self.device);
        let done = |result: crate::device::Result<()>| -> StepResult {
            result?;
            Ok(Value::Null)
        };
        match step.op() {
            "alloc" => {
                let alignment = match step.get(3) {
                    None | Some(Value::Null) => 64,
                    Some(_) => step.number(3)?,
                };
                let space = api.alloc(device, step.number(2)?, alignment, Dtype::UINT8)?;
                let again = self.spaces.values().any(|(other, _)| *other == space);
                self.name(step, space)?;
                let aligned = space.address().is_multiple_of(alignment);
                Ok(json!({"aligned": aligned, "again": again}))
            }
            "alloc-tensor" => {
                let of = StepTensor::read(step.value(2)?)?;
                let space = api.alloc_scoped(device, &of.shape, of.dtype(), step.name(3))?;
                self.name(step, space)
            }
            "workspace" => {
                let space = api.alloc_workspace(device, step.number(2)?, dtype(step.name(3))?)?;
                self.name(step, space)
            }
            "size" => {
                let of = StepTensor::read(step.value(1)?)?;
                let tensor = of.tensor_ref(Space::NULL, device);
                Ok(json!(api.data_size(&tensor, step.name(2))?))
            }
            "free" => {
                let (space, device) = self.space(step.name(1));
                // SAFETY: programs free each space once; a simulated device looks spaces up, and rejects one that is not alive.
                done(unsafe { api.free(device, space) })
            }
            "free-workspace" => {
                let (space, device) = self.space(step.name(1));
                // SAFETY: programs free each workspace once; a pool rejects a block that it did not allocate.
                done(unsafe { api.free_workspace(device, space) })
            }
            "copy" => {
                let (from, to) = (self.end(step, 1)?, self.end(step, 3)?);
                self.copy(from, to, step.number(5)?, step.name(6))?;
                Ok(Value::Null)
            }
            "copy-tensor" => {
                let from = StepTensor::read(step.value(1)?)?;
                let to = StepTensor::read(step.value(2)?)?;
                let (source, source_device) = self.space(Some(from.name()?));
                let (target, target_device) = self.space(Some(to.name()?));
                let source = from.tensor_ref(source, source_device);
                let target = to.tensor_ref(target, target_device);
                let stream = self.stream(step.name(3))?;
                // SAFETY: programs state tensors that their spaces hold.
                done(unsafe { api.copy_tensor(&source, &target, stream) })
            }
            "stream" => {
                let made = (api.create_stream(device)?, device);
                self.streams.insert(step.text(1)?.to_owned(), made);
                Ok(Value::Null)
            }
            "free-stream" => {
                let stream = self.stream(step.name(1))?;
                // SAFETY: programs free the streams that they made, once; a simulated device looks them up.
                done(unsafe { api.free_stream(device, stream) })
            }
            "order" => {
                let (before, after) = (self.stream(step.name(1))?, self.stream(step.name(2))?);
                done(api.sync_streams(device, before, after))
            }
            "sync" => done(api.sync(device, self.stream(step.name(1))?)),
            "set-stream" => done(api.set_stream(device, self.stream(step.name(1))?)),
            "device" => {
                self.device = self.device_of(step.get(1))?;
                done(api.set_device(self.device))
            }
            "ask" => {
                let name = step.text(1)?;
                let mut all = Attribute::ALL.into_iter();
                let answer = match all.find(|attribute| attribute.name() == name) {
                    Some(attribute) => api.attribute(device, attribute)?,
                    None => api.target_property(device, name)?,
                };
                Ok(Value::from(answer))
            }
            op => Err(Stop::Malformed(format!(
                "`{op}` is not a step of this device"
            ))),
        }
    }

    /// Copies between spaces, or between a space and the host.
    pub(super) fn copy(
        &self,
        (from, from_offset, from_device): CopyEnd,
        (to, to_offset, to_device): CopyEnd,
        nbytes: usize,
        stream: Option<&str>,
    ) -> Result<(), Stop> {
        let stream = self.stream(stream)?;
        let copy = CopyRequest {
            from,
            from_offset,
            to,
            to_offset,
            nbytes,
            from_device,
            to_device,
            hint: Dtype::UINT8,
        };
        // SAFETY: buffers of the host are never freed and hold the bytes. Spaces hold them, or the device looks its spaces up.
        Ok(unsafe { self.api.copy(&copy, stream) }?)
    }

    /// Reads one end of a copy. A host buffer that is too small is an error.
    fn end(&self, step: &Step, at: usize) -> Result<CopyEnd, Stop> {
        let (name, offset) = (step.text(at)?, step.number(at + 1)?);
        let Some(host) = self.hosts.get(name) else {
            let (space, device) = self.space(Some(name));
            return Ok((space, offset, device));
        };
        let end = offset.checked_add(step.number(5)?);
        if end.is_none_or(|end| end > host.bytes().len()) {
            return Err(Stop::Malformed(format!("`{name}` is smaller")));
        }
        Ok((host.space(), offset, Device::CPU))
    }

    /// Gives a space the name that the step states.
    fn name(&mut self, step: &Step, space: Space) -> StepResult {
        let name = step.text(1)?.to_owned();
        self.spaces.insert(name, (space, self.device));
        Ok(Value::Null)
    }

    /// Returns the space of this name. Without a name it is null, and for an unknown name an address that no device has returned.
    pub(super) fn space(&self, name: Option<&str>) -> (Space, Device) {
        let Some(name) = name else {
            return (Space::NULL, self.device);
        };
        let stranger = || (Space(std::ptr::without_provenance_mut(64)), self.device);
        self.spaces.get(name).copied().unwrap_or_else(stranger)
    }

    /// Returns the space that an earlier step has named.
    pub(super) fn known_space(&self, name: &str) -> Result<Space, Stop> {
        let known = self.spaces.get(name).map(|(space, _)| *space);
        known.ok_or_else(|| Stop::Malformed(format!("no step names `{name}`")))
    }

    /// Returns the stream of this name; the default one without a name.
    pub(super) fn stream(&self, name: Option<&str>) -> Result<Stream, Stop> {
        let Some(name) = name else {
            return Ok(Stream::DEFAULT);
        };
        let otherwise = self.any_stream.then_some(Stream::DEFAULT);
        let made = self.streams.get(name).map(|(stream, _)| *stream);
        made.or(otherwise)
            .ok_or_else(|| Stop::Malformed(format!("no step makes the stream `{name}`")))
    }

    /// Reads a device: the current one, a number of its type, the next number, or type and number.
    fn device_of(&self, value: Option<&Value>) -> Result<Device, Stop> {
        let Device { kind, id } = self.device;
        if value.is_none() {
            return Ok(self.device);
        }
        if value == Some(&json!("next")) {
            return Ok(Device::new(kind, id + 1));
        }
        let number = |value: &Value| i32::try_from(value.as_i64()?).ok();
        let device = match value {
            Some(Value::Array(pair)) => match pair.as_slice() {
                [kind, id] => number(kind).zip(number(id)),
                _ => None,
            },
            value => value.and_then(number).map(|id| (kind, id)),
        };
        let (kind, id) =
            device.ok_or_else(|| Stop::Malformed(format!("{} is no device", json!(value))))?;
        Ok(Device::new(kind, id))
    }
}
