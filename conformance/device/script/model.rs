//! A script on a device, and beside it on a plain model.

use super::super::probe::{Probe, ProbedMemory, Staging, pattern};
use super::{STREAMS, Step};
use crate::device::{Device, DeviceApi, Error, Stream};
use std::collections::BTreeMap;

/// A space of the script: on the device, and as the model sees it.
struct Slot<'a> {
    held: ProbedMemory<'a>,
    workspace: bool,
    /// What it must hold; `None` where nothing was written yet.
    bytes: Vec<Option<u8>>,
    /// Streams with work on it, each with the streams that are ordered behind that work.
    busy: BTreeMap<u8, u8>,
}

impl Slot<'_> {
    /// Whether work on `stream` is ordered behind everything that still runs here.
    fn is_ordered(&self, stream: u8) -> bool {
        self.busy
            .iter()
            .all(|(other, ordered)| *other == stream || ordered & (1 << stream) != 0)
    }

    /// Whether a step on `stream` may touch `nbytes` from `offset` on: the space has them, and the step is ordered.
    fn admits(&self, offset: usize, nbytes: usize, stream: u8) -> bool {
        offset + nbytes <= self.bytes.len() && self.is_ordered(stream)
    }

    /// Work on `stream` was queued here last; it was ordered behind all before, so that this one alone is left.
    fn touch(&mut self, stream: u8) {
        self.busy = BTreeMap::from([(stream, 0)]);
    }
}

/// A script on its way, with the model beside it. The model has no queue: it knows at once what the device owes later.
struct Runner<'a> {
    probe: Probe<'a>,
    streams: Vec<Stream>,
    slots: BTreeMap<u8, Slot<'a>>,
    reads: Vec<Pending>,
}

/// A read that is queued.
struct Pending {
    stream: u8,
    step: usize,
    staging: Staging,
    expected: Vec<Option<u8>>,
}

/// Runs `script`; what differs from the model, if anything does.
pub fn differs(api: &dyn DeviceApi, device: Device, script: &[Step]) -> Option<String> {
    let mut runner = match Runner::new(Probe::new(api, device)) {
        Ok(runner) => runner,
        Err(error) => return Some(format!("no streams: {error}")),
    };
    let outcome = runner.run(script);
    runner.close();
    outcome.err()
}

impl<'a> Runner<'a> {
    /// With as many streams as scripts use. On a device without streams they are all the default one (DEV-21), which orders more and not less.
    fn new(probe: Probe<'a>) -> Result<Runner<'a>, Error> {
        let mut streams = vec![Stream::DEFAULT];
        for _ in 1..STREAMS {
            streams.push(probe.api.create_stream(probe.device)?);
        }
        Ok(Runner {
            probe,
            streams,
            slots: BTreeMap::new(),
            reads: Vec::new(),
        })
    }

    /// Every step, then everything that is left: a device may be wrong and show it only in what nothing read.
    fn run(&mut self, script: &[Step]) -> Result<(), String> {
        for (index, step) in script.iter().enumerate() {
            self.step(index, step)
                .map_err(|error| format!("step {} (`{step}`): {error}", index + 1))?;
        }
        for stream in 0..STREAMS {
            self.sync(stream)
                .map_err(|error| format!("at the end: {error}"))?;
        }
        let slots: Vec<u8> = self.slots.keys().copied().collect();
        for name in slots {
            let Some(slot) = self.slots.get(&name) else {
                continue;
            };
            let bytes = slot
                .held
                .read(0, slot.bytes.len(), Stream::DEFAULT)
                .map_err(|error| error.to_string())?;
            compare(&bytes, &slot.bytes).map_err(|error| format!("at the end s{name}: {error}"))?;
        }
        Ok(())
    }

    /// The slot, where a walk may touch these bytes of it on this stream.
    fn admitted(
        &mut self,
        slot: u8,
        offset: usize,
        nbytes: usize,
        stream: u8,
    ) -> Option<&mut Slot<'a>> {
        let slot = self.slots.get_mut(&slot)?;
        slot.admits(offset, nbytes, stream).then_some(slot)
    }

    /// A stream by its number.
    fn stream(&self, index: u8) -> Stream {
        self.streams
            .get(usize::from(index))
            .copied()
            .unwrap_or_default()
    }

