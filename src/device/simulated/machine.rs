//! Memory and queues of the simulated device.

use super::memory::{SimulatedMemory, space_at};
use super::{Bug, KIND, injected};
use crate::device::error::{driver_error, reject};
use crate::device::{CopyRequest, DEV_31, DEV_41, DEV_42, Device, Dtype, Result, Space, Stream};
use crate::rule::Kind;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The byte that fills the destination of a copy that has not run.
const PENDING: u8 = 0xA5;
/// A call that reached the device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SimulatedCall {
    /// An allocation: device id, bytes, alignment, element type.
    Alloc(i32, usize, usize, Dtype),
    /// A free: device id and space.
    Free(i32, Space),
    /// A copy and its stream.
    Copy(CopyRequest, Stream),
    /// A kernel launch: device id and stream.
    Launch(i32, Stream),
    /// A sync: device id and stream.
    Sync(i32, Stream),
    /// An ordering of streams: device id, the stream that is waited for, the stream that waits.
    SyncStreams(i32, Stream, Stream),
    /// A call of `set_device`: device id.
    SetDevice(i32),
    /// The creation of a stream: device id and the new stream.
    CreateStream(i32, Stream),
    /// The end of a stream: device id and stream.
    FreeStream(i32, Stream),
}

/// A mistake of a caller, even if the device tolerated it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hazard {
    /// A copy or kernel names memory that was freed or never allocated.
    UseAfterFree(Space),
    /// A space was freed that was not allocated.
    FreedTwice(Space),
    /// A copy reaches past the end of a space.
    OutOfBounds(Space),
    /// Source and destination of a copy overlap.
    Overlap(Space),
    /// Two streams access the same space, at least one of them writes, and no order between them is defined.
    Unordered(Space),
    /// The host changed the source of a copy before the copy ran: a sync is missing.
    SourceChanged(Space),
    /// Workspace was returned that was not taken, or was returned twice.
    WorkspaceNotTaken(Space),
    /// At the end there is work that was never waited for.
    NeverSynced(Stream),
    /// At the end there is memory that was never freed.
    NeverFreed(Space),
}

/// A piece of queued work.
pub(super) enum Work {
    /// A copy of bytes.
    Copy(CopyRequest, Snapshot),
    /// A closure over the device's memory.
    Kernel(Box<dyn FnOnce(&mut SimulatedMemory) + Send>),
    /// A mark that an event, by its number, was reached.
    Record(usize),
    /// A wait until the event of this number is reached.
    Wait(usize),
}

/// The contents of a host source when the copy was queued, to check whether it changed before the copy ran. `None` for a device source.
pub(super) struct Snapshot(Option<Vec<u8>>);

/// The key of a queue: the index of its device and its stream ([`queue_stream`]).
type QueueKey = (i32, Stream);

/// The mutable state of the simulated device, which one lock protects.
pub(super) struct SimulatedMachine {
    /// The memory of all devices.
    pub(super) memory: SimulatedMemory,
    /// Every call so far. Their number also makes streams and events distinct.
    pub(super) calls: Vec<SimulatedCall>,
    /// The mistakes of callers so far, in order.
    pub(super) hazards: Vec<Hazard>,
    /// The number of allocations that still succeed before one fails.
    pub(super) fail_alloc: Option<usize>,
    /// The number of copies that still succeed before one fails.
    pub(super) fail_copy: Option<usize>,
    /// The workspace that [`Bug::WorkspaceTwice`] will return again.
    pub(super) handed_out: Vec<Space>,
    /// The work that has not run, oldest first. The map is ordered, so that equal seeds pick equal queues.
    queues: BTreeMap<QueueKey, VecDeque<Work>>,
    /// The events that were reached.
    recorded: BTreeSet<usize>,
    /// The state of the random generator that decides when work runs without a sync (`tick`).
    clock: u64,
    /// The planted defect.
    bug: Option<Bug>,
}

impl SimulatedMachine {
    /// Creates a machine without memory in use. The seed decides when queued work runs, so that a failure can be reproduced.
    pub(super) fn new(seed: u64, bug: Option<Bug>) -> SimulatedMachine {
        SimulatedMachine {
            memory: SimulatedMemory::default(),
            calls: Vec::new(),
            hazards: Vec::new(),
            fail_alloc: None,
            fail_copy: None,
            handed_out: Vec::new(),
            queues: BTreeMap::new(),
            recorded: BTreeSet::new(),
            // The generator would stay at 0 forever, so the seed is made odd.
            clock: seed | 1,
            bug,
        }
    }

