//! Element types: four bytes that describe an element of a tensor.
//!
//! | field | bytes | rule |
//! |---|---|---|
//! | `code` | u8 | TEN-01, TEN-02 |
//! | `bits` | u8 | TEN-01 |
//! | `lanes` | u16 | TEN-01 |

use super::{TEN_01, TEN_07, TEN_28, TEN_33};
use crate::rule::{Kind, Violation};
use crate::wire::{Cursor, Writer};

/// An element type as DLPack and TVM store it: its kind, the width of one lane, and the number of lanes.
///
/// Any four bytes are a `Dtype`. Rules elsewhere decide whether a release has a meaning for them. The layout is that of DLPack's
/// `DLDataType`, so that C functions can use it directly.
///
/// ```
/// use tvmspec::tensor::Dtype;
///
/// assert_eq!(Dtype::FLOAT32, "float32".parse()?);
/// assert_eq!(Dtype::INT8.to_string(), "int8");
/// # Ok::<(), tvmspec::Violation>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Dtype {
    /// The kind of number: [`Dtype::INT`], [`Dtype::FLOAT`], ... The meaning of codes 5 to 17 depends on the release.
    pub code: u8,
    /// Number of bits in one lane.
    pub bits: u8,
    /// Number of lanes in one element. From 0.16 on, 65536 - n means n times the vector length of the machine (TEN-07).
    pub lanes: u16,
}

impl Dtype {
    /// Signed integer.
    pub const INT: u8 = 0;
    /// Unsigned integer; with one bit, it is bool in every release up to 0.21.
    pub const UINT: u8 = 1;
    /// IEEE 754 float.
    pub const FLOAT: u8 = 2;
    /// Opaque pointer; with no bits and no lanes, it is `void`.
    pub const HANDLE: u8 = 3;
    /// bfloat16.
    pub const BFLOAT: u8 = 4;
    /// Complex number; no release has text for it.
    pub const COMPLEX: u8 = 5;
    /// Bool of one byte, in the newest releases.
    pub const BOOL: u8 = 6;
    /// The highest code that has a name in a release, not counting custom types.
    pub const LAST: u8 = 17;
    /// The first code of custom types, whose names are in a registry.
    pub const CUSTOM: u8 = 129;

    /// Size of a dtype in bytes, in every binary format.
    pub(crate) const SIZE: usize = 4;

    /// Creates a dtype of `code` with one lane of `bits`.
    pub const fn scalar(code: u8, bits: u8) -> Dtype {
        Dtype {
            code,
            bits,
            lanes: 1,
        }
    }

    /// 8-bit signed integer.
    pub const INT8: Dtype = Dtype::scalar(Dtype::INT, 8);
    /// 16-bit signed integer.
    pub const INT16: Dtype = Dtype::scalar(Dtype::INT, 16);
    /// 32-bit signed integer.
    pub const INT32: Dtype = Dtype::scalar(Dtype::INT, 32);
    /// 64-bit signed integer.
    pub const INT64: Dtype = Dtype::scalar(Dtype::INT, 64);
    /// 8-bit unsigned integer: the type of bytes, and of every workspace block.
    pub const UINT8: Dtype = Dtype::scalar(Dtype::UINT, 8);
    /// IEEE 754 float of 16 bits.
    pub const FLOAT16: Dtype = Dtype::scalar(Dtype::FLOAT, 16);
    /// IEEE 754 float of 32 bits.
    pub const FLOAT32: Dtype = Dtype::scalar(Dtype::FLOAT, 32);
    /// IEEE 754 float of 64 bits.
    pub const FLOAT64: Dtype = Dtype::scalar(Dtype::FLOAT, 64);
    /// bfloat16.
    pub const BFLOAT16: Dtype = Dtype::scalar(Dtype::BFLOAT, 16);

    /// The dtype without a value.
    pub const VOID: Dtype = Dtype {
        code: Dtype::HANDLE,
        bits: 0,
        lanes: 0,
    };