    /// One step on both. A step that the contract does not allow here is left out: a script is random, and shrinking takes steps away.
    fn step(&mut self, index: usize, step: &Step) -> Result<(), String> {
        let failed = |error: Error| error.to_string();
        match *step {
            Step::Alloc {
                slot,
                nbytes,
                workspace,
            } => {
                if self.slots.contains_key(&slot) {
                    return Ok(());
                }
                let held = if workspace {
                    self.probe.workspace(nbytes)
                } else {
                    self.probe.space(nbytes)
                };
                let slot_state = Slot {
                    held: held.map_err(failed)?,
                    workspace,
                    bytes: vec![None; nbytes],
                    busy: BTreeMap::new(),
                };
                self.slots.insert(slot, slot_state);
            }
            Step::Free { slot } => {
                // Workspace is handed out again without waiting, in the order of one stream: it must be idle.
                if self
                    .slots
                    .get(&slot)
                    .is_some_and(|slot| slot.workspace && !slot.busy.is_empty())
                {
                    return Ok(());
                }
                if let Some(slot) = self.slots.remove(&slot) {
                    slot.held.free().map_err(failed)?;
                }
            }
            Step::Write {
                slot,
                offset,
                nbytes,
                seed,
                stream,
            } => {
                let queue = self.stream(stream);
                let Some(slot) = self.admitted(slot, offset, nbytes, stream) else {
                    return Ok(());
                };
                let bytes = pattern(usize::from(seed), nbytes);
                let target = &mut slot.bytes[offset..offset + nbytes];
                for (target, byte) in target.iter_mut().zip(&bytes) {
                    *target = Some(*byte);
                }
                slot.held.write(offset, &bytes, queue).map_err(failed)?;
                slot.touch(stream);
            }
            Step::Read {
                slot,
                offset,
                nbytes,
                stream,
            } => {
                let queue = self.stream(stream);
                let Some(slot) = self.admitted(slot, offset, nbytes, stream) else {
                    return Ok(());
                };
                // As it is now: later steps write to the model before the device has done the read.
                let expected = slot.bytes[offset..offset + nbytes].to_vec();
                let staging = slot
                    .held
                    .read_later(offset, nbytes, queue)
                    .map_err(failed)?;
                // A read counts as work: what another stream writes before it is done would be read instead.
                slot.touch(stream);
                self.reads.push(Pending {
                    stream,
                    step: index + 1,
                    staging,
                    expected,
                });
            }
            Step::Copy {
                from,
                from_offset,
                to,
                to_offset,
                nbytes,
                stream,
            } => {
                return self.copy((from, from_offset), (to, to_offset), nbytes, stream);
            }
            Step::Sync { stream } => return self.sync(stream),
            Step::Order { before, after } => {
                let (first, second) = (self.stream(before), self.stream(after));
                self.probe
                    .api
                    .sync_streams(self.probe.device, first, second)
                    .map_err(failed)?;
                for slot in self.slots.values_mut() {
                    for (stream, ordered) in &mut slot.busy {
                        // Orders add up: what is behind `before` already is behind all that `before` waits for.
                        if *stream == before || *ordered & (1 << before) != 0 {
                            *ordered |= 1 << after;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// A copy inside of the device (DEV-39, DEV-40), from a slot and an offset to another.
    fn copy(
        &mut self,
        from: (u8, usize),
        to: (u8, usize),
        nbytes: usize,
        stream: u8,
    ) -> Result<(), String> {
        let queue = self.stream(stream);
        let (Some(source), Some(target)) = (self.slots.get(&from.0), self.slots.get(&to.0)) else {
            return Ok(());
        };
        if !source.admits(from.1, nbytes, stream) || !target.admits(to.1, nbytes, stream) {
            return Ok(());
        }
        // A copy of the source: where both are one space, DEV-40 has the result as if it had been read before any byte was written.
        let bytes = source.bytes[from.1..from.1 + nbytes].to_vec();
        let overlaps = from.0 == to.0 && from.1 < to.1 + nbytes && to.1 < from.1 + nbytes;
        match source
            .held
            .copy_to(from.1, &target.held, to.1, nbytes, queue)
        {
            Ok(()) => {}
            // A device may reject what overlaps (DEV-40); then nothing has changed.
            Err(_) if overlaps => return Ok(()),
            Err(error) => return Err(error.to_string()),
        }
        if let Some(target) = self.slots.get_mut(&to.0) {
            target.bytes[to.1..to.1 + nbytes].copy_from_slice(&bytes);
            target.touch(stream);
        }
        if let Some(source) = self.slots.get_mut(&from.0) {
            source.touch(stream);
        }
        Ok(())
    }

    /// Waits for a stream (DEV-36), and looks at what reads on it have brought.
    fn sync(&mut self, stream: u8) -> Result<(), String> {
        self.probe
            .sync(self.stream(stream))
            .map_err(|error| error.to_string())?;
        for slot in self.slots.values_mut() {
            slot.busy
                .retain(|busy, ordered| *busy != stream && *ordered & (1 << stream) == 0);
        }
        let (done, waiting) = std::mem::take(&mut self.reads)
            .into_iter()
            .partition(|read| read.stream == stream);
        self.reads = waiting;
        for read in Vec::<Pending>::from_iter(done) {
            compare(&read.staging.bytes(), &read.expected).map_err(|error| {
                format!(
                    "after sync of stream {stream}, what step {} read: {error}",
                    read.step
                )
            })?;
        }
        Ok(())
    }

    /// Gives everything back, whatever happened.
    fn close(mut self) {
        // Whatever came of the script: work that is queued uses the memory and the streams that are freed next.
        for stream in 0..STREAMS {
            let _ = self.probe.sync(self.stream(stream));
        }
        self.slots.clear();
        for stream in self.streams.iter().skip(1) {
            // SAFETY: made in `new`; nothing uses it any more.
            let _ = unsafe { self.probe.api.free_stream(self.probe.device, *stream) };
        }
    }
}

/// The first byte that differs; one that nothing has written may be anything.
fn compare(actual: &[u8], expected: &[Option<u8>]) -> Result<(), String> {
    for (at, (actual, expected)) in actual.iter().zip(expected).enumerate() {
        if let Some(expected) = expected.filter(|expected| expected != actual) {
            return Err(format!(
                "byte {at} is {actual:#04x}, the model has {expected:#04x}"
            ));
        }
    }
    Ok(())
}
