//! What a device says of itself, and the memory that it gives.

use super::super::probe::Probe;
use super::super::tables::refused_or_failed;
use super::copies::tensor;
use super::workspaces::distinct;
use crate::conformance::behaviour::{Failure, Outcome, demand, expect};
use crate::device::{Attribute, AttributeValue, DEV_13, Dtype, Space};
use crate::rule::Kind;

pub(super) fn attributes_have_their_types(probe: &Probe<'_>) -> Outcome {
    let ask = |attribute| probe.api.attribute(probe.device, attribute);
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

pub(super) fn thread_dimensions_are_a_list(probe: &Probe<'_>) -> Outcome {
    let AttributeValue::Text(text) = probe
        .api
        .attribute(probe.device, Attribute::MaxThreadDimensions)?
    else {
        return Failure::skipped("the device does not know its thread dimensions");
    };
    let axes = serde_json::from_str::<[u64; 3]>(&text);
    demand(axes.is_ok_and(|axes| !axes.contains(&0)), || {
        format!("`{text}` is no JSON list of three sizes")
    })
}

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

pub(super) fn memory_is_aligned(probe: &Probe<'_>) -> Outcome {
    if !probe.api.supports_pointer_arithmetic() {
        return Failure::skipped(
            "handles of this device are not addresses that the host may look at",
        );
    }
    for alignment in [64, 128, 256] {
        let mut held = Vec::new();
        for nbytes in [1, 24, 40, 100, 4096, 24, 72] {
            let space = probe
                .api
                .alloc(probe.device, nbytes, alignment, Dtype::UINT8)?;
            held.push(space);
            demand(space.address().is_multiple_of(alignment), || {
                format!(
                    "{nbytes} bytes at {:#x}, asked for alignment {alignment}",
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

pub(super) fn unknown_scope_is_refused(probe: &Probe<'_>) -> Outcome {
    let given = probe
        .api
        .alloc_scoped(probe.device, &[4], Dtype::FLOAT32, Some("no.such.scope"));
    if let Ok(space) = given {
        // SAFETY: allocated above, freed once.
        unsafe { probe.api.free(probe.device, space)? };
    }
    let what = "memory in scope `no.such.scope`";
    refused_or_failed(given, DEV_13, Kind::Unsupported, what)?;
    let tensor = tensor(probe, Space::NULL, &[4], None, 0);
    let size = probe.api.data_size(&tensor, Some("no.such.scope"));
    refused_or_failed(size, DEV_13, Kind::Unsupported, "a size in it")
}

pub(super) fn spaces_are_distinct(probe: &Probe<'_>) -> Outcome {
    let sizes = [1, 64, 100, 4096, 4097, 1, 64];
    distinct(sizes.into_iter().map(|nbytes| probe.space(nbytes)))
}
