//! Arrays as text: brackets around each axis, elements in the shortest form that reads back, the middle of large arrays left out.

use super::small_float;
use half::{bf16, f16};
use std::fmt;
use tvmspec::tensor::Dtype;
use tvmspec::value::dtype_to_text;

/// The number of elements up to which an array is printed whole.
const WHOLE: usize = 1000;
/// The number of elements at each end of an axis whose middle is left out.
const EDGE: usize = 3;

/// Returns the text of a compact array of `shape`, its elements little-endian in `bytes`.
///
/// Returns data type, shape and number of bytes for elements without a text, and where `bytes` are fewer than the shape takes.
pub(crate) fn array_text(dtype: Dtype, shape: &[i64], bytes: &[u8]) -> String {
    // OBJ-11: no tensor has a negative extent.
    let extents: Vec<usize> = shape
        .iter()
        .map(|extent| usize::try_from(*extent).unwrap_or(0))
        .collect();
    if extents.contains(&0) {
        return "[]".to_owned();
    }
    let count = extents
        .iter()
        .try_fold(1_usize, |count, extent| count.checked_mul(*extent));
    // If the last element can be read, all elements can.
    let is_readable = |count: usize| element(dtype, bytes, count - 1).is_some();
    let Some(count) = count.filter(|count| is_readable(*count)) else {
        let dtype = dtype_to_text(dtype).unwrap_or_else(|broken| broken.to_string());
        return format!("{dtype} of shape {shape:?}, {} bytes", bytes.len());
    };
    let text = |at| element(dtype, bytes, at).unwrap_or_default();
    axis(&extents, 0, 1, count > WHOLE, &text)
}

/// Returns the text of an array of `shape` whose first element is number `start`. Lines begin with `indent` blanks.
fn axis(
    shape: &[usize],
    start: usize,
    indent: usize,
    is_large: bool,
    text: &impl Fn(usize) -> String,
) -> String {
    let Some((&extent, rest)) = shape.split_first() else {
        return text(start);
    };
    let step: usize = rest.iter().product();
    let item = |at: usize| axis(rest, start + at * step, indent + 1, is_large, text);
    let is_cut = is_large && extent > 2 * EDGE;
    let (head, tail) = if is_cut {
        (EDGE, extent - EDGE)
    } else {
        (extent, extent)
    };
    let mut items: Vec<String> = (0..head).map(item).collect();
    if is_cut {
        items.push("...".to_owned());
    }
    items.extend((tail..extent).map(item));
    let between = match rest {
        [] => ", ".to_owned(),
        _ => format!(",\n{:indent$}", ""),
    };
    format!("[{}]", items.join(&between))
}

/// A complex number, shown as Python does: `1.0-2.0j`.
struct Complex {
    real: f32,
    imaginary: f32,
}

impl fmt::Debug for Complex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}{:+?}j", self.real, self.imaginary)
    }
}

/// Returns the text of element `at`; `None` for a data type without a text form, and after the end of `bytes`.
fn element(dtype: Dtype, bytes: &[u8], at: usize) -> Option<String> {
    fn text<const N: usize, T: std::fmt::Debug>(
        bytes: &[u8],
        at: usize,
        read: impl Fn([u8; N]) -> T,
    ) -> Option<String> {
        let element = bytes.get(at.checked_mul(N)?..)?.first_chunk()?;
        Some(format!("{:?}", read(*element)))
    }
    match (dtype.code, dtype.bits, dtype.lanes) {
        (0, 8, 1) => text(bytes, at, i8::from_le_bytes),
        (0, 16, 1) => text(bytes, at, i16::from_le_bytes),
        (0, 32, 1) => text(bytes, at, i32::from_le_bytes),
        (0, 64, 1) => text(bytes, at, i64::from_le_bytes),
        // TEN-04: one bit of an unsigned integer is the bool of releases up to 0.22.
        (1, 1, 1) | (6, 8, 1) => text(bytes, at, |[byte]| byte != 0),
        (1, 8, 1) => text(bytes, at, u8::from_le_bytes),
        (1, 16, 1) => text(bytes, at, u16::from_le_bytes),
        (1, 32, 1) => text(bytes, at, u32::from_le_bytes),
        (1, 64, 1) => text(bytes, at, u64::from_le_bytes),
        (2, 16, 1) => text(bytes, at, f16::from_le_bytes),
        (2, 32, 1) => text(bytes, at, f32::from_le_bytes),
        (2, 64, 1) => text(bytes, at, f64::from_le_bytes),
        (4, 16, 1) => text(bytes, at, bf16::from_le_bytes),
        (5, 64, 1) => text(bytes, at, |[a, b, c, d, e, f, g, h]| Complex {
            real: f32::from_le_bytes([a, b, c, d]),
            imaginary: f32::from_le_bytes([e, f, g, h]),
        }),
        // Below a byte the lower bits count: the others may be the sign once more.
        (0, width @ (1 | 2 | 4), 1) => text(bytes, at, |[byte]| {
            (byte << (8 - width)).cast_signed() >> (8 - width)
        }),
        (1, width @ (2 | 4), 1) => text(bytes, at, |[byte]| byte & ((1 << width) - 1)),
        _ => Some(format!("{:?}", small_float::value(dtype, *bytes.get(at)?)?)),
    }
}
