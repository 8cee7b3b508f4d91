//! The header of an `.npy` file: a Python dictionary of type, order and shape.
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 6 | `\x93NUMPY` |
//! | 6 | 2 | the version, major and minor: 1.0, 2.0 or 3.0 |
//! | 8 | 2; 4 from version 2 on | the length of the text, little-endian |
//! | 10 or 12 | that length | the text of the dictionary, blanks, a line end |
//!
//! The data follow directly.
//!
//! Written by hand, because npyz 0.9 exceeds the limits of `conformance/reports/hostile-files.md`. It allocates the length that a
//! header states, up to 4 GiB, and multiplies extents without a check. It also adds 21 crates that parse any Python literal. The tests
//! of the models read their arrays with npyz, which shares no code with this module.

use std::io::Read;
use tvmspec::tensor::Dtype;

/// The maximal length of a header in bytes, as in numpy.
// numpy calls it `max_header_size`. A long header is an attack on the Python parser, and no array needs one.
const LONGEST: usize = 10_000;

/// The type of an element, as numpy's word states it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum NpyElement {
    Typed(Dtype),
    /// So many bytes without a type: `V2`, for example, which numpy writes for the types of the package ml_dtypes.
    Raw(u8),
}

/// The header of an array.
#[derive(Debug, PartialEq)]
pub(super) struct NpyHeader {
    /// The extent of each axis.
    pub(super) shape: Vec<i64>,
    /// The type of an element, with one lane.
    pub(super) element: NpyElement,
    /// `true` if the most significant byte of an element comes first.
    pub(super) is_big_endian: bool,
}

impl NpyHeader {
    /// Reads a header, up to the first byte of the data.
    pub(super) fn read(from: &mut impl Read) -> Result<NpyHeader, String> {
        let mut start = [0; 10];
        from.read_exact(&mut start)
            .map_err(|_| "it is not an .npy array: it ends inside its header")?;
        if !start.starts_with(b"\x93NUMPY") {
            return Err("it is not an .npy array: it does not begin with \\x93NUMPY".into());
        }
        // The minor version is ignored, because only 0 exists.
        let length = match start[6] {
            1 => u32::from(u16::from_le_bytes([start[8], start[9]])),
            // From version 2 on, the length has four bytes.
            2 | 3 => {
                let mut rest = [0; 2];
                from.read_exact(&mut rest)
                    .map_err(|_| "it is not an .npy array: it ends inside its header")?;
                u32::from_le_bytes([start[8], start[9], rest[0], rest[1]])
            }
            version => return Err(format!("unsupported version {version} of .npy")),
        };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        // Checked before memory is allocated, because version 2 allows lengths up to 4 GiB.
        if length > LONGEST {
            return Err(format!(
                "its header has {length} bytes, an array takes {LONGEST} at most"
            ));
        }
        let mut text = vec![0; length];
        from.read_exact(&mut text)
            .map_err(|_| "it ends inside its header")?;
        // Versions 1 and 2 are Latin-1, version 3 is UTF-8. They differ only in names of record fields, which are rejected.
        NpyHeader::parse(&String::from_utf8_lossy(&text))
    }

