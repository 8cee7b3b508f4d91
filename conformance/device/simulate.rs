//! `device.simulate`: the simulated device as a script, with what it notes of careless callers and what is alive behind it.

use super::Defect;
use super::failing_table::as_a_table;
use super::forms::value;
use super::probe::Staging;
use crate::conformance::op::{Answer, OpError};
use crate::device::simulated::{Hazard, Simulated, SimulatedCall};
use crate::device::stream::set_current_device;
use crate::device::{
    Attribute, CopyRequest, Device, DeviceApi, Dtype, Result as DeviceResult, Space, Stream,
};
use serde_json::{Value, json};
use std::collections::HashMap;

/// The device, as itself and as it is called; what the script has named so far, and the number of the device that it works on.
struct Simulation<'a> {
    simulated: &'a Simulated,
    api: &'a dyn DeviceApi,
    device: Device,
    spaces: HashMap<String, Space>,
    streams: HashMap<String, Stream>,
    hosts: HashMap<String, Staging>,
}

/// Runs the script; `{"results":[...],"hazards":[...],"left":[...],"alive":{...},"calls":[...]}`.
pub(super) fn run(args: &Value) -> Result<Answer, OpError> {
    let wrong =
        |step: &Value| OpError::Unsupported(format!("{step} is not a step of device.simulate"));
    let of = args.get("value").unwrap_or(&Value::Null);
    let seed = of.get("seed").and_then(Value::as_u64).unwrap_or(1);
    let steps = of.get("steps").and_then(Value::as_array);
    let simulated = match of.get("defect").and_then(Value::as_str) {
        None => Simulated::new(seed),
        Some(defect) => Simulated::with_bug(seed, Defect::of(defect)?.bug),
    };
    let kept: &'static Simulated;
    let (simulated, api): (&Simulated, &dyn DeviceApi) = match of.get("on").and_then(Value::as_str)
    {
        None => (&simulated, &simulated),
        Some("table") => {
            kept = Box::leak(Box::new(simulated));
            (kept, as_a_table(kept))
        }
        Some(_) => return Err(wrong(of)),
    };
    // The thread may have another one from a script before.
    // DEV-55: launches go to the device that the thread has made current.
    set_current_device(Device::ext_dev(0));
    let mut simulation = Simulation {
        simulated,
        api,
        device: Device::ext_dev(0),
        spaces: HashMap::new(),
        streams: HashMap::new(),
        hosts: HashMap::new(),
    };
    let mut results = Vec::new();
    for step in steps.ok_or_else(|| wrong(of))? {
        results.push(match simulation.step(step).ok_or_else(|| wrong(step))? {
            Ok(result) => result,
            Err(error) => match error.violation() {
                Some(broken) => json!({"reject": broken.kind().name(), "rule": broken.rule().id()}),
                None => json!({"failed": error.message()}),
            },
        });
    }
    Ok(value(simulation.end(results)))
}

