//! Memory and queues of the simulated device.

use super::memory::{SimulatedMemory, space_at};
use super::{Bug, KIND, injected};
use crate::device::error::{driver_error, reject};
use crate::device::{CopyRequest, DEV_31, DEV_41, DEV_42, Device, Dtype, Result, Space, Stream};
use crate::rule::Kind;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What the host sees at the destination of a copy that has not run.
const PENDING: u8 = 0xA5;
/// A call that reached the device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SimulatedCall {
    /// Device id, bytes, alignment, element type.
    Alloc(i32, usize, usize, Dtype),
    /// Device id and space.
    Free(i32, Space),
    /// The copy and its stream.
    Copy(CopyRequest, Stream),
    /// Device id and stream.
    Launch(i32, Stream),
    /// Device id and stream.
    Sync(i32, Stream),
    /// Device id, the stream waited for, the stream that waits.
    SyncStreams(i32, Stream, Stream),
    /// Device id.
    SetDevice(i32),
    /// Device id and the new stream.
    CreateStream(i32, Stream),
    /// Device id and stream.
    FreeStream(i32, Stream),
}

/// Something that a caller did wrong, though the device may have got away with it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hazard {
    /// A copy or kernel names memory that was freed or never there.
    UseAfterFree(Space),
    /// A space was freed that was not there.
    FreedTwice(Space),
    /// A copy reaches past the end of a space.
    OutOfBounds(Space),
    /// Source and destination of a copy overlap.
    Overlap(Space),
    /// Two streams touch the same space, one writes, and nothing orders them.
    Unordered(Space),
    /// The host changed the source of a copy before the copy ran: a sync is missing.
    SourceChanged(Space),
    /// Workspace came back that was not taken, or came back twice.
    WorkspaceNotTaken(Space),
    /// At the end: work that was never waited for.
    NeverSynced(Stream),
    /// At the end: memory that was never freed.
    NeverFreed(Space),
}

/// A piece of queued work.
pub(super) enum Work {
    /// Moves bytes.
    Copy(CopyRequest, Snapshot),
    /// Runs a closure over the device's memory.
    Kernel(Box<dyn FnOnce(&mut SimulatedMemory) + Send>),
    /// Marks an event, by its number, as reached.
    Record(usize),
    /// Holds its queue up until the event of this number is reached.
    Wait(usize),
}

/// What a host source held when the copy was queued, to see whether it changed before the copy ran; none for a device source.
pub(super) struct Snapshot(Option<Vec<u8>>);

/// A queue by the index of its device and its stream ([`own`]).
type QueueKey = (i32, Stream);

/// Everything of the simulated device that changes, behind one lock.
pub(super) struct SimulatedMachine {
    /// The memory of all devices.
    pub(super) memory: SimulatedMemory,
    /// Every call so far; their number also makes streams and events differ.
    pub(super) calls: Vec<SimulatedCall>,
    /// What callers did wrong so far, in order.
    pub(super) hazards: Vec<Hazard>,
    /// How many more allocations succeed before one fails.
    pub(super) fail_alloc: Option<usize>,
    /// How many more copies succeed before one fails.
    pub(super) fail_copy: Option<usize>,
    /// Workspace that [`Bug::WorkspaceTwice`] will hand out again.
    pub(super) handed_out: Vec<Space>,
    /// Work that has not run, oldest first. Ordered, so that equal seeds pick equal queues.
    queues: BTreeMap<QueueKey, VecDeque<Work>>,
    /// Events that were reached.
    recorded: BTreeSet<usize>,
    /// The state of the generator that decides when work runs by itself (`tick`).
    clock: u64,
    /// The defect that was planted.
    bug: Option<Bug>,
}