    /// Parses `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`, with the keys in any order. The last of repeated keys
    /// counts, as in Python.
    fn parse(text: &str) -> Result<NpyHeader, String> {
        let (mut word, mut is_column_major, mut shape) = (None, None, None);
        let mut literal = Literal { rest: text };
        literal.expect("{")?;
        while !literal.skip("}") {
            let key = literal.string()?;
            literal.expect(":")?;
            match key {
                // A list of names and types is a structured type.
                "descr" if literal.starts_with("[") => {
                    return Err("it holds records, not numbers".into());
                }
                "descr" => word = Some(literal.string()?),
                "fortran_order" => is_column_major = Some(literal.truth()?),
                "shape" => shape = Some(literal.tuple()?),
                _ => return Err(format!("its header has an unknown key `{key}`")),
            }
            if !literal.skip(",") && !literal.starts_with("}") {
                return Err(literal.unexpected_text("`,` or `}`"));
            }
        }
        if !literal.rest.trim().is_empty() {
            return Err(literal.unexpected_text("its end"));
        }
        let (Some(word), Some(is_column_major), Some(shape)) = (word, is_column_major, shape)
        else {
            return Err("its header lacks `descr`, `fortran_order` or `shape`".into());
        };
        // For one axis, numpy writes either True or False.
        if is_column_major && shape.len() > 1 {
            return Err(
                "its elements are in column-major order: save numpy.ascontiguousarray(x) instead"
                    .into(),
            );
        }
        // Pickled objects are programs. Reading them would run code, which no reader here does.
        if word.trim_start_matches('|') == "O" {
            return Err(
                "it holds pickled Python objects, not numbers: save x.astype(numpy.float32) or the like"
                    .into(),
            );
        }
        let element =
            element_of(word).ok_or_else(|| format!("its type is `{word}`, which no tensor has"))?;
        Ok(NpyHeader {
            shape,
            element,
            is_big_endian: word.starts_with('>'),
        })
    }
}

/// Creates a header of version 1, up to the first byte of the data. Returns `None` if it would be longer than numpy reads. `word` comes
/// from [`word_of`].
pub(super) fn header(word: &str, shape: &[i64]) -> Option<Vec<u8>> {
    const PREFIX: usize = 10;
    // A comma after each extent: a tuple with one element needs it, and longer ones may have it.
    let shape: Vec<String> = shape.iter().map(|extent| format!("{extent},")).collect();
    let mut text = format!(
        "{{'descr': '{word}', 'fortran_order': False, 'shape': ({}), }}",
        shape.join(" ")
    );
    // numpy begins the data at a multiple of 64, for readers that map the file. Blanks before the line end pad the header, and its
    // length includes them.
    let filled = (PREFIX + text.len() + 1).next_multiple_of(64) - PREFIX - 1;
    text.push_str(&" ".repeat(filled - text.len()));
    text.push('\n');
    let length = u16::try_from(text.len()).ok();
    // The two bytes for the length in version 1 exceed the limit of numpy, so that version 2 is never needed.
    let length = length.filter(|_| text.len() <= LONGEST)?;
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend(length.to_le_bytes());
    out.extend(text.as_bytes());
    Some(out)
}

/// Parses numpy's `<f4`, `|b1`, `<V2`, ... Returns `None` for types that no tensor has: texts, times.
pub(super) fn element_of(word: &str) -> Option<NpyElement> {
    // `NpyHeader::read` checks the byte order itself. `=` is the order of the machine.
    let word = word.strip_prefix(['<', '>', '|', '=']).unwrap_or(word);
    let (code, bytes): (u8, u8) = match word.split_at_checked(1)? {
        ("i", bytes @ ("1" | "2" | "4" | "8")) => (0, bytes.parse().ok()?),
        ("u", bytes @ ("1" | "2" | "4" | "8")) => (1, bytes.parse().ok()?),
        ("f", bytes @ ("2" | "4" | "8" | "16")) => (2, bytes.parse().ok()?),
        // TEN-04: code 6, as in releases from 0.23 on.
        ("b", "1") => (6, 1),
        ("c", bytes @ ("8" | "16")) => (5, bytes.parse().ok()?),
        // The word of ml_dtypes for float8_e5m2, which numpy itself cannot read back.
        ("f", "1") => (12, 1),
        ("V", bytes @ ("1" | "2" | "4" | "8" | "16")) => {
            return Some(NpyElement::Raw(bytes.parse().ok()?));
        }
        _ => return None,
    };
    Some(NpyElement::Typed(Dtype {
        code,
        bits: bytes * 8,
        lanes: 1,
    }))
}