    /// Logs a call, before its checks: a rejected call also reached the device.
    pub(super) fn log(&mut self, call: SimulatedCall) {
        self.calls.push(call);
    }

    /// Allocates a new space, or fails if a case requested that (DEV-12, DEV-41).
    pub(super) fn alloc(
        &mut self,
        device: Device,
        nbytes: usize,
        alignment: usize,
        hint: Dtype,
    ) -> Result<Space> {
        self.log(SimulatedCall::Alloc(device.id, nbytes, alignment, hint));
        if count_down(&mut self.fail_alloc) {
            return Err(injected(nbytes));
        }
        Ok(self.memory.alloc(nbytes, alignment.max(1)))
    }

    /// Frees a space. A space that is not allocated is recorded as a mistake of the caller, and rejected (DEV-31).
    pub(super) fn free(&mut self, device: Device, space: Space) -> Result<()> {
        self.log(SimulatedCall::Free(device.id, space));
        if self.memory.size(space).is_none() {
            self.hazards.push(Hazard::FreedTwice(space));
            return reject(DEV_31, Kind::Missing, format!("{space:?} is not allocated"));
        }
        // DEV-46: queued work may still use the space, so it runs first.
        let forgets = self.bug == Some(Bug::FreeForgetsTheQueue);
        if !forgets {
            self.drain_all();
        }
        self.memory.free(space);
        Ok(())
    }

    /// Queues a copy.
    ///
    /// # Safety
    ///
    /// As for [`DeviceApi::copy`](crate::device::DeviceApi::copy).
    pub(super) unsafe fn copy(&mut self, copy: CopyRequest, stream: Stream) -> Result<()> {
        self.log(SimulatedCall::Copy(copy, stream));
        if count_down(&mut self.fail_copy) {
            return Err(driver_error("simulated", "copy", -1, "injected failure"));
        }
        // DEV-39: this comes before all checks, because a copy of no bytes is valid for any source and destination.
        if copy.nbytes == 0 {
            return Ok(());
        }
        let from_host = copy.from_device.kind == Device::CPU.kind;
        let to_host = copy.to_device.kind == Device::CPU.kind;
        if from_host && to_host {
            let message = "neither side of the copy is on the device";
            return reject(DEV_41, Kind::Type, message);
        }
        if !from_host {
            self.check_range(copy.from, copy.from_offset.checked_add(copy.nbytes))?;
        }
        if !to_host {
            self.check_range(copy.to, copy.to_offset.checked_add(copy.nbytes))?;
        }
        // DEV-40: the hazard is recorded and the copy made: `run_copy` reads all of the source before it writes.
        if overlaps(&copy) {
            self.hazards.push(Hazard::Overlap(copy.from));
        }
        let id = if from_host {
            copy.to_device.id
        } else {
            copy.from_device.id
        };
        self.check_order(&copy, (id, queue_stream(stream)));
        let snapshot = Snapshot(from_host.then(|| {
            // SAFETY: the source of a copy holds its bytes.
            unsafe { host_bytes(copy.from, copy.from_offset, copy.nbytes) }.to_vec()
        }));
        // A caller that reads before a sync sees this filler.
        if to_host {
            let to = copy.to.0.cast::<u8>().wrapping_add(copy.to_offset);
            // SAFETY: the destination of a copy holds its bytes, and is not read before a sync.
            unsafe { std::ptr::write_bytes(to, PENDING, copy.nbytes) };
        }
        self.push(id, stream, Work::Copy(copy, snapshot))
    }

    /// Queues work; fails with DEV-42 for a stream that this device does not have.
    pub(super) fn push(&mut self, id: i32, stream: Stream, work: Work) -> Result<()> {
        let queue = (id, queue_stream(stream));
        if stream != Stream::DEFAULT && !self.queues.contains_key(&queue) {
            return reject(
                DEV_42,
                Kind::Missing,
                format!("{stream:?} is not a stream of device {id}"),
            );
        }
        // The default stream always exists; its queue is created with its first work.
        let pending = self.queues.entry(queue).or_default();
        if self.bug == Some(Bug::StreamRunsBackwards) {
            pending.push_front(work);
        } else {
            pending.push_back(work);
        }
        self.tick();
        Ok(())
    }

