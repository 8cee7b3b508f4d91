//! Copies between spaces and tensors.
//!
//! Memory is written with patterns that differ from place to place, and read whole: a copy that is right in its own range and wrong beside it is
//! the one that no model notices.

use super::super::probe::{Probe, ProbedMemory, pattern};
use super::super::tables::rejected_or_failed;
use super::STREAM;
use crate::conformance::behaviour::{Failure, Outcome, expect};
use crate::device::{DEV_16, DEV_17, Dtype, Space, TensorRef};
use crate::rule::Kind;

/// A tensor of bytes in memory of the device under test: one byte an element, so that extents are sizes and strides are distances.
pub(super) fn tensor<'a>(
    probe: &Probe<'_>,
    data: Space,
    shape: &'a [i64],
    strides: Option<&'a [i64]>,
    byte_offset: u64,
) -> TensorRef<'a> {
    TensorRef {
        data,
        device: probe.device,
        dtype: Dtype::UINT8,
        shape,
        strides,
        byte_offset,
    }
}

/// `device/tensor-sizes-must-match` (DEV-16). Where it does not hold: copying the smaller or the larger number of bytes are both wrong;
/// only rejecting is not.
pub(super) fn tensor_sizes_must_match(probe: &Probe<'_>) -> Outcome {
    let (from, to) = (probe.space(16)?, probe.space(16)?);
    // Also strided: the sizes are looked at first.
    let from = tensor(probe, from.space, &[2, 4], Some(&[1, 2]), 0);
    let to = tensor(probe, to.space, &[9], None, 0);
    // SAFETY: both spaces are larger than either tensor.
    let copied = unsafe { probe.api.copy_tensor(&from, &to, STREAM) };
    rejected_or_failed(
        copied,
        DEV_16,
        Kind::Type,
        "a copy of 8 bytes to a tensor of 9",
    )
}

/// `device/strided-tensor-is-rejected` (DEV-17). Where it does not hold: copying a transposed view as if it lay in one piece permutes its
/// elements.
pub(super) fn strided_tensor_is_rejected(probe: &Probe<'_>) -> Outcome {
    let (from, to) = (probe.space(16)?, probe.space(16)?);
    let flat = tensor(probe, from.space, &[2, 4], None, 0);
    let strided = tensor(probe, to.space, &[2, 4], Some(&[1, 2]), 0);
    // SAFETY: both spaces hold the tensors.
    let into = unsafe { probe.api.copy_tensor(&flat, &strided, STREAM) };
    // SAFETY: both spaces hold the tensors.
    let out = unsafe { probe.api.copy_tensor(&strided, &flat, STREAM) };
    let what = "a copy of a strided tensor";
    rejected_or_failed(into, DEV_17, Kind::Unsupported, what)?;
    rejected_or_failed(out, DEV_17, Kind::Unsupported, what)
}

/// `device/extent-one-axes-do-not-count` (DEV-17). Where it does not hold: frameworks hand out batches of one with arbitrary strides.
pub(super) fn extent_one_axes_do_not_count(probe: &Probe<'_>) -> Outcome {
    let (from, to) = (probe.space(8)?, probe.space(8)?);
    from.write(0, &pattern(1, 8), STREAM)?;
    let one = tensor(probe, from.space, &[1, 8], Some(&[77, 1]), 0);
    let flat = tensor(probe, to.space, &[8], None, 0);
    // SAFETY: both spaces hold the tensors.
    unsafe { probe.api.copy_tensor(&one, &flat, STREAM)? };
    expect(to.read(0, 8, STREAM)?, pattern(1, 8), "the copy")
}

/// `device/tensor-offsets-are-used` (DEV-18). Where it does not hold: a view into a pooled buffer starts at its byte offset, not at the
/// handle.
pub(super) fn tensor_offsets_are_used(probe: &Probe<'_>) -> Outcome {
    let (from, to) = (probe.space(64)?, probe.space(64)?);
    from.write(0, &pattern(2, 64), STREAM)?;
    to.write(0, &[7; 64], STREAM)?;
    let source = tensor(probe, from.space, &[8], None, 16);
    let target = tensor(probe, to.space, &[2, 4], None, 32);
    // SAFETY: both spaces hold the tensors.
    unsafe { probe.api.copy_tensor(&source, &target, STREAM)? };
    let mut expected = vec![7; 64];
    expected.splice(32..40, pattern(2, 64)[16..24].iter().copied());
    expect(to.read(0, 64, STREAM)?, expected, "the target")
}

