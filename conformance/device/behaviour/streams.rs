//! Streams, and who waits for whom.

use super::super::probe::{Probe, pattern};
use super::super::tables::rejected_or_failed;
use super::STREAM;
use super::copies::same;
use crate::conformance::behaviour::{Failure, Outcome, demand, expect};
use crate::device::{Attribute, AttributeValue, DEV_42, Device};
use crate::rule::Kind;

/// `device/stream-of-thread` (DEV-22, DEV-23). Where it does not hold: a worker thread that sets its stream must not move the work of
/// another.
pub(super) fn stream_of_thread(probe: &Probe<'_>) -> Outcome {
    let Probe { api, device } = *probe;
    probe.with_stream(|stream| {
        if stream == STREAM {
            return Failure::skipped("the device has only the default stream");
        }
        let before = api.current_stream(device);
        api.set_stream(device, stream)?;
        let here = api.current_stream(device);
        let there = std::thread::scope(|scope| scope.spawn(|| api.current_stream(device)).join());
        // In front of every judgement: the stream is freed behind this, and must not stay the one of this thread.
        let replaced = crate::device::stream::set(device, before)?;
        expect(here, stream, "the stream of the thread that set it")?;
        demand(there.is_ok_and(|there| there == STREAM), || {
            "another thread sees the stream".into()
        })?;
        expect(replaced, stream, "the stream that was replaced")
    })
}

/// `device/sync-waits` (DEV-36). Where it does not hold: the host reads results after a sync; after a sync that returns early it reads
/// old data now and then.
pub(super) fn sync_waits(probe: &Probe<'_>) -> Outcome {
    let space = probe.space(1 << 16)?;
    // A pattern for each round: behind a sync that returns early the bytes of the round before are there, and differ.
    for round in 0..4 {
        let bytes = pattern(round, 1 << 16);
        space.write(0, &bytes, STREAM)?;
        let staging = space.read_later(0, 1 << 16, STREAM)?;
        probe.sync(STREAM)?;
        same(&staging.bytes(), &bytes, "after the sync")?;
    }
    Ok(())
}

/// `device/stream-runs-in-order` (DEV-37). Where it does not hold: operators of a model depend on each other only by the order of the
/// stream.
pub(super) fn stream_runs_in_order(probe: &Probe<'_>) -> Outcome {
    let [space, other] = [probe.space(256)?, probe.space(256)?];
    probe.with_stream(|stream| {
        for round in 0..10 {
            space.write(0, &pattern(round, 256), stream)?;
            space.copy_to(0, &other, 0, 256, stream)?;
        }
        same(
            &other.read(0, 256, stream)?,
            &pattern(9, 256),
            "the last of ten writes",
        )
    })
}

/// `device/streams-wait-for-each-other` (DEV-38). Where it does not hold: copy and compute streams overlap, and meet only here.
pub(super) fn streams_wait_for_each_other(probe: &Probe<'_>) -> Outcome {
    let [space, other] = [probe.space(1 << 14)?, probe.space(1 << 14)?];
    probe.with_stream(|first| {
        probe.with_stream(|second| {
            for round in 0..4 {
                let bytes = pattern(round + 20, 1 << 14);
                space.write(0, &bytes, first)?;
                probe.api.sync_streams(probe.device, first, second)?;
                space.copy_to(0, &other, 0, 1 << 14, second)?;
                same(
                    &other.read(0, 1 << 14, second)?,
                    &bytes,
                    "what the second stream copied",
                )?;
                probe.sync(first)?;
            }
            Ok(())
        })
    })
}

/// `device/set-device` (DEV-42). Where it does not hold: a device that is not there must be rejected here and not at the first kernel.
pub(super) fn set_device(probe: &Probe<'_>) -> Outcome {
    probe.api.set_device(probe.device)?;
    // DEV-57: a CPU of a server is one, too.
    if probe.device.without_session().kind == Device::CPU.kind {
        return Ok(());
    }
    let nowhere = Device::new(probe.device.kind, 1000);
    let made = probe.api.set_device(nowhere);
    rejected_or_failed(
        made,
        DEV_42,
        Kind::Missing,
        "device 1000 as the current one",
    )?;
    expect(
        probe.api.attribute(nowhere, Attribute::Exist)?,
        AttributeValue::Int(0),
        "exist of device 1000",
    )
}

/// `device/free-waits-for-queued-work` (DEV-46). Where it does not hold: frameworks drop tensors as soon as the last operator that uses
/// them is queued.
pub(super) fn free_waits_for_queued_work(probe: &Probe<'_>) -> Outcome {
    let target = probe.space(512)?;
    for round in 0..4 {
        let source = probe.space(512)?;
        source.write(0, &pattern(round + 40, 512), STREAM)?;
        probe.sync(STREAM)?;
        source.copy_to(0, &target, 0, 512, STREAM)?;
        source.free()?;
        // The next owner of that memory writes to it at once.
        let next = probe.space(512)?;
        next.write(0, &[0xEE; 512], STREAM)?;
        same(
            &target.read(0, 512, STREAM)?,
            &pattern(round + 40, 512),
            "the copy from freed memory",
        )?;
        same(
            &next.read(0, 512, STREAM)?,
            &[0xEE; 512],
            "the next owner's memory",
        )?;
    }
    Ok(())
}
