//! Arrays as numpy prints them: `print(array)` with its default options, so that a result compares with that of a
//! Python script.
//!
//! Eight digits at most, columns aligned, lines of 75 characters, the middle left out beyond 1,000 elements.

mod floats;

pub(crate) use floats::float_text;

use floats::{Width, float_words, short_scalar};
use half::{bf16, f16};
use tvmspec::value::{DLDataType, dtype_to_text};

/// How many characters a line has: numpy's `linewidth`.
const LINE: usize = 75;
/// How many elements are printed at each end of an axis whose middle is left out: `edgeitems`.
const EDGE: usize = 3;
/// The most elements of an array that is printed whole: `threshold`.
const THRESHOLD: usize = 1000;

/// The text of a compact array of `shape`, its elements little endian in `bytes`.
///
/// `bfloat16`, which numpy does not have, is printed as floats. Of any other type without a form here, and where
/// `bytes` are fewer than the shape takes, only type, shape and number of bytes are printed.
pub(crate) fn array_text(dtype: DLDataType, shape: &[i64], bytes: &[u8]) -> String {
    let shape: Vec<usize> = shape
        .iter()
        // OBJ-11: no tensor has a negative extent.
        .map(|extent| usize::try_from(*extent).unwrap_or(0))
        .collect();
    // The extents before one of 0 may have a product beyond any integer.
    let count = if shape.contains(&0) {
        Some(0)
    } else {
        shape
            .iter()
            .try_fold(1_usize, |count, extent| count.checked_mul(*extent))
    };
    let read = count.and_then(|count| Some((count, NumpyElements::read(dtype, bytes, count)?)));
    let Some((count, elements)) = read else {
        return format!(
            "{} of shape {shape:?}, {} bytes",
            dtype_to_text(dtype).unwrap_or_else(|broken| broken.to_string()),
            bytes.len()
        );
    };
    // numpy prints a scalar as Python does, without brackets and padding.
    if shape.is_empty() {
        return elements.scalar();
    }
    if count == 0 {
        return "[]".to_owned();
    }
    let summary = count > THRESHOLD;
    let mut shown = Vec::new();
    leaves(&shape, summary, 0, &mut shown);
    // Only the elements that are printed decide the width of all, as in numpy.
    let words = elements.format(&shown);
    let mut words = shown
        .into_iter()
        .zip(words)
        .collect::<std::collections::HashMap<usize, String>>();
    let mut print = Print {
        shape: &shape,
        summary,
        words: &mut words,
    };
    print.axis(0, 0, " ", LINE)
}

/// Appends the positions of the elements that are printed, in order. `start` is that of the first element of this part
/// of the array, whose extents are `shape`.
fn leaves(shape: &[usize], summary: bool, start: usize, out: &mut Vec<usize>) {
    let Some((&extent, rest)) = shape.split_first() else {
        out.push(start);
        return;
    };
    let step: usize = rest.iter().product();
    for at in shown(extent, summary).into_iter().flatten() {
        leaves(rest, summary, start + at * step, out);
    }
}

/// The positions of an axis that are printed; `None` is for the dots between its ends.
fn shown(extent: usize, summary: bool) -> Vec<Option<usize>> {
    if !summary || extent <= 2 * EDGE {
        return (0..extent).map(Some).collect();
    }
    let head = (0..EDGE).map(Some);
    head.chain([None])
        .chain((extent - EDGE..extent).map(Some))
        .collect()
}

/// The elements of an array in row-major order: floats, which are aligned at their points, and words, which are
/// aligned at their ends.
enum NumpyElements {
    /// Every narrow float is a double as well; `width` decides how many digits it needs.
    Floats { values: Vec<f64>, width: Width },
    /// Integers and truth values.
    Words(Vec<String>),
}

