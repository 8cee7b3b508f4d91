//! Tensors and parameter files as loaders read them.

use super::Stop;
use super::stream::{LoaderStream, Manner, text};
use crate::release::Release;
use crate::tensor::{Dtype, Params, TensorRecord};

/// Walks a parameter file as the loader of `release` reads it.
///
/// Returns the content that is missing from the tensors without an error (TEN-32).
pub(super) fn params(release: Release, bytes: &[u8]) -> Result<Option<String>, Stop> {
    // Every loader copies the file into a string first.
    let mut stream = LoaderStream::new(bytes, Manner::Reports);
    // TEN-42: no reader checks the second word.
    let magic = stream.u64("magic of the file")?;
    stream.u64("reserved word of the file")?;
    if magic != Params::MAGIC {
        return Err(Stop::Rejects(
            "it does not start with the magic of a parameter file".into(),
        ));
    }
    let names = stream.strings("names")?;
    // Loaders do not check that the count is present before they compare it.
    if stream.remaining().len() < 8 {
        return Err(Stop::Rejects(
            "the file ends before the number of tensors, and it compares the names with whatever was in memory".into(),
        ));
    }
    let count = stream.u64("number of tensors")?;
    if count != names.len() as u64 {
        return Err(Stop::Rejects(format!(
            "it has {count} tensors for {} names",
            names.len()
        )));
    }
    for name in names {
        tensor(release, &mut stream)
            .map_err(|stop| stop.map_reason(|why| format!("parameter `{}`: {why}", text(name))))?;
    }
    Ok(stream.missing_content())
}

/// Walks a file that is one tensor. Returns the same as [`params`].
pub(super) fn walk_tensor_file(release: Release, bytes: &[u8]) -> Result<Option<String>, Stop> {
    let mut stream = LoaderStream::new(bytes, Manner::Reports);
    tensor(release, &mut stream)?;
    Ok(stream.missing_content())
}

/// Walks a tensor record as the loader of `release` reads it.
pub(super) fn tensor(release: Release, stream: &mut LoaderStream<'_>) -> Result<(), Stop> {
    let reject = |why: String| Err(Stop::Rejects(format!("a tensor {why}")));
    let magic = stream.u64("magic of a tensor")?;
    // TEN-22: no reader checks it.
    stream.u64("reserved word of a tensor")?;
    if magic != TensorRecord::MAGIC {
        return reject("does not start with its magic".into());
    }
    let device = stream.i32("device of a tensor")?;
    // TEN-24: no reader checks the number of the device.
    stream.i32("device of a tensor")?;
    let dimensions = stream.i32("rank of a tensor")?;
    let dtype = stream.take(4, "type of a tensor")?;
    // TEN-23: checked from 0.4 on.
    if device != 1 && release >= Release::of(4) {
        return reject(format!("is on a device of type {device}"));
    }
    let Ok(dimensions) = u64::try_from(dimensions) else {
        return reject(format!("has {dimensions} dimensions"));
    };
    let shape = stream.take(dimensions.saturating_mul(8), "shape of a tensor")?;
    let extents = shape.chunks_exact(8).filter_map(<[u8]>::first_chunk);
    let extents = extents.map(|extent| i64::from_le_bytes(*extent));
    let first = extents.clone().next();
    // TEN-26, TEN-27: loaders compare only the product, which wraps.
    let count = extents.fold(1, i64::wrapping_mul);
    let [code, bits, low, high] = *dtype.first_chunk().unwrap_or(&[0; 4]);
    let lanes = u16::from_le_bytes([low, high]);
    let dtype = Dtype { code, bits, lanes };
    if !is_made(release, dtype) {
        return reject(format!(
            "is of {bits} bits in {lanes} lanes, of which it makes none"
        ));
    }
    let lanes = u64::from(lanes);
    // Memory is aligned to an element with all its lanes, but the allocator accepts only powers of two.
    match u64::from(bits / 8).saturating_mul(lanes) {
        ..=64 => {}
        alignment if alignment.is_power_of_two() => {}
        65..=128 => {
            return Err(Stop::Unknown(format!(
                "a tensor has {lanes} lanes, and whether it finds memory for them depends on how the runtime was built"
            )));
        }
        alignment => {
            return reject(format!(
                "has {lanes} lanes: there is no memory aligned to {alignment} bytes"
            ));
        }
    }
    // TEN-29: 0.2 and 0.3 multiply by the lanes, and round the result up to whole bytes.
    // TEN-31: 0.4 and later ignore lanes, so a tensor of several lanes has fewer stored bytes than memory (TEN-34).
    let bytes = match release.minor() {
        ..=3 => u64::from(bits).saturating_mul(lanes).div_ceil(8),
        _ => u64::from(bits.div_ceil(8)),
    };
    let expected = count.wrapping_mul(i64::try_from(bytes).unwrap_or(i64::MAX));
    let size = stream.i64("size of a tensor")?;
    if size != expected {
        return reject(format!(
            "has {size} bytes, its shape and type take {expected}"
        ));
    }
    let Ok(length) = u64::try_from(size) else {
        return Err(Stop::Unknown(format!("a tensor has {size} bytes")));
    };
    // TEN-32: from 0.7 on, the data of a scalar, and of a tensor whose first extent is 0, may be missing.
    let optional = release >= Release::of(7) && first.is_none_or(|first| first == 0);
    data(stream, length, optional)?;
    // TEN-26: memory is reserved for the same product. Two negative dimensions therefore get the memory of their positive product.
    let reserved = u64::try_from(count)
        .ok()
        .and_then(|count| memory(release, dtype, count));
    match reserved {
        Some(reserved) if reserved >= length => {}
        // TEN-31: elements of less than a byte are packed in memory. Elements without lanes take no memory (TEN-28).
        Some(reserved) if bits < 8 || lanes == 0 => stream.lose(format!(
            "a tensor has {length} bytes, but memory is reserved for only {reserved}: the rest is written after the end of that memory (TEN-31)"
        )),
        _ if length == 0 => {}
        _ => {
            return Err(Stop::Unknown(
                "a tensor has more bytes than the memory that is reserved for it, and it writes after the end of that memory".into(),
            ));
        }
    }
    Ok(())
}

