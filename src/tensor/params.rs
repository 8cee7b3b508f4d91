//! The parameter file: named tensors.
//!
//! | field | bytes | rule |
//! |---|---|---|
//! | `magic` | u64, 0xF7E58D4F05049CB7 | TEN-40 |
//! | `reserved` | u64, 0 | TEN-41, TEN-42 |
//! | `names` | vector of strings | TEN-41, TEN-44 |
//! | `count` | u64, as many as names | TEN-41, TEN-43 |
//! | `tensors` | that many records | TEN-20 .. TEN-34 |

use super::{Sizing, TEN_40, TEN_41, TEN_42, TEN_43, TEN_44, TensorRecord};
use crate::rule::{Findings, Kind, Tolerated, Violation};
use crate::wire::{Cursor, WIRE_06, Writer};
use std::borrow::Cow;
use std::collections::HashSet;

/// Named tensors in file order. Names and data borrow the bytes of the file.
///
/// ```
/// use tvmspec::tensor::{Params, TensorRecord};
///
/// let file = std::fs::read("golden/graph/models/v0.8/mlp.params")?;
/// let mut params = Params::open(&file)?.strict()?;
/// for (_, tensor) in params.iter_mut() {
///     let zeros = vec![0.0_f32; tensor.to_vec::<f32>()?.len()];
///     *tensor = tensor.clone().with_values(&zeros)?;
/// }
/// assert_eq!(params.to_bytes().len(), file.len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params<'a> {
    /// The reserved word; 0 in every file that a release wrote (TEN-42).
    reserved: u64,
    /// Names and records in file order; a name may be repeated (TEN-44).
    tensors: Vec<(Cow<'a, str>, TensorRecord<'a>)>,
}

impl<'a> Params<'a> {
    /// The first eight bytes of every parameter file, as a little-endian integer.
    pub const MAGIC: u64 = 0xF7E5_8D4F_0504_9CB7;