/// Compares buffers and names the first difference only.
pub(super) fn same(actual: &[u8], expected: &[u8], what: &str) -> Outcome {
    let differs = actual
        .iter()
        .zip(expected)
        .position(|(actual, expected)| actual != expected);
    match differs {
        None => expect(actual.len(), expected.len(), what),
        Some(at) => Failure::broken(format!(
            "{what}: byte {at} of {} is {:#04x}, not {:#04x}",
            expected.len(),
            actual[at],
            expected[at]
        )),
    }
}

/// `device/copy-moves-exactly-its-bytes` (DEV-39). Where it does not hold: one byte too many is another tensor's first byte.
pub(super) fn copy_moves_exactly_its_bytes(probe: &Probe<'_>) -> Outcome {
    let [from, to] = [probe.space(300)?, probe.space(300)?];
    from.write(0, &pattern(3, 300), STREAM)?;
    // Odd offsets and sizes: a device that copies whole words moves bytes beside the range, too.
    for (from_offset, to_offset, nbytes) in [
        (0, 0, 1),
        (1, 3, 5),
        (17, 64, 33),
        (4, 0, 299 - 4),
        (0, 150, 150),
    ] {
        // Anew each time: a byte that is wrong is then the fault of this copy, and none of an earlier one is hidden.
        to.write(0, &[9; 300], STREAM)?;
        from.copy_to(from_offset, &to, to_offset, nbytes, STREAM)?;
        let mut expected = vec![9; 300];
        expected.splice(
            to_offset..to_offset + nbytes,
            pattern(3, 300)[from_offset..from_offset + nbytes]
                .iter()
                .copied(),
        );
        same(
            &to.read(0, 300, STREAM)?,
            &expected,
            &format!("{nbytes} bytes from {from_offset} to {to_offset}"),
        )?;
    }
    to.write(5, &[1, 2, 3], STREAM)?;
    same(
        &to.read(4, 3, STREAM)?,
        &[from_pattern(&to, 4)?, 1, 2],
        "a write at an odd offset",
    )
}

/// The byte that is there now: the one in front of what was written has to stay, whatever it is.
fn from_pattern(space: &ProbedMemory<'_>, at: usize) -> Result<u8, Failure> {
    Ok(space
        .read(at, 1, STREAM)?
        .first()
        .copied()
        .unwrap_or_default())
}

/// `device/empty-copy-is-nothing` (DEV-39). Where it does not hold: tensors without elements are legal; drivers reject copies of no
/// bytes.
pub(super) fn empty_copy_is_nothing(probe: &Probe<'_>) -> Outcome {
    let [from, to] = [probe.space(8)?, probe.space(8)?];
    to.write(0, &pattern(4, 8), STREAM)?;
    from.copy_to(0, &to, 0, 0, STREAM)?;
    to.write(3, &[], STREAM)?;
    same(
        &to.read(0, 8, STREAM)?,
        &pattern(4, 8),
        "after copies of no bytes",
    )
}

/// `device/overlapping-copy-moves-or-is-rejected` (DEV-40). Where it does not hold: a cache that shifts in place repeats its first rows
/// for ever.
pub(super) fn overlapping_copy(probe: &Probe<'_>) -> Outcome {
    // Both directions: a copy from the front smears the one, a copy from the back the other.
    for (from_offset, to_offset) in [(0, 8), (8, 0), (0, 1)] {
        let space = probe.space(128)?;
        let mut expected = pattern(5, 128);
        space.write(0, &expected, STREAM)?;
        // DEV-40: rejecting it is as good, and then no byte may have changed.
        if space
            .copy_to(from_offset, &space, to_offset, 96, STREAM)
            .is_ok()
        {
            expected.copy_within(from_offset..from_offset + 96, to_offset);
        }
        same(
            &space.read(0, 128, STREAM)?,
            &expected,
            &format!("96 bytes from {from_offset} to {to_offset} of one space"),
        )?;
    }
    Ok(())
}
