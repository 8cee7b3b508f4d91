//! The random walk: scripts of calls, run on a device and on a plain model of one, shrunk to the smallest that differs.
//!
//! The model is a vector of bytes per space and does everything at once. A script stays free of races, so that the model
//! is right: a step that touches memory which another stream still works on, without an order between them, is skipped.

mod model;
mod pick;
mod shrink;

use crate::device::{DEV_36, DEV_37, DEV_38, DEV_39, DEV_40, DEV_41, DEV_46, Device, DeviceApi};
use crate::rule::Rule;
pub use model::differs;
use pick::generate;
use shrink::shrink;
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
    "After each sync what was read on that stream is compared with what the model had when the read was queued, and at the end every space with the model; bytes that were never written are not compared. A copy within one space whose ranges overlap may be rejected, and then changes nothing.",
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
    /// Frees `slot`.
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
        // Every script reads behind a sync: these two are part of whatever differs.
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
///
/// # Errors
///
/// The shortest script that was found on which the device and the model of it differ.
pub fn walk(api: &dyn DeviceApi, device: Device, walk: &Walk) -> Result<(), Minimal> {
    walk_with(&|script| differs(api, device, script), walk)
}

/// [`walk`] with a new device for every script: what one broken script leaves behind does not disturb the next, so that
/// shrinking gets further.
///
/// # Errors
///
/// As [`walk`].
pub fn walk_fresh<D: DeviceApi>(
    make: impl Fn() -> D,
    device: Device,
    walk: &Walk,
) -> Result<(), Minimal> {
    walk_with(&|script| differs(&make(), device, script), walk)
}

/// Scripts by seed, up to the first that differs, which is made as short as it goes: fifty steps say nothing to a person.
fn walk_with(differs: &dyn Fn(&[Step]) -> Option<String>, walk: &Walk) -> Result<(), Minimal> {
    for index in 0..walk.scripts {
        // The seed of a script is its place in the walk, so that one that differs is made again without the ones before it.
        let script = generate(walk.seed.wrapping_add(index as u64), walk.steps);
        if let Some(difference) = differs(&script) {
            return Err(shrink(differs, script, difference));
        }
    }
    Ok(())
}

// Few, so that random steps meet each other.
const SLOTS: u8 = 5;
const STREAMS: u8 = 3;
// One byte, and one more than a page (DEV-25), are among them; two sizes are there twice, so that a block fits another request.
const SIZES: [usize; 8] = [1, 4, 64, 64, 100, 256, 256, 4097];
