//! The operation `device.program`: steps with expectations, checked against a model that executes everything at once.
//!
//! The model has the bytes of each space. A step changes it at once; a device must have the same bytes after the next sync
//! (DEV-36).

mod queries;

use super::program_devices::{self, ProgramDevice, UnderTest};
use super::staging::{Staging, pattern};
use super::steps::{NamedCalls, Step, StepResult, StepTensor, Stop};
use crate::conformance::behaviour::{Failure, Outcome, demand, expect};
use crate::device::{Device, DeviceApi, Space, Stream, stream};
use queries::fits;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Runs the steps on a device. From each step `on`, it runs them on a device that the testee creates.
pub(super) fn run(steps: &Value, api: &dyn DeviceApi, device: Device) -> Outcome {
    let ran = Step::list(steps).and_then(|steps| run_steps(&steps, &UnderTest { api, device }));
    ran.map_err(outcome)
}

/// Checks the form of all steps.
pub(super) fn check(steps: &Value) -> Outcome {
    Step::list(steps).map(drop).map_err(outcome)
}

/// Returns whether a program creates the devices that it drives.
pub(super) fn brings_its_device(steps: &Value) -> bool {
    steps.pointer("/0/0") == Some(&json!("on"))
}

/// Runs a program as [`run`] does, with parsed steps.
pub(super) fn run_steps(steps: &[Step], under_test: &dyn ProgramDevice) -> Result<(), Stop> {
    let mut parts = steps.split(|step| step.op() == "on");
    run_part(parts.next().unwrap_or_default(), under_test)?;
    let named = steps.iter().filter(|step| step.op() == "on");
    for (named, part) in named.zip(parts) {
        run_part(part, &*program_devices::create_device(named.value(1)?)?)?;
    }
    Ok(())
}

/// Converts the end of a program to an outcome of the suite. A malformed step fails the case on every device.
fn outcome(stop: Stop) -> Failure {
    match stop {
        Stop::Malformed(why) => Failure::Broken(why),
        Stop::Failed(error) => error.into(),
        Stop::Judged(failure) => failure,
    }
}

/// Runs steps on one device, and frees everything that they leave.
fn run_part(steps: &[Step], stand: &dyn ProgramDevice) -> Result<(), Stop> {
    let mut program = Program {
        stand,
        calls: NamedCalls::new(stand.api(), stand.device()),
        model: BTreeMap::new(),
        reads: Vec::new(),
        queues: Vec::new(),
    };
    let ran = program.run(steps);
    let closed = program.close();
    ran.and(closed)
}

/// A running program.
struct Program<'a> {
    stand: &'a dyn ProgramDevice,
    calls: NamedCalls<'a>,
    /// The live spaces, by name.
    model: BTreeMap<String, ModelSpace>,
    reads: Vec<PendingRead>,
    /// The streams with work, each with the device.
    queues: Vec<(Device, Option<String>)>,
}

/// A live space in the model.
struct ModelSpace {
    is_workspace: bool,
    /// The bytes; `None` for one that was not written yet.
    bytes: Vec<Option<u8>>,
}

/// A queued read, with the bytes that the model had at that time.
struct PendingRead {
    stream: Option<String>,
    what: String,
    staging: Staging,
    expected: Vec<Option<u8>>,
}

