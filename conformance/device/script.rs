//! The random walk: scripts of calls, run on a device and on a plain model of one, shrunk to the smallest that differs.
//!
//! The model is a vector of bytes per space and does everything at once. A script stays free of races, so that the model
//! is right: a step that touches memory which another stream still works on, without an order between them, is skipped.

use super::probe::{Held, Probe, Staging, pattern};
use crate::device::{
    DEV_36, DEV_37, DEV_38, DEV_39, DEV_40, DEV_41, DEV_46, Device, DeviceApi, Error, Stream,
};
use crate::rule::Rule;
use std::collections::BTreeMap;
use std::fmt;

/// Its name among the behaviours.
pub(crate) const ID: &str = "device/random-walk";

/// What goes wrong for a user where a walk differs.
pub(crate) const WHY: &str = "what no single case shows: an order of calls in which the device and a plain model of it part ways";

/// The rules that the model keeps.
pub(crate) const RULES: &[Rule] = &[DEV_36, DEV_37, DEV_38, DEV_39, DEV_40, DEV_41, DEV_46];

/// The releases in which they hold.
pub(crate) const RELEASES: &str = "0.3..";

/// The walk in words.
pub(crate) const PROGRAM: &[&str] = &[
    "Runs at least 20 scripts of 40 random steps, with 5 spaces and 3 streams, the first the default one: take a space or workspace of 1, 4, 64, 100, 256 or 4097 bytes; free one; write a pattern to a part of one, read a part, or copy between two, on a stream; sync a stream; let a stream wait for another.",
    "Beside it keeps a model: bytes for each space, in which every step is done at once. A step that touches a space on which another stream has work that is not ordered before it is left out, and so is freeing workspace with work on it.",
    "After each sync what was read on that stream is compared with what the model had when the read was queued, and at the end every space with the model; bytes that were never written are not compared. A copy within one space whose ranges overlap may be refused, and then changes nothing.",
];

/// One call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Takes memory (or workspace) of `nbytes` as `slot`.
    Alloc {
        /// Name of the space.
        slot: u8,
        /// Bytes.
        nbytes: usize,
        /// Whether it is workspace.
        workspace: bool,
    },
    /// Gives `slot` back.
    Free {
        /// Name of the space.
        slot: u8,
    },
    /// Queues a copy of a pattern from the host.
    Write {
        /// Destination.
        slot: u8,
        /// First byte.
        offset: usize,
        /// Bytes.
        nbytes: usize,
        /// Which pattern.
        seed: u8,
        /// Index of the stream; 0 is the default stream.
        stream: u8,
    },
    /// Queues a copy to the host, looked at after the stream is synced.
    Read {
        /// Source.
        slot: u8,
        /// First byte.
        offset: usize,
        /// Bytes.
        nbytes: usize,
        /// Index of the stream.
        stream: u8,
    },
    /// Queues a copy on the device.
    Copy {
        /// Source.
        from: u8,
        /// First byte there.
        from_offset: usize,
        /// Destination.
        to: u8,
        /// First byte there.
        to_offset: usize,
        /// Bytes.
        nbytes: usize,
        /// Index of the stream.
        stream: u8,
    },
    /// Waits for a stream.
    Sync {
        /// Index of the stream.
        stream: u8,
    },
    /// Orders later work of `after` behind `before`.
    Order {
        /// Index of the stream that is waited for.
        before: u8,
        /// Index of the stream that waits.
        after: u8,
    },
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Step::Alloc {
                slot,
                nbytes,
                workspace: false,
            } => write!(f, "s{slot} = alloc {nbytes}"),
            Step::Alloc {
                slot,
                nbytes,
                workspace: true,
            } => write!(f, "s{slot} = workspace {nbytes}"),
            Step::Free { slot } => write!(f, "free s{slot}"),
            Step::Write {
                slot,
                offset,
                nbytes,
                seed,
                stream,
            } => {
                write!(
                    f,
                    "s{slot}[{offset}..{}] = pattern {seed} on stream {stream}",
                    offset + nbytes
                )
            }
            Step::Read {
                slot,
                offset,
                nbytes,
                stream,
            } => {
                write!(
                    f,
                    "read s{slot}[{offset}..{}] on stream {stream}",
                    offset + nbytes
                )
            }
            Step::Copy {
                from,
                from_offset,
                to,
                to_offset,
                nbytes,
                stream,
            } => write!(
                f,
                "s{to}[{to_offset}..{}] = s{from}[{from_offset}..{}] on stream {stream}",
                to_offset + nbytes,
                from_offset + nbytes
            ),
            Step::Sync { stream } => write!(f, "sync stream {stream}"),
            Step::Order { before, after } => write!(f, "stream {after} waits for stream {before}"),
        }
    }
}