    /// Reads the four bytes (TEN-01). Any bytes are accepted, with or without a meaning.
    ///
    /// # Errors
    ///
    /// Returns WIRE-01 if the input is too short.
    pub fn read(cursor: &mut Cursor<'_>) -> Result<Dtype, Violation> {
        cursor.read_within("dtype", None, |cursor| {
            Ok(Dtype {
                code: *cursor.u8("code", TEN_01)?,
                bits: *cursor.u8("bits", TEN_01)?,
                lanes: *cursor.u16("lanes", TEN_01)?,
            })
        })
    }

    /// Rejects a type that elements of a tensor in memory cannot have: a type without bits or lanes (TEN-28), with scalable lanes
    /// (TEN-07), or without a meaning (TEN-33).
    ///
    /// # Errors
    ///
    /// Returns TEN-28 of kind type, TEN-07 of kind unsupported, TEN-33 of kind unknown-kind.
    pub fn check_element(self) -> Result<(), Violation> {
        let Dtype { bits, lanes, .. } = self;
        // TEN-28 is checked before TEN-33, because `void` has a code that every release knows.
        let wrong = if bits == 0 || lanes == 0 {
            let message = format!("{bits} bits in {lanes} lanes hold nothing");
            Some((TEN_28, Kind::Type, message))
        // TEN-07: scalable lanes are stored as negative numbers, and their size depends on the machine.
        } else if lanes > 1 << 15 {
            let message = "lanes that are a multiple of the machine's have no size".to_owned();
            Some((TEN_07, Kind::Unsupported, message))
        } else {
            self.meaningless()
                .map(|message| (TEN_33, Kind::UnknownKind, message))
        };
        match wrong {
            Some((rule, kind, message)) => Err(rule.rejected(kind, message)),
            None => Ok(()),
        }
    }

    /// Returns why no release has this element type; `None` if one has it (TEN-33). Codes 6 to 8 have two meanings each (TEN-02). A stored
    /// dtype does not show its release, so the widths of both meanings are accepted.
    pub(super) fn meaningless(self) -> Option<String> {
        let (name, widths): (_, &[u8]) = match self.code {
            // TEN-33: integers of any width have been written, and custom types are defined by users.
            Dtype::INT | Dtype::UINT | Dtype::CUSTOM.. => return None,
            Dtype::FLOAT => ("float", &[16, 32, 64]),
            Dtype::HANDLE => ("handle", &[32, 64]),
            Dtype::BFLOAT => ("bfloat", &[16]),
            Dtype::COMPLEX => ("complex number", &[32, 64, 128]),
            // TEN-02: code 6 is an 8-bit float in 0.13 to 0.20, and bool from 0.22 on, which TEN-04 can also write with one bit.
            Dtype::BOOL => ("bool", &[1, 8]),
            7 | 9..=14 => ("8-bit float", &[8]),
            // TEN-02: code 8 is float4_e2m1fn in 0.20, and float8_e4m3 from 0.21 on.
            8 => ("small float", &[4, 8]),
            15 | 16 => ("6-bit float", &[6]),
            Dtype::LAST => ("4-bit float", &[4]),
            code => return Some(format!("no release has an element type of code {code}")),
        };
        // TEN-33: this is a finding in a stored record, and an error where a tensor in memory is created (`check_element`).
        (!widths.contains(&self.bits)).then(|| {
            let widths: Vec<String> = widths.iter().map(u8::to_string).collect();
            format!(
                "a {name} has {} bits, not {}",
                widths.join(" or "),
                self.bits
            )
        })
    }

    /// Returns the bytes that `elements` of this type fill. Sub-byte types are packed.
    #[cfg(feature = "runtime")]
    pub fn bytes_of(self, elements: u64) -> u64 {
        // DEV-15: sub-byte elements are packed, as from 0.21 on. Computed in 128 bits, so that no product wraps.
        let bits = u128::from(self.bits).saturating_mul(u128::from(self.lanes));
        let bytes = u128::from(elements).saturating_mul(bits).div_ceil(8);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// Writes the four bytes: code, bits, and lanes as a little-endian u16 (TEN-01).
    pub fn write(&self, out: &mut Writer) {
        out.u8(self.code);
        out.u8(self.bits);
        out.u16(self.lanes);
    }
}
