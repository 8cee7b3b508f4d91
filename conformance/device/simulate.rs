//! The operation `device.simulate`: the simulated device, driven by a script. Its answer has the hazards and the live memory at the
//! end.

use super::failing_table::as_a_table;
use super::forms::value;
use super::staging::Staging;
use super::steps::{NamedCalls, Step, StepResult, Stop};
use crate::conformance::form;
use crate::conformance::op::{Answer, OpError};
use crate::device::simulated::{Hazard, Simulated, SimulatedCall};
use crate::device::stream::set_current_device;
use crate::device::{Device, DeviceApi, Space};
use serde::Deserialize;
use serde_json::{Value, json};

/// The arguments of the operation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    seed: Option<u64>,
    defect: Option<String>,
    on: Option<Interface>,
    steps: Value,
}

/// The interface for calls of the device, if it is not that of Rust.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Interface {
    Table,
}

/// The device, and the interface that calls it with the names of the script so far.
struct Simulation<'a> {
    simulated: &'a Simulated,
    calls: NamedCalls<'a>,
}

/// Runs the script and returns `{"results":[...],"hazards":[...],"left":[...],"alive":{...},"calls":[...]}`.
pub(super) fn run(args: &Value) -> Result<Answer, OpError> {
    let script: Script = form::read(args.get("value").unwrap_or(&Value::Null))?;
    let seed = script.seed.unwrap_or(1);
    let simulated = match script.defect {
        None => Simulated::new(seed),
        Some(defect) => Simulated::with_bug(seed, super::defect(&defect)?),
    };
    let kept: &'static Simulated;
    let (simulated, api): (&Simulated, &dyn DeviceApi) = match script.on {
        None => (&simulated, &simulated),
        Some(Interface::Table) => {
            kept = Box::leak(Box::new(simulated));
            (kept, as_a_table(kept))
        }
    };
    // DEV-55: launches go to the thread's current device, which an earlier script may have changed.
    set_current_device(Device::ext_dev(0));
    let mut calls = NamedCalls::new(api, Device::ext_dev(0));
    calls.any_stream = true;
    let mut simulation = Simulation { simulated, calls };
    let mut results = Vec::new();
    for (step, number) in Step::list(&script.steps)
        .map_err(unsupported)?
        .iter()
        .zip(1..)
    {
        results.push(match simulation.step(step) {
            Ok(result) => result,
            Err(Stop::Failed(error)) => match error.violation() {
                Some(broken) => json!({"reject": broken.kind().name(), "rule": broken.rule().id()}),
                None => json!({"failed": error.message()}),
            },
            Err(stop) => {
                return Err(unsupported(
                    stop.with_location(format_args!("step {number} ")),
                ));
            }
        });
    }
    Ok(value(simulation.end(results)))
}

fn unsupported(stop: Stop) -> OpError {
    OpError::Unsupported(match stop {
        Stop::Malformed(why) => why,
        Stop::Failed(error) => error.to_string(),
        Stop::Judged(failure) => failure.to_string(),
    })
}

impl Simulation<'_> {
    /// Returns the result of a step. [`NamedCalls`] runs the steps that every device has.
    fn step(&mut self, step: &Step) -> StepResult {
        match step.op() {
            "host" => {
                let host = Staging::of(&bytes_of(step)?);
                self.calls.hosts.insert(step.text(1)?.into(), host);
            }
            // A host that changes its buffer while a copy reads it causes no error of a call, but a hazard in the answer.
            "change" => self.host(step)?.overwrite(&bytes_of(step)?),
            "see" => return Ok(json!(self.host(step)?.bytes())),
            "fill" => {
                let space = self.calls.space(Some(step.text(1)?)).0;
                let byte = u8::try_from(step.number(2)?);
                let byte = byte.map_err(|error| Stop::Malformed(error.to_string()))?;
                let stream = self.calls.stream(step.name(3))?;
                // Not through the C table, which has no launch: kernels come through modules.
                self.simulated.launch(stream, move |memory, _| {
                    if let Some(bytes) = memory.bytes(space) {
                        bytes.fill(byte);
                    }
                })?;
            }
            "fail-alloc" => self.simulated.fail_alloc(step.number(1)?),
            "fail-copy" => self.simulated.fail_copy(step.number(1)?),
            "device" => {
                // Calls of a script use the device of the step, even if a space is from another one.
                let set = self.calls.call(step);
                let device = self.calls.device;
                let spaces = self.calls.spaces.values_mut();
                spaces.for_each(|(_, of)| *of = device);
                return set;
            }
            _ => return self.calls.call(step),
        }
        Ok(Value::Null)
    }

    /// Returns the host buffer that a step names.
    fn host(&self, step: &Step) -> Result<Staging, Stop> {
        let name = step.text(1)?;
        let host = self.calls.hosts.get(name).copied();
        host.ok_or_else(|| Stop::Malformed(format!("`{name}` is not a buffer of the host")))
    }

    /// Returns the answer: results, the hazards so far, the additional hazards of `finish` (`left`), live memory, and the calls.
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

    /// Returns a hazard as its name and the script's names for the space. Two names joined with an equals sign belong to one space,
    /// which was freed and reused.
    fn hazard(&self, hazard: &Hazard) -> Value {
        let space = |what: &str, space: &Space| {
            let mut names: Vec<&str> = self
                .calls
                .spaces
                .iter()
                .filter(|(_, (other, _))| other == space)
                .map(|(name, _)| name.as_str())
                .collect();
            let hosts = self
                .calls
                .hosts
                .iter()
                .filter(|(_, host)| host.space() == *space);
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
                let mut named = self.calls.streams.iter();
                let named = named.find(|(_, (other, _))| other == stream);
                json!(["never-synced", named.map_or("", |(name, _)| name.as_str())])
            }
        }
    }
}

/// Returns a call of the device as its name and the number of the device.
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

/// Reads the bytes that a step states as a list of numbers.
fn bytes_of(step: &Step) -> Result<Vec<u8>, Stop> {
    let bytes = serde_json::from_value(step.value(2)?.clone());
    bytes.map_err(|error| Stop::Malformed(format!("`{}`: {error}", step.op())))
}