impl Program<'_> {
    /// Runs every step, and then reads all remaining spaces, because a defect may show only in bytes that no step read.
    fn run(&mut self, steps: &[Step]) -> Result<(), Stop> {
        for (step, number) in steps.iter().zip(1..) {
            self.step(step).map_err(|stop| {
                let at = |why: &dyn std::fmt::Display| format!("step {number} ({step}): {why}");
                match stop {
                    Stop::Failed(error) => Failure::Broken(at(&error)).into(),
                    Stop::Judged(Failure::Broken(how)) => Failure::Broken(at(&how)).into(),
                    other => other.with_location(format_args!("step {number} ({step}): ")),
                }
            })?;
        }
        self.sync_all()?;
        let known = |space: &ModelSpace| space.bytes.iter().any(Option::is_some);
        let mut names = Vec::new();
        for (name, space) in self.model.iter().filter(|(_, space)| known(space)) {
            names.push((name.clone(), space.bytes.len()));
        }
        for (name, nbytes) in names {
            self.read(&name, 0, nbytes, None)?;
        }
        self.sync_all()
    }

    /// Waits for all work, and compares the bytes that were read.
    fn sync_all(&mut self) -> Result<(), Stop> {
        for (device, name) in std::mem::take(&mut self.queues) {
            let stream = self.queued_stream(name.as_deref());
            self.calls.api.sync(device, stream)?;
            self.compare(name.as_deref())?;
        }
        Ok(())
    }

    /// Runs one step. [`NamedCalls`] runs those that are only calls.
    fn step(&mut self, step: &Step) -> StepResult {
        match step.op() {
            "needs" => queries::needs(&self.calls, step.text(1)?)?,
            "thread" => {
                let (steps, stand) = (Step::list(step.value(1)?)?, self.stand);
                let ran =
                    std::thread::scope(|scope| scope.spawn(|| run_part(&steps, stand)).join());
                ran.unwrap_or_else(|_| Ok(Failure::broken("the device panicked")?))?;
            }
            "unless-host" => {
                // DEV-57: a CPU of a server also counts.
                if self.calls.device.without_session().kind != Device::CPU.kind {
                    for step in Step::list(step.value(1)?)? {
                        self.step(&step)?;
                    }
                }
            }
            "reject" => self.reject(step)?,
            "write" => {
                let (name, offset, nbytes) = (step.text(1)?, step.number(2)?, step.number(3)?);
                let bytes = pattern(step.number(4)?, nbytes);
                self.part(name, offset, nbytes)?;
                let (space, device) = self.calls.space(Some(name));
                let from = (Staging::of(&bytes).space(), 0, Device::CPU);
                self.calls
                    .copy(from, (space, offset, device), nbytes, step.name(5))?;
                self.queue(device, step.name(5));
                self.set(name, offset, bytes.into_iter().map(Some).collect());
            }
            "read" => {
                let whole = self
                    .model
                    .get(step.text(1)?)
                    .map_or(0, |space| space.bytes.len());
                let (offset, nbytes) = match step.get(2).filter(|value| value.is_number()) {
                    None => (0, whole),
                    Some(_) => (step.number(2)?, step.number(3)?),
                };
                let stream = step
                    .0
                    .get(2..)
                    .and_then(<[Value]>::last)
                    .and_then(Value::as_str);
                self.read(step.text(1)?, offset, nbytes, stream)?;
            }
            "same" | "different" => {
                let one = self.calls.known_space(step.text(1)?)?;
                let other = self.calls.known_space(step.text(2)?)?;
                let is_same = step.op() == "same";
                demand((one == other) == is_same, || {
                    format!("{one:?} and {other:?}")
                })?;
            }
            "not-null" => {
                let space = self.calls.known_space(step.text(1)?)?;
                demand(!space.is_null(), || "it is null".into())?;
            }
            "current-stream" => {
                let current = self.calls.api.current_stream(self.calls.device);
                let expected = self.calls.stream(step.name(1))?;
                expect(current, expected, "the thread's stream")?;
            }
            "replace-stream" => {
                let new = self.calls.stream(step.name(1))?;
                let replaced = stream::set(self.calls.device, new)?;
                let expected = self.calls.stream(step.name(2))?;
                expect(replaced, expected, "the stream that was replaced")?;
            }
            "ask" => {
                let answer = self.calls.call(step)?;
                let forms = step.0.get(2..).unwrap_or_default();
                let fits = forms.is_empty() || forms.iter().any(|form| fits(form, &answer));
                demand(fits, || format!("the answer is {answer}"))?;
            }
            "size" => {
                let size = self.calls.call(step)?;
                let expected = step.get(3).filter(|expected| !expected.is_null());
                expect(&size, expected.unwrap_or(&size), "its bytes")?;
            }
            "pools" => {
                let pools = self.calls.api.pools_workspace();
                expect(&json!(pools), step.value(1)?, "a pool of workspace")?;
            }
            "addresses" => {
                let addresses = self.calls.api.supports_pointer_arithmetic();
                let expected = step.value(1)?;
                expect(&json!(addresses), expected, "handles that are addresses")?;
            }
            "calls" => {
                let calls = Value::Array(self.stand.take_calls());
                expect(&calls, step.value(1)?, "calls")?;
            }
            _ => {
                if let Some(result) = self.stand.step(step, self.calls.device) {
                    return result;
                }
                self.call(step)?;
            }
        }
        Ok(Value::Null)
    }

    /// Makes the call of a step and changes the model accordingly.
    fn call(&mut self, step: &Step) -> Result<(), Stop> {
        let name = |at| step.text(at).map(str::to_owned);
        if step.op() == "copy" {
            return self.copy(step);
        }
        // Removed from the model before it is freed, so that it is not freed again after a failure.
        if let ("free" | "free-workspace", Some(name)) = (step.op(), step.name(1)) {
            let is_workspace = step.op() == "free-workspace";
            self.model
                .retain(|known, space| known != name || space.is_workspace != is_workspace);
        }
        let result = self.calls.call(step)?;
        match step.op() {
            "alloc" | "alloc-tensor" | "workspace" => {
                let is_workspace = step.op() == "workspace";
                // No step writes or reads the memory of a tensor.
                let nbytes = match step.op() {
                    "alloc-tensor" => 0,
                    _ => step.number(2)?,
                };
                let bytes = vec![None; nbytes];
                self.model.insert(
                    name(1)?,
                    ModelSpace {
                        is_workspace,
                        bytes,
                    },
                );
                let stated = step.op() == "alloc" && step.number(3).is_ok_and(|n| n > 0);
                if stated && self.calls.api.supports_pointer_arithmetic() {
                    let space = self.calls.space(step.name(1)).0;
                    demand(result["aligned"] == true, || format!("it is at {space:?}"))?;
                }
            }
            "copy-tensor" => {
                let from = StepTensor::read(step.value(1)?)?;
                let to = StepTensor::read(step.value(2)?)?;
                let bytes = self.part(from.name()?, from.offset, from.nbytes()?)?;
                self.queue(self.calls.space(Some(to.name()?)).1, step.name(3));
                self.set(to.name()?, to.offset, bytes);
            }
            "sync" => self.compare(step.name(1))?,
            "free-stream" => {
                self.calls.streams.remove(step.text(1)?);
            }
            _ => {}
        }
        Ok(())
    }

    /// Copies between spaces. A copy whose ranges overlap may be rejected, and then changes nothing (DEV-40).
    fn copy(&mut self, step: &Step) -> Result<(), Stop> {
        let (from, to) = (step.text(1)?, step.text(3)?);
        let [from_at, to_at, nbytes] = [step.number(2)?, step.number(4)?, step.number(5)?];
        let bytes = self.part(from, from_at, nbytes)?;
        self.part(to, to_at, nbytes)?;
        let overlaps = from == to && from_at < to_at + nbytes && to_at < from_at + nbytes;
        match self.calls.call(step) {
            Err(Stop::Failed(_)) if overlaps => return Ok(()),
            result => result?,
        };
        self.queue(self.calls.space(Some(to)).1, step.name(6));
        self.set(to, to_at, bytes);
        Ok(())
    }

    /// Queues a read, which is compared after the next sync of the stream.
    fn read(
        &mut self,
        name: &str,
        offset: usize,
        nbytes: usize,
        stream: Option<&str>,
    ) -> Result<(), Stop> {
        let expected = self.part(name, offset, nbytes)?;
        let staging = Staging::of(&vec![0x5A; nbytes]);
        let (space, device) = self.calls.space(Some(name));
        let to = (staging.space(), 0, Device::CPU);
        self.calls
            .copy((space, offset, device), to, nbytes, stream)?;
        self.queue(device, stream);
        self.reads.push(PendingRead {
            stream: stream.map(str::to_owned),
            what: name.to_owned(),
            staging,
            expected,
        });
        Ok(())
    }

    /// Compares the completed reads of a stream that was synced with the model.
    fn compare(&mut self, stream: Option<&str>) -> Result<(), Stop> {
        let reads = std::mem::take(&mut self.reads).into_iter();
        let (done, waiting) = reads.partition(|read| read.stream.as_deref() == stream);
        self.reads = waiting;
        for read in Vec::<PendingRead>::from_iter(done) {
            let bytes = read.staging.bytes();
            for (at, (byte, expected)) in bytes.iter().zip(&read.expected).enumerate() {
                let differs = expected.filter(|expected| expected != byte);
                demand(differs.is_none(), || {
                    let (expected, of) = (differs.unwrap_or_default(), bytes.len());
                    let what = &read.what;
                    format!(
                        "`{what}` as read: byte {at} of {of} is {byte:#04x}, not {expected:#04x}"
                    )
                })?;
            }
        }
        Ok(())
    }

    /// Returns the bytes of a space in the model.
    fn part(&self, name: &str, offset: usize, nbytes: usize) -> Result<Vec<Option<u8>>, Stop> {
        let malformed = |why: &str| Stop::Malformed(format!("`{name}` {why}"));
        let space = self.model.get(name);
        let bytes = &space.ok_or_else(|| malformed("is not alive"))?.bytes;
        let part = bytes.get(offset..).and_then(|bytes| bytes.get(..nbytes));
        let part = part.ok_or_else(|| malformed("is smaller"))?;
        Ok(part.to_vec())
    }

    /// Writes to the model.
    fn set(&mut self, name: &str, offset: usize, bytes: Vec<Option<u8>>) {
        if let Some(space) = self.model.get_mut(name) {
            space.bytes.splice(offset..offset + bytes.len(), bytes);
        }
    }

    /// Returns the stream of queued work; the default one if a step has freed it.
    fn queued_stream(&self, name: Option<&str>) -> Stream {
        let made = name.and_then(|name| self.calls.streams.get(name));
        made.map(|(stream, _)| *stream).unwrap_or_default()
    }

    /// Records work on a stream.
    fn queue(&mut self, device: Device, stream: Option<&str>) {
        let queue = (device, stream.map(str::to_owned));
        if !self.queues.contains(&queue) {
            self.queues.push(queue);
        }
    }

    /// Runs `["reject", RULE, KIND, STEP]`, whose step must fail. If the error names a rule, it must be this one; errors of drivers
    /// name none.
    fn reject(&mut self, step: &Step) -> Result<(), Stop> {
        let error = match self.step(&Step::read(step.value(3)?)?) {
            Err(Stop::Failed(error)) => error,
            Ok(_) => return Ok(Failure::broken("it is accepted")?),
            Err(other) => return Err(other),
        };
        let named = error.violation();
        let named = named.map(|broken| (broken.rule().id(), broken.kind().name()));
        let expected = (step.text(1)?, step.text(2)?);
        if named.is_some() || self.stand.is_own() {
            expect(named, Some(expected), "the rejection")?;
        }
        let (text, part) = (error.to_string(), step.name(4));
        let fits = part.is_none_or(|part| text.contains(part));
        demand(fits, || format!("the error is `{text}`"))?;
        Ok(())
    }

    /// Frees everything, even after a failure. Only the freeing of streams must succeed here; a step checks memory that cannot be
    /// freed.
    fn close(self) -> Result<(), Stop> {
        let NamedCalls {
            api, ref streams, ..
        } = self.calls;
        // Queued work uses the memory and the streams that are freed next.
        for (device, name) in &self.queues {
            let _ = api.sync(*device, self.queued_stream(name.as_deref()));
        }
        for (name, space) in &self.model {
            let (handle, device): (Space, Device) = self.calls.space(Some(name));
            let _ = if space.is_workspace {
                // SAFETY: workspace that is alive, and only freed here.
                unsafe { api.free_workspace(device, handle) }
            } else {
                // SAFETY: memory that is alive, and only freed here.
                unsafe { api.free(device, handle) }
            };
        }
        let mut first = Ok(());
        for (stream, device) in streams.values() {
            let synced = api.sync(*device, *stream);
            // SAFETY: made by a step, and not freed by one; nothing uses it now.
            let freed = unsafe { api.free_stream(*device, *stream) };
            first = first.and(synced).and(freed);
        }
        Ok(first?)
    }
}
