//! The host as a device, and handles that are not addresses.

#[cfg(any(feature = "opencl", feature = "vulkan"))]
use super::super::tables::rejected;
use crate::conformance::behaviour::{Failure, Outcome, demand, expect};
use crate::device::{Attribute, AttributeValue, Device, DeviceApi, cpu};
use crate::module::workspace::{self, WorkspaceRequest};
#[cfg(any(feature = "opencl", feature = "vulkan"))]
use crate::rule::Kind;

/// Runs `device/what-the-cpu-answers` (DEV-08).
pub(super) fn what_the_cpu_answers() -> Outcome {
    let cpu = cpu::cpu();
    for attribute in Attribute::ALL {
        let answer = cpu.attribute(Device::CPU, attribute)?;
        match attribute {
            Attribute::Exist => expect(answer, AttributeValue::Int(1), "exist")?,
            Attribute::TotalGlobalMemory => memory_is_that_of_the_system(answer)?,
            _ => expect(answer, AttributeValue::None, attribute.name())?,
        }
    }
    Ok(())
}

/// Compares with the number in the system's text. Any answer passes if the system states no number.
fn memory_is_that_of_the_system(answer: AttributeValue) -> Outcome {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let mut words = text.split_whitespace();
    let total = words.find(|word| *word == "MemTotal:").and(words.next());
    let Some(total) = total.and_then(|kib| kib.parse::<i64>().ok()) else {
        return Ok(());
    };
    let (least, most) = (total.saturating_mul(512), total.saturating_mul(2048));
    demand(
        matches!(answer, AttributeValue::Int(bytes) if (least..most).contains(&bytes)),
        || format!("total_global_memory is {answer:?}; the system has {total} KiB"),
    )
}

/// Runs `device/workspace-of-compiled-code` (DEV-26, DEV-31).
pub(super) fn workspace_of_compiled_code() -> Outcome {
    // The registry's functions serve workspace after this call.
    crate::install();
    let request = WorkspaceRequest {
        device_type: 1,
        device_id: 0,
        bytes: 5000,
        hint: (1, 8),
    };
    let cycle = || -> Result<usize, String> {
        let memory = workspace::alloc(request)?;
        // SAFETY: just allocated on this thread.
        unsafe { workspace::free((1, 0), memory.as_ptr()) }?;
        Ok(memory.addr().get())
    };
    // On a new thread, whose pool is empty (DEV-33). With free blocks of its size, the freed block may not be the next one
    // (DEV-30).
    let both = std::thread::scope(|scope| scope.spawn(|| (cycle(), cycle())).join());
    let Ok((Ok(first), Ok(second))) = both else {
        return Failure::broken(format!("there is no workspace: {both:?}"));
    };
    expect(second, first, "the block of the second cycle")?;
    let nowhere = WorkspaceRequest {
        device_type: 127,
        ..request
    };
    demand(workspace::alloc(nowhere).is_err(), || {
        "a device without a name has workspace".into()
    })?;
    let foreign = std::ptr::without_provenance_mut(64);
    // SAFETY: the pool rejects a block that it did not allocate.
    let freed = unsafe { workspace::free((1, 0), foreign) };
    demand(freed.is_err(), || "a foreign block is taken back".into())
}

/// Runs `device/handles-are-no-addresses` (DEV-41).
#[cfg(any(feature = "opencl", feature = "vulkan"))]
pub(super) fn handles_are_no_addresses() -> Outcome {
    use crate::device::backend::spaces::{Handles, SpaceTable};
    use crate::device::{DEV_41, Space};
    let handles = Handles::new("suite");
    let spaces: Vec<Space> = (0..3).map(|number| handles.insert(7, number)).collect();
    let find = |space| handles.find(Device::CPU, space);
    for (space, number) in spaces.iter().zip(0..) {
        expect(find(*space)?, (7, number), "device and memory of a handle")?;
    }
    let apart = spaces.windows(2).all(|pair| match pair {
        [one, other] => other.address().checked_sub(one.address()) == Some(64),
        _ => false,
    });
    demand(apart, || format!("{spaces:?} are not 64 apart"))?;
    let [first, .., last] = spaces.as_slice() else {
        return Failure::broken("three handles are not three");
    };
    let between = Space(first.0.wrapping_byte_add(1));
    rejected(
        find(between),
        DEV_41,
        Kind::Missing,
        "a handle and one byte",
    )?;
    let removed = handles.remove(Device::CPU, *first)?;
    expect(removed, (7, 0), "the removed entry")?;
    let again = handles.remove(Device::CPU, *first);
    rejected(again, DEV_41, Kind::Missing, "removing it again")?;
    expect(find(*last)?, (7, 2), "another one")?;
    demand(!spaces.contains(&handles.insert(7, 4)), || {
        "a handle comes twice".into()
    })
}

/// Skips `device/handles-are-no-addresses` (DEV-41).
#[cfg(not(any(feature = "opencl", feature = "vulkan")))]
pub(super) fn handles_are_no_addresses() -> Outcome {
    Failure::skipped("this build has no device with such handles")
}
