//! An independent reader for WIRE-01 to WIRE-07.

use super::In;
use tvmspec::wire::json::WireType;

/// The first broken rule, and the count of bytes left at that place.
pub type Broken = (&'static str, usize);

/// Skips one value.
pub fn skip(from: &mut In<'_>, named: &WireType) -> Result<(), Broken> {
    match named {
        WireType::U8 => fixed(from, 1).map(drop),
        WireType::U16 => fixed(from, 2).map(drop),
        WireType::U32 | WireType::I32 => fixed(from, 4).map(drop),
        WireType::U64 | WireType::I64 | WireType::F64 => fixed(from, 8).map(drop),
        WireType::Bool => {
            let left = from.0.len();
            if fixed(from, 1)?[0] <= 1 { Ok(()) } else { Err(("WIRE-03", left)) }
        }
        WireType::String => {
            let bytes = run(from)?;
            let valid = std::str::from_utf8(bytes).map_err(|error| error.valid_up_to());
            valid.map(drop).map_err(|valid| ("WIRE-05", from.0.len() + bytes.len() - valid))
        }
        WireType::Bytes => run(from).map(drop),
        WireType::Vector(element) => {
            let count = count(from, least(element))?;
            (0..count).try_for_each(|_| skip(from, element))
        }
        WireType::Map(key, value) => {
            let count = count(from, least(key) + least(value))?;
            (0..count).try_for_each(|_| skip(from, key).and_then(|()| skip(from, value)))
        }
        WireType::Tuple(members) => members.iter().try_for_each(|member| skip(from, member)),
    }
}

/// Reads a field of fixed size. By WIRE-01, no part of a truncated field is used.
fn fixed<'a>(from: &mut In<'a>, size: u64) -> Result<&'a [u8], Broken> {
    let left = from.0.len();
    from.take(size).ok_or(("WIRE-01", left))
}

/// Reads counted bytes by WIRE-04.
fn run<'a>(from: &mut In<'a>) -> Result<&'a [u8], Broken> {
    let length = fixed(from, 8)?.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
    fixed(from, length)
}

/// Reads a count by WIRE-06. A count too large for the remaining bytes is reported before any element.
fn count(from: &mut In<'_>, least: u128) -> Result<u64, Broken> {
    let left = from.0.len();
    let count = fixed(from, 8)?.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
    if u128::from(count) * least <= from.0.len() as u128 { Ok(count) } else { Err(("WIRE-06", left)) }
}

/// Returns the smallest size of a value. For counted values that is the size of the count.
fn least(named: &WireType) -> u128 {
    match named {
        WireType::U8 | WireType::Bool => 1,
        WireType::U16 => 2,
        WireType::U32 | WireType::I32 => 4,
        WireType::Tuple(members) => members.iter().map(least).sum(),
        _ => 8,
    }
}
