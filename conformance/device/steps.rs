//! Steps of programs and scripts: each is a call of a device, written as JSON, with names instead of handles.

use super::staging::Staging;
use crate::conformance::behaviour::Failure;
use crate::device::{
    Attribute, CopyRequest, Device, DeviceApi, Dtype, Error, Space, Stream, TensorRef,
};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt;

/// One step: a list of its name and its arguments, such as `["alloc", "a", 64]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step(pub(super) Vec<Value>);

/// The reason why a step did not complete.
pub(super) enum Stop {
    /// The step is not written as its form demands.
    Malformed,
    /// A call failed.
    Failed(Error),
    /// A rule is broken, or the device lacks what the program needs.
    Judged(Failure),
}

/// The result of a step, for scripts that compare results.
pub(super) type StepResult = Result<Value, Stop>;

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
    pub(super) fn list(steps: Option<&Value>) -> Result<Vec<Step>, Stop> {
        let steps = steps.and_then(Value::as_array).ok_or(Stop::Malformed)?;
        let step = |step: &Value| step.as_array().cloned().map(Step).ok_or(Stop::Malformed);
        steps.iter().map(step).collect()
    }

    /// Returns the member at this position.
    pub(super) fn get(&self, at: usize) -> Option<&Value> {
        self.0.get(at)
    }

    /// Returns the name of the step.
    pub(super) fn op(&self) -> &str {
        self.text(0).unwrap_or_default()
    }

    /// Returns the text at this position.
    pub(super) fn text(&self, at: usize) -> Result<&str, Stop> {
        self.name(at).ok_or(Stop::Malformed)
    }

    /// Returns the text at this position, if there is one.
    pub(super) fn name(&self, at: usize) -> Option<&str> {
        self.get(at).and_then(Value::as_str)
    }

    /// Returns the number at this position.
    pub(super) fn number(&self, at: usize) -> Result<usize, Stop> {
        let number = self.get(at).and_then(Value::as_u64);
        number
            .and_then(|number| usize::try_from(number).ok())
            .ok_or(Stop::Malformed)
    }
}

/// A tensor in a step: `{"data": NAME, "shape": [..]}`, with `strides`, `offset` and `dtype` where it is not a compact one of bytes.
pub(super) struct StepTensor {
    /// Name of the space.
    pub(super) name: String,
    shape: Vec<i64>,
    strides: Option<Vec<i64>>,
    /// Bytes before the first element.
    pub(super) offset: usize,
    dtype: Dtype,
}

impl StepTensor {
    /// Reads the tensor at a position of a step.
    pub(super) fn read(value: Option<&Value>) -> Result<StepTensor, Stop> {
        let value = value.ok_or(Stop::Malformed)?;
        let offset = value.get("offset").map_or(Some(0), Value::as_u64);
        let strides = value.get("strides").map(|strides| integers(Some(strides)));
        Ok(StepTensor {
            name: value
                .get("data")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            shape: integers(value.get("shape"))?,
            strides: strides.transpose()?,
            offset: offset
                .and_then(|n| n.try_into().ok())
                .ok_or(Stop::Malformed)?,
            dtype: dtype(value.get("dtype"))?,
        })
    }

    /// Returns its bytes, if the shape has a size.
    pub(super) fn nbytes(&self) -> Option<usize> {
        self.at(Space::NULL, Device::CPU).nbytes()
    }

    /// Returns the tensor for the interface.
    fn at(&self, data: Space, device: Device) -> TensorRef<'_> {
        TensorRef {
            data,
            device,
            dtype: self.dtype,
            shape: &self.shape,
            strides: self.strides.as_deref(),
            byte_offset: self.offset as u64,
        }
    }
}

/// Reads a data type; bytes where it is left out.
fn dtype(name: Option<&Value>) -> Result<Dtype, Stop> {
    let Some(name) = name.and_then(Value::as_str) else {
        return Ok(Dtype::UINT8);
    };
    let parsed = crate::value::dtype_from_text(name);
    parsed.map(Dtype::from).map_err(|_| Stop::Malformed)
}

/// Reads a list of integers.
fn integers(list: Option<&Value>) -> Result<Vec<i64>, Stop> {
    super::forms::integers(list).map_err(|_| Stop::Malformed)
}

/// One end of a copy: a space or a buffer of the host, the first byte there, and whose memory it is.
pub(super) type CopyEnd = (Space, usize, Device);

