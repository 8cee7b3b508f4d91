//! Element types: the four bytes that say what an element of a tensor is.
//!
//! | field | bytes | rule |
//! |---|---|---|
//! | `code` | u8 | TEN-01, TEN-02 |
//! | `bits` | u8 | TEN-01 |
//! | `lanes` | u16 | TEN-01 |

use super::{TEN_01, TEN_07, TEN_28, TEN_33};
use crate::rule::{Kind, Violation};
use crate::wire::{Cursor, Writer};

/// An element type as DLPack and TVM store it: what it is, how wide one lane is, and how many lanes an element has.
///
/// Any four bytes are a `Dtype`; whether a release has a meaning for them is for the rules of its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dtype {
    /// The kind of number: [`Dtype::INT`], [`Dtype::FLOAT`], ... What codes from 5 to 17 mean depends on the release.
    pub code: u8,
    /// Bits of one lane.
    pub bits: u8,
    /// Lanes of one element. From 0.16 on, 65536 - n is n times the vector length of the machine (TEN-07).
    pub lanes: u16,
}

impl Dtype {
    /// Signed integer.
    pub const INT: u8 = 0;
    /// Unsigned integer; with one bit it is the bool of every release up to 0.21.
    pub const UINT: u8 = 1;
    /// IEEE 754 float.
    pub const FLOAT: u8 = 2;
    /// Opaque pointer; with no bits and no lanes it is `void`.
    pub const HANDLE: u8 = 3;
    /// bfloat16.
    pub const BFLOAT: u8 = 4;
    /// Complex number; no release has a text for it.
    pub const COMPLEX: u8 = 5;
    /// Bool of one byte, in the newest releases.
    pub const BOOL: u8 = 6;
    /// The highest code that has a name in a release, custom types aside.
    pub const LAST: u8 = 17;
    /// The first code of custom types, whose names live in a registry.
    pub const CUSTOM: u8 = 129;

    /// Bytes of a dtype in every binary format.
    pub(crate) const SIZE: usize = 4;

    /// One lane of `code` with `bits`.
    pub const fn scalar(code: u8, bits: u8) -> Dtype {
        Dtype {
            code,
            bits,
            lanes: 1,
        }
    }

    /// The dtype of no value.
    pub const VOID: Dtype = Dtype {
        code: Dtype::HANDLE,
        bits: 0,
        lanes: 0,
    };

    /// Reads the four bytes (TEN-01): any are a dtype, with a meaning or without.
    ///
    /// # Errors
    ///
    /// WIRE-01 when there are fewer bytes.
    pub fn read(cursor: &mut Cursor<'_>) -> Result<Dtype, Violation> {
        cursor.within("dtype", None, |cursor| {
            Ok(Dtype {
                code: *cursor.u8("code", TEN_01)?,
                bits: *cursor.u8("bits", TEN_01)?,
                lanes: *cursor.u16("lanes", TEN_01)?,
            })
        })
    }

    /// Rejects what no element of a tensor in memory is: one without bits or lanes (TEN-28), one whose lanes are a multiple
    /// of what a machine has (TEN-07), and one of no meaning (TEN-33).
    ///
    /// # Errors
    ///
    /// TEN-28 of kind type, TEN-07 of kind unsupported, TEN-33 of kind unknown-kind.
    pub fn check_element(self) -> Result<(), Violation> {
        let Dtype { bits, lanes, .. } = self;
        // TEN-28 before TEN-33: `void` has a code that every release knows.
        let wrong = if bits == 0 || lanes == 0 {
            let message = format!("{bits} bits in {lanes} lanes hold nothing");
            Some((TEN_28, Kind::Type, message))
        // TEN-07: scalable lanes are stored as their negative; what they take depends on the machine.
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

    /// Why no release has this element type, if none has (TEN-33). Codes 6 to 8 have
    /// two meanings each (TEN-02), and a stored dtype does not say of which release it is: both widths are accepted.
    pub(super) fn meaningless(self) -> Option<String> {
        let (name, widths): (_, &[u8]) = match self.code {
            // TEN-33: integers of any width have been written, and custom types are named by who registers them.
            Dtype::INT | Dtype::UINT | Dtype::CUSTOM.. => return None,
            Dtype::FLOAT => ("float", &[16, 32, 64]),
            Dtype::HANDLE => ("handle", &[32, 64]),
            Dtype::BFLOAT => ("bfloat", &[16]),
            Dtype::COMPLEX => ("complex number", &[32, 64, 128]),
            // TEN-02: code 6 is an 8-bit float in 0.13 to 0.20 and bool from 0.22 on, which TEN-04 can write with one bit too.
            Dtype::BOOL => ("bool", &[1, 8]),
            7 | 9..=14 => ("8-bit float", &[8]),
            // TEN-02: float4_e2m1fn in 0.20, float8_e4m3 from 0.21 on.
            8 => ("small float", &[4, 8]),
            15 | 16 => ("6-bit float", &[6]),
            Dtype::LAST => ("4-bit float", &[4]),
            code => return Some(format!("no release has an element type of code {code}")),
        };
        // TEN-33: a finding where it is stored, and an error where memory is made of it (`check_element`).
        (!widths.contains(&self.bits)).then(|| {
            let widths: Vec<String> = widths.iter().map(u8::to_string).collect();
            format!(
                "a {name} has {} bits, not {}",
                widths.join(" or "),
                self.bits
            )
        })
    }

    /// Writes the four bytes: code, bits, and lanes as a little-endian u16 (TEN-01).
    pub fn write(&self, out: &mut Writer) {
        out.u8(self.code);
        out.u8(self.bits);
        out.u16(self.lanes);
    }
}
