//! Elements of tensors that generated code works on.

use crate::value::DLDataType;
use half::{bf16, f16};
use serde_json::Value;
/// How many elements lie between the first of a tensor and the end of its last; `None` for extents and steps below 0, steps that are not one for each
/// extent, and too many.
pub(super) fn extent(shape: &[i64], strides: Option<&[i64]>) -> Option<usize> {
    let sizes: Option<Vec<usize>> = shape
        .iter()
        .map(|size| usize::try_from(*size).ok())
        .collect();
    let sizes = sizes?;
    // Without elements there is no last one, and `size - 1` below would be less than 0.
    if sizes.contains(&0) {
        return Some(0);
    }
    let Some(strides) = strides else {
        return sizes
            .iter()
            .try_fold(1_usize, |all, size| all.checked_mul(*size));
    };
    if strides.len() != sizes.len() {
        return None;
    }
    sizes
        .iter()
        .zip(strides)
        .try_fold(1_usize, |end, (size, step)| {
            let step = usize::try_from(*step).ok()?;
            end.checked_add((size - 1).checked_mul(step)?)
        })
}

/// An element in memory: a number, a truth value, or the name of a fraction that JSON has not.
///
/// `None` for a type that the generators do not write (TGT-88), and for a form that is no such number.
pub(super) fn element(form: &Value, dtype: DLDataType) -> Option<Vec<u8>> {
    let fraction = match form.as_str() {
        Some("nan") => Some(f64::NAN),
        Some("inf") => Some(f64::INFINITY),
        Some("-inf") => Some(f64::NEG_INFINITY),
        Some(_) => None,
        None => form.as_f64(),
    };
    let whole = match form {
        Value::Bool(truth) => Some(i128::from(*truth)),
        _ => form
            .as_i64()
            .map(i128::from)
            .or(form.as_u64().map(i128::from)),
    };
    let size = usize::from(dtype.bits).div_ceil(8);
    Some(match (dtype.code, dtype.bits) {
        (2, 16) => f16::from_f64(fraction?).to_le_bytes().to_vec(),
        (4, 16) => bf16::from_f64(fraction?).to_le_bytes().to_vec(),
        (2, 32) => (fraction? as f32).to_le_bytes().to_vec(),
        (2, 64) => fraction?.to_le_bytes().to_vec(),
        (0 | 1 | 6, 1 | 8 | 16 | 32 | 64) => whole?.to_le_bytes()[..size].to_vec(),
        _ => return None,
    })
}

/// What is in memory as numbers: fractions with so many bits, of two nearest the even one.
///
/// Fewer bits where a case states them, for functions of C's library, whose last bits differ from system to system.
pub(super) fn numbers(bytes: &[u8], dtype: DLDataType, bits: Option<u64>) -> Value {
    let size = usize::from(dtype.bits).div_ceil(8);
    let fraction = |number: f64| match number {
        number if number.is_nan() => "nan".into(),
        f64::INFINITY => "inf".into(),
        f64::NEG_INFINITY => "-inf".into(),
        number => Value::from(cut(number, bits)),
    };
    let all = bytes.chunks_exact(size.max(1)).map(|element| {
        let mut wide = [0; 8];
        wide[..size].copy_from_slice(element);
        let unsigned = u64::from_le_bytes(wide);
        let unused = 64 - 8 * size;
        match (dtype.code, dtype.bits) {
            (2, 16) => fraction(f16::from_bits(unsigned as u16).into()),
            (4, 16) => fraction(bf16::from_bits(unsigned as u16).into()),
            (2, 32) => fraction(f32::from_bits(unsigned as u32).into()),
            (2, 64) => fraction(f64::from_bits(unsigned)),
            // The sign is the top bit of the element, and not of the 64 bits that it was read into.
            (0, _) => ((unsigned << unused).cast_signed() >> unused).into(),
            _ => unsigned.into(),
        }
    });
    all.collect()
}

/// A number with so many bits of its fraction, of 53; all of them without a number. It rounds half to even, as TGT-93 does.
pub(super) fn cut(number: f64, bits: Option<u64>) -> f64 {
    let Some(dropped) = bits.and_then(|bits| 53_u64.checked_sub(bits)) else {
        return number;
    };
    let unit = 1_u64 << dropped.min(52);
    let form = number.to_bits();
    let even = u64::from(form & unit != 0);
    f64::from_bits((form + (unit / 2).saturating_sub(1) + even * u64::from(unit > 1)) & !(unit - 1))
}

pub(super) fn usize_of(number: u64) -> usize {
    usize::try_from(number).unwrap_or(0)
}
