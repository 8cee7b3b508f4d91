//! Arrays as numpy prints them: `print(array)` with its default options.
//!
//! Eight digits at most, columns aligned, lines of 75 characters, the middle left out beyond 1,000 elements.

use half::{bf16, f16};
use tvmspec::value::{DLDataType, dtype_to_text};

const PRECISION: usize = 8;
const LINE: usize = 75;
const EDGE: usize = 3;
const THRESHOLD: usize = 1000;

/// The text of a compact array of `shape`, its elements little endian in `bytes`.
///
/// A type that numpy does not have is printed as the floats that it stands for (`bfloat16`) or as its bytes.
pub(crate) fn array_text(dtype: DLDataType, shape: &[i64], bytes: &[u8]) -> String {
    let shape: Vec<usize> = shape
        .iter()
        .map(|extent| usize::try_from(*extent).unwrap_or(0))
        .collect();
    // The extents before one of 0 may have a product beyond any integer.
    let count = match shape.contains(&0) {
        true => Some(0),
        false => shape
            .iter()
            .try_fold(1_usize, |count, extent| count.checked_mul(*extent)),
    };
    let read = count.and_then(|count| Some((count, NumpyElements::read(dtype, bytes, count)?)));
    let Some((count, elements)) = read else {
        return format!(
            "{} of shape {shape:?}, {} bytes",
            dtype_to_text(dtype).unwrap_or_default(),
            bytes.len()
        );
    };
    if shape.is_empty() {
        return elements.scalar();
    }
    if count == 0 {
        return "[]".to_owned();
    }
    let summary = count > THRESHOLD;
    let mut shown = Vec::new();
    leaves(&shape, summary, 0, &mut shown);
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

/// A float alone, as Python prints it.
pub(crate) fn float_text(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value < 0.0 { "-inf" } else { "inf" }.to_owned();
    }
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-4..1e16).contains(&magnitude) {
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{digits}e{}", exponent_text(exponent));
    }
    let text = format!("{value}");
    if text.contains('.') {
        text
    } else {
        format!("{text}.0")
    }
}

/// Exponents have a sign and two digits at least.
fn exponent_text(exponent: &str) -> String {
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{sign}{digits:0>2}")
}

/// Which elements are printed, in order.
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

/// The positions of an axis that are printed; `None` stands for the dots.
fn shown(extent: usize, summary: bool) -> Vec<Option<usize>> {
    if !summary || extent <= 2 * EDGE {
        return (0..extent).map(Some).collect();
    }
    let head = (0..EDGE).map(Some);
    head.chain([None])
        .chain((extent - EDGE..extent).map(Some))
        .collect()
}

enum NumpyElements {
    Floats { values: Vec<f64>, width: Width },
    Words(Vec<String>),
}

#[derive(Clone, Copy)]
enum Width {
    Half,
    Single,
    Double,
}

impl NumpyElements {
    fn read(dtype: DLDataType, bytes: &[u8], count: usize) -> Option<NumpyElements> {
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
            // One bit of an unsigned integer is the bool of releases up to 0.20.
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
            (4, 16) => floats(
                each(bytes, count, |b| f64::from(bf16::from_le_bytes(b)))?,
                Width::Single,
            ),
            _ => return None,
        })
    }

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

fn python_bool(value: bool) -> String {
    if value { "True" } else { "False" }.to_owned()
}

/// A scalar of a narrow float: the shortest digits that read back, as `str(numpy.float32(x))`.
fn short_scalar(value: f64, width: Width) -> String {
    let magnitude = value.abs();
    if !value.is_finite() || (magnitude != 0.0 && !(1e-4..1e16).contains(&magnitude)) {
        if !value.is_finite() {
            return float_text(value);
        }
        let (digits, exponent) = shortest_scientific(value, width);
        return format!("{digits}e{}", exponent_text(&exponent));
    }
    let text = shortest(value, width);
    if text.contains('.') {
        text
    } else {
        format!("{text}.0")
    }
}

/// The shortest decimal that reads back to the same value of its width.
fn shortest(value: f64, width: Width) -> String {
    match width {
        Width::Half => shortest_half(value),
        Width::Single => format!("{}", value as f32),
        Width::Double => format!("{value}"),
    }
}

fn shortest_half(value: f64) -> String {
    let wanted = f16::from_f64(value);
    let found = (0..=5)
        .map(|digits| format!("{value:.digits$e}"))
        .find(|text| {
            text.parse::<f64>()
                .is_ok_and(|read| f16::from_f64(read) == wanted)
        });
    let near = found
        .and_then(|text| text.parse::<f64>().ok())
        .unwrap_or(value);
    format!("{near}")
}

/// Digits with a point, and the exponent.
fn shortest_scientific(value: f64, width: Width) -> (String, String) {
    let text = match width {
        Width::Half => format!("{:e}", shortest_half(value).parse::<f64>().unwrap_or(value)),
        Width::Single => format!("{:e}", value as f32),
        Width::Double => format!("{value:e}"),
    };
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    (digits.to_owned(), exponent.to_owned())
}

