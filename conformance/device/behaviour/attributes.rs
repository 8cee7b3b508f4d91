//! The attributes of a device, and the memory that it allocates.

use super::super::probe::Probe;
use super::super::tables::rejected_or_failed;
use super::copies::tensor;
use super::workspaces::distinct;
use crate::conformance::behaviour::{Failure, Outcome, demand, expect};
use crate::device::{Attribute, AttributeValue, DEV_13, Dtype, Space};
use crate::rule::Kind;

/// `device/attributes-have-their-types` (DEV-08). Where it does not hold: schedulers divide by what a device answers: a zero or a text in
/// the wrong place ends in a crash far from here.
pub(super) fn attributes_have_their_types(probe: &Probe<'_>) -> Outcome {
    let ask = |attribute| probe.api.attribute(probe.device, attribute);
    // First of all: a device that is not there may answer null to everything else, which fits (DEV-08).
    expect(ask(Attribute::Exist)?, AttributeValue::Int(1), "exist")?;
    for attribute in Attribute::ALL {
        let answer = ask(attribute)?;
        let fits = match attribute {
            Attribute::ComputeVersion
            | Attribute::DeviceName
            | Attribute::MaxThreadDimensions
            | Attribute::DriverVersion => {
                matches!(&answer, AttributeValue::None)
                    || matches!(&answer, AttributeValue::Text(text) if !text.is_empty())
            }
            // A number up to 0.13, a name later.
            Attribute::GcnArch => !matches!(answer, AttributeValue::Int(0)),
            // -1 is unknown.
            Attribute::TotalGlobalMemory => {
                matches!(answer, AttributeValue::None | AttributeValue::Int(-1 | 1..))
            }
            _ => matches!(answer, AttributeValue::None | AttributeValue::Int(1..)),
        };
        demand(fits, || format!("{} is {answer:?}", attribute.name()))?;
    }
    Ok(())
}

/// `device/thread-dimensions-are-a-list` (DEV-10). Where it does not hold: Python parses the text as JSON and indexes three axes.
pub(super) fn thread_dimensions_are_a_list(probe: &Probe<'_>) -> Outcome {
    let AttributeValue::Text(text) = probe
        .api
        .attribute(probe.device, Attribute::MaxThreadDimensions)?
    else {
        return Failure::skipped("the device does not know its thread dimensions");
    };
    let axes = serde_json::from_str::<[u64; 3]>(&text);
    demand(axes.is_ok_and(|axes| !axes.contains(&0)), || {
        format!("`{text}` is not a JSON list of three sizes")
    })
}

/// `device/compute-version-is-numbers` (DEV-11). Where it does not hold: code generators split the text at the dot to choose
/// instructions.
pub(super) fn compute_version_is_numbers(probe: &Probe<'_>) -> Outcome {
    let AttributeValue::Text(text) = probe
        .api
        .attribute(probe.device, Attribute::ComputeVersion)?
    else {
        return Failure::skipped("the device has no compute version");
    };
    let parts: Vec<&str> = text.split('.').collect();
    let numbers = parts.iter().all(|part| part.parse::<u32>().is_ok());
    demand(numbers && (2..=3).contains(&parts.len()), || {
        format!("`{text}` is not major.minor or major.minor.patch")
    })
}

/// `device/memory-is-aligned` (DEV-12). Where it does not hold: compiled code uses aligned vector loads; a misaligned buffer is a fault
/// or wrong numbers.
pub(super) fn memory_is_aligned(probe: &Probe<'_>) -> Outcome {
    if !probe.api.supports_pointer_arithmetic() {
        return Failure::skipped(
            "handles of this device are not addresses that the host may look at",
        );
    }
    // 64 is what callers ask for today, 128 what 0.7 to 0.9 ask for (DEV-14, DEV-24), 256 what CUDA returns by itself (DEV-12).
    for alignment in [64, 128, 256] {
        // Kept until all are taken: memory that is freed at once may come again at the same address, which shows one address seven times.
        let mut held = Vec::new();
        for nbytes in [1, 24, 40, 100, 4096, 24, 72] {
            let space = probe
                .api
                .alloc(probe.device, nbytes, alignment, Dtype::UINT8)?;
            held.push(space);
            demand(space.address().is_multiple_of(alignment), || {
                format!(
                    "{nbytes} bytes at {:#x}, requested alignment {alignment}",
                    space.address()
                )
            })?;
        }
        for space in held {
            // SAFETY: allocated above, freed once.
            unsafe { probe.api.free(probe.device, space)? };
        }
    }
    Ok(())
}

/// `device/flat-scopes-are-flat` (DEV-13). Where it does not hold: 0.14 and later pass an empty scope for plain memory; a device that
/// rejects it cannot run them.
pub(super) fn flat_scopes_are_flat(probe: &Probe<'_>) -> Outcome {
    for scope in [None, Some("global"), Some("")] {
        let space = probe
            .api
            .alloc_scoped(probe.device, &[3, 5], Dtype::FLOAT32, scope)
            .map_err(|error| Failure::Broken(format!("scope {scope:?}: {error}")))?;
        // SAFETY: allocated above, freed once.
        unsafe { probe.api.free(probe.device, space)? };
    }
    Ok(())
}

/// `device/unknown-scope-is-rejected` (DEV-13). Where it does not hold: a texture that silently becomes a buffer is read with the wrong
/// layout.
pub(super) fn unknown_scope_is_rejected(probe: &Probe<'_>) -> Outcome {
    let allocated =
        probe
            .api
            .alloc_scoped(probe.device, &[4], Dtype::FLOAT32, Some("no.such.scope"));
    // In front of the judgement: a device that accepts the scope would keep the memory otherwise.
    if let Ok(space) = allocated {
        // SAFETY: allocated above, freed once.
        unsafe { probe.api.free(probe.device, space)? };
    }
    let what = "memory in scope `no.such.scope`";
    rejected_or_failed(allocated, DEV_13, Kind::Unsupported, what)?;
    let tensor = tensor(probe, Space::NULL, &[4], None, 0);
    let size = probe.api.data_size(&tensor, Some("no.such.scope"));
    rejected_or_failed(size, DEV_13, Kind::Unsupported, "a size in it")
}

/// `device/spaces-are-distinct` (DEV-41). Where it does not hold: two live tensors in one piece of memory overwrite each other.
pub(super) fn spaces_are_distinct(probe: &Probe<'_>) -> Outcome {
    let sizes = [1, 64, 100, 4096, 4097, 1, 64];
    distinct(sizes.into_iter().map(|nbytes| probe.space(nbytes)))
}