/// How far to walk.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    /// Seed of the first script.
    pub seed: u64,
    /// How many scripts.
    pub scripts: usize,
    /// Steps of a script at most.
    pub steps: usize,
}

impl Default for Walk {
    fn default() -> Walk {
        Walk {
            seed: 1,
            scripts: 60,
            steps: 40,
        }
    }
}

/// The smallest script found in which the device and the model differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Minimal {
    /// The script.
    pub script: Vec<Step>,
    /// What differs at its end.
    pub difference: String,
    /// Steps of the script before it was shrunk.
    pub before: usize,
}

impl Minimal {
    /// The rules that the kinds of steps in the script lean on.
    pub fn rules(&self) -> Vec<&'static str> {
        let has = |wanted: fn(&Step) -> bool| self.script.iter().any(wanted);
        let mut rules = vec![DEV_36, DEV_39];
        if has(|step| matches!(step, Step::Order { .. })) {
            rules.push(DEV_38);
        }
        if has(|step| matches!(step, Step::Free { .. })) {
            rules.push(DEV_46);
        }
        if has(|step| matches!(step, Step::Copy { from, to, .. } if from == to)) {
            rules.push(DEV_40);
        }
        rules.extend([DEV_37, DEV_41]);
        rules.into_iter().map(|rule| rule.id()).collect()
    }
}

impl fmt::Display for Minimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "device and model differ: {}", self.difference)?;
        write!(
            f,
            "     smallest script ({} steps, shrunk from {}):",
            self.script.len(),
            self.before
        )?;
        for step in &self.script {
            write!(f, "\n       {step}")?;
        }
        Ok(())
    }
}

/// Runs random scripts until one differs, and shrinks it.
pub fn walk(api: &dyn DeviceApi, device: Device, walk: &Walk) -> Result<(), Minimal> {
    walk_with(&|script| differs(api, device, script), walk)
}

/// [`walk`] with a new device for every script: what one broken script leaves behind does not disturb the next, so that
/// shrinking gets further.
pub fn walk_fresh<D: DeviceApi>(
    make: impl Fn() -> D,
    device: Device,
    walk: &Walk,
) -> Result<(), Minimal> {
    walk_with(&|script| differs(&make(), device, script), walk)
}

fn walk_with(differs: &dyn Fn(&[Step]) -> Option<String>, walk: &Walk) -> Result<(), Minimal> {
    for index in 0..walk.scripts {
        let script = generate(walk.seed.wrapping_add(index as u64), walk.steps);
        if let Some(difference) = differs(&script) {
            return Err(shrink(differs, script, difference));
        }
    }
    Ok(())
}

const SLOTS: u8 = 5;
const STREAMS: u8 = 3;
const SIZES: [usize; 8] = [1, 4, 64, 64, 100, 256, 256, 4097];

/// xorshift64*: small, seeded, good enough to pick calls.
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % end.max(1)
    }
}