fn float_words(values: &[f64], width: Width) -> Vec<String> {
    let finite: Vec<f64> = values
        .iter()
        .copied()
        .filter(|value| value.is_finite())
        .collect();
    let sizes: Vec<f64> = finite
        .iter()
        .map(|value| value.abs())
        .filter(|value| *value != 0.0)
        .collect();
    let largest = sizes.iter().copied().fold(0.0, f64::max);
    let smallest = sizes.iter().copied().fold(f64::INFINITY, f64::min);
    // float16 has three digits and float32 six, which is where numpy changes over.
    let limit = match width {
        Width::Half => 1e3,
        Width::Single => 1e6,
        Width::Double => 1e8,
    };
    let ratio = match width {
        Width::Double => largest / smallest,
        _ => f64::from((largest / smallest) as f32),
    };
    let exponents = !sizes.is_empty() && (largest >= limit || smallest < 1e-4 || ratio > 1000.0);
    let texts = if exponents {
        with_exponents(values, width)
    } else {
        plain(values, width)
    };
    let room = texts.iter().map(String::len).max().unwrap_or(0);
    texts
        .into_iter()
        .map(|text| format!("{text:>room$}"))
        .collect()
}

/// Digits before and behind the point, both padded to the longest.
fn plain(values: &[f64], width: Width) -> Vec<String> {
    let parts: Vec<Option<(String, String)>> = values
        .iter()
        .map(|value| value.is_finite().then(|| split(*value, width)))
        .collect();
    let known = || parts.iter().flatten();
    let left = known().map(|(whole, _)| whole.len()).max().unwrap_or(0);
    let right = known().map(|(_, part)| part.len()).max().unwrap_or(0);
    let text = |(value, part): (&f64, &Option<(String, String)>)| match part {
        Some((whole, part)) => format!("{whole:>left$}.{part:<right$}"),
        None => float_text(*value),
    };
    values.iter().zip(&parts).map(text).collect()
}

fn split(value: f64, width: Width) -> (String, String) {
    let text = shortest(value, width);
    let digits = text.split_once('.').map_or(0, |(_, part)| part.len());
    let text = if digits > PRECISION {
        format!("{value:.PRECISION$}")
    } else {
        text
    };
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    (whole.to_owned(), part.trim_end_matches('0').to_owned())
}

/// One digit before the point, as many behind it as the longest needs.
fn with_exponents(values: &[f64], width: Width) -> Vec<String> {
    let parts: Vec<Option<(String, String)>> = values
        .iter()
        .map(|value| {
            value.is_finite().then(|| {
                let (digits, exponent) = shortest_scientific(*value, width);
                let long = digits
                    .split_once('.')
                    .is_some_and(|(_, part)| part.len() > PRECISION);
                if !long {
                    return (digits, exponent);
                }
                let text = format!("{value:.PRECISION$e}");
                let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
                (digits.trim_end_matches('0').to_owned(), exponent.to_owned())
            })
        })
        .collect();
    let known = || parts.iter().flatten();
    let fraction = |digits: &str| digits.split_once('.').map_or(0, |(_, part)| part.len());
    let right = known()
        .map(|(digits, _)| fraction(digits))
        .max()
        .unwrap_or(0);
    let long = known()
        .map(|(_, exponent)| exponent_text(exponent).len())
        .max()
        .unwrap_or(3);
    let text = |(value, part): (&f64, &Option<(String, String)>)| match part {
        Some((digits, exponent)) => {
            let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
            let exponent = exponent_text(exponent);
            let (sign, number) = exponent.split_at(1);
            format!(
                "{whole}.{part:0<right$}e{sign}{number:0>room$}",
                room = long - 1
            )
        }
        None => float_text(*value),
    };
    values.iter().zip(&parts).map(text).collect()
}

struct Print<'a> {
    shape: &'a [usize],
    summary: bool,
    words: &'a mut std::collections::HashMap<usize, String>,
}

impl Print<'_> {
    fn axis(&mut self, axis: usize, start: usize, indent: &str, width: usize) -> String {
        let rest = &self.shape[axis + 1..];
        let step: usize = rest.iter().product();
        let positions = shown(self.shape[axis], self.summary);
        let text = if rest.is_empty() {
            self.row(start, &positions, indent, width)
        } else {
            let separator = "\n".repeat(rest.len());
            let inner = format!("{indent} ");
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
        let width = width - 1;
        let mut text = String::new();
        let mut line = indent.to_owned();
        for (nth, at) in positions.iter().enumerate() {
            let word = match at {
                Some(at) => self.words.remove(&(start + at)).unwrap_or_default(),
                None => "...".to_owned(),
            };
            if line.len() + word.len() > width && line.len() > indent.len() {
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

    #[test]
    fn floats_print_as_python_prints_them() {
        assert_eq!(float_text(1.0), "1.0");
        assert_eq!(float_text(0.1), "0.1");
        assert_eq!(float_text(1e16), "1e+16");
        assert_eq!(float_text(1.5e-7), "1.5e-07");
    }
}