impl Simulation<'_> {
    /// The result of a step; `None` where it is none.
    fn step(&mut self, step: &Value) -> Option<DeviceResult<Value>> {
        let name = |at: usize| step.get(at).and_then(Value::as_str);
        let number = |at: usize| usize::try_from(step.get(at)?.as_u64()?).ok();
        let done = |result: DeviceResult<()>| Some(result.map(|()| Value::Null));
        match name(0)? {
            "alloc" => Some(self.take(name(1)?, number(2)?, number(3).unwrap_or(64))),
            "free" => {
                let space = self.space(name(1)?);
                // SAFETY: the device looks spaces up, and rejects what is not alive.
                done(unsafe { self.api.free(self.device, space) })
            }
            "workspace" => {
                let taken = self
                    .api
                    .alloc_workspace(self.device, number(2)?, Dtype::UINT8);
                let name = name(1)?.to_owned();
                done(taken.map(|space| {
                    self.spaces.insert(name, space);
                }))
            }
            "free-workspace" => {
                let space = self.space(name(1)?);
                // SAFETY: the pool rejects what it did not give.
                done(unsafe { self.api.free_workspace(self.device, space) })
            }
            "host" => {
                let bytes: Option<Vec<u8>> = bytes_of(step.get(2)?);
                self.hosts.insert(name(1)?.into(), Staging::of(&bytes?));
                Some(Ok(Value::Null))
            }
            "change" => {
                // A host that writes to its buffer while a copy reads it: that is no error of any call, and a hazard of the answer.
                let host = self.hosts.get(name(1)?)?;
                host.overwrite(&bytes_of(step.get(2)?)?);
                Some(Ok(Value::Null))
            }
            "ask" => {
                let attribute = Attribute::ALL
                    .into_iter()
                    .find(|attribute| Some(attribute.name()) == name(1));
                let answer = self.api.attribute(self.device, attribute?);
                Some(answer.map(Value::from))
            }
            "see" => Some(Ok(json!(self.hosts.get(name(1)?)?.bytes()))),
            "copy" => done(self.copy(step)?),
            "fill" => {
                let (space, byte) = (self.space(name(1)?), u8::try_from(number(2)?).ok()?);
                let stream = self.stream(name(3));
                // Past the table of C, which has no launch: kernels come by way of modules.
                done(self.simulated.launch(stream, move |memory, _| {
                    if let Some(bytes) = memory.bytes(space) {
                        bytes.fill(byte);
                    }
                }))
            }
            "stream" => {
                let made = self.api.create_stream(self.device);
                let name = name(1)?.to_owned();
                done(made.map(|stream| {
                    self.streams.insert(name, stream);
                }))
            }
            "free-stream" => {
                let stream = self.stream(name(1));
                // SAFETY: the device looks streams up.
                done(unsafe { self.api.free_stream(self.device, stream) })
            }
            "order" => {
                let (before, after) = (self.stream(name(1)), self.stream(name(2)));
                done(self.api.sync_streams(self.device, before, after))
            }
            "sync" => done(self.api.sync(self.device, self.stream(name(1)))),
            "device" => {
                self.device = Device::ext_dev(i32::try_from(number(1)?).ok()?);
                done(self.api.set_device(self.device))
            }
            "fail-alloc" => {
                self.simulated.fail_alloc(number(1)?);
                Some(Ok(Value::Null))
            }
            "fail-copy" => {
                self.simulated.fail_copy(number(1)?);
                Some(Ok(Value::Null))
            }
            _ => None,
        }
    }

    /// Allocates under a name. Whether a handle was there before is shown, as the number itself is random.
    fn take(&mut self, name: &str, nbytes: usize, alignment: usize) -> DeviceResult<Value> {
        let space = self
            .api
            .alloc(self.device, nbytes, alignment, Dtype::UINT8)?;
        let again = self.spaces.values().any(|other| *other == space);
        self.spaces.insert(name.into(), space);
        let aligned = space.address().is_multiple_of(alignment);
        Ok(json!({"aligned": aligned, "again": again}))
    }

    /// `["copy", FROM, OFFSET, TO, OFFSET, BYTES, STREAM]`: each end is a host buffer or a space.
    fn copy(&self, step: &Value) -> Option<DeviceResult<()>> {
        let number = |at: usize| usize::try_from(step.get(at)?.as_u64()?).ok();
        let end = |at: usize| {
            let name = step.get(at)?.as_str()?;
            Some(match self.hosts.get(name) {
                Some(host) => (host.space(), Device::CPU),
                None => (self.space(name), self.device),
            })
        };
        let ((from, from_device), (to, to_device)) = (end(1)?, end(3)?);
        let copy = CopyRequest {
            from,
            from_offset: number(2)?,
            to,
            to_offset: number(4)?,
            nbytes: number(5)?,
            from_device,
            to_device,
            hint: Dtype::UINT8,
        };
        for (name, offset) in [(step.get(1)?, 2), (step.get(3)?, 4)] {
            let host = name.as_str().and_then(|name| self.hosts.get(name));
            let end = number(offset)?.checked_add(copy.nbytes);
            if host.is_some_and(|host| end.is_none_or(|end| end > host.bytes().len())) {
                return None;
            }
        }
        // SAFETY: host buffers live for ever and hold the bytes, as just seen; the device looks its own spaces up.
        Some(unsafe {
            self.api
                .copy(&copy, self.stream(step.get(6).and_then(Value::as_str)))
        })
    }

    /// The space of this name; a stranger's where there is none.
    fn space(&self, name: &str) -> Space {
        let stranger = || Space(std::ptr::without_provenance_mut(64));
        self.spaces.get(name).copied().unwrap_or_else(stranger)
    }

    /// A stream of the script; the default one without a name.
    fn stream(&self, name: Option<&str>) -> Stream {
        name.and_then(|name| self.streams.get(name).copied())
            .unwrap_or_default()
    }

    /// The answer: results, what callers did wrong until here, what `finish` finds besides (`left`), what is alive, and the calls.
    fn end(self, results: Vec<Value>) -> Value {
        let noted = self.simulated.hazards();
        let all = self.simulated.finish();
        let shown = |hazards: &[Hazard]| -> Vec<Value> {
            hazards.iter().map(|hazard| self.hazard(hazard)).collect()
        };
        let left = all.get(noted.len()..).map(shown);
        let calls = self.simulated.calls();
        let count = |is: fn(&SimulatedCall) -> bool| calls.iter().filter(|call| is(call)).count();
        let streams = count(|call| matches!(call, SimulatedCall::CreateStream(..)))
            .saturating_sub(count(|call| matches!(call, SimulatedCall::FreeStream(..))));
        let alive = all
            .iter()
            .filter(|hazard| matches!(hazard, Hazard::NeverFreed(_)));
        json!({
            "results": results,
            "hazards": shown(&noted),
            "left": left,
            "alive": {"spaces": alive.count(), "bytes": self.simulated.bytes_in_use(), "streams": streams},
            "calls": calls.iter().map(called).collect::<Vec<_>>(),
        })
    }

    /// A mistake of the caller by its name and the names that the script has for the space. Two names with an equals sign between them are of
    /// one space: freed, and handed out again.
    fn hazard(&self, hazard: &Hazard) -> Value {
        let space = |what: &str, space: &Space| {
            let mut names: Vec<&str> = self
                .spaces
                .iter()
                .filter(|(_, other)| *other == space)
                .map(|(name, _)| name.as_str())
                .collect();
            let hosts = self.hosts.iter().filter(|(_, host)| host.space() == *space);
            names.extend(hosts.map(|(name, _)| name.as_str()));
            names.sort_unstable();
            json!([what, names.join("=")])
        };
        match hazard {
            Hazard::UseAfterFree(of) => space("use-after-free", of),
            Hazard::FreedTwice(of) => space("freed-twice", of),
            Hazard::OutOfBounds(of) => space("out-of-bounds", of),
            Hazard::Overlap(of) => space("overlap", of),
            Hazard::Unordered(of) => space("unordered", of),
            Hazard::SourceChanged(of) => space("source-changed", of),
            Hazard::WorkspaceNotTaken(of) => space("workspace-not-taken", of),
            Hazard::NeverFreed(of) => space("never-freed", of),
            Hazard::NeverSynced(stream) => {
                let named = self.streams.iter().find(|(_, other)| *other == stream);
                json!(["never-synced", named.map_or("", |(name, _)| name.as_str())])
            }
        }
    }
}

/// A call of the device as its name and the number of the device.
fn called(call: &SimulatedCall) -> Value {
    match call {
        SimulatedCall::Alloc(id, nbytes, alignment, _) => json!(["alloc", id, nbytes, alignment]),
        SimulatedCall::Free(id, _) => json!(["free", id]),
        SimulatedCall::Copy(copy, _) => json!(["copy", copy.nbytes]),
        SimulatedCall::Launch(id, _) => json!(["launch", id]),
        SimulatedCall::Sync(id, _) => json!(["sync", id]),
        SimulatedCall::SyncStreams(id, ..) => json!(["order", id]),
        SimulatedCall::SetDevice(id) => json!(["set-device", id]),
        SimulatedCall::CreateStream(id, _) => json!(["stream", id]),
        SimulatedCall::FreeStream(id, _) => json!(["free-stream", id]),
    }
}

/// Bytes from a list of numbers.
fn bytes_of(list: &Value) -> Option<Vec<u8>> {
    let numbers = list.as_array()?.iter();
    numbers
        .map(|number| u8::try_from(number.as_u64()?).ok())
        .collect()
}