    /// Creates parameters for writing.
    pub fn new(tensors: Vec<(Cow<'a, str>, TensorRecord<'a>)>) -> Params<'a> {
        Params {
            reserved: 0,
            tensors,
        }
    }

    /// Reads a whole parameter file, of any release. Bytes after the last tensor are a finding of WIRE-08.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Params::read`] for the newest family of releases whose sizes agree (TEN-45).
    pub fn open(bytes: &'a [u8]) -> Result<Tolerated<Params<'a>>, Violation> {
        Tolerated::read(|findings| {
            let mut cursor = Cursor::new(bytes);
            let (params, _) = Params::detect(&mut cursor, findings)?;
            cursor.finish("the parameter file", findings)?;
            Ok(params)
        })
    }

    /// Reads a parameter file of an unknown family of releases from a cursor, and returns it with the newest family whose sizes agree (TEN-45).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Params::read`] for the newest family.
    pub fn detect(
        cursor: &mut Cursor<'a>,
        findings: &mut Findings,
    ) -> Result<(Params<'a>, Sizing), Violation> {
        // TEN-45: for elements of whole bytes and one lane, the three counts agree, and the order does not matter. For others, the sizes in
        // the file show the family.
        for sizing in [Sizing::V0_7, Sizing::V0_4, Sizing::V0_2] {
            // TEN-45: the findings of a probe are dropped, because another family may fit. A probe reads only headers.
            let mut probe = cursor.look_ahead();
            if Params::read(&mut probe, sizing, &mut findings.clone()).is_ok() {
                return Ok((Params::read(cursor, sizing, findings)?, sizing));
            }
        }
        // TEN-45: the error of the newest family is returned, because most files are of that family.
        Ok((Params::read(cursor, Sizing::V0_7, findings)?, Sizing::V0_7))
    }

    /// Reads a parameter file, with sizes counted by `sizing`. Leaves the cursor after the last tensor.
    ///
    /// # Errors
    ///
    /// Returns TEN-40, TEN-43; under strict findings TEN-42 and TEN-44; the rules of names and vectors (WIRE-01 to WIRE-06); the errors
    /// of [`TensorRecord::read`].
    pub fn read(
        cursor: &mut Cursor<'a>,
        sizing: Sizing,
        findings: &mut Findings,
    ) -> Result<Params<'a>, Violation> {
        cursor.u64("magic", TEN_40)?.require(
            TEN_40,
            |magic| *magic == Params::MAGIC,
            |magic| {
                let tensor = if *magic == TensorRecord::MAGIC {
                    "; this is a single tensor"
                } else {
                    ""
                };
                format!(
                    "{magic:#018x} does not start a parameter file, {:#018x} does{tensor}",
                    Params::MAGIC
                )
            },
        )?;
        // TEN-42: no released reader checks it.
        let reserved = cursor.u64("reserved", TEN_41)?.expect(
            findings,
            TEN_42,
            Kind::Malformed,
            |reserved| *reserved == 0,
            |reserved| {
                format!("the reserved word of the file is {reserved:#x}, not 0 as every release up to 0.27 writes it")
            },
        )?;
        // TEN-41: names and tensors are two vectors, and only the names limit the second count.
        let names = read_names(cursor, findings)?;
        // The count is compared with the names first, because they limit it.
        let count = cursor.u64("count", TEN_41)?;
        count.require(
            TEN_43,
            |count| *count == names.len() as u64,
            |count| {
                format!(
                    "expected one tensor for each of {} names, found {count}",
                    names.len()
                )
            },
        )?;
        // WIRE-06: this count is checked like any other, although it is not directly before its vector.
        let room = cursor.remaining() / TensorRecord::SMALLEST;
        count.require_as(
            Kind::Truncated,
            WIRE_06,
            |_| names.len() <= room,
            |_| {
                format!(
                    "{} tensors do not fit into the {} bytes that follow",
                    names.len(),
                    cursor.remaining()
                )
            },
        )?;
        let mut tensors = Vec::with_capacity(names.len());
        for (index, name) in names.into_iter().enumerate() {
            let record = cursor.read_within("tensor", index as u64, |cursor| {
                TensorRecord::read(cursor, sizing, findings)
            })?;
            tensors.push((Cow::Borrowed(name), record));
        }
        Ok(Params { reserved, tensors })
    }

    /// Writes the file: the bytes that were read, or those that a release writes for these tensors in this order.
    pub fn write(&self, out: &mut Writer) {
        out.u64(Params::MAGIC);
        out.u64(self.reserved);
        // TEN-41: all names come first, then all tensors, each list with its count (TEN-43).
        out.vector(&self.tensors, |out, (name, _)| out.str(name));
        out.vector(&self.tensors, |out, (_, record)| record.write(out));
    }

    /// Returns the bytes of the file, as [`Params::write`] writes them.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::new();
        self.write(&mut out);
        out.into_bytes()
    }

    /// Sets the word that is 0 in files of releases. Use it only to write back a file that was read.
    #[must_use]
    pub fn with_reserved(mut self, reserved: u64) -> Params<'a> {
        self.reserved = reserved;
        self
    }

    /// Returns the reserved word of the file, which is 0 in files of releases (TEN-42).
    pub fn reserved(&self) -> u64 {
        self.reserved
    }

    /// Returns the number of tensors.
    pub fn len(&self) -> usize {
        self.tensors.len()
    }

    /// Returns whether there are no tensors.
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }

    /// Returns the names and tensors in file order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &TensorRecord<'a>)> {
        self.tensors
            .iter()
            .map(|(name, record)| (name.as_ref(), record))
    }

    /// Returns the tensor called `name`. Of several, the last one counts, as in every release since 0.4 (TEN-44).
    pub fn get(&self, name: &str) -> Option<&TensorRecord<'a>> {
        // TEN-44: this matches a map that is filled in file order.
        let same = self.tensors.iter().rfind(|(other, _)| other == name);
        same.map(|(_, record)| record)
    }

    /// Returns the tensor called `name` for editing. Of several, the last one counts (TEN-44).
    pub fn get_mut(&mut self, name: &str) -> Option<&mut TensorRecord<'a>> {
        let mut tensors = self.tensors.iter_mut();
        let same = tensors.rfind(|(other, _)| other == name);
        same.map(|(_, record)| record)
    }

    /// Returns the names and tensors in file order, for editing of the tensors.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = (&str, &mut TensorRecord<'a>)> {
        self.tensors
            .iter_mut()
            .map(|(name, record)| (&**name, record))
    }

    /// Returns the parameters with all borrowed bytes copied.
    pub fn into_owned(self) -> Params<'static> {
        let reserved = self.reserved;
        let owned = self
            .into_iter()
            .map(|(name, record)| (Cow::Owned(name.into_owned()), record.into_owned()));
        Params::new(owned.collect()).with_reserved(reserved)
    }
}

impl<'a> IntoIterator for Params<'a> {
    type Item = (Cow<'a, str>, TensorRecord<'a>);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.tensors.into_iter()
    }
}

impl<'p, 'a> IntoIterator for &'p Params<'a> {
    type Item = &'p (Cow<'a, str>, TensorRecord<'a>);
    type IntoIter = std::slice::Iter<'p, (Cow<'a, str>, TensorRecord<'a>)>;

    fn into_iter(self) -> Self::IntoIter {
        self.tensors.iter()
    }
}

impl<'a> FromIterator<(Cow<'a, str>, TensorRecord<'a>)> for Params<'a> {
    fn from_iter<I: IntoIterator<Item = (Cow<'a, str>, TensorRecord<'a>)>>(
        tensors: I,
    ) -> Params<'a> {
        Params::new(tensors.into_iter().collect())
    }
}

/// Reads the names. A duplicate is reported at the offset of its length (TEN-44).
fn read_names<'a>(
    cursor: &mut Cursor<'a>,
    findings: &mut Findings,
) -> Result<Vec<&'a str>, Violation> {
    let mut seen = HashSet::new();
    // WIRE-06: a string takes at least eight bytes, for its length.
    cursor.vector(8, "names", |cursor| {
        // TEN-44: writers use a map, so only a file that no release wrote has a repeated name.
        cursor.str("names", TEN_41)?.expect(
            findings,
            TEN_44,
            Kind::Duplicate,
            |name| seen.insert(*name),
            |name| format!("there are two tensors called `{name}`; the last one counts"),
        )
    })
}
