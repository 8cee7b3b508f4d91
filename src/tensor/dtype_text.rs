//! Element types as text: `float32x4`, `bool`, `float8_e4m3fn`.

use super::{Dtype, TEN_02, TEN_09};
use crate::release::Release;
use crate::rule::{Kind, Violation};
use crate::wire::show;
use std::fmt;
use std::str::FromStr;

/// One row of the table in TEN-02.
pub(super) struct DtypeName {
    /// The start of the text.
    pub(super) text: &'static str,
    /// The code for this text.
    pub(super) code: u8,
    /// The width if no digits follow the text (TEN-03).
    pub(super) bits: u8,
    /// The first minor release that has the name.
    since: u8,
    /// The last minor release that has the name.
    until: u8,
    /// True if the width is part of the name and never follows it (TEN-06).
    pub(super) fixed: bool,
}

/// Creates the row of a name that digits may follow.
const fn name(text: &'static str, code: u8, bits: u8, since: u8, until: u8) -> DtypeName {
    DtypeName {
        text,
        code,
        bits,
        since,
        until,
        fixed: false,
    }
}

/// Creates the row of a name that contains its width (TEN-06).
const fn small(text: &'static str, code: u8, bits: u8, since: u8, until: u8) -> DtypeName {
    DtypeName {
        fixed: true,
        ..name(text, code, bits, since, until)
    }
}

/// The table of TEN-02. A code with different names in several releases has a row for each name.
const NAMES: &[DtypeName] = &[
    name("int", Dtype::INT, 32, 2, 27),
    name("uint", Dtype::UINT, 32, 2, 27),
    name("float", Dtype::FLOAT, 32, 2, 27),
    // TEN-03: its text has no bits, so parsing always returns 64.
    name("handle", Dtype::HANDLE, 64, 2, 27),
    // TEN-02: up to 0.15, every name except `handle` has 32 bits if no digits follow.
    name("bfloat", Dtype::BFLOAT, 32, 7, 15),
    name("bfloat", Dtype::BFLOAT, 16, 16, 27),
    // TEN-04: 0.22 writes this name (`bool8`) but does not read it: there the text `bool` is still the unsigned bit.
    name("bool", Dtype::BOOL, 8, 22, 27),
    // TEN-02: codes 6 to 8 change their meaning in 0.20, 0.21 and 0.22: 0.22 reads an 8-bit float of 0.19 as a bool.
    name("e4m3_float", 6, 32, 13, 15),
    name("e4m3_float", 6, 8, 16, 19),
    name("e5m2_float", 7, 32, 13, 15),
    name("e5m2_float", 7, 8, 16, 19),
    small("float8_e4m3fn", 6, 8, 20, 20),
    small("float8_e5m2", 7, 8, 20, 20),
    small("float4_e2m1fn", 8, 4, 20, 20),
    small("float8_e3m4", 7, 8, 21, 27),
    small("float8_e4m3", 8, 8, 21, 27),
    small("float8_e4m3b11fnuz", 9, 8, 21, 27),
    small("float8_e4m3fn", 10, 8, 21, 27),
    small("float8_e4m3fnuz", 11, 8, 21, 27),
    small("float8_e5m2", 12, 8, 21, 27),
    small("float8_e5m2fnuz", 13, 8, 21, 27),
    small("float8_e8m0fnu", 14, 8, 21, 27),
    small("float6_e2m3fn", 15, 6, 21, 27),
    small("float6_e3m2fn", 16, 6, 21, 27),
    small("float4_e2m1fn", 17, 4, 21, 27),
];

/// Short names and their long forms (TEN-08). A digit must follow the first four.
const SHORT: &[(&str, &str)] = &[
    ("bf", "bfloat"),
    ("i", "int"),
    ("u", "uint"),
    ("f", "float"),
    ("fp8_", "float8_"),
    ("f8_", "float8_"),
    ("fp6_", "float6_"),
    ("f6_", "float6_"),
    ("fp4_", "float4_"),
    ("f4_", "float4_"),
];

impl Dtype {
    /// Returns the text that `release` writes.
    ///
    /// Fails if the release has no name for the code (TEN-02). Some texts lose information: a handle loses its lanes, and a small float its
    /// width if that differs from its name.
    ///
    /// # Errors
    ///
    /// Returns TEN-02: kind unsupported for a custom type, otherwise kind unknown-kind.
    pub fn text(self, release: Release) -> Result<String, Violation> {
        // TEN-05: void has an empty text; before 0.5 it is a handle like others.
        if self == Dtype::VOID && release >= VOID_SINCE {
            return Ok(String::new());
        }
        // TEN-04: only one lane of one bit is `bool`; four lanes are `uint1x4`.
        if self == old_bool() && OLD_BOOL.contains(&release.minor()) {
            return Ok("bool".into());
        }
        let named = names(release).find(|name| name.code == self.code);
        let Some(name) = named else {
            return Err(self.unnamed(release));
        };
        let mut text = name.text.to_owned();
        // TEN-03: the text of a handle is only its name, without bits and lanes.
        if self.code == Dtype::HANDLE {
            return Ok(text);
        }
        let whole_bool = name.text == "bool" && self.bits == 8 && release >= BOOL_READ_SINCE;
        if !name.fixed && !whole_bool {
            text.push_str(&self.bits.to_string());
        }
        push_lanes(&mut text, self.lanes, release);
        Ok(text)
    }

