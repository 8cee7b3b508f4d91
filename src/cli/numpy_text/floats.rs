//! Floats as Python and numpy print them: the fewest digits that read back as the same value, eight of them behind the point at most.

use half::f16;

/// How many digits numpy prints behind the point at most, in arrays: its `precision`.
const PRECISION: usize = 8;

/// How wide a float is, which decides how many digits distinguish it from its neighbours.
#[derive(Clone, Copy)]
pub(super) enum Width {
    /// float16.
    Half,
    /// float32, and bfloat16, whose digits are those of the float32 of the same value.
    Single,
    /// float64.
    Double,
}

impl Width {
    /// From where on arrays have exponents: float16 has three digits and float32 six, and no array has more than eight without.
    const fn limit(self) -> f64 {
        match self {
            Width::Half => 1e3,
            Width::Single => 1e6,
            Width::Double => 1e8,
        }
    }

    /// The value of this width that is nearest to `value`: numpy computes in the type of the array.
    fn round(self, value: f64) -> f64 {
        match self {
            Width::Half => f16::from_f64(value).to_f64(),
            Width::Single => f64::from(value as f32),
            Width::Double => value,
        }
    }

    /// Whether `text` reads as `value`. Of two shortest texts that are equally near to a value, Rust prints the greater one and numpy
    /// the even one, which is how both round to a number of digits.
    fn reads(self, text: &str, value: f64) -> bool {
        text.parse().is_ok_and(|read| self.round(read) == value)
    }
}

/// A float alone, as Python prints it: the shortest digits that read back, with an exponent below 1e-4 and from 1e16
/// on.
pub(crate) fn float_text(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value < 0.0 { "-inf" } else { "inf" }.to_owned();
    }
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-4..1e16).contains(&magnitude) {
        // Rust prints the shortest digits, too, but writes `1e-7` where Python has `1e-07`.
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{digits}e{}", exponent_text(exponent));
    }
    // Rust's own form has neither an exponent nor, for integers, a point.
    let text = format!("{value}");
    if text.contains('.') {
        text
    } else {
        format!("{text}.0")
    }
}

/// The exponent with its sign and two digits at least, as C and Python write it.
fn exponent_text(exponent: &str) -> String {
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{sign}{digits:0>2}")
}

/// A scalar of a narrow float: the shortest digits that read back, as `str(numpy.float32(x))`.
///
/// A float64 has exponents where Python has them, a narrow float from the first number on that it may not hold to the last digit.
pub(super) fn short_scalar(value: f64, width: Width) -> String {
    if !value.is_finite() {
        return float_text(value);
    }
    let limit = match width {
        Width::Double => 1e16,
        narrow => narrow.limit(),
    };
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-4..limit).contains(&magnitude) {
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
    let text = match width {
        Width::Half => shortest_half(value),
        // The narrow float has the shortest digits; those of the double would tell apart values that it does not have.
        Width::Single => format!("{}", value as f32),
        Width::Double => format!("{value}"),
    };
    let places = text.split_once('.').map_or(0, |(_, part)| part.len());
    let even = format!("{value:.places$}");
    if places > 0 && width.reads(&even, value) {
        even
    } else {
        text
    }
}

/// The shortest decimal that reads back to the same float16: five digits distinguish any two of them.
fn shortest_half(value: f64) -> String {
    let wanted = f16::from_f64(value);
    // The crate `half` prints the digits of the float32 of the same value, which are more than numpy prints.
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

/// The shortest digits, with a point where there are several, and the exponent as Rust writes it: without a plus sign
/// or zeros in front.
fn shortest_scientific(value: f64, width: Width) -> (String, String) {
    let text = match width {
        Width::Half => format!("{:e}", shortest_half(value).parse::<f64>().unwrap_or(value)),
        Width::Single => format!("{:e}", value as f32),
        Width::Double => format!("{value:e}"),
    };
    let places = text
        .split_once('.')
        .map_or(0, |(_, part)| part.find('e').unwrap_or(part.len()));
    let even = format!("{value:.places$e}");
    let text = if width.reads(&even, value) {
        even
    } else {
        text
    };
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    (digits.to_owned(), exponent.to_owned())
}

/// The words of the elements of an array, all equally long: with exponents where one element is large or small or the
/// elements differ much, plain otherwise. One that is not finite does not take part in that choice.
pub(super) fn float_words(values: &[f64], width: Width) -> Vec<String> {
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
    // Zeros are left out: they need no digits of their own.
    let smallest = sizes.iter().copied().fold(f64::INFINITY, f64::min);
    let exponents = !sizes.is_empty()
        && (largest >= width.limit()
            || smallest < width.round(1e-4)
            || width.round(largest / smallest) > 1000.0);
    let texts = if exponents {
        with_exponents(values, width)
    } else {
        plain(values, width)
    };
    // `nan` and `inf` are shorter, and aligned at their ends.
    let room = texts.iter().map(String::len).max().unwrap_or(0);
    texts
        .into_iter()
        .map(|text| format!("{text:>room$}"))
        .collect()
}

/// Digits before and behind the point, both padded to the longest with blanks, as numpy does: `[1.   2.25]`.
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
        // `nan` or `inf`, which the caller pads.
        None => float_text(*value),
    };
    values.iter().zip(&parts).map(text).collect()
}

/// The digits before and behind the point, of [`PRECISION`] behind it at most; zeros at the end are left to the padding.
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

/// One digit before the point, as many behind it as the longest needs, and exponents of one length. Further digits of a shorter one are
/// those of its exact value, as in numpy: no zeros stand for them.
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
        // A sign and two digits, where no element is finite.
        .unwrap_or(3);
    let text = |(value, part): (&f64, &Option<(String, String)>)| match part {
        Some((digits, exponent)) => {
            let exact = format!("{value:.right$e}");
            let (digits, exponent) = match exact.split_once('e') {
                Some(longer) if fraction(digits) < right => longer,
                _ => (&**digits, &**exponent),
            };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_print_as_python_prints_them() {
        assert_eq!(float_text(1.0), "1.0");
        assert_eq!(float_text(0.1), "0.1");
        assert_eq!(float_text(1e16), "1e+16");
        assert_eq!(float_text(1.5e-7), "1.5e-07");
    }
}