impl NumpyElements {
    /// Reads `count` elements of `bytes`, little endian; `None` for a type without a form, or where there are fewer.
    fn read(dtype: DLDataType, bytes: &[u8], count: usize) -> Option<NumpyElements> {
        // numpy has no vectors.
        if dtype.lanes != 1 {
            return None;
        }
        fn each<const N: usize, T>(
            bytes: &[u8],
            count: usize,
            read: impl Fn([u8; N]) -> T,
        ) -> Option<Vec<T>> {
            let chunks = bytes.chunks_exact(N);
            let all: Vec<T> = chunks
                .take(count)
                .filter_map(|chunk| chunk.try_into().ok())
                .map(read)
                .collect();
            (all.len() == count).then_some(all)
        }
        fn words<T: ToString>(values: Vec<T>) -> NumpyElements {
            NumpyElements::Words(values.iter().map(T::to_string).collect())
        }
        let floats = |values, width| NumpyElements::Floats { values, width };
        Some(match (dtype.code, dtype.bits) {
            (0, 8) => words(each(bytes, count, i8::from_le_bytes)?),
            (0, 16) => words(each(bytes, count, i16::from_le_bytes)?),
            (0, 32) => words(each(bytes, count, i32::from_le_bytes)?),
            (0, 64) => words(each(bytes, count, i64::from_le_bytes)?),
            // TEN-04: one bit of an unsigned integer is the bool of releases up to 0.22.
            (1, 1) | (6, 8) => NumpyElements::Words(each(bytes, count, |[byte]: [u8; 1]| {
                python_bool(byte != 0)
            })?),
            (1, 8) => words(each(bytes, count, u8::from_le_bytes)?),
            (1, 16) => words(each(bytes, count, u16::from_le_bytes)?),
            (1, 32) => words(each(bytes, count, u32::from_le_bytes)?),
            (1, 64) => words(each(bytes, count, u64::from_le_bytes)?),
            (2, 16) => floats(
                each(bytes, count, |b| f64::from(f16::from_le_bytes(b)))?,
                Width::Half,
            ),
            (2, 32) => floats(
                each(bytes, count, |b| f64::from(f32::from_le_bytes(b)))?,
                Width::Single,
            ),
            (2, 64) => floats(each(bytes, count, f64::from_le_bytes)?, Width::Double),
            // bfloat16: its values are those of float32 with the low half cut off.
            (4, 16) => floats(
                each(bytes, count, |b| f64::from(bf16::from_le_bytes(b)))?,
                Width::Single,
            ),
            _ => return None,
        })
    }

    /// The only element, without brackets.
    fn scalar(&self) -> String {
        match self {
            NumpyElements::Words(words) => words.first().cloned().unwrap_or_default(),
            NumpyElements::Floats { values, width } => {
                let value = values.first().copied().unwrap_or(0.0);
                match width {
                    Width::Double => float_text(value),
                    _ => short_scalar(value, *width),
                }
            }
        }
    }

    /// The words of the elements `shown`, all of one width.
    fn format(&self, shown: &[usize]) -> Vec<String> {
        match self {
            NumpyElements::Words(words) => {
                let picked: Vec<&String> = shown.iter().filter_map(|at| words.get(*at)).collect();
                let width = picked.iter().map(|word| word.len()).max().unwrap_or(0);
                picked
                    .iter()
                    .map(|word| format!("{word:>width$}"))
                    .collect()
            }
            NumpyElements::Floats { values, width } => {
                let picked: Vec<f64> = shown
                    .iter()
                    .filter_map(|at| values.get(*at).copied())
                    .collect();
                float_words(&picked, *width)
            }
        }
    }
}

/// A truth value as Python spells it.
fn python_bool(value: bool) -> String {
    if value { "True" } else { "False" }.to_owned()
}

/// The state of printing an array.
struct Print<'a> {
    /// The extents, outermost first.
    shape: &'a [usize],
    /// Whether the middle of long axes is left out.
    summary: bool,
    /// The words that are printed, by the position of their element.
    words: &'a mut std::collections::HashMap<usize, String>,
}