/// Returns numpy's word for a data type; `None` for types that neither numpy nor ml_dtypes has.
pub(super) fn word_of(dtype: Dtype) -> Option<String> {
    let bytes = dtype.bits.div_ceil(8);
    let kind = match (dtype.code, dtype.bits, dtype.lanes) {
        (0, 8 | 16 | 32 | 64, 1) => 'i',
        // TEN-04: up to 0.22 a boolean is the one-bit unsigned integer, which takes a byte in a .npy file. Later it has code 6.
        (1, 1, 1) | (6, 8, 1) => 'b',
        (1, 8 | 16 | 32 | 64, 1) => 'u',
        (2, 16 | 32 | 64, 1) => 'f',
        (5, 64 | 128, 1) => 'c',
        // Types of ml_dtypes. Each element takes whole bytes.
        (0, 1 | 2 | 4, 1) | (1, 2 | 4, 1) | (4, 16, 1) => 'V',
        // Code 8 with 4 bits is float4_e2m1fn of 0.20.
        (7..=14, 8, 1) | (15 | 16, 6, 1) | (8 | 17, 4, 1) => 'V',
        _ => return None,
    };
    // One byte has no byte order, which numpy writes as `|`, except for types that it does not know.
    let end = if bytes == 1 && kind != 'V' { '|' } else { '<' };
    Some(format!("{end}{kind}{bytes}"))
}

/// The rest of a Python literal. The parser handles dictionaries of strings, truth values and tuples without recursion, so that nesting
/// cannot exhaust the stack.
struct Literal<'t> {
    rest: &'t str,
}

impl<'t> Literal<'t> {
    /// Skips blanks and returns whether `text` comes next.
    fn starts_with(&mut self, text: &str) -> bool {
        self.rest = self.rest.trim_start();
        self.rest.starts_with(text)
    }

    /// Skips `text` if it comes next, and returns whether it did.
    fn skip(&mut self, text: &str) -> bool {
        let starts = self.starts_with(text);
        if starts {
            self.rest = &self.rest[text.len()..];
        }
        starts
    }

    /// Skips `text`, which must come next.
    fn expect(&mut self, text: &str) -> Result<(), String> {
        if self.skip(text) {
            Ok(())
        } else {
            Err(self.unexpected_text(&format!("`{text}`")))
        }
    }

    /// Reads a text in single or double quotes. Rejects a backslash, because no name of a key or a type contains one.
    fn string(&mut self) -> Result<&'t str, String> {
        for quote in ["'", "\""] {
            if !self.skip(quote) {
                continue;
            }
            // The text ends at the next quote of the same kind.
            match self.rest.split_once(quote) {
                Some((inside, rest)) if !inside.contains('\\') => {
                    self.rest = rest;
                    return Ok(inside);
                }
                _ => break,
            }
        }
        Err(self.unexpected_text("a text in quotes"))
    }

    /// Reads `True` or `False`.
    fn truth(&mut self) -> Result<bool, String> {
        if self.skip("True") {
            Ok(true)
        } else if self.skip("False") {
            Ok(false)
        } else {
            Err(self.unexpected_text("True or False"))
        }
    }

    /// Reads integers from 0 on in parentheses. A single one needs a comma after it to be a tuple.
    fn tuple(&mut self) -> Result<Vec<i64>, String> {
        let (mut items, mut has_comma) = (Vec::new(), true);
        self.expect("(")?;
        while !self.skip(")") {
            if !has_comma {
                return Err(self.unexpected_text("`,` or `)`"));
            }
            self.rest = self.rest.trim_start();
            let end = self.rest.find(|letter: char| !letter.is_ascii_digit());
            let (digits, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
            if digits.is_empty() {
                return Err(self.unexpected_text("an extent"));
            }
            let extent = digits.parse();
            items.push(extent.map_err(|_| format!("no memory holds an extent of {digits}"))?);
            // Python 2 writes a long integer with this suffix.
            self.rest = rest.strip_prefix('L').unwrap_or(rest);
            has_comma = self.skip(",");
        }
        if items.len() == 1 && !has_comma {
            Err("its shape is not a tuple".into())
        } else {
            Ok(items)
        }
    }

    /// Creates the message that `wanted` was expected, with the next 20 characters that were found.
    fn unexpected_text(&self, wanted: &str) -> String {
        let found: String = self.rest.trim_start().chars().take(20).collect();
        format!("its header has {found:?} where {wanted} is expected")
    }
}