impl SimulatedMachine {
    /// A machine without memory in use. The seed decides when queued work runs, so that a script that fails once fails again.
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
            // A generator of this kind stays at 0 for ever; an odd number is none.
            clock: seed | 1,
            bug,
        }
    }

    /// Notes a call, before it is checked: one that fails reached the device too.
    pub(super) fn log(&mut self, call: SimulatedCall) {
        self.calls.push(call);
    }

    /// Memory of its own, or the failure that a case has asked for (DEV-12, DEV-41).
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

    /// Frees a space; one that is not allocated is noted as a mistake of the caller, and rejected (DEV-31).
    pub(super) fn free(&mut self, device: Device, space: Space) -> Result<()> {
        self.log(SimulatedCall::Free(device.id, space));
        if self.memory.size(space).is_none() {
            self.hazards.push(Hazard::FreedTwice(space));
            return reject(DEV_31, Kind::Missing, format!("{space:?} is not allocated"));
        }
        // Queued work may still use the space: it runs first (DEV-46).
        let forgets = self.bug == Some(Bug::FreeForgetsTheQueue);
        if !forgets {
            self.drain_all();
        }
        self.memory.free(space);
        Ok(())
    }

    /// # Safety
    ///
    /// As for [`DeviceApi::copy`](crate::device::DeviceApi::copy).
    pub(super) unsafe fn copy(&mut self, copy: CopyRequest, stream: Stream) -> Result<()> {
        self.log(SimulatedCall::Copy(copy, stream));
        if count_down(&mut self.fail_copy) {
            return Err(driver_error("simulated", "copy", -1, "injected failure"));
        }
        // DEV-39: before any check: a copy of no bytes is no error, wherever it is from and to.
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
        // DEV-40: noted, and done: `run_copy` reads all of the source before it writes.
        if overlaps(&copy) {
            self.hazards.push(Hazard::Overlap(copy.from));
        }
        let id = if from_host {
            copy.to_device.id
        } else {
            copy.from_device.id
        };
        self.check_order(&copy, (id, own(stream)));
        let snapshot = Snapshot(from_host.then(|| {
            // SAFETY: the source of a copy holds its bytes.
            unsafe { host_bytes(copy.from, copy.from_offset, copy.nbytes) }.to_vec()
        }));
        // A caller that reads before a sync sees that it is too early.
        if to_host {
            let to = copy.to.0.cast::<u8>().wrapping_add(copy.to_offset);
            // SAFETY: the destination of a copy holds its bytes, and is not read before a sync.
            unsafe { std::ptr::write_bytes(to, PENDING, copy.nbytes) };
        }
        self.push(id, stream, Work::Copy(copy, snapshot))
    }

    /// Queues work; DEV-42 for a stream that this device does not have.
    pub(super) fn push(&mut self, id: i32, stream: Stream, work: Work) -> Result<()> {
        let queue = (id, own(stream));
        if stream != Stream::DEFAULT && !self.queues.contains_key(&queue) {
            return reject(
                DEV_42,
                Kind::Missing,
                format!("{stream:?} is not a stream of device {id}"),
            );
        }
        // The default stream needs no making: it is there with its first work.
        let pending = self.queues.entry(queue).or_default();
        if self.bug == Some(Bug::StreamRunsBackwards) {
            pending.push_front(work);
        } else {
            pending.push_back(work);
        }
        self.tick();
        Ok(())
    }

    /// A new stream, whose handle no other one of this device has had.
    pub(super) fn create_stream(&mut self, device: Device) -> Stream {
        let id = device.id;
        // Another number for every stream, as calls are only added, and never null.
        let handle = std::ptr::without_provenance_mut(!self.calls.len());
        // SAFETY: this device follows no handle: it looks streams up in `queues`.
        let stream = unsafe { Stream::from_handle(device, handle) };
        self.queues.insert((id, own(stream)), VecDeque::new());
        self.log(SimulatedCall::CreateStream(id, stream));
        stream
    }

    /// Runs what is left on a stream and forgets it.
    pub(super) fn free_stream(&mut self, id: i32, stream: Stream) {
        self.log(SimulatedCall::FreeStream(id, stream));
        self.drain(id, stream);
        self.queues.remove(&(id, own(stream)));
    }

    /// Work queued on `after` from now on waits for everything on `before`.
    pub(super) fn order(&mut self, id: i32, before: Stream, after: Stream) -> Result<()> {
        self.log(SimulatedCall::SyncStreams(id, before, after));
        // The number of this call, which no other event has.
        let event = self.calls.len();
        // DEV-38: the caller does not wait; the second queue does, when it comes to the mark.
        self.push(id, before, Work::Record(event))?;
        self.push(id, after, Work::Wait(event))
    }

    /// Runs everything on a stream, and on others as far as it waits for them. What a stream waits for was queued before, so
    /// that something can always run; only where a stream runs backwards work may be left.
    pub(super) fn drain(&mut self, id: i32, stream: Stream) {
        let queue = (id, own(stream));
        while self.queues.get(&queue).is_some_and(|work| !work.is_empty())
            && (self.step(queue) || self.step_any())
        {}
    }

    /// What is wrong at the end: queues with work, spaces that are alive.
    pub(super) fn leftovers(&self) -> Vec<Hazard> {
        let queued = self.queues.iter().filter(|(_, work)| !work.is_empty());
        let never_synced = queued.map(|((_, stream), _)| Hazard::NeverSynced(*stream));
        let never_freed = self.memory.spaces().map(Hazard::NeverFreed);
        never_synced.chain(never_freed).collect()
    }

    /// Runs everything on every queue.
    fn drain_all(&mut self) {
        while self.step_any() {}
    }

    /// Runs one piece of work of the first queue that can; false where none can.
    fn step_any(&mut self) -> bool {
        let queues: Vec<QueueKey> = self.queues.keys().copied().collect();
        queues.into_iter().any(|queue| self.step(queue))
    }

    /// Now and then something runs by itself, by a clock that `spec/device.md` fixes: every implementation runs a script alike.
    fn tick(&mut self) {
        self.clock ^= self.clock << 13;
        self.clock ^= self.clock >> 7;
        self.clock ^= self.clock << 17;
        if self.clock.is_multiple_of(8) {
            // There is a queue: `push`, which calls this, has added one if there was none.
            let pick = (self.clock >> 8) as usize % self.queues.len();
            if let Some(queue) = self.queues.keys().nth(pick) {
                self.step(*queue);
            }
        }
    }

    /// Runs one piece of work of a queue; false if there is none or it must wait.
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

    /// Moves the bytes of a copy, those of the host as they are now.
    fn run_copy(&mut self, copy: &CopyRequest, snapshot: Snapshot) {
        let from_host = copy.from_device.kind == Device::CPU.kind;
        let to_host = copy.to_device.kind == Device::CPU.kind;
        if self.bug == Some(Bug::OverlapSmears) && overlaps(copy) {
            return self.smear(copy);
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

    /// The copy of [`Bug::OverlapSmears`]: byte by byte from the front.
    fn smear(&mut self, copy: &CopyRequest) {
        let bytes = self.memory.bytes(copy.from).unwrap_or_default();
        for at in 0..copy.nbytes {
            let from = copy.from_offset + at;
            bytes.copy_within(from..=from, copy.to_offset + at);
        }
    }

    /// Whether a copy may reach up to `end` of a space; no end is one that no number holds.
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

    /// Notes work of another stream that touches the same space, with a write on either side and nothing between.
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
            // What lies before an event that this queue waits for is ordered.
            for work in pending.iter().rev().take_while(|work| !ordered(work)) {
                // What a kernel touches is not known before it runs, so that copies alone are compared.
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

/// # Safety
///
/// The host memory is valid for these bytes.
unsafe fn host_bytes<'a>(space: Space, offset: usize, nbytes: usize) -> &'a [u8] {
    let first = space.0.cast::<u8>().wrapping_add(offset);
    // SAFETY: the host memory is valid for these bytes.
    unsafe { std::slice::from_raw_parts(first, nbytes) }
}

/// Whether both sides are one space and have a byte in common.
fn overlaps(copy: &CopyRequest) -> bool {
    copy.from == copy.to
        && copy.from_offset < copy.to_offset + copy.nbytes
        && copy.to_offset < copy.from_offset + copy.nbytes
}

/// Counts an injected failure down; true when it is due.
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

/// The stream under the type that queues are kept by. A table of C names no type, so that one stream may come with two.
fn own(stream: Stream) -> Stream {
    // SAFETY: this device follows no handle: it looks streams up in `queues`.
    unsafe { Stream::from_handle(Device::new(KIND, 0), stream.handle()) }
}