/// Returns the number of bytes that `release` reserves for `count` elements (TEN-35); `None` if the product overflows.
fn memory(release: Release, dtype: Dtype, count: u64) -> Option<u64> {
    let bits = u64::from(dtype.bits).saturating_mul(u64::from(dtype.lanes));
    // DEV-15: up to 0.25, a single bit with one lane takes a byte.
    let is_bit = dtype == Dtype::scalar(Dtype::UINT, 1) && release < Release::of(26);
    if release < Release::of(21) || is_bit {
        count.checked_mul(bits.div_ceil(8))
    } else {
        Some(count.checked_mul(bits)?.div_ceil(8))
    }
}

/// Reads the available data of a tensor (TEN-32). Loaders only check that at least one byte was read, and skip even this check if the
/// data are `optional`.
fn data(stream: &mut LoaderStream<'_>, length: u64, optional: bool) -> Result<(), Stop> {
    let left = stream.remaining().len() as u64;
    let read = match stream.manner() {
        Manner::Reports if length > left => {
            stream.lose(format!(
                "the data of a tensor take {length} bytes and {left} are left: the others are zeros, or what was in memory (TEN-32)"
            ));
            left
        }
        _ => length,
    };
    stream.take(read, "data of a tensor")?;
    if read == 0 && !optional {
        return Err(Stop::Rejects(
            "a tensor has no byte of data, which it takes for a failure".into(),
        ));
    }
    Ok(())
}

/// Returns whether `release` creates tensors of this type. Releases up to 0.20 check the width (TEN-33).
///
/// 0.2 and 0.3 compare it with the type in the graph, which has no other types.
const fn is_made(release: Release, dtype: Dtype) -> bool {
    let Dtype { code, bits, lanes } = dtype;
    let release = release.minor();
    if release >= 21 {
        return true;
    }
    let whole = bits % 8 == 0 && (bits == 0 || bits.is_power_of_two());
    let small = match (code, bits) {
        (Dtype::UINT, 1) => true,
        (Dtype::INT, 1) | (Dtype::INT | Dtype::UINT, 4) => release >= 7,
        // TEN-02: in that release, 8 is the code of float4_e2m1fn.
        (8, 4) => release == 20,
        _ => false,
    };
    lanes > 0 && (whole || small)
}