    /// Creates a stream, with a handle that no other stream of this device has had.
    pub(super) fn create_stream(&mut self, device: Device) -> Stream {
        let id = device.id;
        // The number of calls only grows, so its complement differs for every stream and is never null.
        let handle = std::ptr::without_provenance_mut(!self.calls.len());
        // SAFETY: this device dereferences no handle: it looks streams up in `queues`.
        let stream = unsafe { Stream::from_handle(device, handle) };
        self.queues
            .insert((id, queue_stream(stream)), VecDeque::new());
        self.log(SimulatedCall::CreateStream(id, stream));
        stream
    }

    /// Runs the remaining work of a stream and removes the stream.
    pub(super) fn free_stream(&mut self, id: i32, stream: Stream) {
        self.log(SimulatedCall::FreeStream(id, stream));
        self.drain(id, stream);
        self.queues.remove(&(id, queue_stream(stream)));
    }

    /// Makes work that is queued on `after` from now on wait for the work on `before` so far.
    pub(super) fn order(&mut self, id: i32, before: Stream, after: Stream) -> Result<()> {
        self.log(SimulatedCall::SyncStreams(id, before, after));
        // The number of this call, which no other event has.
        let event = self.calls.len();
        // DEV-38: the caller does not wait. The second queue waits when it reaches the mark.
        self.push(id, before, Work::Record(event))?;
        self.push(id, after, Work::Wait(event))
    }

    /// Runs all work on a stream, and work on others that it waits for. That work was queued earlier, so some work can always run.
    /// Only if a stream runs backwards, work may remain.
    pub(super) fn drain(&mut self, id: i32, stream: Stream) {
        let queue = (id, queue_stream(stream));
        while self.queues.get(&queue).is_some_and(|work| !work.is_empty())
            && (self.step(queue) || self.step_any())
        {}
    }

    /// Returns the hazards at the end: queues with work, and live spaces.
    pub(super) fn final_hazards(&self) -> Vec<Hazard> {
        let queued = self.queues.iter().filter(|(_, work)| !work.is_empty());
        let never_synced = queued.map(|((_, stream), _)| Hazard::NeverSynced(*stream));
        let never_freed = self.memory.spaces().map(Hazard::NeverFreed);
        never_synced.chain(never_freed).collect()
    }

    /// Runs all work on every queue.
    fn drain_all(&mut self) {
        while self.step_any() {}
    }

    /// Runs one piece of work of the first queue that can run; returns false if no queue can.
    fn step_any(&mut self) -> bool {
        let queues: Vec<QueueKey> = self.queues.keys().copied().collect();
        queues.into_iter().any(|queue| self.step(queue))
    }

    /// Occasionally runs a piece of work without a sync. `spec/device.md` fixes the generator, so every implementation runs a
    /// script alike.
    fn tick(&mut self) {
        self.clock ^= self.clock << 13;
        self.clock ^= self.clock >> 7;
        self.clock ^= self.clock << 17;
        if self.clock.is_multiple_of(8) {
            // At least one queue exists, because `push`, which calls this, adds the first one.
            let pick = (self.clock >> 8) as usize % self.queues.len();
            if let Some(queue) = self.queues.keys().nth(pick) {
                self.step(*queue);
            }
        }
    }

    /// Runs one piece of work of a queue; returns false if the queue is empty or must wait.
    fn step(&mut self, queue: QueueKey) -> bool {
        let Some(pending) = self.queues.get_mut(&queue) else {
            return false;
        };
        if let Some(Work::Wait(event)) = pending.front()
            && !self.recorded.contains(event)
        {
            return false;
        }
        match pending.pop_front() {
            None => return false,
            Some(Work::Copy(copy, snapshot)) => self.run_copy(&copy, snapshot),
            Some(Work::Kernel(kernel)) => kernel(&mut self.memory),
            Some(Work::Record(event)) => self.recorded.extend([event]),
            Some(Work::Wait(_)) => {}
        }
        true
    }