/// A script that makes sense more often than not; what makes none is skipped when it is run.
fn generate(seed: u64, steps: usize) -> Vec<Step> {
    let mut dice = Dice::new(seed);
    let mut sizes = [0usize; SLOTS as usize];
    let mut script = Vec::new();
    for _ in 0..steps {
        let slot = dice.below(usize::from(SLOTS));
        let (size, name) = (sizes[slot], slot as u8);
        let stream = [0, 0, 1, 2][dice.below(4)];
        if size == 0 {
            sizes[slot] = SIZES[dice.below(SIZES.len())];
            script.push(Step::Alloc {
                slot: name,
                nbytes: sizes[slot],
                workspace: dice.below(3) == 0,
            });
            continue;
        }
        let offset = dice.below(size);
        let nbytes = 1 + dice.below(size - offset);
        script.push(match dice.below(12) {
            0 => {
                sizes[slot] = 0;
                Step::Free { slot: name }
            }
            1..=4 => Step::Write {
                slot: name,
                offset,
                nbytes,
                seed: dice.below(250) as u8,
                stream,
            },
            5 | 6 => Step::Read {
                slot: name,
                offset,
                nbytes,
                stream,
            },
            7 | 8 => {
                let to = dice.below(usize::from(SLOTS));
                let room = sizes[to];
                if room == 0 {
                    continue;
                }
                let to_offset = dice.below(room);
                let nbytes = nbytes.min(room - to_offset);
                Step::Copy {
                    from: name,
                    from_offset: offset,
                    to: to as u8,
                    to_offset,
                    nbytes,
                    stream,
                }
            }
            9 => Step::Sync { stream },
            _ => Step::Order {
                before: stream,
                after: dice.below(usize::from(STREAMS)) as u8,
            },
        });
    }
    script
}

