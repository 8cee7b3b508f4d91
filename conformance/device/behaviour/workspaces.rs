//! Workspace: reused in order, by device and thread.
//!
//! Pools are a thread's (DEV-33): a program that depends on which blocks are free runs on a thread of its own.

use super::super::probe::{Probe, ProbedMemory, pattern};
use super::super::tables::rejected_or_failed;
use super::STREAM;
use super::copies::same;
use crate::conformance::behaviour::{Failure, Outcome, demand, expect};
use crate::device::{Attribute, AttributeValue, DEV_31, Device, Space};
use crate::rule::Kind;

/// Skips what only a pool can show (DEV-24): a device may serve workspace as plain memory.
fn pooled(probe: &Probe<'_>) -> Outcome {
    if probe.api.pools_workspace() {
        return Ok(());
    }
    Failure::skipped("workspace of this device is plain memory")
}

/// Runs `body` on a thread of its own, whose pool is empty.
fn on_fresh_thread<T: Send>(
    body: impl FnOnce() -> Result<T, Failure> + Send,
) -> Result<T, Failure> {
    let outcome = std::thread::scope(|scope| scope.spawn(body).join());
    outcome.unwrap_or_else(|_| Failure::broken("the device panicked"))
}

/// `device/workspace-is-reused` (DEV-26). Where it does not hold: operators allocate workspace on every call; a device allocation each
/// time would dominate small kernels.
pub(super) fn workspace_is_reused(probe: &Probe<'_>) -> Outcome {
    pooled(probe)?;
    on_fresh_thread(|| reused(probe))
}

/// Three cycles of one block: by its handle it is the same one.
fn reused(probe: &Probe<'_>) -> Outcome {
    let first = probe.workspace(4096)?;
    let space = first.space;
    first.free()?;
    for _ in 0..3 {
        let again = probe.workspace(4096)?;
        expect(again.space, space, "the block of the next cycle")?;
        again.free()?;
    }
    Ok(())
}

/// `device/workspace-order` (DEV-30). Where it does not hold: peak memory of a program is fixed by the order in which blocks come back.
pub(super) fn workspace_order(probe: &Probe<'_>) -> Outcome {
    pooled(probe)?;
    // In: the order in which equal blocks come back. Out: the order in which they are handed out again.
    for (back, again) in [("BA", "AB"), ("AB", "BA"), ("CBA", "BCA"), ("DCBA", "CDBA")] {
        let order = on_fresh_thread(|| order_of_reuse(probe, back))?;
        expect(
            order.as_str(),
            again,
            &format!("blocks after {back} came back"),
        )?;
    }
    Ok(())
}

/// Takes as many blocks as `back` has letters, returns them in the order of the letters, and takes them again: in which order they come.
fn order_of_reuse(probe: &Probe<'_>, back: &str) -> Result<String, Failure> {
    let mut blocks: Vec<_> = (0..back.len())
        .map(|_| probe.workspace(4096).map(Some))
        .collect::<Result<_, _>>()?;
    let spaces: Vec<Space> = blocks.iter().flatten().map(|held| held.space).collect();
    for letter in back.bytes() {
        if let Some(held) = blocks
            .get_mut(usize::from(letter - b'A'))
            .and_then(Option::take)
        {
            held.free()?;
        }
    }
    let mut order = String::new();
    // Held until all are taken: a block that is freed at once would come again, and the order would show nothing.
    let mut again = Vec::new();
    for _ in 0..back.len() {
        let held = probe.workspace(4096)?;
        let letter = spaces.iter().position(|space| *space == held.space);
        order.push(letter.map_or('?', |at| char::from(b'A' + at as u8)));
        again.push(held);
    }
    Ok(order)
}

/// `device/foreign-workspace-is-rejected` (DEV-31). Where it does not hold: taking a stranger's pointer into the pool hands it out as
/// scratch memory later.
pub(super) fn foreign_workspace_is_rejected(probe: &Probe<'_>) -> Outcome {
    pooled(probe)?;
    let held = probe.workspace(64)?;
    let foreign = probe.space(64)?;
    // SAFETY: rejecting is all that a pool may do with a space that it does not know, and that is what this is about.
    let freed = unsafe { probe.api.free_workspace(probe.device, foreign.space) };
    drop(held);
    rejected_or_failed(freed, DEV_31, Kind::Missing, "freeing memory as workspace")
}

/// `device/workspace-comes-back-in-any-order` (DEV-32). Where it does not hold: error paths free out of order.
pub(super) fn workspace_comes_back_in_any_order(probe: &Probe<'_>) -> Outcome {
    let [first, second, third] = [
        probe.workspace(100)?,
        probe.workspace(100)?,
        probe.workspace(100)?,
    ];
    second.free()?;
    first.free()?;
    third.free()?;
    Ok(())
}

/// `device/workspace-is-per-device` (DEV-33). Where it does not hold: memory of device 0 handed to a kernel on device 1 is an illegal
/// address there.
pub(super) fn workspace_is_per_device(probe: &Probe<'_>) -> Outcome {
    pooled(probe)?;
    let other = Device::new(probe.device.kind, probe.device.id + 1);
    // DEV-42: the CPU ignores the index, so that the next number needs no second CPU.
    if probe.device.kind != Device::CPU.kind
        && probe.api.attribute(other, Attribute::Exist)? != AttributeValue::Int(1)
    {
        return Failure::skipped("there is one device of this type");
    }
    let first = probe.workspace(4096)?;
    let space = first.space;
    first.free()?;
    let there = Probe::new(probe.api, other).workspace(4096)?;
    demand(there.space != space, || {
        "memory of one device was handed out for another".into()
    })
}

/// `device/empty-workspace-is-something` (DEV-35). Where it does not hold: compiled code takes null for out of memory and stops.
pub(super) fn empty_workspace_is_something(probe: &Probe<'_>) -> Outcome {
    let [first, second] = [probe.workspace(0)?, probe.workspace(0)?];
    demand(!first.space.is_null() && !second.space.is_null(), || {
        "a workspace of no bytes is null".into()
    })
}

/// `device/workspaces-are-distinct` (DEV-41). Where it does not hold: an operator with two scratch buffers computes nonsense when they
/// are one.
pub(super) fn workspaces_are_distinct(probe: &Probe<'_>) -> Outcome {
    let sizes = [1, 64, 100, 4096, 4097, 1, 64];
    distinct(sizes.into_iter().map(|nbytes| probe.workspace(nbytes)))
}

/// All spaces are written before any is read: two that overlap (DEV-41) show the pattern of the later one.
pub(super) fn distinct<'a>(
    spaces: impl Iterator<Item = Result<ProbedMemory<'a>, crate::device::Error>>,
) -> Outcome {
    let spaces: Vec<_> = spaces.collect::<Result<_, _>>()?;
    for (seed, space) in spaces.iter().enumerate() {
        space.write(0, &pattern(seed + 30, space.nbytes), STREAM)?;
    }
    for (seed, space) in spaces.iter().enumerate() {
        let bytes = space.read(0, space.nbytes, STREAM)?;
        same(
            &bytes,
            &pattern(seed + 30, space.nbytes),
            &format!("space {seed} of {}", spaces.len()),
        )?;
    }
    Ok(())
}
