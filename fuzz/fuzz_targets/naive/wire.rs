//! WIRE-01 to WIRE-07.

use super::In;
use tvmspec::wire::json::Type;

/// Reads over one value.
pub fn skip(from: &mut In<'_>, named: &Type) -> Option<()> {
    match named {
        Type::U8 => from.take(1).map(drop),
        Type::U16 => from.take(2).map(drop),
        Type::U32 | Type::I32 => from.take(4).map(drop),
        Type::U64 | Type::I64 | Type::F64 => from.take(8).map(drop),
        Type::Bool => from.u8().filter(|byte| *byte <= 1).map(drop),
        Type::String => from.text().map(drop),
        Type::Bytes => from.bytes().map(drop),
        Type::Vector(element) => from.vector(|from| skip(from, element)).map(drop),
        Type::Map(key, value) => from.vector(|from| skip(from, key).and(skip(from, value))).map(drop),
        Type::Tuple(members) => members.iter().try_for_each(|member| skip(from, member)),
    }
}