/// A space of the script: on the device, and as the model sees it.
struct Slot<'a> {
    held: Held<'a>,
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

    fn touch(&mut self, stream: u8) {
        self.busy = BTreeMap::from([(stream, 0)]);
    }
}

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

    fn stream(&self, index: u8) -> Stream {
        self.streams
            .get(usize::from(index))
            .copied()
            .unwrap_or_default()
    }

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
                let Some(slot) = self
                    .slots
                    .get_mut(&slot)
                    .filter(|slot| slot.is_ordered(stream))
                else {
                    return Ok(());
                };
                let Some(target) = slot.bytes.get_mut(offset..offset + nbytes) else {
                    return Ok(());
                };
                let bytes = pattern(usize::from(seed), nbytes);
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
                let Some(slot) = self
                    .slots
                    .get_mut(&slot)
                    .filter(|slot| slot.is_ordered(stream))
                else {
                    return Ok(());
                };
                let Some(expected) = slot.bytes.get(offset..offset + nbytes) else {
                    return Ok(());
                };
                let expected = expected.to_vec();
                let staging = slot
                    .held
                    .read_later(offset, nbytes, queue)
                    .map_err(failed)?;
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
                        if *stream == before || *ordered & (1 << before) != 0 {
                            *ordered |= 1 << after;
                        }
                    }
                }
            }
        }
        Ok(())
    }

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
        let fits = |slot: &Slot<'_>, offset: usize| {
            offset + nbytes <= slot.bytes.len() && slot.is_ordered(stream)
        };
        if !fits(source, from.1) || !fits(target, to.1) {
            return Ok(());
        }
        let bytes = source.bytes[from.1..from.1 + nbytes].to_vec();
        let overlaps = from.0 == to.0 && from.1 < to.1 + nbytes && to.1 < from.1 + nbytes;
        match source
            .held
            .copy_to(from.1, &target.held, to.1, nbytes, queue)
        {
            Ok(()) => {}
            // A device may refuse what overlaps (DEV-40); then nothing has changed.
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

/// The smallest script that still differs: steps away, then numbers down, until nothing helps.
fn shrink(
    differs: &dyn Fn(&[Step]) -> Option<String>,
    script: Vec<Step>,
    difference: String,
) -> Minimal {
    let before = script.len();
    let mut best = (script, difference);
    // A device with a clock of its own may need more than one try to fail again.
    let fails = |script: &[Step]| (0..3).find_map(|_| differs(script));
    loop {
        let size_before = weight(&best.0);
        let mut chunk = best.0.len().div_ceil(2);
        while chunk > 0 {
            let mut at = 0;
            while at < best.0.len() {
                let mut candidate = best.0.clone();
                candidate.drain(at..(at + chunk).min(candidate.len()));
                match fails(&candidate) {
                    Some(difference) => best = (candidate, difference),
                    None => at += chunk,
                }
            }
            chunk /= 2;
        }
        for at in 0..best.0.len() {
            for smaller in best.0.get(at).map(smaller).unwrap_or_default() {
                let mut candidate = best.0.clone();
                candidate[at] = smaller;
                if weight(&candidate) < weight(&best.0)
                    && let Some(difference) = fails(&candidate)
                {
                    best = (candidate, difference);
                }
            }
        }
        if weight(&best.0) >= size_before {
            return Minimal {
                script: best.0,
                difference: best.1,
                before,
            };
        }
    }
}

/// What shrinking makes smaller: steps first, then the numbers in them.
fn weight(script: &[Step]) -> (usize, usize) {
    let numbers = |step: &Step| match *step {
        Step::Alloc {
            slot,
            nbytes,
            workspace,
        } => usize::from(slot) + nbytes + usize::from(workspace),
        Step::Free { slot } => usize::from(slot),
        Step::Write {
            slot,
            offset,
            nbytes,
            seed,
            stream,
        } => usize::from(slot) + offset + nbytes + usize::from(seed) + usize::from(stream),
        Step::Read {
            slot,
            offset,
            nbytes,
            stream,
        } => usize::from(slot) + offset + nbytes + usize::from(stream),
        Step::Copy {
            from,
            from_offset,
            to,
            to_offset,
            nbytes,
            stream,
        } => {
            usize::from(from)
                + from_offset
                + usize::from(to)
                + to_offset
                + nbytes
                + usize::from(stream)
        }
        Step::Sync { stream } => usize::from(stream),
        Step::Order { before, after } => usize::from(before) + usize::from(after),
    };
    (script.len(), script.iter().map(numbers).sum())
}

/// The same step with smaller numbers, boldest first.
fn smaller(step: &Step) -> Vec<Step> {
    let towards = |n: usize, least: usize| {
        [least, n / 2, n.saturating_sub(1)]
            .into_iter()
            .filter(move |m| *m >= least && *m < n)
    };
    let mut list = Vec::new();
    match step.clone() {
        Step::Alloc {
            slot,
            nbytes,
            workspace,
        } => {
            list.extend(towards(nbytes, 1).map(|nbytes| Step::Alloc {
                slot,
                nbytes,
                workspace,
            }));
            if workspace {
                list.push(Step::Alloc {
                    slot,
                    nbytes,
                    workspace: false,
                });
            }
        }
        Step::Write {
            slot,
            offset,
            nbytes,
            seed,
            stream,
        } => {
            list.extend(towards(offset, 0).map(|offset| Step::Write {
                slot,
                offset,
                nbytes,
                seed,
                stream,
            }));
            list.extend(towards(nbytes, 1).map(|nbytes| Step::Write {
                slot,
                offset,
                nbytes,
                seed,
                stream,
            }));
            list.extend(towards(usize::from(stream), 0).map(|stream| Step::Write {
                slot,
                offset,
                nbytes,
                seed,
                stream: stream as u8,
            }));
            list.extend(towards(usize::from(seed), 1).map(|seed| Step::Write {
                slot,
                offset,
                nbytes,
                seed: seed as u8,
                stream,
            }));
        }
        Step::Read {
            slot,
            offset,
            nbytes,
            stream,
        } => {
            list.extend(towards(offset, 0).map(|offset| Step::Read {
                slot,
                offset,
                nbytes,
                stream,
            }));
            list.extend(towards(nbytes, 1).map(|nbytes| Step::Read {
                slot,
                offset,
                nbytes,
                stream,
            }));
            list.extend(towards(usize::from(stream), 0).map(|stream| Step::Read {
                slot,
                offset,
                nbytes,
                stream: stream as u8,
            }));
        }
        Step::Copy {
            from,
            from_offset,
            to,
            to_offset,
            nbytes,
            stream,
        } => {
            let with = |from_offset, to_offset, nbytes, stream| Step::Copy {
                from,
                from_offset,
                to,
                to_offset,
                nbytes,
                stream,
            };
            list.extend(towards(from_offset, 0).map(|n| with(n, to_offset, nbytes, stream)));
            list.extend(towards(to_offset, 0).map(|n| with(from_offset, n, nbytes, stream)));
            list.extend(towards(nbytes, 1).map(|n| with(from_offset, to_offset, n, stream)));
            list.extend(
                towards(usize::from(stream), 0)
                    .map(|n| with(from_offset, to_offset, nbytes, n as u8)),
            );
        }
        Step::Sync { stream } => {
            list.extend(towards(usize::from(stream), 0).map(|n| Step::Sync { stream: n as u8 }))
        }
        Step::Order { .. } | Step::Free { .. } => {}
    }
    list
}