/// A device, and everything that steps have named so far.
pub(super) struct NamedCalls<'a> {
    /// Its interface.
    pub(super) api: &'a dyn DeviceApi,
    /// The device that steps are about.
    pub(super) device: Device,
    /// Spaces and workspace, each with its device. A name stays when its space is freed.
    pub(super) spaces: HashMap<String, (Space, Device)>,
    /// Streams, each with its device.
    pub(super) streams: HashMap<String, (Stream, Device)>,
    /// Buffers of the host.
    pub(super) hosts: HashMap<String, Staging>,
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
                let alignment = step.number(3).unwrap_or(64);
                let space = api.alloc(device, step.number(2)?, alignment, Dtype::UINT8)?;
                let again = self.spaces.values().any(|(other, _)| *other == space);
                self.name(step, space)?;
                let aligned = space.address().is_multiple_of(alignment);
                Ok(json!({"aligned": aligned, "again": again}))
            }
            "alloc-tensor" => {
                let of = StepTensor::read(step.get(2))?;
                let space = api.alloc_scoped(device, &of.shape, of.dtype, step.name(3))?;
                self.name(step, space)
            }
            "workspace" => {
                let space = api.alloc_workspace(device, step.number(2)?, dtype(step.get(3))?)?;
                self.name(step, space)
            }
            "size" => {
                let of = StepTensor::read(step.get(1))?;
                let tensor = of.at(Space::NULL, device);
                Ok(json!(api.data_size(&tensor, step.name(2))?))
            }
            "free" => {
                let (space, device) = self.space(step.name(1));
                // SAFETY: programs free what they took, once; a simulated device looks spaces up, and rejects what is not alive.
                done(unsafe { api.free(device, space) })
            }
            "free-workspace" => {
                let (space, device) = self.space(step.name(1));
                // SAFETY: programs free what they took; a pool rejects what it did not hand out.
                done(unsafe { api.free_workspace(device, space) })
            }
            "copy" => {
                let (from, to) = (self.end(step, 1)?, self.end(step, 3)?);
                done(self.copy(from, to, step.number(5)?, step.name(6)))
            }
            "copy-tensor" => {
                let (from, to) = (
                    StepTensor::read(step.get(1))?,
                    StepTensor::read(step.get(2))?,
                );
                let place = |of: &StepTensor| self.space(Some(&of.name));
                let ((source, source_device), (target, target_device)) = (place(&from), place(&to));
                let source = from.at(source, source_device);
                let target = to.at(target, target_device);
                // SAFETY: programs state tensors that their spaces hold.
                done(unsafe { api.copy_tensor(&source, &target, self.stream(step.name(3))) })
            }
            "stream" => {
                let made = (api.create_stream(device)?, device);
                self.streams.insert(step.text(1)?.to_owned(), made);
                Ok(Value::Null)
            }
            "free-stream" => {
                let stream = self.stream(step.name(1));
                // SAFETY: programs free the streams that they made, once; a simulated device looks them up.
                done(unsafe { api.free_stream(device, stream) })
            }
            "order" => {
                let (before, after) = (self.stream(step.name(1)), self.stream(step.name(2)));
                done(api.sync_streams(device, before, after))
            }
            "sync" => done(api.sync(device, self.stream(step.name(1)))),
            "set-stream" => done(api.set_stream(device, self.stream(step.name(1)))),
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
            _ => Err(Stop::Malformed),
        }
    }

    /// Copies between spaces, or between a space and the host.
    pub(super) fn copy(
        &self,
        (from, from_offset, from_device): CopyEnd,
        (to, to_offset, to_device): CopyEnd,
        nbytes: usize,
        stream: Option<&str>,
    ) -> crate::device::Result<()> {
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
        // SAFETY: buffers of the host live for ever and hold the bytes. Spaces hold them, or the device looks its spaces up.
        unsafe { self.api.copy(&copy, self.stream(stream)) }
    }

    /// Reads one end of a copy. A buffer of the host that is too small is no end of it.
    fn end(&self, step: &Step, at: usize) -> Result<CopyEnd, Stop> {
        let (name, offset) = (step.text(at)?, step.number(at + 1)?);
        let Some(host) = self.hosts.get(name) else {
            let (space, device) = self.space(Some(name));
            return Ok((space, offset, device));
        };
        let end = offset.checked_add(step.number(5)?);
        if end.is_none_or(|end| end > host.bytes().len()) {
            return Err(Stop::Malformed);
        }
        Ok((host.space(), offset, Device::CPU))
    }

    /// Gives a space the name that the step states.
    fn name(&mut self, step: &Step, space: Space) -> StepResult {
        let name = step.text(1)?.to_owned();
        self.spaces.insert(name, (space, self.device));
        Ok(Value::Null)
    }

    /// Returns the space of this name: null without a name, and for an unknown one an address that no device has handed out.
    pub(super) fn space(&self, name: Option<&str>) -> (Space, Device) {
        let Some(name) = name else {
            return (Space::NULL, self.device);
        };
        let stranger = || (Space(std::ptr::without_provenance_mut(64)), self.device);
        self.spaces.get(name).copied().unwrap_or_else(stranger)
    }

    /// Returns the stream of this name; the default one without a name, and for one that was never made.
    pub(super) fn stream(&self, name: Option<&str>) -> Stream {
        let made = name.and_then(|name| self.streams.get(name));
        made.map(|(stream, _)| *stream).unwrap_or_default()
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
        let (kind, id) = device.ok_or(Stop::Malformed)?;
        Ok(Device::new(kind, id))
    }
}
