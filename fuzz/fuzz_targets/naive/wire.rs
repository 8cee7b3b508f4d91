//! WIRE-01 to WIRE-07.

use super::In;
use tvmspec::wire::json::Type;

/// The first rule that is broken, and how many bytes are left where it is.
pub type Broken = (&'static str, usize);

/// Reads over one value.
pub fn skip(from: &mut In<'_>, named: &Type) -> Result<(), Broken> {
    match named {
        Type::U8 => fixed(from, 1).map(drop),
        Type::U16 => fixed(from, 2).map(drop),
        Type::U32 | Type::I32 => fixed(from, 4).map(drop),
        Type::U64 | Type::I64 | Type::F64 => fixed(from, 8).map(drop),
        Type::Bool => {
            let left = from.0.len();
            if fixed(from, 1)?[0] <= 1 { Ok(()) } else { Err(("WIRE-03", left)) }
        }
        Type::String => {
            let bytes = run(from)?;
            let valid = std::str::from_utf8(bytes).map_err(|error| error.valid_up_to());
            valid.map(drop).map_err(|valid| ("WIRE-05", from.0.len() + bytes.len() - valid))
        }
        Type::Bytes => run(from).map(drop),
        Type::Vector(element) => {
            let count = count(from, least(element))?;
            (0..count).try_for_each(|_| skip(from, element))
        }
        Type::Map(key, value) => {
            let count = count(from, least(key) + least(value))?;
            (0..count).try_for_each(|_| skip(from, key).and_then(|()| skip(from, value)))
        }
        Type::Tuple(members) => members.iter().try_for_each(|member| skip(from, member)),
    }
}

/// WIRE-01: no part of a field that does not fit is used.
fn fixed<'a>(from: &mut In<'a>, size: u64) -> Result<&'a [u8], Broken> {
    let left = from.0.len();
    from.take(size).ok_or(("WIRE-01", left))
}

/// WIRE-04.
fn run<'a>(from: &mut In<'a>) -> Result<&'a [u8], Broken> {
    let length = fixed(from, 8)?.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
    fixed(from, length)
}

/// WIRE-06: a count that the rest cannot hold is to blame itself, before any element.
fn count(from: &mut In<'_>, least: u128) -> Result<u64, Broken> {
    let left = from.0.len();
    let count = fixed(from, 8)?.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
    if u128::from(count) * least <= from.0.len() as u128 { Ok(count) } else { Err(("WIRE-06", left)) }
}

/// The smallest size of a value: a length or a count, where it has one.
fn least(named: &Type) -> u128 {
    match named {
        Type::U8 | Type::Bool => 1,
        Type::U16 => 2,
        Type::U32 | Type::I32 => 4,
        Type::Tuple(members) => members.iter().map(least).sum(),
        _ => 8,
    }
}
