//! Filter for the steps of a random script: it keeps those that the contract allows.

use super::Step;
use std::collections::{BTreeMap, HashMap};

/// A space of the script.
struct Slot {
    nbytes: usize,
    is_workspace: bool,
    /// The streams with work on it, each with a bit set of the streams that wait for that work.
    busy: BTreeMap<u8, u8>,
}

impl Slot {
    /// Returns whether a step on `stream` may access `nbytes` from `offset` on. The space must have them, and all running work on
    /// it must be ordered before the step.
    fn allows_access(&self, offset: usize, nbytes: usize, stream: u8) -> bool {
        let ordered = |(other, behind): (&u8, &u8)| *other == stream || behind & (1 << stream) != 0;
        offset + nbytes <= self.nbytes && self.busy.iter().all(ordered)
    }

    /// Records work on `stream`. It waits for all earlier work, so it is the only work that is left to order.
    fn record_work(&mut self, stream: u8) {
        self.busy = BTreeMap::from([(stream, 0)]);
    }
}

/// The slots and streams of a script, up to a step.
#[derive(Default)]
struct Order {
    slots: HashMap<String, Slot>,
    /// The numbers of created streams. The default one is 0.
    streams: HashMap<String, u8>,
}

/// Returns the script without the steps that are invalid or race with others.
pub(super) fn without_races(script: &[Step]) -> Vec<Step> {
    let mut order = Order::default();
    let allowed = |step: &&Step| order.allows(step).unwrap_or(false);
    script.iter().filter(allowed).cloned().collect()
}

impl Order {
    /// Returns whether a step may come next, or `None` if it is malformed.
    fn allows(&mut self, step: &Step) -> Option<bool> {
        let name = || step.name(1);
        let number = |at| step.number(at).ok();
        let stream = |at| match step.name(at) {
            Some(name) => self.streams.get(name).copied(),
            None => Some(0),
        };
        Some(match step.op() {
            "stream" => {
                let next = u8::try_from(self.streams.len() + 1).ok()?;
                let is_new = !self.streams.contains_key(name()?);
                self.streams.entry(name()?.to_owned()).or_insert(next);
                is_new
            }
            "alloc" | "workspace" => {
                let slot = Slot {
                    nbytes: number(2)?,
                    is_workspace: step.op() == "workspace",
                    busy: BTreeMap::new(),
                };
                let is_new = !self.slots.contains_key(name()?);
                self.slots.entry(name()?.to_owned()).or_insert(slot);
                is_new
            }
            "free" | "free-workspace" => {
                let slot = self.slots.get(name()?)?;
                // Workspace is reused without waiting, in the order of one stream, so it must be idle.
                let allowed = slot.is_workspace == (step.op() == "free-workspace")
                    && (!slot.is_workspace || slot.busy.is_empty());
                allowed && self.slots.remove(name()?).is_some()
            }
            "write" | "read" => {
                let is_write = step.op() == "write";
                let stream = stream(if is_write { 5 } else { 4 })?;
                if is_write {
                    number(4)?;
                }
                let (offset, nbytes) = (number(2)?, number(3)?);
                let slot = self.slots.get_mut(name()?)?;
                let allowed = slot.allows_access(offset, nbytes, stream);
                // A read counts as work, because another stream's write could otherwise overtake it.
                if allowed {
                    slot.record_work(stream);
                }
                allowed
            }
            "copy" => {
                let (from, to, nbytes) = (name()?, step.name(3)?, number(5)?);
                let stream = stream(6)?;
                let allowed = self
                    .slots
                    .get(from)?
                    .allows_access(number(2)?, nbytes, stream)
                    && self
                        .slots
                        .get(to)?
                        .allows_access(number(4)?, nbytes, stream);
                for end in [from, to].into_iter().filter(|_| allowed) {
                    self.slots.get_mut(end)?.record_work(stream);
                }
                allowed
            }
            "sync" => {
                let stream = stream(1)?;
                for slot in self.slots.values_mut() {
                    slot.busy
                        .retain(|busy, behind| *busy != stream && *behind & (1 << stream) == 0);
                }
                true
            }
            "order" => {
                let (before, after) = (stream(1)?, stream(2)?);
                for (stream, behind) in self.slots.values_mut().flat_map(|slot| &mut slot.busy) {
                    // Orders are transitive: the second stream also waits for the work that `before` waits for.
                    if *stream == before || *behind & (1 << before) != 0 {
                        *behind |= 1 << after;
                    }
                }
                true
            }
            _ => false,
        })
    }
}