    /// Moves the bytes of a copy. Bytes of the host are read as they are now.
    fn run_copy(&mut self, copy: &CopyRequest, snapshot: Snapshot) {
        let from_host = copy.from_device.kind == Device::CPU.kind;
        let to_host = copy.to_device.kind == Device::CPU.kind;
        if self.bug == Some(Bug::OverlapSmears) && overlaps(copy) {
            return self.copy_byte_by_byte(copy);
        }
        let bytes = if from_host {
            // SAFETY: the caller of `copy` keeps the source valid until a sync, and this is before.
            let now = unsafe { host_bytes(copy.from, copy.from_offset, copy.nbytes) }.to_vec();
            if snapshot.0.is_some_and(|then| then != now) {
                self.hazards.push(Hazard::SourceChanged(copy.from));
            }
            now
        } else {
            let from = space_at(copy.from.address() + copy.from_offset);
            let bytes = self.memory.bytes(from).unwrap_or_default();
            bytes.get(..copy.nbytes).unwrap_or_default().to_vec()
        };
        if to_host {
            let to = copy.to.0.cast::<u8>().wrapping_add(copy.to_offset);
            // SAFETY: the caller of `copy` keeps the destination valid until a sync, and this is before.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        } else {
            let to = self
                .memory
                .bytes(space_at(copy.to.address() + copy.to_offset))
                .unwrap_or_default();
            for (to, from) in to.iter_mut().zip(bytes) {
                *to = from;
            }
        }
    }

    /// Copies as described for [`Bug::OverlapSmears`]: byte by byte from the front.
    fn copy_byte_by_byte(&mut self, copy: &CopyRequest) {
        let bytes = self.memory.bytes(copy.from).unwrap_or_default();
        for at in 0..copy.nbytes {
            let from = copy.from_offset + at;
            bytes.copy_within(from..=from, copy.to_offset + at);
        }
    }

    /// Checks whether a copy may reach up to `end` of a space. `None` means that the end overflowed.
    fn check_range(&mut self, space: Space, end: Option<usize>) -> Result<()> {
        let Some(size) = self.memory.size(space) else {
            self.hazards.push(Hazard::UseAfterFree(space));
            return reject(DEV_41, Kind::Missing, format!("{space:?} is not allocated"));
        };
        if end.is_none_or(|end| end > size) {
            self.hazards.push(Hazard::OutOfBounds(space));
            let message = format!("a copy of bytes up to {end:?} of a space of {size}");
            return reject(DEV_41, Kind::Limit, message);
        }
        Ok(())
    }

    /// Records work of another stream that accesses the same space, if either side writes and nothing orders the two.
    fn check_order(&mut self, copy: &CopyRequest, own: QueueKey) {
        let own_work = self.queues.get(&own).into_iter().flatten();
        let waits = own_work.filter_map(|work| match work {
            Work::Wait(event) => Some(*event),
            _ => None,
        });
        let waited: BTreeSet<usize> = waits.collect();
        let ordered = |work: &&Work| matches!(work, Work::Record(event) if waited.contains(event));
        for (queue, pending) in &self.queues {
            if *queue == own {
                continue;
            }
            // Work before an event that this queue waits for is ordered.
            for work in pending.iter().rev().take_while(|work| !ordered(work)) {
                // The accesses of a kernel are unknown before it runs, so only copies are compared.
                let Work::Copy(other, _) = work else {
                    continue;
                };
                if copy.from == other.to {
                    self.hazards.push(Hazard::Unordered(copy.from));
                }
                if copy.to == other.from || copy.to == other.to {
                    self.hazards.push(Hazard::Unordered(copy.to));
                }
            }
        }
    }
}

/// Returns host memory as a slice.
///
/// # Safety
///
/// The host memory is valid for these bytes.
unsafe fn host_bytes<'a>(space: Space, offset: usize, nbytes: usize) -> &'a [u8] {
    let first = space.0.cast::<u8>().wrapping_add(offset);
    // SAFETY: the host memory is valid for these bytes.
    unsafe { std::slice::from_raw_parts(first, nbytes) }
}

/// Returns whether both sides are one space and share a byte.
fn overlaps(copy: &CopyRequest) -> bool {
    copy.from == copy.to
        && copy.from_offset < copy.to_offset + copy.nbytes
        && copy.to_offset < copy.from_offset + copy.nbytes
}

/// Counts down to an injected failure; returns true when it is due.
fn count_down(left: &mut Option<usize>) -> bool {
    match left {
        None => false,
        Some(0) => {
            *left = None;
            true
        }
        Some(more) => {
            *more -= 1;
            false
        }
    }
}

/// Returns the stream with the type that the queues use as key. A C table passes no types, so the same stream may have two types.
fn queue_stream(stream: Stream) -> Stream {
    // SAFETY: this device dereferences no handle: it looks streams up in `queues`.
    unsafe { Stream::from_handle(Device::new(KIND, 0), stream.handle()) }
}