    /// Parses `text` as `release` does.
    ///
    /// # Errors
    ///
    /// Returns TEN-02 for an unknown name (kind unknown-kind); TEN-09 for bits or lanes that the release does not accept.
    pub fn parse(text: &str, release: Release) -> Result<Dtype, Violation> {
        // TEN-05: void is the empty text since 0.5, and also the word since 0.12.
        let is_void = text.is_empty() && release >= VOID_SINCE
            || text == "void" && release >= VOID_NAME_SINCE;
        if is_void {
            return Ok(Dtype::VOID);
        }
        // TEN-04: `bool` is the unsigned bit, even in 0.22, which also has another bool.
        if text == "bool" && OLD_BOOL.contains(&release.minor()) {
            return Ok(old_bool());
        }
        let long = written_out(text, release);
        let text = long.as_deref().unwrap_or(text);
        // TEN-02: the longest name that fits wins, for example among `float`, `float8_e4m3` and `float8_e4m3fn`.
        let best = names(release)
            .filter(|name| text.starts_with(name.text))
            .filter(|name| {
                // TEN-04: 0.22 writes `bool8`, but the only text of bool that it reads is `bool`, which is handled above.
                name.code != Dtype::BOOL || name.text != "bool" || release >= BOOL_READ_SINCE
            })
            .max_by_key(|name| name.text.len());
        let Some(name) = best else {
            let shown = show(text.as_bytes());
            let message = format!("TVM {release} knows no element type `{shown}`");
            return Err(TEN_02.rejected(Kind::UnknownKind, message));
        };
        let rest = text.get(name.text.len()..).unwrap_or_default();
        let (bits, rest) = if name.fixed {
            (name.bits, rest)
        } else {
            read_bits(rest, name.bits, text)?
        };
        Ok(Dtype {
            code: name.code,
            bits,
            lanes: read_lanes(rest, name, release, text)?,
        })
    }

    /// Returns the text that the newest release parses to exactly this dtype; `None` if no such text exists.
    pub fn exact_text(self) -> Option<String> {
        let text = self.text(Release::LAST).ok()?;
        let back = Dtype::parse(&text, Release::LAST).ok()?;
        // Void is the empty text; its three numbers are clearer.
        (back == self && !text.is_empty()).then_some(text)
    }

    /// Creates the violation of TEN-02 for a code without a name in `release`: custom types are unsupported, all others unknown.
    fn unnamed(self, release: Release) -> Violation {
        if self.code >= Dtype::CUSTOM {
            let message = format!(
                "element type code {} is a custom type, whose name only the process that registered it knows",
                self.code
            );
            return TEN_02.rejected(Kind::Unsupported, message);
        }
        let message = format!("TVM {release} has no element type of code {}", self.code);
        TEN_02.rejected(Kind::UnknownKind, message)
    }
}

/// Appends the lanes as `release` writes them.
pub(crate) fn push_lanes(text: &mut String, lanes: u16, release: Release) {
    let scales = release >= SCALABLE_SINCE;
    // TEN-07: lanes are signed from 0.16 on. -1 and 0 are not written, so they read back as one lane.
    let signed = i16::from_le_bytes(lanes.to_le_bytes());
    if scales && signed < -1 {
        text.push_str(&format!("xvscalex{}", signed.unsigned_abs()));
    } else if (scales && signed > 1) || (!scales && lanes != 1) {
        text.push_str(&format!("x{lanes}"));
    }
}

/// Writes the text of the newest release, or the three numbers if the text would lose information.
impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.exact_text() {
            Some(text) => f.write_str(&text),
            None if *self == Dtype::VOID => f.write_str("void"),
            None => write!(
                f,
                "code {} of {} bits, {} lanes",
                self.code, self.bits, self.lanes
            ),
        }
    }
}

/// Parses the text of the newest release, as [`Display`](fmt::Display) writes it.
///
/// ```
/// use tvmspec::tensor::Dtype;
///
/// let dtype: Dtype = "float32x4".parse()?;
/// assert_eq!((dtype.code, dtype.bits, dtype.lanes), (Dtype::FLOAT, 32, 4));
/// assert_eq!(dtype.to_string(), "float32x4");
/// let unknown = "flaot32".parse::<Dtype>().unwrap_err();
/// assert_eq!(unknown.rule(), tvmspec::tensor::rules::TEN_02);
/// # Ok::<(), tvmspec::rule::Violation>(())
/// ```
impl FromStr for Dtype {
    type Err = Violation;