impl Print<'_> {
    /// Prints one axis and those inside it, in brackets. `start` is the position of its first element, `indent` the
    /// blanks that lines below the first begin with, and `width` how many characters are left for a line.
    fn axis(&mut self, axis: usize, start: usize, indent: &str, width: usize) -> String {
        let rest = &self.shape[axis + 1..];
        let step: usize = rest.iter().product();
        let positions = shown(self.shape[axis], self.summary);
        let text = if rest.is_empty() {
            self.row(start, &positions, indent, width)
        } else {
            // Matrices have an empty line between them, cubes two, and so on.
            let separator = "\n".repeat(rest.len());
            let inner = format!("{indent} ");
            // Every line but the first begins with its indent, which `strip_prefix` below takes off the first.
            let rows: Vec<String> = positions
                .into_iter()
                .map(|at| match at {
                    Some(at) => format!(
                        "{indent}{}",
                        self.axis(axis + 1, start + at * step, &inner, width - 1)
                    ),
                    None => format!("{indent}..."),
                })
                .collect();
            rows.join(&separator)
        };
        format!("[{}]", text.strip_prefix(indent).unwrap_or(&text))
    }

    /// The last axis: words behind each other, a new line when the next does not fit.
    fn row(
        &mut self,
        start: usize,
        positions: &[Option<usize>],
        indent: &str,
        width: usize,
    ) -> String {
        // Room for the bracket that closes this axis.
        let width = width - 1;
        let mut text = String::new();
        let mut line = indent.to_owned();
        for (nth, at) in positions.iter().enumerate() {
            let word = match at {
                Some(at) => self.words.remove(&(start + at)).unwrap_or_default(),
                None => "...".to_owned(),
            };
            // A word that is longer than a line has one of its own.
            if line.len() + word.len() > width && line.len() > indent.len() {
                // Without the blank behind its last word.
                text.push_str(line.trim_end());
                text.push('\n');
                line = indent.to_owned();
            }
            line.push_str(&word);
            if nth + 1 < positions.len() {
                line.push(' ');
            }
        }
        text.push_str(&line);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const F32: DLDataType = DLDataType {
        code: 2,
        bits: 32,
        lanes: 1,
    };

    /// The text of an array of float32.
    fn floats(shape: &[i64], values: &[f32]) -> String {
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        array_text(F32, shape, &bytes)
    }

    /// Every expected text was printed by numpy 2.4.
    #[test]
    fn arrays_print_as_numpy_prints_them() {
        assert_eq!(floats(&[3], &[1.0, 2.5, -3.0]), "[ 1.   2.5 -3. ]");
        assert_eq!(floats(&[2], &[0.1, 0.2]), "[0.1 0.2]");
        assert_eq!(floats(&[2], &[1.0 / 3.0, 2.0]), "[0.33333334 2.        ]");
        assert_eq!(floats(&[2], &[1e-5, 1.0]), "[1.e-05 1.e+00]");
        assert_eq!(floats(&[2], &[f32::NAN, 1.0]), "[nan  1.]");
        assert_eq!(
            floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0]),
            "[[1. 2.]\n [3. 4.]]"
        );
        assert_eq!(floats(&[2], &[1.2345e7, 1.0]), "[1.2345e+07 1.0000e+00]");
        let long: Vec<f32> = (0..2000).map(|value| value as f32).collect();
        assert_eq!(
            floats(&[2000], &long),
            "[0.000e+00 1.000e+00 2.000e+00 ... 1.997e+03 1.998e+03 1.999e+03]"
        );
        let row: Vec<f32> = (0..30).map(|value| value as f32).collect();
        assert_eq!(
            floats(&[30], &row),
            "[ 0.  1.  2.  3.  4.  5.  6.  7.  8.  9. 10. 11. 12. 13. 14. 15. 16. 17.\n 18. 19. 20. 21. 22. 23. 24. 25. 26. 27. 28. 29.]"
        );
        assert_eq!(floats(&[], &[0.1]), "0.1");
        assert_eq!(floats(&[0], &[]), "[]");
    }

    /// Every expected text was printed by numpy 2.4.
    #[test]
    // All digits of a tie between two texts: fewer name another number.
    #[allow(clippy::excessive_precision)]
    fn narrow_floats_change_to_exponents_where_numpy_changes() {
        let half = |values: &[f32]| {
            let bytes: Vec<u8> = values
                .iter()
                .flat_map(|value| f16::from_f32(*value).to_le_bytes())
                .collect();
            let dtype = DLDataType { bits: 16, ..F32 };
            let shape: &[i64] = if values.len() == 1 { &[] } else { &[2] };
            array_text(dtype, shape, &bytes)
        };
        assert_eq!(half(&[999.0]), "999.0");
        assert_eq!(half(&[1000.0]), "1e+03");
        assert_eq!(half(&[999.0, 1.0]), "[999.   1.]");
        assert_eq!(half(&[1024.0, 1.5]), "[1.024e+03 1.500e+00]");
        assert_eq!(half(&[1.225e-4, 8.082e-5]), "[1.225e-04 8.082e-05]");
        assert_eq!(floats(&[], &[999_999.0]), "999999.0");
        assert_eq!(floats(&[], &[1e6]), "1e+06");
        // The nearest float32 is below 1e-4, and an array is compared with that float32.
        assert_eq!(floats(&[], &[1e-4]), "1e-04");
        assert_eq!(floats(&[1], &[1e-4]), "[0.0001]");
        // Two texts of eight digits are equally near.
        assert_eq!(floats(&[], &[523_247.125]), "523247.12");
        assert_eq!(floats(&[1], &[3_372_895.25]), "[3.3728952e+06]");
        // Digits of the exact value behind the shortest text.
        let mixed = [-568_155_008.0, -3_033_528.25];
        assert_eq!(floats(&[2], &mixed), "[-5.6815501e+08 -3.0335282e+06]");
    }
}
