//! A tensor as loaders read it.

use super::Stop;
use super::stream::LoaderStream;
use crate::tensor::TensorRecord;

/// A tensor record, which every loader since 0.2 checks in the same way.
pub(super) fn tensor(stream: &mut LoaderStream<'_>) -> Result<(), Stop> {
    let reject = |why: String| Err(Stop::Rejects(format!("a tensor {why}")));
    let magic = stream.u64("magic of a tensor")?;
    // TEN-22: no reader looks at it.
    stream.u64("reserved word of a tensor")?;
    if magic != TensorRecord::MAGIC {
        return reject("does not start with its magic".into());
    }
    let device = stream.i32("device of a tensor")?;
    // TEN-24: nor at the number of the device.
    stream.i32("device of a tensor")?;
    let dimensions = stream.i32("rank of a tensor")?;
    let dtype = stream.take(4, "type of a tensor")?;
    // TEN-23: checked from 0.4 on, and no payload had tensors before 0.6.
    if device != 1 {
        return reject(format!("is on a device of type {device}"));
    }
    let Ok(dimensions) = u64::try_from(dimensions) else {
        return reject(format!("has {dimensions} dimensions"));
    };
    let shape = stream.take(dimensions.saturating_mul(8), "shape of a tensor")?;
    let (mut count, mut negative) = (1_i64, false);
    for extent in shape.chunks_exact(8).filter_map(<[u8]>::first_chunk) {
        let extent = i64::from_le_bytes(*extent);
        // TEN-26, TEN-27: loaders compare the product only, and it wraps.
        negative |= extent < 0;
        count = count.wrapping_mul(extent);
    }
    let [_, bits, low, high] = *dtype.first_chunk().unwrap_or(&[0; 4]);
    let lanes = u64::from(u16::from_le_bytes([low, high]));
    // Memory is aligned to an element with all its lanes, and the allocator takes powers of two only.
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
    // TEN-31: lanes do not count, so that a tensor of several is larger in memory than its data (TEN-34).
    let expected = count.wrapping_mul(i64::from(bits.div_ceil(8)));
    let size = stream.i64("size of a tensor")?;
    if size != expected {
        return reject(format!(
            "has {size} bytes, its shape and type take {expected}"
        ));
    }
    let Ok(length) = u64::try_from(size) else {
        return Err(Stop::Unknown(format!("a tensor has {size} bytes")));
    };
    stream.take(length, "data of a tensor")?;
    let elements = u64::try_from(count).ok();
    let reserved =
        elements.and_then(|count| count.checked_mul(u64::from(bits).saturating_mul(lanes)));
    // TEN-26: two negative dimensions have a positive product, and reserve memory for something else.
    if length > 0 && (negative || reserved.is_none_or(|bits| bits.div_ceil(8) < length)) {
        return Err(Stop::Unknown(
            "a tensor has more bytes than the memory that is reserved for it, and it writes behind that memory".into(),
        ));
    }
    Ok(())
}