    /// Calls [`Dtype::parse`] for the newest release.
    fn from_str(text: &str) -> Result<Dtype, Violation> {
        Dtype::parse(text, Release::LAST)
    }
}

/// The first release in which the empty text is void (TEN-05).
const VOID_SINCE: Release = Release::of(5);
/// The first release that reads the word `void`, which no release writes (TEN-05).
const VOID_NAME_SINCE: Release = Release::of(12);
/// The first release with scalable lanes (TEN-07).
const SCALABLE_SINCE: Release = Release::of(16);
/// The first release that reads `bool` as code 6. 0.22 writes code 6 under this name, but reads only the old bool.
const BOOL_READ_SINCE: Release = Release::of(23);
/// The first release with short names (TEN-08).
const SHORT_SINCE: Release = Release::of(26);
/// The releases in which an unsigned integer of one bit is bool.
pub(super) const OLD_BOOL: std::ops::RangeInclusive<u8> = 5..=22;

/// The bool of 0.5 to 0.22 (TEN-04).
const fn old_bool() -> Dtype {
    Dtype::scalar(Dtype::UINT, 1)
}

/// Returns the rows of [`NAMES`] that `release` has.
pub(super) fn names(release: Release) -> impl Iterator<Item = &'static DtypeName> {
    let holds = move |name: &&DtypeName| (name.since..=name.until).contains(&release.minor());
    NAMES.iter().filter(holds)
}

/// Replaces a short name by its long form; returns `None` if the text has no short name.
fn written_out(text: &str, release: Release) -> Option<String> {
    if release < SHORT_SINCE {
        return None;
    }
    SHORT.iter().find_map(|(short, long)| {
        let rest = text.strip_prefix(short)?;
        // TEN-08: `int8` also begins with `i`. A digit after the `i` shows that it is the short name.
        let fits = short.ends_with('_') || rest.starts_with(|next: char| next.is_ascii_digit());
        fits.then(|| format!("{long}{rest}"))
    })
}

/// Returns the bits at the start of `rest`, or `default`, and the text after them. `text` is the whole text, for messages.
fn read_bits<'t>(rest: &'t str, default: u8, text: &str) -> Result<(u8, &'t str), Violation> {
    // TEN-09: only digits are accepted. Readers up to 0.22 use `strtoul`, which accepts signs and blanks, and keep the low 8 bits: they
    // read `int264` as `int8`.
    let (digits, rest) = split_digits(rest);
    if digits.is_empty() {
        return Ok((default, rest));
    }
    match digits.parse::<u8>() {
        // TEN-03: every release treats 0 as a missing width.
        Ok(0) => Ok((default, rest)),
        Ok(bits) => Ok((bits, rest)),
        Err(_) => Err(malformed_dtype(text, "an element has at most 255 bits")),
    }
}

/// Parses `rest` as lanes, which are one if it is empty; returns TEN-09 for other text.
fn read_lanes(
    rest: &str,
    name: &DtypeName,
    release: Release,
    text: &str,
) -> Result<u16, Violation> {
    // TEN-08: this name may have an underscore before its lanes.
    let underscore = name.text == "float4_e2m1fn" && release >= SHORT_SINCE;
    let rest = match rest.strip_prefix('_') {
        Some(behind) if underscore => behind,
        _ => rest,
    };
    if rest.is_empty() {
        return Ok(1);
    }
    let scales = release >= SCALABLE_SINCE && !name.fixed;
    let (scaled, digits) = match rest.strip_prefix("xvscalex") {
        Some(digits) if scales => (true, digits),
        _ => (false, rest.strip_prefix('x').unwrap_or("not lanes")),
    };
    // TEN-09: only digits are accepted; `parse` would also accept a plus sign, which no release writes.
    let lanes = digits
        .bytes()
        .all(|digit| digit.is_ascii_digit())
        .then(|| digits.parse::<u16>().ok())
        .flatten()
        .filter(|lanes| *lanes != 0);
    match lanes {
        // TEN-07: scalable lanes are stored as negative numbers.
        Some(lanes) if scaled && lanes <= 1 << 15 => Ok(lanes.wrapping_neg()),
        Some(lanes) if !scaled => Ok(lanes),
        _ => Err(malformed_dtype(
            text,
            "after the bits, expected the end, or `x` and 1 to 65535 lanes",
        )),
    }
}

/// Splits off the decimal digits at the start.
fn split_digits(text: &str) -> (&str, &str) {
    let end = text
        .find(|next: char| !next.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// Creates the violation of TEN-09 with a reason.
fn malformed_dtype(text: &str, why: &str) -> Violation {
    let message = format!("`{}` is not an element type: {why}", show(text.as_bytes()));
    TEN_09.rejected(Kind::Malformed, message)
}
